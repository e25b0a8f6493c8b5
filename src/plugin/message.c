/* message.c - methods in a table; each reads its parameters and checks their bounds. */
#include "plugin/message.h"

#include "base/base64.h"
#include "event/limits.h"
#include "json/limits.h"
#include "plugin/limits.h"

enum { STAGE_CHARS = 128, MESSAGE_CHARS = 512, METRICS_BYTES = 512 };

struct reader {
	const struct uar_json *params;
	struct uar_arena *arena;
	struct uar_message *out;
	struct uar_error *error;
};

static const struct uar_json *get(const struct reader *r, const char *key)
{
	const struct uar_json *j = uar_json_get(r->params, uar_str_c(key));

	return j && j->kind != UAR_JSON_NULL ? j : NULL;
}

static uar_err refuse(const struct reader *r, uar_err e, const char *key, const char *why)
{
	uar_error_where(r->error, "/params/%s", key);
	return uar_error_set(r->error, e, "%s %s", key, why);
}

static size_t chars_of(uar_str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.n; i++)
		n += ((unsigned char)s.p[i] & 0xc0) != 0x80;
	return n;
}

/* An optional string of at most so many characters. */
static uar_err read_text(const struct reader *r, const char *key, size_t chars, uar_str *out)
{
	const struct uar_json *j = get(r, key);

	if (!j)
		return UAR_OK;
	if (j->kind != UAR_JSON_STRING)
		return refuse(r, UAR_EINVALID, key, "must be a string");
	if (chars_of(j->text) > chars)
		return refuse(r, UAR_EINVALID, key, "is too long");
	*out = j->text;
	return UAR_OK;
}

