/* serve_skills.c - the skills of the server: their book and its directory, which is watched. */
#include "app/serve_int.h"

#include <sys/stat.h>

#include "app/limits.h"
#include "app/verbs_skill.h"
#include "base/alloc.h"
#include "json/limits.h"
#include "loop/watch.h"

enum { SETTLE_US = 100000 }; /* editors write a file in several steps */

struct server_skills {
	struct server *s;
	struct uar_buf dir;
	struct uar_timer later;
	struct uar_dir_watch *root;
	struct uar_dir_watch *folder[UAR_LIMIT_SKILL_WATCHES];
	size_t count;
};

static void on_note(void *ctx, const struct uar_skill_note *n)
{
	const struct server *s = ctx;

	uar_log(&s->log, n->level, n->what, { "folder", uar_str_c(n->folder) },
		{ "text", n->text });
}

static void on_changed(void *ctx);

/* Each folder that has or may get a skill; what cannot be watched is read on SIGHUP alone. */
static void watch_folders(struct server_skills *k)
{
	struct uar_skill_book *b = k->s->agents.skills;
	const struct uar_skill_broken *broken;
	struct uar_skill_entry *e;
	char path[UAR_LIMIT_URI_BYTES];

	while (k->count)
		uar_dir_watch_destroy(k->folder[--k->count]);
	for (size_t i = 0; (e = uar_skill_book_at(b, i)); i++) {
		snprintf(path, sizeof path, "%s/%s", k->dir.p, e->folder);
		if (e->folder[0] && k->count < UAR_LIMIT_SKILL_WATCHES &&
		    !uar_dir_watch_create(k->s->loop, path, on_changed, k, &k->folder[k->count]))
			k->count++;
	}
	for (size_t i = 0; (broken = uar_skill_book_broken_at(b, i)); i++) {
		snprintf(path, sizeof path, "%s/%s", k->dir.p, broken->folder);
		if (!broken->skill_id[0] && k->count < UAR_LIMIT_SKILL_WATCHES &&
		    !uar_dir_watch_create(k->s->loop, path, on_changed, k, &k->folder[k->count]))
			k->count++;
	}
}

void uar_server_reload_skills(struct server *s)
{
	struct uar_error error = { 0 };

	error.code =
		uar_skill_book_read_dir(s->agents.skills, s->agents.skills_watch->dir.p, &error);
	if (error.code)
		uar_log(&s->log, UAR_LOG_ERROR, "skills.refused",
			{ "problems", uar_str_c(uar_error_text(&error)) });
	watch_folders(s->agents.skills_watch);
}

static void on_settled(struct uar_timer *t)
{
	uar_server_reload_skills(UAR_OWNER(t, struct server_skills, later)->s);
}

static void on_changed(void *ctx)
{
	struct server_skills *k = ctx;

	k->later.fn = on_settled;
	if (uar_timer_set(uar_loop_sched(k->s->loop), &k->later, SETTLE_US))
		uar_log(&k->s->log, UAR_LOG_WARN, "skills.not_read",
			{ "folder", uar_buf_str(&k->dir) });
}

/* The default directory is made, so that a first folder is noticed. */
uar_err uar_server_make_skills(struct server *s, struct uar_error *error)
{
	struct server_skills *k = uar_zalloc(sizeof *k);
	uar_err e;

	if (!k)
		return UAR_ENOMEM;
	s->agents.skills_watch = k;
	k->s = s;
	k->dir = uar_buf_make(UAR_LIMIT_URI_BYTES / 2);
	uar_skills_dir(&s->config->value, &k->dir);
	e = k->dir.err ? k->dir.err : uar_skill_book_create(on_note, s, &s->agents.skills);
	if (e)
		return e;
	if (!s->config->value.skills_dir[0])
		(void)mkdir(k->dir.p, 0700);
	if (uar_dir_watch_create(s->loop, k->dir.p, on_changed, k, &k->root))
		uar_log(&s->log, UAR_LOG_DEBUG, "skills.not_watched",
			{ "folder", uar_buf_str(&k->dir) });
	e = uar_skill_book_read_dir(s->agents.skills, k->dir.p, error);
	if (!e)
		watch_folders(k);
	return e;
}

void uar_server_unmake_skills(struct server *s)
{
	struct server_skills *k = s->agents.skills_watch;

	if (!k)
		return;
	if (s->agents.skills)
		uar_timer_stop(uar_loop_sched(s->loop), &k->later);
	uar_dir_watch_destroy(k->root);
	while (k->count)
		uar_dir_watch_destroy(k->folder[--k->count]);
	uar_skill_book_destroy(s->agents.skills);
	uar_buf_fini(&k->dir);
	uar_free(k);
}
