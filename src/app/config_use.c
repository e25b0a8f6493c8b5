/* config_use.c - which settings matter, and whether the files that they name can be read.
 *
 * A variable that belongs to other programs, too, may hold anything: it is an error where UAR
 * would use it, and nowhere else. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "app/config.h"

static bool calls_https(const struct uar_config *c)
{
	uar_str name, base = uar_str_c(c->openai_base_url);

	if ((base.n || (c->openai_api_key[0] && c->model[0])) &&
	    !uar_str_starts(base, UAR_STR("http://")))
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
	return true;
}

static int errno_of_reading(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), e = fd < 0 ? errno : 0;
	struct stat st;

	if (!e && fstat(fd, &st))
		e = errno;
	else if (!e && S_ISDIR(st.st_mode))
		e = EISDIR;
	if (fd >= 0)
		close(fd);
	return e;
}

uar_err uar_config_check_files(const struct uar_config_set *set, struct uar_buf *problems)
{
	const struct uar_config_row *row = uar_config_find(UAR_STR("ca_file"), NULL);
	size_t i = (size_t)(row - uar_config_rows);
	const char *path = set->value.ca_file, *where = set->origin[i].where;
	char reason[80];
	int e = 0;

	if (*path && (strcmp(where, row->alias) || uar_config_alias_matters(row, &set->value)))
		e = errno_of_reading(path);
	if (!e)
		return UAR_OK;
	uar_buf_printf(problems, "%s: %s: cannot read %s: %s\n", where, row->key, path,
		       strerror_r(e, reason, sizeof reason));
	return set->origin[i].source == UAR_CONFIG_FROM_FLAG ? UAR_EINVALID : UAR_ECONFIG;
}
