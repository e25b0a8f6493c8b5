/* facts.h - sessions, runs and events made up for tests of the store. */
#ifndef UAR_TEST_FACTS_H
#define UAR_TEST_FACTS_H

#include "pump.h"
#include "store/store.h"

/* A session with one thread, turn, task and run, all named after a number,
 * and how far each has come. */
struct uar_facts {
	struct uar_owner owner;
	char runtime[UAR_UUID_TEXT + 1];
	char session[40], thread[40], turn[40], task[40], run[40];
	uint64_t seq, run_seq;
	uint64_t number, made;
	struct uar_arena arena; /* of payloads and ids */
};
extern const struct uar_owner uar_facts_owner, uar_facts_stranger;

void uar_facts_init(struct uar_facts *f, const struct uar_store *s, uint64_t number);
void uar_facts_fini(struct uar_facts *f);
/* The first events of a session: created, thread started, turn submitted. */
size_t uar_facts_opening(struct uar_facts *f, struct uar_event out[3]);
/* A piece of the model's answer, of the run. */
struct uar_event uar_facts_delta(struct uar_facts *f, const char *text);
struct uar_run_row uar_facts_row(const struct uar_facts *f, const char *status, bool terminal);

/* Appends and waits for `done`; the error of the call or of the append. */
uar_err uar_facts_append(struct uar_pump *p, struct uar_store *s, struct uar_append *a);
/* The opening and the run's row in one append. */
uar_err uar_facts_begin(struct uar_pump *p, struct uar_store *s, struct uar_facts *f);
/* `n` deltas in one append. */
uar_err uar_facts_go_on(struct uar_pump *p, struct uar_store *s, struct uar_facts *f, size_t n);
/* Reads and waits. The caller ends with uar_store_read_fini. */
uar_err uar_facts_read(struct uar_pump *p, struct uar_store *s, struct uar_read *r);
uar_err uar_facts_runs(struct uar_pump *p, struct uar_store *s, struct uar_runs_query *q);
uar_err uar_facts_key(struct uar_pump *p, struct uar_store *s, struct uar_key_query *q);
uar_err uar_facts_thread(struct uar_pump *p, struct uar_store *s, struct uar_thread_query *q);
uar_err uar_facts_put(struct uar_pump *p, struct uar_store *s, struct uar_blob_put *b);
uar_err uar_facts_get(struct uar_pump *p, struct uar_store *s, struct uar_blob_get *b);
void uar_facts_drain(struct uar_pump *p, struct uar_store *s);
/* Every event of the session, page by page; true when `f` tells the same story:
 * gapless, and each event as uar_facts_* made it. */
bool uar_facts_all_there(struct uar_pump *p, struct uar_store *s, const struct uar_facts *f);

#endif
