/* era.c - which era a message belongs to, and whether it is a fair request of it.
 *
 * The order of the checks is part of the protocol: what is missing in `_meta`, then what
 * the headers contradict, then the revision, then the method. */
#include "mcp/era.h"

#include "base/base64.h"

static const char *const legacy_versions[] = {
	UAR_MCP_LEGACY, "2025-06-18", UAR_MCP_LEGACY_SILENT, "2024-11-05", "2024-10-07",
};

const struct uar_mcp_method_info uar_mcp_methods[UAR_MCP_M_COUNT] = {
#define M(NAME, METHOD, LEGACY, MODERN, NAMED, CACHED)                                             \
	[UAR_MCP_M_##NAME] = { METHOD, LEGACY, MODERN, NAMED, CACHED },
#include "mcp/method.def"
#undef M
};

const char *uar_mcp_legacy_version(size_t index)
{
	return index < ARRAY_LEN(legacy_versions) ? legacy_versions[index] : NULL;
}

bool uar_mcp_is_legacy_version(uar_str version)
{
	size_t i = 0;

	while (i < ARRAY_LEN(legacy_versions) && !uar_str_is(version, legacy_versions[i]))
		i++;
	return i < ARRAY_LEN(legacy_versions);
}

enum uar_mcp_method uar_mcp_method_of(enum uar_mcp_era era, uar_str method)
{
	size_t i = 0;

	for (; i < UAR_MCP_M_COUNT; i++) {
		const struct uar_mcp_method_info *m = &uar_mcp_methods[i];

		if ((era == UAR_MCP_ERA_MODERN ? m->modern : m->legacy) &&
		    uar_str_is(method, m->method))
			break;
	}
	return (enum uar_mcp_method)i;
}

static const struct uar_json *meta_of(const struct uar_mcp_message *m)
{
	return uar_json_get(m->params, UAR_STR("_meta"));
}

const struct uar_json *uar_mcp_meta(const struct uar_mcp_message *m, const char *name)
{
	char key[64];

	snprintf(key, sizeof key, UAR_MCP_META "%s", name);
	return uar_json_get(meta_of(m), uar_str_c(key));
}

uar_str uar_mcp_progress_token(const struct uar_mcp_message *m, struct uar_arena *arena)
{
	const struct uar_json *j = uar_json_get(meta_of(m), UAR_STR("progressToken"));
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_ID + 1);
	uar_str token = UAR_STR_NONE;

	if (j && (j->kind == UAR_JSON_STRING || j->kind == UAR_JSON_INT)) {
		uar_json_write(&b, j);
		if (!b.err)
			token = uar_arena_str(arena, uar_buf_str(&b));
	}
	uar_buf_fini(&b);
	return token;
}

enum uar_mcp_era uar_mcp_era_of(const struct uar_mcp_message *m, const struct uar_mcp_head *head)
{
	if (uar_mcp_meta(m, "protocolVersion"))
		return UAR_MCP_ERA_MODERN;
	return head && head->version.p && uar_str_cmp(head->version, UAR_STR(UAR_MCP_MODERN)) >= 0
		       ? UAR_MCP_ERA_MODERN
		       : UAR_MCP_ERA_LEGACY;
}

/* --- headers ---------------------------------------------------------------------------- */

static const uar_str sentinel = { "=?base64?", 9 }, sentinel_end = { "?=", 2 };

uar_err uar_mcp_header_decode(uar_str value, struct uar_arena *arena, uar_str *out)
{
	uar_err e = UAR_OK;

	value = uar_str_trim(value);
	if (uar_str_starts(value, sentinel) && uar_str_ends(value, sentinel_end) &&
	    value.n >= sentinel.n + sentinel_end.n) {
		uar_str inside =
			uar_str_n(value.p + sentinel.n, value.n - sentinel.n - sentinel_end.n);

		e = uar_base64_decode(arena, inside, &value);
	}
	if (!e && !uar_utf8_valid(value))
		e = UAR_EINVALID;
	if (!e)
		*out = value;
	return e;
}

static bool is_plain_header(uar_str v)
{
	for (size_t i = 0; i < v.n; i++)
		if (v.p[i] < 0x20 || v.p[i] > 0x7e)
			return false;
	return uar_str_trim(v).n == v.n && !uar_str_starts(v, sentinel);
}

