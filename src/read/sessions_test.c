/* sessions_test.c - views from snapshots: one that disagrees with the log is found by a whole
 * fold, replaced and reported. */
#include "read/sessions.h"

#include "base/sha256.h"
#include "core/view.h"
#include "engine/control.h"
#include "stage.h"
#include "test.h"

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };
static const struct uar_owner stranger = { UAR_STR("t"), UAR_STR("w"), UAR_STR("v") };

struct world {
	struct uar_pump pump;
	struct uar_store *store;
	struct uar_model *model;
	struct uar_runtime *rt;
	struct uar_stage_parts parts;
	char session_id[UAR_LIMIT_ID_BYTES + 1];
	bool done;
	uar_err err;
};

static void controlled(struct uar_control_op *op)
{
	struct world *w = op->ctx;

	w->done = true;
	w->err = op->err;
	snprintf(w->session_id, sizeof w->session_id, "%.*s", UAR_FMT(op->session_id));
}

static void command(struct world *w, const struct uar_control *in)
{
	struct uar_control_op op = { .in = in, .done = controlled, .ctx = w };

	w->done = false;
	CHECK_INT(uar_runtime_control(w->rt, &op), UAR_OK);
	uar_pump_until(&w->pump, &w->done);
	CHECK_INT(w->err, UAR_OK);
}

static void open_world(struct world *w)
{
	const struct uar_control in = { .kind = UAR_CTL_CREATE_TASK,
					.owner = owner,
					.create_task = { .objective = UAR_STR("the work") } };

	*w = (struct world){ .done = false };
	uar_stage_open(&w->pump, &w->store, &w->model);
	w->rt = uar_stage_rise(&w->pump, (struct uar_stage_options){ .parts = &w->parts,
								     .store = w->store,
								     .scripted = w->model });
	command(w, &in);
}

static void put_cursor(struct uar_buf *out, uint64_t incarnation, uint64_t sequence)
{
	uar_buf_printf(out, "%llu-%llu", (unsigned long long)incarnation,
		       (unsigned long long)sequence);
}

static void session_read(struct uar_session_op *op)
{
	((struct world *)op->ctx)->done = true;
}

/* The answer; the caller frees it. */
static struct uar_buf read_session(struct world *w, const struct uar_owner *who, bool verify,
				   uar_err want)
{
	struct uar_session_op op = { .owner = *who,
				     .session_id = uar_str_c(w->session_id),
				     .parts = UAR_SESSION_TASKS,
				     .verify = verify,
				     .put_cursor = put_cursor,
				     .done = session_read,
				     .ctx = w };

	w->done = false;
	CHECK_INT(uar_read_session(w->parts.reader, &op), UAR_OK);
	uar_pump_until(&w->pump, &w->done);
	CHECK_INT(op.err, want);
	while (uar_pump_turn(&w->pump)) /* what it has begun in the background */
		;
	return op.json;
}

static bool has(const struct uar_buf *b, const char *text)
{
	return b->p && strstr(b->p, text);
}

/* A snapshot that is well formed and wrong. */
static void store_wrong(struct world *w)
{
	char model[512];
	char sha256[UAR_SHA256_TEXT + 1];
	struct uar_control in = { .kind = UAR_CTL_RECORD_SNAPSHOT, .owner = owner };

	snprintf(model, sizeof model,
		 "{\"version\":%d,\"through\":2,\"shell\":{\"omitted\":0,\"items\":"
		 "[{\"key\":\"%s\",\"sequence\":2,\"title\":\"a lie\"}]}}",
		 UAR_SVIEW_VERSION, w->session_id);
	uar_sha256_hex(uar_str_c(model), sha256);
	in.record_snapshot.session_id = uar_str_c(w->session_id);
	in.record_snapshot.through = 2;
	in.record_snapshot.sha256 = uar_str_c(sha256);
	in.record_snapshot.model = uar_str_c(model);
	command(w, &in);
}

TEST(a_snapshot_that_disagrees_is_repaired, "SNAP-17 EVT-125")
{
	struct world w;
	struct uar_buf right, wrong, verified, after;

	open_world(&w);
	right = read_session(&w, &owner, false, UAR_OK);
	CHECK(has(&right, "the work"));
	store_wrong(&w);
	wrong = read_session(&w, &owner, false, UAR_OK);
	CHECK(has(&wrong, "a lie") && !has(&wrong, "the work")); /* it is trusted until looked at */
	verified = read_session(&w, &owner, true, UAR_OK);
	CHECK(has(&verified, "the work") && !has(&verified, "a lie"));
	after = read_session(&w, &owner, false, UAR_OK);
	CHECK(has(&after, "the work") && !has(&after, "a lie"));
	CHECK(has(&after, "\"through_sequence\":5")); /* created, accepted, stored, repaired */
	uar_buf_fini(&right);
	uar_buf_fini(&wrong);
	uar_buf_fini(&verified);
	uar_buf_fini(&after);
	uar_stage_close(&w.pump, w.store, w.rt, w.model);
}

TEST(a_session_of_somebody_else_is_not_found, "")
{
	struct world w;
	struct uar_buf b;

	open_world(&w);
	b = read_session(&w, &stranger, false, UAR_ENOTFOUND);
	CHECK_INT(b.n, 0);
	uar_buf_fini(&b);
	uar_stage_close(&w.pump, w.store, w.rt, w.model);
}
