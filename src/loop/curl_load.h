/* curl_load.h - libcurl as a table of functions, for files of loop/ alone.
 *
 * libcurl and what it pulls in cost about 6 MB and 5 ms at start, so it is not
 * linked: the first call to the outside loads it, a server that never calls out
 * never does. */
#ifndef UAR_LOOP_CURL_LOAD_H
#define UAR_LOOP_CURL_LOAD_H

#define CURL_DISABLE_TYPECHECK
#include <curl/curl.h>

#include "base/err.h"

#define UAR_CURL_FUNCTIONS(X)                                                                      \
	X(global_init)                                                                             \
	X(slist_append)                                                                            \
	X(slist_free_all)                                                                          \
	X(easy_init)                                                                               \
	X(easy_setopt)                                                                             \
	X(easy_getinfo)                                                                            \
	X(easy_pause)                                                                              \
	X(easy_cleanup)                                                                            \
	X(easy_strerror)                                                                           \
	X(multi_init)                                                                              \
	X(multi_setopt)                                                                            \
	X(multi_add_handle)                                                                        \
	X(multi_remove_handle)                                                                     \
	X(multi_socket_action)                                                                     \
	X(multi_assign)                                                                            \
	X(multi_info_read)                                                                         \
	X(multi_cleanup)

struct uar_curl {
#define X(NAME) __typeof__(curl_##NAME) *NAME;
	UAR_CURL_FUNCTIONS(X)
#undef X
};

/* Loads it once a process; any thread. UAR_ENOTIMPL with the loader's reason
 * when it is not installed, which is final; UAR_EFDS, UAR_ENOMEM: out of descriptors or memory,
 * and the next call tries again. */
UAR_MUST_CHECK uar_err uar_curl_load(const struct uar_curl **out, struct uar_error *error);

#endif
