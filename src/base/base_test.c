/* base_test.c - strings, buffers, arenas, maps, time, ids, checksums. */
#include "test.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/alloc.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/crc32c.h"
#include "base/limits.h"
#include "base/log.h"
#include "base/map.h"
#include "base/rand.h"
#include "base/sha256.h"

static void free_twice(void)
{
	void *volatile p = uar_alloc(100);

	uar_free(p);
	uar_free(p);
}

/* As malloc does; else two would own one piece. */
TEST(what_is_freed_twice_ends_the_process, "")
{
	pid_t child;
	int status = 0;

	if (!uar_alloc_keep())
		return; /* a sanitizer looks after it */
	child = fork();
	if (child == 0) {
		(void)prctl(PR_SET_DUMPABLE, 0);
		free_twice();
		_exit(0);
	}
	REQUIRE(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
	uar_alloc_keep_end();
}

/* What a thread keeps comes back whole, zeroed where that was asked for, and no piece
 * twice; the bounds hold, and what is kept is given back in the end. */
TEST(a_thread_keeps_what_it_frees, "")
{
	enum { N = 300 };
	unsigned char *p[N];
	bool keeps = uar_alloc_keep();

	CHECK(!uar_alloc_keep()); /* it does so already, or never will */
	for (size_t round = 0; round < 4; round++) {
		for (size_t i = 0; i < N; i++) {
			size_t n = i * 37 % 9000 + (i < 2 ? i : 1);

			p[i] = round & 1 ? uar_zalloc(n) : uar_alloc(n);
			REQUIRE(p[i] != NULL);
			for (size_t k = 0; k < n && round & 1; k++)
				REQUIRE(p[i][k] == 0);
			memset(p[i], (int)i, n);
		}
		for (size_t i = 0; i < N; i++) {
			size_t n = i * 37 % 9000 + (i < 2 ? i : 1), more = n + round * 1000 + 1;

			for (size_t k = 0; k < n; k++)
				REQUIRE(p[i][k] == (unsigned char)i);
			p[i] = uar_realloc(p[i], more);
			REQUIRE(p[i] != NULL);
			for (size_t k = 0; k < n; k++)
				REQUIRE(p[i][k] == (unsigned char)i);
			p[i][more - 1] = 1;
		}
		for (size_t i = 0; i < N; i++)
			uar_free(p[i]);
	}
	if (keeps)
		uar_alloc_keep_end();
	p[0] = uar_alloc(100);
	uar_free(p[0]);
}

TEST(every_error_has_a_name_and_a_status, "ERR-08")
{
	for (int e = UAR_ERR_FIRST_ + 1; e < UAR_ERR_END_; e++) {
		CHECK(strncmp(uar_err_name((uar_err)e), "UAR_E", 5) == 0);
		CHECK(uar_err_http((uar_err)e) >= 400 && uar_err_http((uar_err)e) < 600);
	}
	CHECK_STR(uar_str_c(uar_err_name(UAR_ENOMEM)), "UAR_ENOMEM");
	CHECK_STR(uar_str_c(uar_err_name(UAR_EINTERNAL)), "UAR_EINTERNAL");
}

TEST(buffer_stops_at_its_maximum_and_remembers, "")
{
	struct uar_buf b = uar_buf_make(10);

	uar_buf_add_str(&b, UAR_STR("12345"));
	uar_buf_add_u64(&b, 67890);
	CHECK_STR(uar_buf_str(&b), "1234567890");
	uar_buf_add_char(&b, 'x');
	CHECK(b.err == UAR_ETOOBIG);
	uar_buf_clear(&b);
	CHECK(b.err == UAR_OK && b.n == 0);
	uar_buf_fini(&b);
}

TEST(secrets_differ_by_any_bit, "")
{
	char a[40], b[40];

	memset(a, 'x', sizeof a);
	memset(b, 'x', sizeof b);
	for (size_t n = 0; n <= sizeof a; n++) {
		CHECK(uar_str_eq_secret(uar_str_n(a, n), uar_str_n(b, n)) == (n > 0));
		CHECK(!n || !uar_str_eq_secret(uar_str_n(a, n), uar_str_n(b, n - 1)));
		for (size_t bit = 0; bit < 8 * n; bit++) {
			b[bit / 8] = (char)(b[bit / 8] ^ 1 << bit % 8);
			CHECK(!uar_str_eq_secret(uar_str_n(a, n), uar_str_n(b, n)));
			b[bit / 8] = 'x';
		}
	}
}

TEST(every_byte_has_two_digits, "")
{
	unsigned char raw[256];
	char text[2 * sizeof raw + 1], two[16];

	for (unsigned i = 0; i < sizeof raw; i++)
		raw[i] = (unsigned char)i;
	for (size_t n = 0; n <= sizeof raw; n++) {
		uar_hex(raw, n, text);
		CHECK_INT(strlen(text), 2 * n);
		for (unsigned i = 0; i < n; i++) {
			snprintf(two, sizeof two, "%02x", i);
			CHECK(memcmp(text + 2 * i, two, 2) == 0);
		}
	}
}

static char lower(char c)
{
	return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c;
}

TEST(case_of_ascii_letters_alone_is_ignored, "")
{
	char a[20], b[20];

	for (size_t n = 1; n <= sizeof a; n++) {
		memset(a, 'x', sizeof a);
		memset(b, 'X', sizeof b);
		for (size_t i = 0; i < 256 * 256; i++) {
			size_t at = i % n;

			a[at] = (char)i;
			b[at] = (char)(i >> 8);
			CHECK(uar_str_eq_nocase(uar_str_n(a, n), uar_str_n(b, n)) ==
			      (lower(a[at]) == lower(b[at])));
			a[at] = b[at] = 'x';
		}
	}
	CHECK(uar_str_eq_nocase(UAR_STR(""), UAR_STR_NONE));
	CHECK(!uar_str_eq_nocase(UAR_STR("a"), UAR_STR("ab")));
}

TEST(arena_respects_its_bound, "")
{
	struct uar_arena a;

	uar_arena_init(&a, 10000);
	for (int i = 0; i < 100; i++)
		CHECK(uar_arena_alloc(&a, 64) != NULL);
	CHECK(uar_arena_alloc(&a, 9000) == NULL);
	CHECK_STR(uar_arena_str(&a, UAR_STR("kept")), "kept");
	uar_arena_reset(&a);
	CHECK(uar_arena_alloc(&a, 16) != NULL);
	uar_arena_fini(&a);
}

TEST(arena_copies_several_strings_or_none, "")
{
	char text[] = "one";
	uar_str one = uar_str_c(text), none = UAR_STR_NONE, two = UAR_STR("two");
	uar_str *at[] = { &one, &none, &two };
	struct uar_arena a;

	uar_arena_init(&a, 5000);
	CHECK(uar_arena_strs(&a, at, ARRAY_LEN(at)));
	text[0] = 'x';
	CHECK_STR(one, "one");
	CHECK_STR(two, "two");
	CHECK(none.n == 0 && one.p[3] == 0 && none.p[0] == 0 && two.p[3] == 0);
	uar_arena_fini(&a);
	uar_arena_init(&a, 4);
	one = uar_str_c(text);
	CHECK(!uar_arena_strs(&a, at, ARRAY_LEN(at)));
	CHECK(one.p == text);
	uar_arena_fini(&a);
}

/* Also where a chunk ends a few bytes behind what is taken, aligned or not. */
TEST(arena_memory_is_zeroed_and_aligned, "")
{
	enum { LARGE = UAR_LIMIT_ARENA_CHUNK + 1 };

	for (size_t left = 0; left < 40; left++) {
		struct uar_arena a;
		char *bytes, *p;

		uar_arena_init(&a, 0);
		bytes = uar_arena_bytes(&a, LARGE);
		REQUIRE(bytes != NULL);
		memset(bytes, 'x', LARGE);
		uar_arena_reset(&a); /* which keeps the chunk */
		CHECK(uar_arena_bytes(&a, LARGE - left) == bytes);
		for (size_t n = 1; n < 20; n++) {
			p = uar_arena_alloc(&a, n);
			REQUIRE(p != NULL);
			CHECK((uintptr_t)p % 16 == 0);
			for (size_t i = 0; i < n; i++)
				CHECK(p[i] == 0);
		}
		uar_arena_fini(&a);
	}
}

TEST(map_finds_what_was_put_and_forgets_what_was_removed, "")
{
	static char keys[1000][8];
	struct uar_map m;
	size_t at = 0, n = 0;

	uar_map_init(&m, 7);
	for (int i = 0; i < 1000; i++) {
		snprintf(keys[i], sizeof keys[i], "k%d", i);
		REQUIRE(uar_map_put(&m, uar_str_c(keys[i]), keys[i]) == UAR_OK);
	}
	CHECK(uar_map_put(&m, UAR_STR("k5"), keys[5]) == UAR_EEXISTS);
	for (int i = 0; i < 1000; i += 2)
		CHECK(uar_map_remove(&m, uar_str_c(keys[i])) == keys[i]);
	for (int i = 0; i < 1000; i++)
		CHECK(uar_map_get(&m, uar_str_c(keys[i])) == (i % 2 ? keys[i] : NULL));
	while (uar_map_next(&m, &at))
		n++;
	CHECK_INT(n, 500);
	uar_map_fini(&m);
}

TEST(times_round_trip, "EVT-003")
{
	static const char *const texts[] = { "1970-01-01T00:00:00.000000Z",
					     "2026-11-15T19:59:43.123456Z",
					     "2000-02-29T23:59:59.999999Z",
					     "2038-01-19T03:14:08.000000Z",
					     "1969-12-31T23:59:59.999999Z" };
	char out[UAR_TIME_TEXT + 1];
	int64_t us;

	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		REQUIRE(uar_time_parse(uar_str_c(texts[i]), &us) == UAR_OK);
		uar_time_format(us, out);
		CHECK_STR(uar_str_c(out), texts[i]);
	}
	CHECK(uar_time_parse(UAR_STR("2026-01-01T00:00:00+01:00"), &us) == UAR_OK);
	uar_time_format(us, out);
	CHECK_STR(uar_str_c(out), "2025-12-31T23:00:00.000000Z");
	CHECK(uar_time_parse(UAR_STR("2025-02-29T00:00:00Z"), &us) == UAR_EINVALID);
	CHECK(uar_time_parse(UAR_STR("2025-02-28 00:00:00"), &us) == UAR_EINVALID);
}

