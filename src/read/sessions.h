/* sessions.h - read models of one session: its snapshot, a thread, a window of its history. */
#ifndef UAR_READ_SESSIONS_H
#define UAR_READ_SESSIONS_H

#include "read/read.h"

enum uar_session_part {
	UAR_SESSION_TASKS = 1,
	UAR_SESSION_ARTIFACTS = 2,
	UAR_SESSION_FANOUT = 4,
	UAR_SESSION_PERMISSIONS = 8,
};

/* It stays in place, with its strings, until done. */
struct uar_session_op {
	struct uar_owner owner;
	uar_str session_id; /* the session; or, with thread_id, the one it must belong to */
	uar_str thread_id;  /* set: the read model of that thread alone */
	uar_str turn_id;    /* with environment: that turn alone */
	bool environment;   /* where commands run, instead of the rest */
	unsigned parts;	    /* of enum uar_session_part: what is added to the snapshot */
	bool verify;	    /* compare the stored snapshot with the whole log */
	/* A window of history: so many events up to, not including, the sequence `before`
	 * (0: the newest ones). 0: none is asked for. */
	uint32_t window;
	uint64_t before;
	bool note_window; /* a window that is read becomes a fact: history.window.loaded */
	/* Writes a cursor for a sequence, behind which a stream continues. */
	void (*put_cursor)(struct uar_buf *out, uint64_t incarnation, uint64_t sequence);
	void (*done)(struct uar_session_op *op);
	void *ctx; /* the caller's */
	/* out; `json` belongs to the caller: uar_buf_fini */
	uar_err err; /* ENOTFOUND, EINVALID: the thread is of another session */
	struct uar_error error;
	struct uar_buf json;
	char event_id[UAR_UUID_TEXT + 1]; /* of that fact; empty: there is none */
};
/* Which sessions are listed: children work in sessions of their own. */
enum uar_session_kind {
	UAR_SESSION_MAIN, /* of nobody's child */
	UAR_SESSION_SUBAGENT,
	UAR_SESSION_JOB_ITEM,
	UAR_SESSION_ANY,
	UAR_SESSION_KINDS
};
/* UAR_SESSION_KINDS: it is none of main, subagent, job_item, any. */
enum uar_session_kind uar_session_kind_parse(uar_str name);
/* Sessions, the newest first. It stays in place, with its strings, until done. */
struct uar_sessions_op {
	struct uar_owner owner;
	uar_str status, agent_id, title, cursor; /* empty: any; title: a part of it */
	enum uar_session_kind kind;
	bool live; /* those with a run that is not over */
	uint32_t limit;
	void (*done)(struct uar_sessions_op *op);
	void *ctx; /* the caller's */
	/* out; `json` belongs to the caller: uar_buf_fini */
	uar_err err; /* ECURSOR */
	struct uar_error error;
	struct uar_buf json; /* {"sessions":[...],"next_cursor":...} */
};
UAR_MUST_CHECK uar_err uar_read_sessions(struct uar_reader *rd, struct uar_sessions_op *op);

UAR_MUST_CHECK uar_err uar_read_session(struct uar_reader *rd, struct uar_session_op *op);

#endif
