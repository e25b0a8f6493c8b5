/* sqlite_int.h - the parts of the SQLite store and how they meet.
 *
 * schema.c creates and migrates; conn.c wraps one connection; rows.c turns
 * events into log rows and back; apply.c writes one append; writer.c is the
 * thread that commits; reader.c the threads that read; query.c,
 * query_runs.c and query_rows.c what they ask; put_rows.c writes rows of declared kinds;
 * bytes.c what they ask the port to blobs for; verify.c the offline check. busy.c waits for other
 * programs; known.c and evict.c help apply.c; sweep.c, ../blob/stage.c and ../blob/upload.c are
 * about blobs; dir.c says whose the directory is; wal_vfs.c lets the frames of a commit leave in
 * one write. mark.c and incarnation.c notice older copies. wal_scan.c reads the log that a killed
 * process has left, wal_fit.c says whether SQLite may. */
#ifndef UAR_STORE_SQLITE_SQLITE_INT_H
#define UAR_STORE_SQLITE_SQLITE_INT_H

#include <sqlite3.h>

#include "base/map.h"
#include "store/blob/blob.h"
#include "store/sizes.h"
#include "store/sqlite/mark.h"
#include "store/sqlite/wal_scan.h"
#include "store/store_int.h"

/* The log's index is kept in parts, by position: what is committed now goes to a
 * few pages, however many sessions are at work. In SQL a part is "pos >> 12", as
 * the index has it; a column that it is compared with needs a "+" before it, or
 * its type keeps the planner from the index. */
enum { SQ_PART_BITS = 12 };

enum { SQ_BUSY_MS = 10000 }; /* so long a lock of another program is waited for */
/* The head of the write-ahead log, and a page in it. */
enum { SQ_LOG_HEAD_BYTES = 32, SQ_FRAME_BYTES = 4096 + 24 };

/* Columns of the log, as sq_log_get reads them. */
#define SQ_LOG_COLUMNS "pos, sid, seq, rid, run_seq, n, at, ids, body, prev, sum, lead, tail"
/* The run_sequence that follows a row. */
#define SQ_RUN_END "(run_seq + n - lead - tail)"

/* Event `e` of row `l` is one of its evicted run `r`, so that its blobs may go. The
 * question of a turn is its conversation's, too. */
#define SQ_FORSAKEN                                                                                \
	"(coalesce(r.evicted, 0) <> 0 AND e.key >= l.lead AND e.key < l.n - l.tail"                \
	" AND json_extract(e.value, '$.type') <> 'turn.submitted')"
/* The last part of the log. Columns that name a part are in no sum: what is walked by them is
 * bounded by this one. */
#define SQ_LAST_PART "(SELECT max(pos) >> 12 FROM log)"
/* The row of run `r` knows its last run_sequence: before the run begins, and once it has
 * ended. Many may wait in one session; each would look through all that came after it. */
#define SQ_ROW_KNOWS_LAST "(r.terminal OR r.started = 0)"
/* The last run_sequence of run `r`; of one at work the newest rows of its session are
 * looked at. */
#define SQ_LAST_RUN_SEQ                                                                            \
	"CASE WHEN " SQ_ROW_KNOWS_LAST                                                             \
	" THEN r.last_run_seq ELSE coalesce((WITH RECURSIVE part(k) AS ("                          \
	"SELECT min(last_part, " SQ_LAST_PART ") FROM sessions WHERE sid = r.sid UNION ALL"        \
	" SELECT k - 1 FROM part WHERE k > max(r.first_part, 0)) SELECT last FROM (SELECT "        \
	"(SELECT " SQ_RUN_END " - 1 FROM log"                                                      \
	" WHERE pos >> 12 = k AND sid = r.sid AND seq > r.last_seq AND rid = r.rid"                \
	" ORDER BY seq DESC LIMIT 1) AS last FROM part) WHERE last IS NOT NULL LIMIT 1),"          \
	" r.last_run_seq) END"
