/* peer_test.c - what is sent to another runtime, and what its answers mean. */
#include "peer/limits.h"
#include "peer/peer.h"

#include "prepared.h"
#include "test.h"

struct world {
	struct uar_loop *loop;
	struct uar_client *client;
	struct uar_peers *peers;
	struct uar_prepared *there;
	char address[300];
};

static void open_world(struct world *w, const struct uar_prepared_answer *answers, size_t n)
{
	const char *addresses[2] = { w->address, "away=http://127.0.0.1:1/base/" };
	struct uar_peers_options o = { .addresses = addresses,
				       .address_count = 2,
				       .tokens = "right=secret",
				       .own_name = "left" };
	struct uar_error error = { 0 };

	*w = (struct world){ .there = uar_prepared_start(answers, n, true) };
	snprintf(w->address, sizeof w->address, "right=%s", w->there->url);
	CHECK_INT(uar_loop_create(&uar_clock_system, &w->loop), UAR_OK);
	CHECK_INT(uar_client_create(w->loop, NULL, &w->client), UAR_OK);
	o.client = w->client;
	CHECK_MSG(!uar_peers_http_create(&o, &w->peers, &error), "%s", error.text);
}

static void close_world(struct world *w)
{
	uar_peers_destroy(w->peers);
	uar_client_destroy(w->client);
	uar_loop_destroy(w->loop);
	uar_prepared_destroy(w->there);
}

struct sent {
	struct uar_delivery d;
	struct uar_loop *loop;
	unsigned dones;
};

static void delivered(struct uar_delivery *d)
{
	struct sent *s = UAR_OWNER(d, struct sent, d);

	s->dones++;
	uar_loop_stop(s->loop);
}

static struct sent deliver(struct world *w, const char *peer)
{
	struct sent s = { .d = { .peer = uar_str_c(peer),
				 .message = UAR_STR("{\"message_id\":\"m\"}"),
				 .done = delivered },
			  .loop = w->loop };

	CHECK_INT(w->peers->ops->deliver(w->peers, &s.d), UAR_OK);
	CHECK_INT(s.dones, 0);
	uar_loop_run(w->loop);
	CHECK_INT(s.dones, 1);
	return s;
}

#define REPLY(STATUS, REST) "HTTP/1.1 " STATUS "\r\nConnection: close\r\n" REST

static const struct {
	struct uar_prepared_answer answer;
	enum uar_delivery_how how;
	const char *reason;
} cases[] = {
	{ { REPLY("202 Accepted", "Content-Length: 2\r\n\r\n{}"), 0 }, UAR_DELIVERED, "202 " },
	{ { REPLY("200 OK", "Content-Length: 0\r\n\r\n"), 0 }, UAR_DELIVERED, "200 " },
	{ { PROBLEM("409 Conflict", "{\"code\":\"CONFLICT\",\"detail\":\"other\"}"), 0 },
	  UAR_DELIVERY_REFUSED,
	  "409 CONFLICT: other" },
	{ { PROBLEM("400 Bad Request", "no json"), 0 }, UAR_DELIVERY_REFUSED, "400 " },
	{ { PROBLEM("413 Too Large", "{}"), 0 }, UAR_DELIVERY_REFUSED, "413 " },
	{ { PROBLEM("415 Unsupported", "{}"), 0 }, UAR_DELIVERY_REFUSED, "415 " },
	{ { PROBLEM("422 Unprocessable", "{}"), 0 }, UAR_DELIVERY_REFUSED, "422 " },
	{ { PROBLEM("404 Not Found", "{}"), 0 }, UAR_DELIVERY_FAILED, "404 " },
	{ { PROBLEM("405 Not Allowed", "{}"), 0 }, UAR_DELIVERY_FAILED, "405 " },
	{ { PROBLEM("410 Gone", "{}"), 0 }, UAR_DELIVERY_FAILED, "410 " },
	{ { PROBLEM("418 Teapot", "{}"), 0 }, UAR_DELIVERY_FAILED, "418 " },
	{ { PROBLEM("401 Unauthorized", "{\"code\":\"UNAUTHORIZED\"}"), 0 },
	  UAR_DELIVERY_FAILED,
	  "401 UNAUTHORIZED" },
	{ { PROBLEM("403 Forbidden", "{}"), 0 }, UAR_DELIVERY_FAILED, "403 " },
	{ { PROBLEM("429 Too Many", "{}"), 0 }, UAR_DELIVERY_FAILED, "429 " },
	{ { PROBLEM("503 Unavailable", "{}"), 0 }, UAR_DELIVERY_FAILED, "503 " },
	{ { REPLY("302 Found", "Location: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"), 0 },
	  UAR_DELIVERY_FAILED,
	  "302 " },
	{ { REPLY("202 Accepted", "Content-Length: 9\r\n\r\n{"), 0 }, UAR_DELIVERED, "202 " },
	{ { "HTTP/1.1 ", 0 }, UAR_DELIVERY_FAILED, NULL },
};

