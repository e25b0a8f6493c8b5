/* backend_fuzz.h - a dialect between arbitrary output of a CLI and a world that
 * checks what comes out: rules of every event, one end, no broken JSON. */
#ifndef UAR_TESTS_BACKEND_FUZZ_H
#define UAR_TESTS_BACKEND_FUZZ_H

#include <assert.h>
#include <stdlib.h>

#include "backend/child.h"
#include "backend/map.h"

struct fuzz_world {
	struct uab_map *map;
	uaa_kind *kind;
	struct uar_arena arena, check;
	int ends;
};

static bool fuzz_keep(void *ctx, struct uaa_event *ev)
{
	struct fuzz_world *w = ctx;
	const struct uar_json *j;

	assert((ev->text.ptr != NULL) == (ev->kind == UAA_EV_TEXT_OUTPUT));
	assert(ev->text.len <= UAA_MAX_TEXT && ev->message.len <= UAA_MAX_MESSAGE);
	assert(ev->data.len <= UAA_MAX_DATA && ev->channel.len <= UAA_MAX_CHANNEL);
	assert(ev->kind != UAA_EV_ERROR || ev->message.ptr);
	if (ev->data.ptr)
		assert(uar_json_parse(uab_str(ev->data), NULL, &w->check, &j, NULL) == UAR_OK);
	uar_arena_reset(&w->check);
	uaa_event_unref(ev);
	return true;
}

static void fuzz_emit(void *ctx, const uaa_event_spec *s, bool last)
{
	struct fuzz_world *w = ctx;

	w->ends += last;
	assert(w->ends <= 1);
	uab_event_make(w->kind, s, true, fuzz_keep, w);
}

/* Whatever is sent is lines of JSON. */
static void fuzz_send(void *ctx, uar_str bytes)
{
	struct fuzz_world *w = ctx;
	const struct uar_json *j;

	assert(bytes.n && bytes.p[bytes.n - 1] == '\n');
	while (bytes.n) {
		uar_str one = uar_str_cut(bytes, '\n', &bytes);

		assert(uar_json_parse(one, &(struct uar_json_limits){ .bytes = 1u << 30 },
				      &w->check, &j, NULL) == UAR_OK);
	}
	uar_arena_reset(&w->check);
}

/* Half of the questions are answered at once, the others are denied. */
static bool fuzz_ask(void *ctx, const struct uab_ask *a)
{
	struct fuzz_world *w = ctx;

	if (a->id[strlen(a->id) - 1] % 2)
		return false;
	w->map->dialect->answer(w->map, a, UAA_DECISION_ALLOW_FOR_SESSION);
	return true;
}

static void fuzz_line(void *ctx, char *p, size_t n)
{
	struct fuzz_world *w = ctx;

	uab_map_line(w->map, p, n, &w->arena);
}

static void fuzz_too_long(void *ctx, uint64_t bytes)
{
	struct fuzz_world *w = ctx;

	uab_map_too_long(w->map, bytes);
}

/* The first byte says where to cut; the rest is what the CLI prints. */
static void fuzz_run(struct uab_map *map, const struct uab_dialect *d, const uint8_t *data,
		     size_t size)
{
	struct fuzz_world w = { .map = map };
	struct uab_port port = { &w, fuzz_emit, fuzz_send, fuzz_ask };
	struct uar_buf end = uar_buf_make(UAA_MAX_DATA);
	struct uab_lines l;
	size_t cut = size ? (size_t)data[0] * size / 256 : 0;
	char *copy = malloc(size + 1);

	if (size)
		memcpy(copy, data, size);
	uaa_kind_new(uaa_str_c("toy"), &w.kind, NULL);
	uar_arena_init(&w.arena, 0);
	uar_arena_init(&w.check, 0);
	uab_map_init(map, d, &port, "toy");
	map->interactive = true;
	uab_lines_init(&l, 1 << 16);
	l.line = fuzz_line;
	l.too_long = fuzz_too_long;
	l.ctx = &w;
	if (d->begin)
		d->begin(map);
	uab_lines_feed(&l, copy, cut);
	uab_lines_feed(&l, copy + cut, size - cut);
	uab_lines_end(&l);
	if (map->outcome == UAB_OPEN && d->interrupt)
		d->interrupt(map);
	if (map->outcome == UAB_OPEN && d->ended)
		d->ended(map, 256, UAR_STR("no rollout found for thread id"));
	uab_completion_data(map, &end);
	uar_buf_fini(&end);
	uab_lines_fini(&l);
	uab_map_fini(map);
	uar_arena_fini(&w.arena);
	uar_arena_fini(&w.check);
	uaa_kind_unref(w.kind);
	free(copy);
	free(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