/* What a record of a run is made of; query_runs.c reads the columns by number. */
#define SQ_RUN_COLUMNS                                                                             \
	"r.rid, r.oid, r.sid, o.tenant_id, o.workspace_id, o.user_id, r.run_id, s.session_id,"     \
	" r.thread_id, r.turn_id, r.task_id, r.plugin_id, r.entry_id, r.agent_id, r.root_run_id,"  \
	" r.parent_run_id, r.status, r.terminal, r.attempt, r.created, r.updated, r.started,"      \
	" r.finished, r.detail, r.sum, " SQ_LAST_RUN_SEQ ", r.evicted, r.title, r.error_code,"     \
	" r.waits, r.due, r.rank, r.cost, r.input_tokens, r.output_tokens"                         \
	" FROM runs r JOIN sessions s ON s.sid = r.sid JOIN owners o ON o.oid = r.oid"

/* What a row of a declared kind is made of; query_rows.c reads the columns by number. */
#define SQ_ROW_COLUMNS                                                                             \
	"r.id, r.oid, r.kind, r.sid, r.parent, r.tag, r.status, r.open, r.due, r.rank, r.created," \
	" r.updated, r.through, r.body, r.sum, s.session_id, o.tenant_id, o.workspace_id,"         \
	" o.user_id FROM rows r JOIN sessions s ON s.sid = r.sid JOIN owners o ON o.oid = r.oid"

/* Rows of session ?1 from sequence ?2 on, in order; see LOG_OF_SESSION. */
#define SQ_LOG_FROM                                                                                \
	"WITH RECURSIVE part(k) AS (VALUES(max(?3, 0)) UNION ALL SELECT k + 1 FROM part WHERE k <" \
	" min((SELECT last_part FROM sessions WHERE sid = ?1), " SQ_LAST_PART "))"                 \
	" SELECT " SQ_LOG_COLUMNS " FROM part"                                                     \
	" CROSS JOIN log INDEXED BY log_session WHERE pos >> 12 = k AND sid = ?1 AND seq >="       \
	" coalesce((SELECT max(p.seq) FROM log p WHERE p.pos >> 12 = k AND p.sid = ?1"             \
	" AND p.seq <= ?2), 0) AND seq + n > ?2"

/* --- conn.c: one connection and its prepared statements ------------------- */
enum sq_id {
#define S(NAME, SQL) SQ_##NAME,
#include "store/sqlite/statements.def"
#undef S
	SQ_COUNT
};
struct sq_conn {
	sqlite3 *db;
	sqlite3_stmt *st[SQ_COUNT];
	bool damaged; /* SQLite has met pages that cannot be right */
};
enum sq_mode {
	SQ_WRITE,  /* creates the file; the one connection that writes and checkpoints */
	SQ_READ,   /* read only */
	SQ_VERIFY, /* read only, of a URI; leaves nothing behind */
};
UAR_MUST_CHECK uar_err sq_open(struct sq_conn *c, const char *path, const char *vfs,
			       enum sq_mode mode, struct uar_error *error);
/* SQ_VERIFY, of the file with its log (which must not be there beside an empty file: SQLite
 * removes it) or of the file alone, as if it had none. */
UAR_MUST_CHECK uar_err sq_open_still(struct sq_conn *c, const char *path, bool with_log,
				     struct uar_error *error);
struct sq_busy;
/* SQ_WRITE, waiting as busy.c says. */
UAR_MUST_CHECK uar_err sq_open_writer(struct sq_conn *c, const char *path, const char *vfs,
				      struct sq_busy *busy, struct uar_error *error);
void sq_close(struct sq_conn *c); /* half open is fine */
/* What SQLite's last answer means; fills error with its text. */
uar_err sq_fail(struct sq_conn *c, int rc, struct uar_error *error);
UAR_MUST_CHECK uar_err sq_exec(struct sq_conn *c, const char *sql, struct uar_error *error);

/* A value to bind. */
struct sq_val {
	enum { SQ_NULL, SQ_INT, SQ_TEXT } kind;
	int64_t i;
	uar_str s; /* must stay in place until the statement is done */
};
#define SQ_I(V) ((struct sq_val){ SQ_INT, (int64_t)(V), { NULL, 0 } })
#define SQ_T(V) ((struct sq_val){ SQ_TEXT, 0, (V) })
#define SQ_N	((struct sq_val){ SQ_NULL, 0, { NULL, 0 } })
#define SQ_VALS(...)                                                                               \
	(const struct sq_val[]){ __VA_ARGS__ }, ARRAY_LEN(((const struct sq_val[]){ __VA_ARGS__ }))
