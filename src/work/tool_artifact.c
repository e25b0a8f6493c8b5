/* tool_artifact.c - artifact.put: what a model gives to keep becomes an artifact of its run.
 *
 * Long content is put aside first. The artifact and the end of the call are one append: a call
 * that is repeated after a restart has made nothing before. */
#include "agent/blocks.h"
#include "base/sha256.h"
#include "event/a2ui.h"
#include "event/sizes.h"
#include "work/spill.h"
#include "work/tool_loop_int.h"

/* What the artifact is called and which version of it this is. */
struct naming {
	char id[UAR_LIMIT_ID_BYTES + 1];
	int64_t version;
};

static uar_err name_artifact(const struct place *p, const struct uar_json *args, struct naming *out,
			     struct uar_error *error)
{
	const struct live_run *r = p->loop->o.run;
	uar_str given = uar_json_text(args, "artifact_id");

	if (!given.n && uar_run_rare(rt_state(r))->artifacts.count >= UAR_LIMIT_RUN_ARTIFACTS)
		return uar_error_set(error, UAR_ETOOBIG, "a run makes at most %d artifacts",
				     UAR_LIMIT_RUN_ARTIFACTS);
	if (!given.n) {
		uar_uuid_next(rt_ids(rt_engine(r)), out->id);
		out->version = 1;
		return UAR_OK;
	}
	out->version = uar_run_artifact_version(rt_state(r), given) + 1;
	if (out->version == 1)
		return uar_error_set(error, UAR_ENOTFOUND,
				     "this run made no artifact with that artifact_id: leave it "
				     "out to make a new one");
	snprintf(out->id, sizeof out->id, "%.*s", UAR_FMT(given));
	return UAR_OK;
}

static uar_err put_metadata(struct uar_jw *w, const struct uar_json *args, struct uar_error *error)
{
	const struct uar_json *metadata = uar_json_get(args, UAR_STR("metadata"));
	struct uar_buf line = uar_buf_make(UAR_LIMIT_ARTIFACT_METADATA);

	if (!metadata)
		return UAR_OK;
	uar_json_write(&line, metadata);
	if (line.err)
		(void)uar_error_set(error, UAR_ETOOBIG, "metadata has at most %d bytes",
				    UAR_LIMIT_ARTIFACT_METADATA);
	else
		uar_jw_raw(w, "metadata", uar_buf_str(&line));
	uar_buf_fini(&line);
	return error->code;
}

/* An interface is shown from the log: its event has all of it. */
static uar_err put_interface(struct uar_jw *w, uar_str content, struct uar_error *error)
{
	struct uar_buf line = uar_buf_make(UAR_LIMIT_INTERFACE_BYTES);
	const struct uar_json *messages = NULL;
	struct uar_arena arena;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(content, NULL, &arena, &messages, NULL);
	if (!e)
		uar_json_write(&line, messages);
	if (!e && line.err == UAR_ETOOBIG)
		e = uar_error_set(error, UAR_ETOOBIG, "an interface has at most %d bytes",
				  UAR_LIMIT_INTERFACE_BYTES);
	if (!e)
		e = line.err;
	if (!e)
		uar_jw_raw(w, "interface", uar_buf_str(&line));
	uar_buf_fini(&line);
	uar_arena_fini(&arena);
	return e;
}

static uar_err describe(const struct uar_json *args, const struct naming *n, uar_str sha256,
			struct uar_buf *out, struct uar_error *error)
{
	uar_str content = uar_json_text(args, "content"),
		type = uar_json_text(args, "artifact_type");
	uar_str shown = rt_spill_beginning(content);
	struct uar_jw w = uar_jw_begin(out);
	uar_err e, end;

	uar_jw_obj(&w, NULL);
	uar_jw_cstr(&w, "artifact_id", n->id);
	uar_jw_int(&w, "version", n->version);
	uar_jw_str(&w, "type", type);
	uar_jw_str(&w, "title", uar_json_text(args, "title"));
	uar_jw_str(&w, "language", uar_json_text(args, "language"));
	uar_jw_cstr(&w, "mime", uar_artifact_mime(type, uar_json_text(args, "language")));
	uar_jw_int(&w, "bytes", (int64_t)content.n);
	uar_jw_str(&w, "sha256", sha256);
	uar_jw_str(&w, "preview", shown);
	uar_jw_bool(&w, "is_blob", shown.n < content.n);
	e = put_metadata(&w, args, error);
	if (!e && shown.n < content.n && uar_str_is(type, UAR_A2UI_ARTIFACT))
		e = put_interface(&w, content, error);
	uar_jw_close(&w);
	end = uar_jw_end(&w);
	return e ? e : end;
}

static void refuse(struct place *p, uar_err e, struct uar_error *error)
{
	error->code = e;
	rt_place_send_failed(p, e == UAR_ENOMEM ? UAR_STR("execution") : UAR_STR("schema_invalid"),
			     uar_str_c(uar_error_text(error)), e == UAR_ENOMEM);
}

