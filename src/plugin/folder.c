/* folder.c - the folder of plugins: what is in it, and what has changed there.
 *
 * A plugin whose manifest changed is replaced: the old one takes no new runs and goes when
 * those it has are over. A manifest that cannot be used changes nothing. */
#include "json/limits.h"
#include "plugin/plugin_int.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { LOOK_AGAIN_US = 100000 };

/* What tells one version of plugin.json from another, without reading it. */
struct stamp {
	uint64_t device, inode, size, dir_inode;
	int64_t changed_s, changed_ns;
};

struct folder {
	struct uar_list node;
	struct uar_dir_watch *watch; /* NULL: it cannot be watched */
	struct plugin *plugin;	     /* that is in use; NULL: none */
	struct stamp stamp;
	bool seen; /* in this look */
	char name[];
};

static void on_changed(void *ctx);

static void note_folder(struct uar_plugin_host *h, const char *name, const struct uar_error *error)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_LOG_LINE);
	struct uar_plugin_note n = { .level = UAR_LOG_ERROR, .what = "plugin.left_out" };

	uar_buf_printf(&b, "%s: %s%s%s", name, error->where, error->where[0] ? ": " : "",
		       uar_error_text(error));
	n.text = uar_buf_str(&b);
	if (h->o.note)
		h->o.note(h->o.ctx, &n);
	uar_buf_fini(&b);
}

static struct folder *find_folder(struct plugin_folders *all, const char *name)
{
	UAR_LIST_EACH (it, &all->list) {
		struct folder *f = UAR_OWNER(it, struct folder, node);

		if (strcmp(f->name, name) == 0)
			return f;
	}
	return NULL;
}

static struct folder *make_folder(struct plugin_folders *all, const char *name)
{
	struct folder *f = uar_zalloc(sizeof *f + strlen(name) + 1);

	if (!f)
		return NULL;
	memcpy(f->name, name, strlen(name) + 1);
	uar_list_add_last(&all->list, &f->node);
	return f;
}

static void free_folder(struct folder *f)
{
	uar_dir_watch_destroy(f->watch);
	uar_list_remove(&f->node);
	uar_free(f);
}

/* All zero: there is no manifest. */
static struct stamp stamp_of(const char *path)
{
	struct uar_buf file = uar_buf_make(UAR_LIMIT_URI_BYTES);
	struct stamp out = { 0 };
	struct stat st;

	if (stat(path, &st) == 0)
		out.dir_inode = st.st_ino;
	uar_buf_printf(&file, "%s/plugin.json", path);
	if (!file.err && stat(file.p, &st) == 0) {
		out.device = st.st_dev;
		out.inode = st.st_ino;
		out.size = (uint64_t)st.st_size;
		out.changed_s = st.st_ctim.tv_sec;
		out.changed_ns = st.st_ctim.tv_nsec;
	}
	uar_buf_fini(&file);
	return out;
}

static void watch_folder(struct uar_plugin_host *h, struct folder *f, const char *path)
{
	uar_dir_watch_destroy(f->watch);
	f->watch = NULL;
	if (uar_dir_watch_create(h->o.loop, path, on_changed, h, &f->watch))
		f->watch = NULL;
}

static void change_plugin(struct folder *f, struct plugin *next)
{
	struct plugin *old = f->plugin;
	struct plugin *named = next ? next : old;
	struct uar_plugin_host *h;

	if (!named)
		return;
	h = named->host;
	f->plugin = next;
	if (h->folders.looked)
		plugin_note(named, UAR_LOG_INFO,
			    !next ? "plugin.removed"
			    : old ? "plugin.changed"
				  : "plugin.added",
			    NULL, named->m.version);
	if (old)
		plugin_withdraw(old);
	if (next)
		plugin_insert(next);
	if (old)
		plugin_release_slots(old);
}

