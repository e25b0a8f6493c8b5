/* announce_test.c - what a server says at its start, whole or not at all. */
#include "app/announce.h"

#include "test.h"

static const struct uar_announcement at_port = { .url = "http://127.0.0.1:1",
						 .link = "http://127.0.0.1:1/#code=c",
						 .program = "build/uar",
						 .data = "/da ta",
						 .data_by_flag = true,
						 .token = { "t", 1 } };
static const struct uar_announcement at_socket = { .url = "unix:/s%20s",
						   .link = "unix:/s%20s/#code=c",
						   .socket = "/s s",
						   .program = "uar",
						   .full = "no space",
						   .data = "/d",
						   .token = { "t", 1 } };

typedef uar_err words_fn(const struct uar_announcement *a, struct uar_buf *out);

static bool says(words_fn *fn, const struct uar_announcement *a, const char *what)
{
	struct uar_buf b = uar_buf_make(4096);
	bool good = fn(a, &b) == UAR_OK && strstr(b.p, what);

	uar_buf_fini(&b);
	return good;
}

TEST(says_how_it_is_called, "")
{
	CHECK(says(uar_announce_text, &at_port, "  open      http://127.0.0.1:1/#code=c\n"));
	CHECK(says(uar_announce_text, &at_port,
		   "  try       build/uar run demo \"hello\" --data '/da ta'\n"));
	CHECK(says(uar_announce_text, &at_socket, "curl --unix-socket '/s s' -H"));
	CHECK(says(uar_announce_text, &at_socket, "$(cat /d/token)"));
	CHECK(says(uar_announce_text, &at_socket,
		   "uar run demo \"hello\"\n  disk      full: no space\n"));
	CHECK(says(uar_announce_json, &at_port, "\"link\":\"http://127.0.0.1:1/#code=c\""));
	CHECK(says(uar_announce_json, &at_socket, "\"url\":\"unix:/s%20s\",\"link\":null"));
	CHECK(says(uar_announce_json, &at_socket, "\"disk_full\":true}\n"));
}

TEST(an_announcement_that_does_not_fit_is_an_error, "")
{
	struct uar_buf b = uar_buf_make(40);
	char url[8] = "before";

	CHECK_INT(uar_announce_json(&at_port, &b), UAR_ETOOBIG);
	uar_buf_fini(&b);
	CHECK_INT(uar_announce_text(&at_port, &b), UAR_ETOOBIG);
	uar_buf_fini(&b);
	CHECK_INT(uar_announce_url("h:1", NULL, url, sizeof url), UAR_ETOOBIG);
	CHECK_STR(uar_str_c(url), "before");
}

static uar_err url_of(const struct uar_announcement *a, struct uar_buf *out)
{
	char url[64] = "";
	uar_err e = uar_announce_url("127.0.0.1:1", a->socket, url, sizeof url);

	CHECK_STR(uar_str_c(url), e ? "" : a->url);
	(void)out;
	return e;
}

/* Does each allocation that fails make it fail? */
static void check_memory(words_fn *fn, const struct uar_announcement *a)
{
	bool failed = true;

	for (unsigned long n = 1; failed && n < 50; n++) {
		struct uar_buf b = uar_buf_make(4096);
		uar_err e;

		uar_test_fail_alloc(n);
		e = fn(a, &b);
		failed = uar_test_alloc_failed();
		uar_test_fail_alloc(0);
		CHECK_INT(e, failed ? UAR_ENOMEM : UAR_OK);
		CHECK(n > 1 || failed);
		uar_buf_fini(&b);
	}
	CHECK(!failed);
}

TEST(half_an_announcement_for_want_of_memory_is_an_error, "")
{
	static words_fn *const all[] = { url_of, uar_announce_json, uar_announce_text };

	for (size_t i = 0; i < ARRAY_LEN(all); i++) {
		check_memory(all[i], &at_port);
		check_memory(all[i], &at_socket);
	}
}
