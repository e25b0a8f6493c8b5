/* guard_test.c - the corpus of addresses that must not be reached, by name and by call. */
#include "loop/client_test.h"

#include <arpa/inet.h>

#include "loop/guard.h"

static bool to_ip(const char *text, unsigned char ip[16])
{
	memset(ip, 0, 16);
	if (strchr(text, ':'))
		return inet_pton(AF_INET6, text, ip) == 1;
	ip[10] = ip[11] = 0xff;
	return inet_pton(AF_INET, text, ip + 12) == 1;
}

/* The form with a value where the word stands. */
static void put_in(const char *form, const char *word, const char *value, char *out, size_t size)
{
	const char *at = strstr(form, word);
	int before = at ? (int)(at - form) : (int)strlen(form);

	snprintf(out, size, "%.*s%s%s", before, form, at ? value : "", at ? at + strlen(word) : "");
}

static bool passes(const struct uar_guard *g, const char *text)
{
	unsigned char ip[16];

	return CHECK_MSG(to_ip(text, ip), "%s", text) && uar_guard_passes(g, ip, 80);
}

/* First and last address of each closed network, and its public neighbours. */
static const char *const closed[] = {
	"0.0.0.0",
	"0.0.0.1",
	"0.255.255.255",
	"10.0.0.0",
	"10.0.0.1",
	"10.1.2.3",
	"10.255.255.255",
	"100.64.0.0",
	"100.64.0.1",
	"100.100.100.200",
	"100.127.255.255",
	"127.0.0.0",
	"127.0.0.1",
	"127.0.0.2",
	"127.1.1.1",
	"127.255.255.254",
	"127.255.255.255",
	"168.63.129.16",
	"169.254.0.0",
	"169.254.0.1",
	"169.254.169.254",
	"169.254.170.2",
	"169.254.170.23",
	"169.254.255.255",
	"172.16.0.0",
	"172.16.0.1",
	"172.17.0.1",
	"172.20.10.1",
	"172.31.255.255",
	"192.0.0.0",
	"192.0.0.1",
	"192.0.0.8",
	"192.0.0.170",
	"192.0.0.192",
	"192.0.0.255",
	"192.0.2.0",
	"192.0.2.1",
	"192.0.2.255",
	"192.31.196.1",
	"192.52.193.1",
	"192.88.99.1",
	"192.168.0.0",
	"192.168.0.1",
	"192.168.1.1",
	"192.168.255.255",
	"192.175.48.1",
	"198.18.0.0",
	"198.18.0.1",
	"198.19.255.255",
	"198.51.100.0",
	"198.51.100.255",
	"203.0.113.0",
	"203.0.113.255",
	"224.0.0.0",
	"224.0.0.1",
	"239.255.255.255",
	"240.0.0.0",
	"240.0.0.1",
	"255.255.255.254",
	"255.255.255.255",
	"::",
	"::1",
	"::2",
	"::127.0.0.1",
	"::7f00:1",
	"::a9fe:a9fe",
	"::ffff:0:127.0.0.1",
	"::ffff:0:10.0.0.1",
	"64:ff9b::7f00:1",
	"64:ff9b::127.0.0.1",
	"64:ff9b::a9fe:a9fe",
	"64:ff9b:1::1",
	"64:ff9b:1:ffff::10.0.0.1",
	"100::",
	"100::1",
	"2001::",
	"2001::1",
	"2001:0:7f00:1::",
	"2001:2::1",
	"2001:10::1",
	"2001:20::1",
	"2001:1ff::1",
	"2001:db8::",
	"2001:db8::1",
	"2001:db8:ffff::1",
	"2002::",
	"2002:7f00:1::",
	"2002:7f00:0001::1",
	"2002:a00:1::1",
	"2002:a9fe:a9fe::1",
	"2002:c0a8:101::1",
	"3fff::1",
	"3fff:fff::1",
	"5f00::1",
	"fc00::",
	"fc00::1",
	"fd00::1",
	"fd00:ec2::254",
	"fd20:ce::254",
	"fdff:ffff::1",
	"fe80::",
	"fe80::1",
	"fe80::a9fe:a9fe",
	"febf::1",
	"fec0::1",
	"feff::1",
	"ff00::",
	"ff01::1",
	"ff02::1",
	"ff02::2",
	"ff05::2",
	"ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff",
};
static const char *const open_ones[] = {
	"1.1.1.1",
	"8.8.8.8",
	"9.255.255.255",
	"11.0.0.0",
	"93.184.216.34",
	"100.63.255.255",
	"100.128.0.0",
	"126.255.255.255",
	"128.0.0.1",
	"168.63.129.15",
	"168.63.129.17",
	"169.253.255.255",
	"169.255.0.0",
	"172.15.255.255",
	"172.32.0.0",
	"191.255.255.255",
	"192.0.1.0",
	"192.0.3.0",
	"192.167.255.255",
	"192.169.0.0",
	"198.17.255.255",
	"198.20.0.0",
	"198.51.99.255",
	"198.51.101.0",
	"203.0.112.255",
	"203.0.114.0",
	"223.255.255.255",
	"2001:200::1",
	"2001:4860:4860::8888",
	"2003::1",
	"2606:4700:4700::1111",
	"2a00:1450::1",
	"3ffe:ffff::1",
	"2001:db7::1",
	"2001:db9::1",
};