static void look_at(struct uar_plugin_host *h, struct folder *f, const char *path)
{
	struct stamp now = stamp_of(path);
	bool changed = memcmp(&now, &f->stamp, sizeof now) != 0;
	struct uar_error why = { 0 };
	struct plugin *next = NULL;
	uar_err e;

	if (now.dir_inode != f->stamp.dir_inode)
		watch_folder(h, f, path);
	f->stamp = now;
	if (f->plugin && !changed)
		return;
	if (strcmp(f->name, "plugin.json") == 0)
		e = uar_error_set(&why, UAR_EINVALID,
				  "the folder of plugins is a plugin itself; name the one above");
	else
		e = plugin_make(h, path, f->plugin, &next, &why);
	why.code = e;
	if (!e || (e == UAR_ENOTFOUND && f->plugin))
		change_plugin(f, next);
	else if (e != UAR_ENOTFOUND && changed)
		note_folder(h, f->name, &why);
}

static int wanted(const struct dirent *d)
{
	return d->d_name[0] != '.';
}

static int by_name(const struct dirent **a, const struct dirent **b)
{
	return strcmp((*a)->d_name, (*b)->d_name);
}

static void look_at_name(struct uar_plugin_host *h, const char *name)
{
	struct folder *f = find_folder(&h->folders, name);
	struct uar_buf path = uar_buf_make(UAR_LIMIT_URI_BYTES);

	if (!f)
		f = make_folder(&h->folders, name);
	uar_buf_printf(&path, "%s/%s", h->folders.dir, name);
	if (f && !path.err) {
		f->seen = true;
		look_at(h, f, path.p);
	}
	uar_buf_fini(&path);
}

static void forget_unseen(struct uar_plugin_host *h)
{
	UAR_LIST_EACH (it, &h->folders.list) {
		struct folder *f = UAR_OWNER(it, struct folder, node);

		if (!f->seen && f->plugin)
			change_plugin(f, NULL);
		if (!f->seen)
			free_folder(f);
	}
}

/* In the order of their names: of two with one id the same one stays. A folder that cannot be
 * read changes nothing. */
uar_err folders_look(struct uar_plugin_host *h, struct uar_error *error)
{
	struct dirent **names = NULL;
	int n = scandir(h->folders.dir, &names, wanted, by_name);

	if (n < 0 && errno != ENOENT)
		return uar_error_set(error, UAR_EIO, "%s: %s", h->folders.dir, strerror(errno));
	UAR_LIST_EACH (it, &h->folders.list)
		UAR_OWNER(it, struct folder, node)->seen = false;
	for (int i = 0; i < n; i++) {
		look_at_name(h, names[i]->d_name);
		free(names[i]); /* scandir's */
	}
	free(names);
	forget_unseen(h);
	h->folders.looked = true;
	return UAR_OK;
}

static void on_look_again(struct uar_timer *t)
{
	struct uar_plugin_host *h = UAR_OWNER(t, struct uar_plugin_host, folders.later);

	h->folders.pending = false;
	uar_plugin_host_reload(h);
}

/* What is being written gets a moment to become complete. */
static void on_changed(void *ctx)
{
	struct uar_plugin_host *h = ctx;

	if (h->folders.pending)
		return;
	h->folders.pending =
		!uar_timer_set(uar_loop_sched(h->o.loop), &h->folders.later, LOOK_AGAIN_US);
}

void uar_plugin_host_reload(struct uar_plugin_host *h)
{
	struct uar_error error = { 0 };
	uar_err e;

	if (!h->folders.dir)
		return;
	e = folders_look(h, &error);
	error.code = e;
	if (e)
		note_folder(h, h->folders.dir, &error);
}

uar_err folders_init(struct uar_plugin_host *h, const char *dir, struct uar_error *error)
{
	h->folders.later.fn = on_look_again;
	h->folders.dir = uar_strdup_n(dir, strlen(dir));
	if (!h->folders.dir)
		return UAR_ENOMEM;
	if (uar_dir_watch_create(h->o.loop, dir, on_changed, h, &h->folders.watch))
		h->folders.watch = NULL;
	return folders_look(h, error);
}

void folders_fini(struct uar_plugin_host *h)
{
	uar_timer_stop(uar_loop_sched(h->o.loop), &h->folders.later);
	UAR_LIST_EACH (it, &h->folders.list)
		free_folder(UAR_OWNER(it, struct folder, node));
	uar_dir_watch_destroy(h->folders.watch);
	uar_free(h->folders.dir);
}
