/* client_request.c - a request as options of libcurl. Knows nothing of its life. */
#include "loop/client_request.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <sys/socket.h>

#include "base/address.h"
#include "loop/limits.h"

enum {
	CONNECT_TIMEOUT_US = 10 * 1000 * 1000,
	READ_BUFFER = 2048, /* a transfer's; more costs memory and gains nothing */
	UPLOAD_BUFFER = 16384,
};

uar_err uar_client_check_url(uar_str url, struct uar_error *error)
{
	if (!uar_str_starts(url, UAR_STR("http://")) && !uar_str_starts(url, UAR_STR("https://")))
		return uar_error_set(error, UAR_EINVALID, "the address is neither http nor https");
	if (url.n > UAR_LIMIT_CLIENT_URL)
		return uar_error_set(error, UAR_ETOOBIG, "the address is too long");
	for (size_t i = 0; i < url.n; i++)
		if ((unsigned char)url.p[i] <= ' ' || url.p[i] == 0x7f)
			return uar_error_set(error, UAR_EINVALID,
					     "the address has a space or control character in it");
	return UAR_OK;
}

static const struct {
	CURLoption option;
	long value;
} fixed_options[] = {
	{ CURLOPT_NOSIGNAL, 1 },
	{ CURLOPT_FOLLOWLOCATION, 0 },
	{ CURLOPT_SSL_VERIFYPEER, 1 },
	{ CURLOPT_SSL_VERIFYHOST, 2 },
	{ CURLOPT_SSLVERSION, CURL_SSLVERSION_TLSv1_2 },
	{ CURLOPT_DISALLOW_USERNAME_IN_URL, 1 },
	{ CURLOPT_SUPPRESS_CONNECT_HEADERS, 1 },
	{ CURLOPT_BUFFERSIZE, READ_BUFFER },
	{ CURLOPT_UPLOAD_BUFFERSIZE, UPLOAD_BUFFER },
	{ CURLOPT_TCP_KEEPALIVE, 1 },
	/* Or a cancelled call would wait for its name to be looked up. */
	{ CURLOPT_QUICK_EXIT, 1 },
};

static bool is_loopback(uar_str origin)
{
	struct uar_address a;

	return uar_address_read_host(uar_str_from(origin, uar_str_find(origin, '/') + 2), &a) &&
	       uar_address_is_local(&a);
}

static bool read_peer(const struct sockaddr *to, unsigned char ip[16], uint16_t *out_port)
{
	const struct sockaddr_in *v4 = (const void *)to;
	const struct sockaddr_in6 *v6 = (const void *)to;

	memset(ip, 0, 16);
	if (to->sa_family == AF_INET) {
		ip[10] = ip[11] = 0xff;
		memcpy(ip + 12, &v4->sin_addr, 4);
		*out_port = ntohs(v4->sin_port);
	} else if (to->sa_family == AF_INET6) {
		memcpy(ip, &v6->sin6_addr, 16);
		*out_port = ntohs(v6->sin6_port);
	}
	return to->sa_family == AF_INET || to->sa_family == AF_INET6;
}

/* libcurl connects to the very address that is judged here. */
static curl_socket_t open_socket(void *ctx, curlsocktype purpose, struct curl_sockaddr *to)
{
	struct uar_guarded *g = ctx;
	unsigned char ip[16];
	uint16_t port = 0;

	(void)purpose;
	if (!read_peer(&to->addr, ip, &port) || !uar_guard_passes(g->guard, ip, port)) {
		g->refused = true;
		return CURL_SOCKET_BAD;
	}
	return socket(to->family, to->socktype | SOCK_CLOEXEC, to->protocol);
}

bool uar_client_may_send(const struct uar_client_request *r, const char *ip, int port)
{
	char text[INET6_ADDRSTRLEN + 2];
	struct uar_address a;

	if (!r->guarded)
		return true;
	snprintf(text, sizeof text, strchr(ip, ':') ? "[%s]" : "%s", ip);
	if (uar_address_read_host(uar_str_c(text), &a) && uar_address_is_ip(&a) &&
	    uar_guard_passes(r->guarded->guard, a.ip, (uint16_t)port))
		return true;
	r->guarded->refused = true;
	return false;
}

/* A proxy would look the name up itself, unseen. */
static CURLcode set_guard(const struct uar_curl *c, CURL *h, struct uar_guarded *g)
{
	CURLcode bad = CURLE_OK;

	bad |= c->easy_setopt(h, CURLOPT_OPENSOCKETFUNCTION, open_socket);
	bad |= c->easy_setopt(h, CURLOPT_OPENSOCKETDATA, g);
	bad |= c->easy_setopt(h, CURLOPT_PROXY, "");
	return bad;
}

static CURLcode set_transport(const struct uar_curl *c, CURL *h, const struct uar_client_request *r)
{
	int64_t connect_us = r->connect_timeout_us ? r->connect_timeout_us : CONNECT_TIMEOUT_US;
	CURLcode bad = CURLE_OK;

	for (size_t i = 0; i < ARRAY_LEN(fixed_options); i++)
		bad |= c->easy_setopt(h, fixed_options[i].option, fixed_options[i].value);
	bad |= c->easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
	bad |= c->easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)((connect_us + 999) / 1000));
	if (r->guarded)
		bad |= set_guard(c, h, r->guarded);
	else if (is_loopback(r->origin))
		bad |= c->easy_setopt(h, CURLOPT_PROXY, "");
	if (r->once)
		bad |= c->easy_setopt(h, CURLOPT_FRESH_CONNECT, 1L);
	if (r->ca_file)
		bad |= c->easy_setopt(h, CURLOPT_CAINFO, r->ca_file);
	return bad;
}

static CURLcode set_request(const struct uar_curl *c, CURL *h, const struct uar_client_request *r)
{
	CURLcode bad = CURLE_OK;

	bad |= c->easy_setopt(h, CURLOPT_URL, r->url);
	bad |= c->easy_setopt(h, CURLOPT_USERAGENT, "uar/" UAR_VERSION);
	bad |= c->easy_setopt(h, CURLOPT_HTTPHEADER, r->headers);
	if (strcmp(r->method, "HEAD") == 0)
		bad |= c->easy_setopt(h, CURLOPT_NOBODY, 1L);
	if (r->body.n || strcmp(r->method, "POST") == 0) {
		bad |= c->easy_setopt(h, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)r->body.n);
		bad |= c->easy_setopt(h, CURLOPT_POSTFIELDS, r->body.p);
	}
	bad |= c->easy_setopt(h, CURLOPT_CUSTOMREQUEST, r->method);
	return bad;
}

uar_err uar_client_prepare(const struct uar_curl *c, CURL *h, const struct uar_client_request *r)
{
	return set_transport(c, h, r) || set_request(c, h, r) ? UAR_ENOMEM : UAR_OK;
}

static uar_err add_header(const struct uar_curl *c, const char *line, struct curl_slist **list)
{
	struct curl_slist *longer;

	for (const char *p = line; *p; p++)
		if ((unsigned char)*p < ' ' && *p != '\t')
			return UAR_EINVALID;
	longer = c->slist_append(*list, line);
	if (!longer)
		return UAR_ENOMEM;
	*list = longer;
	return UAR_OK;
}

uar_err uar_client_headers(const struct uar_curl *c, const char *const *lines,
			   struct curl_slist **list)
{
	uar_err e = add_header(c, "Expect:", list); /* no waiting for 100 Continue */

	for (; !e && lines && *lines; lines++)
		e = add_header(c, *lines, list);
	return e;
}
