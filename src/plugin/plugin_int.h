/* plugin_int.h - what the files of plugin/ share: plugins, their processes, calls. */
#ifndef UAR_PLUGIN_PLUGIN_INT_H
#define UAR_PLUGIN_PLUGIN_INT_H

#include "base/alloc.h"
#include "json/jw.h"
#include "loop/child.h"
#include "loop/watch.h"
#include "plugin/limits.h"
#include "plugin/manifest.h"
#include "plugin/message.h"
#include "plugin/plugin.h"

/* What is known of the folder that holds the plugins. */
struct plugin_folders {
	char *dir; /* NULL: there is none */
	struct uar_dir_watch *watch;
	struct uar_list list;	/* of struct folder */
	struct uar_timer later; /* set while `pending` */
	bool pending, looked;
};

struct uar_plugin_host {
	struct uar_entries base; /* first: the port gets it back by a cast */
	struct uar_plugin_host_options o;
	struct plugin_folders folders;
	struct uar_list plugins;
	struct uar_list withdrawn; /* replaced or removed, with runs that are not over */
	struct uar_timer reap;	   /* set when one of them may be free */
	size_t plugin_count;
	struct uar_buf buf;	       /* scratch for messages */
	struct uar_plugin_probe probe; /* said NULL: nobody asks */
	struct uar_plugin_stats stats;
};

struct library;
struct job;

/* How much a plugin has said lately. */
struct plugin_log {
	struct uar_timer timer; /* set while lines are being left out */
	int64_t since_us;
	uint32_t lines;
	uint64_t left_out;
};

struct plugin {
	struct uar_list node;
	struct uar_plugin_host *host;
	struct uar_manifest m;
	struct library *library;   /* NULL: it has processes */
	struct uar_list slots;	   /* that wait */
	struct uar_list processes; /* also those that are ending */
	struct uar_list calls;	   /* started, but no process has room yet */
	size_t waiting;
	uint32_t granted;  /* places given away, of m.concurrency * m.processes */
	uint32_t warm;	   /* of them: for which a process is ready, and not used yet */
	bool withdrawn;	   /* gets no more runs */
	unsigned failures; /* processes in a row that did no good */
	struct uar_timer backoff;
	int64_t not_before_us; /* monotonic: no new process earlier */
	struct plugin_log log;
};

enum { SAID_LINES = 3 };

enum process_state {
	PROCESS_STARTING, /* hello is on its way */
	PROCESS_READY,
	PROCESS_SPENT,	/* takes no more runs; ends when its last one has */
	PROCESS_CLOSED, /* its output has ended: it is leaving, or will be ended */
	PROCESS_ENDING, /* killed or asked to leave; nothing it says counts */
};

struct process {
	struct uar_list node;
	struct plugin *plugin;
	struct uar_child *child;
	enum process_state state;
	struct uar_list calls;
	uint32_t call_count;
	uint64_t taken;	       /* calls so far */
	uint64_t last_request; /* id of our last request; 1 is hello */
	unsigned pauses;
	bool greeted;		/* it has answered hello */
	bool served;		/* a run of it came to an end */
	bool closed;		/* its output ended before it was asked to leave */
	bool answers_ping;	/* it said so */
	bool doubtful;		/* nothing was heard since a run of it was told to stop */
	uint64_t ping;		/* id of the last one; 0: none */
	struct uar_timer timer; /* hello, then idleness, then the end of politeness */
	int64_t started_us;
	struct uar_buf line, errors;
	char why[UAR_LIMIT_ERROR_TEXT]; /* it was ended; empty: by itself */
	char said[SAID_LINES][160];	/* the last useful lines of its standard error */
	unsigned said_count;		/* ever */
};

enum call_state {
	CALL_WAITING, /* its process is not ready */
	CALL_RUNNING,
	CALL_CANCELLING, /* told to stop; the grace runs */
};

struct uar_entry_call {
	struct uar_list node; /* of plugin->calls or process->calls */
	struct plugin *plugin;
	struct process *process; /* NULL: none yet */
	struct job *job;	 /* at a library; NULL: none, or over */
	bool graced;		 /* its handler knows of the cancel, and the grace runs */
	struct uar_manifest_entry *entry;
	struct uar_entry_events events;
	bool heard;	      /* somebody listens */
	bool answered;	      /* its process has said something about it */
	bool looked;	      /* its time is over, and its process had been read */
	bool refused;	      /* an item of it was, and that was noted */
	bool shared;	      /* another run was at work in its process at the same time */
	unsigned said_before; /* said_count of its process when it was started */
	enum call_state state;
	uint64_t request; /* id of its run.start */
	struct uar_timer grace;
	struct uar_buf start; /* the line that starts it, until it is sent */
	unsigned pauses;
	char run_id[UAR_LIMIT_ID_BYTES + 1];
	char trace_id[UAR_LIMIT_ID_BYTES + 1];
};

/* note.c */
void plugin_note(struct plugin *p, enum uar_log_level level, const char *what,
		 const struct uar_entry_call *c, uar_str text);
