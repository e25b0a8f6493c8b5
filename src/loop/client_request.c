/* client_request.c - a request as options of libcurl. Knows nothing of its life. */
#include "loop/client_request.h"

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

static CURLcode set_transport(const struct uar_curl *c, CURL *h, const struct uar_client_request *r)
{
	int64_t connect_us = r->connect_timeout_us ? r->connect_timeout_us : CONNECT_TIMEOUT_US;
	CURLcode bad = CURLE_OK;

	for (size_t i = 0; i < ARRAY_LEN(fixed_options); i++)
		bad |= c->easy_setopt(h, fixed_options[i].option, fixed_options[i].value);
	bad |= c->easy_setopt(h, CURLOPT_PROTOCOLS_STR, "http,https");
	bad |= c->easy_setopt(h, CURLOPT_CONNECTTIMEOUT_MS, (long)((connect_us + 999) / 1000));
	if (is_loopback(r->origin))
		bad |= c->easy_setopt(h, CURLOPT_PROXY, "");
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
