/* net_int.h - the net as its thread sees it; for net.c and net_answer.c alone. */
#ifndef UAR_LOOP_NET_INT_H
#define UAR_LOOP_NET_INT_H

#include "loop/net.h"

#include "loop/curl_hub.h"
#include "loop/done.h"

struct net_mail { /* to the loop */
	struct uar_done *done;
	uar_task_fn *piece;
	struct uar_list tasks; /* of this round */
	uint64_t round;
	struct uar_task send;
};

struct net_orders { /* from the loop; the first three are guarded by the lock */
	struct uar_list transfers;
	bool posted, leave;
	struct uar_task wake;
	pthread_mutex_t lock;
};

struct uar_net {
	const struct uar_curl *curl;
	struct uar_loop *loop;
	struct net_mail mail;
	struct net_orders orders;
	struct uar_hub wide, shared;
	struct uar_list transfers;
	struct uar_list origins;
	size_t origin_count;
	bool learned; /* an origin was added: move the transfers that wait */
	bool running;
	pthread_t thread;
};

/* --- net.c ----------------------------------------------------------------------------------- */

/* After the I/O of this turn. */
void uar_net_tell(struct uar_net *n, struct uar_task *t);
/* Inside libcurl: only remembers. Out of memory just means to learn it later. */
void uar_net_learn(struct uar_net *n, uar_str name);
/* Before the transfer leaves its connection; also inside libcurl. */
void uar_net_give_up(struct uar_transfer *t);

/* --- net_answer.c: libcurl's callbacks for the answer of a transfer -------------------------- */

size_t uar_net_on_header(char *p, size_t size, size_t n, void *ctx);
size_t uar_net_on_body(char *p, size_t size, size_t n, void *ctx);

#endif
