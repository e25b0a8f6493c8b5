/* past.c - turns of a thread become messages: what was said, what was answered.
 *
 * Of an answer that was begun again after a restart only the last try counts, and
 * of one that took several rounds of tools what the model said last; how many calls
 * led to it is counted and said.
 * Turns may be submitted while others are at work, so an answer goes behind its
 * own question. Turns stand in the order in which they began, and those that wait
 * behind them: a turn that overtakes others is part of their past. A turn that was
 * cancelled in the queue never began and is not told. */
#include "core/limits.h"
#include "work/limits.h"
#include "work/past.h"

enum { OMISSIONS = 8 }; /* texts named one by one */

static void free_message(struct past_message *m)
{
	uar_list_remove(&m->node);
	uar_free((char *)m->text.p);
	uar_free(m);
}

void rt_past_free(struct past *p)
{
	if (!p)
		return;
	while (!uar_list_empty(&p->said))
		free_message(UAR_OWNER(p->said.next, struct past_message, node));
	uar_buf_fini(&p->answer);
	uar_buf_fini(&p->artifacts);
	uar_free(p);
}

/* --- what is said ----------------------------------------------------------------------- */

static void forget_oldest(struct past *p, struct past_message *m)
{
	p->count--;
	p->bytes -= m->text.n;
	p->memory -= m->text.n;
	p->dropped++;
	p->dropped_bytes += m->total;
	free_message(m);
}

/* Turns that wait are not forgotten: each is the past of the next. */
static void keep_within_limits(struct past *p)
{
	UAR_LIST_EACH (it, &p->said) {
		if (p->count <= UAR_LIMIT_HISTORY_MESSAGES && p->bytes <= UAR_LIMIT_HISTORY_BYTES)
			return;
		if (UAR_OWNER(it, struct past_message, node)->ended &&
		    !UAR_OWNER(it, struct past_message, node)->summary)
			forget_oldest(p, UAR_OWNER(it, struct past_message, node));
	}
}

static void end_message(struct past *p, struct past_message *m)
{
	if (m->ended)
		return;
	m->ended = true;
	p->count++;
	p->bytes += m->text.n;
}

static uar_err set_text(struct past *p, struct past_message *m, uar_str text)
{
	char *copy;

	text = uar_str_utf8_prefix(text, UAR_LIMIT_HISTORY_TEXT);
	copy = uar_alloc(text.n + 1);
	if (!copy)
		return UAR_ENOMEM;
	if (text.n)
		memcpy(copy, text.p, text.n);
	p->memory += text.n - m->text.n;
	if (m->ended)
		p->bytes += text.n - m->text.n;
	uar_free((char *)m->text.p);
	m->text = uar_str_n(copy, text.n);
	return UAR_OK;
}

static uar_err add_message(struct past *p, enum uar_model_role role, uar_str run_id, uar_str text,
			   struct past_message **out)
{
	struct past_message *m = uar_zalloc(sizeof *m);
	uar_err e;

	if (!m)
		return UAR_ENOMEM;
	m->role = role;
	m->total = text.n;
	snprintf(m->run_id, sizeof m->run_id, "%.*s", UAR_FMT(run_id));
	e = set_text(p, m, text);
	if (e) {
		uar_free(m);
		return e;
	}
	uar_list_add_last(&p->said, &m->node);
	*out = m;
	return UAR_OK;
}

static struct past_message *question_of(const struct past *p, uar_str run_id)
{
	for (struct uar_list *it = p->said.prev; it != &p->said; it = it->prev) {
		struct past_message *m = UAR_OWNER(it, struct past_message, node);

		if (m->role == UAR_MODEL_USER && uar_str_is(run_id, m->run_id))
			return m;
	}
	return NULL;
}

static bool is_of_run(const struct uar_list *it, uar_str run_id)
{
	return uar_str_is(run_id, UAR_OWNER(it, struct past_message, node)->run_id);
}

