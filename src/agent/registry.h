/* registry.h - the definitions that runs can name, from all sources.
 *
 * Sources in order of precedence: files, the database (an owner's own), a registry URL. Entries
 * are immutable and referenced: what holds one keeps it across every change. A source that is
 * broken takes nothing from the others; a file that is broken leaves what it said before. */
#ifndef UAR_AGENT_REGISTRY_H
#define UAR_AGENT_REGISTRY_H

#include <limits.h>

#include "agent/definition.h"
#include "agent/limits.h"
#include "base/log.h"
#include "event/record.h"

enum uar_agent_source {
	UAR_AGENT_FROM_FILE,
	UAR_AGENT_FROM_DATABASE,
	UAR_AGENT_FROM_URL,
	UAR_AGENT_SOURCE_COUNT
};
extern const char *const uar_agent_source_names[UAR_AGENT_SOURCE_COUNT]; /* "file", ... */

struct uar_registered {
	unsigned refs;
	struct uar_definition def;
	enum uar_agent_source source;
	char file[NAME_MAX + 1];	  /* FILE: its name; empty: of no file */
	char sha256[UAR_SHA256_TEXT + 1]; /* FILE: of its bytes */
	struct uar_owner owner;		  /* DATABASE: whose it is; in def.arena */
	int64_t version;		  /* DATABASE: 1 is the first; else 0 */
	int64_t updated_us;		  /* DATABASE */
	bool stored;			  /* its text is a durable blob; set by its user */
};
/* A new entry with one reference. The definition is taken in any case, and freed on an error. */
UAR_MUST_CHECK uar_err uar_registered_take(struct uar_definition *def, struct uar_registered **out);
struct uar_registered *uar_registered_ref(struct uar_registered *r);
void uar_registered_unref(struct uar_registered *r); /* NULL is fine */

struct uar_registry_note {
	enum uar_log_level level;
	const char *what; /* "agent.loaded", "agent.refused", "agent.removed" */
	const char *file; /* or URL */
	uar_str text;
};

/* A file or a part of a registry that is wrong. */
struct uar_registry_broken {
	char file[NAME_MAX + 1];
	char sha256[UAR_SHA256_TEXT + 1];      /* of its bytes; it is told once */
	char agent_id[UAR_LIMIT_AGENT_ID + 1]; /* of the earlier definition that stays; or empty */
	char text[UAR_LIMIT_ERROR_WHERE + UAR_LIMIT_ERROR_TEXT + 2];
};

struct uar_registry_options {
	/* Is the id taken by an agent that needs no definition? NULL: none is. */
	bool (*taken)(uar_str agent_id);
	/* Where the last good text of each file is kept for the next start; NULL: nowhere. It stays
	 * in place. */
	const char *keep_dir;
	void (*note)(void *ctx, const struct uar_registry_note *n); /* NULL: nobody listens */
	void *ctx;
};

struct uar_registry;
UAR_MUST_CHECK uar_err uar_registry_create(const struct uar_registry_options *o,
					   struct uar_registry **out);
void uar_registry_destroy(struct uar_registry *r);		/* NULL is fine */
uint64_t uar_registry_generation(const struct uar_registry *r); /* counts changes */

/* Reads the directory, which need not exist: new, changed and removed files. On an error, such
 * as a directory that cannot be read, everything stays as it was. */
UAR_MUST_CHECK uar_err uar_registry_read_dir(struct uar_registry *r, const char *dir,
					     struct uar_error *error);
/* The answer of a registry URL: {"agents": [DEFINITION, ...]}. What is wrong in it is left out
 * and noted; an answer that is no such object changes nothing. */
UAR_MUST_CHECK uar_err uar_registry_read_url(struct uar_registry *r, const char *url, uar_str body,
					     struct uar_error *error);
/* May the owner have a definition of this id in the database? */
UAR_MUST_CHECK uar_err uar_registry_may_put(const struct uar_registry *r,
					    const struct uar_owner *owner, uar_str id,
					    struct uar_error *error);
/* Takes a definition that the database has, in place of the owner's earlier one; on an error it is
 * freed. */
UAR_MUST_CHECK uar_err uar_registry_put(struct uar_registry *r, const struct uar_owner *owner,
					struct uar_definition *take, int64_t version,
					int64_t updated_us);
void uar_registry_drop(struct uar_registry *r, const struct uar_owner *owner, uar_str id);

/* Borrowed until the next change; NULL: there is none. Without an owner: of all owners. */
struct uar_registered *uar_registry_find(const struct uar_registry *r,
					 const struct uar_owner *owner, uar_str id);
/* The owner's own one of the database, whatever other sources say. */
struct uar_registered *uar_registry_own(const struct uar_registry *r, const struct uar_owner *owner,
					uar_str id);
/* Everything, whoever's it is; NULL past the end. */
struct uar_registered *uar_registry_at(const struct uar_registry *r, size_t index);
/* Can this owner name it? No: it is another owner's, or another source has the id. */
bool uar_registry_shows(const struct uar_registry *r, const struct uar_owner *owner,
			const struct uar_registered *entry);
const struct uar_registry_broken *uar_registry_broken_at(const struct uar_registry *r,
							 size_t index);

#endif
