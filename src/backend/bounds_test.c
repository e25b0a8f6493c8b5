/* bounds_test.c - the envelope at its limits, byte by byte. */
#include "test.h"

#include "backend/int.h"

struct got {
	struct uaa_event *ev[8];
	int n;
};

static bool keep(void *ctx, struct uaa_event *ev)
{
	struct got *g = ctx;

	g->ev[g->n++] = ev;
	return true;
}

static void make(uaa_event_spec s, struct got *g)
{
	uaa_kind *k;

	*g = (struct got){ 0 };
	uaa_kind_new(uaa_str_c("toy"), &k, NULL);
	CHECK(uab_event_make(k, &s, false, keep, g));
	uaa_kind_unref(k);
}

static void drop(struct got *g)
{
	for (int i = 0; i < g->n; i++)
		uaa_event_unref(g->ev[i]);
}

/* `n` bytes: filler, then as many whole copies of `unit` as fit at the end. */
static uaa_str text_of(size_t n, const char *unit)
{
	static char big[200000];
	size_t u = strlen(unit);
	size_t count = n / u, pad = n % u;

	memset(big, 'a', pad);
	for (size_t i = 0; i < count; i++)
		memcpy(big + pad + i * u, unit, u);
	return (uaa_str){ big, n };
}

static const char *const units[] = { "x", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x92\x96" };

/* The bound counts bytes, whatever they spell. */
TEST(S01_channel_is_kept_or_absent, "LIB-43")
{
	for (size_t u = 0; u < ARRAY_LEN(units); u++)
		for (size_t n = 127; n <= 132; n++) {
			uaa_str channel = text_of(n, units[u]);
			struct got g;
			uar_str c;

			make((uaa_event_spec){ .kind = UAA_EV_STATUS, .channel = channel }, &g);
			c = uab_str(uaa_event_channel(g.ev[0]));
			if (n <= 128)
				CHECK(uar_str_eq(c, uab_str(channel)));
			else
				CHECK(!c.p);
			drop(&g);
		}
}

/* The longest piece that the bound allows and that ends with a whole character. */
static size_t piece(size_t left, size_t unit, size_t pad)
{
	return left <= 65536 ? left : pad + (65536 - pad) / unit * unit;
}

static void check_split(size_t n, const char *unit)
{
	uaa_str text = text_of(n, unit);
	struct got g;
	size_t at = 0;

	make((uaa_event_spec){ .kind = UAA_EV_TEXT_OUTPUT,
			       .channel = UAB_STR("assistant"),
			       .text = text,
			       .data_json = UAB_STR("{\"a\":1}") },
	     &g);
	for (int i = 0; i < g.n; i++) {
		uaa_str t = uaa_event_text(g.ev[i]);

		CHECK_INT(t.len, piece(n - at, strlen(unit), i ? 0 : n % strlen(unit)));
		CHECK(uar_utf8_valid(uab_str(t)));
		CHECK(at + t.len <= n && memcmp(t.ptr, text.ptr + at, t.len) == 0);
		CHECK_STR(uab_str(uaa_event_channel(g.ev[i])), "assistant");
		CHECK_STR(uab_str(uaa_event_data_json(g.ev[i])), "{\"a\":1}");
		CHECK_STR(uab_str(uaa_event_agent_kind(g.ev[i])), "toy");
		CHECK(uaa_event_get_kind(g.ev[i]) == UAA_EV_TEXT_OUTPUT);
		at += t.len;
	}
	CHECK_INT(at, n);
	CHECK_INT(g.n, n <= 65536 ? 1 : n <= 70000 ? 2 : 4);
	drop(&g);
}

TEST(S02_text_is_split, "LIB-43")
{
	for (size_t u = 0; u < ARRAY_LEN(units); u++) {
		for (size_t n = 65535; n <= 65540; n++)
			check_split(n, units[u]);
		check_split(199999, units[u]);
	}
}

TEST(S03_message_is_cut_with_a_suffix, "LIB-43")
{
	for (size_t u = 0; u < ARRAY_LEN(units); u++)
		for (size_t n = 4094; n <= 4100; n++) {
			uaa_str text = text_of(n, units[u]);
			struct got g;
			uar_str m;

			make((uaa_event_spec){ .kind = UAA_EV_ERROR, .message = text }, &g);
			m = uab_str(uaa_event_message(g.ev[0]));
			if (n <= 4096) {
				CHECK(uar_str_eq(m, uab_str(text)));
			} else {
				size_t len = strlen(units[u]), pad = n % len;

				/* as much as fits before the suffix, in whole characters */
				CHECK_INT(m.n, pad + (4082 - pad) / len * len + 14);
				CHECK(uar_utf8_valid(m));
				CHECK(uar_str_ends(m, UAR_STR("\xE2\x80\xA6(truncated)")));
				CHECK(memcmp(m.p, text.ptr, m.n - 14) == 0);
			}
			drop(&g);
		}
}

TEST(truncation_with_tiny_bounds, "")
{
	static const struct {
		size_t max;
		const char *want;
	} cases[] = { { 0, "" },
		      { 2, "" },
		      { 3, "\xE2\x80\xA6" },
		      { 14, "\xE2\x80\xA6" },
		      { 15, "a\xE2\x80\xA6(truncated)" } };

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_buf b = uar_buf_make(64);

		uab_truncate(UAR_STR("abcdefghijklmnopqrst"), cases[i].max, &b);
		CHECK_STR(uar_buf_str(&b), cases[i].want);
		uar_buf_fini(&b);
	}
}

