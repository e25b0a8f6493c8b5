/* listen_test.c - where a server can be reached, and what it says when it cannot. */
#include "test.h"

#include <netinet/in.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "http/http_int.h"
#include "http_peer.h"

static struct uar_peer_server server;

static uar_err on_head(void *ctx, struct uar_http_request *r, size_t *out_max,
		       struct uar_error *error)
{
	(void)ctx, (void)r, (void)error;
	*out_max = 0;
	return UAR_OK;
}

/* Says who is asking. */
static void on_request(void *ctx, struct uar_http_request *r)
{
	struct uar_http_response a = { .status = 200,
				       .content_type = "text/plain",
				       .body = r->peer };

	(void)ctx;
	uar_http_respond(r, &a);
}

static void on_gone(void *ctx, struct uar_http_request *r)
{
	(void)ctx, (void)r;
}

static const struct uar_http_options options = {
	.listen = "127.0.0.1:0",
	.handler = { .head = on_head, .request = on_request, .gone = on_gone },
};

TEST(listens_on_a_private_unix_socket, "")
{
	struct uar_http_options o = options;
	char where[256];
	struct uar_peer_reply r = { 0 };
	struct uar_peer p = { .fd = -1 };
	struct stat st;

	snprintf(where, sizeof where, "unix:%s/s", uar_test_dir());
	o.listen = where;
	REQUIRE(uar_peer_start(&server, &o));
	CHECK(stat(where + 5, &st) == 0 && (st.st_mode & 0777) == 0600);
	CHECK_STR(uar_str_c(uar_http_address(server.http)), where);
	REQUIRE(uar_peer_dial(&p, where));
	uar_peer_say(&p, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	REQUIRE(uar_peer_reply(&p, false, &r));
	CHECK_INT(r.status, 200);
	CHECK_STR(uar_buf_str(&r.body), "unix");
	uar_buf_fini(&r.body);
	uar_peer_close(&p);
	uar_peer_stop(&server);
	CHECK(stat(where + 5, &st) != 0);
}

/* Bound to `where`, is it called at `local` and its port? */
static void check_local(const char *where, const char *local)
{
	struct uar_http_options o = options;
	const char *bound, *near;
	char start_of[64];

	o.listen = where;
	REQUIRE(uar_peer_start(&server, &o));
	bound = uar_http_address(server.http);
	near = uar_http_local_address(server.http);
	snprintf(start_of, sizeof start_of, "%s:", local);
	CHECK_MSG(uar_str_starts(uar_str_c(near), uar_str_c(start_of)), "%s: %s", where, near);
	CHECK_STR(uar_str_c(strrchr(near, ':')), strrchr(bound, ':'));
	uar_peer_stop(&server);
}

TEST(a_wildcard_is_called_by_loopback, "")
{
	int fd = socket(AF_INET6, SOCK_STREAM | SOCK_CLOEXEC, 0), only6 = 0;
	socklen_t n = sizeof only6;

	check_local("127.0.0.1:0", "127.0.0.1");
	check_local("127.0.0.2:0", "127.0.0.2");
	check_local("0.0.0.0:0", "127.0.0.1");
	if (fd < 0)
		return; /* no IPv6 here */
	REQUIRE(getsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only6, &n) == 0);
	close(fd);
	check_local("[::]:0", only6 ? "[::1]" : "127.0.0.1");
}

TEST(says_why_it_cannot_listen, "")
{
	static const char *const bad[] = { "",	    "127.0.0.1",   "127.0.0.1:70000",
					   ":80",   "a.b:80",	   "[::1:80",
					   "unix:", "127.0.0.1:x", "256.0.0.1:80" };
	struct uar_http_options o = options;
	struct uar_loop *loop = NULL;
	struct uar_http *h = NULL, *second = NULL;
	struct uar_error error = { 0 };

	REQUIRE(uar_loop_create(&uar_clock_system, &loop) == UAR_OK);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		o.listen = bad[i];
		CHECK_MSG(uar_http_create(loop, &o, &h, &error) == UAR_ECONFIG, "%s", bad[i]);
	}
	CHECK(uar_http_create(loop, &options, &h, &error) == UAR_OK);
	o.listen = uar_http_address(h);
	CHECK(uar_http_create(loop, &o, &second, &error) == UAR_ENET);
	CHECK(strstr(error.text, o.listen) && !second);
	uar_http_destroy(h);
	uar_http_destroy(NULL);
	uar_loop_destroy(loop);
}

/* On the loop's thread: the caller waits in the kernel before the server sees it. */
static void dial_and_forbid_files(void *arg)
{
	struct rlimit files;

	getrlimit(RLIMIT_NOFILE, &files);
	CHECK(uar_peer_dial(arg, uar_http_address(server.http)));
	files.rlim_cur = 3;
	setrlimit(RLIMIT_NOFILE, &files);
}

static void is_pausing(void *arg)
{
	*(bool *)arg = server.http->listener.spare_fd < 0 &&
		       !uv_is_active((uv_handle_t *)&server.http->listener.poll);
}

static void count_refused(void *arg)
{
	*(uint64_t *)arg = server.http->stats.refused;
}

TEST(callers_wait_while_no_descriptor_is_left, "")
{
	struct uar_peer p = { .fd = -1 };
	struct uar_peer_reply r = { 0 };
	struct rlimit files;
	bool pausing = false;
	uint64_t refused = 1;

	REQUIRE(uar_peer_start(&server, &options));
	getrlimit(RLIMIT_NOFILE, &files);
	uar_peer_call(&server, dial_and_forbid_files, &p);
	while (!pausing)
		uar_peer_call(&server, is_pausing, &pausing);
	setrlimit(RLIMIT_NOFILE, &files);
	uar_peer_say(&p, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	REQUIRE(uar_peer_reply(&p, false, &r));
	CHECK_INT(r.status, 200);
	uar_peer_call(&server, count_refused, &refused);
	CHECK_INT(refused, 0);
	uar_buf_fini(&r.body);
	uar_peer_close(&p);
	uar_peer_stop(&server);
}
