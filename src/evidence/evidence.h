/* evidence.h - documents that are pure folds of the log: a pack of evidence, a replay case, a
 * review.
 *
 *	document = fold(kind, scope, events)
 *
 * A document has a timeline, a content that is computed from it, and three digests:
 *
 *	link 0    = sha256(format "\n" canonical scope)
 *	link i    = sha256(link i-1 "\n" canonical event i)      the last one: chain_head
 *	sha256    = sha256(chain_head "\n" canonical content)
 *
 * and evidence_id follows from the scope and sha256. Nothing in it says when it was made: the
 * same facts are the same bytes. Facts about exports, snapshots and reading are left out, so
 * that an export does not change the next one. Values whose names say that they are secret
 * are hidden before anything is written or hashed; bytes beside the log are named, not copied. */
#ifndef UAR_EVIDENCE_EVIDENCE_H
#define UAR_EVIDENCE_EVIDENCE_H

#include "base/sha256.h"
#include "event/event.h"

#define UAR_EVIDENCE_FORMAT "uar.evidence/1"
#define UAR_EVIDENCE_PREFIX "evidence-"
enum { UAR_EVIDENCE_ID = 41 }; /* bytes of an evidence_id */

enum uar_evidence_kind { UAR_EVIDENCE_PACK, UAR_EVIDENCE_REPLAY, UAR_EVIDENCE_REVIEW };
const char *uar_evidence_kind_name(enum uar_evidence_kind kind); /* "evidence" */

/* The session, and one thread, turn or task of it when that alone is meant. */
struct uar_evidence_scope {
	uar_str session_id;
	uar_str thread_id, turn_id, task_id; /* at most one */
};
void uar_evidence_write_scope(struct uar_jw *w, const char *key,
			      const struct uar_evidence_scope *scope);

/* What a document came to. Its texts live in the builder. */
struct uar_evidence_facts {
	char evidence_id[UAR_EVIDENCE_ID + 1];
	char head[UAR_SHA256_TEXT + 1], sha256[UAR_SHA256_TEXT + 1];
	uint64_t events;
	bool open;		      /* something in it has begun and not ended */
	uar_str scope;		      /* JSON object */
	uar_str thread_id;	      /* of all of it; empty: of a session */
	uar_str outcomes, gaps;	      /* JSON arrays: verification_outcomes, known_gaps */
	uar_str trace_ids, notes;     /* JSON arrays */
	uar_str pack, replay, review; /* references, the same for the three documents */
};

struct uar_evidence;
/* The scope's strings are copied. */
UAR_MUST_CHECK uar_err uar_evidence_create(enum uar_evidence_kind kind,
					   const struct uar_evidence_scope *scope,
					   struct uar_evidence **out);
void uar_evidence_destroy(struct uar_evidence *x);
/* Folds the next event of the session, which may be out of the scope, and adds what the
 * document says of it to `out`, which the caller may empty. UAR_ETOOBIG: it has too many. */
UAR_MUST_CHECK uar_err uar_evidence_add(struct uar_evidence *x, const struct uar_event *ev,
					struct uar_buf *out);
/* The rest of the document. UAR_ENOTFOUND: nothing was in the scope. */
UAR_MUST_CHECK uar_err uar_evidence_end(struct uar_evidence *x, struct uar_buf *out,
					struct uar_evidence_facts *facts);

/* What a look at a document found. */
struct uar_evidence_report {
	char kind[16], evidence_id[UAR_EVIDENCE_ID + 1], sha256[UAR_SHA256_TEXT + 1];
	uint64_t events;
	bool replayed; /* the read models were folded again from the events, and are the same */
};
/* Computes everything anew from the text alone. UAR_ECORRUPT: it is no such document, or a
 * digest differs; `error` names the first event that does. */
UAR_MUST_CHECK uar_err uar_evidence_verify(uar_str text, struct uar_evidence_report *report,
					   struct uar_error *error);

#endif