/* An optional object as text, bounded. */
static uar_err read_object(const struct reader *r, const char *key, size_t bytes, uar_str *out)
{
	const struct uar_json *j = get(r, key);
	struct uar_buf b = uar_buf_make(bytes + 1);

	if (!j)
		return UAR_OK;
	if (j->kind != UAR_JSON_OBJECT)
		return refuse(r, UAR_EINVALID, key, "must be an object");
	uar_json_write(&b, j); /* what was read, not what stood there: a key may be there twice */
	if (!b.err && b.n <= bytes)
		*out = uar_arena_str(r->arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out->p ? UAR_OK : refuse(r, UAR_ETOOBIG, key, "is too large");
}

static bool is_number(const struct uar_json *j)
{
	return j->kind == UAR_JSON_INT || j->kind == UAR_JSON_DOUBLE;
}

static uar_err read_number(const struct reader *r, const char *key, double max, double *out)
{
	const struct uar_json *j = get(r, key);
	double v = uar_json_double(j, -1);

	*out = -1;
	if (!j)
		return UAR_OK;
	if (!is_number(j) || !(v >= 0 && v <= max))
		return refuse(r, UAR_EINVALID, key, "is out of range");
	*out = v;
	return UAR_OK;
}

static uar_err read_count(const struct reader *r, const char *key, int64_t *out)
{
	const struct uar_json *j = get(r, key);

	*out = -1;
	if (!j)
		return UAR_OK;
	if (j->kind != UAR_JSON_INT || j->i < 0)
		return refuse(r, UAR_EINVALID, key, "must be a whole number, not negative");
	*out = j->i;
	return UAR_OK;
}

static uar_err read_progress(struct reader *r)
{
	struct uar_progress *p = &r->out->progress;
	uar_err e = read_number(r, "progress", 1, &p->value);

	if (!e)
		e = read_number(r, "eta_seconds", 1e12, &p->eta_seconds);
	if (!e)
		e = read_count(r, "step", &p->step);
	if (!e)
		e = read_count(r, "step_total", &p->step_total);
	if (!e)
		e = read_text(r, "stage", STAGE_CHARS, &p->stage);
	if (!e)
		e = read_text(r, "message", MESSAGE_CHARS, &p->message);
	if (!e)
		e = read_object(r, "metrics", METRICS_BYTES, &p->metrics);
	if (!e && p->step >= 0 && p->step_total >= 0 && p->step > p->step_total)
		e = refuse(r, UAR_EINVALID, "step", "is beyond step_total");
	return e;
}

/* ctx.run.status: a stage with a message. */
static uar_err read_status(struct reader *r)
{
	struct uar_progress *p = &r->out->progress;
	uar_err e;

	*p = (struct uar_progress){ .value = -1, .eta_seconds = -1, .step = -1, .step_total = -1 };
	e = read_text(r, "status", STAGE_CHARS, &p->stage);
	if (!e)
		e = read_text(r, "message", MESSAGE_CHARS, &p->message);
	if (!e && !p->stage.n)
		e = refuse(r, UAR_EINVALID, "status", "is required");
	return e;
}

static uar_err read_binary(struct reader *r, uar_str text)
{
	if (text.n > (UAR_LIMIT_EXPORT_BYTES + 2) / 3 * 4)
		return refuse(r, UAR_ETOOBIG, "binary",
			      "is larger than 65536 bytes: use binary_url");
	if (uar_base64_decode(r->arena, text, &r->out->raw))
		return refuse(r, UAR_EINVALID, "binary", "is not base64");
	if (r->out->raw.n > UAR_LIMIT_EXPORT_BYTES)
		return refuse(r, UAR_ETOOBIG, "binary",
			      "is larger than 65536 bytes: use binary_url");
	return UAR_OK;
}

static uar_err read_name(const struct reader *r, const char *key, uar_str *out)
{
	const struct uar_json *j = get(r, key);

	if (!j || j->kind != UAR_JSON_STRING || !uar_str_is_id(j->text))
		return refuse(r, UAR_EINVALID, key, "must be 1 to 128 visible ASCII characters");
	*out = j->text;
	return UAR_OK;
}

static uar_err read_upload(struct reader *r)
{
	struct uar_piece *p = &r->out->piece;
	const struct uar_json *data = get(r, "data");
	uar_err e = read_name(r, "upload", &p->name);

	if (!e)
		e = read_count(r, "offset", &p->offset);
	if (e)
		return e;
	if (p->offset < 0)
		return refuse(r, UAR_EINVALID, "offset", "is required");
	if (!data || data->kind != UAR_JSON_STRING)
		return refuse(r, UAR_EINVALID, "data", "must be base64");
	if (data->text.n > (UAR_LIMIT_UPLOAD_PIECE + 2) / 3 * 4)
		return refuse(r, UAR_ETOOBIG, "data", "is larger than 262144 bytes");
	if (uar_base64_decode(r->arena, data->text, &p->bytes))
		return refuse(r, UAR_EINVALID, "data", "is not base64");
	if (p->bytes.n > UAR_LIMIT_UPLOAD_PIECE)
		return refuse(r, UAR_ETOOBIG, "data", "is larger than 262144 bytes");
	return UAR_OK;
}

/* Content that was uploaded before, with what is known about it. */
static uar_err read_uploaded(struct reader *r)
{
	struct uar_export *x = &r->out->export;
	uar_err e = read_name(r, "upload", &x->upload);

	x->content = UAR_STR("");
	if (!e)
		e = read_text(r, "sha256", 64, &x->sha256);
	if (!e && x->sha256.n && x->sha256.n != 64)
		e = refuse(r, UAR_EINVALID, "sha256", "must be 64 hexadecimal digits");
	return e ? e : read_count(r, "bytes", &x->bytes);
}

/* Would a browser that follows it execute what it says? It ignores what these skip. */
static bool is_script_url(uar_str url)
{
	static const char *const schemes[] = { "javascript:", "vbscript:" };
	char scheme[16] = "";
	size_t n = 0, i = 0;

	while (i < url.n && (unsigned char)url.p[i] <= ' ')
		i++;
	for (; i < url.n && n < sizeof scheme - 1; i++)
		if (!strchr("\t\r\n", url.p[i])) {
			scheme[n++] = url.p[i];
			if (url.p[i] == ':')
				break;
		}
	for (size_t k = 0; k < ARRAY_LEN(schemes); k++)
		if (strcasecmp(scheme, schemes[k]) == 0)
			return true;
	return false;
}

/* p NULL: it is too long. */
static uar_str json_text(struct reader *r, const struct uar_json *value)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_EXPORT_BYTES + 1);
	uar_str out;

	uar_json_write(&b, value);
	out = b.err ? UAR_STR_NONE : uar_arena_str(r->arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out;
}

