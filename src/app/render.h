/* render.h - normalized events as a person reads them.
 *
 * Text flows as it comes, reasoning is dimmed, everything else is one line.
 * What arrives is never trusted: it is cleaned for the terminal first. */
#ifndef UAR_APP_RENDER_H
#define UAR_APP_RENDER_H

#include <stdio.h>

#include "base/clock.h"
#include "json/json.h"

struct uar_render {
	FILE *text;  /* the answer itself */
	FILE *notes; /* reasoning, tools and the like; may be the same stream */
	bool text_colour, notes_colour;
	bool frame; /* also show where the run begins and ends */
	bool alone; /* questions are answered here: no word about `uar approve` */
	bool live;  /* notes is a terminal: progress is one line that changes */
	bool steps; /* each report of progress is a line of its own */
	bool bar;   /* that line is there */
	const struct uar_clock *clock; /* to show how long a tool took; NULL: not shown */
	enum { UAR_RENDER_START, UAR_RENDER_TEXT, UAR_RENDER_REASONING } open;
	bool midline;	/* the open text does not end with a line end */
	unsigned lines; /* notes so far */
	struct {	/* questions, so that an answer can name its own */
		char action_id[UAR_LIMIT_ID_BYTES + 24];
		char title[168];
	} asked[8];
	unsigned asked_next;
	struct { /* tools at work, so that an end can name its own */
		char call_id[UAR_LIMIT_ID_BYTES + 1];
		char name[64];
		int64_t since_us;
	} tools[8];
	unsigned tools_next;
};

/* `event` is {"type","data"}; other shapes are shown as they are, briefly. */
void uar_render_event(struct uar_render *r, const struct uar_json *event);
/* Ends an open line, so that what follows begins on its own. */
void uar_render_rest(struct uar_render *r);

#endif
