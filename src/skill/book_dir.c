/* book_dir.c - the skills of a directory, one folder each.
 *
 * What each folder says now is found first: a new entry, the earlier one, or what is wrong. */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/alloc.h"
#include "base/file.h"
#include "skill/book_int.h"

enum { PATH_BYTES = 4096 };

struct reading {
	struct uar_skill_book *b;
	const char *dir;
	struct uar_skill_entry **old; /* of folders, before; each is ours */
	size_t old_count;
};

static void tell(const struct reading *l, enum uar_log_level level, const char *what,
		 const char *folder, uar_str text)
{
	struct uar_skill_note n = { level, what, folder, text };

	skill_book_tell(l->b, &n);
}

static struct uar_skill_entry *find_old(const struct reading *l, const char *folder)
{
	for (size_t i = 0; i < l->old_count; i++)
		if (!strcmp(l->old[i]->folder, folder))
			return l->old[i];
	return NULL;
}

/* True: it was told of these bytes already. */
static bool forget_broken(struct uar_skill_book *b, const char *folder, const char *sha256)
{
	bool told = false;

	for (size_t i = 0; i < b->broken_count;)
		if (!strcmp(b->broken[i].folder, folder)) {
			told |= !strcmp(b->broken[i].sha256, sha256);
			b->broken[i] = b->broken[--b->broken_count];
		} else {
			i++;
		}
	return told;
}

static uar_err check_free(const struct reading *l, uar_str id, struct uar_error *error)
{
	for (size_t i = 0; i < l->b->count; i++) {
		const struct uar_skill_entry *e = l->b->at[i];

		if (e->skill.origin == UAR_SKILL_USER || !uar_str_eq(e->skill.skill_id, id))
			continue;
		return uar_error_set(error, UAR_EEXISTS, "the skill \"%.*s\" is %s %s already",
				     UAR_FMT(id), e->folder[0] ? "in the folder" : "part of",
				     e->folder[0] ? e->folder : "the program");
	}
	return UAR_OK;
}

static uar_err keep(struct reading *l, struct uar_skill_entry *e, struct uar_error *error)
{
	uar_err err = check_free(l, e->skill.skill_id, error);

	return err ? err : skill_book_add(l->b, e);
}

static void refuse(struct reading *l, const char *folder, const char *sha256,
		   const struct uar_error *error)
{
	struct uar_skill_entry *before = find_old(l, folder);
	struct uar_skill_broken k = { .text = "" };
	bool told = forget_broken(l->b, folder, sha256);
	struct uar_error clash = { 0 };

	snprintf(k.folder, sizeof k.folder, "%s", folder);
	snprintf(k.sha256, sizeof k.sha256, "%s", sha256);
	snprintf(k.text, sizeof k.text, "%s%s%s", error->where, error->where[0] ? ": " : "",
		 uar_error_text(error));
	if (before && !keep(l, before, &clash))
		snprintf(k.skill_id, sizeof k.skill_id, "%.*s", UAR_FMT(before->skill.skill_id));
	if (l->b->broken_count < UAR_LIMIT_SKILLS_BROKEN)
		l->b->broken[l->b->broken_count++] = k;
	if (!told)
		tell(l, UAR_LOG_WARN, "skill.refused", folder, uar_str_c(k.text));
}

static uar_err add(struct reading *l, const char *folder, const char *sha256, uar_str text,
		   struct uar_error *error)
{
	struct uar_skill_entry *e;
	struct uar_skill s;
	uar_err err = uar_skill_read_folder(uar_str_c(folder), text, &s, error);

	if (err)
		return err;
	s.origin = UAR_SKILL_FILE;
	e = uar_skill_entry_take(&s);
	if (!e) {
		uar_skill_fini(&s);
		return UAR_ENOMEM;
	}
	snprintf(e->folder, sizeof e->folder, "%s", folder);
	snprintf(e->sha256, sizeof e->sha256, "%s", sha256);
	err = keep(l, e, error);
	if (!err)
		tell(l, UAR_LOG_INFO, "skill.loaded", folder, e->skill.skill_id);
	uar_skill_entry_unref(e);
	return err;
}

