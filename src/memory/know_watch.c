/* know_watch.c - the files of a folder are documents: those of SUB/... of the collection SUB, the
 * others of "default". The folder is looked through again and again; what has not changed since
 * costs a look at its times. Files that are gone are removed. */
#include "memory/know_int.h"

#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <stdatomic.h>
#include <sys/stat.h>

#include "base/file.h"
#include "memory/media.h"

enum { EVERY_US = 2 * 1000 * 1000 };

struct seen {
	char *name; /* collection, a zero, id */
	int64_t mtime, size;
	uar_err told; /* why it was not taken: said once */
};

struct know_watcher {
	struct uar_knowledge *k;
	struct uar_timer timer;
	struct seen *at; /* by the worker while one is at work, else by nobody */
	size_t n, room;
	size_t next;  /* those before it were seen by this walk, in its order */
	bool begun;   /* what an earlier server took is known */
	bool partial; /* the last walk could not see everything */
	bool kept;    /* the last walk found a folder without the files that it had */
	atomic_bool stopped;
};

struct walk {
	struct know_watcher *w;
	struct uar_kb *kb;
	struct uar_know_job *j;
	bool changed;
	bool partial; /* something could not be read: who knows what is missing */
};

static void note_partial(struct walk *x, const char *path, const char *why)
{
	if (!x->partial && !x->w->partial)
		uar_log(x->j->k->o.log, UAR_LOG_WARN, "kb.folder_not_read",
			{ "path", uar_str_c(path) }, { "reason", uar_str_c(why) },
			{ "text", UAR_STR("no document is removed until it can be read") });
	x->partial = true;
}

static bool is_named(const struct seen *s, const char *collection, const char *id)
{
	return !strcmp(s->name, collection) && !strcmp(s->name + strlen(collection) + 1, id);
}

static struct seen *take_next(struct know_watcher *w, size_t i)
{
	struct seen found = w->at[i];

	w->at[i] = w->at[w->next];
	w->at[w->next] = found;
	return &w->at[w->next++];
}

/* A walk mostly takes the same way as the one before: then it is the next one. */
static struct seen *find_seen(struct know_watcher *w, const char *collection, const char *id)
{
	for (size_t i = w->next; i < w->n; i++)
		if (is_named(&w->at[i], collection, id))
			return take_next(w, i);
	return NULL;
}

static struct seen *add_seen(struct know_watcher *w, const char *collection, const char *id)
{
	size_t a = strlen(collection) + 1, b = strlen(id) + 1;
	char *name;

	if (w->n == w->room) {
		size_t room = w->room ? 2 * w->room : 64;
		struct seen *more;

		if (room > UAR_LIMIT_KB_WATCHED)
			room = UAR_LIMIT_KB_WATCHED;
		more = w->n < room ? uar_realloc(w->at, room * sizeof *more) : NULL;

		if (!more)
			return NULL;
		w->at = more;
		w->room = room;
	}
	name = uar_alloc(a + b);
	if (!name)
		return NULL;
	memcpy(name, collection, a);
	memcpy(name + a, id, b);
	w->at[w->n] = (struct seen){ .name = name, .mtime = -1 };
	return &w->at[w->n++];
}

static uar_err put_file(struct walk *x, const char *path, struct seen *s)
{
	const char *id = s->name + strlen(s->name) + 1;
	struct uar_buf bytes = uar_buf_make(UAR_LIMIT_KB_DOCUMENT);
	struct uar_kb_document d = { .collection = uar_str_c(s->name),
				     .id = uar_str_c(id),
				     .title = uar_str_c(id),
				     .source = uar_str_c(path),
				     .media_type = uar_media_type_of(uar_str_c(path)),
				     .updated_us = uar_know_now(x->j->k),
				     .watched = true };
	struct uar_kb_result result;
	struct uar_error error = { 0 };
	uar_err e = uar_file_read(path, &bytes, &error);

	d.bytes = uar_buf_str(&bytes);
	if (!e)
		e = uar_kb_put(x->kb, &x->j->k->o.owner, &d, &result, &error);
	if (e && e != s->told)
		uar_log(x->j->k->o.log, UAR_LOG_WARN, "kb.file_not_taken",
			{ "path", uar_str_c(path) }, { "reason", uar_str_c(error.text) });
	else if (!e)
		x->changed |= !result.indexed && result.change != UAR_KB_UNCHANGED;
	s->told = e;
	uar_buf_fini(&bytes);
	return e;
}

