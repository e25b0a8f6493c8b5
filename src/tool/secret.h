/* secret.h - credentials of tools, by name: ${secret:NAME} in a header, an address or a body.
 *
 * A name is looked up when a request is made and not before, in this order: the variable
 * UAR_SECRET_NAME, the credential NAME that systemd passes, the file NAME of a directory. What was
 * used is known to whoever hides it (uar_secrets_hide) in everything that comes back. */
#ifndef UAR_TOOL_SECRET_H
#define UAR_TOOL_SECRET_H

#include "base/arena.h"
#include "base/buf.h"

struct uar_secrets; /* where they are looked for */
UAR_MUST_CHECK uar_err uar_secrets_create(const char *dir, struct uar_secrets **out);
void uar_secrets_destroy(struct uar_secrets *s); /* NULL is fine */

/* Values that one request has used; wiped by fini. */
struct uar_secrets_used {
	struct uar_buf values; /* each with a NUL after it */
};
void uar_secrets_used_fini(struct uar_secrets_used *u);

/* The text with every ${secret:NAME} replaced. UAR_ENOTFOUND: one is not there, error names it;
 * UAR_EINVALID: it is not a name. `used` may be NULL. */
UAR_MUST_CHECK uar_err uar_secrets_expand(const struct uar_secrets *s, uar_str text,
					  struct uar_buf *out, struct uar_secrets_used *used,
					  struct uar_error *error);
/* The next name in a text from *at on, which moves behind it; empty: no more. */
uar_str uar_secrets_next(uar_str text, size_t *at);
/* Appends the text with "<redacted>" in place of each value that was used. */
void uar_secrets_hide(const struct uar_secrets_used *u, uar_str text, struct uar_buf *out);

#endif
