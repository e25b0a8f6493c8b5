/* early.c - handlers, not a mask: threads and programs that are started would inherit it. */
#include "app/early.h"

#include <signal.h>
#include <stddef.h>

static const int kept[] = { SIGTERM, SIGINT, SIGHUP };
static volatile sig_atomic_t came[sizeof kept / sizeof kept[0]];

static void keep(int signum)
{
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
		if (kept[i] == signum)
			came[i] = 1;
}

void uar_early_keep(void)
{
	struct sigaction a = { .sa_handler = keep };

	sigemptyset(&a.sa_mask);
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++) {
		a.sa_flags = SA_RESTART | (kept[i] == SIGHUP ? 0 : (int)SA_RESETHAND);
		sigaction(kept[i], &a, NULL);
	}
}

void uar_early_deliver(void)
{
	for (size_t i = 0; i < sizeof kept / sizeof kept[0]; i++)
		if (came[i])
			raise(kept[i]);
}