/* A prepared statement, reset and bound; NULL (error filled) when it cannot be. */
sqlite3_stmt *sq_bind(struct sq_conn *c, enum sq_id id, const struct sq_val *vals, size_t n,
		      struct uar_error *error);
/* Binds and runs a statement that gives no rows. */
UAR_MUST_CHECK uar_err sq_run(struct sq_conn *c, enum sq_id id, const struct sq_val *vals, size_t n,
			      struct uar_error *error);
/* Binds and fetches at most one row: UAR_ENOTFOUND (error untouched) when there
 * is none; *out holds the row until sq_done. */
UAR_MUST_CHECK uar_err sq_first(struct sq_conn *c, enum sq_id id, const struct sq_val *vals,
				size_t n, sqlite3_stmt **out, struct uar_error *error);
void sq_done(sqlite3_stmt *st);		       /* ends the read it holds open; NULL is fine */
uar_str sq_text(sqlite3_stmt *st, int column); /* borrowed until the next step */

/* --- busy.c: the write lock is another program's ------------------------------ */
struct sq_busy {
	const struct uar_log *log;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	bool stop; /* under `lock` */
	/* Of the thread that writes. */
	int64_t since; /* monotonic; this wait began */
	bool told, refused;
};
void sq_busy_init(struct sq_busy *b, const struct uar_log *log);
void sq_busy_fini(struct sq_busy *b);
void sq_busy_watch(struct sq_busy *b, sqlite3 *db);
void sq_busy_over(struct sq_busy *b); /* the lock was had */
void sq_busy_stop(struct sq_busy *b); /* who waits, now or later, is refused. Any thread. */

/* --- schema.c --------------------------------------------------------------- */
/* Brings the file to this version; writes its runtime_id on first use. */
UAR_MUST_CHECK uar_err sq_migrate(struct sq_conn *c, const struct uar_rand *rand,
				  struct uar_error *error);
/* Keeps an index of ended runs, or drops it: it costs every run that ends. */
UAR_MUST_CHECK uar_err sq_index_ended(struct sq_conn *c, bool on, struct uar_error *error);
/* UAR_ENEWER, UAR_ESTATE (older, to be migrated), UAR_ENOTFOUND (no tables yet, error untouched),
 * UAR_ECORRUPT (another application's file), or fine. */
UAR_MUST_CHECK uar_err sq_check_version(struct sq_conn *c, struct uar_error *error);
/* Are the definitions of tables, indexes and views what a new file would get? */
UAR_MUST_CHECK uar_err sq_check_schema(struct sq_conn *c, struct uar_error *error);
UAR_MUST_CHECK uar_err sq_runtime_id(struct sq_conn *c, char out[UAR_UUID_TEXT + 1],
				     struct uar_error *error);

/* --- dir.c: whose the data directory is -------------------------------------- */
/* Opens and locks a data directory, to write it (`create`) or against who does; the latter makes
 * nothing, and where no lock file is there it holds none. -1 where nothing was opened. */
UAR_MUST_CHECK uar_err sq_lock_dir(const char *dir, bool create, int *out_dir_fd, int *out_lock_fd,
				   struct uar_error *error);
char *sq_db_path(const char *dir); /* uar_free; NULL: no memory */

/* The files themselves, for as long as SQLite has them open. */
struct sq_hold {
	int db_fd, log_fd; /* -1: not held */
	int dir_fd;
	int64_t inodes[2]; /* of uar.db and its log, as they were opened; -1: unknown */
	int64_t db_bytes;  /* the size of uar.db, which never shrinks, after the last fold */
};
/* Makes uar.db if it is not there, for its owner alone; UAR_ELOCKED: another process has it. */
UAR_MUST_CHECK uar_err sq_hold_db(struct sq_hold *h, int dir_fd, const char *path,
				  struct uar_error *error);
/* After SQLite has opened it. */
UAR_MUST_CHECK uar_err sq_hold_log(struct sq_hold *h, int dir_fd, struct uar_error *error);
/* UAR_ENOTFOUND: one was removed from its directory, moved or replaced, so that the next start will
 * not find what is written to it. UAR_ECORRUPT: another program has cut one short; the log must
 * have `log_bytes`. */
