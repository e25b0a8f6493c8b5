/* source_yaml.c - YAML to JSON by the events of libyaml.
 *
 * One document. Plain scalars are null, booleans and numbers where JSON has these words, else
 * text, as in YAML 1.2: `no` is a text. Anchors, aliases and tags are refused, so that a short
 * file cannot become a long one. */
#include <yaml.h>

#include "agent/source_int.h"
#include "json/jw.h"
#include "json/limits.h"

struct level {
	bool object;
	size_t count; /* keys and values of an object, items of an array */
};

struct converter {
	struct uar_buf *out;
	struct uar_error *error;
	size_t line; /* of out, from 0 */
	struct level levels[UAR_LIMIT_JSON_DEPTH];
	size_t depth;
	bool done; /* the document has its value */
};

static uar_err refuse_at(struct converter *c, const yaml_event_t *ev, const char *text)
{
	uar_error_where(c->error, "line %zu", ev->start_mark.line + 1);
	return uar_error_set(c->error, UAR_ESYNTAX, "%s", text);
}

/* What is written next is on this line. */
static void go_to_line(struct converter *c, size_t line)
{
	for (; c->line < line; c->line++)
		uar_buf_add_char(c->out, '\n');
}

static bool is_next_key(const struct converter *c)
{
	return c->depth && c->levels[c->depth - 1].object && c->levels[c->depth - 1].count % 2 == 0;
}

/* The comma or colon before a value. */
static void separate(struct converter *c, size_t line)
{
	struct level *l = c->depth ? &c->levels[c->depth - 1] : NULL;

	if (l && l->object && l->count % 2)
		uar_buf_add_char(c->out, ':');
	else if (l && l->count)
		uar_buf_add_char(c->out, ',');
	if (l)
		l->count++;
	go_to_line(c, line);
}

/* Behind the digits at *i; false: there are none. */
static bool skip_digits(uar_str s, size_t *i)
{
	size_t start = *i;

	while (*i < s.n && s.p[*i] >= '0' && s.p[*i] <= '9')
		++*i;
	return *i > start;
}

static bool is_at(uar_str s, size_t i, const char *chars)
{
	return i < s.n && strchr(chars, s.p[i]) && s.p[i];
}

/* As JSON writes numbers: no zero before other digits. */
static bool is_number(uar_str s)
{
	size_t i = is_at(s, 0, "-"), start = i;

	if (!skip_digits(s, &i) || (s.p[start] == '0' && i > start + 1))
		return false;
	if (is_at(s, i, ".")) {
		i++;
		if (!skip_digits(s, &i))
			return false;
	}
	if (is_at(s, i, "eE")) {
		i++;
		i += is_at(s, i, "+-");
		if (!skip_digits(s, &i))
			return false;
	}
	return i == s.n;
}

/* The JSON of a plain scalar that is no text; empty: it is one. */
static uar_str plain_word(uar_str s)
{
	static const struct {
		const char *yaml, *json;
	} words[] = {
		{ "", "null" },	      { "~", "null" },	    { "null", "null" },
		{ "Null", "null" },   { "NULL", "null" },   { "true", "true" },
		{ "True", "true" },   { "TRUE", "true" },   { "false", "false" },
		{ "False", "false" }, { "FALSE", "false" },
	};

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (uar_str_is(s, words[i].yaml))
			return uar_str_c(words[i].json);
	return is_number(s) ? s : UAR_STR("");
}

static uar_err put_text(struct converter *c, uar_str s)
{
	struct uar_jw w = uar_jw_begin(c->out);

	uar_jw_str(&w, NULL, s);
	return uar_jw_end(&w);
}

