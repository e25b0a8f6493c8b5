/* plugin.h - entries of UAR in C11 or C++17.
 *
 * One source, two ways to run it:
 *
 *	a program      cc -o words words.c uar_plugin.c -lpthread   (or -luar_plugin)
 *	               plugin.json: "command": ["./words"]
 *	a library      cc -shared -fPIC -o words.so words.c
 *	               plugin.json: "library": "words.so"
 *
 * A program is a process of its own: a crash fails its runs and nothing else. A
 * library runs on threads inside the server. That is quicker, and it is trusted:
 * what it breaks, it breaks for everybody.
 *
 *	static int greet(struct uarp_run *run)
 *	{
 *		const char *name = uarp_arg_str(run, "/name", "world");
 *
 *		uarp_progress(run, 0.5, "thinking");
 *		if (!uarp_export_text(run, uarp_printf(run, "Hello %s", name), NULL))
 *			return uarp_fail(run, uarp_error(run), "the greeting was refused");
 *		return uarp_result(run, uarp_printf(run, "{\"name\":%s}", uarp_quote(run, name)));
 *	}
 *	static const struct uarp_entry entries[] = { { "greet", greet }, { NULL, NULL } };
 *	UARP_PLUGIN(entries);
 *
 * Handlers run on threads, several at once when the manifest asks for it. All
 * calls below belong to the thread of the handler, which may lend them to others
 * as long as it waits for them and only one calls at a time; uarp_cancelled and
 * uarp_wait may be called from any. Text is UTF-8, JSON travels as text. What the
 * calls return lives until the handler returns. */
