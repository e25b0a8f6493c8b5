/* uar.h - a runtime inside your program.
 *
 *	struct uar *u;
 *	char *answer, *problem;
 *	const struct uar_setting settings[] = { { "data", "state" }, { NULL, NULL } };
 *
 *	struct uar_options options = { .size = sizeof options, .settings = settings };
 *
 *	if (uar_open(&options, &u, &problem))
 *		...                            // problem says why
 *	status = uar_control(u, "create_task", "{\"objective\":\"sort the mail\"}", &answer);
 *	uar_release(answer);
 *	uar_close(u);
 *
 * Link with -luar. The library does what `uar serve` does, with the same settings, files and
 * guarantees, but opens a port only if you ask for one. Commands are those of
 * POST /api/control/COMMAND (docs/control.md), and so are their answers: text is UTF-8, JSON
 * travels as text. A status of 2xx means that the facts are on stable storage.
 *
 * A runtime works on threads of its own, in which all signals are blocked. Calls may come
 * from any thread, several at once; each waits for its answer. Do not use a runtime in a child
 * after fork(). A data directory belongs to one process at a time. */
#ifndef UAR_H
#define UAR_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UAR_ABI_MAJOR 1
#define UAR_ABI_MINOR 0
#if defined(__GNUC__)
#define UAR_EXPORT __attribute__((visibility("default")))
#else
#define UAR_EXPORT
#endif

struct uar; /* a runtime */

/* A setting of docs/configuration.md, as a flag of `uar serve` would give it. */
struct uar_setting {
	const char *name;  /* "data", "log_level", ...; NULL ends the list */
	const char *value; /* "true" and "false" for switches */
};

struct uar_options {
	size_t size; /* sizeof(struct uar_options); another size is refused */
	/* Ends with a name that is NULL; NULL: none. What is not given comes from UAR_...
	 * variables, the configuration file and the defaults, as for `uar serve`. Only a given
	 * `listen` opens a port. */
	const struct uar_setting *settings;
	/* The program uar, under which plugins, agents and tools that are programs of their own
	 * are started; copied. NULL: the one beside the library, in ../bin from there, or in PATH.
	 */
	const char *program;
};

/* UAR_ABI_MAJOR * 1000 + UAR_ABI_MINOR of the library that is loaded. */
UAR_EXPORT unsigned uar_abi(void);

/* Opens the data directory and continues what was under way. 0, or the exit status of
 * `uar serve`; then *out_problem says why, a line for each reason (NULL: no memory). */
UAR_EXPORT int uar_open(const struct uar_options *options, struct uar **out, char **out_problem);

/* Gives a command: `json` is its input, an object (NULL: an empty one). Returns the HTTP status
 * that the command has: 200 with {"ok":true,"result":...,"event_ids":[...]} in *out_json, else a
 * problem {"status","code","detail","where"}. Without memory the status is 503 and *out_json is
 * NULL. The runtime must be open until the call returns. */
UAR_EXPORT int uar_control(struct uar *u, const char *command, const char *json, char **out_json);

/* Events of a session behind the number `after` (0: from the first on), oldest first:
 * {"events":[...],"last":NUMBER}, with an empty list if none came for `wait_ms` milliseconds.
 * `last` is the `after` of the next call. Status and problems as of uar_control. */
UAR_EXPORT int uar_events(struct uar *u, const char *session_id, uint64_t after, int wait_ms,
			  char **out_json);

/* Frees a text that a call returned; NULL is fine. */
UAR_EXPORT void uar_release(char *text);

/* Stops the workers, finishes commits and closes; what runs goes on after the next uar_open.
 * Nobody may be inside another call. NULL is fine. */
UAR_EXPORT void uar_close(struct uar *u);

#ifdef __cplusplus
}
#endif

#endif
