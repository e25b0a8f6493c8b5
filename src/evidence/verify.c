/* verify.c - a document is checked against itself: links, digests, read models. */
#include "evidence/evidence_int.h"

#include "evidence/limits.h"

struct checking {
	struct uar_arena arena, scratch;
	const struct uar_json *root, *content;
	uar_str scope_text;
	enum uar_evidence_kind kind;
	struct ev_chain chain;
	struct uar_sview view;
	struct uar_evidence_report *report;
	struct uar_error *error;
};

static uar_err wrong(struct checking *k, const char *text)
{
	return uar_error_set(k->error, UAR_ECORRUPT, "%s", text);
}

static uar_err read_head(struct checking *k)
{
	uar_str kind;
	size_t i = 0;

	k->content = uar_json_get(k->root, UAR_STR("content"));
	kind = uar_json_text(k->content, "kind");
	if (!uar_str_is(uar_json_text(k->root, "format"), UAR_EVIDENCE_FORMAT))
		return wrong(k, "it is no document of the format " UAR_EVIDENCE_FORMAT);
	while (i <= UAR_EVIDENCE_REVIEW &&
	       !uar_str_is(kind, uar_evidence_kind_name((enum uar_evidence_kind)i)))
		i++;
	if (i > UAR_EVIDENCE_REVIEW)
		return wrong(k, "content.kind is none of evidence, replay, review");
	k->kind = (enum uar_evidence_kind)i;
	snprintf(k->report->kind, sizeof k->report->kind, "%.*s", UAR_FMT(kind));
	return UAR_OK;
}

static uar_err read_scope(struct checking *k)
{
	const struct uar_json *j = uar_json_get(k->content, UAR_STR("scope"));
	const struct uar_evidence_scope s = { .session_id = uar_json_text(j, "session_id"),
					      .thread_id = uar_json_text(j, "thread_id"),
					      .turn_id = uar_json_text(j, "turn_id"),
					      .task_id = uar_json_text(j, "task_id") };
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVIDENCE_SECTION);
	struct uar_jw w = uar_jw_begin(&b);
	uar_err e;

	uar_evidence_write_scope(&w, NULL, &s);
	e = uar_jw_end(&w);
	if (!e) {
		k->scope_text = uar_arena_str(&k->arena, uar_buf_str(&b));
		e = k->scope_text.p ? ev_chain_begin(&k->chain, k->scope_text) : UAR_ENOMEM;
	}
	uar_buf_fini(&b);
	return e;
}

static uar_err differs(struct checking *k, const struct uar_json *event)
{
	return uar_error_set(k->error, UAR_ECORRUPT,
			     "event %llu of the timeline differs: sequence %lld, %.*s, %.*s",
			     (unsigned long long)k->report->events,
			     (long long)uar_json_int(uar_json_get(event, UAR_STR("sequence")), 0),
			     UAR_FMT(uar_str_utf8_prefix(uar_json_text(event, "type"), 64)),
			     UAR_FMT(uar_str_utf8_prefix(uar_json_text(event, "event_id"), 64)));
}

static uar_err fold(struct checking *k, const struct uar_json *event)
{
	uar_err e = ev_view_fold(&k->view, event, &k->scratch);

	uar_arena_reset(&k->scratch);
	if (e && e != UAR_ENOMEM)
		return differs(k, event);
	return e;
}

static uar_err check_line(struct checking *k, const struct uar_json *line)
{
	const struct uar_json *event = uar_json_get(line, UAR_STR("event"));
	uar_str link = uar_json_text(line, "link");
	uar_err e;

	k->report->events++;
	if (k->kind == UAR_EVIDENCE_REVIEW) {
		if (link.n != UAR_SHA256_TEXT || !uar_str_is_hex(link))
			return differs(k, line);
		snprintf(k->chain.link, sizeof k->chain.link, "%.*s", UAR_FMT(link));
		return UAR_OK;
	}
	if (!event || event->kind != UAR_JSON_OBJECT)
		return differs(k, line);
	e = ev_chain_add(&k->chain, event);
	if (!e && !uar_str_is(link, k->chain.link))
		return differs(k, event);
	return e ? e : fold(k, event);
}

