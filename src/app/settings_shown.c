/* settings_shown.c - settings and limits, for the owner of a server. */
#include "app/settings_shown.h"

#include "app/limits.h"
#include "json/json.h"

static const struct limit {
	const char *room, *name, *doc;
	long long value;
} limits[] = {
#define L(NAME, VALUE, TEXT) { ROOM, #NAME, TEXT, VALUE },
#define ROOM		     "agent"
#include "agent/limits.def"
#undef ROOM
#define ROOM "app"
#include "app/limits.def"
#undef ROOM
#define ROOM "backend"
#include "backend/limits.def"
#undef ROOM
#define ROOM "base"
#include "base/limits.def"
#include "base/sizes.def"
#undef ROOM
#define ROOM "bridge"
#include "bridge/limits.def"
#undef ROOM
#define ROOM "core"
#include "core/limits.def"
#include "core/sizes.def"
#undef ROOM
#define ROOM "engine"
#include "engine/limits.def"
#include "engine/sizes.def"
#undef ROOM
#define ROOM "event"
#include "event/limits.def"
#include "event/sizes.def"
#undef ROOM
#define ROOM "evidence"
#include "evidence/limits.def"
#undef ROOM
#define ROOM "flow"
#include "flow/limits.def"
#undef ROOM
#define ROOM "gate"
#include "gate/limits.def"
#undef ROOM
#define ROOM "http"
#include "http/limits.def"
#include "http/sizes.def"
#undef ROOM
#define ROOM "json"
#include "json/limits.def"
#include "json/sizes.def"
#undef ROOM
#define ROOM "loop"
#include "loop/limits.def"
#include "loop/sizes.def"
#undef ROOM
#define ROOM "mail"
#include "mail/limits.def"
#undef ROOM
#define ROOM "mcp"
#include "mcp/limits.def"
#undef ROOM
#define ROOM "memory"
#include "memory/limits.def"
#undef ROOM
#define ROOM "model"
#include "model/limits.def"
#undef ROOM
#define ROOM "peer"
#include "peer/limits.def"
#undef ROOM
#define ROOM "plugin"
#include "plugin/limits.def"
#undef ROOM
#define ROOM "proto"
#include "proto/limits.def"
#undef ROOM
#define ROOM "read"
#include "read/limits.def"
#undef ROOM
#define ROOM "sandbox"
#include "sandbox/limits.def"
#undef ROOM
#define ROOM "skill"
#include "skill/limits.def"
#undef ROOM
#define ROOM "store"
#include "store/limits.def"
#include "store/sizes.def"
#undef ROOM
#define ROOM "tool"
#include "tool/limits.def"
#undef ROOM
#define ROOM "work"
#include "work/limits.def"
#undef ROOM
#undef L
};

/* A table may hold what nobody else should read, such as variables of a server: its names alone. */
static void put_names(struct uar_jw *w, const char *text)
{
	const struct uar_json *j = NULL;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	uar_jw_arr(w, "value");
	if (*text && uar_json_parse(uar_str_c(text), NULL, &arena, &j, NULL) == UAR_OK)
		for (const struct uar_json *m = uar_json_first(j); m; m = m->next)
			uar_jw_str(w, NULL, m->key);
	uar_jw_close(w);
	uar_arena_fini(&arena);
}

static void put_value(struct uar_jw *w, const struct uar_config_row *row,
		      const struct uar_config *c, struct uar_buf *scratch)
{
	const void *field = (const char *)c + row->offset;

	if (row->type == UAR_CONFIG_SECRET) {
		uar_jw_bool(w, "set", **(const char *const *)field != 0);
	} else if (row->type == UAR_CONFIG_TABLE) {
		put_names(w, *(const char *const *)field);
	} else {
		uar_buf_clear(scratch);
		uar_config_format(row, c, scratch);
		uar_jw_str(w, "value", uar_buf_str(scratch));
	}
}

uar_err uar_settings_write(const struct uar_config_set *set, struct uar_buf *out)
{
	static const char *const sources[] = { "default", "file", "environment", "flag" };
	struct uar_buf scratch = uar_buf_make(UAR_LIMIT_CONFIG_BYTES);
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "settings");
	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++) {
		const struct uar_config_row *row = &uar_config_rows[i];

		uar_jw_obj(&w, NULL);
		uar_jw_cstr(&w, "name", row->key);
		put_value(&w, row, &set->value, &scratch);
		uar_jw_cstr(&w, "source", sources[set->origin[i].source]);
		uar_jw_cstr(&w, "where", set->origin[i].where);
		uar_jw_bool(&w, "reloadable", row->reload);
		uar_jw_cstr(&w, "about", row->doc);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	uar_jw_arr(&w, "limits");
	for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
		uar_jw_obj(&w, NULL);
		uar_jw_cstr(&w, "name", limits[i].name);
		uar_jw_cstr(&w, "room", limits[i].room);
		uar_jw_int(&w, "value", limits[i].value);
		uar_jw_cstr(&w, "about", limits[i].doc);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	uar_buf_fini(&scratch);
	return uar_jw_end(&w);
}