UAR_MUST_CHECK uar_err sq_hold_check(struct sq_hold *h, int64_t log_bytes, struct uar_error *error);
/* The log was folded into uar.db. */
void sq_hold_grown(struct sq_hold *h);
void sq_hold_end(struct sq_hold *h); /* after SQLite has closed them */

/* --- wal_fit.c: may SQLite open what is there? ------------------------------------- */
/* What speaks against the write-ahead log beside the file of that path, for people; empty:
 * nothing. Only reads. */
UAR_MUST_CHECK uar_err sq_wal_doubt(int dir_fd, const char *path, char out[SQ_WAL_TEXT],
				    struct uar_error *error);
/* UAR_ECORRUPT when anything does. What cannot be read may be behind the end that SQLite sees:
 * it decides whether that matters. */
UAR_MUST_CHECK uar_err sq_wal_refuse(int dir_fd, const char *path, struct uar_error *error);
bool sq_db_empty(int dir_fd); /* or not there */

/* --- rows.c: log rows -------------------------------------------------------- */
/* The ids that all events of a run's row share. */
struct sq_spine {
	uar_str thread, turn, task, attempt;
};
struct sq_log_row {
	int64_t pos, sid, seq;
	int64_t rid, run_seq; /* 0: events without a run */
	int64_t n, at;
	int64_t lead, tail; /* so many of the n, before and after the run's, are not the run's */
	uar_str ids;	    /* JSON of the spine where it is not the run's; else empty */
	uar_str body;	    /* JSON array of n events */
	int64_t prev, sum;  /* as they are stored: what is no sum is noticed */
};
struct sq_piece {	     /* a row before it has its place: what append() encodes */
	size_t body, body_n; /* in the operation's text */
	uint64_t seq, run_seq;
	uint32_t n, lead, tail;
	int64_t at;
	struct sq_spine spine; /* of a run's row */
};
uint32_t sq_log_sum(const struct sq_log_row *r);
/* What the row adds to head.acc, which no missing or doubled row leaves alone. */
uint64_t sq_log_acc(const struct sq_log_row *r);
void sq_log_get(sqlite3_stmt *st, struct sq_log_row *out); /* borrows the columns */
UAR_MUST_CHECK uar_err sq_spine_write(struct uar_buf *out, const struct sq_spine *s);
UAR_MUST_CHECK uar_err sq_spine_read(uar_str json, struct uar_arena *arena, struct sq_spine *out,
				     struct uar_error *error);
/* Events from the `skip`th on, at most `max`; *out_n says how many. Everything
 * is checked: the sum, the JSON, the count. The body must live in the arena. */
struct sq_decode {
	const struct uar_event *base;	 /* ids of session and run */
	const struct uar_event *outside; /* of the session alone */
	size_t skip, max;
	struct uar_arena *arena;
	struct uar_event *out;
};
UAR_MUST_CHECK uar_err sq_log_decode(const struct sq_log_row *r, const struct sq_decode *d,
				     size_t *out_n, struct uar_error *error);
/* Sums of the rows beside the log. */
uint32_t sq_sum_owner(int64_t oid, const struct uar_owner *o);
uint32_t sq_sum_session(int64_t sid, int64_t oid, uar_str session_id, int64_t created);
uint32_t sq_sum_thread(int64_t oid, uar_str thread_id, int64_t sid);
uint32_t sq_sum_key(int64_t oid, const struct uar_key_row *k);
uint32_t sq_sum_run(int64_t rid, int64_t oid, int64_t sid, const struct uar_run_row *r);
/* The sum of the same row once it is evicted; a damaged one stays damaged. */
uint32_t sq_sum_evicted(uint32_t sum);
/* Parts of a sum: whole numbers, and a string with its length. */
uint32_t sq_sum_ints(uint32_t sum, const int64_t *v, size_t n);
uint32_t sq_sum_str(uint32_t sum, uar_str s);

