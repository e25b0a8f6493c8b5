/* wire_create.c - makes a provider from its address, key and headers. */
#include "base/alloc.h"
#include "loop/limits.h"
#include "model/limits.h"
#include "model/wire_int.h"

static const struct uar_dialect *const dialects[UAR_DIALECT_COUNT] = {
	[UAR_DIALECT_OPENAI_CHAT] = &uar_dialect_openai_chat,
	[UAR_DIALECT_OPENAI_RESPONSES] = &uar_dialect_openai_responses,
	[UAR_DIALECT_ANTHROPIC] = &uar_dialect_anthropic,
};

static const char *const always[] = { "Content-Type: application/json",
				      "Accept: text/event-stream, application/json" };

void uar_wire_free(struct uar_wire *m)
{
	uar_reply_scratch_fini(&m->scratch);
	for (char **h = m->headers; h && *h; h++)
		uar_free(*h);
	uar_free(m->headers);
	uar_free(m->url);
	uar_free(m->list_url);
	uar_free(m->embed_url);
	uar_free(m->provider);
	uar_free(m);
}

/* --- what is refused --------------------------------------------------------------- */

static bool is_visible(uar_str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] <= ' ' || s.p[i] > '~')
			return false;
	return true;
}

/* "Name: value" of one line. */
static bool is_header(uar_str line)
{
	uar_str value, name = uar_str_cut(line, ':', &value);

	if (!name.n || name.n == line.n || !is_visible(name))
		return false;
	for (size_t i = 0; i < value.n; i++)
		if ((unsigned char)value.p[i] < ' ' && value.p[i] != '\t')
			return false;
	return true;
}

static uar_err check_options(const struct uar_model_wire_options *o, struct uar_error *error)
{
	uar_str url = uar_str_c(o->base_url), key = uar_str_c(o->api_key);
	size_t n = 0;

	if (!uar_str_starts(url, UAR_STR("http://")) && !uar_str_starts(url, UAR_STR("https://")))
		return uar_error_set(error, UAR_ECONFIG,
				     "the provider's address is neither http nor https");
	if (url.n + key.n > UAR_LIMIT_CLIENT_URL / 2)
		return uar_error_set(error, UAR_ECONFIG, "the address or key is too long");
	if (!is_visible(key))
		return uar_error_set(error, UAR_ECONFIG,
				     "the provider's key has a character that no key has");
	for (; o->headers && o->headers[n]; n++)
		if (!is_header(uar_str_c(o->headers[n])))
			return uar_error_set(error, UAR_ECONFIG,
					     "a header of the provider is not \"Name: value\"");
	if (n > UAR_LIMIT_MODEL_HEADERS)
		return uar_error_set(error, UAR_ECONFIG, "the provider has more than %d headers",
				     UAR_LIMIT_MODEL_HEADERS);
	return UAR_OK;
}

/* --- its strings -------------------------------------------------------------------- */

static char *join(uar_str a, uar_str b, uar_str c)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CLIENT_URL);
	char *out = NULL;
	size_t n;

	uar_buf_add_str(&text, a);
	uar_buf_add_str(&text, b);
	uar_buf_add_str(&text, c);
	if (!text.err)
		out = uar_buf_take(&text, &n);
	uar_buf_fini(&text);
	return out;
}

/* The path goes before a query, as Azure's "?api-version=" is. A base that ends with the
 * version already has it once. */
static char *make_url(uar_str base, const char *path)
{
	uar_str query, before = uar_str_cut(base, '?', &query);

	query = uar_str_from(base, before.n);
	while (uar_str_ends(before, UAR_STR("/")))
		before.n--;
	if (uar_str_starts(uar_str_c(path), UAR_STR("/v1/")) &&
	    uar_str_ends(before, UAR_STR("/v1")))
		before.n -= 3;
	return join(before, uar_str_c(path), query);
}

/* A key alone, but for "Authorization: Bearer KEY". */
static char *make_key_header(const struct uar_model_wire_options *o, const char *name,
			     uar_str *out_key)
{
	bool bearer = uar_str_eq_nocase(uar_str_c(name), UAR_STR("Authorization"));
	uar_str key = uar_str_c(o->api_key);
	char *line = join(uar_str_c(name), bearer ? UAR_STR(": Bearer ") : UAR_STR(": "), key);

	if (line)
		*out_key = uar_str_n(line + strlen(line) - key.n, key.n);
	return line;
}

static bool add_headers(struct uar_wire *m, const char *const *lines, size_t n, size_t *count)
{
	for (size_t i = 0; i < n && lines[i]; i++) {
		m->headers[*count] = join(uar_str_c(lines[i]), UAR_STR(""), UAR_STR(""));
		if (!m->headers[*count])
			return false;
		++*count;
	}
	return true;
}

static bool make_headers(struct uar_wire *m, const struct uar_model_wire_options *o)
{
	const char *name = o->key_header ? o->key_header : m->dialect->key_header;
	size_t n = 0;

	m->headers = uar_zalloc((ARRAY_LEN(always) + 2 * UAR_LIMIT_MODEL_HEADERS + 2) *
				sizeof *m->headers);
	if (!m->headers || !add_headers(m, always, ARRAY_LEN(always), &n))
		return false;
	if (m->dialect->headers &&
	    !add_headers(m, m->dialect->headers, UAR_LIMIT_MODEL_HEADERS, &n))
		return false;
	if (o->headers && !add_headers(m, o->headers, UAR_LIMIT_MODEL_HEADERS, &n))
		return false;
	if (o->api_key && *o->api_key && !(m->headers[n] = make_key_header(o, name, &m->key)))
		return false;
	return true;
}

/* OpenAI itself has renamed members that other servers know by their first names alone. */
static bool is_legacy(uar_str url)
{
	static const char *const hosts[] = { "api.openai.com", ".openai.azure.com",
					     ".services.ai.azure.com",
					     ".cognitiveservices.azure.com" };
	uar_str host = uar_str_from(url, uar_str_find(url, '/') + 2);

	host.n = uar_str_find(host, '/');
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++)
		if (uar_str_ends(host, uar_str_c(hosts[i])))
			return false;
	return true;
}

uar_err uar_model_wire_create(const struct uar_model_wire_options *o, struct uar_model **out,
			      struct uar_error *error)
{
	struct uar_wire *m;
	uar_err e = check_options(o, error);

	if (e)
		return e;
	m = uar_zalloc(sizeof *m);
	if (!m)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	m->base.ops = &uar_wire_ops;
	m->dialect = dialects[o->dialect];
	m->client = o->client;
	m->sched = uar_client_sched(o->client);
	m->legacy = is_legacy(uar_str_c(o->base_url));
	uar_list_init(&m->calls);
	uar_list_init(&m->embeddings);
	uar_list_init(&m->listings);
	uar_reply_scratch_init(&m->scratch);
	m->url = make_url(uar_str_c(o->base_url), m->dialect->path);
	m->list_url = make_url(uar_str_c(o->base_url), m->dialect->list_path);
	if (o->dialect != UAR_DIALECT_ANTHROPIC)
		m->embed_url = make_url(uar_str_c(o->base_url), "/embeddings");
	m->provider = join(uar_str_c(o->provider), UAR_STR(""), UAR_STR(""));
	m->base.provider = m->provider;
	if (!m->url || !m->list_url || !m->provider || !make_headers(m, o)) {
		uar_wire_free(m);
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	}
	*out = &m->base;
	return UAR_OK;
}