static uar_err read_content(struct reader *r)
{
	static const char *const types[] = { "text", "url", "binary_url", "binary", "json" };
	struct uar_export *x = &r->out->export;
	const struct uar_json *content;
	char key[16];
	size_t i = 0;

	while (i < ARRAY_LEN(types) && !uar_str_is(x->type, types[i]))
		i++;
	if (i == ARRAY_LEN(types))
		return refuse(r, UAR_EINVALID, "type",
			      "must be text, url, binary_url, binary or json");
	snprintf(key, sizeof key, "%s", types[i]);
	if (strcmp(key, "binary_url") == 0 && get(r, "upload"))
		return read_uploaded(r);
	content = uar_json_get(r->params, uar_str_c(key));
	if (!content)
		return refuse(r, UAR_EINVALID, key, "is required");
	if (strcmp(key, "json") != 0 && content->kind != UAR_JSON_STRING)
		return refuse(r, UAR_EINVALID, key, "must be a string");
	if (strcmp(key, "binary") == 0) {
		x->content = content->text;
		return read_binary(r, content->text);
	}
	x->content = strcmp(key, "json") == 0 ? json_text(r, content) : content->text;
	if (!x->content.p)
		return refuse(r, UAR_ETOOBIG, key, "is larger than 65536 bytes");
	if (uar_str_ends(x->type, UAR_STR("url")) && is_script_url(x->content))
		return refuse(r, UAR_EINVALID, key, "must not be a script");
	if (x->content.n > UAR_LIMIT_EXPORT_BYTES)
		return refuse(r, UAR_ETOOBIG, key, "is larger than 65536 bytes");
	return UAR_OK;
}

static uar_err read_export(struct reader *r)
{
	struct uar_export *x = &r->out->export;
	uar_err e = read_text(r, "type", 32, &x->type);

	if (get(r, "export_item_id"))
		return refuse(r, UAR_EINVALID, "export_item_id",
			      "is given by UAR: items are appended, never changed");
	if (!e)
		e = read_content(r);
	if (!e)
		e = read_text(r, "label", STAGE_CHARS, &x->label);
	if (!e)
		e = read_text(r, "description", MESSAGE_CHARS, &x->description);
	if (!e)
		e = read_text(r, "mime", STAGE_CHARS, &x->mime);
	if (!e)
		e = read_text(r, "category", STAGE_CHARS, &x->category);
	if (!e && x->category.n && !uar_str_is(x->category, "user") &&
	    !uar_str_is(x->category, "system"))
		e = refuse(r, UAR_EINVALID, "category", "must be user or system");
	if (!e)
		e = read_object(r, "metadata", UAR_LIMIT_EXPORT_METADATA, &x->metadata);
	return e;
}

static uar_err read_refs(struct reader *r)
{
	const struct uar_json *refs = get(r, "result_refs");

	if (!refs)
		return UAR_OK;
	if (refs->kind != UAR_JSON_ARRAY || refs->count > UAR_LIMIT_RUN_EXPORTS)
		return refuse(r, UAR_EINVALID, "result_refs", "must be at most 10000 ids");
	for (const struct uar_json *id = refs->first; id; id = id->next)
		if (id->kind != UAR_JSON_STRING)
			return refuse(r, UAR_EINVALID, "result_refs", "must be ids");
	r->out->end.refs = refs;
	return UAR_OK;
}

