/* health.h - how the latest calls of each model went, since the server was started. */
#ifndef UAR_GATE_HEALTH_H
#define UAR_GATE_HEALTH_H

#include "event/event.h"
#include "gate/limits.h"
#include "json/jw.h"

struct health_row {
	char provider[UAR_LIMIT_ID_BYTES + 1], model[UAR_LIMIT_ID_BYTES + 1];
	uint64_t calls, failures;
	uint64_t failed_in_a_row; /* the latest ones */
	int64_t last_us;	  /* when the latest ended */
	int64_t failed_us;	  /* the latest failure; 0: none */
	char category[32], message[UAR_LIMIT_ERROR_TEXT];
	uint32_t first_ms[UAR_LIMIT_HEALTH_CALLS]; /* to the first token; a ring */
	size_t first_count;			   /* of all that were put there */
};

struct health;
struct health *gate_health_create(void); /* NULL: out of memory */
void gate_health_destroy(struct health *h);
/* An end of a call: model.completed or model.failed, and its payload. */
void gate_health_add(struct health *h, const struct uar_event *ev, const struct uar_json *payload);
const struct health_row *gate_health_at(const struct health *h, size_t i); /* NULL past the end */
/* Members of an object that is open. */
void gate_health_write(const struct health_row *row, struct uar_jw *w);

#endif
