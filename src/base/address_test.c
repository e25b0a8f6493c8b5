/* address_test.c - what names a host, an address or a socket, and what does not. */
#include "base/address.h"

#include "test.h"

enum { NO = -1, NAME = UAR_ADDRESS_NAME, V4, V6, UNIX };

static const struct {
	const char *text;
	int kind;
	const char *bare;
	int port; /* -1: none */
} hosts[] = {
	{ "a.example", NAME, "a.example", -1 },
	{ "a.example:80", NAME, "a.example", 80 },
	{ "192.0.2.7", V4, "192.0.2.7", -1 },
	{ "192.0.2.7:0", V4, "192.0.2.7", 0 },
	{ "192.0.2.7:65535", V4, "192.0.2.7", 65535 },
	{ "[2001:db8::7]", V6, "2001:db8::7", -1 },
	{ "[2001:db8::7]:1", V6, "2001:db8::7", 1 },
	{ "[::ffff:192.0.2.7]:1", V6, "::ffff:192.0.2.7", 1 },
	{ "[fe80::1%eth0]:1", NAME, "fe80::1%eth0", 1 },
	{ "[192.0.2.7]", NAME, "192.0.2.7", -1 },
	{ "192.0.2", NAME, "192.0.2", -1 },
	{ "192.0.2.007", NAME, "192.0.2.007", -1 },
	{ "3221225991", NAME, "3221225991", -1 },
	{ "unix:80", NAME, "unix", 80 },
	{ "[0000:0000:0000:0000:0000:0000:0000:0000:0000:0000]", NAME,
	  "0000:0000:0000:0000:0000:0000:0000:0000:0000:0000", -1 },
	{ NULL, NO, NULL, 0 },
	{ "", NO, NULL, 0 },
	{ ":80", NO, NULL, 0 },
	{ "a.example:", NO, NULL, 0 },
	{ "a.example:80x", NO, NULL, 0 },
	{ "a.example:-1", NO, NULL, 0 },
	{ "a.example:65536", NO, NULL, 0 },
	{ "a.example:80:80", NO, NULL, 0 },
	{ "::1", NO, NULL, 0 },
	{ "[]", NO, NULL, 0 },
	{ "[", NO, NULL, 0 },
	{ "[::1", NO, NULL, 0 },
	{ "[::1]x", NO, NULL, 0 },
	{ "[::1]:1:1", NO, NULL, 0 },
	{ "unix:/run/s", NO, NULL, 0 },
};

TEST(reads_hosts_with_and_without_port, "")
{
	for (size_t i = 0; i < ARRAY_LEN(hosts); i++) {
		struct uar_address a = { .port = 1 };
		bool good = uar_address_read_host(uar_str_c(hosts[i].text), &a);

		CHECK_MSG(good == (hosts[i].kind != NO), "%s", hosts[i].text);
		if (!good) {
			CHECK_INT(a.port, 1); /* untouched */
			continue;
		}
		CHECK_INT(a.kind, hosts[i].kind);
		CHECK_STR(uar_address_bare(&a), hosts[i].bare);
		CHECK_INT(a.has_port ? a.port : -1, hosts[i].port);
		CHECK_INT(uar_address_is_ip(&a), a.kind != UAR_ADDRESS_NAME);
	}
}

TEST(an_address_is_the_same_bytes_in_either_form, "")
{
	static const unsigned char want[16] = { [10] = 255, 255, 192, 0, 2, 7 };
	struct uar_address a, b;

	REQUIRE(uar_address_read_host(UAR_STR("192.0.2.7:1"), &a));
	REQUIRE(uar_address_read_host(UAR_STR("[::ffff:c000:207]"), &b));
	CHECK(memcmp(a.ip, want, sizeof want) == 0);
	CHECK(memcmp(b.ip, want, sizeof want) == 0);
}

TEST(bytes_after_a_nul_are_not_forgotten, "")
{
	struct uar_address a;

	REQUIRE(uar_address_read_host(UAR_STR("127.0.0.1\0.evil.example"), &a));
	CHECK_INT(a.kind, UAR_ADDRESS_NAME);
	CHECK(!uar_address_is_local(&a));
	CHECK(!uar_address_read_bound(UAR_STR("127.0.0.1\0:80"), &a));
	CHECK(!uar_address_read_bound(UAR_STR("unix:/a\0b"), &a));
}

