/* qr.c - a QR code: the text and its Reed-Solomon bytes, laid along the zigzag, masked. */
#include "app/qr.h"

enum { WORDS = 346, EC_MOST = 30, BLOCKS = 4, FIXED = 2 };

/* Error correction L: bytes of correction in each block, and how many bytes of text each
 * block has; the last `longer` of them have one more. */
static const struct version {
	int words, ec, blocks, data, longer;
	int align[3];
} versions[] = {
	{ 26, 7, 1, 19, 0, { 0 } },
	{ 44, 10, 1, 34, 0, { 6, 18 } },
	{ 70, 15, 1, 55, 0, { 6, 22 } },
	{ 100, 20, 1, 80, 0, { 6, 26 } },
	{ 134, 26, 1, 108, 0, { 6, 30 } },
	{ 172, 18, 2, 68, 0, { 6, 34 } },
	{ 196, 20, 2, 78, 0, { 6, 22, 38 } },
	{ 242, 24, 2, 97, 0, { 6, 24, 42 } },
	{ 292, 30, 2, 116, 0, { 6, 26, 46 } },
	{ 346, 18, 4, 68, 2, { 6, 28, 50 } },
};

struct maker {
	struct uar_qr *qr;
	const struct version *v;
	int number;				       /* of the version, from 1 */
	unsigned char taken[UAR_QR_MOST][UAR_QR_MOST]; /* by what is no data */
	unsigned char words[WORDS];		       /* as they are laid out */
};

/* --- bytes ---------------------------------------------------------------------------- */

/* Product in the field of 256 elements over x^8 + x^4 + x^3 + x^2 + 1. */
static unsigned char times(unsigned char a, unsigned char b)
{
	unsigned product = 0;

	for (int i = 7; i >= 0; i--) {
		product = (product << 1) ^ ((product >> 7) * 0x11d);
		product ^= ((b >> i) & 1u) * a;
	}
	return (unsigned char)product;
}

/* The remainder of the data by the generator of degree n. */
static void correct(const unsigned char *data, int count, int n, unsigned char *out)
{
	unsigned char generator[EC_MOST] = { 0 }, root = 1;

	generator[n - 1] = 1;
	for (int i = 0; i < n; i++) {
		for (int k = 0; k < n; k++) {
			generator[k] = times(generator[k], root);
			if (k + 1 < n)
				generator[k] ^= generator[k + 1];
		}
		root = times(root, 2);
	}
	memset(out, 0, (size_t)n);
	for (int i = 0; i < count; i++) {
		unsigned char factor = data[i] ^ out[0];

		memmove(out, out + 1, (size_t)n - 1);
		out[n - 1] = 0;
		for (int k = 0; k < n; k++)
			out[k] ^= times(generator[k], factor);
	}
}

static int data_words(const struct version *v)
{
	return v->data * v->blocks + v->longer;
}

static void put_bits(unsigned char *to, int *at, unsigned value, int bits)
{
	for (int i = bits - 1; i >= 0; i--, (*at)++)
		to[*at >> 3] |= (unsigned char)(((value >> i) & 1u) << (7 - (*at & 7)));
}

/* Mode, length, text, end, padding. */
static void put_text(const struct maker *m, uar_str text, unsigned char *data)
{
	int at = 0, room = data_words(m->v) * 8;

	put_bits(data, &at, 4, 4);
	put_bits(data, &at, (unsigned)text.n, m->number < 10 ? 8 : 16);
	for (size_t i = 0; i < text.n; i++)
		put_bits(data, &at, (unsigned char)text.p[i], 8);
	put_bits(data, &at, 0, room - at < 4 ? room - at : 4);
	at = (at + 7) & ~7;
	for (unsigned pad = 0xec; at < room; pad ^= 0xec ^ 0x11)
		put_bits(data, &at, pad, 8);
}

/* First bytes of all blocks, then their second ones; the corrections likewise. */
static void interleave(struct maker *m, const unsigned char *data)
{
	const struct version *v = m->v;
	unsigned char ec[BLOCKS][EC_MOST];
	const unsigned char *block[BLOCKS], *p = data;
	int count[BLOCKS], at = 0;

	for (int b = 0; b < v->blocks; b++) {
		count[b] = v->data + (b >= v->blocks - v->longer);
		block[b] = p;
		correct(p, count[b], v->ec, ec[b]);
		p += count[b];
	}
	for (int i = 0; i <= v->data; i++)
		for (int b = 0; b < v->blocks; b++)
			if (i < count[b])
				m->words[at++] = block[b][i];
	for (int i = 0; i < v->ec; i++)
		for (int b = 0; b < v->blocks; b++)
			m->words[at++] = ec[b][i];
}

