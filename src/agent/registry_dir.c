/* registry_dir.c - the definitions of a directory, one file each.
 *
 * A reading makes a list of what each file says now: a new entry, the earlier one, or what is
 * wrong. Only then is the registry changed, so that an error leaves it as it was. */
#include <dirent.h>
#include <errno.h>

#include "agent/registry_int.h"
#include "agent/source.h"
#include "base/alloc.h"
#include "base/file.h"

enum { PATH_BYTES = 4096 };

struct reading {
	struct uar_registry *r;
	const char *dir;
	struct uar_registered **old; /* of files, before; each is ours */
	size_t old_count;
};

static struct uar_registered *find_file(const struct reading *l, const char *file)
{
	for (size_t i = 0; i < l->old_count; i++)
		if (!strcmp(l->old[i]->file, file))
			return l->old[i];
	return NULL;
}

static bool was_told(const struct uar_registry *r, const char *file, const char *sha256)
{
	for (size_t i = 0; i < r->broken_count; i++)
		if (!strcmp(r->broken[i].file, file) && !strcmp(r->broken[i].sha256, sha256))
			return true;
	return false;
}

static uar_err take_file(struct reading *l, const char *file, const char *sha256, uar_str text,
			 struct uar_error *error)
{
	struct uar_definition def;
	struct uar_registered *entry;
	uar_err e = uar_definition_read_file(file, text, &def, error);

	if (!e)
		e = uar_registered_take(&def, &entry);
	if (e)
		return e;
	entry->source = UAR_AGENT_FROM_FILE;
	snprintf(entry->file, sizeof entry->file, "%s", file);
	snprintf(entry->sha256, sizeof entry->sha256, "%s", sha256);
	e = uar_registry_is_free(l->r, UAR_AGENT_FROM_FILE, entry->def.info.agent_id, error);
	if (!e)
		e = uar_registry_add(l->r, entry);
	if (!e)
		uar_registry_tell(l->r, UAR_LOG_INFO, "agent.loaded", file,
				  entry->def.info.agent_id);
	uar_registered_unref(entry);
	return e;
}

/* What the file said before it was broken, now or before the last start; with its agent's id. */
static void leave_earlier(struct reading *l, const char *file, char *agent_id, size_t size)
{
	struct uar_registered *before = find_file(l, file);
	struct uar_buf kept = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	char sha256[UAR_SHA256_TEXT + 1];
	struct uar_error error = { 0 };
	uar_err e;

	if (before) {
		e = uar_registry_is_free(l->r, UAR_AGENT_FROM_FILE, before->def.info.agent_id,
					 &error);
		e = e ? e : uar_registry_add(l->r, before);
	} else {
		e = uar_registry_kept(l->r, file, &kept);
		uar_sha256_hex(uar_buf_str(&kept), sha256);
		e = e ? e : take_file(l, file, sha256, uar_buf_str(&kept), &error);
		before = e ? NULL : l->r->at[l->r->count - 1];
	}
	if (!e)
		snprintf(agent_id, size, "%s", before->def.info.agent_id.p);
	uar_buf_fini(&kept);
}

static void refuse_file(struct reading *l, const char *file, const char *sha256,
			const struct uar_error *error)
{
	struct uar_registry_broken b = { .text = "" };
	struct uar_buf note = uar_buf_make(UAR_LIMIT_LOG_LINE);
	bool told = was_told(l->r, file, sha256);

	snprintf(b.file, sizeof b.file, "%s", file);
	snprintf(b.sha256, sizeof b.sha256, "%s", sha256);
	snprintf(b.text, sizeof b.text, "%s%s%s", error->where, error->where[0] ? ": " : "",
		 uar_error_text(error));
	leave_earlier(l, file, b.agent_id, sizeof b.agent_id);
	uar_registry_forget_broken(l->r, file);
	uar_registry_note_broken(l->r, &b);
	uar_buf_printf(&note, "%s%s", b.text,
		       b.agent_id[0] ? "; the earlier definition stays" : "");
	if (!told)
		uar_registry_tell(l->r, UAR_LOG_WARN, "agent.refused", file, uar_buf_str(&note));
	uar_buf_fini(&note);
}

static uar_err add_file(struct reading *l, const char *file, const char *sha256, uar_str text,
			struct uar_error *error)
{
	uar_err e = take_file(l, file, sha256, text, error);