/* Would it be the same with the same file? */
static bool is_final(uar_err e)
{
	return !e || e == UAR_EINVALID || e == UAR_ETOOBIG;
}

static void see_file(struct walk *x, const char *path, const char *below, const struct stat *st)
{
	char collection[NAME_MAX + 1] = "default";
	const char *slash = strchr(below, '/');
	const char *id = slash ? slash + 1 : below;
	int64_t mtime = (int64_t)st->st_mtim.tv_sec * 1000000 + st->st_mtim.tv_nsec / 1000;
	struct seen *s;

	if (slash)
		snprintf(collection, sizeof collection, "%.*s", (int)(slash - below), below);
	s = find_seen(x->w, collection, id);
	if (!s && add_seen(x->w, collection, id))
		s = take_next(x->w, x->w->n - 1);
	if (!s) {
		note_partial(x, path, "the folder has too many files");
		return;
	}
	if ((s->mtime == mtime && s->size == st->st_size) || !is_final(put_file(x, path, s)))
		return;
	s->mtime = mtime;
	s->size = st->st_size;
}

/* False: it has gone meanwhile, or what it is cannot be known. */
static bool look_at(struct walk *x, const char *path, struct stat *st)
{
	if (!lstat(path, st))
		return true;
	if (errno != ENOENT)
		note_partial(x, path, strerror(errno));
	return false;
}

static void see_dir(struct walk *x, const char *path, size_t top, unsigned depth);

static void see_entry(struct walk *x, const char *path, size_t top, unsigned depth)
{
	struct stat st;

	if (!look_at(x, path, &st))
		return;
	if (S_ISDIR(st.st_mode))
		see_dir(x, path, top, depth + 1);
	else if (S_ISREG(st.st_mode) && uar_media_is_read(uar_str_c(path)))
		see_file(x, path, path + top, &st);
}

static void see_dir(struct walk *x, const char *path, size_t top, unsigned depth)
{
	bool deep = depth >= UAR_LIMIT_KB_WATCH_DEPTH;
	DIR *dir = deep ? NULL : opendir(path);
	const struct dirent *at;
	char below[PATH_MAX];

	if (!dir) {
		note_partial(x, path, deep ? "it is too deep" : strerror(errno));
		return;
	}
	while (!x->w->stopped && (errno = 0, at = readdir(dir))) {
		int n = snprintf(below, sizeof below, "%s/%s", path, at->d_name);

		if (at->d_name[0] != '.' && n < (int)sizeof below)
			see_entry(x, below, top, depth);
	}
	if (errno && !x->w->stopped)
		note_partial(x, path, strerror(errno));
	closedir(dir);
}

static bool has_files(const struct know_watcher *w, size_t seen, const char *collection)
{
	for (size_t i = 0; i < seen; i++)
		if (!strcmp(w->at[i].name, collection))
			return true;
	return false;
}

/* A folder that is not mounted looks like one that was emptied: where all files are gone at once
 * their documents stay, and somebody is told. */
static void keep_emptied(struct walk *x)
{
	struct know_watcher *w = x->w;
	const char *asked = NULL; /* mostly the same one as before */
	size_t seen = w->next;
	bool has = false;

	for (size_t i = w->next; i < w->n; i++) {
		if (!asked || strcmp(asked, w->at[i].name) != 0)
			has = has_files(w, seen, w->at[i].name);
		asked = w->at[i].name;
		if (has)
			continue;
		if (!w->kept && w->next == seen)
			uar_log(x->j->k->o.log, UAR_LOG_WARN, "kb.folder_emptied",
				{ "collection", uar_str_c(asked) },
				{ "text", UAR_STR("all its files are gone at once: its documents "
						  "are kept; `uar kb remove COLLECTION` removes "
						  "them") });
		(void)take_next(w, i);
	}
	w->kept = w->next > seen;
}

static void remove_missing(struct walk *x)
{
	struct know_watcher *w = x->w;

	while (w->n > w->next) {
		struct seen *s = &w->at[--w->n], *other = NULL;
		const char *id = s->name + strlen(s->name) + 1;
		struct uar_kb_place place = { x->j->k->o.owner, uar_str_c(s->name) };
		struct uar_error error = { 0 };

		for (size_t i = 0; i < w->next && !other; i++)
			if (is_named(&w->at[i], s->name, id))
				other = &w->at[i];
		if (other) /* another file has the same name: it is taken with the next walk */
			other->mtime = -1;
		else if (uar_kb_remove(x->kb, &place, uar_str_c(id), &error))
			uar_log(x->j->k->o.log, UAR_LOG_DEBUG, "kb.file_not_removed",
				{ "reason", uar_str_c(error.text) });
		uar_free(s->name);
	}
}

