/* schema.c - the tables, and how a file of an older version gets them.
 *
 * Row i of `steps` brings a file from version i to i + 1; user_version holds
 * the number, application_id tells our files from others'. All steps that are
 * missing run in one transaction: an interrupted migration never happened.
 * docs/store.md describes the tables for people. */
#include "store/sqlite/sqlite_int.h"

#include "base/crc32c.h"

enum { APPLICATION_ID = 0x55415230 }; /* "UAR0" */

static const char *const steps[] = {
	"CREATE TABLE meta(key TEXT PRIMARY KEY, value TEXT NOT NULL) WITHOUT ROWID;"
	/* One row, set by every commit: what the log must add up to. */
	"CREATE TABLE head(one INTEGER PRIMARY KEY CHECK(one = 1), pos INTEGER NOT NULL,"
	" log_rows INTEGER NOT NULL, acc INTEGER NOT NULL, items INTEGER NOT NULL);"
	"INSERT INTO head VALUES(1, 0, 0, 0, 0);"
	"CREATE TABLE owners(oid INTEGER PRIMARY KEY, tenant_id TEXT NOT NULL,"
	" workspace_id TEXT NOT NULL, user_id TEXT NOT NULL, sum INTEGER NOT NULL);"
	"CREATE UNIQUE INDEX owners_id ON owners(tenant_id, workspace_id, user_id);"
	"CREATE TABLE sessions(sid INTEGER PRIMARY KEY, oid INTEGER NOT NULL,"
	" session_id TEXT NOT NULL, created INTEGER NOT NULL, sum INTEGER NOT NULL,"
	/* The parts of the log's index in which its first and its last row are. */
	" first_part INTEGER NOT NULL, last_part INTEGER NOT NULL);"
	"CREATE UNIQUE INDEX sessions_id ON sessions(session_id, oid);"
	"CREATE TABLE threads(oid INTEGER NOT NULL, thread_id TEXT NOT NULL, sid INTEGER NOT NULL,"
	" sum INTEGER NOT NULL, PRIMARY KEY(oid, thread_id)) WITHOUT ROWID;"
	"CREATE TABLE runs(rid INTEGER PRIMARY KEY, oid INTEGER NOT NULL, sid INTEGER NOT NULL,"
	" run_id TEXT NOT NULL, thread_id TEXT NOT NULL, turn_id TEXT NOT NULL,"
	" task_id TEXT NOT NULL, plugin_id TEXT NOT NULL, entry_id TEXT NOT NULL,"
	" agent_id TEXT NOT NULL, root_run_id TEXT NOT NULL, parent_run_id TEXT NOT NULL,"
	" status TEXT NOT NULL, terminal INTEGER NOT NULL, attempt INTEGER NOT NULL,"
	" created INTEGER NOT NULL, updated INTEGER NOT NULL, started INTEGER NOT NULL,"
	" finished INTEGER NOT NULL, detail TEXT NOT NULL, sum INTEGER NOT NULL,"
	/* Where its events lie in the session's log; the last two as of this row. */
	" first_seq INTEGER NOT NULL, last_seq INTEGER NOT NULL, last_run_seq INTEGER NOT NULL,"
	" first_part INTEGER NOT NULL);"
	"CREATE UNIQUE INDEX runs_id ON runs(run_id, oid);"
	"CREATE INDEX runs_owner ON runs(oid, rid);"
	"CREATE INDEX runs_session ON runs(sid, rid);"
	"CREATE INDEX runs_task ON runs(task_id, rid);"
	"CREATE INDEX runs_root ON runs(root_run_id, rid) WHERE root_run_id <> run_id;"
	"CREATE INDEX runs_live ON runs(rid) WHERE terminal = 0;"
	"CREATE TABLE keys(oid INTEGER NOT NULL, scope TEXT NOT NULL, key TEXT NOT NULL,"
	" fingerprint TEXT NOT NULL, run_id TEXT NOT NULL, sum INTEGER NOT NULL,"
	" PRIMARY KEY(oid, scope, key)) WITHOUT ROWID;"
	"CREATE TABLE log(pos INTEGER PRIMARY KEY, sid INTEGER NOT NULL, seq INTEGER NOT NULL,"
	" rid INTEGER, run_seq INTEGER, n INTEGER NOT NULL, at INTEGER NOT NULL, ids TEXT,"
	" body TEXT NOT NULL, prev INTEGER NOT NULL, sum INTEGER NOT NULL);"
	"CREATE UNIQUE INDEX log_session ON log(pos >> 12, sid, seq);",
	/* 2: runs that are no longer retained; lists walk over the others alone. */
	"ALTER TABLE runs ADD COLUMN evicted INTEGER NOT NULL DEFAULT 0;"
	"DROP INDEX runs_owner;"
	"CREATE INDEX runs_owner ON runs(oid, rid) WHERE evicted = 0;"
	"CREATE INDEX runs_evicted ON runs(rid) WHERE evicted <> 0;",
	/* 3: events leave out the time of their row, which only the view must know, and so
	 * many of a row's events, before and after its run's, are not the run's. */
	("ALTER TABLE log ADD COLUMN lead INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE log ADD COLUMN tail INTEGER NOT NULL DEFAULT 0;"),
	/* 4: the row of a run that has not begun knows its last event, too. */
	("UPDATE runs SET last_seq = l.seq, last_run_seq = l.run_seq FROM (SELECT g.rid,"
	 " max(g.seq + n - tail - 1) AS seq, max(" SQ_RUN_END " - 1) AS run_seq"
	 " FROM log g JOIN runs q ON q.rid = g.rid WHERE q.terminal = 0 AND q.started = 0"
	 " GROUP BY g.rid) l WHERE l.rid = runs.rid;"),
	/* 5: rows of declared kinds; open runs are found by their session. */
	("CREATE TABLE rows(id TEXT NOT NULL, oid INTEGER NOT NULL, kind TEXT NOT NULL,"
	 " sid INTEGER NOT NULL, parent TEXT NOT NULL, tag TEXT NOT NULL, status TEXT NOT NULL,"
	 " open INTEGER NOT NULL, due INTEGER NOT NULL, rank INTEGER NOT NULL,"
	 " created INTEGER NOT NULL, updated INTEGER NOT NULL, through INTEGER NOT NULL,"
	 " body TEXT NOT NULL, sum INTEGER NOT NULL, PRIMARY KEY(oid, kind, id)) WITHOUT ROWID;"
	 "CREATE INDEX rows_newest ON rows(oid, kind, updated, id);"
	 "CREATE INDEX rows_status ON rows(oid, kind, status, updated, id);"
	 "CREATE INDEX rows_parent ON rows(oid, kind, parent, rank, id) WHERE parent <> '';"
	 "CREATE INDEX rows_tag ON rows(oid, kind, tag, updated, id) WHERE tag <> '';"
	 "CREATE INDEX rows_session ON rows(sid, kind, id);"
	 "CREATE INDEX rows_open ON rows(sid) WHERE open = 1;"
	 "CREATE INDEX rows_due ON rows(due, sid) WHERE due <> 0;"
	 "DROP INDEX runs_live;"
	 "CREATE INDEX runs_open ON runs(sid, rid) WHERE terminal = 0;"
	 /* What lists of runs show, filter and sort by. */
	 "ALTER TABLE runs ADD COLUMN title TEXT NOT NULL DEFAULT '';"
	 "ALTER TABLE runs ADD COLUMN error_code TEXT NOT NULL DEFAULT '';"
	 "ALTER TABLE runs ADD COLUMN waits TEXT NOT NULL DEFAULT '';"
	 "ALTER TABLE runs ADD COLUMN due INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE runs ADD COLUMN rank INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE runs ADD COLUMN cost INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE runs ADD COLUMN input_tokens INTEGER NOT NULL DEFAULT 0;"
	 "ALTER TABLE runs ADD COLUMN output_tokens INTEGER NOT NULL DEFAULT 0;"
	 "CREATE INDEX runs_due ON runs(due, sid) WHERE due <> 0;"
	 "CREATE INDEX runs_waits ON runs(oid, rid) WHERE waits <> '';"),
	/* 6: a start reads of runs that wait what the index holds, not their rows. */
	("DROP INDEX runs_open;"
	 "CREATE INDEX runs_open ON runs(sid, rid, oid, waits, run_id, thread_id, status,"
	 " terminal) WHERE terminal = 0;"),
};