/* --- modules -------------------------------------------------------------------------- */

static void set(struct maker *m, int row, int column, bool dark)
{
	if (row < 0 || column < 0 || row >= m->qr->side || column >= m->qr->side)
		return;
	m->qr->dark[row][column] = dark;
	m->taken[row][column] = 1;
}

static int distance(int row, int column)
{
	int r = row < 0 ? -row : row, c = column < 0 ? -column : column;

	return r > c ? r : c;
}

/* Squares around a middle: in the corners (radius 4, the border included), or the small ones. */
static void put_square(struct maker *m, int row, int column, int radius)
{
	for (int r = -radius; r <= radius; r++)
		for (int c = -radius; c <= radius; c++) {
			int d = distance(r, c);

			set(m, row + r, column + c, radius == 4 ? d != 2 && d != 4 : d != 1);
		}
}

static void put_alignments(struct maker *m)
{
	const int *at = m->v->align;

	for (int i = 0; i < 3; i++)
		for (int k = 0; k < 3; k++)
			if (at[i] && at[k] && !m->taken[at[i]][at[k]])
				put_square(m, at[i], at[k], 2);
}

/* Level L and the mask, with the remainder of ten bits. */
static void put_format(struct maker *m, unsigned mask)
{
	unsigned data = (1u << 3) | mask, rest = data, bits;
	int side = m->qr->side;

	for (int i = 0; i < 10; i++)
		rest = (rest << 1) ^ ((rest >> 9) * 0x537);
	bits = ((data << 10) | rest) ^ 0x5412;
	for (int i = 0; i < 15; i++) {
		bool dark = (bits >> i) & 1u;

		if (i < 6)
			set(m, i, 8, dark);
		else if (i < 8)
			set(m, i + 1, 8, dark);
		else
			set(m, 8, i == 8 ? 7 : 14 - i, dark);
		if (i < 8)
			set(m, 8, side - 1 - i, dark);
		else
			set(m, side - 15 + i, 8, dark);
	}
	set(m, side - 8, 8, true);
}

static void put_version(struct maker *m)
{
	unsigned rest = (unsigned)m->number, bits;
	int side = m->qr->side;

	if (m->number < 7)
		return;
	for (int i = 0; i < 12; i++)
		rest = (rest << 1) ^ ((rest >> 11) * 0x1f25);
	bits = ((unsigned)m->number << 12) | rest;
	for (int i = 0; i < 18; i++) {
		bool dark = (bits >> i) & 1u;

		set(m, side - 11 + i % 3, i / 3, dark);
		set(m, i / 3, side - 11 + i % 3, dark);
	}
}

static void put_fixed(struct maker *m)
{
	int side = m->qr->side;

	put_square(m, 3, 3, 4);
	put_square(m, 3, side - 4, 4);
	put_square(m, side - 4, 3, 4);
	put_alignments(m);
	for (int i = 0; i < side; i++) {
		if (!m->taken[6][i])
			set(m, 6, i, i % 2 == 0);
		if (!m->taken[i][6])
			set(m, i, 6, i % 2 == 0);
	}
	put_format(m, 0);
	put_version(m);
}

/* Two columns at a time from the right, up and down in turn; column 6 is left out. */
static void put_words(struct maker *m)
{
	int side = m->qr->side, at = 0;
	bool up = true;

	for (int right = side - 1; right >= 1; right -= 2, up = !up) {
		if (right == 6)
			right = 5;
		for (int i = 0; i < side * 2; i++) {
			int row = up ? side - 1 - i / 2 : i / 2, column = right - i % 2;

			if (m->taken[row][column])
				continue;
			if (at < m->v->words * 8)
				m->qr->dark[row][column] =
					(m->words[at >> 3] >> (7 - (at & 7))) & 1u;
			at++;
		}
	}
}

