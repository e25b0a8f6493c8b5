/* credentials.c - the book of keys, and the routes that change it. */
#include "gate/credentials.h"

#include "event/limits.h"
#include "gate/gate_int.h"
#include "gate/limits.h"
#include "work/credential_store.h"
#include "work/definition_store.h"

static const int64_t day_us = (int64_t)86400 * 1000000;
static const uar_str prefix = UAR_STR("uar_");

struct gate_book {
	struct uar_gate *g;
	struct uar_map users, keys, tenants;
	struct uar_list edits; /* of struct key_edit */
	struct uar_credential_list load;
	struct uar_arena arena; /* of the cursor of the load */
	bool loaded;
};

/* --- scopes ---------------------------------------------------------------------------------- */

static const struct {
	const char *word, *doc;
} scope_rows[] = {
#define S(NAME, WORD, DOC) { WORD, DOC },
#include "gate/scope.def"
#undef S
};

const char *gate_scope_word(unsigned bit)
{
	return bit < ARRAY_LEN(scope_rows) ? scope_rows[bit].word : NULL;
}

static uar_err read_scope(uar_str word, unsigned *out, struct uar_error *error)
{
	for (unsigned i = 0; i < ARRAY_LEN(scope_rows); i++)
		if (uar_str_is(word, scope_rows[i].word)) {
			*out |= 1U << i;
			return UAR_OK;
		}
	return uar_error_set(error, UAR_EINVALID,
			     "there is no scope \"%.*s\"; scopes are read, run, answer, define, "
			     "metrics and admin",
			     UAR_FMT(uar_str_utf8_prefix(word, 64)));
}

uar_err gate_scopes_read(uar_str words, unsigned *out, struct uar_error *error)
{
	unsigned scopes = 0;
	uar_err e = UAR_OK;

	while (words.n && !e) {
		uar_str word = uar_str_cut(words, ' ', &words);

		if (word.n)
			e = read_scope(word, &scopes, error);
	}
	if (!e)
		*out = scopes;
	return e;
}

static void write_scopes(unsigned scopes, char *out, size_t size)
{
	size_t n = 0;

	out[0] = 0;
	for (unsigned i = 0; i < ARRAY_LEN(scope_rows); i++)
		if (scopes >> i & 1)
			n += (size_t)snprintf(out + n, size - n, "%s%s", n ? " " : "",
					      scope_rows[i].word);
}

/* --- users ----------------------------------------------------------------------------------- */

static struct gate_tenant *tenant_of(struct gate_book *b, uar_str name)
{
	struct gate_tenant *t = uar_map_get(&b->tenants, name);

	if (t)
		return t;
	t = uar_zalloc(sizeof *t + name.n + 1);
	if (!t)
		return NULL;
	memcpy(t->name, name.p, name.n);
	if (uar_map_put(&b->tenants, uar_str_n(t->name, name.n), t)) {
		uar_free(t);
		return NULL;
	}
	return t;
}

/* Nobody else has read what they keep: that is done for the owner of the server alone. */
static void meet(struct gate_book *b, const struct gate_user *u)
{
	if (!b->g->o.work || uar_owner_eq(&u->owner, &b->g->o.owner))
		return;
	uar_workers_load_definitions(b->g->o.work, &u->owner);
	uar_mailer_wake_outboxes(b->g->o.mailer, &u->owner);
}

struct gate_user *gate_book_user(struct gate_book *b, const struct uar_owner *owner)
{
	char text[3 * UAR_LIMIT_ID_BYTES + 3];
	size_t n = (size_t)snprintf(text, sizeof text, "%.*s\n%.*s\n%.*s", UAR_FMT(owner->tenant),
				    UAR_FMT(owner->workspace), UAR_FMT(owner->user));
	struct gate_user *u = n < sizeof text ? uar_map_get(&b->users, uar_str_n(text, n)) : NULL;

	if (u || n >= sizeof text || b->users.used >= UAR_LIMIT_GATE_USERS)
		return u;
	u = uar_zalloc(sizeof *u + n + 1);
	if (!u)
		return NULL;
	memcpy(u->key, text, n + 1);
	u->owner.tenant = uar_str_n(u->key, owner->tenant.n);
	u->owner.workspace = uar_str_n(u->key + owner->tenant.n + 1, owner->workspace.n);
	u->owner.user = uar_str_n(u->key + n - owner->user.n, owner->user.n);
	u->tenant = tenant_of(b, owner->tenant);
	if (!u->tenant || uar_map_put(&b->users, uar_str_n(u->key, n), u)) {
		uar_free(u);
		return NULL;
	}
	meet(b, u);
	return u;
}