/* For people: one row an event, with what rows leave out. It holds nothing itself, so
 * every migration makes it anew. */
static const char view[] =
	"DROP VIEW IF EXISTS events;"
	"CREATE VIEW events AS SELECT l.seq + e.key AS sequence,"
	" iif(r.rid, l.run_seq + e.key - l.lead, NULL) AS run_sequence,"
	" json_extract(e.value, '$.type') AS type,"
	" coalesce(json_extract(e.value, '$.timestamp'), strftime('%Y-%m-%dT%H:%M:%S',"
	" l.at / 1000000, 'unixepoch') || printf('.%06dZ', l.at % 1000000)) AS timestamp,"
	" s.session_id, r.run_id,"
	" coalesce(json_extract(e.value, '$.thread_id'), iif(l.ids IS NULL OR r.rid IS NULL, "
	"r.thread_id,"
	" json_extract(l.ids, '$.thread_id'))) AS thread_id,"
	" coalesce(json_extract(e.value, '$.turn_id'), iif(l.ids IS NULL OR r.rid IS NULL, "
	"r.turn_id,"
	" json_extract(l.ids, '$.turn_id'))) AS turn_id,"
	" coalesce(json_extract(e.value, '$.task_id'), iif(l.ids IS NULL OR r.rid IS NULL, "
	"r.task_id,"
	" json_extract(l.ids, '$.task_id'))) AS task_id,"
	" json_extract(e.value, '$.payload') AS payload, json_extract(e.value, '$.refs') AS refs,"
	" json_extract(e.value, '$.event_id') AS event_id, o.tenant_id, o.workspace_id, o.user_id,"
	" l.pos, e.value AS event"
	" FROM log l JOIN sessions s ON s.sid = l.sid JOIN owners o ON o.oid = s.oid"
	" JOIN json_each(l.body) e LEFT JOIN runs r ON r.rid = l.rid AND r.sid = l.sid"
	" AND e.key >= l.lead AND e.key < l.n - l.tail;";

