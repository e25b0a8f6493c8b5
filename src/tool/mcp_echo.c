/* mcp_echo.c - keys of an MCP server that it gives back: hidden in what its calls tell.
 *
 * Which values are keys is said by the names of its headers and variables. */
#include "event/secret_name.h"
#include "tool/limits.h"
#include "tool/mcp_int.h"

enum { LEAST = 8 }; /* bytes of a key; less would hide innocent text */

static bool is_key_name(uar_str name)
{
	return uar_is_secret_name(name) ||
	       (name.n >= 3 && uar_str_eq_nocase(uar_str_from(name, name.n - 3), UAR_STR("key")));
}

static void note(struct uar_secrets_used *keys, uar_str name, uar_str value)
{
	if (is_key_name(name) && value.n >= LEAST)
		uar_secrets_note(keys, value);
}

/* Of "Bearer KEY" the key, which may come back alone. */
static uar_str without_scheme(uar_str value)
{
	size_t space = uar_str_find(value, ' ');

	return space < value.n ? uar_str_from(value, space + 1) : value;
}

void mcp_keys_note(const struct uar_mcp_server *s, struct uar_secrets_used *keys)
{
	uar_str name, value;

	for (size_t i = 0; s->env && s->env[i]; i++) {
		name = uar_str_cut(uar_str_c(s->env[i]), '=', &value);
		note(keys, name, value);
	}
	for (size_t i = 0; s->headers && s->headers[i]; i++) {
		name = uar_str_cut(uar_str_c(s->headers[i]), ':', &value);
		note(keys, name, without_scheme(uar_str_trim(value)));
	}
}

void mcp_hide_keys(const struct uar_secrets_used *keys, struct mcp_hidden *h,
		   struct uar_tool_result *r)
{
	size_t in_output, in_message;

	h->output = uar_buf_make(4 * r->output.n + 64);
	h->message = uar_buf_make(4 * r->message.n + 64);
	if (!keys->values.n)
		return;
	in_output = uar_secrets_hide(keys, r->output, &h->output);
	in_message = uar_secrets_hide(keys, r->message, &h->message);
	r->secrets = r->ok ? in_output : in_message;
	if (h->output.err || h->message.err) {
		*r = (struct uar_tool_result){ .category = UAR_STR("execution"),
					       .message = UAR_STR("the result cannot be kept") };
		return;
	}
	if (r->output.n)
		r->output = uar_buf_str(&h->output);
	r->message = uar_buf_str(&h->message);
}

void mcp_hidden_fini(struct mcp_hidden *h)
{
	uar_buf_fini(&h->output);
	uar_buf_fini(&h->message);
}
