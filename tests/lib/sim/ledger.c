/* ledger.c - the calls of tools in the log of a run: each begins once and ends once, what
 * is executed was written down before, and what must not be repeated was allowed to be. */
#include "sim/checker.h"

static struct sim_entry *entry_of(struct sim_ledger *l, uar_str id, bool make)
{
	for (size_t i = 0; i < l->count; i++)
		if (uar_str_is(id, l->at[i].id))
			return &l->at[i];
	if (!make || l->count == SIM_LEDGER)
		return NULL;
	l->at[l->count] = (struct sim_entry){ .marks = 0 };
	snprintf(l->at[l->count].id, sizeof l->at[0].id, "%.*s", UAR_FMT(id));
	return &l->at[l->count++];
}

static uar_str text_of(const struct uar_json *p, const char *key)
{
	return uar_json_str(uar_json_get(p, uar_str_c(key)), UAR_STR(""));
}

static void started(struct sim_checker *k, struct sim_ledger *l, const struct uar_event *ev,
		    const struct uar_json *p)
{
	struct sim_entry *e;

	if (!text_of(p, "effect").n)
		return; /* it is a recording's */
	e = entry_of(l, ev->ids[UAR_ID_TOOL_CALL], true);
	if (!e)
		return;
	if (e->marks)
		sim_checker_broken(k, "call %s begins twice", e->id);
	if (uar_str_is(text_of(p, "policy"), "ask") && e->action && !e->allowed && !e->denied)
		sim_checker_broken(k, "call %s begins before it is decided", e->id);
	e->once = uar_str_is(text_of(p, "effect"), "once");
	e->marks = 1;
	e->allowed = false;
	l->begun++;
}

static void goes_on(struct sim_checker *k, struct sim_ledger *l, const struct uar_event *ev,
		    const struct uar_json *p)
{
	struct sim_entry *e = entry_of(l, ev->ids[UAR_ID_TOOL_CALL], false);

	if (!e || !uar_json_bool(uar_json_get(p, UAR_STR("again")), false))
		return;
	if (e->once && !e->allowed)
		sim_checker_broken(k, "call %s is repeated and nobody allowed it", e->id);
	e->marks++;
	e->allowed = false;
}

static void ended(struct sim_checker *k, struct sim_ledger *l, const struct uar_event *ev)
{
	struct sim_entry *e = entry_of(l, ev->ids[UAR_ID_TOOL_CALL], false);

	if (!e)
		return;
	if (e->ended)
		sim_checker_broken(k, "call %s ends twice", e->id);
	e->ended = true;
	e->result = ev->cls == UAR_EV_TOOL_RESULT;
	l->ended++;
}

static void asked(struct sim_ledger *l, const struct uar_event *ev, const struct uar_json *p)
{
	uar_str id = text_of(uar_json_get(p, UAR_STR("scope")), "tool_call_id");
	struct sim_entry *e = id.n ? entry_of(l, id, true) : NULL;
	uar_str run_id;

	if (e)
		(void)uar_action_parse(ev->ids[UAR_ID_ACTION], &run_id, &e->action);
}

static void answered(struct sim_ledger *l, const struct uar_event *ev, const struct uar_json *p)
{
	int64_t number = 0;
	uar_str run_id;

	if (!uar_action_parse(ev->ids[UAR_ID_ACTION], &run_id, &number))
		return;
	for (size_t i = 0; i < l->count; i++)
		if (l->at[i].action == number) {
			l->at[i].allowed = uar_str_is(text_of(p, "result"), "allow");
			l->at[i].denied = !l->at[i].allowed;
		}
}

void sim_ledger_event(struct sim_checker *k, struct sim_ledger *l, const struct uar_event *ev,
		      const struct uar_json *p)
{
	switch (ev->cls) {
	case UAR_EV_MODEL_COMPLETED:
		l->wanted += uar_json_int(uar_json_get(p, UAR_STR("tool_call_count")), 0);
		break;
	case UAR_EV_MODEL_REQUESTED:
		if (l->count < SIM_LEDGER && l->ended != l->wanted)
			sim_checker_broken(k, "%lld calls were asked for and %lld are over",
					   (long long)l->wanted, (long long)l->ended);
		break;
	case UAR_EV_TOOL_STARTED: started(k, l, ev, p); break;
	case UAR_EV_TOOL_PROGRESS: goes_on(k, l, ev, p); break;
	case UAR_EV_TOOL_RESULT:
	case UAR_EV_TOOL_FAILED: ended(k, l, ev); break;
	case UAR_EV_ACTION_REQUIRED: asked(l, ev, p); break;
	case UAR_EV_ACTION_RESOLVED: answered(l, ev, p); break;
	default: break;
	}
}

void sim_ledger_check(struct sim_checker *k, const struct sim_ledger *l, const char *run_id)
{
	for (size_t i = 0; i < l->count; i++) {
		const struct sim_entry *e = &l->at[i];
		unsigned times = sim_tools_done(k->w, run_id, uar_str_c(e->id));

		if (times > e->marks)
			sim_checker_broken(k, "call %s was executed %u times and %u are known",
					   e->id, times, e->marks);
		if (e->result && !times)
			sim_checker_broken(k, "call %s has a result and was not executed", e->id);
	}
}