static uar_err read_result(struct reader *r)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_RESULT_BYTES + 1);
	const struct uar_json *result = get(r, "result");
	uar_err e = read_refs(r);

	r->out->end.how = UAR_ENTRY_HOW_FINISHED;
	r->out->value = uar_json_get(r->params, UAR_STR("result"));
	if (e || !result)
		return e;
	uar_json_write(&b, result);
	if (b.err || b.n > UAR_LIMIT_RESULT_BYTES)
		e = refuse(r, UAR_ETOOBIG, "result", "is larger than 1000000 bytes");
	else
		r->out->end.result = uar_arena_str(r->arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return e ? e : r->out->end.result.p ? UAR_OK : UAR_ENOMEM;
}

static uar_err read_code(struct reader *r, uar_str *out)
{
	uar_str code = *out;
	uar_err e = read_text(r, "code", 63, &code);

	if (!e && !uar_str_is_id(code))
		e = refuse(r, UAR_EINVALID, "code", "must be visible ASCII");
	if (!e)
		*out = code;
	return e;
}

/* What can be read of it stays also when the rest is refused: the run has failed anyway. */
static uar_err read_error(struct reader *r)
{
	struct uar_entry_end *end = &r->out->end;
	uar_str code = UAR_STR("PLUGIN_ERROR");
	uar_err e = read_text(r, "message", 4096, &end->message);

	if (!e)
		e = read_code(r, &code);
	if (!e)
		e = read_object(r, "details", UAR_LIMIT_EXPORT_METADATA, &end->details);
	if (!e)
		e = read_refs(r);
	end->code = code;
	end->message = uar_str_utf8_prefix(end->message, 500);
	end->retryable = uar_json_bool(get(r, "retriable"), false);
	end->how = uar_str_is(code, "CANCELED") ? UAR_ENTRY_HOW_STOPPED : UAR_ENTRY_HOW_BROKE;
	return e;
}

static uar_err read_log(struct reader *r)
{
	uar_str level = UAR_STR("info");
	uar_err e = read_text(r, "level", 16, &level);

	if (!e)
		e = read_text(r, "message", UAR_LIMIT_PLUGIN_LINE, &r->out->text);
	if (!e && uar_log_level_parse(level, &r->out->level))
		e = refuse(r, UAR_EINVALID, "level", "must be debug, info, warn or error");
	r->out->text = uar_str_utf8_prefix(r->out->text, UAR_LIMIT_PLUGIN_LOG_LINE);
	return e;
}

static const struct {
	const char *name;
	enum uar_message_kind kind;
	bool needs_run;
	uar_err (*read)(struct reader *r);
} methods[] = {
	{ "run.progress", UAR_MESSAGE_PROGRESS, true, read_progress },
	{ "run.status", UAR_MESSAGE_PROGRESS, true, read_status },
	{ "run.export", UAR_MESSAGE_EXPORT, true, read_export },
	{ "run.upload", UAR_MESSAGE_UPLOAD, true, read_upload },
	{ "run.result", UAR_MESSAGE_RESULT, true, read_result },
	{ "run.error", UAR_MESSAGE_ERROR, true, read_error },
	{ "log", UAR_MESSAGE_LOG, false, read_log },
};

static uar_err read_reply(const struct uar_json *j, struct uar_message *out)
{
	out->kind = UAR_MESSAGE_REPLY;
	out->value = uar_json_get(j, UAR_STR("result"));
	out->error = uar_json_get(j, UAR_STR("error"));
	out->text = uar_json_str(uar_json_get(out->error, UAR_STR("message")), UAR_STR(""));
	if (!out->id || (!out->value && !out->error))
		return UAR_ESYNTAX;
	if (out->error)
		out->value = NULL;
	return UAR_OK;
}

static uar_err read_call(struct reader *r, uar_str method)
{
	for (size_t i = 0; i < ARRAY_LEN(methods); i++) {
		if (!uar_str_is(method, methods[i].name))
			continue;
		r->out->kind = methods[i].kind;
		if (methods[i].needs_run && !r->out->run_id.n)
			return refuse(r, UAR_EINVALID, "run_id", "is required");
		return methods[i].read(r);
	}
	return uar_error_set(r->error, UAR_ENOTIMPL, "no method is named \"%.*s\"",
			     UAR_FMT(uar_str_utf8_prefix(method, 64)));
}

