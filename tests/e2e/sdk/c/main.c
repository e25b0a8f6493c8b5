/* main.c - the conformance plugin in C: a program with uar_plugin.c, or a library. */
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "uar/plugin.h"

static int echo(struct uarp_run *run)
{
	struct uarp_value v;

	if (uarp_arg_bool(run, "/print", 0)) /* not as a library: that is the server's output */
		printf("printed, not protocol\n");
	uarp_arg(run, "/say", &v);
	return uarp_result(run, v.kind == UARP_STRING ? uarp_quote(run, v.text) : v.text);
}

static const char *or_null(struct uarp_run *run, const char *text)
{
	return text ? uarp_quote(run, text) : "null";
}

static int context(struct uarp_run *run)
{
	const struct uarp_info *i = uarp_info(run);

	uarp_log(run, UARP_WARN, "a line of the %s", "log");
	return uarp_result(
		run, uarp_printf(run,
				 "{\"run_id\":%s,\"attempt\":%d,\"root\":%s,\"parent\":%s,"
				 "\"task_id\":%s,\"trace_id\":%s,\"timeout\":%s}",
				 uarp_quote(run, uarp_id(run)), i->attempt,
				 uarp_quote(run, i->root_run_id), or_null(run, i->parent_run_id),
				 or_null(run, i->task_id), or_null(run, i->trace_id),
				 i->timeout_seconds > 0 ? "true" : "false"));
}

static int args(struct uarp_run *run)
{
	struct uarp_value list;

	uarp_arg(run, "/deep/list", &list);
	return uarp_result(run,
			   uarp_printf(run, "[%u,%lld,%s,%s,%.1f,%s,%s]", list.count,
				       (long long)uarp_arg_int(run, "/deep/list/0", -1),
				       uarp_quote(run, uarp_arg_str(run, "/deep/list/1", "?")),
				       uarp_arg_bool(run, "/deep/list/2", 0) ? "true" : "false",
				       uarp_arg_double(run, "/deep/list/4", -1),
				       uarp_quote(run, uarp_arg_str(run, "/a~1b", "?")),
				       uarp_arg_str(run, "/missing", "null")));
}

static int items(struct uarp_run *run)
{
	struct uarp_item rich = { .type = "text",
				  .data = "hello",
				  .size = UARP_STRLEN,
				  .description = "a text",
				  .label = "greeting",
				  .metadata = "{\"k\": 1}" };
	unsigned char bytes[256 * 16];
	const char *ids[6] = { NULL };
	int keep = (int)uarp_arg_int(run, "/keep", -1);

	for (size_t i = 0; i < sizeof bytes; i++)
		bytes[i] = (unsigned char)i;
	for (int i = 0; i < 6; i++) {
		const char *id = i == 0	  ? uarp_export(run, &rich)
				 : i == 1 ? uarp_export_url(run, "http://x/y", "a link")
				 : i == 2 ? uarp_export_binary_url(run, "http://x/z", NULL)
				 : i == 3 ? uarp_export_binary(run, bytes, sizeof bytes,
							       "application/x-test", "bytes")
				 : i == 4 ? uarp_export_json(run, "{\"deep\":\n[1, null]}", NULL)
					  : uarp_export_id(run, "some-artifact", NULL);

		if (!id)
			return uarp_fail(run, uarp_error(run), "item %d", i);
		ids[i] = uarp_printf(run, "%s", id);
		for (int64_t k = 0; keep == i && k < uarp_arg_int(run, "/times", 1); k++)
			uarp_keep(run, id);
	}
	return uarp_result(run, uarp_printf(run, "[\"%s\",\"%s\",\"%s\",\"%s\",\"%s\",\"%s\"]",
					    ids[0], ids[1], ids[2], ids[3], ids[4], ids[5]));
}

static int refused(struct uarp_run *run)
{
	struct uarp_item odd = { .type = "odd", .data = "x", .size = 1 };
	struct uarp_item big = { .type = "text", .size = 65537 };
	char *large = uarp_alloc(run, 65538);
	const char *first, *second;

	memset(large, 'x', 65537);
	big.data = large;
	first = uarp_export(run, &big) ? "no" : uarp_quote(run, uarp_error(run));
	second = uarp_export(run, &odd) ? "no" : uarp_quote(run, uarp_error(run));
	return uarp_result(run, uarp_printf(run, "[%s,%s]", first, second));
}

