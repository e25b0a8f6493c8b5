/* chain.c - the digests of a document. The page computes them as well, in web/src/lib/evidence.ts:
 * one is not changed without the other. */
#include "evidence/evidence_int.h"

#include "event/sizes.h"
#include "evidence/limits.h"

uar_err ev_chain_begin(struct ev_chain *c, uar_str scope_text)
{
	c->text = uar_buf_make(2 * (size_t)UAR_LIMIT_EVENT_BYTES);
	uar_buf_add_str(&c->text, UAR_STR(UAR_EVIDENCE_FORMAT "\n"));
	uar_buf_add_str(&c->text, scope_text);
	uar_sha256_hex(uar_buf_str(&c->text), c->link);
	return c->text.err;
}

uar_err ev_chain_add(struct ev_chain *c, const struct uar_json *event)
{
	uar_buf_clear(&c->text);
	uar_buf_printf(&c->text, "%s\n", c->link);
	uar_json_write_canonical(&c->text, event);
	if (!c->text.err)
		uar_sha256_hex(uar_buf_str(&c->text), c->link);
	return c->text.err;
}

uar_err ev_content_digest(const char *head, const struct uar_json *content,
			  char out[UAR_SHA256_TEXT + 1])
{
	struct uar_buf text = uar_buf_make(2 * (size_t)UAR_LIMIT_EVIDENCE_BYTES);
	uar_err e;

	uar_buf_printf(&text, "%s\n", head);
	uar_json_write_canonical(&text, content);
	e = text.err;
	if (!e)
		uar_sha256_hex(uar_buf_str(&text), out);
	uar_buf_fini(&text);
	return e;
}

void ev_evidence_id(enum uar_evidence_kind kind, uar_str scope_text, const char *sha256,
		    char out[UAR_EVIDENCE_ID + 1])
{
	char digest[UAR_SHA256_TEXT + 1];
	struct uar_sha256 h;

	uar_sha256_init(&h);
	uar_sha256_add(&h, uar_str_c(uar_evidence_kind_name(kind)));
	uar_sha256_add(&h, UAR_STR("\n"));
	uar_sha256_add(&h, scope_text);
	uar_sha256_add(&h, UAR_STR("\n"));
	uar_sha256_add(&h, uar_str_c(sha256));
	uar_sha256_end(&h, digest);
	snprintf(out, UAR_EVIDENCE_ID + 1, UAR_EVIDENCE_PREFIX "%.32s", digest);
}