static uar_err pragma_int(struct sq_conn *c, const char *sql, int64_t *out, struct uar_error *error)
{
	sqlite3_stmt *st = NULL;
	int rc = sqlite3_prepare_v2(c->db, sql, -1, &st, NULL);

	if (!rc)
		rc = sqlite3_step(st);
	if (rc != SQLITE_ROW) {
		uar_err e = sq_fail(c, rc, error);

		sqlite3_finalize(st);
		return e;
	}
	*out = sqlite3_column_int64(st, 0);
	sqlite3_finalize(st);
	return UAR_OK;
}

static uar_err version_of(struct sq_conn *c, int64_t *out, struct uar_error *error)
{
	int64_t app = 0, version = 0, tables = 0;
	uar_err e = pragma_int(c, "PRAGMA application_id", &app, error);

	if (!e)
		e = pragma_int(c, "PRAGMA user_version", &version, error);
	if (!e)
		e = pragma_int(c, "SELECT count(*) FROM sqlite_schema", &tables, error);
	if (e)
		return e;
	if (app == APPLICATION_ID ? !version : tables || version)
		return uar_error_set(error, UAR_ECORRUPT, "uar.db is not a database of UAR");
	if (version > (int64_t)ARRAY_LEN(steps))
		return uar_error_set(error, UAR_ENEWER,
				     "uar.db has version %lld, this program knows %zu",
				     (long long)version, ARRAY_LEN(steps));
	*out = version;
	return UAR_OK;
}

uar_err sq_check_version(struct sq_conn *c, struct uar_error *error)
{
	int64_t version = 0;
	uar_err e = version_of(c, &version, error);

	if (e || version == (int64_t)ARRAY_LEN(steps))
		return e;
	if (version == 0)
		return UAR_ENOTFOUND;
	return uar_error_set(error, UAR_ESTATE,
			     "uar.db has version %lld; a server that starts brings it to %zu",
			     (long long)version, ARRAY_LEN(steps));
}

static uint32_t meta_sum(uar_str runtime_id, uar_str created)
{
	return uar_crc32c(uar_crc32c(0, runtime_id.p, runtime_id.n), created.p, created.n);
}

static uar_err add_meta(struct sq_conn *c, const struct uar_rand *rand, struct uar_error *error)
{
	struct uar_uuid uuid;
	char id[UAR_UUID_TEXT + 1], now[UAR_TIME_TEXT + 1], sql[320];

	uar_uuid_init(&uuid, &uar_clock_system, rand);
	uar_uuid_next(&uuid, id);
	uar_time_format(uar_clock_wall(&uar_clock_system), now);
	snprintf(sql, sizeof sql,
		 "INSERT INTO meta(key, value) VALUES('runtime_id', '%s'), ('created', '%s'),"
		 " ('sum', '%u')",
		 id, now, meta_sum(uar_str_c(id), uar_str_c(now)));
	return sq_exec(c, sql, error);
}

static uar_err run_steps(struct sq_conn *c, int64_t version, const struct uar_rand *rand,
			 struct uar_error *error)
{
	char sql[128];
	uar_err e = UAR_OK;

	for (size_t i = (size_t)version; i < ARRAY_LEN(steps) && !e; i++)
		e = sq_exec(c, steps[i], error);
	if (!e)
		e = sq_exec(c, view, error);
	if (!e && version == 0)
		e = add_meta(c, rand, error);
	snprintf(sql, sizeof sql, "PRAGMA application_id=%d; PRAGMA user_version=%zu",
		 APPLICATION_ID, ARRAY_LEN(steps));
	return e ? e : sq_exec(c, sql, error);
}