uar_str uar_mcp_header_encode(uar_str value, struct uar_arena *arena)
{
	struct uar_buf b = uar_buf_make(value.n * 2 + 64);
	uar_str out;

	if (is_plain_header(value))
		return uar_arena_str(arena, value);
	uar_buf_add_str(&b, sentinel);
	uar_base64_encode(&b, value);
	uar_buf_add_str(&b, sentinel_end);
	out = b.err ? UAR_STR_NONE : uar_arena_str(arena, uar_buf_str(&b));
	uar_buf_fini(&b);
	return out;
}

/* --- the verdict ------------------------------------------------------------------------ */

static void refuse(struct uar_mcp_verdict *v, int status, int code, const char *text)
{
	v->status = status;
	v->code = code;
	v->text = text;
}

static bool envelope_is_whole(const struct uar_mcp_message *m)
{
	const struct uar_json *version = uar_mcp_meta(m, "protocolVersion");
	const struct uar_json *caps = uar_mcp_meta(m, "clientCapabilities");

	return version && version->kind == UAR_JSON_STRING && caps && caps->kind == UAR_JSON_OBJECT;
}

/* Does the header say the same as the body? An absent one does not. */
static bool header_agrees(uar_str header, uar_str body, struct uar_arena *arena)
{
	uar_str value;

	return header.p && !uar_mcp_header_decode(header, arena, &value) && uar_str_eq(value, body);
}

static const char *header_fault(const struct uar_mcp_message *m, const struct uar_mcp_head *h,
				enum uar_mcp_method method, struct uar_arena *arena)
{
	uar_str version = uar_json_str(uar_mcp_meta(m, "protocolVersion"), UAR_STR(""));
	const char *named = method < UAR_MCP_M_COUNT ? uar_mcp_methods[method].named : "";

	if (!header_agrees(h->version, version, arena))
		return "the header MCP-Protocol-Version must repeat the protocolVersion of _meta";
	if (!header_agrees(h->method, m->method, arena))
		return "the header Mcp-Method must repeat the method";
	if (named[0] && !header_agrees(h->name, uar_json_text(m->params, named), arena))
		return "the header Mcp-Name must repeat what the request names";
	return NULL;
}

static void name_versions(const struct uar_mcp_message *m, struct uar_arena *arena,
			  struct uar_mcp_verdict *v)
{
	struct uar_buf b = uar_buf_make(1024);
	struct uar_jw w = uar_jw_begin(&b);
	uar_str asked = uar_json_str(uar_mcp_meta(m, "protocolVersion"), UAR_STR(""));

	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "supported");
	uar_jw_cstr(&w, NULL, UAR_MCP_MODERN);
	uar_jw_close(&w);
	uar_jw_str(&w, "requested", uar_str_utf8_prefix(asked, 64));
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK)
		v->data = uar_arena_str(arena, uar_buf_str(&b));
	uar_buf_fini(&b);
}

static void judge_modern(const struct uar_mcp_message *m, const struct uar_mcp_head *head,
			 struct uar_arena *arena, struct uar_mcp_verdict *v)
{
	const char *fault;

	if (!envelope_is_whole(m)) {
		refuse(v, 400, UAR_MCP_INVALID_PARAMS,
		       "params._meta needs " UAR_MCP_META "protocolVersion and " UAR_MCP_META
		       "clientCapabilities");
		return;
	}
	fault = head ? header_fault(m, head, v->method, arena) : NULL;
	if (fault) {
		refuse(v, 400, UAR_MCP_HEADER_MISMATCH, fault);
	} else if (!uar_str_is(uar_json_str(uar_mcp_meta(m, "protocolVersion"), UAR_STR("")),
			       UAR_MCP_MODERN)) {
		refuse(v, 400, UAR_MCP_UNSUPPORTED_VERSION, "unsupported protocol version");
		name_versions(m, arena, v);
	}
}

void uar_mcp_judge(const struct uar_mcp_message *m, const struct uar_mcp_head *head,
		   struct uar_arena *arena, struct uar_mcp_verdict *out)
{
	struct uar_mcp_verdict v = { .era = uar_mcp_era_of(m, head), .status = 200 };

	v.method = uar_mcp_method_of(v.era, m->method);
	if (v.era == UAR_MCP_ERA_MODERN && m->kind == UAR_MCP_REQUEST)
		judge_modern(m, head, arena, &v);
	if (v.status == 200 && m->kind == UAR_MCP_REQUEST && v.method == UAR_MCP_M_COUNT)
		refuse(&v, v.era == UAR_MCP_ERA_MODERN ? 404 : 200, UAR_MCP_METHOD_NOT_FOUND,
		       "there is no such method");
	*out = v;
}