/* The turn began: it goes before those that still wait. */
static void turn_began(struct past *p, uar_str run_id)
{
	struct uar_list *first = p->said.next;

	while (first != &p->said && (UAR_OWNER(first, struct past_message, node)->began ||
				     UAR_OWNER(first, struct past_message, node)->ended))
		first = first->next;
	UAR_LIST_EACH (it, &p->said) {
		struct past_message *m = UAR_OWNER(it, struct past_message, node);

		if (m->began || !is_of_run(it, run_id))
			continue;
		m->began = true;
		if (it == first) {
			first = first->next;
			continue;
		}
		uar_list_remove(it);
		uar_list_add_last(first, it);
	}
}

static uar_err asked(struct past *p, const struct uar_event *ev, const struct uar_json *payload,
		     struct uar_arena *scratch)
{
	const struct uar_json *part = uar_json_at(uar_json_get(payload, UAR_STR("input_parts")), 0);
	uar_str text = uar_json_text(part, "preview");
	struct past_message *m;
	uar_str blob;
	uar_err e = uar_event_blob(ev, "input_ref", scratch, &blob);

	if (!e)
		e = add_message(p, UAR_MODEL_USER, ev->ids[UAR_ID_RUN], text, &m);
	if (e)
		return e;
	snprintf(m->turn_id, sizeof m->turn_id, "%.*s", UAR_FMT(ev->ids[UAR_ID_TURN]));
	m->total = (uint64_t)uar_json_int(uar_json_get(part, UAR_STR("bytes")), (int64_t)text.n);
	m->sequence = ev->sequence;
	snprintf(m->blob, sizeof m->blob, "%.*s", UAR_FMT(blob));
	return UAR_OK;
}

/* A message of the turn that `question` began: it goes behind that. */
static uar_err joined(struct past *p, const struct past_message *question,
		      const struct uar_event *ev, const struct uar_json *payload,
		      struct uar_arena *scratch)
{
	struct past_message *m;
	uar_err e = asked(p, ev, payload, scratch);

	if (e || !question)
		return e;
	m = UAR_OWNER(p->said.prev, struct past_message, node);
	m->began = question->began;
	m->sequence = question->sequence;
	uar_list_remove(&m->node);
	uar_list_add_last(question->node.next, &m->node);
	return UAR_OK;
}

/* A message joined the turn, or took the place of its question. */
static uar_err input_came(struct past *p, const struct uar_event *ev, struct uar_arena *scratch)
{
	const struct uar_json *payload = NULL, *part;
	struct past_message *m = question_of(p, ev->ids[UAR_ID_RUN]);
	uar_str blob;
	uar_err e;

	if (!uar_event_is_turn_input(ev))
		return UAR_OK;
	e = uar_event_payload(ev, scratch, &payload, NULL);
	if (e)
		return e;
	if (uar_str_is(uar_json_text(payload, "op"), "added"))
		return joined(p, m, ev, payload, scratch);
	part = uar_json_at(uar_json_get(payload, UAR_STR("input_parts")), 0);
	e = uar_event_blob(ev, "input_ref", scratch, &blob);
	if (!m || e)
		return e;
	m->total = (uint64_t)uar_json_int(uar_json_get(part, UAR_STR("bytes")), 0);
	snprintf(m->blob, sizeof m->blob, "%.*s", UAR_FMT(blob));
	return set_text(p, m, uar_json_text(part, "preview"));
}

static void answered(struct past *p, uar_str text)
{
	size_t room = UAR_LIMIT_HISTORY_TEXT - p->answer.n;

	if (p->answer_total == p->answer.n) /* nothing is missing before it */
		uar_buf_add_str(&p->answer, uar_str_utf8_prefix(text, room));
	p->answer_total += text.n;
}

static void begin_answer(struct past *p)
{
	uar_buf_clear(&p->answer);
	p->answer_total = 0;
}

static void forget_message(struct past *p, struct past_message *m)
{
	if (m->ended) {
		p->count--;
		p->bytes -= m->text.n;
	}
	p->memory -= m->text.n;
	free_message(m);
}

/* The turn ended in the queue: no model was asked, so it is no part of the conversation. The
 * answer that is being written is another turn's. */