TEST(only_public_addresses_pass, "")
{
	for (size_t i = 0; i < ARRAY_LEN(closed); i++)
		CHECK_MSG(!passes(NULL, closed[i]), "%s", closed[i]);
	for (size_t i = 0; i < ARRAY_LEN(open_ones); i++)
		CHECK_MSG(passes(NULL, open_ones[i]), "%s", open_ones[i]);
}

/* Each IPv4 address inside IPv6, in every way that some translator knows. */
TEST(an_address_inside_another_is_seen, "")
{
	static const char *const forms[] = { "::ffff:IP", "::IP", "::ffff:0:IP", "64:ff9b::IP",
					     "64:ff9b:1::IP" };

	for (size_t i = 0; i < ARRAY_LEN(closed); i++)
		for (size_t k = 0; k < ARRAY_LEN(forms); k++) {
			char text[INET6_ADDRSTRLEN + 32];

			if (strchr(closed[i], ':'))
				continue;
			put_in(forms[k], "IP", closed[i], text, sizeof text);
			CHECK_MSG(!passes(NULL, text), "%s", text);
		}
}

TEST(an_operator_may_allow_more, "")
{
	static const char *const allow[] = { "10.0.0.0/8", "127.0.0.1:80", "[fd00::]/8",
					     "wiki.example", "mail.example:8443" };
	static const char *const wrong[] = { "",    "10.0.0.0/33",  "[fd00::]/129",  "a/8",
					     "a b", "10.0.0.0/8:1", "10.0.0.1:80/8", "user@host",
					     "*.x" };
	unsigned char ip[16];
	struct uar_guard *g = NULL;

	REQUIRE(uar_guard_create(allow, ARRAY_LEN(allow), &g, NULL) == UAR_OK);
	CHECK(passes(g, "10.9.8.7") && passes(g, "127.0.0.1") && passes(g, "fd12::1"));
	CHECK(!passes(g, "11.0.0.1") == false && !passes(g, "127.0.0.2") && !passes(g, "fc00::1"));
	CHECK(to_ip("127.0.0.1", ip) && !uar_guard_passes(g, ip, 81));
	CHECK(uar_guard_passes_name(g, UAR_STR("http://wiki.example/x")));
	CHECK(uar_guard_passes_name(g, UAR_STR("https://WIKI.example:444")));
	CHECK(uar_guard_passes_name(g, UAR_STR("https://mail.example:8443/?q")));
	CHECK(!uar_guard_passes_name(g, UAR_STR("https://mail.example/")));
	CHECK(!uar_guard_passes_name(g, UAR_STR("http://wiki.example@127.0.0.1/")));
	CHECK(!uar_guard_passes_name(g, UAR_STR("http://evil/wiki.example")));
	CHECK(!uar_guard_passes_name(g, UAR_STR("http://wiki.example.evil/")));
	CHECK(!uar_guard_passes_name(g, UAR_STR("http:")));
	uar_guard_destroy(g);
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		g = NULL;
		CHECK_MSG(uar_guard_create(&wrong[i], 1, &g, NULL) == UAR_EINVALID, "%s", wrong[i]);
	}
}

/* --- calls ---------------------------------------------------------------------------- */

static const struct peer_script hello[] = { { { { PEER_SEND, OK_HEAD "hello", 0 } } } };

