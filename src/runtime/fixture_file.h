/* fixture_file.h - recorded streams on disk: one normalized event a line.
 *
 * A line is {"type","data"} and may carry "at_ms", its moment in the recording. */
#ifndef UAR_RUNTIME_FIXTURE_FILE_H
#define UAR_RUNTIME_FIXTURE_FILE_H

#include "json/json.h"

/* 1 to 64 characters of a-z, 0-9, '-' and '_': never a path. */
bool uar_fixture_name_valid(uar_str name);
/* The whole file DIR/NAME.jsonl; the caller frees *out_text with uar_free. */
UAR_MUST_CHECK uar_err uar_fixture_load(const char *dir, uar_str name, uar_str *out_text,
					struct uar_error *error);
/* Cuts the next non-empty line off *rest; false at the end. */
bool uar_fixture_line(uar_str *rest, uar_str *out_line);
/* Checks one line: an object with a type and an object as data. */
UAR_MUST_CHECK uar_err uar_fixture_parse(uar_str line, struct uar_arena *arena,
					 const struct uar_json **out, struct uar_error *error);
/* Names of all fixtures in DIR, sorted; in the arena. A missing folder has none. */
UAR_MUST_CHECK uar_err uar_fixture_list(const char *dir, struct uar_arena *arena, uar_str **out,
					size_t *out_count);

#endif
