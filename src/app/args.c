/* args.c - sorts the words of a command line; see args.h. */
#include "app/args.h"

#include <stdio.h>

#include "app/limits.h"
#include "app/nearest.h"

const struct uar_opt_row uar_opt_rows[UAR_OPT_COUNT] = {
#define O(NAME, LONG, SHORT, VALUE, DOC) { LONG, VALUE, DOC, SHORT },
#include "app/cli.def"
#undef O
};

struct parser {
	const struct uar_verb *verb;
	int argc, at;
	char *const *argv;
	struct uar_args *out;
	struct uar_error *error;
};

bool uar_verb_takes(const struct uar_verb *verb, enum uar_opt opt)
{
	if (opt == UAR_OPT_CONFIG || opt == UAR_OPT_STRICT)
		return verb->settings != UAR_VERB_NONE;
	return verb->options & UINT64_C(1) << opt;
}

bool uar_verb_takes_setting(const struct uar_verb *verb, const struct uar_config_row *row)
{
	if (verb->settings != UAR_VERB_CLIENT)
		return verb->settings == UAR_VERB_ALL;
	return !strcmp(row->key, "data") || !strcmp(row->key, "token");
}

/* --- what was meant? ----------------------------------------------------------- */
static uar_err unknown_option(struct parser *p, uar_str name)
{
	struct uar_nearest n;
	uar_str shown = uar_str_utf8_prefix(name, 60);
	char hint[100] = "";

	if (uar_config_find(name, NULL))
		return uar_error_set(p->error, UAR_EINVALID,
				     "`uar %s` does not take the setting --%.*s", p->verb->name,
				     UAR_FMT(shown));
	uar_nearest_init(&n, name);
	for (size_t i = 0; i < UAR_OPT_COUNT; i++)
		if (uar_verb_takes(p->verb, (enum uar_opt)i))
			uar_nearest_consider(&n, uar_opt_rows[i].name);
	for (size_t i = 0; i < UAR_CONFIG_COUNT; i++)
		if (uar_verb_takes_setting(p->verb, &uar_config_rows[i]))
			uar_nearest_consider(&n, uar_config_rows[i].key);
	if (n.best)
		snprintf(hint, sizeof hint, ", did you mean --%s?", n.best);
	for (char *c = hint; *c; c++)
		if (*c == '_')
			*c = '-';
	return uar_error_set(p->error, UAR_EINVALID, "`uar %s` has no option --%.*s%s",
			     p->verb->name, UAR_FMT(shown), hint);
}

/* --- options and settings --------------------------------------------------------- */
/* `inline_value` is what followed '=', .p NULL when there was none. */
static uar_err value_of(struct parser *p, const char *name, uar_str inline_value, const char **out)
{
	if (inline_value.p) {
		*out = inline_value.p;
		return UAR_OK;
	}
	if (p->at + 1 >= p->argc)
		return uar_error_set(p->error, UAR_EINVALID, "%s needs a value", name);
	*out = p->argv[++p->at];
	return UAR_OK;
}

static uar_err take_option(struct parser *p, enum uar_opt opt, uar_str inline_value)
{
	const struct uar_opt_row *row = &uar_opt_rows[opt];
	bool off = uar_str_is(inline_value, "false");
	char name[40];

	snprintf(name, sizeof name, "--%s", row->name);
	if (*row->value)
		return value_of(p, name, inline_value, &p->out->option[opt]);
	if (inline_value.p && !off && !uar_str_is(inline_value, "true"))
		return uar_error_set(p->error, UAR_EINVALID, "%s takes no value but true or false",
				     name);
	p->out->option[opt] = off ? NULL : "";
	return UAR_OK;
}

/* A switch may stand alone; only the two plain words are taken as its value. */
static bool stands_alone(const struct parser *p)
{
	const char *next = p->at + 1 < p->argc ? p->argv[p->at + 1] : "";

	return strcmp(next, "true") && strcmp(next, "false");
}

static uar_err take_setting(struct parser *p, struct uar_config_flag flag, uar_str inline_value)
{
	struct uar_args *out = p->out;
	char name[80];
	uar_err e = UAR_OK;

	snprintf(name, sizeof name, "--%s%s", flag.row->key, flag.in_file ? "-file" : "");
	for (char *c = name; *c; c++)
		if (*c == '_')
			*c = '-';
	if (out->flags == UAR_LIMIT_CLI_FLAGS)
		return uar_error_set(p->error, UAR_ETOOBIG, "too many settings");
	if (flag.row->type == UAR_CONFIG_BOOL && !inline_value.p && stands_alone(p))
		flag.value = "true";
	else
		e = value_of(p, name, inline_value, &flag.value);
	if (!e)
		out->flag[out->flags++] = flag;
	return e;
}

static uar_err take_long(struct parser *p, const char *text)
{
	uar_str given = uar_str_c(text), rest = UAR_STR_NONE, name;
	struct uar_config_flag flag = { 0 };

	name = uar_str_n(text, uar_str_find(given, '='));
	if (name.n < given.n)
		rest = uar_str_from(given, name.n + 1);
	if (uar_str_is(name, "help")) {
		p->out->help = true;
		return UAR_OK;
	}
	for (size_t i = 0; i < UAR_OPT_COUNT; i++)
		if (uar_verb_takes(p->verb, (enum uar_opt)i) &&
		    uar_str_is(name, uar_opt_rows[i].name))
			return take_option(p, (enum uar_opt)i, rest);
	flag.row = uar_config_find(name, &flag.in_file);
	if (!flag.row || !uar_verb_takes_setting(p->verb, flag.row))
		return unknown_option(p, name);
	return take_setting(p, flag, rest);
}

static uar_err take_letter(struct parser *p, const char *text)
{
	if (!strcmp(text, "h")) {
		p->out->help = true;
		return UAR_OK;
	}
	for (size_t i = 0; i < UAR_OPT_COUNT; i++)
		if (uar_verb_takes(p->verb, (enum uar_opt)i) && uar_opt_rows[i].letter == *text &&
		    !text[1])
			return take_option(p, (enum uar_opt)i, UAR_STR_NONE);
	return uar_error_set(p->error, UAR_EINVALID, "`uar %s` has no option -%.20s", p->verb->name,
			     text);
}

static uar_err take_word(struct parser *p, const char *text)
{
	struct uar_args *out = p->out;

	if (out->words >= p->verb->max || out->words == UAR_LIMIT_CLI_WORDS)
		return uar_error_set(p->error, UAR_EINVALID,
				     "`uar %s` does not know what to do with \"%.60s\"",
				     p->verb->name, text);
	out->word[out->words++] = text;
	return UAR_OK;
}

static uar_err take_any(struct parser *p, bool *only_words)
{
	const char *text = p->argv[p->at];

	if (*only_words || text[0] != '-' || !text[1])
		return take_word(p, text);
	if (!strcmp(text, "--")) {
		*only_words = true;
		return UAR_OK;
	}
	return text[1] == '-' ? take_long(p, text + 2) : take_letter(p, text + 1);
}

uar_err uar_args_parse(const struct uar_verb *verb, int argc, char *const *argv,
		       struct uar_args *out, struct uar_error *error)
{
	struct parser p = { verb, argc, 0, argv, out, error };
	bool only_words = false;
	uar_err e = UAR_OK;

	memset(out, 0, sizeof *out);
	for (; !e && p.at < argc; p.at++)
		e = take_any(&p, &only_words);
	if (!e && !out->help && out->words < verb->min)
		return uar_error_set(error, UAR_EINVALID, "usage: uar %s %s", verb->name,
				     verb->usage);
	return e;
}
