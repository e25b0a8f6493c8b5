/* beside.c - one poll over everything; time that others take counts as waited. */
#include "app/beside.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"

static bool tell(const struct uar_beside *b, const struct pollfd *p)
{
	for (size_t i = 0; i < UAR_BESIDE_COUNT; i++)
		if (p[i].revents && !b->ready(b->ctx, (enum uar_beside_fd)i))
			return false;
	return true;
}

int uar_beside_wait(const struct uar_beside *b, int fd, short events, int ms)
{
	int64_t until = uar_clock_mono(&uar_clock_system) + (int64_t)ms * 1000, left = ms;
	struct pollfd p[UAR_BESIDE_COUNT + 1];
	int n;

	for (;;) {
		for (size_t i = 0; i < UAR_BESIDE_COUNT; i++)
			p[i] = (struct pollfd){ .fd = b ? b->fd[i] : -1, .events = POLLIN };
		p[UAR_BESIDE_COUNT] = (struct pollfd){ .fd = fd, .events = events };
		n = poll(p, UAR_BESIDE_COUNT + 1, (int)left);
		if (n < 0 && errno != EINTR)
			return errno;
		if (n > 0 && b && !tell(b, p))
			return ECANCELED;
		if (n > 0 && p[UAR_BESIDE_COUNT].revents)
			return 0;
		left = (until - uar_clock_mono(&uar_clock_system) + 999) / 1000;
		if (n == 0 || left <= 0)
			return ETIMEDOUT;
	}
}
