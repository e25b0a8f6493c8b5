/* reply_fail.c - what went wrong, in the words of model.failed. */
#include "model/reply_int.h"

#include "base/buf.h"
#include "model/limits.h"

static bool is_word(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_';
}

/* Bytes of the key that starts at s.p, 0: none does. Besides our own key,
 * anything of the usual shape: providers like to quote what they refuse. */
static size_t key_length(uar_str s, bool at_word, uar_str secret)
{
	static const char *const prefixes[] = { "sk-", "Bearer " };
	size_t n = 0;

	if (secret.n && uar_str_starts(s, secret))
		return secret.n;
	for (size_t i = 0; at_word && n == 0 && i < ARRAY_LEN(prefixes); i++)
		if (uar_str_starts(s, uar_str_c(prefixes[i])))
			n = strlen(prefixes[i]);
	while (n > 0 && n < s.n && (is_word(s.p[n]) || strchr("-.*/+=~", s.p[n])))
		n++;
	return n;
}

static void add_redacted(struct uar_buf *out, uar_str message, uar_str secret)
{
	for (size_t i = 0; i < message.n && !out->err;) {
		bool at_word = i == 0 || !is_word(message.p[i - 1]);
		size_t n = key_length(uar_str_from(message, i), at_word, secret);
		unsigned char c = (unsigned char)message.p[i];

		if (n)
			uar_buf_add_str(out, UAR_STR("[key]"));
		else
			uar_buf_add_char(out, c < ' ' || c == 0x7f ? ' ' : (char)c);
		i += n ? n : 1;
	}
}

void uar_reply_fail(struct uar_reply_verdict *v, enum uar_model_failure failure, bool retryable,
		    uar_str secret, uar_str message)
{
	struct uar_buf text = uar_buf_make(sizeof v->message * 2);
	uar_str cut;

	if (v->failure)
		return;
	v->failure = failure;
	v->retryable = retryable;
	add_redacted(&text, message, secret);
	cut = uar_str_utf8_prefix(uar_buf_str(&text), sizeof v->message);
	memcpy(v->message, cut.p, cut.n);
	v->message_n = cut.n;
	uar_buf_fini(&text);
}

static const struct status_row {
	int from, to;
	enum uar_model_failure failure;
	bool retryable;
} statuses[] = {
	{ 401, 401, UAR_MODEL_FAIL_AUTH, false },
	{ 402, 402, UAR_MODEL_FAIL_LIMIT, false },
	{ 403, 403, UAR_MODEL_FAIL_AUTH, false },
	{ 408, 408, UAR_MODEL_FAIL_TIMEOUT, true },
	{ 409, 409, UAR_MODEL_FAIL_PROVIDER, true },
	{ 425, 425, UAR_MODEL_FAIL_PROVIDER, true },
	{ 429, 429, UAR_MODEL_FAIL_LIMIT, true },
	{ 400, 499, UAR_MODEL_FAIL_INVALID, false },
	{ 500, 599, UAR_MODEL_FAIL_PROVIDER, true },
	{ 300, 399, UAR_MODEL_FAIL_PROVIDER, false },
	/* an error inside an answer that began well */
	{ 200, 299, UAR_MODEL_FAIL_PROVIDER, true },
	{ 0, 999, UAR_MODEL_FAIL_PROVIDER, false },
};

static const struct status_row *row_of_status(int status)
{
	const struct status_row *row = statuses;

	while (row < statuses + ARRAY_LEN(statuses) - 1 && (status < row->from || status > row->to))
		row++;
	return row;
}

