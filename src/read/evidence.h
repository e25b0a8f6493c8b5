/* evidence.h - documents of evidence: made from the log, kept as blobs, read again. */
#ifndef UAR_READ_EVIDENCE_H
#define UAR_READ_EVIDENCE_H

#include "evidence/evidence.h"
#include "read/read.h"

/* It stays in place, with its strings, until done. */
struct uar_export_op {
	struct uar_owner owner;
	enum uar_evidence_kind kind;
	uar_str session_id, thread_id, turn_id, task_id; /* a turn needs one of the first two */
	uar_str outcome_id, fingerprint; /* of an idempotency key (core/control.h) */
	void (*done)(struct uar_export_op *op);
	void *ctx; /* the caller's */
	/* out; `result` is valid inside done */
	uar_err err; /* ENOTFOUND, EINVALID; ETOOBIG; EBUSY: too many at once */
	struct uar_error error;
	uar_str result, event_ids; /* as those of a command */
	char event_id[UAR_UUID_TEXT + 1];
};
UAR_MUST_CHECK uar_err uar_read_export(struct uar_reader *rd, struct uar_export_op *op);

/* A document by its id. It stays in place, with its strings, until done. */
struct uar_evidence_op {
	struct uar_owner owner;
	uar_str evidence_id;
	void (*done)(struct uar_evidence_op *op);
	void *ctx; /* the caller's */
	/* out; `json` belongs to the caller: uar_buf_fini */
	uar_err err; /* ENOTFOUND */
	struct uar_error error;
	struct uar_buf json;
};
UAR_MUST_CHECK uar_err uar_read_evidence(struct uar_reader *rd, struct uar_evidence_op *op);

#endif