/* --- apply.c: one append inside a transaction --------------------------------- */
/* An append on its way: all that the writer needs, copied and encoded. */
struct sq_store;
struct sq_op {
	struct uar_append *a;
	struct sq_store *store;
	struct sq_op *next_free;
	struct uar_arena arena;
	struct uar_buf text; /* bodies of the pieces, one after the other */
	struct sq_piece *pieces;
	size_t piece_count, event_count;
	struct uar_owner owner;
	uar_str session_id, session_key, run_id, run_key;
	uint64_t after;
	struct sq_span {
		uint64_t run_seq, last_run_seq; /* of its events of the run; 0: there are none */
		uint64_t first_seq, last_seq;	/* sequences of the same events */
	} span;
	int64_t at;
	struct sq_ids {
		uar_str *at;
		size_t n;
	} threads, evict; /* of its thread.started events; runs to evict */
	bool has_run, has_key;
	struct uar_run_row run;
	struct uar_key_row key;
	struct sq_declared {
		struct uar_row *at;
		size_t n;
	} rows; /* of declared kinds */
};
/* Encodes a checked append. */
UAR_MUST_CHECK uar_err sq_op_fill(struct sq_op *op, const struct uar_append *a);

struct sq_head {
	int64_t pos, log_rows, items;
	uint64_t acc;
};
struct sq_cache { /* remembered sessions or runs, least recently used first */
	struct uar_map map;
	struct uar_list lru;
	size_t count;
};
/* known.c. Both kinds of entry begin with their list node, so one cache serves them. */
void sq_cache_init(struct sq_cache *c);
void sq_cache_clear(struct sq_cache *c);
void *sq_cache_get(struct sq_cache *c, uar_str key); /* and it is the last used; NULL: none */
UAR_MUST_CHECK uar_err sq_cache_put(struct sq_cache *c, uar_str key, struct uar_list *node);
void sq_cache_drop(struct sq_cache *c, uar_str key); /* frees the entry, if there is one */

/* The last id of its kind, of those that UAR makes. n = 0: there is none. */
struct sq_top {
	size_t n;
	char text[UAR_LIMIT_ID_BYTES];
};
struct sq_owner_last { /* the owner that was looked up last */
	int64_t oid;   /* 0: nobody */
	struct uar_buf key;
	struct sq_top thread; /* of its threads */
};
bool sq_is_new(const struct sq_top *top, uar_str id); /* surely; false: it has to be looked up */
void sq_top_add(struct sq_top *top, uar_str id);
/* Reads it with the statement `id`; oid 0: which has no parameter. */
UAR_MUST_CHECK uar_err sq_top_load(struct sq_conn *c, enum sq_id id, int64_t oid,
				   struct sq_top *out, struct uar_error *error);
int64_t sq_owner_known(const struct sq_owner_last *last, const struct sq_op *op); /* 0: not he */
UAR_MUST_CHECK uar_err sq_owner_load(struct sq_conn *c, const struct sq_op *op, int64_t oid,
				     struct sq_owner_last *last, struct uar_error *error);

struct sq_apply {
	struct sq_conn *c;
	struct sq_head head;
	int64_t next_oid, next_sid, next_rid;
	struct sq_cache sessions, runs; /* of runs that go on, and their sessions */
	struct sq_top session, run;
	struct sq_owner_last owner;
	struct uar_buf ids;
	uint32_t last_sum; /* of the row that was written last */
	bool stale;	   /* rolled back: what it remembers never happened */
};
void sq_apply_init(struct sq_apply *ap, struct sq_conn *c);
void sq_apply_fini(struct sq_apply *ap);
/* Forgets what it remembers and reads the counters again. */
UAR_MUST_CHECK uar_err sq_apply_reload(struct sq_apply *ap, struct uar_error *error);
/* An append that is refused (guard, key) gets op->a->err and leaves no trace;
 * any other trouble is returned and the transaction must be rolled back. */
UAR_MUST_CHECK uar_err sq_apply_append(struct sq_apply *ap, struct sq_op *op,
				       struct uar_error *error);
UAR_MUST_CHECK uar_err sq_apply_head(struct sq_apply *ap, struct uar_error *error);

/* --- put_rows.c: rows of declared kinds ------------------------------------------ */
/* As sq_apply_append: looks first, then writes. sid 0: the session is new. */
UAR_MUST_CHECK uar_err sq_rows_check(struct sq_apply *ap, struct sq_op *op, int64_t oid,
				     int64_t sid, struct uar_error *error);
