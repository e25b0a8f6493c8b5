/* ticket.c - upload ids: "RUN_ID." and base64url of what was agreed, with a MAC. */
#include "gate/ticket.h"

#include "base/base64.h"

enum {
	TICKET_RAW = 63, /* bytes: 12 blob id, 6 size and a flag, 32 sha256, 13 MAC */
	TICKET_SIZE = 6,
	TICKET_SUM = 12 + TICKET_SIZE,
	TICKET_SIGNED = 50,
	TICKET_TEXT = TICKET_RAW / 3 * 4,
	MAC_TEXT = 2 * (TICKET_RAW - TICKET_SIGNED),
};
static const uint64_t has_sha256 = 0x800000000000;

static void get_hex(const char *text, size_t n, unsigned char *out)
{
	for (size_t i = 0; i < n; i++) {
		int high = uar_hex_digit(text[2 * i]), low = uar_hex_digit(text[2 * i + 1]);

		out[i] = (unsigned char)(high * 16 + low);
	}
}

bool gate_is_sha256(uar_str s)
{
	return s.n == UAR_SHA256_TEXT && uar_str_is_hex(s);
}

/* Only what we have put together ourselves is believed. */
static bool sign(struct gate_ticket_key key, uar_str run_id, const unsigned char raw[TICKET_RAW],
		 char out[MAC_TEXT + 1])
{
	const struct uar_owner *o = key.owner;
	char text[4 * UAR_LIMIT_ID_BYTES + 2 * TICKET_SIGNED + 32];
	char hex[2 * TICKET_SIGNED + 1], mac[UAR_SHA256_TEXT + 1];

	uar_hex(raw, TICKET_SIGNED, hex);
	snprintf(text, sizeof text, "ticket %.*s %.*s %.*s %.*s %s", UAR_FMT(o->tenant),
		 UAR_FMT(o->workspace), UAR_FMT(o->user), UAR_FMT(run_id), hex);
	if (!uar_hmac_sha256_hex(key.secret, uar_str_c(text), mac))
		return false;
	snprintf(out, MAC_TEXT + 1, "%.*s", MAC_TEXT, mac);
	return true;
}

static void swap_chars(char *p, size_t n, const char *from, const char *to)
{
	for (size_t i = 0; i < n; i++) {
		const char *at = p[i] ? strchr(from, p[i]) : NULL;

		p[i] = at ? to[at - from] : p[i];
	}
}

uar_err gate_ticket_write(struct gate_ticket_key key, const struct gate_ticket *t,
			  struct uar_buf *out)
{
	unsigned char raw[TICKET_RAW] = { 0 };
	uint64_t size = t->size | (t->sha256[0] ? has_sha256 : 0);
	char mac[MAC_TEXT + 1];
	size_t at;

	get_hex(t->blob_id, 12, raw);
	for (int i = 0; i < TICKET_SIZE; i++)
		raw[12 + i] = (unsigned char)(size >> (8 * (TICKET_SIZE - 1 - i)));
	if (t->sha256[0])
		get_hex(t->sha256, 32, raw + TICKET_SUM);
	if (!sign(key, t->run_id, raw, mac))
		return UAR_ENOMEM;
	get_hex(mac, MAC_TEXT / 2, raw + TICKET_SIGNED);
	uar_buf_add_str(out, t->run_id);
	uar_buf_add_char(out, '.');
	at = out->n;
	uar_base64_encode(out, uar_str_n((const char *)raw, sizeof raw));
	if (!out->err)
		swap_chars(out->p + at, out->n - at, "+/", "-_");
	return out->err;
}

uar_err gate_ticket_read(struct gate_ticket_key key, struct uar_arena *a, uar_str id,
			 struct gate_ticket *out)
{
	size_t cut = id.n > TICKET_TEXT + 1 ? id.n - TICKET_TEXT - 1 : 0;
	uar_str text = uar_arena_str(a, uar_str_from(id, cut + 1)), bytes;
	const unsigned char *raw;
	char mac[MAC_TEXT + 1], given[MAC_TEXT + 1];
	uint64_t size = 0;

	if (!cut || id.p[cut] != '.' || !text.p)
		return UAR_ENOTFOUND;
	/* Of the arena and ours. Characters of the other alphabet become what none takes. */
	swap_chars((char *)(uintptr_t)text.p, text.n, "+/-_", "..+/");
	if (uar_base64_decode(a, text, &bytes) || bytes.n != TICKET_RAW)
		return UAR_ENOTFOUND;
	raw = (const unsigned char *)bytes.p;
	*out = (struct gate_ticket){ .run_id = uar_str_n(id.p, cut) };
	uar_hex(raw + TICKET_SIGNED, MAC_TEXT / 2, given);
	if (!sign(key, out->run_id, raw, mac) ||
	    !uar_str_eq_secret(uar_str_c(given), uar_str_c(mac)))
		return UAR_ENOTFOUND;
	for (int i = 0; i < TICKET_SIZE; i++)
		size = size << 8 | raw[12 + i];
	out->size = size & GATE_TICKET_ANY;
	uar_hex(raw, 12, out->blob_id);
	if (size & has_sha256)
		uar_hex(raw + TICKET_SUM, 32, out->sha256);
	return UAR_OK;
}
