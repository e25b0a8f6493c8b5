/* secret_name.c - which names are those of secrets. */
#include "event/secret_name.h"

#include <string.h>

#include "event/limits.h"

static const char *const secret_words[] = {
	"password",	 "passwd",     "passphrase",   "apikey",       "accesskey", "privatekey",
	"authorization", "credential", "accesstoken",  "refreshtoken", "authtoken", "bearertoken",
	"sessiontoken",	 "idtoken",    "clientsecret", "cookie",
};
/* Only as a word of the name, alone or as in user_pin and githubToken. */
static const char *const secret_names[] = { "token", "pwd", "pin",    "pass",	"otp",
					    "cvv",   "jwt", "secret", "secrets" };

/* Lower-case letters and digits of the name: "API-Key" and "api_key" are the same. */
static uar_str plain_name(uar_str name, char out[UAR_LIMIT_REDACT_NAME])
{
	size_t n = 0;

	for (size_t i = 0; i < name.n && n < UAR_LIMIT_REDACT_NAME; i++) {
		char c = name.p[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c - 'A' + 'a');
		if ((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'))
			out[n++] = c;
	}
	return uar_str_n(out, n);
}

static bool is_lower(char c)
{
	return c >= 'a' && c <= 'z';
}

static bool is_upper(char c)
{
	return c >= 'A' && c <= 'Z';
}

/* The word that begins at *at: letters up to anything else or to a change of case ("APIToken" has
 * two). Empty: there is none. */
static uar_str next_word(uar_str name, size_t *at)
{
	size_t from = *at, n;

	while (from < name.n && !is_lower(name.p[from]) && !is_upper(name.p[from]))
		from++;
	for (n = from; n < name.n && (is_lower(name.p[n]) || is_upper(name.p[n])); n++)
		if (n > from && is_upper(name.p[n]) &&
		    (is_lower(name.p[n - 1]) || (n + 1 < name.n && is_lower(name.p[n + 1]))))
			break;
	*at = n;
	return uar_str_n(name.p + from, n - from);
}

static bool is_secret_word(uar_str word)
{
	for (size_t i = 0; i < ARRAY_LEN(secret_names); i++)
		if (uar_str_eq_nocase(word, uar_str_c(secret_names[i])))
			return true;
	return false;
}

/* token_count and password_length say how much, not what. */
static bool is_measure(uar_str name)
{
	static const char *const measures[] = { "count", "counts", "limit", "length", "size",
						"total", "used",   "usage", "budget" };
	uar_str word = UAR_STR(""), next;

	for (size_t at = 0; at < name.n;) {
		next = next_word(name, &at);
		if (next.n)
			word = next;
	}
	for (size_t i = 0; i < ARRAY_LEN(measures); i++)
		if (uar_str_eq_nocase(word, uar_str_c(measures[i])))
			return true;
	return false;
}

bool uar_is_secret_name(uar_str name)
{
	char text[UAR_LIMIT_REDACT_NAME];
	uar_str plain = plain_name(name, text);

	if (is_measure(name))
		return false;
	for (size_t i = 0; i < ARRAY_LEN(secret_words); i++)
		if (plain.n && memmem(plain.p, plain.n, secret_words[i], strlen(secret_words[i])))
			return true;
	if (is_secret_word(plain))
		return true;
	for (size_t at = 0; at < name.n;)
		if (is_secret_word(next_word(name, &at)))
			return true;
	return false;
}