UAR_MUST_CHECK uar_err sq_rows_write(struct sq_apply *ap, const struct sq_op *op, int64_t oid,
				     int64_t sid, struct uar_error *error);
/* The sum of a row; its kind is given as the word that is stored. */
uint32_t sq_sum_row(int64_t oid, int64_t sid, uar_str kind, const struct uar_row *r);
/* A row of SQ_ROW_COLUMNS, borrowed; UAR_ECORRUPT when its sum or its kind is wrong. */
UAR_MUST_CHECK uar_err sq_row_get(sqlite3_stmt *st, struct uar_row *out, struct uar_error *error);

/* --- evict.c: runs that are no longer retained --------------------------------- */
/* As sq_apply_append: looks first, then writes. */
UAR_MUST_CHECK uar_err sq_evict_check(struct sq_apply *ap, struct sq_op *op, int64_t oid,
				      struct uar_error *error);
UAR_MUST_CHECK uar_err sq_evict_write(struct sq_apply *ap, const struct sq_op *op, int64_t oid,
				      struct uar_error *error);

/* --- incarnation.c: which history is this? ---------------------------------------- */
/* uar.mark: the writer's, after the start. */
struct sq_mark_file {
	int fd;		      /* -1: there is none */
	struct sq_mark acked; /* what it should say */
	int64_t written;      /* position that it says */
	int64_t at;	      /* monotonic: it was written then */
};
/* Sets the store's incarnation; opens uar.mark. After sq_hold_db and sq_migrate. */
UAR_MUST_CHECK uar_err sq_incarnation_open(struct sq_store *s, struct uar_error *error);
/* One system call if it is behind, else none; false: it could not be written. */
bool sq_mark_flush(struct sq_mark_file *f);
/* Of the log's row at pos; -1: there is none. */
UAR_MUST_CHECK uar_err sq_log_sum_at(struct sq_conn *c, int64_t pos, int64_t *out,
				     struct uar_error *error);

/* --- writer.c: the store thread -------------------------------------------------- */
struct sq_writer {
	struct sq_conn conn;
	struct sq_busy busy;
	struct sq_hold hold;
	struct sq_apply apply;
	struct uar_done *done;
	pthread_t thread;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct uar_list queue; /* of uar_append.task.node */
	size_t queued, queued_bytes;
	size_t taken; /* appends of this commit */
	bool running, idle, stop;
	bool open; /* the turn that woke it goes on: more may come */
	enum uar_store_health health;
	struct uar_store_stats stats;
	int frames, folded; /* pages in the write-ahead log, and in the file already */
	int committed;	    /* pages in the log after this COMMIT; 0: it wrote none */
	int fold_at;	    /* so many that wait are folded in */
	struct sq_retry {
		int left;      /* times that a log which is too long is tried to be shortened */
		int64_t pause; /* us; grows each time */
		int64_t at;    /* monotonic; not before */
	} retry;
	struct sq_mark_file mark;
	struct sq_broken {
		struct uar_task task; /* runs on the loop once */
		struct uar_error error;
		bool report; /* a commit failed: the task follows the answers of its batch */
	} broken;
};
/* So large the file of a log that is folded in at `fold_at` pages may stay: half as much
 * again. One that readers kept from beginning anew is larger, and shortened. */
static inline int64_t sq_log_kept(int fold_at)
{
	return (int64_t)fold_at * SQ_FRAME_BYTES * 3 / 2;
}
UAR_MUST_CHECK uar_err sq_writer_start(struct sq_writer *w, struct uar_error *error);
/* Commits what is queued, if nobody has to be waited for; not started is fine. */
void sq_writer_stop(struct sq_writer *w);
/* *out_asleep: the writer sleeps and has to be woken once the turn is over. */
UAR_MUST_CHECK uar_err sq_writer_add(struct sq_writer *w, struct sq_op *op, bool *out_asleep);
void sq_writer_wake(struct sq_writer *w);
/* A sync failed somewhere: nothing is acknowledged from now on. Any thread. */
void sq_writer_break(struct sq_writer *w, const struct uar_error *error);
/* sqlite.c: call when an append was refused for want of space. */
void sq_note_full(struct sq_store *s);