static void forget_turn(struct past *p, uar_str run_id)
{
	UAR_LIST_EACH (it, &p->said)
		if (is_of_run(it, run_id))
			forget_message(p, UAR_OWNER(it, struct past_message, node));
}

/* The turn is over; it is told with what was answered, however it ended. */
static uar_err turn_ended(struct past *p, uar_str run_id)
{
	struct past_message *question = question_of(p, run_id), *m;
	uar_err e = p->answer.err;

	if (question && !question->began) {
		forget_turn(p, run_id);
		return UAR_OK;
	}
	UAR_LIST_EACH (it, &p->said)
		if (uar_str_is(run_id, UAR_OWNER(it, struct past_message, node)->run_id))
			end_message(p, UAR_OWNER(it, struct past_message, node));
	if (!e && question && p->answer.n) {
		e = add_message(p, UAR_MODEL_ASSISTANT, run_id, uar_buf_str(&p->answer), &m);
		if (e)
			return e;
		m->total = p->answer_total;
		m->tools = p->answer_tools;
		m->sequence = question->sequence;
		uar_list_remove(&m->node);
		uar_list_add_last(question->node.next, &m->node); /* before what follows it */
		end_message(p, m);
	}
	begin_answer(p);
	p->answer_tools = 0;
	keep_within_limits(p);
	return e;
}

/* What was said up to the boundary is told as its summary from now on. */
static uar_err condensed(struct past *p, const struct uar_event *ev, const struct uar_json *payload,
			 struct uar_arena *scratch)
{
	uar_str last = uar_json_text(payload, "boundary_run_id");
	struct past_message *m, *end = NULL;
	uar_str blob;
	uar_err e = uar_event_blob(ev, "summary_ref", scratch, &blob);

	UAR_LIST_EACH (it, &p->said)
		if (uar_str_is(last, UAR_OWNER(it, struct past_message, node)->run_id))
			end = UAR_OWNER(it, struct past_message, node);
	while (!e && end) {
		m = UAR_OWNER(p->said.next, struct past_message, node);
		if (m == end)
			end = NULL;
		forget_message(p, m);
	}
	if (!e)
		e = add_message(p, UAR_MODEL_SYSTEM, UAR_STR(""), UAR_STR(""), &m);
	if (e)
		return e;
	uar_list_remove(&m->node);
	uar_list_add_last(p->said.next, &m->node); /* before all others */
	m->summary = true;
	snprintf(m->blob, sizeof m->blob, "%.*s", UAR_FMT(blob));
	end_message(p, m);
	return UAR_OK;
}

static void note_artifact(struct past *p, uar_str id)
{
	if (p->artifacts.n + id.n + 1 > UAR_LIMIT_HISTORY_ARTIFACTS)
		return;
	uar_buf_add_str(&p->artifacts, id);
	uar_buf_add_char(&p->artifacts, '\n');
}

/* The last message of the turn whose first event that is; NULL: it was forgotten. */
static const struct uar_list *end_of_turn(const struct past *p, uint64_t sequence)
{
	const struct uar_list *it = p->said.prev;

	while (it != &p->said && UAR_OWNER(it, struct past_message, node)->sequence != sequence)
		it = it->prev;
	return it == &p->said ? NULL : it;
}

void rt_past_roll_back(struct past *p, uint64_t sequence)
{
	const struct uar_list *end = end_of_turn(p, sequence);
	bool behind = false;

	UAR_LIST_EACH (it, &p->said) {
		struct past_message *m = UAR_OWNER(it, struct past_message, node);

		if (end ? behind : m->sequence > sequence)
			forget_message(p, m);
		else if (it == end)
			behind = true;
	}
}

