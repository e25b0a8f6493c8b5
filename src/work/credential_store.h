/* credential_store.h - keys of people and programs, as rows below the owner of the server.
 *
 * A change is a fact of the session UAR_REGISTRY_SESSION of that owner; the row of the same append
 * says what is in force. Changes are made one after the other. The secret part of a key is never
 * here, only its digest. */
#ifndef UAR_WORK_CREDENTIAL_STORE_H
#define UAR_WORK_CREDENTIAL_STORE_H

#include "engine/engine.h"
#include "event/row.h"
#include "core/registry.h"

struct uar_workers;

/* Operation structs belong to the caller and stay in place until `done`. */
struct uar_credential_change {
	struct uar_list node;	/* the workers' */
	struct uar_owner owner; /* of the server */
	const char *change;	/* "created": there must be none of that id; "used", "revoked" */
	struct uar_row_credential row;
	void (*done)(struct uar_credential_change *op);
	void *ctx; /* the caller's */
	/* out */
	uar_err err;
	struct uar_error error;
};
UAR_MUST_CHECK uar_err uar_workers_change_credential(struct uar_workers *w,
						     struct uar_credential_change *op);

/* One key, or a page of them, the one that was written last first. */
struct uar_credential_list {
	struct uar_owner owner;
	uar_str id;	/* set: that one alone (ENOTFOUND) */
	uar_str status; /* empty: any */
	uar_str after;	/* `next` of the page before, or empty */
	uint32_t limit; /* at most UAR_LIMIT_LIST_PAGE */
	void (*done)(struct uar_credential_list *op);
	void *ctx;
	/* out, valid inside done */
	uar_err err;
	struct uar_error error;
	const struct uar_row_credential *rows;
	size_t count;
	bool more;
	uar_str next;
};
UAR_MUST_CHECK uar_err uar_workers_list_credentials(struct uar_workers *w,
						    struct uar_credential_list *op);

#endif