/* The same for what a plugin causes as often as it likes: UAR_LIMIT_PLUGIN_LOG_RATE. */
void plugin_says(struct plugin *p, enum uar_log_level level, const char *what,
		 const struct uar_entry_call *c, uar_str text);
void process_note(struct process *s, enum uar_log_level level, const char *what, uar_str text);
void process_says(struct process *s, enum uar_log_level level, const char *what, uar_str text);

/* host.c */
/* Finds processes for calls that wait, and starts them when it may. */
void plugin_pump(struct plugin *p);
/* What a process said to hello, for whoever asked; NULL: nothing, and why. */
void plugin_probed(struct plugin *p, const struct uar_json *hello, const char *why);
/* A process is gone; it did some good or it did not. */
void plugin_process_over(struct plugin *p, bool good);

/* Reads the manifest in that folder; `instead` of that plugin, or NULL. Nobody is told of it
 * before it is inserted. UAR_ENOTFOUND: there is no manifest. */
uar_err plugin_make(struct uar_plugin_host *h, const char *dir, const struct plugin *instead,
		    struct plugin **out, struct uar_error *error);
void plugin_insert(struct plugin *p);
/* It gets no more runs, and is freed when those it has are over and nothing waits for it. */
void plugin_withdraw(struct plugin *p);
/* Runs that wait for a place at a withdrawn plugin ask anew. */
void plugin_release_slots(struct plugin *p);
/* A place or a process of it is free again. */
void plugin_less_used(struct plugin *p);

/* folder.c */
uar_err folders_init(struct uar_plugin_host *h, const char *dir, struct uar_error *error);
uar_err folders_look(struct uar_plugin_host *h, struct uar_error *error);
void folders_fini(struct uar_plugin_host *h);

/* call.c */
/* Its process is ready: who waits for that is told, else it begins. */
void call_ready(struct uar_entry_call *c);
void call_begin(struct uar_entry_call *c);
/* The call is over: leaves its process, tells, gives its place to the next. */
void call_end(struct uar_entry_call *c, const struct uar_entry_end *end);
/* UAR_ECHILD: its process is lost, and another may do; UAR_ENOTFOUND: there is no program;
 * others: a mistake of the plugin. */
void call_break(struct uar_entry_call *c, uar_err code, const char *why);
/* It said that it failed, and `why` not all of it could be taken. */
void call_fail(struct uar_entry_call *c, const struct uar_entry_end *said, const char *why);
/* Against the schema of the entry; why it does not fit. */
uar_err call_check_result(struct uar_entry_call *c, const struct uar_json *result, char *why,
			  size_t size);
void call_message(struct uar_entry_call *c, const struct uar_message *m);
/* Its process knows the run. */
void call_answered(struct uar_entry_call *c);
void call_cancel(struct uar_entry_call *c, uar_str reason);
void call_answer(struct uar_entry_call *c, const struct uar_entry_answer *a);
void call_pause(struct uar_entry_call *c, bool paused);
void call_stop(struct uar_entry_call *c, uar_str reason);
uar_err call_make(struct plugin *p, const struct uar_entry_request *r,
		  const struct uar_entry_events *events, struct uar_entry_call **out,
		  struct uar_error *error);
void call_free(struct uar_entry_call *c);

/* library.c */
uar_err library_open(struct plugin *p, struct uar_error *error);
void library_stop(struct plugin *p);  /* tells its threads; no library is fine */
void library_close(struct plugin *p); /* then: waits for them, but not for ever */
uar_err library_start(struct uar_entry_call *c, const struct uar_entry_request *r,
		      struct uar_error *error);
void library_cancel(struct uar_entry_call *c, uar_str reason);
void library_deaf(struct uar_entry_call *c);
void library_answer(struct uar_entry_call *c, const struct uar_entry_answer *a);
void library_count(struct library *l, struct uar_plugin_stats *out);

/* process.c */
/* For that call, which must be given to it at once; NULL: for none. */
uar_err process_start(struct plugin *p, const struct uar_entry_call *c, struct uar_error *error);
bool process_has_room(const struct process *s);
uint32_t process_room(const struct process *s); /* runs that it could take at once, being ready */
void process_take(struct process *s, struct uar_entry_call *c);
/* From here on what it writes to standard error may be the call's. */
void process_mark_start(struct process *s, struct uar_entry_call *c);
void process_leave(struct uar_entry_call *c); /* takes it from its process */
void process_spend(struct process *s, const char *why);
void process_withdraw(struct process *s); /* one without runs leaves now */
void process_kill(struct process *s, const char *why);
void process_pause(struct process *s, bool paused);
/* It may be dead: it gets no runs until it says something. */
void process_doubt(struct process *s);
void process_free(struct process *s); /* ends it and waits */
/* A message of ours: the writer is inside "params" (or "result") until it is sent. */
struct uar_jw process_begin(struct process *s, const char *method, uint64_t id);
void process_send(struct process *s, struct uar_jw *w);
void process_reply(struct process *s, const struct uar_json *id, uar_err e,
		   const struct uar_error *error);

#endif