TEST(uuids_rise_and_are_unique, "RUN-01 EVT-002")
{
	struct uar_uuid u;
	char prev[UAR_UUID_TEXT + 1] = "", next[UAR_UUID_TEXT + 1];

	uar_uuid_init(&u, &uar_clock_system, &uar_rand_system);
	for (int i = 0; i < 100000; i++) {
		uar_uuid_next(&u, next);
		if (!CHECK(strcmp(prev, next) < 0) || !CHECK(uar_uuid_valid(uar_str_c(next))) ||
		    !CHECK(next[14] == '7'))
			return;
		memcpy(prev, next, sizeof prev);
	}
}

static int64_t at_one_moment(void *ctx)
{
	(void)ctx;
	return 0x0123456789ab * 1000ll;
}

/* Bytes that count up: what stands where can be told. */
static void fill_counting(void *ctx, void *out, size_t n)
{
	unsigned char *next = ctx, *p = out;

	for (size_t i = 0; i < n; i++)
		p[i] = *next += 0x1d;
}

TEST(a_uuid_is_time_then_counter_then_chance, "RUN-01")
{
	unsigned char next = 0;
	struct uar_clock clock = { at_one_moment, at_one_moment, NULL };
	struct uar_rand rand = { fill_counting, &next };
	struct uar_uuid u;
	char text[UAR_UUID_TEXT + 1];

	uar_uuid_init(&u, &clock, &rand);
	uar_uuid_next(&u, text);
	CHECK_STR(uar_str_c(text), "01234567-89ab-715c-ba1d-05223f5c7996");
	uar_uuid_next(&u, text);
	CHECK_STR(uar_str_c(text), "01234567-89ab-715c-ba1e-b3d0ed0a2744");
}

