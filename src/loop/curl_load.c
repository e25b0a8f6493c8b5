/* curl_load.c - finds libcurl when it is first needed. */
#include "loop/curl_load.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <string.h>

#include "base/str.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct uar_curl table; /* written once, under the lock */
static uar_err load_result;   /* UAR_OK: it is loaded, or not yet looked for */
static char load_reason[UAR_LIMIT_ERROR_TEXT];

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

/* The loader tells its reason in words alone. What is short now may be there the next time. */
static uar_err error_of_reason(const char *reason)
{
	static const struct {
		int number;
		uar_err e;
	} rows[] = { { EMFILE, UAR_EFDS }, { ENFILE, UAR_EFDS }, { ENOMEM, UAR_ENOMEM } };

	for (size_t i = 0; i < ARRAY_LEN(rows); i++)
		if (strstr(reason, strerror(rows[i].number)))
			return rows[i].e;
	return UAR_ENOTIMPL;
}

static uar_err load(void)
{
	struct uar_curl found = { 0 };
	/* Never closed: libcurl's threads and atexit work may outlive any owner. */
	void *lib = dlopen("libcurl.so.4", RTLD_NOW | RTLD_LOCAL);
	const char *reason;

	if (lib && resolve(lib, &found)) {
		CURLcode code = found.global_init(CURL_GLOBAL_DEFAULT);

		if (code == CURLE_OK) {
			table = found;
			return UAR_OK;
		}
		snprintf(load_reason, sizeof load_reason, "libcurl cannot be initialised");
		return code == CURLE_OUT_OF_MEMORY ? UAR_ENOMEM : UAR_ENOTIMPL;
	}
	reason = dlerror();
	snprintf(load_reason, sizeof load_reason, "libcurl cannot be loaded: %s",
		 reason ? reason : "no reason");
	return reason ? error_of_reason(reason) : UAR_ENOTIMPL;
}

uar_err uar_curl_load(const struct uar_curl **out, struct uar_error *error)
{
	uar_err e;

	pthread_mutex_lock(&lock);
	if (!table.easy_init && load_result != UAR_ENOTIMPL)
		load_result = load();
	e = load_result;
	if (e)
		uar_error_set(error, e, "%s", load_reason);
	pthread_mutex_unlock(&lock);
	if (!e)
		*out = &table;
	return e;
}
