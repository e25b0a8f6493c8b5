/* words.c - a failure in more words, for a server that only its own machine can reach.
 *
 * The words of an agent about its failure are shown if nothing else says why: its credentials were
 * refused, its program did not begin, or its turn failed without a cause. The message names every
 * other cause, and the words of the provider stay out, because they may repeat what was sent. The
 * text becomes part of the log, so what looks like a secret or an address is masked. */
#include "bridge/bridge_int.h"

#include <strings.h>

enum { WORDS = 400, LONG = 16 };

static bool in_token(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-' || c == '+' || c == '=';
}

/* Long with letters and digits mixed, or as keys begin. */
static bool is_secret(uar_str token)
{
	bool digit = false, letter = false;

	if (uar_str_starts(token, UAR_STR("sk-")))
		return true;
	for (size_t i = 0; i < token.n; i++) {
		digit |= token.p[i] >= '0' && token.p[i] <= '9';
		letter |= token.p[i] > '9';
	}
	return token.n >= LONG && digit && letter;
}

static bool names_a_secret(uar_str name)
{
	static const char *const words[] = { "KEY",    "TOKEN", "SECRET",     "PASSWORD",
					     "PASSWD", "AUTH",	"CREDENTIAL", "COOKIE" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		for (size_t at = 0; at + strlen(words[i]) <= name.n; at++)
			if (!strncasecmp(name.p + at, words[i], strlen(words[i])))
				return true;
	return false;
}

/* How many bytes at the start of `text` are the value of a variable with such a name. */
static size_t known_secret(char *const *env, uar_str text)
{
	for (; env && *env; env++) {
		uar_str value, name = uar_str_cut(uar_str_c(*env), '=', &value);

		if (value.n >= 6 && uar_str_starts(text, value) && names_a_secret(name))
			return value.n;
	}
	return 0;
}

static size_t until_space(uar_str s)
{
	size_t n = 0;

	while (n < s.n && (unsigned char)s.p[n] > ' ')
		n++;
	return n;
}

static size_t token_length(uar_str s)
{
	size_t n = 0;

	while (n < s.n && in_token(s.p[n]))
		n++;
	return n;
}

/* --- values that a name in front of them gives away --- */

static size_t blanks(uar_str s)
{
	size_t n = 0;

	while (n < s.n && (s.p[n] == ' ' || s.p[n] == '\t'))
		n++;
	return n;
}

/* A value up to what ends one, without the full stop of its sentence. */
static size_t value_length(uar_str s)
{
	size_t n = 0;

	while (n < s.n && (unsigned char)s.p[n] > ' ' && !memchr("\"'`,;&)]}<>", s.p[n], 12))
		n++;
	while (n && (s.p[n - 1] == '.' || s.p[n - 1] == ':'))
		n--;
	return n;
}

/* "authentication", "Token": letters alone, at most the first one a capital. */
static bool is_word(uar_str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (!(s.p[i] >= 'a' && s.p[i] <= 'z') && (i || !(s.p[i] >= 'A' && s.p[i] <= 'Z')))
			return false;
	return true;
}

static bool has_digit(uar_str s)
{
	for (size_t i = 0; i < s.n; i++)
		if (s.p[i] >= '0' && s.p[i] <= '9')
			return true;
	return false;
}

/* Where in `text` the value of a name begins that stands at its start; 0: there is none. */
static size_t value_of(uar_str text, uar_str name, char *out_between)
{
	size_t at = name.n;

	at += at < text.n && (text.p[at] == '"' || text.p[at] == '\'');
	at += blanks(uar_str_from(text, at));
	if (at == text.n || (text.p[at] != '=' && text.p[at] != ':'))
		return 0;
	*out_between = text.p[at++];
	at += blanks(uar_str_from(text, at));
	return at + (at < text.n && (text.p[at] == '"' || text.p[at] == '\''));
}

/* "Bearer abc.def", "key=abcd", "api-key: abcd1": the bytes that are shown, and those that are
 * not. Behind a colon there may be prose, too. */
static size_t given_away(uar_str text, size_t *out_shown)
{
	uar_str rest, name = uar_str_cut(uar_str_n(text.p, token_length(text)), '=', &rest);
	bool scheme = uar_str_eq_nocase(name, UAR_STR("bearer")) ||
		      uar_str_eq_nocase(name, UAR_STR("basic"));
	size_t at = scheme ? name.n + blanks(uar_str_from(text, name.n)) : 0, n;
	char between = ' ';

	if (!scheme && name.n && names_a_secret(name))
		at = value_of(text, name, &between);
	if (at <= name.n)
		return 0;
	n = value_length(uar_str_from(text, at));
	text = uar_str_n(text.p + at, n);
	if ((between == ' ' && is_word(text)) || (between == ':' && (n < 4 || !has_digit(text))))
		return 0;
	*out_shown = at;
	return n;
}

/* How many bytes of `text` must not be shown, 0: none, behind those that may be. */
static size_t masked_length(char *const *env, uar_str text, size_t *out_shown)
{
	size_t n = known_secret(env, text);

	*out_shown = 0;
	if (n)
		return n;
	if (uar_str_starts(text, UAR_STR("http://")) || uar_str_starts(text, UAR_STR("https://")))
		return until_space(text);
	n = given_away(text, out_shown);
	if (n)
		return n;
	n = token_length(text);
	return n && is_secret(uar_str_n(text.p, n)) ? n : 0;
}

void bridge_mask(char *const *env, uar_str text, struct uar_buf *out)
{
	bool space = true; /* blanks, line ends and control characters become one blank */

	while (text.n && !out->err && out->n < WORDS) {
		size_t shown, n = masked_length(env, text, &shown), token = token_length(text);
		unsigned char c = (unsigned char)text.p[0];

		if (n) {
			uar_buf_add(out, text.p, shown);
			uar_buf_add_str(out, UAR_STR("***"));
			n += shown;
		} else if (c <= ' ' || c == 0x7f) {
			if (!space)
				uar_buf_add(out, " ", 1);
			n = 1;
		} else {
			n = token ? token : 1;
			uar_buf_add(out, text.p, n);
		}
		space = c <= ' ' || c == 0x7f;
		text = uar_str_from(text, n);
	}
}

uar_str bridge_words(struct uar_agent_call *c, const uaa_error *error, uar_str message)
{
	uaa_cause cause = uaa_error_cause(error);
	uar_str words = bridge_str(uaa_error_words(error)), said;
	uar_str withheld = bridge_str(uaa_error_withheld(error)), text;
	struct uar_buf clean = uar_buf_make(4 * WORDS);

	if (!c->b->o.local ||
	    (cause != UAA_CAUSE_AUTH && cause != UAA_CAUSE_CRASH && cause != UAA_CAUSE_TURN))
		return message;
	bridge_mask(c->b->o.env, words, &clean);
	said = clean.n ? uar_str_utf8_prefix(uar_str_trim(uar_buf_str(&clean)), WORDS)
		       : UAR_STR("");
	text = uar_arena_printf(&c->scratch, "%.*s%s%.*s%s%.*s", UAR_FMT(message),
				said.n ? "; the agent says: " : "", UAR_FMT(said),
				withheld.n ? "; variables that it was not given: " : "",
				UAR_FMT(withheld));
	uar_buf_fini(&clean);
	return text.p ? text : message;
}