TEST(S04_data_is_kept_or_replaced, "LIB-43")
{
	static char json[70000];

	for (size_t n = 65534; n <= 65538; n++) {
		struct got g;

		memset(json, 'x', n);
		json[0] = json[n - 1] = '"';
		make((uaa_event_spec){ .kind = UAA_EV_STATUS, .data_json = { json, n } }, &g);
		if (n <= 65536)
			CHECK_INT(uaa_event_data_json(g.ev[0]).len, n);
		else
			CHECK_STR(uab_str(uaa_event_data_json(g.ev[0])),
				  "{\"dropped\":{\"reason\":\"oversize\"}}");
		drop(&g);
	}
}

TEST(S05_size_is_that_of_compact_json, "LIB-43")
{
	static const struct {
		const char *in, *out; /* NULL: replaced */
	} cases[] = {
		{ " { \"a\" : [ 1 , 2 ] } ", "{\"a\":[1,2]}" },
		{ "\"\\/\"", "\"/\"" },
		{ "\"\\u0001\\n\\u00e9\"", "\"\\u0001\\n\xC3\xA9\"" },
		{ "1.0e2", "100.0" },
		{ "0.1000", "0.1" },
		{ "1e400", NULL },
		{ "{\"a\":", NULL },
		{ "nul", NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct got g;
		uar_str d;

		make((uaa_event_spec){ .kind = UAA_EV_STATUS, .data_json = uaa_str_c(cases[i].in) },
		     &g);
		d = uab_str(uaa_event_data_json(g.ev[0]));
		if (cases[i].out && !uar_str_is(d, "100")) /* an integer may lose its point */
			CHECK_STR(d, cases[i].out);
		if (!cases[i].out)
			CHECK_STR(d, "{\"dropped\":{\"reason\":\"oversize\"}}");
		drop(&g);
	}
}

TEST(U10_U11_U12_U13_each_kind_keeps_its_rules, "LIB-28 LIB-29 LIB-39 LIB-40 LIB-41 LIB-42")
{
	for (int k = 0; k <= 8; k++) {
		struct got g;
		uaa_event_kind kind;

		make((uaa_event_spec){ .kind = (uaa_event_kind)k,
				       .channel = UAB_STR("c"),
				       .text = UAB_STR("t"),
				       .message = UAB_STR("m"),
				       .data_json = UAB_STR("{\"a\":1}") },
		     &g);
		kind = uaa_event_get_kind(g.ev[0]);
		CHECK_INT(kind, k >= 1 && k <= 6 ? k : 6); /* six kinds; any other is unknown */
		CHECK_STR(uab_str(uaa_event_agent_kind(g.ev[0])), "toy");
		CHECK_STR(uab_str(uaa_event_channel(g.ev[0])), "c");
		CHECK((uaa_event_text(g.ev[0]).ptr != NULL) == (kind == UAA_EV_TEXT_OUTPUT));
		CHECK((uaa_event_message(g.ev[0]).ptr == NULL) == (kind == UAA_EV_TEXT_OUTPUT));
		CHECK_STR(uab_str(uaa_event_data_json(g.ev[0])), "{\"a\":1}");
		drop(&g);
	}
	struct got g;
	make((uaa_event_spec){ .kind = UAA_EV_ERROR }, &g);
	CHECK(uaa_event_message(g.ev[0]).ptr != NULL);
	drop(&g);
}

TEST(text_may_hold_nul_and_broken_bytes, "")
{
	struct got g;

	make((uaa_event_spec){ .kind = UAA_EV_TEXT_OUTPUT, .text = { "a\0b\xFF", 4 } }, &g);
	CHECK(uar_str_eq(uab_str(uaa_event_text(g.ev[0])), uar_str_n("a\0b\xEF\xBF\xBD", 6)));
	drop(&g);
}

TEST(lossy_decoding_is_bounded_afterwards, "")
{
	static char raw[5000];
	struct got g;

	memset(raw, 0xFF, sizeof raw); /* grows threefold */
	make((uaa_event_spec){ .kind = UAA_EV_STATUS, .message = { raw, 2000 } }, &g);
	CHECK(uaa_event_message(g.ev[0]).len <= 4096);
	drop(&g);
}

TEST(U06_completion_data_is_bounded, "LIB-32")
{
	static char json[70000];

	for (size_t n = 65536; n <= 65537; n++) {
		uaa_run *run;
		uaa_producer *p;
		uaa_run_result r = { 0 };

		CHECK(uaa_run_new(uaa_str_c("toy"), NULL, NULL, &run, &p) == UAA_OK);
		memset(json, 'x', n);
		json[0] = json[n - 1] = '"';
		uaa_producer_succeed(p, 0, UAB_NONE, (uaa_str){ json, n });
		uaa_producer_unref(p);
		CHECK(uaa_run_collect(run, NULL, NULL, &r, NULL) == UAA_OK);
		if (n == 65536)
			CHECK_INT(uaa_completion_data_json(r.completion).len, 65536);
		else
			CHECK_STR(uab_str(uaa_completion_data_json(r.completion)),
				  "{\"dropped\":{\"reason\":\"oversize\"}}");
		CHECK(!uaa_completion_final_text(r.completion).ptr);
		uaa_completion_unref(r.completion);
		uaa_run_unref(run);
	}
}

TEST(a_final_text_too_long_is_cut, "LIB-32")
{
	for (size_t n = 65536; n <= 65537; n++) {
		uaa_run *run;
		uaa_producer *p;
		uaa_run_result r = { 0 };
		uar_str text;

		CHECK(uaa_run_new(uaa_str_c("toy"), NULL, NULL, &run, &p) == UAA_OK);
		uaa_producer_succeed(p, 0, text_of(n, "x"), UAB_NONE);
		uaa_producer_unref(p);
		CHECK(uaa_run_collect(run, NULL, NULL, &r, NULL) == UAA_OK);
		text = uab_str(uaa_completion_final_text(r.completion));
		CHECK_INT(text.n, 65536);
		CHECK(uar_str_ends(text, UAR_STR("\xE2\x80\xA6(truncated)")) == (n > 65536));
		uaa_completion_unref(r.completion);
		uaa_run_unref(run);
	}
}

TEST(surrogates_are_mended_in_place, "")
{
	static const struct {
		const char *in, *out;
	} cases[] = {
		{ "\"\\ud83d\\udc96\"", "\"\\ud83d\\udc96\"" },
		{ "\"\\ud83d\"", "\"\\ufffd\"" },
		{ "\"\\udc96x\"", "\"\\ufffdx\"" },
		{ "\"\\ud83d\\ud83d\\udc96\"", "\"\\ufffd\\ud83d\\udc96\"" },
		{ "\"\\\\ud83d\"", "\"\\\\ud83d\"" },
		{ "\"\\ud83", "\"\\ud83" },
		{ "\\", "\\" },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char s[64];
		size_t n = strlen(cases[i].in);

		memcpy(s, cases[i].in, n);
		uab_fix_surrogates(s, n);
		CHECK_STR(uar_str_n(s, n), cases[i].out);
	}
}

TEST(unicode_space_is_trimmed, "")
{
	CHECK_STR(uab_trim(UAR_STR("\xE2\x80\x83 a b\xC2\xA0\n")), "a b");
	CHECK_STR(uab_trim(UAR_STR("\xE2\x82\xAC")), "\xE2\x82\xAC");
	CHECK_STR(uab_trim(UAR_STR(" \t")), "");
}