TEST(a_server_is_bound_to_addresses_and_sockets, "")
{
	static const struct {
		const char *text;
		int kind;
		const char *bare;
	} cases[] = {
		{ "127.0.0.1:0", V4, "127.0.0.1" },
		{ "localhost:80", V4, "127.0.0.1" },
		{ "[::]:80", V6, "::" },
		{ "unix:/run/s", UNIX, "/run/s" },
		{ "unix:s", UNIX, "s" },
		{ "unix:[s]", UNIX, "[s]" },
		{ "127.0.0.1", NO, NULL },
		{ "[::1]", NO, NULL },
		{ "localhost", NO, NULL },
		{ "a.example:80", NO, NULL },
		{ "256.0.0.1:80", NO, NULL },
		{ "[127.0.0.1]:80", NO, NULL },
		{ "unix:", NO, NULL },
		{ ":80", NO, NULL },
		{ "", NO, NULL },
		{ NULL, NO, NULL },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_address a;
		bool good = uar_address_read_bound(uar_str_c(cases[i].text), &a);

		CHECK_MSG(good == (cases[i].kind != NO), "%s", cases[i].text);
		if (!good)
			continue;
		CHECK_INT(a.kind, cases[i].kind);
		CHECK_STR(uar_address_bare(&a), cases[i].bare);
	}
}

TEST(the_path_of_a_socket_has_room_for_its_end, "")
{
	char text[5 + UAR_SOCKET_PATH];
	struct uar_address a;

	memset(text, 'a', sizeof text);
	memcpy(text, "unix:", 5);
	CHECK(!uar_address_read_bound(uar_str_n(text, sizeof text), &a));
	REQUIRE(uar_address_read_bound(uar_str_n(text, sizeof text - 1), &a));
	CHECK_INT(a.host.n, UAR_SOCKET_PATH - 1);
}

TEST(knows_what_is_local_and_what_is_every_address, "")
{
	static const struct {
		const char *host;
		bool local, any;
	} cases[] = {
		{ "127.0.0.1", true, false },
		{ "127.255.0.9:1", true, false },
		{ "[::1]", true, false },
		{ "[0:0::0:1]:1", true, false },
		{ "[::ffff:127.0.0.1]", true, false },
		{ "localhost", true, false },
		{ "LocalHost:1", true, false },
		{ "0.0.0.0", false, true },
		{ "[::]:1", false, true },
		{ "[::ffff:0.0.0.0]", false, true },
		{ "192.0.2.7", false, false },
		{ "[::2]", false, false },
		{ "[7f00::1]", false, false },
		{ "127.evil.example", false, false },
		{ "localhost.evil.example", false, false },
		{ "[localhost]", false, false },
	};
	struct uar_address a;

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		REQUIRE(uar_address_read_host(uar_str_c(cases[i].host), &a));
		CHECK_MSG(uar_address_is_local(&a) == cases[i].local, "%s", cases[i].host);
		CHECK_MSG(uar_address_is_any(&a) == cases[i].any, "%s", cases[i].host);
	}
	REQUIRE(uar_address_read_bound(UAR_STR("unix:0.0.0.0"), &a));
	CHECK(uar_address_is_local(&a));
	CHECK(!uar_address_is_any(&a));
}

TEST(a_path_that_climbs_is_seen, "")
{
	static const char *const climb[] = { "/a/../b", "/a/..",     "..",	 "/./a",
					     "/%2e%2E", "/a/.%2e/b", "a/.%252e", "/a\\..\\b",
					     "/%252e.", "/a/..?b",   "/a/.#b",	 "https://x/.." };
	static const char *const stay[] = {
		"",    "/",  "/a/...",	"/..a/b", "/a?b=/../c", "/a#/..", "https://x.example/a.b/c",
		"/%2", "/%", "/a/%2ea", "/..%2fa"
	};

	for (size_t i = 0; i < ARRAY_LEN(climb); i++)
		CHECK_MSG(uar_address_climbs(uar_str_c(climb[i])), "%s", climb[i]);
	for (size_t i = 0; i < ARRAY_LEN(stay); i++)
		CHECK_MSG(!uar_address_climbs(uar_str_c(stay[i])), "%s", stay[i]);
}