/* --- keys ------------------------------------------------------------------------------------ */

struct gate_key *gate_book_find(const struct gate_book *b, uar_str id)
{
	struct gate_key *k = uar_map_get(&b->keys, id);

	return k && !k->revoked ? k : NULL;
}

static uar_err add_key(struct gate_book *b, const struct uar_row_credential *row)
{
	struct uar_owner owner = { row->tenant, row->workspace, row->user };
	struct gate_user *u = gate_book_user(b, &owner);
	struct gate_key *k = u ? uar_zalloc(sizeof *k) : NULL;
	uar_err e = k ? gate_scopes_read(row->scopes, &k->scopes, NULL) : UAR_ENOMEM;

	if (!e && (row->row.id.n != GATE_KEY_ID || row->digest.n != UAR_SHA256_TEXT))
		e = UAR_ECORRUPT;
	if (!e) {
		k->user = u;
		k->expires_us = row->expires_at;
		k->used_us = row->used_at;
		memcpy(k->id, row->row.id.p, GATE_KEY_ID);
		memcpy(k->digest, row->digest.p, UAR_SHA256_TEXT);
		e = uar_map_put(&b->keys, uar_str_c(k->id), k);
	}
	if (e)
		uar_free(k);
	return e;
}

/* A change of a key that is there: its row is read, changed and written. */
struct key_edit {
	struct uar_list node; /* the book's */
	struct uar_credential_change op;
	struct uar_credential_list look;
	struct uar_arena arena;
	struct gate_book *b;
	struct call *c; /* who revokes it; NULL: it was used today */
};

static void free_edit(struct key_edit *x)
{
	uar_list_remove(&x->node);
	uar_arena_fini(&x->arena);
	uar_free(x);
}

static void answer_key(struct call *c, const struct uar_row_credential *row, const char *secret);

/* What it has opened ends, too. */
static void revoke_key(struct gate_book *b, struct gate_key *k)
{
	struct uar_list *next;

	k->revoked = true;
	gate_streams_cut(b->g, k);
	for (struct uar_list *it = b->g->calls.next; it != &b->g->calls; it = next) {
		struct call *c = UAR_OWNER(it, struct call, node);

		next = it->next;
		if (c->key == k && c->hurry)
			c->hurry(c);
	}
}

static void end_edit(struct key_edit *x, uar_err e, const struct uar_error *error)
{
	struct gate_key *k = gate_book_find(x->b, x->look.id);

	if (!e && x->c && k)
		revoke_key(x->b, k);
	if (x->c && e)
		gate_problem(x->c, e, error);
	else if (x->c)
		answer_key(x->c, &x->op.row, NULL);
	free_edit(x);
}

static void edit_kept(struct uar_credential_change *op)
{
	end_edit(UAR_OWNER(op, struct key_edit, op), op->err, &op->error);
}

static void row_read(struct uar_credential_list *op)
{
	struct key_edit *x = op->ctx;
	struct uar_row_credential *row = &x->op.row;
	int64_t now = uar_clock_wall(x->b->g->o.sched->clock);
	bool found = !op->err && op->count == 1;
	uar_err e = op->err ? op->err : found ? UAR_OK : UAR_ENOTFOUND;

	if (!e && !uar_row_copy_typed(&x->arena, &op->rows[0], row))
		e = UAR_ENOMEM;
	if (e || (x->c && uar_str_is(row->row.status, "revoked"))) {
		end_edit(x, e, &op->error);
		return;
	}
	x->op.owner = x->b->g->o.owner;
	x->op.change = x->c ? "revoked" : "used";
	x->op.done = edit_kept;
	if (x->c) {
		row->row.status = UAR_STR("revoked");
		row->revoked_at = now;
	} else {
		row->used_at = now - now % day_us;
	}
	e = uar_workers_change_credential(x->b->g->o.work, &x->op);
	if (e)
		end_edit(x, e, &x->op.error);
}

/* NULL `c`: the day of its last use is kept; that this is lost would do no harm. */
static uar_err edit_key(struct gate_book *b, uar_str id, struct call *c)
{
	struct key_edit *x = uar_zalloc(sizeof *x);
	uar_err e;

	if (!x)
		return UAR_ENOMEM;
	x->b = b;
	x->c = c;
	uar_arena_init(&x->arena, 0);
	uar_list_add_last(&b->edits, &x->node);
	x->look = (struct uar_credential_list){ .owner = b->g->o.owner,
						.id = uar_arena_str(&x->arena, id),
						.limit = 1,
						.done = row_read,
						.ctx = x };
	e = x->look.id.p ? uar_workers_list_credentials(b->g->o.work, &x->look) : UAR_ENOMEM;
	if (e)
		free_edit(x);
	return e;
}