static int64_t changed_at(const char *path)
{
	struct stat st;

	return stat(path, &st) ? 0 : (int64_t)st.st_mtime * 1000000;
}

static void read_folder(struct reading *l, const char *folder)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_SKILL_BYTES);
	struct uar_skill_entry *before = find_old(l, folder), *now;
	char path[PATH_BYTES], sha256[UAR_SHA256_TEXT + 1];
	struct uar_error error = { 0 };

	snprintf(path, sizeof path, "%s/%s/SKILL.md", l->dir, folder);
	error.code = uar_file_read(path, &text, &error);
	uar_sha256_hex(uar_buf_str(&text), sha256);
	if (error.code == UAR_ENOTFOUND) {
		uar_buf_fini(&text);
		return; /* a folder of something else */
	}
	if (!error.code)
		error.code = before && !strcmp(before->sha256, sha256)
				     ? keep(l, before, &error)
				     : add(l, folder, sha256, uar_buf_str(&text), &error);
	if (error.code)
		refuse(l, folder, sha256, &error);
	else
		forget_broken(l->b, folder, sha256);
	for (size_t i = 0; (now = uar_skill_book_at(l->b, i)) && !error.code; i++)
		if (!strcmp(now->folder, folder))
			now->updated_us = changed_at(path);
	uar_buf_fini(&text);
}

static int is_wanted(const struct dirent *d)
{
	return d->d_name[0] != '.' && strlen(d->d_name) <= UAR_LIMIT_SKILL_FOLDER &&
	       (d->d_type == DT_DIR || d->d_type == DT_LNK || d->d_type == DT_UNKNOWN);
}

static uar_err set_aside(struct reading *l)
{
	struct uar_skill_book *b = l->b;

	l->old = uar_zalloc((b->count + 1) * sizeof(struct uar_skill_entry *));
	if (!l->old)
		return UAR_ENOMEM;
	for (size_t i = 0; i < b->count;)
		if (b->at[i]->skill.origin == UAR_SKILL_FILE) {
			l->old[l->old_count++] = uar_skill_entry_ref(b->at[i]);
			skill_book_remove(b, i);
		} else {
			i++;
		}
	return UAR_OK;
}

static bool is_named(struct dirent **names, int n, const char *folder)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(names[i]->d_name, folder))
			return true;
	return false;
}

static void tell_gone(struct reading *l, struct dirent **names, int n)
{
	struct uar_owner nobody = { UAR_STR(""), UAR_STR(""), UAR_STR("") };

	for (size_t i = 0; i < l->old_count; i++)
		if (!uar_skill_book_find(l->b, &nobody, l->old[i]->skill.skill_id))
			tell(l, UAR_LOG_INFO, "skill.removed", l->old[i]->folder,
			     l->old[i]->skill.skill_id);
	for (size_t i = 0; i < l->b->broken_count;)
		if (!is_named(names, n, l->b->broken[i].folder))
			l->b->broken[i] = l->b->broken[--l->b->broken_count];
		else
			i++;
}

/* In order of their names, so that of two with one id the same one stays. A directory that cannot
 * be read is not an empty one. */
uar_err uar_skill_book_read_dir(struct uar_skill_book *b, const char *dir, struct uar_error *error)
{
	struct reading l = { .b = b, .dir = dir };
	struct dirent **names = NULL;
	int n = scandir(dir, &names, is_wanted, alphasort);
	uar_err e;

	if (n < 0 && errno != ENOENT)
		return uar_error_set(error, UAR_EIO, "%.200s: %s", dir, strerror(errno));
	uar_buf_clear(&b->dir);
	uar_buf_add_str(&b->dir, uar_str_c(dir));
	e = b->dir.err ? b->dir.err : set_aside(&l);
	for (int i = 0; i < n && !e; i++)
		read_folder(&l, names[i]->d_name);
	if (!e)
		tell_gone(&l, names, n);
	for (int i = 0; i < n; i++)
		free(names[i]); /* scandir's */
	free(names);
	for (size_t i = 0; i < l.old_count; i++)
		uar_skill_entry_unref(l.old[i]);
	uar_free(l.old);
	return e;
}
