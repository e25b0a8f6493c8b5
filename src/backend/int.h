/* int.h - what the files of libagent_api share. Not for other rooms: they use
 * include/agent_api/agent_api.h like everybody else. */
#ifndef UAR_BACKEND_INT_H
#define UAR_BACKEND_INT_H

#include <pthread.h>
#include <stdio.h>
#include <stdatomic.h>

#include "agent_api/agent_api.h"
#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "json/json.h"
#include "json/jw.h"

#ifndef AGENT_API_CODEX
#define AGENT_API_CODEX 1
#endif
#ifndef AGENT_API_CLAUDE_CODE
#define AGENT_API_CLAUDE_CODE 1
#endif
#ifndef AGENT_API_ACP
#define AGENT_API_ACP 1
#endif

#define UAB_STR(LITERAL) ((uaa_str){ "" LITERAL, sizeof(LITERAL) - 1 })
#define UAB_NONE	 ((uaa_str){ NULL, 0 })

static inline uaa_str uab_pub(uar_str s)
{
	return (uaa_str){ s.p, s.n };
}

static inline uar_str uab_str(uaa_str s)
{
	return uar_str_n(s.ptr, s.ptr ? s.len : 0); /* without ptr, len is ignored */
}

/* --- kind.c --- */
/* A structure that the caller fills, of whatever version: `given` starts with its size, which is
 * `least` in the oldest version. What an older caller does not know becomes 0; what a newer one
 * says beyond `size` must be 0, as nobody here would heed it. False: refused. */
bool uab_take_struct(void *own, size_t size, const void *given, size_t least);

/* --- text.c --- */

/* Whole code points of at most `max` bytes, then the suffix, as the envelope wants it. */
void uab_truncate(uar_str s, size_t max, struct uar_buf *out);
/* How many bytes of `s` the next piece of at most `max` bytes takes; > 0 unless s is empty. */
size_t uab_split(uar_str s, size_t max);
/* Ill-formed UTF-8 becomes U+FFFD. */
void uab_lossy(uar_str s, struct uar_buf *out);
uar_str uab_trim(uar_str s); /* Unicode white space at both ends; s is valid UTF-8 */
/* Lone surrogate escapes in JSON text become \ufffd, in place. */
void uab_fix_surrogates(char *p, size_t n);
/* Compact JSON of a document. false: not JSON. */
bool uab_compact(uar_str json, struct uar_arena *arena, struct uar_buf *out);
bool uab_is_kind(uar_str s);
bool uab_is_key(uar_str s); /* an extension key or capability id */
bool uab_is_uuid(uar_str s);
bool uab_has_nul(uar_str s);

/* --- error.c --- */
/* UAA_E_BACKEND; NULL when out of memory. */
uaa_error *uab_error_caused(uaa_cause cause, uaa_str message);
/* What is known besides about a run that failed. */
struct uab_details {
	bool has_status;
	int wait_status;
	uar_str words, withheld; /* as of uaa_error_words and uaa_error_withheld */
};
uaa_error *uab_error_detailed(uaa_cause cause, uaa_str message, const struct uab_details *d);
/* The wait status that the error carries; false: none, or no error. */
bool uab_error_status(const uaa_error *error, int *out);
uaa_status uab_fail(uaa_error **out, uaa_status code, uar_str kind, uar_str what);
uaa_status uab_invalid(uaa_error **out, const char *message);
/* UAA_E_ARG: the call itself is wrong; the message names the argument. */
uaa_status uab_wrong(uaa_error **out, const char *message);

/* --- request.c --- */
struct uab_pair {
	uaa_str name, value; /* owned, NUL-terminated */
};
struct uab_pairs {
	struct uab_pair *at;
	size_t n, cap;
};
/* Replaces the value of an equal name; keeps bytewise order. */
uaa_status uab_pairs_set(struct uab_pairs *m, uaa_str name, uaa_str value);
uaa_str uab_pairs_get(const struct uab_pairs *m, uar_str name);
void uab_pairs_fini(struct uab_pairs *m);
uaa_status uab_copy(uaa_str s, uaa_str *out); /* absent stays absent */
bool uab_env_name_ok(uar_str name);

struct uaa_request {
	uaa_str prompt, working_dir;
	bool has_timeout;
	int64_t timeout_ms;
	struct uab_pairs env, extensions;
};
/* Prompt, then the keys against the set: the first two steps of every start. */
uaa_status uab_request_gate(const uaa_request *r, uar_str kind, const uaa_caps *caps,
			    uaa_error **error);

/* --- kind.c --- */
struct uaa_kind {
	atomic_int refs;
	uaa_str id;
};
/* Adds a NULL-terminated list of ids. */
uaa_status uab_caps_add_all(uaa_caps *caps, const char *const *ids);