/* Was it taken from this folder, and not put by somebody? */
static bool is_ours(const struct walk *x, const struct uar_kb_document *d)
{
	uar_str dir = uar_str_c(x->j->k->o.watch_dir);

	return d->watched && uar_str_starts(d->source, dir) && d->source.n > dir.n &&
	       d->source.p[dir.n] == '/';
}

/* Documents of files that were taken by an earlier server: one may be gone since. */
static void recall_collection(struct walk *x, uar_str collection)
{
	struct uar_kb_page page = { .place = { x->j->k->o.owner, collection },
				    .after = UAR_STR(""),
				    .arena = &x->j->arena };
	struct uar_kb_documents list;

	do {
		if (uar_kb_list(x->kb, &page, &list, NULL))
			return;
		for (size_t i = 0; i < list.n; i++) {
			page.after = list.at[i].id;
			if (is_ours(x, &list.at[i]))
				(void)add_seen(x->w, collection.p, list.at[i].id.p);
		}
	} while (list.n == UAR_LIMIT_KB_PAGE);
}

static void recall_files(struct walk *x)
{
	struct uar_kb_collections list;

	if (x->w->begun || uar_kb_collections(x->kb, &x->j->k->o.owner, &x->j->arena, &list, NULL))
		return;
	x->w->begun = true;
	for (size_t i = 0; i < list.n; i++)
		recall_collection(x, list.at[i].name);
}

static void run_look(struct uar_kb *kb, struct uar_know_job *j)
{
	struct know_watcher *w = j->ctx;
	struct walk x = { .w = w, .kb = kb, .j = j };
	const char *dir = j->k->o.watch_dir;
	struct stat st;

	if (stat(dir, &st) || !S_ISDIR(st.st_mode))
		return; /* what is not there now has not lost its files */
	recall_files(&x);
	w->next = 0;
	see_dir(&x, dir, strlen(dir) + 1, 0);
	if (!w->stopped && !x.partial) {
		keep_emptied(&x);
		remove_missing(&x);
	}
	w->partial = x.partial;
	j->err = x.changed ? UAR_ESKIP : UAR_OK;
}

void know_watch_free(struct know_watcher *w)
{
	if (!w)
		return;
	for (size_t i = 0; i < w->n; i++)
		uar_free(w->at[i].name);
	uar_free(w->at);
	uar_free(w);
}

static void looked(struct uar_know_job *j)
{
	struct know_watcher *w = j->ctx;

	if (j->err == UAR_ESKIP)
		uar_know_wake(w->k);
	uar_know_free(j);
	if (uar_timer_set(w->k->sched, &w->timer, EVERY_US))
		uar_log(w->k->o.log, UAR_LOG_WARN, "kb.watch_ends",
			{ "text", UAR_STR("out of memory") });
}

static void on_timer(struct uar_timer *t)
{
	struct know_watcher *w = UAR_OWNER(t, struct know_watcher, timer);
	struct uar_know_job *j = uar_know_job_new(w->k, sizeof *j);

	if (j) {
		j->run = run_look;
		j->done = looked;
		j->ctx = w;
	}
	if ((!j || uar_know_begin(j)) && uar_timer_set(w->k->sched, t, EVERY_US))
		uar_log(w->k->o.log, UAR_LOG_WARN, "kb.watch_ends",
			{ "text", UAR_STR("out of memory") });
}

uar_err know_watch_start(struct uar_knowledge *k)
{
	struct know_watcher *w;

	if (!k->o.watch_dir || !k->o.watch_dir[0])
		return UAR_OK;
	w = uar_zalloc(sizeof *w);
	if (!w)
		return UAR_ENOMEM;
	w->k = k;
	w->timer.fn = on_timer;
	k->watcher = w;
	return uar_timer_set(k->sched, &w->timer, 1000);
}

void know_watch_stop(struct uar_knowledge *k)
{
	struct know_watcher *w = k->watcher;

	if (!w)
		return;
	uar_timer_stop(k->sched, &w->timer);
	atomic_store(&w->stopped, true); /* a worker may have it: it is freed with the rest */
}