static void note_use(struct gate_book *b, struct gate_key *k, int64_t now)
{
	if (now - k->used_us < day_us || b->g->draining)
		return;
	k->used_us = now - now % day_us;
	if (edit_key(b, uar_str_c(k->id), NULL))
		uar_log(b->g->o.log, UAR_LOG_DEBUG, "credential.use_not_kept",
			{ "credential_id", uar_str_c(k->id) });
}

uar_err gate_book_check(struct gate_book *b, uar_str token, struct gate_key **out,
			struct uar_error *error)
{
	uar_str secret, id = uar_str_cut(uar_str_from(token, prefix.n), '_', &secret);
	int64_t now = uar_clock_wall(b->g->o.sched->clock);
	char digest[UAR_SHA256_TEXT + 1];
	struct gate_key *k;

	if (!b->loaded)
		return uar_error_set(error, UAR_EBUSY, "keys are being read, try again");
	k = uar_map_get(&b->keys, id);
	uar_sha256_hex(secret, digest);
	if (!k || !uar_str_eq_secret(uar_str_c(digest), uar_str_c(k->digest)))
		return uar_error_set(error, UAR_EUNAUTHORIZED,
				     "the token that was sent is not one of this server");
	if (k->revoked)
		return uar_error_set(error, UAR_EUNAUTHORIZED, "the key %s was revoked", k->id);
	if (k->expires_us && k->expires_us <= now)
		return uar_error_set(error, UAR_EUNAUTHORIZED, "the key %s has expired", k->id);
	note_use(b, k, now);
	*out = k;
	return UAR_OK;
}

/* --- life ------------------------------------------------------------------------------------ */

struct gate_book *gate_book_create(struct uar_gate *g)
{
	struct gate_book *b = uar_zalloc(sizeof *b);

	if (!b)
		return NULL;
	b->g = g;
	uar_list_init(&b->edits);
	uar_map_init(&b->users, uar_rand_u64(g->o.rand));
	uar_map_init(&b->keys, uar_rand_u64(g->o.rand));
	uar_map_init(&b->tenants, uar_rand_u64(g->o.rand));
	uar_arena_init(&b->arena, 0);
	return b;
}

void gate_book_destroy(struct gate_book *b)
{
	void *at;

	if (!b)
		return;
	while (!uar_list_empty(&b->edits))
		free_edit(UAR_OWNER(b->edits.next, struct key_edit, node));
	for (size_t i = 0; (at = uar_map_next(&b->keys, &i));)
		uar_free(at);
	for (size_t i = 0; (at = uar_map_next(&b->users, &i));)
		uar_free(at);
	for (size_t i = 0; (at = uar_map_next(&b->tenants, &i));)
		uar_free(at);
	uar_map_fini(&b->tenants);
	uar_map_fini(&b->keys);
	uar_map_fini(&b->users);
	uar_arena_fini(&b->arena);
	uar_free(b);
}

static uar_err load_page(struct gate_book *b);

static void log_key(const struct gate_book *b, uar_str id, uar_err e)
{
	uar_log(b->g->o.log, UAR_LOG_ERROR, "credential.unread", { "credential_id", id },
		{ "reason", uar_str_c(uar_err_text(e)) });
}

static void page_loaded(struct uar_credential_list *op)
{
	struct gate_book *b = op->ctx;
	bool more = !op->err && op->more;
	uar_err e = op->err;

	for (size_t i = 0; i < op->count && !op->err; i++) {
		uar_err bad = add_key(b, &op->rows[i]);

		if (bad)
			log_key(b, op->rows[i].row.id, bad);
	}
	if (more) {
		uar_str next = op->next;

		uar_arena_reset(&b->arena);
		op->after = uar_arena_str(&b->arena, next);
		e = op->after.p ? load_page(b) : UAR_ENOMEM;
	}
	if (e)
		log_key(b, UAR_STR("*"), e);
	b->loaded = !more || e;
}

static uar_err load_page(struct gate_book *b)
{
	b->load = (struct uar_credential_list){ .owner = b->g->o.owner,
						.status = UAR_STR("active"),
						.after = b->load.after,
						.limit = UAR_LIMIT_LIST_PAGE,
						.done = page_loaded,
						.ctx = b };
	return uar_workers_list_credentials(b->g->o.work, &b->load);
}

bool gate_book_loaded(const struct gate_book *b)
{
	return b->loaded;
}

