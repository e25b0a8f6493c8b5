/* evidence_int.h - the fold of a document, among the files of this room. */
#ifndef UAR_EVIDENCE_EVIDENCE_INT_H
#define UAR_EVIDENCE_EVIDENCE_INT_H

#include "base/map.h"
#include "core/view.h"
#include "evidence/evidence.h"

enum ev_section {
	EV_TOOLS,
	EV_FAILURES,
	EV_ATTEMPTS,
	EV_ACTIONS,
	EV_ARTIFACTS,
	EV_CONTEXT,
	EV_OUTPUTS,
	EV_NOTES,
	EV_INPUTS,
	EV_INVENTORY,
	EV_ENDS,
	EV_GOVERNANCE,
	EV_OUTCOMES,
	EV_GAPS,
	EV_SECTIONS
};

enum { EV_SIGNALS_MAX = 32 }; /* rows of signal.def, at most */

/* A JSON array that grows. */
struct ev_list {
	struct uar_buf text;
	struct uar_jw w;
};

struct ev_counts {
	uint64_t seen, begun, ended; /* of one signal */
};

struct ev_chain {
	char link[UAR_SHA256_TEXT + 1];
	struct uar_buf text; /* canonical, of one event */
};

/* The numbers of the summary. */
struct ev_sums {
	uint64_t events, from, to;
	int64_t first_us, last_us;
	uint64_t tools_ok, tools_failed, tools_denied;
	uint64_t hidden;   /* events of which something was hidden */
	uint64_t unpriced; /* model requests without usage */
};

struct uar_evidence {
	enum uar_evidence_kind kind;
	struct uar_arena arena;	  /* of ids */
	struct uar_arena scratch; /* of one event */
	struct uar_evidence_scope scope;
	uar_str scope_text;
	uar_str thread_id, runtime_id; /* of the first event that has one */
	struct ev_chain chain;
	struct uar_sview view;
	struct ev_list lists[EV_SECTIONS];
	struct ev_list ids[UAR_ID_COUNT];
	struct uar_map known;  /* ids that are listed */
	struct uar_map denied; /* tool calls that nobody allowed */
	size_t id_count;
	struct ev_counts signals[EV_SIGNALS_MAX];
	struct ev_sums sums;
	uint64_t bytes; /* that were written */
};

/* chain.c */
UAR_MUST_CHECK uar_err ev_chain_begin(struct ev_chain *c, uar_str scope_text);
/* The next link, of an event as a tree. */
UAR_MUST_CHECK uar_err ev_chain_add(struct ev_chain *c, const struct uar_json *event);
UAR_MUST_CHECK uar_err ev_content_digest(const char *head, const struct uar_json *content,
					 char out[UAR_SHA256_TEXT + 1]);
void ev_evidence_id(enum uar_evidence_kind kind, uar_str scope_text, const char *sha256,
		    char out[UAR_EVIDENCE_ID + 1]);

/* sections.c: what the lists say of an event. `p` is its payload. */
UAR_MUST_CHECK uar_err ev_sections_add(struct uar_evidence *x, const struct uar_event *ev,
				       const struct uar_json *p);
/* Signals and known_gaps; a gap is also listed in EV_GAPS. */
void ev_signals_write(struct uar_evidence *x, struct uar_jw *w, const char *key);
bool ev_signals_open(const struct uar_evidence *x);
uar_str ev_list_text(struct ev_list *l); /* ends it */
void ev_list_begin(struct ev_list *l);

/* content.c */
UAR_MUST_CHECK uar_err ev_content_write(struct uar_evidence *x, struct uar_buf *out,
					struct uar_evidence_facts *facts);
/* The read models of every thread of the view, as one JSON array. */
UAR_MUST_CHECK uar_err ev_threads_write(const struct uar_sview *v, struct uar_buf *out);
/* Folds one event of a scope: sequences may be missing between two. */
UAR_MUST_CHECK uar_err ev_view_fold(struct uar_sview *v, const struct uar_json *event,
				    struct uar_arena *scratch);

#endif