/* --- interfaces that the model makes -------------------------------------------------------- */

static bool is_interface(const struct uar_json *args)
{
	return uar_str_is(uar_json_text(args, "artifact_type"), UAR_A2UI_ARTIFACT);
}

/* Interfaces of the run that were refused before, as the log has them. */
static unsigned count_refused(const struct place *p, struct uar_arena *arena)
{
	const struct rounds *s = p->loop->o.rounds;
	unsigned n = 0;

	for (size_t i = 0; i < s->count; i++)
		for (size_t k = 0; k < s->at[i].call_count; k++) {
			const struct round_call *c = &s->at[i].calls[k];
			const struct uar_json *args = NULL;

			if (!c->failed || !uar_str_eq(c->name, p->call->name))
				continue;
			n += !uar_json_parse(c->args, NULL, arena, &args, NULL) &&
			     is_interface(args);
		}
	return n;
}

/* What would not be shown is not kept: the model is told why and may try again, a few times. */
static uar_err check_interface(const struct place *p, const struct uar_json *args,
			       struct uar_error *error)
{
	const struct uar_json *messages = NULL;
	struct uar_error found = { 0 };
	struct uar_arena arena;
	unsigned before;
	uar_err e;

	uar_arena_init(&arena, 0);
	e = uar_a2ui_check_text(uar_json_text(args, "content"), &arena, &messages, &found);
	before = e ? count_refused(p, &arena) : 0;
	uar_arena_fini(&arena);
	if (!e || e == UAR_ENOMEM)
		return e;
	if (before < UAR_LIMIT_INTERFACE_REPAIRS)
		return uar_error_set(
			error, UAR_ESCHEMA,
			"VALIDATION_FAILED at %s: %s. Correct it and call again; %u of "
			"%d corrections are left.",
			found.where, uar_error_text(&found),
			(unsigned)UAR_LIMIT_INTERFACE_REPAIRS - before,
			UAR_LIMIT_INTERFACE_REPAIRS);
	return uar_error_set(error, UAR_ESCHEMA,
			     "VALIDATION_FAILED at %s: %s. No corrections are left: answer with "
			     "text.",
			     found.where, uar_error_text(&found));
}

/* sha256: of content that was put aside; empty: the event holds it. */
static void finish(struct place *p, const struct uar_json *args, uar_str sha256)
{
	uar_str content = uar_json_text(args, "content");
	struct uar_buf json = uar_buf_make(UAR_LIMIT_EVENT_BYTES);
	struct uar_buf output = uar_buf_make(UAR_LIMIT_TOOL_INLINE);
	struct uar_error error = { 0 };
	char own[UAR_SHA256_TEXT + 1];
	struct naming n;
	uar_err e = is_interface(args) ? check_interface(p, args, &error) : UAR_OK;

	if (!e)
		e = name_artifact(p, args, &n, &error);
	if (!sha256.n) {
		uar_sha256_hex(content, own);
		sha256 = uar_str_c(own);
	}
	if (!e)
		e = describe(args, &n, sha256, &json, &error);
	if (!e) {
		struct uar_tool_over over = { .ok = true, .artifact = uar_buf_str(&json) };

		uar_buf_printf(&output, "{\"artifact_id\":\"%s\",\"version\":%lld,\"bytes\":%zu}",
			       n.id, (long long)n.version, content.n);
		over.output = uar_buf_str(&output);
		over.output_bytes = (int64_t)over.output.n;
		rt_place_send_over(p, &over);
	} else {
		refuse(p, e, &error);
	}
	uar_buf_fini(&json);
	uar_buf_fini(&output);
}

/* The arguments were checked when the call was planned. */
static void with_args(struct place *p, uar_err stored, uar_str sha256)
{
	const struct uar_json *args = NULL;
	struct uar_error error = { 0 };
	struct uar_arena arena;
	uar_err e = stored;

	uar_arena_init(&arena, 0);
	if (!e)
		e = uar_json_parse(p->input, NULL, &arena, &args, &error);
	if (e)
		refuse(p, e, &error);
	else
		finish(p, args, sha256);
	uar_arena_fini(&arena);
}

static void content_stored(void *ctx, uar_err e, uar_str sha256)
{
	struct place *p = ctx;

	p->aside = NULL;
	with_args(p, e, sha256);
}

void rt_place_make_artifact(struct place *p)
{
	const struct uar_json *args = NULL;
	struct uar_arena arena;
	uar_err e;
	uar_str content;
	bool is_long;

	uar_arena_init(&arena, 0);
	e = uar_json_parse(p->input, NULL, &arena, &args, NULL);
	content = uar_json_text(args, "content");
	is_long = !e && rt_spill_beginning(content).n < content.n;
	if (is_long)
		e = rt_aside_begin(rt_engine(p->loop->o.run), content, content_stored, p,
				   &p->aside);
	uar_arena_fini(&arena);
	if (e || !is_long)
		with_args(p, e, UAR_STR_NONE);
}
