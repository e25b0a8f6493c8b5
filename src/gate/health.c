/* health.c - how the latest calls of each model went.
 *
 * Names of models come from definitions: rows are counted up to a limit, and the one that was
 * used longest ago makes room. */
#include "gate/health.h"

#include "base/alloc.h"

struct health {
	struct health_row rows[UAR_LIMIT_HEALTH_MODELS];
	size_t count;
};

struct health *gate_health_create(void)
{
	return uar_zalloc(sizeof(struct health));
}

void gate_health_destroy(struct health *h)
{
	uar_free(h);
}

static void copy(char *to, size_t room, uar_str s)
{
	snprintf(to, room, "%.*s", UAR_FMT(uar_str_utf8_prefix(s, room - 1)));
}

static struct health_row *row_of(struct health *h, uar_str provider, uar_str model)
{
	struct health_row *oldest = h->rows;

	for (size_t i = 0; i < h->count; i++) {
		struct health_row *r = &h->rows[i];

		if (uar_str_is(provider, r->provider) && uar_str_is(model, r->model))
			return r;
		if (r->last_us < oldest->last_us)
			oldest = r;
	}
	if (h->count < ARRAY_LEN(h->rows))
		oldest = &h->rows[h->count++];
	*oldest = (struct health_row){ 0 };
	copy(oldest->provider, sizeof oldest->provider, provider);
	copy(oldest->model, sizeof oldest->model, model);
	return oldest;
}

void gate_health_add(struct health *h, const struct uar_event *ev, const struct uar_json *p)
{
	struct health_row *r = row_of(h, uar_json_text(p, "provider"), uar_json_text(p, "model"));
	const struct uar_json *first = uar_json_get(p, UAR_STR("ttft_ms"));

	/* Who stopped a call says nothing about the model. */
	if (uar_str_is(uar_json_text(p, "failure_category"), "cancelled"))
		return;
	r->calls++;
	r->last_us = ev->time_us;
	if (ev->cls == UAR_EV_MODEL_FAILED) {
		r->failures++;
		r->failed_in_a_row++;
		r->failed_us = ev->time_us;
		copy(r->category, sizeof r->category, uar_json_text(p, "failure_category"));
		copy(r->message, sizeof r->message, uar_json_text(p, "message"));
		return;
	}
	r->failed_in_a_row = 0;
	if (first)
		r->first_ms[r->first_count++ % ARRAY_LEN(r->first_ms)] =
			(uint32_t)(uar_json_int(first, 0) & INT32_MAX);
}

const struct health_row *gate_health_at(const struct health *h, size_t i)
{
	return h && i < h->count ? &h->rows[i] : NULL;
}

void gate_health_write(const struct health_row *r, struct uar_jw *w)
{
	size_t n =
		r->first_count < ARRAY_LEN(r->first_ms) ? r->first_count : ARRAY_LEN(r->first_ms);

	uar_jw_u64(w, "calls", r->calls);
	uar_jw_u64(w, "failures", r->failures);
	uar_jw_cstr(w, "health", r->failed_in_a_row ? "failing" : r->calls ? "fine" : "unknown");
	if (r->last_us)
		uar_jw_time(w, "last_at", r->last_us);
	if (r->failed_us) {
		uar_jw_obj(w, "last_error");
		uar_jw_cstr(w, "failure_category", r->category);
		uar_jw_cstr(w, "message", r->message);
		uar_jw_time(w, "at", r->failed_us);
		uar_jw_close(w);
	}
	uar_jw_arr(w, "first_token_ms");
	for (size_t i = r->first_count - n; i < r->first_count; i++)
		uar_jw_int(w, NULL, r->first_ms[i % ARRAY_LEN(r->first_ms)]);
	uar_jw_close(w);
}