/* An event whose payload says it. */
static uar_err add_said(struct past *p, const struct uar_event *ev, const struct uar_json *payload,
			struct uar_arena *scratch)
{
	if (ev->cls == UAR_EV_TURN_SUBMITTED)
		return asked(p, ev, payload, scratch);
	if (ev->cls == UAR_EV_CONTEXT_COMPACTION_COMPLETED)
		return condensed(p, ev, payload, scratch);
	if (ev->cls == UAR_EV_HISTORY_ROLLBACK_COMPLETED) {
		const struct uar_json *left = uar_json_get(payload, UAR_STR("surviving_baseline"));

		rt_past_roll_back(
			p, (uint64_t)uar_json_int(uar_json_get(left, UAR_STR("sequence")), 0));
		return UAR_OK;
	}
	answered(p, uar_json_text(payload, "text"));
	return p->answer.err;
}

uar_err rt_past_add(struct past *p, const struct uar_event *ev, struct uar_arena *scratch)
{
	const struct uar_json *payload = NULL;
	uar_err e = UAR_OK;

	p->upto = ev->sequence;
	switch (ev->cls) {
	case UAR_EV_MODEL_REQUESTED: begin_answer(p); return UAR_OK;
	case UAR_EV_TOOL_STARTED: p->answer_tools++; return UAR_OK;
	case UAR_EV_ARTIFACT_CHANGED: note_artifact(p, ev->ids[UAR_ID_ARTIFACT]); return UAR_OK;
	case UAR_EV_TURN_STARTED: turn_began(p, ev->ids[UAR_ID_RUN]); return UAR_OK;
	case UAR_EV_TURN_COMPLETED:
	case UAR_EV_TURN_FAILED: return turn_ended(p, ev->ids[UAR_ID_RUN]);
	case UAR_EV_VENDOR: return input_came(p, ev, scratch);
	case UAR_EV_TURN_SUBMITTED:
	case UAR_EV_CONTEXT_COMPACTION_COMPLETED:
	case UAR_EV_HISTORY_ROLLBACK_COMPLETED:
	case UAR_EV_MODEL_DELTA: e = uar_event_payload(ev, scratch, &payload, NULL); break;
	default: return UAR_OK; /* nothing that was said */
	}
	return e ? e : add_said(p, ev, payload, scratch);
}

uar_err rt_past_complete(struct past *p, struct past_message *m, uar_str text, uint64_t total)
{
	uar_err e = set_text(p, m, text);

	m->blob[0] = 0;
	m->total = total;
	if (!e)
		keep_within_limits(p);
	return e;
}

/* --- what a turn is told ------------------------------------------------------------------ */

/* What joined the question, or an earlier try at it, is not something that was said before it. */
static bool is_attempt(const struct uar_run *r, const struct past_message *m)
{
	if (uar_str_is(r->id.run_id, m->run_id))
		return true;
	return r->id.parent_run_id.n && (uar_str_is(r->id.parent_run_id, m->run_id) ||
					 uar_str_is(r->id.root_run_id, m->run_id));
}

struct past_message *rt_past_before(const struct past *p, const struct live_run *r,
				    const struct past_message *after)
{
	const struct past_message *own = after ? after : question_of(p, uar_str_c(rt_run_id(r)));

	if (!own)
		return NULL; /* all that came before it was forgotten with it */
	for (struct uar_list *it = own->node.prev; it != &p->said; it = it->prev) {
		struct past_message *m = UAR_OWNER(it, struct past_message, node);

		if (!is_attempt(rt_state(r), m))
			return m;
	}
	return NULL;
}

void rt_past_collect(const struct past *p, const struct live_run *r, struct prompt *out)
{
	const struct past_message *newest[UAR_LIMIT_HISTORY_MESSAGES];
	struct past_message *m = NULL;
	size_t n = 0, bytes = 0;

	while (n < UAR_LIMIT_HISTORY_MESSAGES && (m = rt_past_before(p, r, m))) {
		bytes += m->text.n;
		if (p->most && bytes > p->most)
			break;
		if (m->text.n)
			newest[n++] = m;
	}
	while (n-- > 0)
		rt_prompt_text(out, newest[n]->role, newest[n]->text);
}

static void omit(struct uar_jw *w, const char *ref, const char *id, const char *reason)
{
	char full[UAR_LIMIT_ID_BYTES + 32];

	snprintf(full, sizeof full, "%s%s", ref, id);
	uar_jw_obj(w, NULL);
	uar_jw_cstr(w, "ref", full);
	uar_jw_cstr(w, "reason", reason);
	uar_jw_close(w);
}