/* A number that may be larger than a double holds becomes 0; ids are shorter. Returns its
 * length. */
static size_t repair_number(char *p, size_t n)
{
	enum { SURE = 18 };
	size_t len = 0;
	bool power = false;

	for (; len < n && strchr("+-.eE0123456789", p[len]) && p[len]; len++)
		power |= p[len] == 'e' || p[len] == 'E';
	if (len <= SURE && !power)
		return len;
	memset(p, ' ', len);
	p[0] = '0';
	return len;
}

/* Repairs what begins at p: a character, a number, an escape. Returns its length. */
static size_t repair_at(char *p, size_t n, bool *in_string)
{
	uint32_t c;
	size_t len = uar_utf8_decode(uar_str_n(p, n), &c);

	if (len == 0)
		*p = '?';
	if (len != 1)
		return len ? len : 1;
	*in_string ^= c == '"';
	if (!*in_string && c >= '0' && c <= '9')
		return repair_number(p, n);
	if (c != '\\' || n == 1)
		return 1;
	if (n >= 6 && p[1] == 'u' && (p[2] == 'd' || p[2] == 'D'))
		memcpy(p + 2, "fffd", 4);
	return 2;
}

/* The same line within bounds: halves of pairs, ill-formed bytes and huge numbers are
 * replaced, so that it can be told whose message it is. */
static uar_str repair(uar_str line, struct uar_arena *arena)
{
	uar_str copy = uar_arena_str(arena, line);
	char *p = (char *)(uintptr_t)copy.p; /* ours */
	bool in_string = false;

	for (size_t i = 0; copy.p && i < copy.n;)
		i += repair_at(p + i, copy.n - i, &in_string);
	return copy;
}

static uar_err read_line(uar_str line, struct uar_arena *arena, const struct uar_json **out,
			 struct uar_error *error)
{
	struct uar_json_limits limits = { .bytes = UAR_LIMIT_PLUGIN_LINE, .foreign = true };
	uar_err e = uar_json_parse(line, &limits, arena, out, error);

	if (!e)
		return UAR_OK;
	limits.depth = UAR_LIMIT_JSON_DEPTH_MAX;
	if (e != UAR_EUTF8 && e != UAR_EDEPTH && e != UAR_ENUMBER)
		return UAR_ESYNTAX;
	return uar_json_parse(repair(line, arena), &limits, arena, out, NULL) ? UAR_ESYNTAX : e;
}

uar_err uar_message_read(uar_str line, struct uar_arena *arena, struct uar_message *out,
			 struct uar_error *error)
{
	const struct uar_json *j, *method;
	struct reader r = { .arena = arena, .out = out, .error = error };
	uar_err e, bad = read_line(line, arena, &j, error);

	*out = (struct uar_message){ .kind = UAR_MESSAGE_LOG };
	if (bad == UAR_ESYNTAX || j->kind != UAR_JSON_OBJECT ||
	    !uar_str_is(uar_json_str(uar_json_get(j, UAR_STR("jsonrpc")), UAR_STR("")), "2.0"))
		return UAR_ESYNTAX;
	out->id = uar_json_get(j, UAR_STR("id"));
	if (out->id && out->id->kind == UAR_JSON_NULL)
		out->id = NULL;
	method = uar_json_get(j, UAR_STR("method"));
	if (!method)
		return bad ? UAR_ESYNTAX : read_reply(j, out);
	if (bad)
		r.error = NULL; /* has its reason */
	r.params = uar_json_get(j, UAR_STR("params"));
	out->run_id = uar_json_str(uar_json_get(r.params, UAR_STR("run_id")), UAR_STR(""));
	e = read_call(&r, uar_json_str(method, UAR_STR("")));
	return bad ? bad : e;
}
