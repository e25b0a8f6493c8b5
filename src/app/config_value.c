/* config_value.c - one value: from text or JSON to C and back to text.
 *
 * Messages quote what was wrong, except for a secret, of which nothing is
 * ever quoted. */
#include "app/config.h"

#include <stdio.h>

#include "app/model_settings.h"
#include "app/providers.h"
#include "base/address.h"
#include "http/limits.h"
#include "loop/guard.h"
#include "mcp/settings.h"
#include "peer/peer.h"
#include "tool/hook.h"
#include "tool/secret.h"
#include "work/limits.h"
#include "work/work.h"

static const int64_t SECOND = 1000000;

static void *field_of(const struct uar_config_row *row, struct uar_config *c)
{
	return (char *)c + row->offset;
}

static const void *const_field_of(const struct uar_config_row *row, const struct uar_config *c)
{
	return (const char *)c + row->offset;
}

const char *uar_config_type_name(enum uar_config_type type)
{
	static const char *const names[] = {
		[UAR_CONFIG_STRING] = "string", [UAR_CONFIG_SECRET] = "secret",
		[UAR_CONFIG_INT] = "number",	[UAR_CONFIG_BOOL] = "boolean",
		[UAR_CONFIG_ENUM] = "choice",	[UAR_CONFIG_DURATION] = "duration",
		[UAR_CONFIG_LIST] = "list",	[UAR_CONFIG_TABLE] = "table",
	};

	return names[type];
}

/* --- forms of text --------------------------------------------------------- */
static bool is_text(uar_str s)
{
	for (size_t i = 0; i < s.n; i++)
		if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
			return false;
	return uar_utf8_valid(s);
}

static bool is_host(uar_str s)
{
	return s.n > 0 && uar_str_is_visible(s) && uar_str_find(s, '/') == s.n &&
	       uar_str_find(s, '*') == s.n && uar_str_find(s, '@') == s.n;
}

static bool is_address(uar_str s)
{
	struct uar_address a;

	return uar_address_read_bound(s, &a);
}

static bool is_url(uar_str s)
{
	size_t scheme = uar_str_starts(s, UAR_STR("http://"))	 ? 7
			: uar_str_starts(s, UAR_STR("https://")) ? 8
								 : 0;

	return s.n == 0 || (scheme && s.n > scheme && s.p[scheme] != '/' && uar_str_is_visible(s) &&
			    uar_str_find(s, '?') == s.n && uar_str_find(s, '#') == s.n &&
			    uar_str_find(s, '@') == s.n);
}

static bool is_origin(uar_str s)
{
	size_t colon = uar_str_find(s, ':');

	return colon > 0 && uar_str_starts(uar_str_from(s, colon), UAR_STR("://")) &&
	       is_host(uar_str_from(s, colon + 3));
}

static bool is_id(uar_str s)
{
	return uar_str_is_id(s);
}

static bool is_peer(uar_str s)
{
	uar_str name, url;

	return uar_peer_address_read(s, &name, &url);
}

static bool is_peer_name(uar_str s)
{
	return s.n == 0 || uar_peer_name_valid(s);
}

static const struct {
	const char *name, *words;
	bool (*good)(uar_str s);
} forms[] = {
	{ "address", "IPV4:PORT, localhost:PORT, [IPV6]:PORT or unix:PATH", is_address },
	{ "path", "a path", is_text },
	{ "text", "text without control characters", is_text },
	{ "url", "http://HOST or https://HOST, with a path if need be", is_url },
	{ "id", "1 to 128 visible ASCII characters", is_id },
	{ "token", "visible ASCII characters", uar_str_is_visible },
	{ "hosts", "host names, separated by commas", is_host },
	{ "peers", "NAME=URL items, separated by commas", is_peer },
	{ "peer_name", "at most 31 of a-z, 0-9, _ and -", is_peer_name },
	{ "networks", "hosts or networks (10.0.0.0/8), separated by commas", uar_guard_is_entry },
	{ "origins", "SCHEME://HOST origins, separated by commas", is_origin },
};

