/* words.c - a failure in more words, for a server that only its own machine can reach.
 *
 * What an agent says about its failure helps most with two causes: its credentials, and a
 * program that did not even begin. Other causes are in the words of a provider and stay out. The
 * text becomes part of the log, so what looks like a secret or an address is masked. */
#include "bridge/bridge_int.h"

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
	static const char *const words[] = { "KEY",	 "TOKEN", "SECRET",
					     "PASSWORD", "AUTH",  "CREDENTIAL" };

	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		if (memmem(name.p, name.n, words[i], strlen(words[i])))
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

/* How many bytes at the start of `text` must not be shown; 0: none. */
static size_t masked_length(char *const *env, uar_str text)
{
	size_t n = known_secret(env, text);

	if (n)
		return n;
	if (uar_str_starts(text, UAR_STR("http://")) || uar_str_starts(text, UAR_STR("https://")))
		return until_space(text);
	n = token_length(text);
	return n && is_secret(uar_str_n(text.p, n)) ? n : 0;
}

void bridge_mask(char *const *env, uar_str text, struct uar_buf *out)
{
	bool space = true; /* blanks, line ends and control characters become one blank */

	while (text.n && !out->err && out->n < WORDS) {
		size_t n = masked_length(env, text), token = token_length(text);
		unsigned char c = (unsigned char)text.p[0];

		if (n) {
			uar_buf_add_str(out, UAR_STR("***"));
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

	if (!c->b->o.local || (cause != UAA_CAUSE_AUTH && cause != UAA_CAUSE_CRASH))
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