TEST(a_uuid_is_lower_hexadecimal_with_dashes, "")
{
	char text[] = "0123456a-89ab-7def-8abf-0123456789ab";
	const char good[] = "0123456789abcdef", other[] = "/:`gAF@G \x80\xb0\xff";

	CHECK(uar_uuid_valid(uar_str_c(text)));
	CHECK(!uar_uuid_valid(uar_str_n(text, UAR_UUID_TEXT - 1)));
	for (size_t i = 0; i < UAR_UUID_TEXT; i++) {
		char was = text[i];

		for (size_t k = 0; k < sizeof good; k++) { /* the NUL, too */
			text[i] = good[k];
			CHECK(uar_uuid_valid(uar_str_n(text, UAR_UUID_TEXT)) ==
			      (good[k] && was != '-'));
		}
		for (size_t k = 0; k < sizeof other; k++) {
			text[i] = other[k];
			CHECK(!uar_uuid_valid(uar_str_n(text, UAR_UUID_TEXT)));
		}
		text[i] = was;
	}
}

TEST(hashes_depend_on_every_byte_length_and_seed, "")
{
	char text[40];

	memset(text, 'a', sizeof text);
	for (size_t n = 0; n <= sizeof text; n++) {
		uint64_t h = uar_str_hash(uar_str_n(text, n), 1);

		CHECK(h == uar_str_hash(uar_str_n(text, n), 1));
		CHECK(h != uar_str_hash(uar_str_n(text, n), 2));
		CHECK(n == 0 || h != uar_str_hash(uar_str_n(text, n - 1), 1));
		for (size_t i = 0; i < n; i++) {
			text[i] = 'b';
			CHECK(h != uar_str_hash(uar_str_n(text, n), 1));
			text[i] = 'a';
		}
	}
}