	if (!e)
		uar_registry_keep(l->r, file, text);
	return e;
}

/* One that has not changed stays the entry that it is. */
static uar_err keep_file(struct reading *l, struct uar_registered *before, struct uar_error *error)
{
	uar_err e =
		uar_registry_is_free(l->r, UAR_AGENT_FROM_FILE, before->def.info.agent_id, error);

	return e ? e : uar_registry_add(l->r, before);
}

static void read_text(struct reading *l, const char *file, uar_str text, struct uar_error *error)
{
	struct uar_registered *before = find_file(l, file);
	char sha256[UAR_SHA256_TEXT + 1];

	uar_sha256_hex(text, sha256);
	if (!error->code)
		error->code = before && !strcmp(before->sha256, sha256)
				      ? keep_file(l, before, error)
				      : add_file(l, file, sha256, text, error);
	if (error->code)
		refuse_file(l, file, sha256, error);
	else
		uar_registry_forget_broken(l->r, file);
}

static void read_one(struct reading *l, const char *name)
{
	struct uar_buf text = uar_buf_make(UAR_LIMIT_AGENT_DEFINITION);
	struct uar_error error = { 0 };
	char path[PATH_BYTES];

	snprintf(path, sizeof path, "%s/%s", l->dir, name);
	error.code = uar_file_read(path, &text, &error);
	if (error.code != UAR_ENOTFOUND) /* else it was removed just now */
		read_text(l, name, uar_buf_str(&text), &error);
	uar_buf_fini(&text);
}

static int is_wanted(const struct dirent *d)
{
	return d->d_name[0] != '.' && uar_source_is_named(uar_str_c(d->d_name));
}

/* Takes the entries of files out of the registry. */
static uar_err set_aside(struct reading *l)
{
	struct uar_registry *r = l->r;

	l->old = uar_zalloc((r->count + 1) * sizeof(struct uar_registered *));
	if (!l->old)
		return UAR_ENOMEM;
	for (size_t i = 0; i < r->count;)
		if (r->at[i]->source == UAR_AGENT_FROM_FILE) {
			l->old[l->old_count++] = uar_registered_ref(r->at[i]);
			uar_registry_remove(r, i);
		} else {
			i++;
		}
	return UAR_OK;
}

static bool is_named(struct dirent **names, int n, const char *file)
{
	for (int i = 0; i < n; i++)
		if (!strcmp(names[i]->d_name, file))
			return true;
	return false;
}

/* What is gone is told, and forgotten if it was broken. */
static void tell_gone(struct reading *l, struct dirent **names, int n)
{
	for (size_t i = 0; i < l->old_count; i++) {
		const struct uar_registered *was = l->old[i];

		if (!uar_registry_find(l->r, NULL, was->def.info.agent_id))
			uar_registry_tell(l->r, UAR_LOG_INFO, "agent.removed", was->file,
					  was->def.info.agent_id);
	}
	for (size_t i = 0; i < l->r->broken_count;)
		if (!strstr(l->r->broken[i].file, "://") &&
		    !is_named(names, n, l->r->broken[i].file))
			l->r->broken[i] = l->r->broken[--l->r->broken_count];
		else
			i++;
}

/* In order of their names, so that of two with one id the same one stays. A directory that
 * cannot be read is not an empty one. */
uar_err uar_registry_read_dir(struct uar_registry *r, const char *dir, struct uar_error *error)
{
	struct reading l = { .r = r, .dir = dir };
	struct dirent **names = NULL;
	int n = scandir(dir, &names, is_wanted, alphasort);
	uar_err e = UAR_OK;

	if (n < 0 && errno != ENOENT)
		return uar_error_set(error, UAR_EIO, "%.200s: %s", dir, strerror(errno));
	e = set_aside(&l);
	for (int i = 0; i < n && !e; i++)
		read_one(&l, names[i]->d_name);
	if (!e)
		tell_gone(&l, names, n);
	if (!e && n >= 0)
		uar_registry_keep_only(r, names, n);
	for (int i = 0; i < n; i++)
		free(names[i]); /* scandir's */
	free(names);
	for (size_t i = 0; i < l.old_count; i++)
		uar_registered_unref(l.old[i]);
	uar_free(l.old);
	return e;
}
