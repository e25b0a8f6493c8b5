/* run_find.c - how a list of runs is sorted, bounded, counted and searched, from a query. */
#include <math.h>

#include "gate/gate_int.h"

static uar_err refuse_bound(struct uar_error *error, const char *name, const char *want)
{
	uar_error_where(error, "?%s", name);
	return uar_error_set(error, UAR_EINVALID, "%s must be %s", name, want);
}

/* A number, scaled to the unit of the column. */
static bool read_number(uar_str text, double scale, int64_t *out)
{
	char copy[64];
	char *end;
	double v;

	if (!text.n || text.n >= sizeof copy)
		return false;
	memcpy(copy, text.p, text.n);
	copy[text.n] = 0;
	v = strtod(copy, &end) * scale;
	if (*end || !isfinite(v) || v < -9e18 || v > 9e18)
		return false;
	*out = (int64_t)llround(v);
	return true;
}

static uar_err read_bound(const char *name, enum uar_run_unit unit, uar_str text, int64_t *out,
			  struct uar_error *error)
{
	switch (unit) {
	case UAR_RUN_UNIT_TIME:
		if (!uar_time_parse(text, out) || read_number(text, 1e6, out))
			return UAR_OK;
		return refuse_bound(error, name, "a time (RFC 3339) or seconds since 1970");
	case UAR_RUN_UNIT_SECONDS:
		return read_number(text, 1e6, out) ? UAR_OK : refuse_bound(error, name, "seconds");
	case UAR_RUN_UNIT_DOLLARS:
		return read_number(text, 1e6, out) ? UAR_OK : refuse_bound(error, name, "dollars");
	case UAR_RUN_UNIT_COUNT:
		return read_number(text, 1, out) ? UAR_OK : refuse_bound(error, name, "a number");
	case UAR_RUN_UNIT_TEXT: break;
	}
	return UAR_OK;
}

static uar_err take_bound(struct call *c, const char *side, int column, struct uar_run_bound *out,
			  struct uar_error *error)
{
	const struct uar_run_column_info *info = &uar_run_column_info[column];
	uar_str text = UAR_STR_NONE;
	char name[64];
	uar_err e;

	if (info->unit == UAR_RUN_UNIT_TEXT)
		return UAR_OK;
	snprintf(name, sizeof name, "%s_%s", side, info->word);
	e = gate_query_str(c, name, &text);
	if (e || !text.p)
		return e;
	out->given = true;
	return read_bound(name, info->unit, text, &out->value, error);
}

/* "cost" or "-cost": the highest first. */
static uar_err take_sort(struct call *c, struct uar_run_find *out, struct uar_error *error)
{
	uar_str word = UAR_STR_NONE;
	uar_err e = gate_query_str(c, "sort", &word);

	if (e || !word.p)
		return e;
	out->ascending = !uar_str_starts(word, UAR_STR("-"));
	word = out->ascending ? word : uar_str_from(word, 1);
	for (int i = 0; i < UAR_RUN_COLUMN_COUNT; i++)
		if (uar_str_is(word, uar_run_column_info[i].word)) {
			out->sorted = true;
			out->sort = (enum uar_run_column)i;
			return UAR_OK;
		}
	uar_error_where(error, "?sort");
	return uar_error_set(error, UAR_EINVALID,
			     "runs are sorted by created_at, updated_at, duration, cost, tokens,"
			     " title, status, agent_id or error_code");
}

static uar_err take_text(struct call *c, const char *name, uar_str *out)
{
	uar_err e = gate_query_str(c, name, out);

	if (e || !out->p)
		return e;
	*out = uar_arena_str(&c->arena, *out);
	return out->p ? UAR_OK : UAR_ENOMEM;
}

uar_err gate_decode_find(struct call *c, struct uar_run_find *out, struct uar_error *error)
{
	uar_err e = take_text(c, "q", &out->search);

	if (!e)
		e = take_text(c, "error_code", &out->error_code);
	if (!e)
		e = gate_query_flag(c, "count", &out->count, error);
	if (!e)
		e = take_sort(c, out, error);
	for (int i = 0; i < UAR_RUN_COLUMN_COUNT && !e; i++) {
		e = take_bound(c, "min", i, &out->min[i], error);
		if (!e)
			e = take_bound(c, "max", i, &out->max[i], error);
	}
	return e;
}