static size_t form_of(const struct uar_config_row *row)
{
	size_t i = 0;

	while (i + 1 < ARRAY_LEN(forms) && strcmp(forms[i].name, row->form))
		i++;
	return i;
}

/* --- errors ---------------------------------------------------------------- */
static uar_err refuse(const struct uar_config_row *row, uar_str text, struct uar_error *error)
{
	struct uar_buf expected = uar_buf_make(UAR_LIMIT_ERROR_TEXT);
	uar_str shown = uar_str_utf8_prefix(text, 60);
	bool quotable = row->type != UAR_CONFIG_SECRET && is_text(shown);

	uar_config_expected(row, &expected);
	if (!quotable)
		uar_error_set(error, UAR_ECONFIG, "%s: the value is not %s, expected %.*s",
			      row->key, uar_utf8_valid(text) ? "valid" : "UTF-8",
			      UAR_FMT(uar_buf_str(&expected)));
	else
		uar_error_set(error, UAR_ECONFIG, "%s: \"%.*s%s\" is not valid, expected %.*s",
			      row->key, UAR_FMT(shown), shown.n < text.n ? "..." : "",
			      UAR_FMT(uar_buf_str(&expected)));
	uar_buf_fini(&expected);
	return UAR_ECONFIG;
}

/* The system's limit is nothing that one would guess. */
static uar_err refuse_socket(const struct uar_config_row *row, uar_str path,
			     struct uar_error *error)
{
	return uar_error_set(error, UAR_ECONFIG,
			     "%s: the path of a Unix socket has at most %d bytes, this one has %zu",
			     row->key, UAR_SOCKET_PATH - 1, path.n);
}

static uar_str low_of(const struct uar_config_row *row)
{
	return uar_str_n(row->form, (size_t)(strstr(row->form, "..") - row->form));
}

static uar_str high_of(const struct uar_config_row *row)
{
	return uar_str_c(strstr(row->form, "..") + 2);
}

void uar_config_expected(const struct uar_config_row *row, struct uar_buf *out)
{
	switch (row->type) {
	case UAR_CONFIG_STRING:
	case UAR_CONFIG_SECRET:
	case UAR_CONFIG_LIST: uar_buf_printf(out, "%s", forms[form_of(row)].words); break;
	case UAR_CONFIG_TABLE: uar_buf_printf(out, "a JSON object"); break;
	case UAR_CONFIG_INT:
		uar_buf_printf(out, "a number from %.*s to %.*s", UAR_FMT(low_of(row)),
			       UAR_FMT(high_of(row)));
		break;
	case UAR_CONFIG_BOOL: uar_buf_printf(out, "true or false"); break;
	case UAR_CONFIG_ENUM:
		uar_buf_printf(out, "one of ");
		for (const char *p = row->form; *p; p++)
			if (*p == '|')
				uar_buf_printf(out, ", ");
			else
				uar_buf_add_char(out, *p);
		break;
	case UAR_CONFIG_DURATION:
		uar_buf_printf(out, "seconds, or a number with ms, s, m, h or d, from %.*s to %.*s",
			       UAR_FMT(low_of(row)), UAR_FMT(high_of(row)));
		break;
	}
}

/* --- numbers and durations --------------------------------------------------- */
static bool read_int(uar_str s, int64_t *out)
{
	uint64_t v;

	if (uar_str_u64(s, &v) || v > INT64_MAX)
		return false;
	*out = (int64_t)v;
	return true;
}

static const struct {
	const char *suffix;
	int64_t us;
} units[] = { { "ms", 1000 },
	      { "s", 1000000 },
	      { "m", 60000000 },
	      { "h", 3600000000LL },
	      { "d", 86400000000LL } };