static uar_err put_scalar(struct converter *c, const yaml_event_t *ev)
{
	uar_str s = { (const char *)ev->data.scalar.value, ev->data.scalar.length };
	bool key = is_next_key(c);
	uar_str word = UAR_STR("");

	if (ev->data.scalar.anchor || ev->data.scalar.tag)
		return refuse_at(c, ev,
				 "anchors and tags are not used here; write the value itself");
	if (ev->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !key)
		word = plain_word(s);
	separate(c, ev->start_mark.line);
	if (!word.n)
		return put_text(c, s);
	uar_buf_add_str(c->out, word);
	return UAR_OK;
}

static uar_err open_level(struct converter *c, const yaml_event_t *ev, bool object)
{
	const yaml_char_t *anchor =
		object ? ev->data.mapping_start.anchor : ev->data.sequence_start.anchor;
	const yaml_char_t *tag = object ? ev->data.mapping_start.tag : ev->data.sequence_start.tag;

	if (anchor || tag)
		return refuse_at(c, ev,
				 "anchors and tags are not used here; write the value itself");
	if (is_next_key(c))
		return refuse_at(c, ev, "a key must be a text");
	if (c->depth == ARRAY_LEN(c->levels))
		return refuse_at(c, ev, "it is nested too deeply");
	separate(c, ev->start_mark.line);
	uar_buf_add_char(c->out, object ? '{' : '[');
	c->levels[c->depth++] = (struct level){ object, 0 };
	return UAR_OK;
}

static uar_err close_level(struct converter *c)
{
	uar_buf_add_char(c->out, c->levels[--c->depth].object ? '}' : ']');
	return UAR_OK;
}

static uar_err put_event(struct converter *c, const yaml_event_t *ev)
{
	switch (ev->type) {
	case YAML_SCALAR_EVENT: return put_scalar(c, ev);
	case YAML_SEQUENCE_START_EVENT: return open_level(c, ev, false);
	case YAML_MAPPING_START_EVENT: return open_level(c, ev, true);
	case YAML_SEQUENCE_END_EVENT:
	case YAML_MAPPING_END_EVENT: return close_level(c);
	case YAML_ALIAS_EVENT:
		return refuse_at(c, ev, "aliases are not used here; write the value itself");
	case YAML_DOCUMENT_START_EVENT:
		if (c->done)
			return refuse_at(c, ev, "a file holds one document; make another file");
		c->done = true;
		return UAR_OK;
	case YAML_NO_EVENT:
	case YAML_STREAM_START_EVENT:
	case YAML_STREAM_END_EVENT:
	case YAML_DOCUMENT_END_EVENT: break;
	}
	return UAR_OK;
}

static uar_err refuse_syntax(const yaml_parser_t *p, struct uar_error *error)
{
	if (p->error == YAML_MEMORY_ERROR)
		return UAR_ENOMEM;
	uar_error_where(error, "line %zu", p->problem_mark.line + 1);
	return uar_error_set(error, UAR_ESYNTAX, "%s%s%s", p->problem ? p->problem : "not YAML",
			     p->context ? ", " : "", p->context ? p->context : "");
}

static uar_err convert(struct converter *c, yaml_parser_t *p)
{
	uar_err e = UAR_OK;
	bool end = false;

	while (!e && !end) {
		yaml_event_t ev;

		if (!yaml_parser_parse(p, &ev))
			return refuse_syntax(p, c->error);
		end = ev.type == YAML_STREAM_END_EVENT;
		e = put_event(c, &ev);
		if (!e)
			e = c->out->err;
		yaml_event_delete(&ev);
	}
	return e;
}

uar_err uar_source_yaml(uar_str text, struct uar_buf *out, struct uar_error *error)
{
	struct converter c = { .out = out, .error = error };
	yaml_parser_t p;
	uar_err e;

	if (!yaml_parser_initialize(&p))
		return UAR_ENOMEM;
	yaml_parser_set_input_string(&p, (const unsigned char *)text.p, text.n);
	yaml_parser_set_encoding(&p, YAML_UTF8_ENCODING);
	e = convert(&c, &p);
	yaml_parser_delete(&p);
	return e;
}