uar_err gate_book_load(struct gate_book *b)
{
	if (!b->g->o.work) /* of a test */
		b->loaded = true;
	return b->loaded ? UAR_OK : load_page(b);
}

/* --- routes ---------------------------------------------------------------------------------- */

struct key_change {
	struct uar_credential_change op;
	struct call *c;
	char id[GATE_KEY_ID + 1], secret[GATE_KEY_SECRET + 1];
	char digest[UAR_SHA256_TEXT + 1], scopes[128];
};

static void put_key(struct uar_jw *w, const struct gate_book *b,
		    const struct uar_row_credential *row)
{
	const struct gate_key *k = gate_book_find(b, row->row.id);
	int64_t used = k ? k->used_us : row->used_at;
	uar_str words = row->scopes;

	uar_jw_str(w, "credential_id", row->row.id);
	uar_jw_str(w, "label", row->label);
	uar_jw_str(w, "tenant", row->tenant);
	uar_jw_str(w, "workspace", row->workspace);
	uar_jw_str(w, "user", row->user);
	uar_jw_arr(w, "scopes");
	while (words.n)
		uar_jw_str(w, NULL, uar_str_cut(words, ' ', &words));
	uar_jw_close(w);
	uar_jw_str(w, "status", row->row.status);
	uar_jw_time(w, "created_at", row->row.created_us);
	uar_jw_time_or_null(w, "expires_at", row->expires_at);
	uar_jw_time_or_null(w, "last_used_at", used);
	if (row->revoked_at)
		uar_jw_time(w, "revoked_at", row->revoked_at);
}

/* `secret`: of one that was just made. */
static void answer_key(struct call *c, const struct uar_row_credential *row, const char *secret)
{
	struct uar_buf b = uar_buf_make(16384);
	struct uar_jw w = uar_jw_begin(&b);
	char token[GATE_KEY_TEXT + 1];

	uar_jw_obj(&w, NULL);
	put_key(&w, c->g->own.book, row);
	if (secret) {
		snprintf(token, sizeof token, "uar_%.*s_%s", UAR_FMT(row->row.id), secret);
		uar_jw_cstr(&w, "token", token);
		explicit_bzero(token, sizeof token);
	}
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	gate_answer(c, secret ? 201 : 200, &b);
	if (b.p)
		explicit_bzero(b.p, b.n);
	uar_buf_fini(&b);
}

static void key_made(struct uar_credential_change *op)
{
	struct key_change *x = UAR_OWNER(op, struct key_change, op);
	uar_err e = op->err ? op->err : add_key(x->c->g->own.book, &op->row);

	if (e)
		gate_problem(x->c, e, &op->error);
	else
		answer_key(x->c, &op->row, x->secret);
}

struct key_body {
	uar_str label, tenant, workspace, user;
	const struct uar_json *scopes;
	int64_t expires_seconds;
};

static uar_err read_key(struct call *c, struct key_body *in, unsigned *scopes,
			struct uar_error *error)
{
	static const struct uar_json_field fields[] = {
		{ "label", UAR_FIELD_STR, false, offsetof(struct key_body, label) },
		{ "tenant", UAR_FIELD_ID, false, offsetof(struct key_body, tenant) },
		{ "workspace", UAR_FIELD_ID, false, offsetof(struct key_body, workspace) },
		{ "user", UAR_FIELD_ID, true, offsetof(struct key_body, user) },
		{ "scopes", UAR_FIELD_ARRAY, false, offsetof(struct key_body, scopes) },
		{ "expires_seconds", UAR_FIELD_INT, false,
		  offsetof(struct key_body, expires_seconds) },
	};
	uar_err e = uar_json_read(c->body, fields, ARRAY_LEN(fields), true, in, error);

	for (const struct uar_json *j = uar_json_first(in->scopes); j && !e; j = j->next) {
		e = read_scope(uar_json_str(j, UAR_STR("")), scopes, error);
		if (e)
			uar_error_where(error, "/scopes");
	}
	if (e)
		return e;
	if (in->label.n > 256) {
		uar_error_where(error, "/label");
		return uar_error_set(error, UAR_ETOOBIG, "a label has at most 256 bytes");
	}
	if (in->expires_seconds < 0 || in->expires_seconds > UAR_LIMIT_KEY_SECONDS) {
		uar_error_where(error, "/expires_seconds");
		return uar_error_set(error, UAR_EINVALID, "0 (never) to %d seconds",
				     UAR_LIMIT_KEY_SECONDS);
	}
	return UAR_OK;
}

