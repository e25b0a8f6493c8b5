/* wal_fuzz.c - any bytes as a write-ahead log, and logs that are right but for one thing.
 *
 * The first byte chooses. Of a log that is built from the input it is known what must be
 * said: nothing when its last transaction is there in part, damage when one bit is wrong
 * and a commit that was gone on from is further behind. */
#include <endian.h>
#include <stdlib.h>
#include <string.h>

#include "store/sqlite/wal_scan.h"

enum { PAGE = 512, FRAME = SQ_WAL_FRAME_HEAD + PAGE, FRAMES = 24 };

struct log {
	uint8_t bytes[SQ_WAL_HEAD + FRAMES * FRAME];
	bool commit[FRAMES];
	size_t n;
	uint32_t sum[2];
};

static void put(uint8_t *p, uint32_t v)
{
	v = htobe32(v);
	memcpy(p, &v, sizeof v);
}

/* Another way to the same sum than the reader's. */
static void add(struct log *l, const uint8_t *p, size_t n)
{
	for (size_t i = 0; i < n; i += 4) {
		uint32_t v = (uint32_t)p[i] | (uint32_t)p[i + 1] << 8 | (uint32_t)p[i + 2] << 16 |
			     (uint32_t)p[i + 3] << 24;

		l->sum[i / 4 % 2] += v + l->sum[1 - i / 4 % 2];
	}
}

static void begin(struct log *l)
{
	put(l->bytes, 0x377f0682);
	put(l->bytes + 4, 3007000);
	put(l->bytes + 8, PAGE);
	put(l->bytes + 16, 7);
	put(l->bytes + 20, 0x12345678);
	add(l, l->bytes, 24);
	put(l->bytes + 24, l->sum[0]);
	put(l->bytes + 28, l->sum[1]);
}

static void add_frame(struct log *l, uint8_t what)
{
	uint8_t *f = l->bytes + SQ_WAL_HEAD + l->n * FRAME;

	l->commit[l->n++] = what & 1;
	put(f, 1u + (what >> 1));
	put(f + 4, what & 1 ? 99 : 0);
	memcpy(f + 8, l->bytes + 16, 8);
	memset(f + SQ_WAL_FRAME_HEAD, what, PAGE);
	add(l, f, 8);
	add(l, f + SQ_WAL_FRAME_HEAD, PAGE);
	put(f + 16, l->sum[0]);
	put(f + 20, l->sum[1]);
}

static struct sq_wal_scan scan(const uint8_t *p, size_t n)
{
	struct sq_wal_scan s = { 0 };

	if (n < SQ_WAL_HEAD)
		return s;
	sq_wal_begin(&s, p);
	for (size_t at = SQ_WAL_HEAD; at + s.frame_bytes <= n; at += s.frame_bytes) {
		uint8_t *own = malloc(s.frame_bytes); /* so that a byte too far is seen */

		if (!own)
			abort();
		memcpy(own, p + at, s.frame_bytes);
		sq_wal_frame(&s, own);
		free(own);
	}
	if (s.commits && (!s.broken || s.first + s.commits >= s.at))
		abort();
	return s;
}

/* From `from` on, has a commit been gone on from? Frames count from 1. */
static bool gone_on(const struct log *l, size_t from)
{
	for (size_t x = from; x < l->n; x++)
		if (l->commit[x - 1])
			return true;
	return false;
}

static void flip(struct log *l, size_t where, unsigned bit)
{
	size_t at = where % (SQ_WAL_HEAD + l->n * FRAME);
	size_t frame = at < SQ_WAL_HEAD ? 0 : (at - SQ_WAL_HEAD) / FRAME + 1;
	uint64_t said;

	l->bytes[at] = (uint8_t)(l->bytes[at] ^ 1u << bit);
	if (at >= 8 && at < 12) /* pages of this size are not ours: nothing fits any more */
		return;
	said = scan(l->bytes, SQ_WAL_HEAD + l->n * FRAME).commits;
	if (frame && !said && gone_on(l, frame + 2))
		abort();
	if (said && !gone_on(l, frame + 1))
		abort();
}

/* Frames of the last transaction that did not come to the disk, by the bits of `lost`. */
static void tear(struct log *l, uint32_t lost)
{
	size_t from = l->n;

	if (from && l->commit[from - 1])
		from--;
	while (from && !l->commit[from - 1])
		from--;
	for (size_t i = from; i < l->n; i++)
		if (lost >> (i - from) & 1)
			memset(l->bytes + SQ_WAL_HEAD + i * FRAME + (lost >> 31 ? 8 : 0), 0, PAGE);
	if (scan(l->bytes, SQ_WAL_HEAD + l->n * FRAME).commits)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct log *l;
	uint32_t what;

	if (size < 6)
		return 0;
	if (data[0] == 0) {
		scan(data + 1, size - 1);
		return 0;
	}
	l = calloc(1, sizeof *l);
	if (!l)
		abort();
	memcpy(&what, data + 2, sizeof what);
	begin(l);
	for (size_t i = 6; i < size && l->n < FRAMES; i++)
		add_frame(l, data[i]);
	if (data[0] & 1)
		flip(l, what, data[1] & 7);
	else
		tear(l, what);
	free(l);
	return 0;
}
