/* config_print.c - the settings as people and programs read them. */
#include "app/config.h"

#include <stdio.h>

#include "app/limits.h"
#include "app/text.h"

static int key_width(void)
{
	size_t width = 0;

	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++) {
		size_t n = strlen(uar_config_rows[i].key);

		width = n > width ? n : width;
	}
	return (int)width;
}

void uar_config_print(const struct uar_config_set *set, struct uar_buf *out)
{
	struct uar_buf value = uar_buf_make(UAR_LIMIT_CONFIG_BYTES);
	struct uar_buf shown = uar_buf_make(UAR_LIMIT_CONFIG_BYTES);
	int width = key_width();

	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++) {
		const struct uar_config_row *row = &uar_config_rows[i];

		uar_buf_clear(&value);
		uar_buf_clear(&shown);
		uar_config_format(row, &set->value, &value);
		uar_text_clean(&shown, uar_buf_str(&value), false);
		uar_buf_printf(out, "%-*s  %-24.*s  ", width, row->key,
			       UAR_FMT(uar_buf_str(&shown)));
		uar_text_clean(out, uar_str_c(set->origin[i].where), false);
		uar_buf_add_char(out, '\n');
	}
	uar_buf_fini(&shown);
	uar_buf_fini(&value);
}

static void put_value(struct uar_jw *w, const struct uar_config_row *row,
		      const struct uar_config *c, struct uar_buf *scratch)
{
	const void *field = (const char *)c + row->offset;
	const struct uar_config_list *list = field;

	switch (row->type) {
	case UAR_CONFIG_INT: uar_jw_int(w, "value", *(const int64_t *)field); break;
	case UAR_CONFIG_DURATION:
		uar_jw_double(w, "value", (double)*(const int64_t *)field / 1e6);
		break;
	case UAR_CONFIG_BOOL: uar_jw_bool(w, "value", *(const bool *)field); break;
	case UAR_CONFIG_LIST:
		uar_jw_arr(w, "value");
		for (size_t i = 0; i < list->count; i++)
			uar_jw_cstr(w, NULL, list->items[i]);
		uar_jw_close(w);
		break;
	case UAR_CONFIG_SECRET: uar_jw_bool(w, "set", **(const char *const *)field != 0); break;
	case UAR_CONFIG_TABLE:
	case UAR_CONFIG_STRING:
	case UAR_CONFIG_ENUM:
		uar_buf_clear(scratch);
		uar_config_format(row, c, scratch);
		uar_jw_str(w, "value", uar_buf_str(scratch));
		break;
	}
}

void uar_config_print_json(const struct uar_config_set *set, struct uar_buf *out)
{
	static const char *const sources[] = { "default", "file", "environment", "flag" };
	struct uar_buf scratch = uar_buf_make(UAR_LIMIT_CONFIG_BYTES);
	struct uar_jw w = uar_jw_begin(out);

	uar_jw_obj(&w, NULL);
	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++) {
		const struct uar_config_row *row = &uar_config_rows[i];

		uar_jw_obj(&w, row->key);
		put_value(&w, row, &set->value, &scratch);
		uar_jw_cstr(&w, "source", sources[set->origin[i].source]);
		uar_jw_cstr(&w, "where", set->origin[i].where);
		uar_jw_bool(&w, "reloadable", row->reload);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	if (uar_jw_end(&w) == UAR_OK)
		uar_buf_add_char(out, '\n');
	uar_buf_fini(&scratch);
}

static void print_initial(const struct uar_config_row *row, struct uar_buf *out)
{
	struct uar_config c;
	struct uar_arena a;

	memset(&c, 0, sizeof c);
	uar_arena_init(&a, 0);
	if (*row->initial && row->type != UAR_CONFIG_SECRET &&
	    uar_config_parse(row, uar_str_c(row->initial), &a, &c, NULL) == UAR_OK) {
		uar_buf_printf(out, "      default ");
		uar_config_format(row, &c, out);
		uar_buf_add_char(out, '\n');
	}
	uar_arena_fini(&a);
}

/* Words folded at 76 columns behind six spaces. */
static void print_folded(const char *text, struct uar_buf *out)
{
	enum { WIDTH = 76 };
	size_t column = 0;

	for (uar_str rest = uar_str_c(text); rest.n;) {
		uar_str word = uar_str_cut(rest, ' ', &rest);

		if (column && column + 1 + word.n > WIDTH) {
			uar_buf_add_char(out, '\n');
			column = 0;
		}
		uar_buf_add_str(out, column ? UAR_STR(" ") : UAR_STR("      "));
		uar_buf_add_str(out, word);
		column += (column ? 1 : 6) + word.n;
	}
	uar_buf_add_char(out, '\n');
}

void uar_config_print_help(struct uar_buf *out)
{
	uar_buf_printf(
		out, "Each setting is a flag (--log-level debug), an environment variable\n"
		     "(UAR_LOG_LEVEL=debug) or a member of the configuration file\n"
		     "({\"log_level\": \"debug\"}); a flag beats the environment, which beats the\n"
		     "file. The file is --config FILE, else $UAR_CONFIG, else config.json in the\n"
		     "data directory. A secret may be kept in a file of its own: --token-file,\n"
		     "UAR_TOKEN_FILE, \"token_file\". Settings marked * follow a SIGHUP.\n\n");
	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++) {
		const struct uar_config_row *row = &uar_config_rows[i];

		uar_buf_printf(out, "  %s%s  (", row->key, row->reload ? "*" : "");
		uar_config_expected(row, out);
		uar_buf_printf(out, ")\n");
		print_folded(row->doc, out);
		print_initial(row, out);
		if (*row->alias)
			uar_buf_printf(out, "      also read from $%s\n", row->alias);
	}
}