#ifndef UAR_PLUGIN_H
#define UAR_PLUGIN_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#ifdef __cplusplus
extern "C" {
#endif

#define UARP_ABI 1u
#if defined(__GNUC__)
#define UARP_EXPORT	  __attribute__((visibility("default")))
#define UARP_FORMAT(A, B) __attribute__((format(printf, A, B)))
#else
#define UARP_EXPORT
#define UARP_FORMAT(A, B)
#endif

/* --- what a plugin is ---------------------------------------------------------- */

struct uarp_run; /* the run that a handler executes */

/* What a handler returns. */
enum {
	UARP_OK = 0,	   /* with the result that uarp_result was given, or without */
	UARP_FAILED = 1,   /* as uarp_fail said; so does any other number */
	UARP_CANCELED = 2, /* it noticed the cancel and gave in */
};
typedef int uarp_entry_fn(struct uarp_run *run);

struct uarp_entry {
	const char *id; /* NULL ends the list */
	uarp_entry_fn *fn;
};

struct uarp_plugin {
	uint32_t abi, size;
	const struct uarp_entry *entries;
	int (*open)(void);   /* once before the first run; not 0: the plugin is not used */
	void (*close)(void); /* once after the last */
};

/* The one symbol that is looked for. */
extern UARP_EXPORT const struct uarp_plugin uarp_plugin;
#define UARP_PLUGIN(ENTRIES) UARP_PLUGIN_WITH(ENTRIES, NULL, NULL)
#define UARP_PLUGIN_WITH(ENTRIES, OPEN, CLOSE)                                                     \
	const struct uarp_plugin uarp_plugin = { UARP_ABI, (uint32_t)sizeof(struct uarp_plugin),   \
						 (ENTRIES), (OPEN), (CLOSE) }

/* Serves runs over standard input and output until the server closes them; an
 * exit status. A program without main gets one that calls this. From here on what
 * is printed goes to the log. */
int uarp_main(const struct uarp_plugin *plugin);

/* --- what is passed ---------------------------------------------------------------- */

struct uarp_info {
	uint32_t size;	 /* of this struct */
	int32_t attempt; /* 1: the first */
	const char *run_id, *entry_id, *root_run_id;
	const char *parent_run_id, *task_id, *trace_id; /* NULL: none */
	const char *args;				/* JSON object */
	double timeout_seconds;				/* 0: no limit */
	/* 1: the run was at work when the server stopped, and may have been begun before. Of a
	 * server that does not know it `size` is smaller; uarp_restarted looks. */
	int32_t restarted;
};

enum uarp_kind {
	UARP_ABSENT,
	UARP_NULL,
	UARP_BOOL,
	UARP_NUMBER,
	UARP_STRING,
	UARP_ARRAY,
	UARP_OBJECT
};
struct uarp_value {
	enum uarp_kind kind;
	uint32_t count;	  /* members, elements */
	const char *text; /* STRING: decoded; else JSON. Ends with NUL */
	size_t size;	  /* bytes of text */
	double number;
	int64_t integer; /* NUMBER without its fraction; BOOL: 0 or 1 */
};

/* Numbers below 0 and NULL: not said. Begin with UARP_REPORT. */
struct uarp_report {
	double progress; /* 0 to 1 */
	double eta_seconds;
	int64_t step, step_total;
	const char *message, *stage;
	const char *metrics; /* JSON object */
};
#define UARP_REPORT                                                                                \
	{                                                                                          \
		-1, -1, -1, -1, NULL, NULL, NULL                                                   \
	}

struct uarp_item {
	const char *type; /* "text", "url", "binary_url", "binary", "json" */
	const void *data;
	size_t size; /* bytes of data; UARP_STRLEN: it ends with NUL */
	const char *description, *label, *category, *mime;
	const char *metadata; /* JSON object */
	const char *upload;   /* "binary_url": what was uploaded under this name, not data */
};
#define UARP_STRLEN ((size_t)-1)
#define UARP_ITEM                                                                                  \
	{                                                                                          \
		NULL, NULL, UARP_STRLEN, NULL, NULL, NULL, NULL, NULL, NULL                        \
	}

enum {
	UARP_INLINE = 65536, /* bytes that are part of an item; more are uploaded */
	UARP_PIECE = 262144, /* bytes of one piece of an upload at most */
};

struct uarp_failure {
	const char *code, *message;
	const char *details; /* JSON object, or NULL */
	int retriable;
};

enum uarp_level { UARP_DEBUG, UARP_INFO, UARP_WARN, UARP_ERROR };

/* What a run can do; the server fills it for libraries, uar_plugin.c for programs.
 * Grows at the end only, as do the structs above: whoever is given one looks at its
 * size first. Use the functions below. */
struct uarp_ops {
	uint32_t abi, size;
	const struct uarp_info *(*info)(struct uarp_run *run);
	enum uarp_kind (*arg)(struct uarp_run *run, const char *pointer, struct uarp_value *out);
	void *(*alloc)(struct uarp_run *run, size_t size);
	const char *(*quote)(struct uarp_run *run, const char *text);
	int (*report)(struct uarp_run *run, const struct uarp_report *r, size_t size);
	const char *(*put)(struct uarp_run *run, const struct uarp_item *item, size_t size);
	const char *(*error)(struct uarp_run *run);
	int (*keep)(struct uarp_run *run, const char *export_item_id);
	int (*cancelled)(struct uarp_run *run);
	const char *(*cancel_reason)(struct uarp_run *run);
	int (*wait)(struct uarp_run *run, double seconds);
	void (*log)(struct uarp_run *run, enum uarp_level level, const char *message);
	int (*result)(struct uarp_run *run, const char *json);
	int (*fail)(struct uarp_run *run, const struct uarp_failure *f, size_t size);
	int (*upload)(struct uarp_run *run, const char *name, int64_t offset, const void *data,
		      size_t size);
};
struct uarp_run {
	const struct uarp_ops *ops;
};

/* --- what a handler may ask ----------------------------------------------------------- */

static inline const struct uarp_info *uarp_info(struct uarp_run *run)
{
	return run->ops->info(run);
}

static inline int uarp_restarted(struct uarp_run *run)
{
	const struct uarp_info *info = run->ops->info(run);

	return info->size >= sizeof *info && info->restarted;
}

static inline const char *uarp_id(struct uarp_run *run)
{
	return run->ops->info(run)->run_id;
}

/* The argument at a JSON Pointer such as "/pages/0/title"; "" is all of them. */
static inline enum uarp_kind uarp_arg(struct uarp_run *run, const char *pointer,
				      struct uarp_value *out)
{
	return run->ops->arg(run, pointer, out);
}

static inline const char *uarp_arg_str(struct uarp_run *run, const char *pointer,
				       const char *fallback)
{
	struct uarp_value v;

	return uarp_arg(run, pointer, &v) == UARP_STRING ? v.text : fallback;
}

static inline int64_t uarp_arg_int(struct uarp_run *run, const char *pointer, int64_t fallback)
{
	struct uarp_value v;

	return uarp_arg(run, pointer, &v) == UARP_NUMBER ? v.integer : fallback;
}

static inline double uarp_arg_double(struct uarp_run *run, const char *pointer, double fallback)
{
	struct uarp_value v;

	return uarp_arg(run, pointer, &v) == UARP_NUMBER ? v.number : fallback;
}

static inline int uarp_arg_bool(struct uarp_run *run, const char *pointer, int fallback)
{
	struct uarp_value v;

	return uarp_arg(run, pointer, &v) == UARP_BOOL ? v.integer != 0 : fallback;
}

/* Has somebody asked the run to stop? Ask in long loops, then return UARP_CANCELED. */
static inline int uarp_cancelled(struct uarp_run *run)
{
	return run->ops->cancelled(run);
}

static inline const char *uarp_cancel_reason(struct uarp_run *run) /* never NULL */
{
	return run->ops->cancel_reason(run);
}

/* Sleeps at most so long; true as soon as the run is cancelled. */
static inline int uarp_wait(struct uarp_run *run, double seconds)
{
	return run->ops->wait(run, seconds);
}

/* --- memory, until the handler returns ---------------------------------------------------- */

static inline void *uarp_alloc(struct uarp_run *run, size_t size)
{
	return run->ops->alloc(run, size);
}

UARP_FORMAT(2, 0)
static inline const char *uarp_vprintf(struct uarp_run *run, const char *format, va_list ap)
{
	va_list again;
	char *out = NULL;
	int n;

	va_copy(again, ap);
	n = vsnprintf(NULL, 0, format, again);
	va_end(again);
	if (n >= 0)
		out = (char *)run->ops->alloc(run, (size_t)n + 1);
	if (out)
		vsnprintf(out, (size_t)n + 1, format, ap);
	return out;
}

/* NULL: out of memory. All calls that take text accept that NULL and fail. */
UARP_FORMAT(2, 3)
static inline const char *uarp_printf(struct uarp_run *run, const char *format, ...)
{
	const char *out;
	va_list ap;

	va_start(ap, format);
	out = uarp_vprintf(run, format, ap);
	va_end(ap);
	return out;
}

/* The text as JSON, with its quotes: uarp_printf(run, "{\"k\":%s}", uarp_quote(run, v)). */
static inline const char *uarp_quote(struct uarp_run *run, const char *text)
{
	return run->ops->quote(run, text);
}

/* --- what a handler may tell ----------------------------------------------------------------- */

/* The server passes on one report each 100 ms, and always the last. 0, or -1 when
 * something in it was wrong. */
static inline int uarp_report(struct uarp_run *run, const struct uarp_report *r)
{
	return run->ops->report(run, r, sizeof *r);
}

static inline int uarp_progress(struct uarp_run *run, double progress, const char *message)
{
	struct uarp_report r = UARP_REPORT;

	r.progress = progress;
	r.message = message;
	return uarp_report(run, &r);
}

/* Names the stage that the run is in. */
static inline int uarp_status(struct uarp_run *run, const char *status, const char *message)
{
	struct uarp_report r = UARP_REPORT;

	r.stage = status;
	r.message = message;
	return uarp_report(run, &r);
}

/* Appends an item and returns its id once it is stored for good; the id stays until
 * the next export. NULL: refused, and uarp_error says why. */
static inline const char *uarp_export(struct uarp_run *run, const struct uarp_item *item)
{
	return run->ops->put(run, item, sizeof *item);
}

/* The code of the last call that was refused: "PAYLOAD_TOO_LARGE", "INVALID_ARGUMENT",
 * "RUN_NOT_RUNNING", "TRANSPORT_ERROR". Never NULL. */
static inline const char *uarp_error(struct uarp_run *run)
{
	return run->ops->error(run);
}

/* A piece of something large: 0 begins an upload, each other offset must be where the
 * last piece ended. 0, or -1. An item of type "binary_url" then names the upload. */
static inline int uarp_upload(struct uarp_run *run, const char *name, int64_t offset,
			      const void *data, size_t size)
{
	if (run->ops->size < offsetof(struct uarp_ops, upload) + sizeof run->ops->upload)
		return -1; /* a server that is older than this header has no uploads */
	return run->ops->upload(run, name, offset, data, size);
}

static inline const char *uarp_export_as(struct uarp_run *run, const char *type, const char *text,
					 const char *description)
{
	struct uarp_item item = UARP_ITEM;

	item.type = type;
	item.data = text;
	item.description = description;
	return uarp_export(run, &item);
}

/* Bytes of any size, served by the server itself. */
static inline const char *uarp_export_large(struct uarp_run *run, const void *data, size_t size,
					    const char *mime, const char *description)
{
	struct uarp_item item = UARP_ITEM;
	size_t at = 0, n;

	do {
		n = size - at < (size_t)UARP_PIECE ? size - at : (size_t)UARP_PIECE;
		if (uarp_upload(run, "uarp", (int64_t)at, (const char *)data + at, n))
			return NULL;
	} while ((at += n) < size);
	item.type = "binary_url";
	item.upload = "uarp";
	item.mime = mime;
	item.description = description;
	return uarp_export(run, &item);
}

static inline const char *uarp_export_text(struct uarp_run *run, const char *text,
					   const char *description)
{
	size_t n = text ? strlen(text) : 0;

	if (n > UARP_INLINE)
		return uarp_export_large(run, text, n, "text/plain; charset=utf-8", description);
	return uarp_export_as(run, "text", text, description);
}

static inline const char *uarp_export_url(struct uarp_run *run, const char *url,
					  const char *description)
{
	return uarp_export_as(run, "url", url, description);
}

static inline const char *uarp_export_binary_url(struct uarp_run *run, const char *url,
						 const char *description)
{
	return uarp_export_as(run, "binary_url", url, description);
}

static inline const char *uarp_export_json(struct uarp_run *run, const char *json,
					   const char *description)
{
	return uarp_export_as(run, "json", json, description);
}

static inline const char *uarp_export_binary(struct uarp_run *run, const void *data, size_t size,
					     const char *mime, const char *description)
{
	struct uarp_item item = UARP_ITEM;

	if (size > UARP_INLINE)
		return uarp_export_large(run, data, size, mime, description);
	item.type = "binary";
	item.data = data;
	item.size = size;
	item.mime = mime;
	item.description = description;
	return uarp_export(run, &item);
}

/* Uploads a file, from where it stands to its end. */
static inline const char *uarp_export_file(struct uarp_run *run, FILE *file, const char *label,
					   const char *mime)
{
	struct uarp_item item = UARP_ITEM;
	char *piece = (char *)uarp_alloc(run, UARP_PIECE);
	int64_t at = 0;
	size_t n;

	if (!piece)
		return NULL;
	do {
		n = fread(piece, 1, UARP_PIECE, file);
		if (ferror(file) || uarp_upload(run, "uarp", at, piece, n))
			return NULL;
		at += (int64_t)n;
	} while (n == UARP_PIECE);
	item.type = "binary_url";
	item.upload = "uarp";
	item.label = label;
	item.mime = mime;
	return uarp_export(run, &item);
}

/* Refers to an artifact that is stored already. */
static inline const char *uarp_export_id(struct uarp_run *run, const char *ref,
					 const char *description)
{
	return uarp_export_as(run, "url", ref ? uarp_printf(run, "artifact://%s", ref) : NULL,
			      description);
}

/* Names an item that is the run's result, also when it fails or is cancelled. Without
 * it a run that succeeds counts all its items, another one none. 0, or -1. */
static inline int uarp_keep(struct uarp_run *run, const char *export_item_id)
{
	return run->ops->keep(run, export_item_id);
}

/* A line in the server's log, with the run's id. */
UARP_FORMAT(3, 4)
static inline void uarp_log(struct uarp_run *run, enum uarp_level level, const char *format, ...)
{
	char text[2048];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	run->ops->log(run, level, text);
}

/* --- how it ends --------------------------------------------------------------------------- */

/* The result, any JSON. UARP_OK; UARP_FAILED when it is no JSON or too large, and
 * then the run fails with that when the handler returns it: return uarp_result(...). */
static inline int uarp_result(struct uarp_run *run, const char *json)
{
	return run->ops->result(run, json);
}

/* Always UARP_FAILED: return uarp_fail_with(...). */
static inline int uarp_fail_with(struct uarp_run *run, const struct uarp_failure *f)
{
	return run->ops->fail(run, f, sizeof *f);
}

UARP_FORMAT(3, 4)
static inline int uarp_fail(struct uarp_run *run, const char *code, const char *format, ...)
{
	struct uarp_failure f = { NULL, NULL, NULL, 0 };
	char text[512];
	va_list ap;

	va_start(ap, format);
	vsnprintf(text, sizeof text, format, ap);
	va_end(ap);
	f.code = code;
	f.message = text;
	return uarp_fail_with(run, &f);
}

#ifdef __cplusplus
}
#endif

#endif
