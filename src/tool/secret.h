/* secret.h - credentials of tools, by name: ${secret:NAME} in a header, an address or a body.
 *
 * A grant says which hosts get a secret and which agents may use it. One that has none is given to
 * whoever names it, unless there is a grant of the name "*":
 *
 *	{"KEY": {"hosts": ["api.example", "*.example:8443"], "agents": ["weather*"]}, "*": {}}
 *
 * `tenants` in an entry names others than the server's whose own agents may use it.
 *
 * A name is looked up when a request is made and not before, in this order: the variable
 * UAR_SECRET_NAME, the credential NAME that systemd passes, the file NAME of a directory. What was
 * used is known to whoever hides it (uar_secrets_hide) in everything that comes back. */
#ifndef UAR_TOOL_SECRET_H
#define UAR_TOOL_SECRET_H

#include "base/arena.h"
#include "base/buf.h"

struct uar_secrets; /* where they are looked for */
/* `grants`: JSON, or empty. UAR_EINVALID: it is none; error->where points into it. */
UAR_MUST_CHECK uar_err uar_secrets_create(const char *dir, uar_str grants, struct uar_secrets **out,
					  struct uar_error *error);
/* Definitions of another tenant get no secret whose grant does not name it in `tenants`. The string
 * stays in place. */
void uar_secrets_set_tenant(struct uar_secrets *s, const char *tenant);
void uar_secrets_destroy(struct uar_secrets *s); /* NULL is fine */

/* Values that one request has used; wiped by fini. */
struct uar_secrets_used {
	struct uar_buf values; /* each with a NUL after it */
};
void uar_secrets_used_fini(struct uar_secrets_used *u);

/* Who wants secrets, and where they go. */
struct uar_secrets_ask {
	const struct uar_secrets *secrets; /* NULL: there are none */
	uar_str agent;			   /* empty: none */
	uar_str url;			   /* of the request */
	bool only_granted;		   /* one without an entry in the grants is not given */
	uar_str tenant;			   /* whose definition it is, if only_granted; or empty */
};
/* The text with every ${secret:NAME} replaced. UAR_ENOTFOUND: one is not there, error names it;
 * UAR_EINVALID: it is not a name; UAR_EFORBIDDEN: its grant does not allow it. `used` may be
 * NULL. */
UAR_MUST_CHECK uar_err uar_secrets_expand(const struct uar_secrets_ask *ask, uar_str text,
					  struct uar_buf *out, struct uar_secrets_used *used,
					  struct uar_error *error);
/* The next name in a text from *at on, which moves behind it; empty: no more. */
uar_str uar_secrets_next(uar_str text, size_t *at);
/* Notes a value, and how it looks in base64. */
void uar_secrets_note(struct uar_secrets_used *u, uar_str value);
/* Appends the text with "<redacted>" in place of each value that was used, also percent-encoded,
 * in base64 or escaped in JSON. How many there were. */
size_t uar_secrets_hide(const struct uar_secrets_used *u, uar_str text, struct uar_buf *out);
/* The same of a text that goes on: how many of its bytes were appended. The rest may be the
 * beginning of a value, and is given again with what follows. */
size_t uar_secrets_hide_piece(const struct uar_secrets_used *u, uar_str text, struct uar_buf *out);

#endif
