/* template.c - texts with {{NAME}} in them. */
#include "agent/prompt.h"

/* The place of two braces in s, s.n: there are none. */
static size_t find_braces(uar_str s, char brace)
{
	for (size_t i = 0; i + 1 < s.n; i++)
		if (s.p[i] == brace && s.p[i + 1] == brace)
			return i;
	return s.n;
}

uar_err uar_template_render(uar_str text, uar_template_fn *value, void *ctx, struct uar_buf *out,
			    struct uar_error *error)
{
	while (text.n) {
		size_t open = find_braces(text, '{');
		uar_str rest = uar_str_from(text, open + 2), name;
		size_t end = find_braces(rest, '}');

		uar_buf_add(out, text.p, open);
		if (open == text.n)
			break;
		if (end == rest.n)
			return uar_error_set(error, UAR_ESCHEMA, "{{ has no }} behind it");
		name = uar_str_trim(uar_str_n(rest.p, end));
		if (value(ctx, name, out))
			return uar_error_set(error, UAR_ESCHEMA,
					     "{{%.*s}} is no variable: declare it below "
					     "prompt.variables",
					     (int)(name.n < 64 ? name.n : 64), name.p);
		text = uar_str_from(rest, end + 2);
	}
	return out->err;
}