/* Ways to write this machine; PORT is the port where something would answer. */
static const char *const spellings[] = {
	"http://127.0.0.1:PORT/",
	"http://127.1:PORT/",
	"http://127.0.1:PORT/",
	"http://2130706433:PORT/",
	"http://0x7f000001:PORT/",
	"http://0x7f.0.0.1:PORT/",
	"http://0x7f.1:PORT/",
	"http://0177.0.0.1:PORT/",
	"http://017700000001:PORT/",
	"http://0177.1:PORT/",
	"http://127.0.0.2:PORT/",
	"http://127.255.255.254:PORT/",
	"http://0:PORT/",
	"http://0.0.0.0:PORT/",
	"http://0x0:PORT/",
	"http://00:PORT/",
	"http://localhost:PORT/",
	"http://LOCALHOST:PORT/",
	"http://localhost.:PORT/",
	"http://LocalHost:PORT/",
	"http://[::1]:PORT/",
	"http://[0:0:0:0:0:0:0:1]:PORT/",
	"http://[::]:PORT/",
	"http://[::ffff:127.0.0.1]:PORT/",
	"http://[::ffff:7f00:1]:PORT/",
	"http://[0:0:0:0:0:ffff:127.0.0.1]:PORT/",
	"http://[::127.0.0.1]:PORT/",
	"http://[::1%25lo]:PORT/",
	"http://[::1%lo]:PORT/",
	"http://[64:ff9b::7f00:1]:PORT/",
	"http://public.example@127.0.0.1:PORT/",
	"http://a:b@127.0.0.1:PORT/",
	"http://@127.0.0.1:PORT/",
	"http://127.0.0.1:PORT@127.0.0.1:1/",
	"http://127.0.0.1:PORT#@public.example/",
	"http://127.0.0.1:PORT?@public.example/",
	"http://127.0.0.1:PORT\\@public.example/",
	"http://\xe2\x91\xa0\xe2\x91\xa1\xe2\x91\xa6.\xe2\x93\xaa.\xe2\x93\xaa.\xe2\x91\xa0:PORT/",
	"http://\xef\xbc\x91\xef\xbc\x92\xef\xbc\x97.0.0.1:PORT/",
	"http://127%2e0%2e0%2e1:PORT/",
	"http://%31%32%37.0.0.1:PORT/",
	"http://127.0.0.1.:PORT/",
	"http:///127.0.0.1:PORT/",
	"http:127.0.0.1:PORT/",
	"http://[127.0.0.1]:PORT/",
	"http:\\\\127.0.0.1:PORT/",
	"//127.0.0.1:PORT/",
	"HTTP://127.0.0.1:PORT/",
	"file:///etc/passwd#PORT",
	"gopher://127.0.0.1:PORT/_x",
	"ftp://127.0.0.1:PORT/",
	"dict://127.0.0.1:PORT/x",
	"unix:/tmp/xPORT",
	"ldap://127.0.0.1:PORT/",
	"telnet://127.0.0.1:PORT/",
	"tftp://127.0.0.1:PORT/x",
	"smb://127.0.0.1:PORT/x",
	"data:text/plain,PORT",
	"javascript:PORT",
	"ws://127.0.0.1:PORT/",
	"jar:http://127.0.0.1:PORT/!/",
	"http://ip6-localhost:PORT/",
	"http://localhost.localdomain:PORT/",
	"http://[fe80::1%25lo]:PORT/",
	"http://169.254.169.254:PORT/latest/meta-data/",
	"http://[fd00:ec2::254]:PORT/latest/meta-data/",
	"http://0xa9fea9fe:PORT/",
	"http://2852039166:PORT/",
	"http://metadata.google.internal:PORT/",
};

static void spell(struct fixture *f, const char *form, char *out, size_t size)
{
	char port[16];

	snprintf(port, sizeof port, "%u", peer_port(f->peer));
	put_in(form, "PORT", port, out, size);
}

static void call_it(struct fixture *f, const char *url, struct seen *s, bool guarded)
{
	struct uar_call_options o = options(f, s);

	o.url = url;
	o.method = "GET";
	o.guarded = guarded;
	o.connect_timeout_us = 2000000;
	s->err = uar_client_call(f->client, &o, &s->call, NULL);
	if (!s->err)
		uar_loop_run(f->loop);
}

TEST(no_spelling_of_an_address_leads_around_the_guard, "")
{
	struct fixture f;

	REQUIRE(set_up(&f, hello, 1));
	for (size_t i = 0; i < ARRAY_LEN(spellings); i++) {
		struct seen s = { 0 };
		char url[200];

		spell(&f, spellings[i], url, sizeof url);
		call_it(&f, url, &s, true);
		CHECK_MSG(s.err != UAR_OK && s.data.n == 0, "%s: %s", url, uar_err_name(s.err));
		forget(&s);
	}
	CHECK_INT(peer_counts(f.peer).connections, 0);
	tear_down(&f);
}

