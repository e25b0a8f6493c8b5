/* err.c - names, texts and HTTP statuses of the rows in err.def. */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

struct err_row {
	const char *name, *token, *text;
	int http;
	bool retryable;
};

static const struct err_row rows[] = {
#define E(NAME, TOKEN, HTTP, RETRY, TEXT) { "UAR_E" #NAME, TOKEN, TEXT, HTTP, RETRY },
#include "base/err.def"
#undef E
};

static const struct err_row *row_of(uar_err e)
{
	static const struct err_row fine = { "UAR_OK", "OK", "no error", 200, false };
	static const struct err_row unknown = { "UAR_E?", "INTERNAL", "unknown error", 500, false };

	if (e == UAR_OK)
		return &fine;
	if (e <= UAR_ERR_FIRST_ || e >= UAR_ERR_END_)
		return &unknown;
	return &rows[e - UAR_ERR_FIRST_ - 1];
}

const char *uar_err_name(uar_err e)
{
	return row_of(e)->name;
}

const char *uar_err_token(uar_err e)
{
	return row_of(e)->token;
}

const char *uar_err_text(uar_err e)
{
	return row_of(e)->text;
}

int uar_err_http(uar_err e)
{
	return row_of(e)->http;
}

bool uar_err_retryable(uar_err e)
{
	return row_of(e)->retryable;
}

#undef uar_error_set /* see err.h */
uar_err uar_error_set(struct uar_error *error, uar_err code, const char *fmt, ...)
{
	va_list ap;

	if (!error)
		return code;
	error->code = code;
	va_start(ap, fmt);
	vsnprintf(error->text, sizeof error->text, fmt, ap);
	va_end(ap);
	return code;
}

void uar_error_where(struct uar_error *error, const char *fmt, ...)
{
	va_list ap;

	if (!error)
		return;
	va_start(ap, fmt);
	vsnprintf(error->where, sizeof error->where, fmt, ap);
	va_end(ap);
}

const char *uar_error_text(const struct uar_error *error)
{
	return error->text[0] ? error->text : uar_err_text(error->code);
}
