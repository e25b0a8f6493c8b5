/* providers.h - the setting `providers`: a table of names and the providers of models they stand
 *for.
 *
 *	{"claude": {"dialect": "anthropic", "key_env": "ANTHROPIC_API_KEY"},
 *	 "house": {"dialect": "openai_chat", "base_url": "http://10.0.0.7:8000/v1",
 *		   "headers": {"X-Team": "a"}, "models": {"qwen*": {"images": true}}}}
 *
 * Keys are named, never written: by variable, file or systemd credential. */
#ifndef UAR_APP_PROVIDERS_H
#define UAR_APP_PROVIDERS_H

#include "base/arena.h"
#include "base/buf.h"
#include "model/models.h"

struct uar_provider_setting {
	const char *name;
	enum uar_model_dialect dialect;
	const char *base_url;
	const char *key_env, *key_file, *credential; /* at most one; NULL: not given */
	const char *key_header;			     /* NULL: the dialect's */
	const char *const *headers;		     /* "Name: value", NULL-terminated */
	const struct uar_model_row *rows;
	size_t row_count;
};

struct uar_provider_settings {
	const struct uar_provider_setting *at;
	size_t count;
};

/* Reads the table; `error` names the member by a JSON pointer. Empty text is an empty table. */
UAR_MUST_CHECK uar_err uar_providers_read(uar_str json, struct uar_arena *a,
					  struct uar_provider_settings *out,
					  struct uar_error *error);
/* The key itself, without line ends behind it; nothing where none is named. */
UAR_MUST_CHECK uar_err uar_providers_key(const struct uar_provider_setting *p, struct uar_buf *out,
					 struct uar_error *error);
/* The base URL of an OLLAMA_HOST: "0.0.0.0", "host:1234", "https://host". */
UAR_MUST_CHECK uar_err uar_providers_ollama(const char *host, struct uar_buf *out);

#endif
