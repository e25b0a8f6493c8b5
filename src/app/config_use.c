/* config_use.c - which settings matter, and whether the files that they name can be read.
 *
 * A variable that belongs to other programs, too, may hold anything: it is an error where UAR
 * would use it, and nowhere else. */
#include "app/config.h"

#include "app/limits.h"
#include "base/file.h"

static bool calls_https(const struct uar_config *c)
{
	uar_str name, base = uar_str_c(c->openai_base_url);

	if ((base.n || (c->openai_api_key[0] && c->model[0])) &&
	    !uar_str_starts(base, UAR_STR("http://")))
		return true;
	if (c->model[0] && (c->anthropic_api_key[0] || strstr(c->providers, "\"dialect\"")))
		return true;
	for (size_t i = 0; i < c->a2a_peers.count; i++) {
		uar_str url = UAR_STR("");

		name = uar_str_cut(uar_str_c(c->a2a_peers.items[i]), '=', &url);
		if (name.n && uar_str_starts(url, UAR_STR("https://")))
			return true;
	}
	return false;
}

bool uar_config_alias_matters(const struct uar_config_row *row, const struct uar_config *c)
{
	if (!strcmp(row->key, "ca_file"))
		return calls_https(c);
	if (!strcmp(row->key, "openai_api_key")) /* a key alone may be meant for others */
		return c->model[0] || c->openai_base_url[0];
	if (!strncmp(row->key, "anthropic_", 10) || !strcmp(row->key, "ollama_host"))
		return c->model[0];
	return true;
}

/* Calls that trust nobody would all fail. */
static uar_err look_for_certificate(const char *path, struct uar_error *error)
{
	static const char *const marks[] = { "-----BEGIN CERTIFICATE-----",
					     "-----BEGIN X509 CERTIFICATE-----",
					     "-----BEGIN TRUSTED CERTIFICATE-----" };
	struct uar_buf text = uar_buf_make(UAR_LIMIT_CA_FILE);
	uar_err e = uar_file_read(path, &text, error);
	bool found = false;

	for (size_t i = 0; text.n && i < ARRAY_LEN(marks); i++)
		found |= memmem(text.p, text.n, marks[i], strlen(marks[i])) != NULL;
	uar_buf_fini(&text);
	if (e || found)
		return e;
	return uar_error_set(error, UAR_ECONFIG, "there is no certificate in PEM form in it");
}

uar_err uar_config_check_files(const struct uar_config_set *set, struct uar_buf *problems)
{
	const struct uar_config_row *row = uar_config_find(UAR_STR("ca_file"), NULL);
	size_t i = (size_t)(row - uar_config_rows);
	const char *path = set->value.ca_file, *where = set->origin[i].where;
	struct uar_error why = { 0 };
	uar_err e = UAR_OK;

	if (*path && (strcmp(where, row->alias) || uar_config_alias_matters(row, &set->value)))
		e = look_for_certificate(path, &why);
	if (!e)
		return UAR_OK;
	uar_buf_printf(problems, "%s: %s: cannot read %s: %s\n", where, row->key, path,
		       uar_error_text(&why));
	return set->origin[i].source == UAR_CONFIG_FROM_FLAG ? UAR_EINVALID : UAR_ECONFIG;
}