/* --- reader.c: the reader pool ------------------------------------------------------ */
struct sq_store;
struct sq_readers;
/* A list of runs, prepared: of all sets of filters a client may send, those used last. */
struct sq_list {
	sqlite3_stmt *st; /* NULL: the place is free */
	unsigned set;	  /* which filters */
	uint64_t used;	  /* when, as sq_reader.lists_used counts */
};
struct sq_reader {
	struct sq_readers *pool;
	struct sq_conn conn;
	struct sq_list lists[UAR_LIMIT_LIST_STATEMENTS];
	uint64_t lists_used;
	uint64_t attached; /* search.c: generation + 1 of the index that is attached; 0: none */
	pthread_t thread;
	bool started;
};
struct sq_readers {
	struct sq_store *store;
	struct sq_reader *reader;
	unsigned count;
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct uar_list queue; /* of uar_task.node */
	size_t queued;
	size_t undelivered; /* running, or finished and not yet taken by the loop */
	uint64_t reads;
	bool stop;
	bool blobs_full; /* the last blob met a full disk: under `lock` */
	/* Where a run or a session was last read up to: under `lock`. */
	struct sq_place {
		int64_t key;	   /* the run's rid, or -sid for a session */
		uint64_t nth, seq; /* this event of it has that sequence */
		int64_t part;	   /* of the log */
	} places[UAR_LIMIT_READ_PLACES];
};
UAR_MUST_CHECK uar_err sq_readers_start(struct sq_readers *p, struct sq_store *s, unsigned count,
					struct uar_error *error);
void sq_readers_stop(struct sq_readers *p); /* not started is fine */
/* Runs the operation on a reader, then its task's fn on the loop. */
UAR_MUST_CHECK uar_err sq_readers_add(struct sq_readers *p, struct uar_task *task);
/* Call on the loop, once for each operation that it takes. */
void sq_readers_delivered(struct sq_readers *p);

/* What an operation asks for, told by its task's fn (sqlite.c). */
void sq_reader_run(struct sq_reader *rd, struct uar_task *task);

/* --- query.c ----------------------------------------------------------------------- */
/* UAR_ENOTFOUND: nobody, or nothing of theirs, is known by that name. */
UAR_MUST_CHECK uar_err sq_find_owner(struct sq_conn *c, const struct uar_owner *o, int64_t *out,
				     struct uar_error *error);
UAR_MUST_CHECK uar_err sq_find_id(struct sq_conn *c, enum sq_id what, int64_t oid, uar_str id,
				  int64_t *out, struct uar_error *error);
/* The end of every query: an error gets its text. Returns e. */
uar_err sq_settle(uar_err e, struct uar_error *error);
void sq_query_read(struct sq_reader *rd, struct uar_read *r);
void sq_query_thread(struct sq_reader *rd, struct uar_thread_query *q);
void sq_query_key(struct sq_reader *rd, struct uar_key_query *q);

/* --- query_runs.c ------------------------------------------------------------------ */
void sq_query_runs(struct sq_reader *rd, struct uar_runs_query *q);
/* Keeps the rows of the statement, one page of them. */
UAR_MUST_CHECK uar_err sq_list_runs(struct sq_reader *rd, struct uar_runs_query *q,
				    sqlite3_stmt *st);
/* find_runs.c: a list that is sorted, bounded, counted or searched. */
UAR_MUST_CHECK uar_err sq_find_runs(struct sq_reader *rd, struct uar_runs_query *q, int64_t oid);
/* list_sessions.c */
void sq_list_sessions(struct sq_reader *rd, struct uar_session_list *q);
/* query_rows.c */
void sq_query_rows(struct sq_reader *rd, struct uar_rows_query *q);
void sq_query_sessions(struct sq_reader *rd, struct uar_sessions_query *q);
/* The statement of a list, prepared once for its set of filters by `write`. */
UAR_MUST_CHECK uar_err sq_list_stmt(struct sq_reader *rd, unsigned set,
				    void (*write)(struct uar_buf *out, unsigned set),
				    sqlite3_stmt **out, struct uar_error *error);
/* Who hears of runs that live, and where a damaged row is reported. */
struct sq_live {
	void (*fn)(void *ctx, const struct uar_run_row *);
	void *ctx;
	const struct uar_log *log;
};
UAR_MUST_CHECK uar_err sq_query_live(struct sq_conn *c, const struct sq_live *to,
				     struct uar_error *error);

