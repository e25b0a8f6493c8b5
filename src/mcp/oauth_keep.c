/* oauth_keep.c - what is known at each authorization server, as text that can be kept. */
#include "base/alloc.h"
#include "mcp/oauth_int.h"

struct member {
	const char *name;
	size_t offset;
};
#define M(NAME)                                                                                    \
	{                                                                                          \
#NAME, offsetof(struct oauth_entry, NAME)                                          \
	}
static const struct member members[] = { M(issuer), M(client_id), M(secret), M(method),
					 M(access), M(refresh),	  M(scope) };
#undef M

static struct uar_buf *member_of(struct oauth_entry *e, size_t i)
{
	return (struct uar_buf *)(void *)((char *)e + members[i].offset);
}

static struct oauth_entry *make_entry(struct uar_mcp_auth *a)
{
	struct oauth_entry *e = uar_zalloc(sizeof *e);

	if (!e)
		return NULL;
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		*member_of(e, i) = uar_buf_make(4 * UAR_LIMIT_MCP_OAUTH_TEXT);
	uar_list_add_last(&a->entries, &e->node);
	return e;
}

static void free_entry(struct oauth_entry *e)
{
	for (size_t i = 0; i < ARRAY_LEN(members); i++)
		uar_buf_fini(member_of(e, i));
	uar_list_remove(&e->node);
	uar_free(e);
}

struct oauth_entry *oauth_entry_of(struct uar_mcp_auth *a, uar_str issuer)
{
	struct oauth_entry *e;

	UAR_LIST_EACH (it, &a->entries) {
		e = UAR_OWNER(it, struct oauth_entry, node);
		if (uar_str_eq(uar_buf_str(&e->issuer), issuer))
			return e;
	}
	e = make_entry(a);
	if (e)
		uar_buf_add_str(&e->issuer, issuer);
	return e;
}

void oauth_entries_fini(struct uar_mcp_auth *a)
{
	while (!uar_list_empty(&a->entries))
		free_entry(UAR_OWNER(a->entries.next, struct oauth_entry, node));
}

void oauth_set_line(struct uar_mcp_auth *a)
{
	uar_buf_clear(&a->line);
	if (a->entry && a->entry->access.n)
		uar_buf_printf(&a->line, "Authorization: Bearer %.*s",
			       UAR_FMT(uar_buf_str(&a->entry->access)));
}

void oauth_keep(struct uar_mcp_auth *a)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_OAUTH_KEPT);
	struct uar_jw w = uar_jw_begin(&b);

	uar_jw_obj(&w, NULL);
	uar_jw_str(&w, "issuer", a->entry ? uar_buf_str(&a->entry->issuer) : UAR_STR(""));
	uar_jw_arr(&w, "servers");
	UAR_LIST_EACH (it, &a->entries) {
		struct oauth_entry *e = UAR_OWNER(it, struct oauth_entry, node);

		uar_jw_obj(&w, NULL);
		for (size_t i = 0; i < ARRAY_LEN(members); i++)
			uar_jw_str(&w, members[i].name, uar_buf_str(member_of(e, i)));
		uar_jw_int(&w, "expires_us", e->expires_us);
		uar_jw_close(&w);
	}
	uar_jw_close(&w);
	uar_jw_close(&w);
	if (!uar_jw_end(&w) && a->o.keep)
		a->o.keep(a->o.ctx, uar_buf_str(&b));
	if (b.p)
		explicit_bzero(b.p, b.n);
	uar_buf_fini(&b);
}

/* What cannot be read is forgotten: a login brings it back. */
void oauth_recall(struct uar_mcp_auth *a)
{
	const struct uar_json *root = NULL;
	struct uar_arena arena;

	uar_arena_init(&arena, 0);
	if (a->o.kept.n && !uar_json_parse(a->o.kept, NULL, &arena, &root, NULL)) {
		const struct uar_json *all = uar_json_get(root, UAR_STR("servers"));

		for (const struct uar_json *j = uar_json_first(all); j; j = j->next) {
			struct oauth_entry *e = make_entry(a);

			for (size_t i = 0; e && i < ARRAY_LEN(members); i++)
				uar_buf_add_str(member_of(e, i), uar_json_text(j, members[i].name));
			if (e)
				e->expires_us =
					uar_json_int(uar_json_get(j, UAR_STR("expires_us")), 0);
			if (e && uar_str_eq(uar_buf_str(&e->issuer), uar_json_text(root, "issuer")))
				a->entry = e;
		}
	}
	uar_arena_fini(&arena);
	oauth_set_line(a);
}