TEST(checksum_matches_the_published_value, "")
{
	CHECK_INT(uar_crc32c(0, "123456789", 9), 0xe3069283);
	CHECK_INT(uar_crc32c(uar_crc32c(0, "1234", 4), "56789", 5), 0xe3069283);
}

TEST(a_hash_in_pieces_is_that_of_the_whole, "")
{
	struct uar_sha256 h;
	char whole[UAR_SHA256_TEXT + 1], pieces[UAR_SHA256_TEXT + 1];

	uar_sha256_hex(UAR_STR("one two"), whole);
	uar_sha256_init(&h);
	uar_sha256_add(&h, UAR_STR("one "));
	uar_sha256_add(&h, UAR_STR_NONE);
	uar_sha256_add(&h, UAR_STR("two"));
	uar_sha256_end(&h, pieces);
	CHECK_STR(uar_str_c(pieces), whole);
}

TEST(utf8_rules, "")
{
	CHECK(uar_utf8_valid(UAR_STR("h\xc3\xa9llo \xf0\x9f\x98\x80")));
	CHECK(!uar_utf8_valid(UAR_STR("\xc0\x80")));
	CHECK(!uar_utf8_valid(UAR_STR("\xed\xa0\x80")));
	CHECK(!uar_utf8_valid(UAR_STR("\xf4\x90\x80\x80")));
	CHECK(!uar_utf8_valid(UAR_STR("\xe2\x82")));
	CHECK_STR(uar_str_utf8_prefix(UAR_STR("a\xc3\xa9"), 2), "a");
	CHECK_INT(uar_str_utf8_prefix(UAR_STR("\x80\x80\x80\x80\x80\x80\x80\x80"), 6).n, 6);
	CHECK_INT(uar_str_utf8_prefix(UAR_STR("\xf0\x9f\x98\x80"), 3).n, 0);
}