TEST(answers_mean_arrived_refused_or_again, "A2A-01")
{
	struct uar_prepared_answer answers[ARRAY_LEN(cases)];
	struct world w;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		answers[i] = cases[i].answer;
	open_world(&w, answers, ARRAY_LEN(cases));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct sent s = deliver(&w, "right");

		CHECK_MSG(s.d.how == cases[i].how, "case %zu: %s", i, s.d.reason);
		if (cases[i].reason)
			CHECK_STR(uar_str_c(s.d.reason), cases[i].reason);
		CHECK(s.d.reason[0]);
	}
	CHECK(uar_prepared_finish(w.there));
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		CHECK(strstr(w.there->asked[i], "POST /api/a2a/inbox HTTP/1.1\r\n"));
		CHECK(strstr(w.there->asked[i], "\r\nAuthorization: Bearer secret\r\n"));
		CHECK(strstr(w.there->asked[i], "\r\nContent-Type: application/json\r\n"));
		CHECK(strstr(w.there->asked[i], "\r\n\r\n{\"message_id\":\"m\"}"));
	}
	close_world(&w);
}

/* They stay until we leave: an answer without an end is left at its limit. */
TEST(an_answer_that_never_ends_is_left, "A2A-01")
{
	static const struct {
		const char *status;
		enum uar_delivery_how how;
	} endless[] = { { "202 Accepted", UAR_DELIVERED },
			{ "400 Bad Request", UAR_DELIVERY_REFUSED },
			{ "503 Unavailable", UAR_DELIVERY_FAILED } };

	for (size_t i = 0; i < ARRAY_LEN(endless); i++) {
		char text[UAR_LIMIT_A2A_ANSWER + 400] = "";
		struct uar_prepared_answer answer = { text, UAR_PREPARED_HOLD };
		struct world w;
		int n = snprintf(text, sizeof text,
				 "HTTP/1.1 %s\r\nContent-Length: 99999999\r\n\r\n",
				 endless[i].status);

		memset(text + n, 'x', sizeof text - 1 - (size_t)n);
		open_world(&w, &answer, 1);
		CHECK_INT(deliver(&w, "right").d.how, endless[i].how);
		CHECK(uar_prepared_finish(w.there));
		close_world(&w);
	}
}

TEST(nobody_there_is_no_refusal, "A2A-01")
{
	struct uar_prepared_answer unused = { OK("{}"), 0 };
	struct sent s;
	struct world w;

	open_world(&w, &unused, 1);
	s = deliver(&w, "away");
	CHECK_INT(s.d.how, UAR_DELIVERY_FAILED);
	s.d.peer = UAR_STR("nobody");
	CHECK_INT(w.peers->ops->deliver(w.peers, &s.d), UAR_ENOTFOUND);
	close_world(&w);
}

TEST(a_delivery_may_be_cancelled_or_left, "A2A-01")
{
	struct uar_prepared_answer unused = { OK("{}"), 0 };
	struct sent s[2] = {
		{ .d = { .peer = UAR_STR("right"), .message = UAR_STR("{}"), .done = delivered } }
	};
	struct world w;

	open_world(&w, &unused, 1);
	s[1] = s[0];
	CHECK_INT(w.peers->ops->deliver(w.peers, &s[0].d), UAR_OK);
	CHECK_INT(w.peers->ops->deliver(w.peers, &s[1].d), UAR_OK);
	w.peers->ops->cancel(w.peers, &s[0].d);
	w.peers->ops->cancel(w.peers, &s[0].d); /* twice is fine */
	close_world(&w);
	CHECK_INT(s[0].dones + s[1].dones, 0);
}

TEST(addresses_and_tokens_are_checked, "A2A-01")
{
	static const char *const bad[] = { "",
					   "right",
					   "right=",
					   "=http://x",
					   "Right=http://x",
					   "a@b=http://x",
					   "r=ftp://x",
					   "r=http://",
					   "r=http:///x",
					   "r=http://x?y",
					   "r=http://u@x",
					   "r=http://x y" };
	static const struct {
		const char *one, *two, *tokens;
		bool good;
	} lists[] = {
		{ "a=http://x", "b=https://y/z/", "a=1,b=2", true },
		{ "a=http://x", "b=http://y", "", true },
		{ "a=http://x", "b=http://y", "b=x=y", true },
		{ "a=http://x", "a=http://y", "", false },
		{ "a=http://x", "b=http://y", "c=1", false },
		{ "a=http://x", "b=http://y", "a=1,a=2", false },
		{ "a=http://x", "b=http://y", "a=", false },
		{ "a=http://x", "b=http://y", "a", false },
	};
	uar_str name, url;

	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		CHECK_MSG(!uar_peer_address_read(uar_str_c(bad[i]), &name, &url), "%s", bad[i]);
	CHECK(uar_peer_address_read(UAR_STR("r-1=https://x:1/base//"), &name, &url));
	CHECK_STR(name, "r-1");
	CHECK_STR(url, "https://x:1/base");
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		const char *both[] = { lists[i].one, lists[i].two };
		struct uar_peers_options o = { .addresses = both,
					       .address_count = 2,
					       .tokens = lists[i].tokens,
					       .own_name = "" };
		struct uar_peers *p = NULL;
		struct uar_error error = { 0 };

		CHECK_MSG(uar_peers_http_create(&o, &p, &error) ==
				  (lists[i].good ? UAR_OK : UAR_ECONFIG),
			  "list %zu", i);
		if (strcmp(lists[i].tokens, "c=1") == 0)
			CHECK(strstr(error.text, "a2a_peers does not name"));
		if (p)
			CHECK_STR(p->ops->at(p, 1), "b");
		uar_peers_destroy(p);
	}
}
