/* definition_store_int.h - a change of what owners keep, for its own files: definition_store.c does
 * it, skill_store.c knows skills. */
#ifndef UAR_WORK_DEFINITION_STORE_INT_H
#define UAR_WORK_DEFINITION_STORE_INT_H

#include "agent/definition.h"
#include "skill/skill.h"
#include "work/definition_store.h"
#include "work/definitions.h"

enum { KEPT_ID = UAR_LIMIT_ID_BYTES + 1, KEPT_ROWS = 3 };

/* The change at work. */
struct definition_writer {
	struct rt_op under_way;
	struct uar_workers *w;
	const struct kept_kind *kind;
	/* put: the new one, until the registry or the book has it */
	struct uar_definition def;
	struct uar_skill skill;
	bool has_new;
	uar_str text;			  /* of the new one */
	uar_str tools;			  /* of an MCP server, that changed */
	const char *revision;		  /* of it */
	char digest[UAR_SHA256_TEXT + 1]; /* of a server */
	struct uar_blob_put blob;
	struct uar_rows_query row;
	struct uar_thread_query session;
	struct uar_append append;
	struct uar_session state;
	struct uar_arena arena;
	struct uar_buf buf;
	struct uar_row rows[KEPT_ROWS];
	size_t row_count;
	char id[KEPT_ID], version_id[KEPT_ID + 24]; /* of its rows */
	int64_t version;			    /* of the last change; 0: there was none */
	bool active;
	unsigned tries;
};

struct kept_kind {
	const char *name;   /* "agent" */
	const char *prefix; /* of the ids of its rows */
	bool noted;	    /* a start does not take it over */
	/* Reads and checks op->text; the writer has the new one then. */
	uar_err (*read)(struct definition_writer *d, struct uar_definition_change *op);
	/* One more row of the append; NULL: none. */
	uar_err (*add_row)(struct definition_writer *d, struct uar_definition_change *op,
			   int64_t now);
	/* After the append: takes the new one, or drops the removed one; NULL: there is nothing to
	 * do. */
	uar_err (*take)(struct definition_writer *d, struct uar_definition_change *op, int64_t now);
	void (*fini)(struct definition_writer *d); /* of the new one */
};
extern const struct kept_kind rt_kept_skill, rt_kept_mcp, rt_kept_mcp_tools;

/* skill_store.c: the row of a skill is read at a start. */
UAR_MUST_CHECK uar_err rt_skill_load(struct uar_workers *w, const struct uar_owner *owner,
				     const struct uar_row_definition *row, uar_str text);
/* skill_tally.c: a run whose skills were not counted before the server stopped. */
void rt_skill_load_use(struct uar_workers *w, const struct uar_owner *owner,
		       const struct uar_row *row);
void rt_skill_load_metric(struct uar_workers *w, const struct uar_owner *owner,
			  const struct uar_row *row);
/* mcp_servers.c: likewise of an MCP server. */
/* UAR_EFORBIDDEN: a server of its own would start programs or name variables. */
UAR_MUST_CHECK uar_err rt_mcp_may_bring(struct uar_workers *w, const struct uar_definition *def,
					struct uar_error *error);
UAR_MUST_CHECK uar_err rt_mcp_load(struct uar_workers *w, const struct uar_owner *owner,
				   const struct uar_row_definition *row, uar_str text);
/* skill_tally.c. Loading is over: what was counted meanwhile is written. */
void rt_skill_tally_wake(struct uar_workers *w);

#endif