/* Whatever a plugin prints: the log is text, a line a call. */
TEST(log_lines_are_well_formed, "")
{
	static const char want[] = " warn a.b bare=\"x\xef\xbf\xbd\" "
				   "odd=\"\xef\xbf\xbd\\u0000\xc3\xa4\xef\xbf\xbd\\\"\"\n";
	struct uar_log_out out;
	struct uar_log log = { .clock = &uar_clock_system, .out = &out };
	char line[256];
	int ends[2];
	ssize_t n;

	REQUIRE(pipe(ends) == 0);
	uar_log_out_init(&out, ends[1]);
	uar_log(&log, UAR_LOG_WARN, "a.b", { "bare", UAR_STR("x\xff") },
		{ "odd", UAR_STR("\xff\0\xc3\xa4\xe2\"") });
	n = read(ends[0], line, sizeof line - 1);
	REQUIRE(n > UAR_TIME_TEXT);
	line[n] = 0;
	CHECK_STR(uar_str_c(line + UAR_TIME_TEXT), want);
	uar_log_out_fini(&out);
	close(ends[0]);
	close(ends[1]);
}

TEST(nearest_names_and_secrets, "")
{
	CHECK_INT(uar_str_distance(UAR_STR("lisen"), UAR_STR("listen")), 1);
	CHECK(!uar_str_eq_secret(UAR_STR(""), UAR_STR("")));
	CHECK(uar_str_eq_secret(UAR_STR("abc"), UAR_STR("abc")));
	CHECK(!uar_str_is_id(UAR_STR("a b")));
}

/* Every byte at every place of every short length: ids are read by the word. */
TEST(ids_are_visible_ascii, "")
{
	char text[UAR_LIMIT_ID_BYTES + 1];

	CHECK(!uar_str_is_id(UAR_STR_NONE));
	for (size_t n = 1; n < 20; n++) {
		for (size_t at = 0; at < n; at++) {
			for (int c = 0; c < 256; c++) {
				memset(text, 'x', n);
				text[at] = (char)c;
				CHECK(uar_str_is_id(uar_str_n(text, n)) == (c > 0x20 && c < 0x7F));
				CHECK(uar_str_is_visible(uar_str_n(text, n)) ==
				      (c > 0x20 && c < 0x7F));
			}
		}
	}
	memset(text, 'x', sizeof text);
	CHECK(uar_str_is_id(uar_str_n(text, sizeof text - 1)));
	CHECK(!uar_str_is_id(uar_str_n(text, sizeof text)));
	CHECK(uar_str_is_visible(uar_str_n(text, sizeof text)));
	CHECK(uar_str_is_visible(UAR_STR_NONE));
}

TEST(hex_digits_have_two_cases, "")
{
	static const char digits[] = "0123456789abcdef0123456789ABCDEF";

	for (int c = 0; c < 256; c++) {
		const char *at = c ? strchr(digits, c) : NULL;

		CHECK_INT(uar_hex_digit((char)c), at ? (at - digits) % 16 : -1);
	}
}

TEST(seeded_randomness_repeats, "")
{
	struct uar_rand_seeded s1, s2;
	struct uar_rand r1 = uar_rand_seed(&s1, 42), r2 = uar_rand_seed(&s2, 42);

	for (int i = 0; i < 100; i++)
		CHECK(uar_rand_u64(&r1) == uar_rand_u64(&r2));
	for (int i = 0; i < 100; i++)
		CHECK(uar_rand_below(&r1, 7) < 7);
}

TEST(memory_that_can_be_had_is_told, "")
{
	CHECK(uar_alloc_can(1 << 20));
	CHECK(uar_alloc_can(1));
	for (unsigned long n = 1; n < 4; n++) { /* the large piece, and small ones */
		uar_test_fail_alloc(n);
		CHECK(!uar_alloc_can(1 << 20));
	}
	uar_test_fail_alloc(0);
	uar_alloc_release();
	CHECK(uar_alloc_can(1 << 20));
}
