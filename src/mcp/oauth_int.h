/* oauth_int.h - what the files of an authorization share. */
#ifndef UAR_MCP_OAUTH_INT_H
#define UAR_MCP_OAUTH_INT_H

#include "base/list.h"
#include "json/jw.h"
#include "mcp/oauth.h"

enum step {
	STEP_NONE,
	STEP_RESOURCE,
	STEP_SERVER,
	STEP_REFRESH,
	STEP_REGISTER,
	STEP_PERSON,
	STEP_TOKEN
};

/* What is known at one authorization server. */
struct oauth_entry {
	struct uar_list node;
	struct uar_buf issuer, client_id, secret, method, access, refresh, scope;
	int64_t expires_us; /* wall; 0: not known */
};

struct uar_mcp_auth {
	struct uar_mcp_auth_options o;
	enum step step;
	int status; /* of the refusal */
	struct uar_list entries;
	struct oauth_entry *entry; /* of the present authorization server; NULL: none yet */
	struct uar_buf line;	   /* the header */
	struct uar_arena arena;	   /* of what follows, which lasts as long as one attempt */
	uar_str scope, challenged, issuer, resource;
	uar_str urls[4];
	size_t url, url_count;
	const struct uar_json *server; /* metadata; NULL: the defaults of 2025-03-26 */
	uar_str authorize, token, registration, scopes;
	uar_str state, verifier, person;
	struct uar_call *call;
	struct uar_buf body;
	struct {
		struct uar_timer timer, waits; /* waits: for the person */
		const char *why;
		bool passing; /* the last request failed and may succeed another time */
	} later;	      /* a failure */
};

/* oauth_keep.c */
struct oauth_entry *oauth_entry_of(struct uar_mcp_auth *a, uar_str issuer); /* made; NULL: memory */
void oauth_entries_fini(struct uar_mcp_auth *a);
void oauth_keep(struct uar_mcp_auth *a);
void oauth_recall(struct uar_mcp_auth *a);
void oauth_set_line(struct uar_mcp_auth *a);

/* oauth_text.c */
uar_str oauth_origin(uar_str url);   /* "https://host:1" */
bool oauth_is_loopback(uar_str url); /* "http://127.0.0.1:1/a" */
uar_str oauth_path(uar_str url);     /* "/a/b", without a slash at its end; may be empty */
void oauth_put(struct uar_buf *b, const char *name, uar_str value); /* "&name=value" */
void oauth_encode(struct uar_buf *b, uar_str value);
uar_str oauth_random(struct uar_mcp_auth *a); /* 43 characters, in the arena */
uar_str oauth_challenge(struct uar_mcp_auth *a, uar_str verifier);
bool oauth_has_word(uar_str words, uar_str word);
uar_str oauth_join(struct uar_arena *a, const struct uar_json *list);
uar_str oauth_union(struct uar_arena *a, uar_str x, uar_str y);
bool oauth_lists(const struct uar_json *list, const char *word);

/* oauth.c */
void oauth_wait_for_person(struct uar_mcp_auth *a);
void oauth_fail(struct uar_mcp_auth *a, const char *why);
UAR_MUST_CHECK uar_err oauth_get(struct uar_mcp_auth *a, uar_str url);
UAR_MUST_CHECK uar_err oauth_post(struct uar_mcp_auth *a, uar_str url, const char *const *headers,
				  uar_str body);
/* oauth_token.c */
void oauth_find_client(struct uar_mcp_auth *a);
void oauth_registered(struct uar_mcp_auth *a, const struct uar_json *j);
void oauth_refresh(struct uar_mcp_auth *a);
void oauth_refreshed(struct uar_mcp_auth *a, const struct uar_json *j);
void oauth_change_code(struct uar_mcp_auth *a, uar_str code);
void oauth_got_token(struct uar_mcp_auth *a, const struct uar_json *j);

#endif
