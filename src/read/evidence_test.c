/* evidence_test.c - a document is made twice and is the same; nobody else finds it. */
#include "read/evidence.h"

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
	char session_id[UAR_LIMIT_ID_BYTES + 1], evidence_id[UAR_LIMIT_ID_BYTES + 1];
	bool done;
	uar_err err;
};

static void controlled(struct uar_control_op *op)
{
	struct world *w = op->ctx;

	w->done = true;
	CHECK_INT(op->err, UAR_OK);
	snprintf(w->session_id, sizeof w->session_id, "%.*s", UAR_FMT(op->session_id));
}

static void exported(struct uar_export_op *op)
{
	struct world *w = op->ctx;
	const char *at = op->result.p ? strstr(op->result.p, "evidence-") : NULL;

	w->done = true;
	w->err = op->err;
	if (at)
		snprintf(w->evidence_id, sizeof w->evidence_id, "%.41s", at);
}

static void export_session(struct world *w, const struct uar_owner *who, uar_err want)
{
	struct uar_export_op op = { .owner = *who,
				    .kind = UAR_EVIDENCE_REPLAY,
				    .session_id = uar_str_c(w->session_id),
				    .done = exported,
				    .ctx = w };

	w->done = false;
	CHECK_INT(uar_read_export(w->parts.reader, &op), UAR_OK);
	uar_pump_until(&w->pump, &w->done);
	CHECK_INT(w->err, want);
}

static void evidence_read(struct uar_evidence_op *op)
{
	((struct world *)op->ctx)->done = true;
}

static struct uar_buf read_document(struct world *w, const struct uar_owner *who, uar_err want)
{
	struct uar_evidence_op op = { .owner = *who,
				      .evidence_id = uar_str_c(w->evidence_id),
				      .done = evidence_read,
				      .ctx = w };

	w->done = false;
	CHECK_INT(uar_read_evidence(w->parts.reader, &op), UAR_OK);
	uar_pump_until(&w->pump, &w->done);
	CHECK_INT(op.err, want);
	return op.json;
}

TEST(a_document_is_its_owners_and_the_same_twice, "CTL-31 CTL-32 ID-12")
{
	const struct uar_control in = { .kind = UAR_CTL_CREATE_TASK,
					.owner = owner,
					.create_task = { .objective = UAR_STR("the work") } };
	struct uar_control_op op = { .in = &in, .done = controlled };
	struct uar_evidence_report report;
	struct uar_error error = { 0 };
	struct world w = { .done = false };
	struct uar_buf first, again, other;

	uar_stage_open(&w.pump, &w.store, &w.model);
	w.rt = uar_stage_rise(&w.pump, (struct uar_stage_options){ .parts = &w.parts,
								   .store = w.store,
								   .scripted = w.model });
	op.ctx = &w;
	CHECK_INT(uar_runtime_control(w.rt, &op), UAR_OK);
	uar_pump_until(&w.pump, &w.done);
	export_session(&w, &owner, UAR_OK);
	first = read_document(&w, &owner, UAR_OK);
	export_session(&w, &owner, UAR_OK);
	again = read_document(&w, &owner, UAR_OK);
	CHECK(first.n && uar_str_eq(uar_buf_str(&first), uar_buf_str(&again)));
	CHECK_INT(uar_evidence_verify(uar_buf_str(&first), &report, &error), UAR_OK);
	CHECK(report.replayed && !strcmp(report.evidence_id, w.evidence_id));
	export_session(&w, &stranger, UAR_ENOTFOUND);
	other = read_document(&w, &stranger, UAR_ENOTFOUND);
	CHECK_INT(other.n, 0);
	/* Whatever byte of an event is another one is seen. */
	for (size_t i = 120; i < 600; i += 7) {
		char was = first.p[i];

		first.p[i] = was == 'x' ? 'y' : 'x';
		CHECK(uar_evidence_verify(uar_buf_str(&first), &report, &error) != UAR_OK);
		first.p[i] = was;
	}
	uar_buf_fini(&first);
	uar_buf_fini(&again);
	uar_buf_fini(&other);
	uar_stage_close(&w.pump, w.store, w.rt, w.model);
}
