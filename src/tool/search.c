/* search.c - fs.search: lines of files behind the fence of files.c that have a text in them. */
#include "tool/internal_int.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/alloc.h"

enum { AROUND_MATCH = 2048 }; /* bytes that one match may take */

struct search {
	struct uar_tool_job *j;
	int root;
	uar_str text;
	struct uar_jw w;
	size_t files, matches;
	bool truncated;
};

static bool is_full(struct search *s)
{
	s->truncated |= s->matches >= UAR_LIMIT_TOOL_MATCHES ||
			s->files >= UAR_LIMIT_TOOL_SEARCHED ||
			s->j->out.n >= UAR_LIMIT_TOOL_TOLD - AROUND_MATCH;
	return s->truncated;
}

static void search_text(struct search *s, const char *path, uar_str rest)
{
	enum { SHOWN = 200 };
	int64_t number = 0;

	while (rest.n && !is_full(s)) {
		uar_str line = uar_str_cut(rest, '\n', &rest);

		number++;
		if (!memmem(line.p, line.n, s->text.p, s->text.n))
			continue;
		s->matches++;
		uar_jw_obj(&s->w, NULL);
		uar_jw_cstr(&s->w, "path", path);
		uar_jw_int(&s->w, "line", number);
		uar_jw_str(&s->w, "text", uar_str_utf8_prefix(line, SHOWN));
		uar_jw_close(&s->w);
	}
}

/* What is no text, or too large, or not to be opened, has no match. */
static void search_file(struct search *s, const char *path, size_t size)
{
	int fd = size <= UAR_LIMIT_TOOL_EDIT
			 ? uar_tool_open_beneath(s->root, path, O_RDONLY | O_NONBLOCK | O_NOCTTY)
			 : -1;
	char *bytes = fd < 0 ? NULL : uar_alloc(size + 1);
	ssize_t n = bytes ? uar_tool_read_at(fd, bytes, size, 0) : -1;

	s->files++;
	if (n > 0 && uar_tool_whole_text(uar_str_n(bytes, (size_t)n), false).p)
		search_text(s, path, uar_str_n(bytes, (size_t)n));
	uar_free(bytes);
	if (fd >= 0)
		close(fd);
}

static void search_dir(struct search *s, const char *path, unsigned depth);

static void search_entry(struct search *s, int dir, const char *path, const char *name,
			 unsigned depth)
{
	enum { DEPTH = 16 };
	bool top = strcmp(path, ".") == 0;
	char below[UAR_LIMIT_TOOL_PATH + 1];
	int n = snprintf(below, sizeof below, "%s%s%s", top ? "" : path, top ? "" : "/", name);
	struct stat st;

	if ((size_t)n >= sizeof below || strcmp(name, ".") == 0 || strcmp(name, "..") == 0 ||
	    fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW))
		return;
	if (S_ISDIR(st.st_mode) && depth < DEPTH)
		search_dir(s, below, depth + 1);
	else if (S_ISREG(st.st_mode))
		search_file(s, below, (size_t)st.st_size);
}

static void search_dir(struct search *s, const char *path, unsigned depth)
{
	int fd = uar_tool_open_beneath(s->root, path, O_RDONLY | O_DIRECTORY | O_NONBLOCK);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *at;

	if (!dir && fd >= 0)
		close(fd);
	while (dir && !is_full(s) && (at = readdir(dir)))
		search_entry(s, fd, path, at->d_name, depth);
	if (dir)
		closedir(dir);
}

void uar_tool_fs_search(struct uar_tool_job *j)
{
	char path[UAR_LIMIT_TOOL_PATH + 1];
	struct search s = { .j = j };
	int fd = uar_tool_open_named(j, O_RDONLY | O_DIRECTORY | O_NONBLOCK, path);

	if (fd < 0)
		return;
	close(fd);
	s.root = uar_tool_open_root(j);
	if (s.root < 0)
		return;
	s.text = uar_json_text(j->input, "text");
	s.w = uar_jw_begin(&j->out);
	uar_jw_obj(&s.w, NULL);
	uar_jw_arr(&s.w, "matches");
	search_dir(&s, path, 0);
	uar_jw_close(&s.w);
	uar_jw_bool(&s.w, "truncated", s.truncated);
	uar_jw_close(&s.w);
	uar_tool_end_output(j, &s.w);
	close(s.root);
}