static int64_t unit_of(uar_str suffix)
{
	if (suffix.n == 0)
		return SECOND;
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (uar_str_is(suffix, units[i].suffix))
			return units[i].us;
	return 0;
}

static size_t count_digits(uar_str s)
{
	size_t n = 0;

	while (n < s.n && s.p[n] >= '0' && s.p[n] <= '9')
		n++;
	return n;
}

/* ".25" as 25 of 100; the bytes it has, 0 when there is none, more than s has when it is none. */
static size_t read_fraction(uar_str s, int64_t *part, int64_t *scale)
{
	size_t n = s.n && s.p[0] == '.' ? 1 + count_digits(uar_str_from(s, 1)) : 0;

	if (n == 1 || n > 7)
		return s.n + 1;
	for (size_t i = 1; i < n; i++) {
		*part = *part * 10 + (s.p[i] - '0');
		*scale *= 10;
	}
	return n;
}

bool uar_config_read_duration(uar_str s, int64_t *out)
{
	size_t digits = count_digits(s);
	int64_t whole = 0, unit, part = 0, scale = 1;
	size_t end = digits + read_fraction(uar_str_from(s, digits), &part, &scale);

	if (end == 0 || end > s.n || (digits && !read_int(uar_str_n(s.p, digits), &whole)))
		return false;
	unit = unit_of(uar_str_from(s, end));
	if (unit == 0 || whole > INT64_MAX / unit - 1)
		return false;
	*out = whole * unit + part * unit / scale;
	return true;
}

static bool read_number(const struct uar_config_row *row, uar_str s, int64_t *out)
{
	return row->type == UAR_CONFIG_INT ? read_int(s, out) : uar_config_read_duration(s, out);
}

static bool in_range(const struct uar_config_row *row, int64_t v)
{
	int64_t low = 0, high = 0;

	return read_number(row, low_of(row), &low) && read_number(row, high_of(row), &high) &&
	       v >= low && v <= high;
}

static int64_t limit_named(const char *name)
{
	static const struct {
		const char *name;
		int64_t value;
	} limits[] = {
#define LIMIT(NAME) { #NAME, UAR_LIMIT_##NAME }
		LIMIT(HTTP_BODY),
		LIMIT(HTTP_CONNECTIONS),
#undef LIMIT
	};

	for (size_t i = 0; i < ARRAY_LEN(limits); i++)
		if (!strcmp(limits[i].name, name))
			return limits[i].value;
	return -1; /* no row's range has it, so the tests find it */
}

static uar_err parse_number(const struct uar_config_row *row, uar_str s, int64_t *out,
			    struct uar_error *error)
{
	int64_t v;

	if (s.n && s.p[0] == '@' && s.p == row->initial)
		v = limit_named(s.p + 1);
	else if (!read_number(row, s, &v))
		return refuse(row, s, error);
	if (!in_range(row, v))
		return refuse(row, s, error);
	*out = v;
	return UAR_OK;
}

/* --- the other types ----------------------------------------------------------- */
static uar_err parse_bool(const struct uar_config_row *row, uar_str s, bool *out,
			  struct uar_error *error)
{
	static const char *const yes[] = { "true", "1", "yes", "on" };
	static const char *const no[] = { "false", "0", "no", "off" };

	for (size_t i = 0; i < ARRAY_LEN(yes); i++)
		if (uar_str_is(s, yes[i]) || uar_str_is(s, no[i])) {
			*out = uar_str_is(s, yes[i]);
			return UAR_OK;
		}
	return refuse(row, s, error);
}

static uar_err parse_enum(const struct uar_config_row *row, uar_str s, int *out,
			  struct uar_error *error)
{
	uar_str rest = uar_str_c(row->form);

	for (int i = 0; rest.n; i++)
		if (uar_str_eq(uar_str_cut(rest, '|', &rest), s)) {
			*out = i;
			return UAR_OK;
		}
	return refuse(row, s, error);
}

