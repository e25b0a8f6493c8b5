/* manifest.h - plugin.json: read, checked against its published schema, compiled. */
#ifndef UAR_PLUGIN_MANIFEST_H
#define UAR_PLUGIN_MANIFEST_H

#include "event/entry.h"
#include "json/schema.h"

struct uar_manifest_entry {
	struct uar_entry_info info;
	struct uar_schema *args, *result; /* NULL: anything */
};

/* Owned by whoever loaded it; strings live in the arena. */
struct uar_manifest {
	struct uar_arena arena;
	uar_str id, version, title, description;
	const char **command; /* NULL-terminated; empty for a library */
	const char *library;  /* file in the folder, NULL: it has a command */
	const char **env;     /* names, NULL-terminated */
	const char *dir;
	uint32_t concurrency, processes;
	uint64_t runs_per_process; /* 0: any number */
	int64_t start_timeout_us, answer_timeout_us, cancel_grace_us, idle_us;
	struct uar_manifest_entry *entries;
	size_t entry_count;
};

/* error->where: a pointer into the manifest. Fini is needed on success only. */
UAR_MUST_CHECK uar_err uar_manifest_read(uar_str text, const char *dir, struct uar_manifest *out,
					 struct uar_error *error);
/* DIR/plugin.json */
UAR_MUST_CHECK uar_err uar_manifest_load(const char *dir, struct uar_manifest *out,
					 struct uar_error *error);
void uar_manifest_fini(struct uar_manifest *m);
struct uar_manifest_entry *uar_manifest_entry(struct uar_manifest *m, uar_str entry_id);

#endif
