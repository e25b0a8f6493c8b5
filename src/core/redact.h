/* redact.h - what of a value may be recorded.
 *
 * A member is hidden when its JSON Schema marks it (`writeOnly`, `x-sensitive` or the format
 * `password`), or when its name is that of a secret. One function serves tool arguments, answers
 * and every other copy that is kept or shown. */
#ifndef UAR_CORE_REDACT_H
#define UAR_CORE_REDACT_H

#include "event/secret_name.h"
#include "json/json.h"
#include "json/jw.h"

#define UAR_REDACTED "<redacted>"

/* Writes the value as the value of `key` (NULL: as an item, or alone), with "<redacted>" in
 * place of what is hidden. `schema` may be NULL. True: something is hidden. */
bool uar_redact(struct uar_jw *w, const char *key, const struct uar_json *value,
		const struct uar_json *schema);
/* Is anything of it hidden? */
bool uar_redacts(const struct uar_json *value, const struct uar_json *schema);

#endif