static uar_str enum_name(const struct uar_config_row *row, int value)
{
	uar_str rest = uar_str_c(row->form), name = UAR_STR("");

	for (int i = 0; i <= value; i++)
		name = uar_str_cut(rest, '|', &rest);
	return name;
}

static uar_err parse_string(const struct uar_config_row *row, uar_str s, struct uar_arena *a,
			    const char **out, struct uar_error *error)
{
	bool is_socket = strcmp(row->form, "address") == 0 && uar_str_starts(s, UAR_STR("unix:"));
	uar_str copy;

	if (is_socket && s.n - 5 >= UAR_SOCKET_PATH)
		return refuse_socket(row, uar_str_from(s, 5), error);
	if (!forms[form_of(row)].good(s) || memchr(s.n ? s.p : "", 0, s.n))
		return refuse(row, s, error);
	copy = uar_arena_str(a, s);
	if (!copy.p)
		return uar_error_set(error, UAR_ENOMEM, "out of memory");
	*out = copy.p;
	return UAR_OK;
}

/* Items come one after another; `more` says how many there may be. */
struct list_builder {
	const struct uar_config_row *row;
	struct uar_arena *a;
	const char **items;
	size_t count;
};

static uar_err list_begin(struct list_builder *b, size_t more, struct uar_error *error)
{
	b->items = uar_arena_alloc(b->a, (more + 1) * sizeof *b->items);
	return b->items ? UAR_OK : uar_error_set(error, UAR_ENOMEM, "out of memory");
}

static uar_err list_add(struct list_builder *b, uar_str item, struct uar_error *error)
{
	uar_err e = parse_string(b->row, item, b->a, &b->items[b->count], error);

	if (!e)
		b->count++;
	return e;
}

static uar_err parse_list(const struct uar_config_row *row, uar_str s, struct uar_arena *a,
			  struct uar_config_list *out, struct uar_error *error)
{
	struct list_builder b = { .row = row, .a = a };
	size_t more = 1;
	uar_err e;

	for (size_t i = 0; i < s.n; i++)
		more += s.p[i] == ',';
	e = list_begin(&b, more, error);
	for (uar_str rest = uar_str_trim(s); !e && rest.n;)
		e = list_add(&b, uar_str_trim(uar_str_cut(rest, ',', &rest)), error);
	if (!e)
		*out = (struct uar_config_list){ b.items, b.count };
	return e;
}

static uar_err table_error(struct uar_error *error, const char *name, const struct uar_error *found)
{
	return uar_error_set(error, UAR_ECONFIG, "%s: %s%s%s", name, found->where,
			     found->where[0] ? ": " : "", uar_error_text(found));
}

static uar_err check_grants(uar_str text, struct uar_error *error)
{
	struct uar_secrets *secrets = NULL;
	struct uar_error found = { 0 };
	uar_err e = uar_secrets_create(NULL, text, &secrets, &found);

	uar_secrets_destroy(secrets);
	return e ? table_error(error, "secret_grants", &found) : UAR_OK;
}

static uar_err check_permissions(uar_str text, struct uar_error *error)
{
	struct uar_host_policy *policy = NULL;
	struct uar_error found = { 0 };
	uar_err e = uar_host_policy_read(text, &policy, &found);

	uar_host_policy_destroy(policy);
	return e ? table_error(error, "permissions", &found) : UAR_OK;
}

static uar_err check_hooks(uar_str text, struct uar_error *error)
{
	struct uar_hooks *hooks = NULL;
	struct uar_error found = { 0 };
	uar_err e = uar_hooks_read(text, &hooks, &found);

	uar_hooks_destroy(hooks);
	return e ? table_error(error, "hooks", &found) : UAR_OK;
}

/* Each table has a reader of its own. */
static uar_err read_table(const char *form, uar_str text, struct uar_arena *a,
			  struct uar_error *error)
{
	struct uar_provider_settings providers;
	struct uar_model_policy routing;
	struct uar_price_settings prices;
	struct uar_mcp_settings servers;

