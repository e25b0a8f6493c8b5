/* manifest.c - the schema decides what a manifest may say, the rest is copying. */
#include "plugin/manifest.h"

#include "base/embed.h"
#include "base/file.h"
#include "json/limits.h"
#include "plugin/limits.h"
#include "plugin/plugin.h"

UAR_EMBED(uar_manifest_schema, "src/plugin/plugin.schema.json");

uar_str uar_plugin_schema(void)
{
	return UAR_EMBEDDED(uar_manifest_schema);
}

static uar_str text(const struct uar_json *j, const char *key)
{
	return uar_json_str(uar_json_get(j, uar_str_c(key)), UAR_STR(""));
}

/* The schema says so, too, but not in words that help. */
static uar_err check_kind(const struct uar_json *j, struct uar_error *error)
{
	bool command = uar_json_get(j, UAR_STR("command")) != NULL;
	bool library = uar_json_get(j, UAR_STR("library")) != NULL;
	uar_str id = text(j, "id");

	if (uar_str_starts(id, UAR_STR("uar.")) || uar_str_starts(id, UAR_STR("backend."))) {
		uar_error_where(error, "/id");
		return uar_error_set(error, UAR_ESCHEMA,
				     "ids that begin with uar. or backend. are taken");
	}
	if (command != library || j->kind != UAR_JSON_OBJECT)
		return UAR_OK;
	uar_error_where(error, command ? "/library" : "/command");
	return uar_error_set(error, UAR_ESCHEMA, "%s",
			     command ? "a plugin has a command or a library, not both"
				     : "a command is required, or a library");
}

static int64_t seconds(const struct uar_json *j, const char *key, double fallback)
{
	return (int64_t)(uar_json_double(uar_json_get(j, uar_str_c(key)), fallback) * 1e6);
}

/* The strings of an array as C strings, NULL-terminated; NULL: out of memory. */
static const char **words(struct uar_arena *a, const struct uar_json *list)
{
	const char **out = uar_arena_alloc(a, ((list ? list->count : 0) + 1) * sizeof *out);
	size_t n = 0;

	for (const struct uar_json *w = uar_json_at(list, 0); w && out; w = w->next) {
		out[n] = uar_arena_str(a, w->text).p;
		if (!out[n++])
			return NULL;
	}
	return out;
}

/* A schema of the last entry. */
static uar_err compile(struct uar_manifest *m, const struct uar_json *j, const char *key,
		       uar_str *out_text, struct uar_schema **out, struct uar_error *error)
{
	const struct uar_json *document = uar_json_get(j, uar_str_c(key));
	struct uar_error why = { .code = UAR_OK };
	struct uar_buf b = uar_buf_make(UAR_LIMIT_PLUGIN_MANIFEST);
	uar_err e;

	if (!document)
		return UAR_OK;
	uar_json_write(&b, document);
	*out_text = b.err ? UAR_STR_NONE : uar_arena_str(&m->arena, uar_buf_str(&b));
	e = b.err ? b.err : out_text->p ? UAR_OK : UAR_ENOMEM;
	uar_buf_fini(&b);
	if (!e)
		e = uar_schema_create(document, NULL, out, &why);
	why.code = e;
	if (!e)
		return UAR_OK;
	uar_error_where(error, "/entries/%zu/%s%s", m->entry_count - 1, key, why.where);
	return uar_error_set(error, e, "%s", uar_error_text(&why));
}

static uar_err read_entry(struct uar_manifest *m, const struct uar_json *j,
			  struct uar_manifest_entry *out, struct uar_error *error)
{
	struct uar_entry_info *info = &out->info;
	uar_err e;

	info->plugin_id = m->id;
	info->version = m->version;
	info->entry_id = text(j, "id");
	info->title = text(j, "title");
	info->description = text(j, "description");
	info->timeout_us = seconds(j, "timeout_seconds", 0);
	info->restart_fails = !uar_str_is(text(j, "restart"), "retry");
	info->concurrency = m->concurrency * m->processes;
	e = compile(m, j, "args_schema", &info->args_schema, &out->args, error);
	if (!e)
		e = compile(m, j, "result_schema", &info->result_schema, &out->result, error);
	return e;
}