uar_err sq_migrate(struct sq_conn *c, const struct uar_rand *rand, struct uar_error *error)
{
	int64_t version = 0;
	uar_err e = version_of(c, &version, error);

	if (e || version == (int64_t)ARRAY_LEN(steps))
		return e;
	e = sq_exec(c, "BEGIN IMMEDIATE", error);
	if (e)
		return e;
	e = run_steps(c, version, rand, error);
	if (!e)
		e = sq_exec(c, "COMMIT", error);
	if (e && !sqlite3_get_autocommit(c->db)) {
		struct uar_error ignored;

		if (sq_exec(c, "ROLLBACK", &ignored))
			return e;
	}
	return e;
}

uar_err sq_index_ended(struct sq_conn *c, bool on, struct uar_error *error)
{
	return sq_exec(c,
		       on ? "CREATE INDEX IF NOT EXISTS runs_ended ON runs(oid, finished, rid)"
			    " WHERE terminal = 1 AND evicted = 0"
			  : "DROP INDEX IF EXISTS runs_ended",
		       error);
}

static uar_err take_id(sqlite3_stmt *st, char out[UAR_UUID_TEXT + 1], struct uar_error *error)
{
	uar_str id = sq_text(st, 0), created = sq_text(st, 1), sum = sq_text(st, 2);
	char want[16];

	snprintf(want, sizeof want, "%u", meta_sum(id, created));
	if (!uar_uuid_valid(id) || !uar_str_is(sum, want))
		return uar_error_set(error, UAR_ECORRUPT, "meta: the runtime_id is damaged");
	memcpy(out, id.p, UAR_UUID_TEXT);
	out[UAR_UUID_TEXT] = 0;
	return UAR_OK;
}

uar_err sq_runtime_id(struct sq_conn *c, char out[UAR_UUID_TEXT + 1], struct uar_error *error)
{
	sqlite3_stmt *st = NULL;
	uar_err e;
	int rc = sqlite3_prepare_v2(
		c->db,
		"SELECT a.value, b.value, c.value FROM meta a, meta b, meta c WHERE"
		" a.key = 'runtime_id' AND b.key = 'created' AND c.key = 'sum'",
		-1, &st, NULL);

	if (!rc)
		rc = sqlite3_step(st);
	if (rc == SQLITE_ROW)
		e = take_id(st, out, error);
	else if (rc == SQLITE_DONE)
		e = uar_error_set(error, UAR_ECORRUPT, "meta: no runtime_id");
	else
		e = sq_fail(c, rc, error);
	sqlite3_finalize(st);
	return e;
}

/* --- for verify.c ------------------------------------------------------------- */
static uar_err schema_text(struct sq_conn *c, struct uar_buf *out, struct uar_error *error)
{
	sqlite3_stmt *st = NULL;
	uar_err e = UAR_OK;
	int rc = sqlite3_prepare_v2(
		c->db, "SELECT type, name, tbl_name, sql FROM sqlite_schema ORDER BY name", -1, &st,
		NULL);

	while (!rc && (rc = sqlite3_step(st)) == SQLITE_ROW) {
		for (int i = 0; i < 4; i++)
			uar_buf_printf(out, "%.*s\n", UAR_FMT(sq_text(st, i)));
		rc = SQLITE_OK;
	}
	if (rc != SQLITE_DONE)
		e = sq_fail(c, rc, error);
	sqlite3_finalize(st);
	return e ? e : out->err;
}

uar_err sq_check_schema(struct sq_conn *c, struct uar_error *error)
{
	struct uar_buf have = uar_buf_make(1 << 20), want = uar_buf_make(1 << 20);
	struct sq_conn fresh;
	int64_t ended = 0;
	uar_err e = sq_open(&fresh, ":memory:", NULL, SQ_WRITE, error);

	if (!e)
		e = sq_migrate(&fresh, &uar_rand_system, error);
	if (!e)
		e = pragma_int(c, "SELECT count(*) FROM sqlite_schema WHERE name = 'runs_ended'",
			       &ended, error);
	if (!e)
		e = sq_index_ended(&fresh, ended != 0, error);
	if (!e)
		e = schema_text(&fresh, &want, error);
	if (!e)
		e = schema_text(c, &have, error);
	if (!e && !uar_str_eq(uar_buf_str(&have), uar_buf_str(&want)))
		e = uar_error_set(error, UAR_ECORRUPT, "the tables are not those of this version");
	sq_close(&fresh);
	uar_buf_fini(&have);
	uar_buf_fini(&want);
	return e;
}
