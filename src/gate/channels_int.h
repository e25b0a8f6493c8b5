/* channels_int.h - what channels.c and channel_resync.c share. */
#ifndef UAR_GATE_CHANNELS_INT_H
#define UAR_GATE_CHANNELS_INT_H

#include "gate/gate_int.h"
#include "gate/limits.h"

enum { BOOT = 8, NOTICE_BYTES = 16384 };

/* An owner of whom somebody has read the channel. It stays: notices name it. */
struct watcher {
	struct uar_list node;
	struct uar_arena arena; /* of it */
	struct uar_owner owner;
};

struct notice {
	uint64_t number; /* 0: none */
	const struct watcher *of;
	struct uar_frame *frame;
	uint64_t run_hash;
	const char *status;
	bool added; /* the first of its run */
	bool gone;  /* the run is evicted: not one more word about its status */
	bool waits; /* for an answer; its status is `running` then */
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	char task_id[UAR_LIMIT_ID_BYTES + 1];
	char plugin_id[UAR_LIMIT_ID_BYTES + 1];
};

struct channel {
	const char *name;
	struct uar_gate *g;
	struct uar_list readers;
	/* Owners of whom somebody has read it: there may be cursors. */
	struct uar_list watchers;
	size_t watcher_count; /* at most UAR_LIMIT_CHANNEL_OWNERS */
	uint64_t head;	      /* number of the last notice */
	char boot[BOOT + 1];  /* tells cursors of this process from older ones */
	struct notice ring[UAR_LIMIT_CHANNEL_RING];
};

struct reader {
	struct gate_stream base;
	struct uar_list node; /* in channel->readers */
	struct channel *channel;
	const struct watcher *of;
	uint64_t seen;		/* number of the last notice it passed */
	bool lagged;		/* it is told so as soon as it takes anything */
	bool resync;		/* its cursor says nothing here: it is told so first */
	char requested[64];	/* that cursor */
	struct resyncing *look; /* its snapshots are under way; NULL: they are not */
	uar_str run_id, task_id, plugin_id, status;
	struct uar_arena arena; /* the filters */
};

/* channels.c */
bool gate_channel_wants(const struct reader *r, const struct notice *n);
void gate_channel_feed(struct reader *r); /* what it has not seen yet */
void gate_channel_cut(struct reader *r);  /* it is told that it lags, and goes */
/* Writes a frame of that name for the run into g->buf; `op` and, unless it is 0, `number`. */
void gate_channel_write_row(struct channel *ch, const char *name, const char *op, uint64_t number,
			    const struct uar_run_row *row);
/* What a notice about the row would say to filters. */
void gate_channel_describe(struct channel *ch, const struct uar_run_row *row, struct notice *out);

/* channel_resync.c: a reader whose cursor is not known here any more. False: it was cut, or it
 * goes on when it has taken what it was sent, or when its snapshots are there. */
bool gate_channel_resync(struct reader *r);
void gate_channel_forget(struct reader *r); /* it leaves */

#endif