static int large(struct uarp_run *run)
{
	unsigned char *bytes = uarp_alloc(run, 600000);
	char *text = uarp_alloc(run, 100001);
	FILE *file = fopen(uarp_arg_str(run, "/file", ""), "rb");
	bool good;

	for (size_t i = 0; i < 600000; i++)
		bytes[i] = (unsigned char)(i * 7);
	memset(text, 'x', 100000);
	good = uarp_export_binary(run, bytes, 600000, "application/x-test", "many bytes") &&
	       uarp_export_text(run, text, NULL) && file &&
	       uarp_export_file(run, file, "notes.txt", "text/plain");
	if (file)
		fclose(file);
	return good ? UARP_OK : uarp_fail(run, uarp_error(run), "refused");
}

static int wait_for_file(struct uarp_run *run)
{
	while (access(uarp_arg_str(run, "/file", ""), F_OK))
		if (uarp_wait(run, 0.01))
			return UARP_CANCELED;
	return uarp_result(run, "\"through\"");
}

static int gate(struct uarp_run *run)
{
	uarp_progress(run, 0.5, uarp_restarted(run) ? "at the gate again" : "at the gate");
	return wait_for_file(run);
}

static int report(struct uarp_run *run)
{
	struct uarp_report r = UARP_REPORT;

	r.progress = 0.25;
	r.message = "a quarter";
	r.step = 1;
	r.step_total = 4;
	r.eta_seconds = 9;
	r.metrics = "{\"pages\": 3}";
	uarp_report(run, &r);
	uarp_status(run, "resting", "all said");
	return wait_for_file(run);
}

static int burst(struct uarp_run *run)
{
	int64_t n = uarp_arg_int(run, "/n", 0);

	for (int64_t i = 0; i <= n; i++)
		uarp_progress(run, (double)i / (double)n, uarp_printf(run, "step %d", (int)i));
	return UARP_OK;
}

static int partial(struct uarp_run *run)
{
	uarp_progress(run, 0.1, NULL);
	while (!uarp_wait(run, 1000))
		;
	uarp_export_text(run, "left out", NULL);
	uarp_keep(run, uarp_export_text(run, "partial", uarp_cancel_reason(run)));
	return UARP_CANCELED;
}

static int deaf(struct uarp_run *run)
{
	struct timespec short_time = { 0, 10000000 };

	uarp_progress(run, 0.1, NULL);
	while (access(uarp_arg_str(run, "/file", ""), F_OK))
		nanosleep(&short_time, NULL);
	return uarp_export_text(run, "too late", NULL) ? UARP_OK : UARP_FAILED;
}

/* Deaf as well: whoever opens the FIFO knows that it is at work, and a byte lets it go. */
static int fifo(struct uarp_run *run)
{
	FILE *f = fopen(uarp_arg_str(run, "/file", ""), "re");

	int c;

	if (!f)
		return UARP_FAILED;
	setvbuf(f, NULL, _IONBF, 0);
	c = fgetc(f);
	fclose(f);
	return c == EOF ? UARP_FAILED : UARP_OK;
}

static int child(struct uarp_run *run)
{
	if (system("cat; printf half"))
		return UARP_FAILED;
	return uarp_export_text(run, "after", NULL) ? UARP_OK : UARP_FAILED;
}

/* As a header before uploads made it: what follows the struct is not its own. */
static int short_item(struct uarp_run *run)
{
	struct uarp_item item = UARP_ITEM;

	item.type = "text";
	item.data = "x";
	item.upload = (const char *)(uintptr_t)1;
	return run->ops->put(run, &item, offsetof(struct uarp_item, upload)) ? UARP_OK
									     : UARP_FAILED;
}

static int fails(struct uarp_run *run)
{
	struct uarp_failure f = { uarp_arg_str(run, "/code", "QUOTA"), "no more pages",
				  "{\"left\": 0}", 1 };

	if (uarp_arg_bool(run, "/odd", 0))
		f.details = "{\"left\": none}";
	return uarp_fail_with(run, &f);
}

static int raises(struct uarp_run *run)
{
	(void)run;
	return 7;
}

static int typed(struct uarp_run *run)
{
	return uarp_result(run, "\"not an integer\"");
}

static int unsound(struct uarp_run *run)
{
	return uarp_result(run, "{\"no\": JSON}");
}

static int crash(struct uarp_run *run)
{
	uarp_export_text(run, "before", NULL);
	_exit(3);
}

static const struct uarp_entry entries[] = {
	{ "echo", echo },
	{ "context", context },
	{ "args", args },
	{ "items", items },
	{ "refused", refused },
	{ "gate", gate },
	{ "report", report },
	{ "burst", burst },
	{ "partial", partial },
	{ "deaf", deaf },
	{ "child", child },
	{ "fails", fails },
	{ "raises", raises },
	{ "typed", typed },
	{ "unsound", unsound },
	{ "crash", crash },
	{ "large", large },
	{ "fifo", fifo },
	{ "short_item", short_item },
	{ NULL, NULL },
};
UARP_PLUGIN(entries);