	if (strcmp(form, "routing") == 0)
		return uar_routing_setting_read(text, a, &routing, error);
	if (strcmp(form, "prices") == 0)
		return uar_prices_setting_read(text, a, &prices, error);
	if (strcmp(form, "mcp_servers") == 0)
		return uar_mcp_settings_read(text, NULL, a, &servers, error);
	if (strcmp(form, "secret_grants") == 0)
		return check_grants(text, error);
	if (strcmp(form, "hooks") == 0)
		return check_hooks(text, error);
	if (strcmp(form, "permissions") == 0)
		return check_permissions(text, error);
	return uar_providers_read(text, a, &providers, error);
}

/* What was read is thrown away: the text is kept. */
static uar_err parse_table(const struct uar_config_row *row, uar_str text, struct uar_arena *a,
			   const char **out, struct uar_error *error)
{
	struct uar_arena scratch;
	uar_str copy;
	uar_err e;

	uar_arena_init(&scratch, 0);
	e = read_table(row->form, text, &scratch, error);
	uar_arena_fini(&scratch);
	if (e)
		return e;
	copy = uar_arena_str(a, text);
	if (!copy.p)
		return UAR_ENOMEM;
	*out = copy.p;
	return UAR_OK;
}

uar_err uar_config_parse(const struct uar_config_row *row, uar_str text, struct uar_arena *a,
			 struct uar_config *c, struct uar_error *error)
{
	void *field = field_of(row, c);

	switch (row->type) {
	case UAR_CONFIG_STRING:
	case UAR_CONFIG_SECRET: return parse_string(row, text, a, field, error);
	case UAR_CONFIG_INT:
	case UAR_CONFIG_DURATION: return parse_number(row, text, field, error);
	case UAR_CONFIG_BOOL: return parse_bool(row, text, field, error);
	case UAR_CONFIG_ENUM: return parse_enum(row, text, field, error);
	case UAR_CONFIG_LIST: return parse_list(row, text, a, field, error);
	case UAR_CONFIG_TABLE: return parse_table(row, text, a, field, error);
	}
	return UAR_EINTERNAL;
}

static bool fits(enum uar_config_type type, enum uar_json_kind kind)
{
	switch (type) {
	case UAR_CONFIG_STRING:
	case UAR_CONFIG_SECRET:
	case UAR_CONFIG_ENUM: return kind == UAR_JSON_STRING;
	case UAR_CONFIG_INT: return kind == UAR_JSON_INT;
	case UAR_CONFIG_BOOL: return kind == UAR_JSON_BOOL;
	case UAR_CONFIG_DURATION:
		return kind == UAR_JSON_STRING || kind == UAR_JSON_INT || kind == UAR_JSON_DOUBLE;
	case UAR_CONFIG_LIST: return kind == UAR_JSON_ARRAY;
	case UAR_CONFIG_TABLE: return kind == UAR_JSON_OBJECT;
	}
	return false;
}

static uar_err parse_array(const struct uar_config_row *row, const struct uar_json *j,
			   struct uar_arena *a, struct uar_config_list *out,
			   struct uar_error *error)
{
	struct list_builder b = { .row = row, .a = a };
	uar_err e = list_begin(&b, j->count, error);

	for (const struct uar_json *item = j->first; !e && item; item = item->next) {
		if (item->kind != UAR_JSON_STRING)
			return uar_error_set(error, UAR_ECONFIG,
					     "%s: an item is a %s, expected strings", row->key,
					     uar_json_kind_name(item->kind));
		e = list_add(&b, item->text, error);
	}
	if (!e)
		*out = (struct uar_config_list){ b.items, b.count };
	return e;
}

