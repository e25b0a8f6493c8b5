/* curl_load.c - finds libcurl when it is first needed. */
#include "loop/curl_load.h"

#include <dlfcn.h>
#include <pthread.h>

#include "base/str.h"

static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct uar_curl table; /* written once, under `once` */
static char why[UAR_LIMIT_ERROR_TEXT];

static const struct {
	const char *name;
	size_t offset;
} functions[] = {
#define X(NAME) { "curl_" #NAME, offsetof(struct uar_curl, NAME) },
	UAR_CURL_FUNCTIONS(X)
#undef X
};

static bool resolve(void *lib, struct uar_curl *to)
{
	for (size_t i = 0; i < ARRAY_LEN(functions); i++) {
		void *p = dlsym(lib, functions[i].name);

		if (!p)
			return false;
		memcpy((char *)to + functions[i].offset, &p, sizeof p);
	}
	return true;
}

static void load(void)
{
	struct uar_curl found = { 0 };
	/* Never closed: libcurl's threads and atexit work may outlive any owner. */
	void *lib = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	const char *reason;

	if (lib && resolve(lib, &found)) {
		if (found.global_init(CURL_GLOBAL_DEFAULT) == CURLE_OK)
			table = found;
		else
			snprintf(why, sizeof why, "libcurl cannot be initialised");
		return;
	}
	reason = dlerror();
	snprintf(why, sizeof why, "libcurl cannot be loaded: %s", reason ? reason : "no reason");
}

uar_err uar_curl_load(const struct uar_curl **out, struct uar_error *error)
{
	pthread_once(&once, load);
	if (!table.easy_init)
		return uar_error_set(error, UAR_ENOTIMPL, "%s", why);
	*out = &table;
	return UAR_OK;
}
