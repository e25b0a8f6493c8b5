/* llhttp_test.c - a second opinion: what our reader takes, llhttp in its strict
 * mode must frame in the same way. Skipped where its sources are not installed
 * (Debian: node-llhttp). */
#include "test.h"

#include "llhttp_all.h"

#include "base/rand.h"
#include "http_corpus.h"
#include "http_trace.h"

#ifdef HAVE_LLHTTP

/* The same text as http_trace.h makes, from the other reader. */
struct other {
	struct uar_buf *out, target, body;
};

static int on_begin(llhttp_t *p)
{
	struct other *o = p->data;

	uar_buf_clear(&o->target);
	uar_buf_clear(&o->body);
	return 0;
}

static int on_url(llhttp_t *p, const char *at, size_t n)
{
	uar_buf_add(&((struct other *)p->data)->target, at, n);
	return 0;
}

static int on_body(llhttp_t *p, const char *at, size_t n)
{
	uar_buf_add(&((struct other *)p->data)->body, at, n);
	return 0;
}

static int on_complete(llhttp_t *p)
{
	struct other *o = p->data;

	uar_buf_printf(o->out, "200 %s %.*s %zu ", llhttp_method_name((llhttp_method_t)p->method),
		       UAR_FMT(uar_buf_str(&o->target)), o->body.n);
	uar_buf_add_str(o->out, uar_buf_str(&o->body));
	uar_buf_add_str(o->out, UAR_STR("\n"));
	return 0;
}

static void other_run(uar_str in, struct uar_buf *out)
{
	struct other o = { out, uar_buf_make(1 << 20), uar_buf_make(1 << 20) };
	llhttp_settings_t settings;
	llhttp_t p;

	llhttp_settings_init(&settings);
	settings.on_message_begin = on_begin;
	settings.on_url = on_url;
	settings.on_body = on_body;
	settings.on_message_complete = on_complete;
	llhttp_init(&p, HTTP_REQUEST, &settings);
	p.data = &o;
	while (llhttp_execute(&p, in.p, in.n) == HPE_PAUSED_UPGRADE) {
		/* We take no upgrade offers: what follows is HTTP. */
		in = uar_str_from(in, (size_t)(llhttp_get_error_pos(&p) - in.p));
		llhttp_resume_after_upgrade(&p);
	}
	uar_buf_fini(&o.target);
	uar_buf_fini(&o.body);
}

/* Every request we took must come first in the other's list, byte for byte. */
static bool agrees(uar_str in)
{
	struct uar_buf ours = uar_buf_make(1 << 22), others = uar_buf_make(1 << 22);
	uar_str taken;
	bool ok;

	taken.n = trace_run(in, 0, 0, &ours).taken;
	taken.p = ours.p;
	other_run(in, &others);
	ok = uar_str_starts(uar_buf_str(&others), taken);
	if (!ok)
		printf("  %.*s\n  ours %.*s\n  other %.*s\n", UAR_FMT(in), UAR_FMT(taken),
		       UAR_FMT(uar_buf_str(&others)));
	uar_buf_fini(&ours);
	uar_buf_fini(&others);
	return ok;
}

static void check_case(void *ctx, const struct http_case *c)
{
	struct uar_buf in = uar_buf_make(1 << 22);

	(void)ctx;
	uar_buf_add_str(&in, c->bytes);
	uar_buf_add_str(&in, UAR_STR("GET /next HTTP/1.1\r\nHost: a\r\n\r\n"));
	CHECK_MSG(agrees(uar_buf_str(&in)), "%s", c->name);
	uar_buf_fini(&in);
}

TEST(llhttp_frames_the_corpus_as_we_do, "")
{
	CHECK(uar_test_http_corpus(check_case, NULL) >= 400);
}

/* --- mutations ------------------------------------------------------------------------ */

static const char *const pieces[] = {
	"\r\n",
	"\n",
	"\r",
	" ",
	"\t",
	":",
	",",
	"0",
	"5",
	"Host: a\r\n",
	"Content-Length: 5\r\n",
	"Transfer-Encoding: chunked\r\n",
	"5\r\nhello\r\n",
	"0\r\n\r\n",
	"GET / HTTP/1.1\r\n",
	"Connection: close\r\n",
	"HTTP/1.0",
	"Upgrade: x\r\nConnection: upgrade\r\n",
	";",
	"x",
};

static void mutate(const struct uar_rand *r, struct uar_buf *b)
{
	const char *piece = pieces[uar_rand_below(r, ARRAY_LEN(pieces))];
	size_t at = uar_rand_below(r, b->n + 1), n = strlen(piece);

	switch (uar_rand_below(r, 3)) {
	case 0: /* insert */
		if (!uar_buf_reserve(b, n))
			return;
		memmove(b->p + at + n, b->p + at, b->n - at);
		memcpy(b->p + at, piece, n);
		b->n += n;
		b->p[b->n] = 0;
		break;
	case 1: /* remove */
		n = 1 + uar_rand_below(r, 4);
		if (at + n > b->n)
			return;
		memmove(b->p + at, b->p + at + n, b->n - at - n);
		b->n -= n;
		b->p[b->n] = 0;
		break;
	default:
		if (at < b->n)
			b->p[at] = (char)uar_rand_below(r, 128);
	}
}

struct mutation {
	struct uar_rand rand;
	size_t taken;
};

static void check_mutations(void *ctx, const struct http_case *c)
{
	struct mutation *m = ctx;
	struct uar_buf in = uar_buf_make(1 << 16), out = uar_buf_make(1 << 20);

	for (int i = 0; c->bytes.n < 1000 && i < 100; i++) {
		uar_buf_clear(&in);
		uar_buf_add_str(&in,
				UAR_STR("POST /first HTTP/1.1\r\nHost: a\r\n"
					"Transfer-Encoding: chunked\r\n\r\n2\r\nhi\r\n0\r\n\r\n"));
		uar_buf_add_str(&in, c->bytes);
		uar_buf_add_str(&in, UAR_STR("GET /next HTTP/1.1\r\nHost: a\r\n\r\n"));
		for (int k = 0; k <= i % 3; k++)
			mutate(&m->rand, &in);
		uar_buf_clear(&out);
		m->taken += trace_run(uar_buf_str(&in), 0, 0, &out).taken > 0;
		if (!CHECK(agrees(uar_buf_str(&in))))
			break;
	}
	uar_buf_fini(&in);
	uar_buf_fini(&out);
}

TEST(llhttp_frames_mutated_requests_as_we_do, "")
{
	struct uar_rand_seeded seeded;
	struct mutation m = { .rand = uar_rand_seed(&seeded, 20260101) };
	size_t n = uar_test_http_corpus(check_mutations, &m);

	printf("  %zu cases, 100 mutations each; %zu were taken at least in part\n", n, m.taken);
	CHECK(m.taken > 1000);
}

#else

TEST(llhttp_frames_as_we_do, "")
{
	uar_test_skip("node-llhttp is not installed");
}

#endif
