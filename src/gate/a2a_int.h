/* a2a_int.h - a call of the public A2A protocol: what a2a_public.c, a2a_reply.c, a2a_list.c and
 * a2a_card.c share. */
#ifndef UAR_GATE_A2A_INT_H
#define UAR_GATE_A2A_INT_H

#include "gate/gate_int.h"
#include "gate/limits.h"
#include "mail/push.h"
#include "proto/a2a_wire.h"
#include "read/actions.h"

/* One operation of a client, in either binding and version. In the arena of its call. */
struct a2a_call {
	struct call *c;
	enum uar_a2a_op op;
	bool rpc;		       /* the JSON-RPC binding */
	uar_str id;		       /* JSON text of the request's id */
	bool old;		       /* version 0.3 */
	const struct uar_json *params; /* of JSON-RPC, or the body */
	uar_str agent_id;	       /* that the path names */
	uar_str task_id;	       /* that the operation names */
	int64_t history_length;	       /* -1: all */
	enum uar_a2a_error refused_as; /* when `refused`: what the next problem is */
	bool refused;
	struct uar_a2a_input in;
	struct gate_view view;
	struct uar_run_create create;
	struct uar_run_list known;
	struct uar_run_cancel_op cancel;
	struct uar_actions_op actions;
	struct uar_run_answer_op answer;
	void (*then)(struct a2a_call *k, const struct uar_run_row *row);
	struct a2a_page {
		uar_str next;	    /* token of the page that follows; or empty */
		uint64_t total;	    /* tasks of all pages */
		struct uar_buf out; /* tasks, with a comma between two */
		bool artifacts;	    /* tasks are shown with them */
		/* Of the tasks, when they are shown whole: */
		uar_str ids[UAR_LIMIT_A2A_LIST_PAGE];
		size_t count;
	} page; /* a2a_list.c */
	struct {
		struct uar_push_op op;
		uar_str id;    /* of a configuration */
		uint32_t page; /* of a list of them, behind: */
		uar_str after;
		uint64_t sequence; /* events after this one are sent */
		void (*then)(struct a2a_call *k);
		bool had; /* a reply took the place of: */
		struct uar_a2a_push old;
		uar_err refused; /* and was refused for: */
		struct uar_error why;
	} push; /* a2a_push.c */
};

/* a2a_public.c */
/* Answers with an error of the protocol. */
void gate_a2a_fail(struct a2a_call *k, enum uar_a2a_error which, const char *text);
/* Goes on with `then` if the caller has such a task of the agent; else answers. */
void gate_a2a_look_up(struct a2a_call *k,
		      void (*then)(struct a2a_call *k, const struct uar_run_row *row));
/* Shows the task as the operation asks for it. */
void gate_a2a_show(struct a2a_call *k, uar_str run_id);
/* a2a_reply.c: a message to a task that waits. */
void gate_a2a_reply(struct a2a_call *k, const struct uar_run_row *row);
/* a2a_list.c */
void gate_a2a_list(struct a2a_call *k);
void gate_a2a_answer_page(struct a2a_call *k);
/* a2a_list_tasks.c: the tasks of the page as they stand, then gate_a2a_answer_page. */
void gate_a2a_list_whole(struct a2a_call *k);
/* A parameter of a list, of JSON-RPC or of the query; *out stays as it is if it is not there. */
UAR_MUST_CHECK uar_err gate_a2a_text(struct a2a_call *k, const char *camel, const char *snake,
				     uar_str *out, struct uar_error *error);
/* The size of a page, which stays as it is if none is asked for. */
UAR_MUST_CHECK uar_err gate_a2a_page_size(struct a2a_call *k, uint32_t *size,
					  struct uar_error *error);
/* a2a_push.c: operations on configurations of notifications. */
void gate_a2a_push_config(struct a2a_call *k);
/* Notifications of the task go where the message says, of what comes behind that event; goes on
 * with `then`. */
void gate_a2a_notify(struct a2a_call *k, uint64_t after, void (*then)(struct a2a_call *k));
/* The same for a reply, which may yet be refused: then gate_a2a_unnotify puts back what was there
 * and answers. `then` is called although the client has gone. */
void gate_a2a_notify_reply(struct a2a_call *k, uint64_t after, void (*then)(struct a2a_call *k));
void gate_a2a_unnotify(struct a2a_call *k, uar_err e, const struct uar_error *error);
/* a2a_card.c: the card of the agent for one who may ask for its extended one. */
void gate_a2a_extended_card(struct a2a_call *k);

#endif
