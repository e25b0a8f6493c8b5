/* plugin.h - the plugin host: folders with a manifest, processes that execute runs.
 *
 * A plugin may also be a library (include/uar/plugin.h): then its runs are executed
 * by threads of this process. Such a plugin is trusted.
 *
 * A plugin's process is started when a run needs it, serves many runs, and is
 * started again after a crash, later each time. It speaks JSON-RPC 2.0, one
 * message a line, over its standard streams (docs/plugins.md). Whatever it does,
 * every run that was given to it ends. */
#ifndef UAR_PLUGIN_PLUGIN_H
#define UAR_PLUGIN_PLUGIN_H

#include "base/log.h"
#include "event/entry.h"
#include "loop/loop.h"

struct uar_plugin_host;

/* Something an operator may want to read. Strings are empty when they do not apply. */
struct uar_plugin_note {
	enum uar_log_level level;
	const char *what; /* "plugin.noise" */
	uar_str plugin_id, run_id, trace_id, text;
};

struct uar_plugin_host_options {
	struct uar_loop *loop;
	const char *dir;     /* each folder in it that has a plugin.json; NULL: no plugins */
	const char *only;    /* instead of dir: this folder, and it must be right */
	char *const *env;    /* of the server; plugins get what their manifest names */
	uint64_t upload_max; /* bytes of one upload, as plugins are told; 0: UAR_LIMIT_BLOB_BYTES */
	void (*note)(void *ctx, const struct uar_plugin_note *n);
	void *ctx;
};

/* A plugin whose manifest is wrong is noted and left out. */
UAR_MUST_CHECK uar_err uar_plugin_host_create(const struct uar_plugin_host_options *o,
					      struct uar_plugin_host **out,
					      struct uar_error *error);
/* Ends every process and waits until the last one is gone. NULL is fine. */
void uar_plugin_host_destroy(struct uar_plugin_host *h);
/* Looks at the folder of plugins again, which it also does by itself when something in it
 * changes. Changed plugins are replaced, with the runs they have going on; a manifest that is
 * wrong is noted and changes nothing. */
void uar_plugin_host_reload(struct uar_plugin_host *h);
struct uar_entries *uar_plugin_host_entries(struct uar_plugin_host *h);

/* Starts a process of the first plugin to see whether it works. `said` is called once:
 * with its answer to hello, or with NULL and why there was none. UAR_ESKIP: it is a
 * library, and loading it has shown all there is to see. */
struct uar_plugin_probe {
	void (*said)(void *ctx, const struct uar_json *hello, const char *why);
	void *ctx;
};
UAR_MUST_CHECK uar_err uar_plugin_host_probe(struct uar_plugin_host *h,
					     const struct uar_plugin_probe *probe,
					     struct uar_error *error);

struct uar_plugin_stats {
	size_t plugins, processes, running, waiting;
	size_t threads; /* of libraries */
	size_t lost;	/* of them, those that ignored a cancel and have not returned */
	uint64_t started, crashed;
	uint64_t restarted; /* of the started: in the place of one that crashed */
	uint64_t ever_lost; /* threads, also those that have returned since */
	int64_t lived_us;   /* of all processes that have ended, together */
};
void uar_plugin_host_stats(const struct uar_plugin_host *h, struct uar_plugin_stats *out);

/* The published JSON Schema of plugin.json. */
uar_str uar_plugin_schema(void);

#endif
