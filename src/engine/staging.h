/* staging.h - bytes that a client uploads for a run, before an event refers to them.
 *
 * They are durable under the run and an id of their own, and go when the run is over. */
#ifndef UAR_ENGINE_STAGING_H
#define UAR_ENGINE_STAGING_H

#include "engine/engine.h"

/* One upload, piece by piece: one call of uar_runtime_stage for each, the next one after
 * `done`. It belongs to the caller and stays in place, with its strings, until `done`.
 * It begins with all fields cleared. */
struct uar_staging {
	struct uar_owner owner;
	uar_str run_id, id; /* id: 24 lower-case hex digits */
	uar_str bytes;	    /* of this piece */
	bool last;	    /* then the whole is durable, */
	uar_str expect;	    /* if this is empty or its sha256, else EINVALID */
	void (*done)(struct uar_staging *s);
	/* out */
	/* ESTATE: the run is over, ENOTFOUND: there is none; EEXISTS: other bytes have the
	 * id; ERATELIMIT: the run has UAR_LIMIT_RUN_STAGED; ETOOBIG */
	uar_err err;
	struct uar_error error;
	char sha256[65]; /* of the whole, after the last piece */
	void *internal;	 /* the engine's */
};
UAR_MUST_CHECK uar_err uar_runtime_stage(struct uar_runtime *rt, struct uar_staging *s);
uint64_t uar_staging_max(const struct uar_runtime *rt); /* bytes of one upload */
/* Forgets what is not finished. No piece is under way, or the store is gone. */
void uar_staging_fini(struct uar_staging *s);

#endif