static uar_err check_timeline(struct checking *k)
{
	const struct uar_json *timeline = uar_json_get(k->root, UAR_STR("timeline"));
	uar_err e = UAR_OK;

	if (!timeline || timeline->kind != UAR_JSON_ARRAY || !timeline->count)
		return wrong(k, "it has no timeline");
	if (timeline->count > UAR_LIMIT_EVIDENCE_EVENTS)
		return uar_error_set(k->error, UAR_ETOOBIG, "its timeline has more than %d events",
				     UAR_LIMIT_EVIDENCE_EVENTS);
	for (const struct uar_json *l = uar_json_first(timeline); l && !e; l = l->next)
		e = check_line(k, l);
	if (!e && !uar_str_is(uar_json_text(k->root, "chain_head"), k->chain.link))
		return wrong(k, "chain_head is not the last link: events are missing at the end");
	return e;
}

static uar_err check_digests(struct checking *k)
{
	struct uar_evidence_report *r = k->report;
	const struct uar_json *facts = uar_json_get(k->content, UAR_STR("facts"));
	uar_err e = ev_content_digest(k->chain.link, k->content, r->sha256);

	if (e)
		return e;
	ev_evidence_id(k->kind, k->scope_text, r->sha256, r->evidence_id);
	if (uar_json_int(uar_json_get(facts, UAR_STR("events")), -1) != (int64_t)r->events)
		return wrong(k, "content.facts.events is not the number of events");
	if (!uar_str_is(uar_json_text(k->root, "sha256"), r->sha256))
		return wrong(k, "the content differs: sha256 is of another one");
	if (!uar_str_is(uar_json_text(k->root, "evidence_id"), r->evidence_id))
		return wrong(k, "evidence_id is that of another scope or content");
	return UAR_OK;
}

/* The events once more, as a reader of the log would fold them. */
static uar_err check_read_models(struct checking *k)
{
	const struct uar_json *expected = uar_json_get(k->content, UAR_STR("expected"));
	const struct uar_json *said = uar_json_get(expected, UAR_STR("thread_read_models"));
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EVIDENCE_BYTES);
	char sha256[UAR_SHA256_TEXT + 1];
	uar_err e;

	if (k->kind != UAR_EVIDENCE_REPLAY ||
	    uar_json_int(uar_json_get(expected, UAR_STR("view_version")), 0) != UAR_SVIEW_VERSION)
		return UAR_OK; /* another version folds otherwise: the digests have to do */
	e = uar_sview_write(&k->view, &b);
	uar_sha256_hex(uar_buf_str(&b), sha256);
	if (!e && !uar_str_is(uar_json_text(expected, "view_sha256"), sha256))
		e = wrong(k, "the events fold into another view than expected.view_sha256");
	uar_buf_clear(&b);
	if (!e)
		e = ev_threads_write(&k->view, &b);
	if (!e && (!said || !uar_str_eq(said->text, uar_buf_str(&b)))) {
		const struct uar_json *now = NULL;

		e = uar_json_parse(uar_buf_str(&b), NULL, &k->arena, &now, NULL);
		if (!e && (!said || !uar_json_equal(now, said)))
			e = wrong(k, "the events fold into other read models than "
				     "expected.thread_read_models");
	}
	k->report->replayed = !e;
	uar_buf_fini(&b);
	return e;
}

uar_err uar_evidence_verify(uar_str text, struct uar_evidence_report *report,
			    struct uar_error *error)
{
	struct checking k = { .report = report, .error = error };
	uar_err e;

	*report = (struct uar_evidence_report){ .events = 0 };
	uar_arena_init(&k.arena, 0);
	uar_arena_init(&k.scratch, 0);
	uar_sview_init(&k.view);
	e = uar_json_parse(text, NULL, &k.arena, &k.root, error);
	if (e && e != UAR_ENOMEM && e != UAR_ETOOBIG)
		e = uar_error_set(error, UAR_ECORRUPT, "it is not JSON");
	if (!e)
		e = read_head(&k);
	if (!e)
		e = read_scope(&k);
	if (!e)
		e = check_timeline(&k);
	if (!e)
		e = check_digests(&k);
	if (!e)
		e = check_read_models(&k);
	uar_buf_fini(&k.chain.text);
	uar_sview_fini(&k.view);
	uar_arena_fini(&k.arena);
	uar_arena_fini(&k.scratch);
	return e;
}