static bool is_masked(unsigned mask, int r, int c)
{
	switch (mask) {
	case 0: return (r + c) % 2 == 0;
	case 1: return r % 2 == 0;
	case 2: return c % 3 == 0;
	case 3: return (r + c) % 3 == 0;
	case 4: return (r / 2 + c / 3) % 2 == 0;
	case 5: return r * c % 2 + r * c % 3 == 0;
	case 6: return (r * c % 2 + r * c % 3) % 2 == 0;
	default: return ((r + c) % 2 + r * c % 3) % 2 == 0;
	}
}

static void put_mask(struct maker *m, unsigned mask)
{
	for (int r = 0; r < m->qr->side; r++)
		for (int c = 0; c < m->qr->side; c++)
			if (!m->taken[r][c] && is_masked(mask, r, c))
				m->qr->dark[r][c] ^= 1u;
	put_format(m, mask);
}

/* --- which mask ----------------------------------------------------------------------- */

/* Long rows of one colour, and what looks like a corner, confuse a reader. */
static int line_penalty(const struct uar_qr *q, int line, bool column)
{
	int penalty = 0, run = 0, last = -1;
	unsigned seen = 0;

	for (int i = 0; i < q->side; i++) {
		int dark = column ? q->dark[i][line] : q->dark[line][i];

		run = dark == last ? run + 1 : 1;
		last = dark;
		penalty += run == 5 ? 3 : run > 5;
		seen = ((seen << 1) | (unsigned)dark) & 0x7ff;
		if (i >= 10 && (seen == 0x5d0 || seen == 0x05d))
			penalty += 40;
	}
	return penalty;
}

static int penalty_of(const struct uar_qr *q)
{
	int penalty = 0, dark = 0, all = q->side * q->side, off;

	for (int i = 0; i < q->side; i++)
		penalty += line_penalty(q, i, false) + line_penalty(q, i, true);
	for (int r = 0; r < q->side; r++)
		for (int c = 0; c < q->side; c++) {
			dark += q->dark[r][c];
			if (r && c && q->dark[r][c] == q->dark[r - 1][c] &&
			    q->dark[r][c] == q->dark[r][c - 1] &&
			    q->dark[r][c] == q->dark[r - 1][c - 1])
				penalty += 3;
		}
	off = dark * 20 - all * 10;
	return penalty + (off < 0 ? -off : off) / all * 10;
}

static void choose_mask(struct maker *m)
{
	unsigned best = 0;
	int least = -1;

	for (unsigned mask = 0; mask < 8; mask++) {
		int penalty;

		put_mask(m, mask);
		penalty = penalty_of(m->qr);
		if (least < 0 || penalty < least) {
			least = penalty;
			best = mask;
		}
		put_mask(m, mask); /* once more takes it away */
	}
	put_mask(m, best);
}

uar_err uar_qr_make(struct uar_qr *out, uar_str text)
{
	struct maker m = { .qr = out };
	unsigned char data[WORDS] = { 0 };
	size_t i = 0;

	while (i < ARRAY_LEN(versions) &&
	       (size_t)data_words(&versions[i]) < text.n + (i < 9 ? 2 : 3))
		i++;
	if (i == ARRAY_LEN(versions))
		return UAR_ETOOBIG;
	*out = (struct uar_qr){ .side = 21 + 4 * (int)i };
	m.v = &versions[i];
	m.number = (int)i + 1;
	put_text(&m, text, data);
	interleave(&m, data);
	put_fixed(&m);
	put_words(&m);
	choose_mask(&m);
	return UAR_OK;
}

static bool is_dark(const struct uar_qr *q, int row, int column)
{
	return row >= 0 && column >= 0 && row < q->side && column < q->side && q->dark[row][column];
}

void uar_qr_draw(const struct uar_qr *qr, bool colour, struct uar_buf *out)
{
	static const char *const blocks[] = { "\xe2\x96\x88", "\xe2\x96\x80", "\xe2\x96\x84", " " };

	for (int row = -FIXED; row < qr->side + FIXED; row += 2) {
		if (colour)
			uar_buf_add_str(out, UAR_STR("\x1b[97;40m"));
		for (int column = -FIXED; column < qr->side + FIXED; column++)
			uar_buf_add_str(out, uar_str_c(blocks[is_dark(qr, row, column) * 2 +
							      is_dark(qr, row + 1, column)]));
		uar_buf_add_str(out, colour ? UAR_STR("\x1b[0m\n") : UAR_STR("\n"));
	}
}
