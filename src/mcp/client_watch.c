/* client_watch.c - what a server is asked to tell of: changes of its list of tools, and of
 * resources.
 *
 * A legacy server is asked for each resource, a modern one with one request that stays open. What
 * is watched is asked for anew with every connection, and counts as changed then: nobody knows what
 * was missed. */
#include "base/alloc.h"
#include "mcp/client_int.h"

struct watched {
	struct uar_list node;
	size_t users, n;
	bool sent;   /* on this connection */
	bool anew;   /* it was not, until now */
	char id[24]; /* of the request that asks for it; legacy */
	char uri[];
};

static struct watched *find_watched(struct uar_mcp_client *c, uar_str uri)
{
	UAR_LIST_EACH (it, &c->watched) {
		struct watched *w = UAR_OWNER(it, struct watched, node);

		if (uar_str_eq(uar_str_n(w->uri, w->n), uri))
			return w;
	}
	return NULL;
}

/* --- asking ----------------------------------------------------------------------------------- */

static uar_err ask_legacy(struct uar_mcp_client *c, const char *method, struct watched *w)
{
	struct uar_buf b = uar_buf_make(4 * UAR_LIMIT_MCP_URI + 4096);
	struct uar_jw jw = uar_jw_begin(&b);
	uar_err e;

	uar_jw_obj(&jw, NULL);
	uar_jw_str(&jw, "uri", uar_str_n(w->uri, w->n));
	uar_jw_close(&jw);
	b.err = uar_jw_end(&jw);
	client_next_id(c, w->id);
	e = client_request(c, w->id, method, &b, UAR_STR_NONE);
	uar_buf_fini(&b);
	return e;
}

static void put_watched(struct uar_jw *w, struct uar_mcp_client *c)
{
	uar_jw_arr(w, "resourceSubscriptions");
	UAR_LIST_EACH (it, &c->watched) {
		struct watched *at = UAR_OWNER(it, struct watched, node);

		uar_jw_str(w, NULL, uar_str_n(at->uri, at->n));
		at->sent = true;
	}
	uar_jw_close(w);
}

/* Changes are told to those alone who asked for them (2026-07-28). */
uar_err client_listen(struct uar_mcp_client *c)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_MCP_MESSAGE);
	struct uar_jw w = uar_jw_begin(&b);
	bool lists = uar_mcp_client_offers(c, "tools/listChanged");
	uar_err e = UAR_OK;

	if (c->listens[0])
		client_forget(c, c->listens, "asked anew");
	c->listens[0] = 0;
	if (!lists && uar_list_empty(&c->watched))
		return UAR_OK;
	uar_jw_obj(&w, NULL);
	uar_jw_obj(&w, "notifications");
	if (lists)
		uar_jw_bool(&w, "toolsListChanged", true);
	if (!uar_list_empty(&c->watched))
		put_watched(&w, c);
	uar_jw_close(&w);
	client_put_envelope(&w, c, NULL);
	uar_jw_close(&w);
	b.err = uar_jw_end(&w);
	client_next_id(c, c->listens);
	e = client_request(c, c->listens, "subscriptions/listen", &b, UAR_STR_NONE);
	if (e)
		c->listens[0] = 0;
	uar_buf_fini(&b);
	return e;
}

static uar_err ask_for(struct uar_mcp_client *c, struct watched *w)
{
	if (c->era == UAR_MCP_ERA_MODERN)
		return client_listen(c);
	w->sent = true;
	return ask_legacy(c, "resources/subscribe", w);
}

/* --- the user's side ------------------------------------------------------------------------ */

uar_err uar_mcp_client_watch(struct uar_mcp_client *c, uar_str uri)
{
	struct watched *w = find_watched(c, uri);
	uar_err e;

	if (w) {
		w->users++;
		return UAR_OK;
	}
	if (!c->tools || !c->link)
		return UAR_ENET;
	if (uri.n > UAR_LIMIT_MCP_URI)
		return UAR_ETOOBIG;
	if (c->watched_count >= UAR_LIMIT_MCP_WATCHES)
		return UAR_EBUSY;
	w = uar_zalloc(sizeof *w + uri.n + 1);
	if (!w)
		return UAR_ENOMEM;
	w->users = 1;
	w->n = uri.n;
	memcpy(w->uri, uri.p, uri.n);
	uar_list_add_last(&c->watched, &w->node);
	c->watched_count++;
	e = ask_for(c, w);
	if (e)
		uar_mcp_client_unwatch(c, uri);
	return e;
}

static void free_watched(struct uar_mcp_client *c, struct watched *w)
{
	uar_list_remove(&w->node);
	c->watched_count--;
	uar_free(w);
}

void uar_mcp_client_unwatch(struct uar_mcp_client *c, uar_str uri)
{
	struct watched *w = find_watched(c, uri);
	uar_err e = UAR_OK;

	if (!w || --w->users)
		return;
	if (w->sent && c->tools && c->link && c->era == UAR_MCP_ERA_LEGACY)
		e = ask_legacy(c, "resources/unsubscribe", w);
	free_watched(c, w);
	if (c->tools && c->link && c->era == UAR_MCP_ERA_MODERN)
		e = client_listen(c);
	(void)e; /* what it tells of all the same is nobody's */
}

/* --- the connection's side ------------------------------------------------------------------ */

static void tell_updated(const struct uar_mcp_client *c, const struct watched *w)
{
	if (c->o.news.updated)
		c->o.news.updated(c->o.ctx, uar_str_n(w->uri, w->n));
}

void client_watch_anew(struct uar_mcp_client *c)
{
	UAR_LIST_EACH (it, &c->watched)
		UAR_OWNER(it, struct watched, node)->sent = false;
}

void client_watch_ready(struct uar_mcp_client *c)
{
	UAR_LIST_EACH (it, &c->watched) {
		struct watched *w = UAR_OWNER(it, struct watched, node);

		w->anew = !w->sent;
		if (w->anew && c->era == UAR_MCP_ERA_LEGACY && ask_for(c, w))
			w->sent = false; /* with the next connection */
	}
	if (c->era == UAR_MCP_ERA_MODERN && !c->listens[0] && client_listen(c))
		c->listens[0] = 0;
	UAR_LIST_EACH (it, &c->watched)
		if (UAR_OWNER(it, struct watched, node)->anew)
			tell_updated(c, UAR_OWNER(it, struct watched, node));
}

/* A server may tell of a part of what is watched. */
void client_watch_updated(struct uar_mcp_client *c, uar_str uri)
{
	UAR_LIST_EACH (it, &c->watched) {
		const struct watched *w = UAR_OWNER(it, struct watched, node);

		if (uar_str_starts(uri, uar_str_n(w->uri, w->n)))
			tell_updated(c, w);
	}
}

bool client_watch_refused(struct uar_mcp_client *c, uar_str id, uar_str reason)
{
	UAR_LIST_EACH (it, &c->watched) {
		struct watched *w = UAR_OWNER(it, struct watched, node);

		if (!w->sent || !w->id[0] || !uar_str_is(id, w->id))
			continue;
		w->id[0] = 0;
		if (c->o.news.unwatched)
			c->o.news.unwatched(c->o.ctx, uar_str_n(w->uri, w->n), reason);
		return true;
	}
	return false;
}

void client_watch_fini(struct uar_mcp_client *c)
{
	while (!uar_list_empty(&c->watched))
		free_watched(c, UAR_OWNER(c->watched.next, struct watched, node));
}