void rt_past_omissions(const struct past *p, const struct live_run *r, struct uar_buf *out)
{
	struct uar_jw w = uar_jw_begin(out);
	struct past_message *m = NULL;
	char reason[160];
	size_t cut = 0;

	uar_jw_arr(&w, NULL);
	if (p->dropped) {
		snprintf(reason, sizeof reason,
			 "%llu older messages with %llu bytes: at most %d with %d bytes are told",
			 (unsigned long long)p->dropped, (unsigned long long)p->dropped_bytes,
			 UAR_LIMIT_HISTORY_MESSAGES, UAR_LIMIT_HISTORY_BYTES);
		omit(&w, "thread://", rt_thread_id(r), reason);
	}
	while ((m = rt_past_before(p, r, m)) && cut < OMISSIONS) {
		if (m->tools) {
			snprintf(reason, sizeof reason,
				 "%llu tool calls that led to its answer are not told",
				 (unsigned long long)m->tools);
			omit(&w, "run://", m->run_id, reason);
			cut++;
		}
		if (m->total <= m->text.n)
			continue;
		snprintf(reason, sizeof reason,
			 "the first %zu of the %llu bytes of its %s are told", m->text.n,
			 (unsigned long long)m->total,
			 m->role == UAR_MODEL_USER ? "question" : "answer");
		omit(&w, "run://", m->run_id, reason);
		cut++;
	}
	uar_jw_close(&w);
	if (uar_jw_end(&w) || (!p->dropped && !cut))
		uar_buf_clear(out);
}

/* --- kept for the next turn ---------------------------------------------------------------- */

static void leave_cache(struct past_cache *c, struct past *p)
{
	uar_map_remove(&c->map, p->key);
	uar_list_remove(&p->node);
	c->count--;
	c->bytes -= p->memory;
}

static struct past *make(uar_str key)
{
	struct past *p = uar_zalloc(sizeof *p + key.n);

	if (!p)
		return NULL;
	uar_list_init(&p->node);
	uar_list_init(&p->said);
	p->answer = uar_buf_make(UAR_LIMIT_HISTORY_TEXT);
	p->artifacts = uar_buf_make(UAR_LIMIT_HISTORY_ARTIFACTS + 1);
	memcpy(p->text, key.p, key.n);
	p->key = uar_str_n(p->text, key.n);
	return p;
}

struct past *rt_past_take(struct live_run *r)
{
	struct past_cache *c = &rt_work(r)->pasts;
	struct past *p = uar_map_get(&c->map, rt_thread_key(r));

	if (!p)
		return make(rt_thread_key(r));
	leave_cache(c, p);
	return p;
}

void rt_past_keep(struct past_cache *c, struct past *p)
{
	struct past *other = p ? uar_map_get(&c->map, p->key) : NULL;

	if (!p)
		return;
	if (other) { /* two turns read at once, one of them cancelled */
		leave_cache(c, other);
		rt_past_free(other);
	}
	if (uar_map_put(&c->map, p->key, p)) {
		rt_past_free(p);
		return;
	}
	uar_list_add_last(&c->list, &p->node);
	c->count++;
	c->bytes += p->memory;
	while (c->count > UAR_LIMIT_HISTORY_THREADS ||
	       (c->count && c->bytes > UAR_LIMIT_HISTORY_CACHE)) {
		struct past *oldest = UAR_OWNER(c->list.next, struct past, node);

		leave_cache(c, oldest);
		rt_past_free(oldest);
	}
}

void rt_pasts_clear(struct past_cache *c)
{
	while (!uar_list_empty(&c->list)) {
		struct past *p = UAR_OWNER(c->list.next, struct past, node);

		leave_cache(c, p);
		rt_past_free(p);
	}
}

void rt_pasts_fini(struct past_cache *c)
{
	rt_pasts_clear(c);
	uar_map_fini(&c->map);
}