static uar_err read_entries(struct uar_manifest *m, const struct uar_json *list,
			    struct uar_error *error)
{
	m->entries = uar_arena_alloc(&m->arena, list->count * sizeof *m->entries);
	if (!m->entries)
		return UAR_ENOMEM;
	for (const struct uar_json *j = list->first; j; j = j->next) {
		struct uar_manifest_entry *entry = &m->entries[m->entry_count];
		uar_err e;

		if (uar_manifest_entry(m, text(j, "id"))) {
			uar_error_where(error, "/entries/%zu/id", m->entry_count);
			return uar_error_set(error, UAR_EEXISTS, "two entries have this id");
		}
		m->entry_count++;
		e = read_entry(m, j, entry, error);
		if (e)
			return e;
	}
	return UAR_OK;
}

static uar_err fill(struct uar_manifest *m, const struct uar_json *j, const char *dir,
		    struct uar_error *error)
{
	m->id = text(j, "id");
	m->version = text(j, "version");
	m->title = text(j, "title");
	m->description = text(j, "description");
	m->concurrency = (uint32_t)uar_json_int(uar_json_get(j, UAR_STR("concurrency")), 1);
	m->processes = (uint32_t)uar_json_int(uar_json_get(j, UAR_STR("processes")), 1);
	m->runs_per_process =
		(uint64_t)uar_json_int(uar_json_get(j, UAR_STR("runs_per_process")), 0);
	m->start_timeout_us = seconds(j, "start_timeout_seconds", 10);
	m->answer_timeout_us = seconds(j, "answer_timeout_seconds", 30);
	m->cancel_grace_us = seconds(j, "cancel_grace_seconds", 5);
	m->idle_us = seconds(j, "idle_seconds", 300);
	m->command = words(&m->arena, uar_json_get(j, UAR_STR("command")));
	m->env = words(&m->arena, uar_json_get(j, UAR_STR("env")));
	m->dir = uar_arena_str(&m->arena, uar_str_c(dir)).p;
	if (uar_json_get(j, UAR_STR("library"))) {
		m->library = uar_arena_str(&m->arena, text(j, "library")).p;
		if (!m->library)
			return UAR_ENOMEM;
	}
	if (!m->command || !m->env || !m->dir)
		return UAR_ENOMEM;
	return read_entries(m, uar_json_get(j, UAR_STR("entries")), error);
}

uar_err uar_manifest_read(uar_str source, const char *dir, struct uar_manifest *out,
			  struct uar_error *error)
{
	struct uar_manifest m = { .id = { NULL, 0 } };
	const struct uar_json *j;
	uar_err e;

	uar_arena_init(&m.arena, 0);
	source = uar_arena_str(&m.arena, source);
	e = source.p ? uar_json_parse(source, NULL, &m.arena, &j, error) : UAR_ENOMEM;
	if (!e)
		e = check_kind(j, error);
	if (!e)
		e = uar_schema_check_text(uar_plugin_schema(), j, error);
	if (!e)
		e = fill(&m, j, dir, error);
	if (e) {
		uar_manifest_fini(&m);
		return e;
	}
	*out = m;
	return UAR_OK;
}

uar_err uar_manifest_load(const char *dir, struct uar_manifest *out, struct uar_error *error)
{
	struct uar_buf path = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct uar_buf b = uar_buf_make(UAR_LIMIT_PLUGIN_MANIFEST);
	struct uar_error why = { 0 };
	uar_err e;

	uar_buf_printf(&path, "%s/plugin.json", dir);
	e = path.err ? path.err : uar_file_read(path.p, &b, &why);
	if (e)
		uar_error_set(error, e, "%s: %s", path.p ? path.p : dir, uar_error_text(&why));
	else
		e = uar_manifest_read(uar_buf_str(&b), dir, out, error);
	uar_buf_fini(&path);
	uar_buf_fini(&b);
	return e;
}

void uar_manifest_fini(struct uar_manifest *m)
{
	for (size_t i = 0; i < m->entry_count; i++) {
		uar_schema_destroy(m->entries[i].args);
		uar_schema_destroy(m->entries[i].result);
	}
	uar_arena_fini(&m->arena);
}

struct uar_manifest_entry *uar_manifest_entry(struct uar_manifest *m, uar_str entry_id)
{
	for (size_t i = 0; i < m->entry_count; i++)
		if (uar_str_eq(m->entries[i].info.entry_id, entry_id))
			return &m->entries[i];
	return NULL;
}
