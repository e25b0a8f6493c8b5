/* note.c - what operators are told of plugins; no plugin can fill their log. */
#include "plugin/limits.h"
#include "plugin/plugin_int.h"

enum { SECOND_US = 1000000 };

static void tell(struct plugin *p, const struct uar_plugin_note *n)
{
	if (p->host->o.note)
		p->host->o.note(p->host->o.ctx, n);
}

static void tell_left_out(struct plugin *p)
{
	char text[96];
	struct uar_plugin_note n = { .level = UAR_LOG_WARN,
				     .what = "plugin.lines_left_out",
				     .plugin_id = p->m.id };

	snprintf(text, sizeof text, "%llu lines were left out: a plugin has %d a second",
		 (unsigned long long)p->log.left_out, UAR_LIMIT_PLUGIN_LOG_RATE);
	n.text = uar_str_c(text);
	p->log = (struct plugin_log){ .timer = p->log.timer };
	tell(p, &n);
}

static void on_second(struct uar_timer *t)
{
	tell_left_out(UAR_OWNER(t, struct plugin, log.timer));
}

/* A second begins with its first line. What was left out is told when it is over,
 * also when the plugin has fallen silent. */
static bool may_speak(struct plugin *p)
{
	struct uar_sched *sched = uar_loop_sched(p->host->o.loop);
	int64_t now = uar_clock_mono(sched->clock);

	if (!p->log.left_out && now - p->log.since_us >= SECOND_US)
		p->log = (struct plugin_log){ .since_us = now };
	if (p->log.lines < UAR_LIMIT_PLUGIN_LOG_RATE) {
		p->log.lines++;
		return true;
	}
	p->log.timer.fn = on_second;
	if (p->log.left_out++ == 0 &&
	    uar_timer_set(sched, &p->log.timer, p->log.since_us + SECOND_US - now))
		tell_left_out(p);
	return false;
}

void plugin_note(struct plugin *p, enum uar_log_level level, const char *what,
		 const struct uar_entry_call *c, uar_str text)
{
	struct uar_plugin_note n = { level, what, p->m.id, UAR_STR(""), UAR_STR(""), text };

	if (c) {
		n.run_id = uar_str_c(c->run_id);
		n.trace_id = uar_str_c(c->trace_id);
	}
	tell(p, &n);
}

void plugin_says(struct plugin *p, enum uar_log_level level, const char *what,
		 const struct uar_entry_call *c, uar_str text)
{
	if (may_speak(p))
		plugin_note(p, level, what, c, text);
}

/* Whose line it is can be told when the process has one run; with several it is
 * not guessed. */
void process_note(struct process *s, enum uar_log_level level, const char *what, uar_str text)
{
	struct plugin *p = s->plugin;
	struct uar_plugin_note n = { .level = level,
				     .what = what,
				     .plugin_id = p->m.id,
				     .run_id = UAR_STR("unavailable"),
				     .text = text };

	if (s->call_count > 1)
		tell(p, &n);
	else
		plugin_note(p, level, what,
			    s->call_count ? UAR_OWNER(s->calls.next, struct uar_entry_call, node)
					  : NULL,
			    text);
}

void process_says(struct process *s, enum uar_log_level level, const char *what, uar_str text)
{
	if (may_speak(s->plugin))
		process_note(s, level, what, text);
}
