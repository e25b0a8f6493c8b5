/* fixture_file.c - reading recorded streams. */
#include "runtime/fixture_file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

enum { NAME_MAX_BYTES = 64, FIXTURES_MAX = 1000 };
static const char suffix[] = ".jsonl";

bool uar_fixture_name_valid(uar_str name)
{
	if (name.n == 0 || name.n > NAME_MAX_BYTES)
		return false;
	for (size_t i = 0; i < name.n; i++) {
		char c = name.p[i];

		if (!((c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_'))
			return false;
	}
	return true;
}

static uar_err read_all(int fd, uar_str *out)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_FIXTURE_BYTES);
	char block[16384];
	ssize_t n;
	size_t size;
	char *bytes;

	while ((n = read(fd, block, sizeof block)) > 0)
		uar_buf_add(&b, block, (size_t)n);
	if (n < 0 && !b.err)
		b.err = UAR_EIO;
	if (b.err) {
		uar_err e = b.err;

		uar_buf_fini(&b);
		return e;
	}
	bytes = uar_buf_take(&b, &size);
	*out = uar_str_n(bytes, size);
	return UAR_OK;
}

uar_err uar_fixture_load(const char *dir, uar_str name, uar_str *out_text, struct uar_error *error)
{
	char path[4096];
	uar_err e;
	int fd;

	if (!uar_fixture_name_valid(name))
		return uar_error_set(error, UAR_EINVALID, "a fixture name has only a-z 0-9 - _");
	snprintf(path, sizeof path, "%s/%.*s%s", dir ? dir : "", UAR_FMT(name), suffix);
	fd = dir ? open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW) : -1;
	if (fd < 0)
		return uar_error_set(error, UAR_ENOTFOUND, "no fixture is named \"%.*s\"",
				     UAR_FMT(name));
	e = read_all(fd, out_text);
	close(fd);
	if (e)
		return uar_error_set(error, e, "fixture \"%.*s\": %s", UAR_FMT(name),
				     uar_err_text(e));
	return UAR_OK;
}

bool uar_fixture_line(uar_str *rest, uar_str *out_line)
{
	while (rest->n) {
		uar_str line = uar_str_cut(*rest, '\n', rest);

		if (line.n && line.p[line.n - 1] == '\r')
			line.n--;
		if (line.n) {
			*out_line = line;
			return true;
		}
	}
	return false;
}

uar_err uar_fixture_parse(uar_str line, struct uar_arena *arena, const struct uar_json **out,
			  struct uar_error *error)
{
	const struct uar_json *j, *data;
	uar_err e = uar_json_parse(line, NULL, arena, &j, error);

	if (e)
		return e;
	data = uar_json_get(j, UAR_STR("data"));
	if (!uar_json_str(uar_json_get(j, UAR_STR("type")), UAR_STR("")).n || !data ||
	    data->kind != UAR_JSON_OBJECT)
		return uar_error_set(error, UAR_EINVALID,
				     "a fixture line is {\"type\": string, \"data\": object}");
	*out = j;
	return UAR_OK;
}

static int by_name(const void *a, const void *b)
{
	return uar_str_cmp(*(const uar_str *)a, *(const uar_str *)b);
}

uar_err uar_fixture_list(const char *dir, struct uar_arena *arena, uar_str **out, size_t *out_count)
{
	uar_str *names = uar_arena_alloc(arena, FIXTURES_MAX * sizeof *names);
	DIR *d = dir ? opendir(dir) : NULL;
	struct dirent *entry;
	size_t n = 0;

	if (!names) {
		if (d)
			closedir(d);
		return UAR_ENOMEM;
	}
	while (d && n < FIXTURES_MAX && (entry = readdir(d))) {
		uar_str name = uar_str_c(entry->d_name);

		if (!uar_str_ends(name, uar_str_c(suffix)))
			continue;
		name.n -= sizeof suffix - 1;
		if (uar_fixture_name_valid(name))
			names[n++] = uar_arena_str(arena, name);
	}
	if (d)
		closedir(d);
	qsort(names, n, sizeof *names, by_name);
	*out = names;
	*out_count = n;
	return UAR_OK;
}
