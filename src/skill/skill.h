/* skill.h - a skill: when it applies, what it adds to the prompt, which tools it prefers.
 *
 * Data alone, read from JSON or from a SKILL.md file and checked against the published
 * schema. match.h chooses among skills. */
#ifndef UAR_SKILL_SKILL_H
#define UAR_SKILL_SKILL_H

#include "base/sha256.h"
#include "json/json.h"
#include "skill/limits.h"

struct uar_words {
	const uar_str *at;
	size_t n;
};

enum uar_skill_origin { UAR_SKILL_BUILTIN, UAR_SKILL_FILE, UAR_SKILL_USER };
const char *uar_skill_origin_text(enum uar_skill_origin o); /* "builtin" */

/* Strings live in the arena. */
struct uar_skill {
	struct uar_arena arena;
	uar_str skill_id, version, title, description, overlay;
	bool enabled;
	enum uar_skill_origin origin;
	struct uar_words keywords, patterns, phrases;
	struct uar_words preferred_tools, allow, deny; /* tool ids; allow and deny may hold '*' */
	struct uar_words capabilities, tools, tenants, workspaces; /* what it requires */
	const struct uar_json *templates, *post;		   /* NULL: none */
	uar_str text;			    /* JSON of the whole, without spaces */
	char revision[UAR_SHA256_TEXT + 1]; /* digest of the text */
	uar_str folder;		       /* of the directory that it was read from; empty: none */
	struct uar_skill_index *index; /* what match.c compares messages with */
};

uar_str uar_skill_schema(void);
/* JSON. error->where: a pointer. Fini is needed on success only. */
UAR_MUST_CHECK uar_err uar_skill_read(uar_str text, struct uar_skill *out, struct uar_error *error);
/* A SKILL.md file: YAML front matter between two lines of "---", then the overlay. `name` is the id
 * (folded to lower case, spaces to '_'); `triggers` is a list of keywords or an object;
 * `tools` or `allowed-tools` is a list or text with commas. Members that only other programs
 * know are kept as metadata. error->where: "line N". */
UAR_MUST_CHECK uar_err uar_skill_read_markdown(uar_str text, struct uar_skill *out,
					       struct uar_error *error);
/* The same for a folder of that name: it is the id of a file without `name`, and a file without
 * `description` is described by its first paragraph. */
UAR_MUST_CHECK uar_err uar_skill_read_folder(uar_str folder, uar_str text, struct uar_skill *out,
					     struct uar_error *error);
void uar_skill_fini(struct uar_skill *s);

/* The vector of its description and triggers, by the built-in embedder; UAR_EMBED_DIMENSIONS
 * numbers. NULL: they hold no word. */
const float *uar_skill_embedding(const struct uar_skill *s);

/* Does an answer keep to its post_processing? UAR_ESCHEMA with the reason, which is the rule's
 * own message if it has one. */
UAR_MUST_CHECK uar_err uar_skill_check_answer(const struct uar_skill *s, uar_str answer,
					      struct uar_error *error);

/* The skills that are part of the program. NULL: there are not so many. */
const char *uar_skill_builtin(size_t index, uar_str *out_text);

#endif
