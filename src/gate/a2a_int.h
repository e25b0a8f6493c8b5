/* a2a_int.h - a call of the public A2A protocol: what a2a_public.c, a2a_reply.c, a2a_list.c and
 * a2a_card.c share. */
#ifndef UAR_GATE_A2A_INT_H
#define UAR_GATE_A2A_INT_H

#include "gate/gate_int.h"
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
		uar_str context; /* empty: any */
		uint32_t size;
		uint64_t taken;	    /* tasks that are written */
		uar_str next;	    /* token of the page that follows; or empty */
		struct uar_buf out; /* tasks, with a comma between two */
	} page;			    /* a2a_list.c */
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
/* a2a_card.c: the card of the agent for one who may ask for its extended one. */
void gate_a2a_extended_card(struct a2a_call *k);

#endif