/* --- event.c --- */
struct uaa_event {
	atomic_int refs;
	uaa_event_kind kind;
	uaa_str agent; /* a copy: a shared counter would travel between processors */
	uaa_str channel, text, message, data;
	size_t size; /* bytes this event holds */
	struct uaa_event *next;
	char bytes[];
};
/* One event of exactly these fields; NULL when out of memory. */
struct uaa_event *uab_event_new(const uaa_kind *agent, const uaa_event_spec *s);
/* Applies bounds and rules; hands the event(s) to `put` in order. `trusted`:
 * its data is compact JSON already, its text valid UTF-8. False: out of memory or `put` refused. */
typedef bool uab_event_put(void *ctx, struct uaa_event *ev); /* takes ev */
bool uab_event_make(const uaa_kind *agent, const uaa_event_spec *s, bool trusted,
		    uab_event_put *put, void *ctx);
/* Bounded compact copy of completion or event data; absent stays absent. */
bool uab_bound_data(uaa_str json, bool trusted, struct uar_buf *out, uaa_str *result);

/* --- queue.c --- */
struct uab_queue {
	struct uaa_event *head, *tail; /* oldest first */
	struct uaa_event *last;	       /* forced in after everything else */
	size_t bytes, max_bytes;
	int fd; /* spill file, -1 until needed */
	uint64_t rd, wr, freed, max_spill;
	uint64_t spilled;	   /* events in the file or its buffers */
	struct uar_buf rbuf, wbuf; /* read ahead, written behind */
	size_t rpos;		   /* consumed part of rbuf */
	bool broken;		   /* the file could not be read back */
};
void uab_queue_init(struct uab_queue *q, uint64_t max_bytes, uint64_t max_spill);
void uab_queue_fini(struct uab_queue *q);
void uab_queue_clear(struct uab_queue *q);
/* Takes ev on success. False: full (the caller waits or forces). */
bool uab_queue_put(struct uab_queue *q, struct uaa_event *ev);
void uab_queue_force(struct uab_queue *q, struct uaa_event *ev); /* after all others */
struct uaa_event *uab_queue_get(struct uab_queue *q, const uaa_kind *agent);
/* Everything that is in memory, oldest first; empty when the oldest is not. */
struct uaa_event *uab_queue_take(struct uab_queue *q, size_t *out_n);
bool uab_queue_empty(const struct uab_queue *q);

/* --- run.c --- */
struct uab_run_hooks {
	void (*cancel)(void *ctx);
	void (*closed)(void *ctx);
	uaa_status (*respond)(void *ctx, uar_str id, uaa_decision d);
	uaa_status (*approval)(void *ctx, uar_str id, char **out, size_t *len);
};
struct uaa_producer {
	uaa_run *run;
};
struct uaa_cancel {
	uaa_run *run; /* the handle is the run itself, under another type */
};
/* Many events at a time between the two threads of a run. */
struct uab_batch {
	/* Taken over by the one reader in one go, so that it need not lock for each. */
	struct uaa_event *taken;
	atomic_size_t n;
	atomic_bool drop; /* cancelled or closed: they are not delivered */
	bool corked;	  /* the producer wakes nobody until it is done with its part */
	unsigned unheard; /* events since the last wake */
};
struct uaa_run {
	atomic_int refs;    /* everybody */
	atomic_int handles; /* consumers: at zero the run is dropped */
	uaa_kind *kind;
	pthread_mutex_t mu;
	pthread_cond_t cv; /* anything below changed */
	struct uab_queue q;
	int waiters;
	bool cancelled, closed, ended, eos, done, resolved;
	bool termination_failed;
	uaa_completion *completion; /* what the producer said */
	uaa_error *error;
	struct uab_batch batch;
	int64_t give_up_us; /* a blocked emit stops waiting here; 0 never */
	int fd;
	bool fd_up;
	struct uab_run_hooks hooks;
	void *ctx;
	struct uaa_producer producer;
	struct uaa_cancel cancel;
};
struct uab_run_spec {
	uaa_str kind;
	struct uab_run_hooks hooks;
	void *ctx;
	uint64_t queue_bytes, spill_bytes;
};
uaa_status uab_run_new(const struct uab_run_spec *spec, uaa_run **out, uaa_producer **out_p);
/* Like uaa_producer_emit for data this library wrote itself; `force`: a last
 * word that must not wait. */
uaa_status uab_emit(uaa_producer *p, const uaa_event_spec *s, bool force);
/* Between these two the reader is woken now and then only. */
void uab_run_cork(uaa_run *run);
void uab_run_uncork(uaa_run *run);
bool uab_run_cancelled(uaa_run *run);
/* Takes the error; NULL: out of memory. `termination`: not even a cancel hides it. */
void uab_producer_fail(uaa_producer *p, uaa_error *error, bool termination);
void uab_cancel(uaa_run *run);
uaa_cancel *uab_cancel_new(uaa_run *run);

struct uaa_completion {
	atomic_int refs;
	int wait_status;
	uaa_str final_text, data;
	struct uar_buf text_buf, data_buf;
};

int64_t uab_now_us(void);

#endif