/* error.code and error.type, where the status says little or nothing. */
static const struct code_row {
	const char *code;
	enum uar_model_failure failure;
	bool retryable;
} codes[] = {
	{ "insufficient_quota", UAR_MODEL_FAIL_LIMIT, false },
	{ "billing_error", UAR_MODEL_FAIL_LIMIT, false },
	{ "rate_limit_exceeded", UAR_MODEL_FAIL_LIMIT, true },
	{ "rate_limit_error", UAR_MODEL_FAIL_LIMIT, true },
	{ "overloaded_error", UAR_MODEL_FAIL_PROVIDER, true },
	{ "server_error", UAR_MODEL_FAIL_PROVIDER, true },
	{ "api_error", UAR_MODEL_FAIL_PROVIDER, true },
	{ "timeout_error", UAR_MODEL_FAIL_TIMEOUT, true },
	{ "invalid_api_key", UAR_MODEL_FAIL_AUTH, false },
	{ "authentication_error", UAR_MODEL_FAIL_AUTH, false },
	{ "permission_error", UAR_MODEL_FAIL_AUTH, false },
	{ "context_length_exceeded", UAR_MODEL_FAIL_INVALID, false },
	{ "model_not_found", UAR_MODEL_FAIL_INVALID, false },
	{ "not_found_error", UAR_MODEL_FAIL_INVALID, false },
	{ "request_too_large", UAR_MODEL_FAIL_INVALID, false },
	{ "invalid_prompt", UAR_MODEL_FAIL_INVALID, false },
	{ "invalid_request_error", UAR_MODEL_FAIL_INVALID, false },
};

static const struct code_row *row_of_code(const struct uar_json *error)
{
	static const char *const places[] = { "code", "type" };

	for (size_t i = 0; i < ARRAY_LEN(places); i++) {
		const struct uar_json *said = uar_json_get(error, uar_str_c(places[i]));

		for (size_t k = 0; k < ARRAY_LEN(codes); k++)
			if (uar_str_is(uar_json_str(said, UAR_STR("")), codes[k].code))
				return &codes[k];
	}
	return NULL;
}

/* A 429 for want of money will not pass by waiting; otherwise the status
 * decides unless it is 400 or the error came inside a good answer. */
static struct status_row judge(const struct uar_json *error, int status)
{
	int64_t number = uar_json_int(uar_json_get(error, UAR_STR("code")), 0);
	const struct code_row *code = row_of_code(error);
	struct status_row row = *row_of_status(status);
	bool inside = status >= 200 && status < 300;

	if (inside && number >= 400 && number < 600)
		return *row_of_status((int)number);
	if (code &&
	    (inside || status == 400 ||
	     (status == 429 && !code->retryable && code->failure == UAR_MODEL_FAIL_LIMIT))) {
		row.failure = code->failure;
		row.retryable = code->retryable;
	}
	return row;
}

void uar_reply_fail_json(struct uar_reply_verdict *v, const struct uar_json *j, int status,
			 uar_str secret)
{
	static const char *const places[] = { "message", "detail", "error" };
	const struct uar_json *body = j && j->kind == UAR_JSON_ARRAY ? uar_json_at(j, 0) : j;
	const struct uar_json *error = uar_json_get(body, UAR_STR("error"));
	struct status_row row;
	uar_str message = UAR_STR_NONE;
	char plain[64];

	if (!error || error->kind != UAR_JSON_OBJECT)
		error = body;
	row = judge(error, status);
	for (size_t i = 0; message.n == 0 && i < ARRAY_LEN(places); i++)
		message = uar_json_str(uar_json_get(error, uar_str_c(places[i])), message);
	if (message.n == 0) {
		snprintf(plain, sizeof plain, "the provider answered %d without a reason", status);
		message = uar_str_c(plain);
	}
	uar_reply_fail(v, row.failure, row.retryable, secret, message);
}

void uar_reply_fail_transport(struct uar_reply_verdict *v, uar_err e, uar_str secret,
			      const char *reason)
{
	enum uar_model_failure failure = UAR_MODEL_FAIL_NETWORK;
	char untrusted[UAR_LIMIT_MODEL_MESSAGE];

	if (!reason || !*reason)
		reason = uar_err_text(e);
	if (e == UAR_ETIMEOUT)
		failure = UAR_MODEL_FAIL_TIMEOUT;
	else if (e == UAR_EINVALID)
		failure = UAR_MODEL_FAIL_INVALID;
	if (e == UAR_EFORBIDDEN) {
		snprintf(untrusted, sizeof untrusted,
			 "the provider's certificate cannot be trusted: %s", reason);
		reason = untrusted;
	}
	uar_reply_fail(v, failure, e != UAR_EINVALID && e != UAR_EFORBIDDEN, secret,
		       uar_str_c(reason));
}