uar_err uar_config_parse_json(const struct uar_config_row *row, const struct uar_json *j,
			      struct uar_arena *a, struct uar_config *c, struct uar_error *error)
{
	if (!fits(row->type, j->kind)) {
		struct uar_buf expected = uar_buf_make(UAR_LIMIT_ERROR_TEXT);

		uar_config_expected(row, &expected);
		uar_error_set(error, UAR_ECONFIG, "%s: found a JSON %s, expected %.*s", row->key,
			      uar_json_kind_name(j->kind), UAR_FMT(uar_buf_str(&expected)));
		uar_buf_fini(&expected);
		return UAR_ECONFIG;
	}
	if (j->kind == UAR_JSON_ARRAY)
		return parse_array(row, j, a, field_of(row, c), error);
	if (j->kind == UAR_JSON_BOOL)
		return uar_config_parse(row, j->b ? UAR_STR("true") : UAR_STR("false"), a, c,
					error);
	return uar_config_parse(row, j->text, a, c, error);
}

/* --- back to text ------------------------------------------------------------- */
static bool same_list(const struct uar_config_list *a, const struct uar_config_list *b)
{
	if (a->count != b->count)
		return false;
	for (size_t i = 0; i < a->count; i++)
		if (strcmp(a->items[i], b->items[i]))
			return false;
	return true;
}

bool uar_config_same(const struct uar_config_row *row, const struct uar_config *a,
		     const struct uar_config *b)
{
	const void *x = const_field_of(row, a), *y = const_field_of(row, b);

	switch (row->type) {
	case UAR_CONFIG_STRING:
	case UAR_CONFIG_SECRET:
	case UAR_CONFIG_TABLE: return !strcmp(*(const char *const *)x, *(const char *const *)y);
	case UAR_CONFIG_INT:
	case UAR_CONFIG_DURATION: return *(const int64_t *)x == *(const int64_t *)y;
	case UAR_CONFIG_BOOL: return *(const bool *)x == *(const bool *)y;
	case UAR_CONFIG_ENUM: return *(const int *)x == *(const int *)y;
	case UAR_CONFIG_LIST: return same_list(x, y);
	}
	return false;
}

/* The largest unit that divides it. */
static void format_duration(int64_t us, struct uar_buf *out)
{
	for (size_t i = ARRAY_LEN(units); i-- > 0;)
		if (us >= units[i].us && us % units[i].us == 0) {
			uar_buf_printf(out, "%lld%s", (long long)(us / units[i].us),
				       units[i].suffix);
			return;
		}
	if (us % SECOND == 0)
		uar_buf_printf(out, "%llds", (long long)(us / SECOND));
	else
		uar_buf_printf(out, "%lld.%06llds", (long long)(us / SECOND),
			       (long long)(us % SECOND));
}

void uar_config_format(const struct uar_config_row *row, const struct uar_config *c,
		       struct uar_buf *out)
{
	const void *field = const_field_of(row, c);
	const struct uar_config_list *list = field;

	switch (row->type) {
	case UAR_CONFIG_STRING:
	case UAR_CONFIG_TABLE: uar_buf_printf(out, "%s", *(const char *const *)field); break;
	case UAR_CONFIG_SECRET:
		uar_buf_printf(out, "%s", **(const char *const *)field ? "<set>" : "<unset>");
		break;
	case UAR_CONFIG_INT: uar_buf_printf(out, "%lld", (long long)*(const int64_t *)field); break;
	case UAR_CONFIG_BOOL:
		uar_buf_printf(out, "%s", *(const bool *)field ? "true" : "false");
		break;
	case UAR_CONFIG_ENUM: uar_buf_add_str(out, enum_name(row, *(const int *)field)); break;
	case UAR_CONFIG_DURATION: format_duration(*(const int64_t *)field, out); break;
	case UAR_CONFIG_LIST:
		for (size_t i = 0; i < list->count; i++)
			uar_buf_printf(out, "%s%s", i ? ", " : "", list->items[i]);
		break;
	}
}
