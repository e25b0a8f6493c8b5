/* numbers.h - histograms and the text format of metrics. */
#ifndef UAR_GATE_NUMBERS_H
#define UAR_GATE_NUMBERS_H

#include "base/buf.h"

enum { HISTOGRAM_BOUNDS = 13 };
struct histogram {
	uint64_t below[HISTOGRAM_BOUNDS + 1]; /* the last: all that is longer */
	uint64_t count;
	int64_t sum_us;
};
void gate_histogram_add(struct histogram *h, int64_t us); /* negative counts as none */
/* labels: "plugin=\"a\"" or empty. */
void gate_histogram_write(struct uar_buf *out, const char *name, const char *labels,
			  const struct histogram *h);
void gate_metric_head(struct uar_buf *out, const char *name, const char *kind, const char *help);
/* A label's value, escaped. */
void gate_metric_label(struct uar_buf *out, const char *name, uar_str value);
/* A number without labels, with its head. */
void gate_metric(struct uar_buf *out, const char *name, const char *kind, uint64_t value,
		 const char *help);

#endif
