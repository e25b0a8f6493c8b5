/* credentials.h - keys that people and programs were given, and whose they are.
 *
 * The book is in memory: a request costs one hash and one look-up. Keys come from the store when
 * the gate is made (work/credential_store.h) and change there first. A key is
 * "uar_<id>_<secret>": the id finds it, the sha256 of the secret has to fit. */
#ifndef UAR_GATE_CREDENTIALS_H
#define UAR_GATE_CREDENTIALS_H

#include "base/map.h"
#include "base/sha256.h"
#include "event/record.h"
#include "gate/gate.h"

struct call;
struct gate_book;

/* What a credential admits to. */
enum gate_scope_bit {
#define S(NAME, WORD, DOC) GATE_SCOPE_BIT_##NAME,
#include "gate/scope.def"
#undef S
	GATE_SCOPE_COUNT
};
enum gate_scope {
#define S(NAME, WORD, DOC) GATE_SCOPE_##NAME = 1 << GATE_SCOPE_BIT_##NAME,
#include "gate/scope.def"
#undef S
	GATE_SCOPE_ALL = (1 << GATE_SCOPE_COUNT) - 1, /* the token of the server */
	GATE_GRANT_RUN = 1 << 16,		      /* reading the one run that it names */
	GATE_GRANT_UPLOAD = 1 << 17,		      /* the one upload that it names */
};
const char *gate_scope_word(unsigned bit);
/* Words with a space between two. UAR_EINVALID names one that there is not. */
UAR_MUST_CHECK uar_err gate_scopes_read(uar_str words, unsigned *out, struct uar_error *error);

/* What the users of a tenant have in common; stays as long. */
struct gate_tenant {
	size_t under_way; /* requests and streams */
	char name[];
};
/* Somebody who has called; stays until the gate is gone. */
struct gate_user {
	struct uar_owner owner;
	struct gate_tenant *tenant;
	char key[]; /* of the map; the owner's strings point into it */
};

enum { GATE_KEY_ID = 16, GATE_KEY_SECRET = 64, GATE_KEY_TEXT = 5 + GATE_KEY_ID + GATE_KEY_SECRET };
/* One that is or was in force since the gate was made; stays until it is gone. */
struct gate_key {
	struct gate_user *user;
	unsigned scopes;
	bool revoked;
	int64_t expires_us; /* 0: never */
	int64_t used_us;    /* the day */
	char id[GATE_KEY_ID + 1], digest[UAR_SHA256_TEXT + 1];
};

struct gate_book *gate_book_create(struct uar_gate *g); /* NULL: out of memory */
void gate_book_destroy(struct gate_book *b);		/* the store is gone; NULL is fine */
/* Reads the keys that are in force from the store. */
UAR_MUST_CHECK uar_err gate_book_load(struct gate_book *b);
bool gate_book_loaded(const struct gate_book *b);
/* The one of that name, which is made when there is none. NULL: there are too many, or no
 * memory. */
struct gate_user *gate_book_user(struct gate_book *b, const struct uar_owner *owner);
struct gate_key *gate_book_find(const struct gate_book *b, uar_str id); /* NULL: none in force */
/* Whose key that is, "uar_..." UAR_EUNAUTHORIZED; UAR_EBUSY: keys are still being read. */
UAR_MUST_CHECK uar_err gate_book_check(struct gate_book *b, uar_str token, struct gate_key **out,
				       struct uar_error *error);

#endif