UAR_MUST_CHECK uar_err sq_query_beyond(struct sq_conn *c, uint64_t keep,
				       void (*fn)(void *ctx, const struct uar_owner *), void *ctx,
				       struct uar_error *error);

/* A row of SQ_RUN_COLUMNS, borrowed, and whether its sum is right. */
void sq_run_get(sqlite3_stmt *st, struct uar_run_row *out);
UAR_MUST_CHECK uar_err sq_run_check(sqlite3_stmt *st, const struct uar_run_row *r,
				    struct uar_error *error);

/* --- sweep.c: blobs that nobody needs any more ---------------------------------------- */
struct sq_sweep {
	struct uar_map wanted, doubtful; /* hashes that events refer to */
	int64_t pos, last, evicted;
	size_t at;
	bool begun, skipped;
};
void sq_sweep_init(struct sq_sweep *w);
void sq_sweep_step(struct sq_reader *rd, struct uar_sweep *op);
/* Nothing more comes of it in this life; good: nothing is left to do. */
void sq_sweep_end(struct sq_store *s, bool good);
void sq_sweep_fini(struct sq_sweep *w);

/* --- bytes.c: the port to blobs --------------------------------------------------------- */
void sq_blob_put(struct sq_reader *rd, struct uar_blob_put *b);
void sq_blob_get(struct sq_reader *rd, struct uar_blob_get *b);
void sq_upload_step(struct sq_reader *rd, struct uar_upload_op *op);

/* The directory of a run goes. */
struct sq_unstage {
	struct uar_task task;
	struct uar_list node;
	char name[65];
	void (*done)(struct sq_unstage *u);
	uar_err err; /* none: what is left is left to the next start */
	struct uar_error error;
	void *internal;
};
void sq_stage_clear(struct sq_reader *rd, struct sq_unstage *u);

/* --- sqlite.c ---------------------------------------------------------------------- */
struct sq_calls {
	void (*drained)(void *ctx);
	void *drained_ctx;
	void (*broken)(void *ctx, const struct uar_error *error);
	void *broken_ctx;
};
/* --- search.c: the index of titles and messages -------------------------------------- */
struct sq_search {
	pthread_mutex_t lock; /* of all of it */
	struct sq_conn conn;  /* its db alone; NULL: not open yet */
	sqlite3_stmt *add, *message, *answer;
	char *path;
	int64_t pos;	     /* of the log: all up to it is indexed */
	uint64_t generation; /* of the file; a reader that has another attaches it anew */
};
void sq_search_init(struct sq_search *x);
void sq_search_fini(struct sq_search *x);
void sq_index(struct sq_reader *rd, struct uar_index *op);
/* Brings the index up to date, for a while (*partial: not to the end), and attaches it to the
 * reader as "search". Whatever it returns, sq_search_end follows. */
UAR_MUST_CHECK uar_err sq_search_begin(struct sq_reader *rd, bool *partial,
				       struct uar_error *error);
void sq_search_end(struct sq_reader *rd);
/* The words as a MATCH expression; .p NULL: no memory. */
uar_str sq_search_match(struct uar_arena *arena, uar_str words);

struct sq_store {
	struct uar_store base;
	struct sq_search search;
	struct uar_sched *sched;
	const struct uar_log *log;
	struct uar_rand rand;
	int dir_fd, lock_fd;
	struct uar_blobs *blobs;
	char *path; /* of uar.db */
	char *vfs;
	struct uar_done *done;
	struct sq_writer writer;
	struct sq_readers readers;
	_Atomic int64_t
		limited_us;    /* when a write met a limit although the disk has space; 0: never */
	struct sq_sweep sweep; /* its reader's alone */
	struct uar_list clearing; /* of struct sq_unstage; the loop's */
	struct uar_arena scratch; /* of checks, on the loop */
	struct sq_op *free_ops;
	size_t free_count;
	/* The loop's alone. */
	size_t pending;
	bool draining;
	struct uar_task wake_task; /* wakes the writer once this turn's appends are queued */
	struct uar_task drained_task;
	struct sq_calls call;
};

#endif