/* The same way is open without the guard: what is proven above is its work. */
TEST(without_the_guard_the_same_addresses_are_reached, "")
{
	static const size_t reached[] = { 0, 1, 3, 4, 7, 16 };
	struct fixture f;

	REQUIRE(set_up(&f, hello, 1));
	for (size_t i = 0; i < ARRAY_LEN(reached); i++) {
		struct seen s = { 0 };
		char url[200];

		spell(&f, spellings[reached[i]], url, sizeof url);
		call_it(&f, url, &s, false);
		CHECK_MSG(s.err == UAR_OK && s.status == 200, "%s: %s", url, s.reason);
		forget(&s);
	}
	tear_down(&f);
}

TEST(a_connection_that_was_there_before_is_judged, "")
{
	struct seen plain = { 0 }, guarded = { 0 };
	struct fixture f;

	REQUIRE(set_up(&f, hello, 1));
	call_it(&f, f.url, &plain, false);
	CHECK_INT(plain.status, 200);
	call_it(&f, f.url, &guarded, true); /* its connection is kept open */
	CHECK_INT(guarded.err, UAR_EFORBIDDEN);
	CHECK(strstr(guarded.reason, "outbound_allow") != NULL);
	CHECK_INT(peer_counts(f.peer).requests, 1);
	forget(&plain);
	forget(&guarded);
	tear_down(&f);
}

TEST(what_is_allowed_is_reached, "")
{
	static const char *const allow[] = { "127.0.0.1" };
	struct uar_guard *g = NULL;
	struct seen s = { 0 };
	struct fixture f;

	REQUIRE(set_up(&f, hello, 1));
	REQUIRE(uar_guard_create(allow, 1, &g, NULL) == UAR_OK);
	uar_client_set_guard(f.client, g);
	call_it(&f, f.url, &s, true);
	CHECK_INT(s.status, 200);
	forget(&s);
	tear_down(&f);
}

TEST(an_address_in_any_spelling_and_localhost_are_barred_before_a_call, "")
{
	static const char *const barred[] = {
		"http://localhost/",	 "http://LOCALHOST:80/",
		"https://localhost./x",	 "http://foo.localhost/",
		"http://a.b.localhost.", "http://127.1/",
		"http://2130706433/",	 "http://0x7f.1/",
		"http://0177.0.0.1/",	 "http://0x7f000001:8080/",
		"http://127.0.0.1./",	 "http://0/",
		"http://10.1/",		 "http://[::1]/",
		"http://[::1%lo]/",	 "http://[fe80::1%25eth0]",
		"http://user@8.8.8.8/",	 "http:///x",
		"HTTP://127.0.0.1/",
	};
	static const char *const open_urls[] = {
		"http://8.8.8.8/",	  "http://8.526344/",		"http://134744072/",
		"http://notlocalhost/",	  "http://localhost.example/",	"http://example.com./",
		"http://1.2.3.4.5/",	  "http://127.1.example/",	"http://0x7f.example/",
		"HTTPS://[2606:4700::1]", "http://xn--bcher-kva.test/",
	};
	static const char *const one[] = { "127.0.0.1:80" }, *const name[] = { "localhost:443" };
	struct uar_guard *g = NULL;

	for (size_t i = 0; i < ARRAY_LEN(barred); i++)
		CHECK_MSG(uar_guard_bars(NULL, uar_str_c(barred[i])), "%s", barred[i]);
	for (size_t i = 0; i < ARRAY_LEN(open_urls); i++)
		CHECK_MSG(!uar_guard_bars(NULL, uar_str_c(open_urls[i])), "%s", open_urls[i]);
	CHECK_INT(uar_guard_create(one, 1, &g, NULL), UAR_OK);
	CHECK(!uar_guard_bars(g, UAR_STR("http://localhost/")));
	CHECK(!uar_guard_bars(g, UAR_STR("http://127.1/")));
	CHECK(uar_guard_bars(g, UAR_STR("HTTPS://localhost/")));
	uar_guard_destroy(g);
	CHECK_INT(uar_guard_create(name, 1, &g, NULL), UAR_OK);
	CHECK(!uar_guard_bars(g, UAR_STR("HTTPS://localhost/")));
	CHECK(uar_guard_bars(g, UAR_STR("http://localhost/")));
	uar_guard_destroy(g);
}
