/* store_row_fuzz.c - any bytes as a row of the log that has a right checksum:
 * it decodes to as many events as it says, numbered from its place, or is refused. */
#include <stdlib.h>

#include "store/sqlite/sqlite_int.h"

static uint64_t run_sequence(const struct sq_log_row *r, size_t at)
{
	bool own = r->rid && at >= (size_t)r->lead && at + (size_t)r->tail < (size_t)r->n;

	return own ? 5 + at - (size_t)r->lead : 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct uar_event base = { .type = UAR_STR_NONE }, out[16];
	struct uar_error error = { 0 };
	struct uar_arena arena = { 0 };
	struct sq_log_row row = { .pos = 1, .sid = 2, .seq = 10 };
	struct sq_decode d = { .base = &base, .outside = &base, .arena = &arena, .out = out };
	size_t ids, n = 0;

	if (size < 5)
		return 0;
	row.n = data[0];
	row.rid = data[1] & 1;
	row.run_seq = row.rid ? 5 : 0;
	d.skip = data[1] >> 1 & 7;
	d.max = data[1] >> 4;
	row.lead = data[4] & 15;
	row.tail = data[4] >> 4;
	ids = data[2] < size - 5 ? data[2] : 0;
	row.ids = uar_str_n((const char *)data + 5, ids);
	row.body = uar_str_n((const char *)data + 5 + ids, size - 5 - ids);
	row.sum = sq_log_sum(&row) ^ (data[3] == 255);
	base.ids[UAR_ID_SESSION] = UAR_STR("session");
	if (!sq_log_decode(&row, &d, &n, &error)) {
		if (data[3] == 255 || n > d.max || d.skip + n > (size_t)row.n + d.skip)
			abort();
		for (size_t i = 0; i < n; i++)
			if (out[i].sequence != 10 + d.skip + i ||
			    out[i].run_sequence != run_sequence(&row, d.skip + i))
				abort();
	} else if (error.code != UAR_ECORRUPT && error.code != UAR_ENEWER) {
		abort();
	}
	uar_arena_fini(&arena);
	return 0;
}
