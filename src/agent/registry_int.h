/* registry_int.h - what the files of the registry share. */
#ifndef UAR_AGENT_REGISTRY_INT_H
#define UAR_AGENT_REGISTRY_INT_H

#include "agent/limits.h"
#include "agent/registry.h"

struct uar_registry {
	struct uar_registry_options o;
	struct uar_registered **at;
	size_t count, room;
	struct uar_registry_broken *broken;
	size_t broken_count;
	uint64_t generation;
};

/* Adds an entry, which is referenced. */
UAR_MUST_CHECK uar_err uar_registry_add(struct uar_registry *r, struct uar_registered *entry);
void uar_registry_remove(struct uar_registry *r, size_t index);
void uar_registry_tell(const struct uar_registry *r, enum uar_log_level level, const char *what,
		       const char *file, uar_str text);
/* Forgets or adds what is broken of a source: files of a directory, or a URL. */
void uar_registry_forget_broken(struct uar_registry *r, const char *file);
void uar_registry_note_broken(struct uar_registry *r, const struct uar_registry_broken *b);
/* registry_keep.c: the last good text of a file of the directory. */
struct dirent;
void uar_registry_keep(const struct uar_registry *r, const char *file, uar_str text);
/* UAR_ENOTFOUND: there is none. */
UAR_MUST_CHECK uar_err uar_registry_kept(const struct uar_registry *r, const char *file,
					 struct uar_buf *out);
/* Those of other files go. */
void uar_registry_keep_only(const struct uar_registry *r, struct dirent **names, int n);
/* What an entry of a source must not collide with. */
UAR_MUST_CHECK uar_err uar_registry_is_free(const struct uar_registry *r,
					    enum uar_agent_source source, uar_str id,
					    struct uar_error *error);

#endif