static void make_key(struct key_change *x, const struct key_body *in, unsigned scopes)
{
	const struct uar_gate *g = x->c->g;
	unsigned char raw[(GATE_KEY_ID + GATE_KEY_SECRET) / 2];

	g->o.rand->fill(g->o.rand->ctx, raw, sizeof raw);
	uar_hex(raw, GATE_KEY_ID / 2, x->id);
	uar_hex(raw + GATE_KEY_ID / 2, GATE_KEY_SECRET / 2, x->secret);
	explicit_bzero(raw, sizeof raw);
	uar_sha256_hex(uar_str_c(x->secret), x->digest);
	write_scopes(scopes, x->scopes, sizeof x->scopes);
	x->op = (struct uar_credential_change){
		.owner = g->o.owner,
		.change = "created",
		.row = { .row = { .kind = UAR_ROW_CREDENTIAL,
				  .id = uar_str_c(x->id),
				  .status = UAR_STR("active") },
			 .digest = uar_str_c(x->digest),
			 .tenant = in->tenant.n ? in->tenant : g->o.owner.tenant,
			 .workspace = in->workspace.n ? in->workspace : g->o.owner.workspace,
			 .user = in->user,
			 .scopes = uar_str_c(x->scopes),
			 .label = in->label.p ? in->label : UAR_STR("") },
		.done = key_made,
	};
	if (in->expires_seconds)
		x->op.row.expires_at =
			uar_clock_wall(g->o.sched->clock) + in->expires_seconds * 1000000;
}

void gate_new_credential(struct call *c)
{
	struct key_change *x = uar_arena_alloc(&c->arena, sizeof *x);
	struct key_body in = { 0 };
	struct uar_error error = { 0 };
	unsigned scopes = 0;
	uar_err e = x ? read_key(c, &in, &scopes, &error) : UAR_ENOMEM;

	if (!e && c->g->own.book->keys.used >= UAR_LIMIT_GATE_KEYS)
		e = uar_error_set(&error, UAR_ERATELIMIT,
				  "there are %d keys already: revoke those that nobody needs",
				  UAR_LIMIT_GATE_KEYS);
	if (!e) {
		x->c = c;
		make_key(x, &in,
			 in.scopes ? scopes
				   : GATE_SCOPE_READ | GATE_SCOPE_RUN | GATE_SCOPE_ANSWER |
					     GATE_SCOPE_DEFINE);
		c->op = x; /* it is in the memory of the call, which the peer must not end */
		e = uar_workers_change_credential(c->g->o.work, &x->op);
	}
	if (e)
		gate_problem(c, e, &error);
}

void gate_revoke_credential(struct call *c)
{
	uar_err e;

	c->op = c; /* the operation has the call until it is over */
	e = edit_key(c->g->own.book, c->params[0], c);
	if (e)
		gate_problem(c, e, NULL);
}

/* --- lists ----------------------------------------------------------------------------------- */

static void keys_listed(struct uar_credential_list *op)
{
	struct call *c = op->ctx;
	struct uar_buf b = uar_buf_make(UAR_LIMIT_LIST_BYTES);
	struct uar_jw w = uar_jw_begin(&b);

	if (op->err) {
		gate_problem(c, op->err, &op->error);
		return;
	}
	uar_jw_obj(&w, NULL);
	uar_jw_arr(&w, "credentials");
	for (size_t i = 0; i < op->count; i++) {
		uar_jw_obj(&w, NULL);
		put_key(&w, c->g->own.book, &op->rows[i]);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	if (op->more)
		uar_jw_str(&w, "next_cursor", op->next);
	else
		uar_jw_null(&w, "next_cursor");
	uar_jw_close(&w);
	gate_answer_json(c, 200, &b, &w);
}

void gate_list_credentials(struct call *c)
{
	struct uar_credential_list *op = uar_arena_alloc(&c->arena, sizeof *op);
	struct uar_error error = { 0 };
	uint64_t limit = 0;
	uar_str after = UAR_STR_NONE;
	uar_err e = op ? gate_query_u64(c, "limit", UAR_LIMIT_LIST_DEFAULT, &limit, &error)
		       : UAR_ENOMEM;

	if (!e)
		e = gate_query_str(c, "cursor", &after);
	if (!e) {
		*op = (struct uar_credential_list){ .owner = c->g->o.owner,
						    .after = after,
						    .limit = limit < 1 ? 1
							     : limit > UAR_LIMIT_LIST_PAGE
								     ? UAR_LIMIT_LIST_PAGE
								     : (uint32_t)limit,
						    .done = keys_listed,
						    .ctx = c };
		c->op = op;
		e = uar_workers_list_credentials(c->g->o.work, op);
	}
	if (e)
		gate_problem(c, e, &error);
}
