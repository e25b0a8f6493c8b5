/* model_streams.c - what streams of a provider cost us, without the rest of UAR.
 *
 *	model_streams BASE_URL STREAMS [cold]
 *
 * Opens STREAMS calls at once (see fake_provider.c), reads them to their end and
 * prints CPU time and memory; one call goes before unless `cold`. Also times the reader alone,
 *without a network. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include "loop/client.h"
#include "model/reply_int.h"

static struct uar_loop *loop;
static unsigned open_calls, failed;
static uint64_t bytes, texts;

static void on_text(void *ctx, uar_str delta)
{
	(void)ctx;
	texts++;
	bytes += delta.n;
}

static void on_done(void *ctx, const struct uar_model_result *r)
{
	(void)ctx;
	if (r->failure && failed++ == 0)
		fprintf(stderr, "%s: %.*s\n", uar_model_failure_name(r->failure),
			UAR_FMT(r->message));
	if (--open_calls == 0)
		uar_loop_stop(loop);
}

static double cpu_ms(void)
{
	struct rusage u;

	getrusage(RUSAGE_SELF, &u);
	return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) * 1e3 +
	       (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e3;
}

static long rss_kb(void)
{
	long pages = 0;
	FILE *f = fopen("/proc/self/statm", "r");

	if (f && fscanf(f, "%*d %ld", &pages) != 1)
		pages = 0;
	if (f)
		fclose(f);
	return pages * (sysconf(_SC_PAGESIZE) / 1024);
}

static void on_piece(void *ctx, enum uar_reply_kind kind, uar_str text)
{
	(void)ctx, (void)kind;
	bytes += text.n;
}

static void time_reader(void)
{
	enum { ROUNDS = 200000 };
	static const char event[] =
		"data: {\"id\":\"chatcmpl-bench-0123456789\",\"object\":\"chat.completion.chunk\","
		"\"created\":1700000000,\"model\":\"bench\",\"system_fingerprint\":\"fp_bench\","
		"\"choices\":[{\"index\":0,\"delta\":{\"content\":\" word\"},\"logprobs\":null,"
		"\"finish_reason\":null}]}\n\n";
	struct uar_reply_scratch scratch;
	struct uar_reply a = { .dialect = &uar_dialect_openai_chat,
			       .scratch = &scratch,
			       .piece = on_piece };
	double start;

	uar_reply_scratch_init(&scratch);
	uar_reply_init(&a);
	start = cpu_ms();
	for (int i = 0; i < ROUNDS; i++)
		if (uar_reply_feed(&a, uar_str_n(event, sizeof event - 1)))
			exit(1);
	printf("reader alone: %.0f ns an event of %zu bytes\n", (cpu_ms() - start) * 1e6 / ROUNDS,
	       sizeof event - 1);
	uar_reply_fini(&a);
	uar_reply_scratch_fini(&scratch);
}

static struct uar_timer sample;
static long peak_kb;

static void on_sample(struct uar_timer *t)
{
	long kb = rss_kb();

	peak_kb = kb > peak_kb ? kb : peak_kb;
	if (uar_timer_set(uar_loop_sched(loop), t, 200000))
		exit(1);
}

static void run(struct uar_model *m, unsigned n)
{
	struct uar_model_part text = uar_model_text_part(UAR_STR("Hello"));
	struct uar_model_message hello = { UAR_MODEL_USER, &text, 1 };
	struct uar_model_request r = { .model = UAR_STR("bench"),
				       .messages = &hello,
				       .message_count = 1 };
	struct uar_model_events ev = { on_text, on_text, on_done, NULL };
	struct uar_model_call *call;
	struct uar_error error;

	open_calls = n;
	for (unsigned i = 0; i < n; i++)
		if (m->ops->start(m, &r, &ev, &call, &error)) {
			fprintf(stderr, "%s\n", uar_error_text(&error));
			exit(1);
		}
	uar_loop_run(loop);
}

int main(int argc, char **argv)
{
	struct uar_client *client;
	struct uar_model *m;
	struct uar_error error;
	struct rlimit files = { 65536, 65536 };
	unsigned n = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 1;
	long before_kb;
	double start;

	time_reader();
	if (argc < 2)
		return 0;
	setrlimit(RLIMIT_NOFILE, &files);
	if (uar_loop_create(&uar_clock_system, &loop) || uar_client_create(loop, NULL, &client) ||
	    uar_model_wire_create(&(struct uar_model_wire_options){ .client = client,
								    .provider = "bench",
								    .base_url = argv[1] },
				  &m, &error))
		return 1;
	if (argc < 4)
		run(m, 1); /* loads libcurl */
	bytes = texts = 0;
	before_kb = rss_kb();
	sample.fn = on_sample;
	on_sample(&sample);
	start = cpu_ms();
	run(m, n);
	printf("%u streams: %llu tokens in %llu texts, %.2f us CPU a token, %.1f KB a stream, %u "
	       "failed\n",
	       n, (unsigned long long)bytes / 5, (unsigned long long)texts,
	       (cpu_ms() - start) * 1e3 / ((double)bytes / 5), (double)(peak_kb - before_kb) / n,
	       failed);
	uar_timer_stop(uar_loop_sched(loop), &sample);
	uar_model_destroy(m);
	uar_client_destroy(client);
	uar_loop_destroy(loop);
	return failed ? 1 : 0;
}
