/* plugin_scene.h - one plugin "p" in a folder of its own, a host on a real loop, and
 * calls that write down what they hear.
 *
 *	scene_begin(&s);                      the folder
 *	scene_file(&s, "plugin.json", ...);   what is in it
 *	scene_host(&s, environ);              the host over it
 *	...
 *	scene_end(&s);
 *
 * Notes, reports, ends and exports that are held stop the loop. */
#ifndef UAR_TEST_PLUGIN_SCENE_H
#define UAR_TEST_PLUGIN_SCENE_H

#include "leap.h"
#include "plugin/plugin.h"

struct scene;

struct call {
	struct scene *scene;
	struct uar_entry_slot slot;
	struct uar_entry_call *call;
	char run_id[16];
	const char *entry;
	bool ready, started, done;
	bool hold;     /* exports are not answered by themselves */
	uint64_t held; /* ticket of the last export */
	enum uar_entry_how how;
	char code[64], message[320], result[256], exported[256];
	bool retryable;
	double progress;
	unsigned exports, reports, refs;
};

enum { SCENE_CALLS = 64 };
struct scene {
	struct uar_loop *loop;
	struct uar_plugin_host *host;
	struct uar_entries *port;
	struct call calls[SCENE_CALLS];
	struct uar_buf notes; /* a line each: what, and its text */
	char dir[256];	      /* of plugins */
	unsigned over;	      /* calls that have ended */
	struct leap time;
	struct uar_timer later;
};

bool scene_begin(struct scene *s);
bool scene_file(const struct scene *s, const char *name, const char *text);
bool scene_host(struct scene *s, char **env);
void scene_end(struct scene *s);

/* What a call hears. */
struct uar_entry_events scene_events(struct call *c);

void until_done(struct scene *s, int i);
/* Time, which leap_hold lets stand still, moves on, and what is due then has happened. */
void scene_later(struct scene *s, int seconds);
/* Until it has reported since it was started. */
void until_progress(struct scene *s, int i);

#endif
