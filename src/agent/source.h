/* source.h - the text of a definition as people write it: JSON with comments, or YAML.
 *
 * Both become JSON text in which every value is on the line it has in the source, so that
 * an error of the JSON reader or the schema names the line of the file. */
#ifndef UAR_AGENT_SOURCE_H
#define UAR_AGENT_SOURCE_H

#include "base/buf.h"

/* ".json", ".jsonc", ".yaml", ".yml": can a file of this name hold a definition? */
bool uar_source_is_named(uar_str file);
/* `file` decides the format: YAML by its ending, else JSON. error->where: "line N". */
UAR_MUST_CHECK uar_err uar_source_read(uar_str file, uar_str text, struct uar_buf *out,
				       struct uar_error *error);
/* The line of what a JSON Pointer names in that JSON, or of the last part of it that is there. */
size_t uar_source_line(uar_str json, uar_str pointer);

#endif
