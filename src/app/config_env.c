/* config_env.c - the environment: its values, and which UAR_... variables are not meant for UAR.
 *
 * Kubernetes gives every container of a namespace variables for each service in it. Beside a
 * service named "uar" they begin with UAR_, and nobody chose them: they are passed over. */
#include "app/config.h"

/* Variables that begin with UAR_ and are no settings: what the command line reads, and what a
 * plugin is given, which may call `uar` in turn. */
static const char *const other_variables[] = { "url", "config", "run_id", "trace_id", "plugin_id" };

const char *uar_config_env(char *const *env, const char *name)
{
	size_t n = strlen(name);

	for (; env && *env; env++)
		if (!strncmp(*env, name, n) && (*env)[n] == '=')
			return (*env)[n + 1] ? *env + n + 1 : NULL;
	return NULL;
}

/* What stands behind `word` where it is a whole word of `key`; absent when it is none. */
static uar_str after_word(uar_str key, uar_str word)
{
	for (size_t at = 0; at + word.n <= key.n; at++) {
		uar_str rest = uar_str_from(key, at + word.n);

		if ((at == 0 || key.p[at - 1] == '_') && (!rest.n || rest.p[0] == '_') &&
		    uar_str_eq(uar_str_n(key.p + at, word.n), word))
			return rest;
	}
	return UAR_STR_NONE;
}

static bool is_protocol(uar_str s)
{
	return uar_str_is(s, "tcp") || uar_str_is(s, "udp") || uar_str_is(s, "sctp");
}

/* "tcp://10.0.0.1:8080": who chooses a port writes a number. */
static bool is_link_address(uar_str value)
{
	size_t n = uar_str_find(value, ':');

	return is_protocol(uar_str_n(value.p, n)) &&
	       uar_str_starts(uar_str_from(value, n), UAR_STR("://"));
}

/* "_8080_tcp", "_8080_tcp_addr" */
static bool is_link_port(uar_str rest)
{
	uar_str protocol, number;

	(void)uar_str_cut(rest, '_', &rest);
	number = uar_str_cut(rest, '_', &rest);
	protocol = uar_str_cut(rest, '_', &rest);
	for (size_t i = 0; i < number.n; i++)
		if (number.p[i] < '0' || number.p[i] > '9')
			return false;
	return number.n && is_protocol(protocol) &&
	       (!rest.n || uar_str_is(rest, "proto") || uar_str_is(rest, "port") ||
		uar_str_is(rest, "addr"));
}

static bool is_service_link(uar_str key, uar_str value)
{
	uar_str host = after_word(key, UAR_STR("service_host"));
	uar_str port = after_word(key, UAR_STR("port"));

	if ((host.p && !host.n) || after_word(key, UAR_STR("service_port")).p)
		return true;
	return port.p && (port.n ? is_link_port(port) : is_link_address(value));
}

bool uar_config_is_foreign(uar_str key, uar_str value)
{
	for (size_t i = 0; i < ARRAY_LEN(other_variables); i++)
		if (uar_str_is(key, other_variables[i]))
			return true;
	return uar_str_starts(key, UAR_STR("secret_")) || /* of ${secret:NAME} */
	       uar_str_starts(key, UAR_STR("test_")) ||	  /* the test suite's own */
	       is_service_link(key, value);
}
