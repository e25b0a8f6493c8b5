/* a2a.c - an A2A client: its remotes from the card that opens them to their end. What is said in
 * between is in a2a_exchange.c.
 *
 * Cards are kept in memory and requested again with their ETag. */
#include "peer/a2a.h"

#include <stdio.h>

#include "base/alloc.h"
#include "peer/a2a_remote.h"

static struct a2a_host *of(struct uar_remotes *base)
{
	return UAR_OWNER(base, struct a2a_host, base);
}

/* --- the card -------------------------------------------------------------------------------- */

static void read_card(struct uar_remote *r, uar_str text)
{
	struct uar_remote_events events = r->events;
	struct uar_error error = { 0 };
	struct uar_remote_card told;
	uar_err e = a2a_card_read(text, r->card_url, r->hosts, &r->arena, &r->card, &error);

	if (e) {
		a2a_cards_forget(&r->host->cards, r->card_url); /* it may be mended at once */
		a2a_exchange_finish(r, e == UAR_ENOMEM ? UAR_REMOTE_NO_MEMORY : UAR_REMOTE_BROKEN,
				    uar_error_text(&error), 0);
		return;
	}
	told = (struct uar_remote_card){ .card_url = r->card_url,
					 .url = r->card.url,
					 .version = r->card.old ? "0.3" : "1.0",
					 .streams = r->card.streams,
					 .lists = !r->card.old,
					 .idempotent = r->card.idempotent };
	r->call = NULL;
	a2a_exchange_release(r);
	events.opened(events.ctx, &told);
}

static int64_t now_of(const struct uar_remote *r)
{
	return uar_clock_mono(uar_client_sched(r->host->client)->clock);
}

static void card_done(void *ctx, uar_err e, int status, uar_str body, const char *reason)
{
	struct uar_remote *r = ctx;
	struct a2a_kept_card *kept = a2a_cards_find(&r->host->cards, r->card_url);
	char text[80];

	(void)body;
	r->call = NULL;
	if (e) {
		a2a_exchange_finish(r, a2a_how_of_error(e),
				    e == UAR_ETOOBIG ? "the card is too long" : reason, 0);
	} else if (status == 304 && kept) {
		kept->checked_us = now_of(r);
		read_card(r, uar_str_c(kept->text));
	} else if (!a2a_is_good(status)) {
		snprintf(text, sizeof text, "the card was answered with status %d", status);
		a2a_exchange_finish(r, a2a_how_of_status(status), text, 0);
	} else {
		struct a2a_kept_card read = { r->card_url.p, uar_buf_str(&r->etag).p,
					      uar_buf_str(&r->body).p, now_of(r) };

		a2a_cards_keep(&r->host->cards, &read);
		read_card(r, uar_buf_str(&r->body));
	}
}

static void card_header(void *ctx, uar_str name, uar_str value)
{
	struct uar_remote *r = ctx;

	if (!uar_str_eq_nocase(name, UAR_STR("etag")))
		return;
	uar_buf_clear(&r->etag);
	uar_buf_add_str(&r->etag, value);
}

static uar_err card_data(void *ctx, uar_str bytes)
{
	struct uar_remote *r = ctx;

	if (r->body.n + bytes.n > UAR_LIMIT_PEER_CARD_BYTES)
		return UAR_ETOOBIG;
	uar_buf_add_str(&r->body, bytes);
	return r->body.err;
}

static void card_kept(struct uar_task *t)
{
	struct uar_remote *r = UAR_OWNER(t, struct uar_remote, kept);
	struct a2a_kept_card *kept = a2a_cards_find(&r->host->cards, r->card_url);

	if (kept)
		read_card(r, uar_str_c(kept->text));
	else
		a2a_exchange_finish(r, UAR_REMOTE_NO_MEMORY, "the card is gone", 0);
}

static uar_err ask_card(struct uar_remote *r, struct uar_error *error)
{
	const struct a2a_kept_card *kept = a2a_cards_find(&r->host->cards, r->card_url);
	struct uar_buf match = uar_buf_make(512);
	const char *headers[] = { "Accept: application/json", "A2A-Version: 1.0", NULL, NULL };
	struct uar_call_options o = {
		.method = "GET",
		.url = r->card_url.p,
		.headers = headers,
		.connect_timeout_us = A2A_CONNECT_US,
		.idle_timeout_us = A2A_IDLE_US,
		.guarded = true,
		.header = card_header,
		.data = card_data,
		.done = card_done,
		.ctx = r,
	};
	uar_err e;

	a2a_exchange_begin(r, A2A_GET);
	if (kept && now_of(r) - kept->checked_us < (int64_t)UAR_LIMIT_PEER_CARD_SECONDS * 1000000) {
		uar_post(uar_client_sched(r->host->client), &r->kept);
		return UAR_OK;
	}
	if (kept && kept->etag[0]) {
		uar_buf_printf(&match, "If-None-Match: %s", kept->etag);
		headers[2] = match.err ? NULL : match.p;
	}
	r->streaming = false;
	e = uar_client_call(r->host->client, &o, &r->call, error);
	uar_buf_fini(&match);
	return e;
}

/* --- life ------------------------------------------------------------------------------------ */

static void remote_pause(struct uar_remote *r, bool paused)
{
	if (!r->call)
		return;
	uar_call_pause(r->call, paused);
	a2a_exchange_rest(r, paused);
}

static void remote_leave(struct uar_remote *r)
{
	uar_unpost(uar_client_sched(r->host->client), &r->kept);
	a2a_exchange_drop(r);
}

static void remote_close(struct uar_remote *r)
{
	if (!r)
		return;
	remote_leave(r);
	uar_list_remove(&r->node);
	uar_arena_fini(&r->arena);
	uar_free(r);
}

static void ignore_update(void *ctx, const struct uar_remote_view *view)
{
	(void)ctx;
	(void)view;
}

static void close_abandoned(void *ctx, const struct uar_remote_end *end)
{
	(void)end;
	remote_close(ctx);
}

static void remote_abandon(struct uar_remote *r, uar_str task_id)
{
	remote_leave(r);
	r->events = (struct uar_remote_events){ NULL, ignore_update, close_abandoned, r };
	if (a2a_exchange_cancel(r, task_id))
		remote_close(r);
}

static uar_err copy_hosts(struct uar_remote *r, const struct uar_json *hosts)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_PEER_CARD_BYTES);
	uar_err e;

	if (!hosts)
		return UAR_OK;
	uar_json_write(&b, hosts);
	e = b.err ? UAR_ENOMEM
		  : uar_json_parse_copy(uar_buf_str(&b), NULL, &r->arena, &r->hosts, NULL);
	uar_buf_fini(&b);
	return e;
}

static uar_err remote_open(struct uar_remotes *base, uar_str card_url, const struct uar_json *hosts,
			   const struct uar_remote_events *events, struct uar_remote **out,
			   struct uar_error *error)
{
	struct a2a_host *h = of(base);
	struct uar_remote *r = uar_zalloc(sizeof *r);
	uar_err e;

	if (!r)
		return UAR_ENOMEM;
	r->host = h;
	r->events = *events;
	r->kept.fn = card_kept;
	r->quiet.timer.fn = a2a_exchange_quiet;
	uar_arena_init(&r->arena, 0);
	uar_list_add_last(&h->open, &r->node);
	r->card_url = a2a_card_address(card_url, &r->arena);
	e = r->card_url.p ? copy_hosts(r, hosts) : UAR_ENOMEM;
	if (!e)
		e = ask_card(r, error);
	if (e)
		remote_close(r);
	else
		*out = r;
	return e;
}

static uar_err remote_set_headers(struct uar_remote *r, const char *const *headers)
{
	size_t n = 0;

	while (headers[n])
		n++;
	r->headers = uar_arena_alloc(&r->arena, (n + 1) * sizeof *r->headers);
	for (size_t i = 0; r->headers && i < n; i++)
		if (!(r->headers[i] = uar_arena_str(&r->arena, uar_str_c(headers[i])).p))
			return UAR_ENOMEM;
	return r->headers ? UAR_OK : UAR_ENOMEM;
}

static void destroy(struct uar_remotes *base)
{
	struct a2a_host *h = of(base);

	while (!uar_list_empty(&h->open))
		remote_close(UAR_OWNER(h->open.next, struct uar_remote, node));
	a2a_cards_fini(&h->cards);
	uar_free(h);
}

static const struct uar_remotes_ops ops = {
	.abi = 1,
	.size = sizeof ops,
	.destroy = destroy,
	.open = remote_open,
	.set_headers = remote_set_headers,
	.send = a2a_exchange_send,
	.get = a2a_exchange_get,
	.find = a2a_exchange_find,
	.follow = a2a_exchange_follow,
	.cancel = a2a_exchange_cancel,
	.pause = remote_pause,
	.leave = remote_leave,
	.close = remote_close,
	.abandon = remote_abandon,
};

uar_err uar_remotes_create(struct uar_client *client, int64_t quiet_us, struct uar_remotes **out)
{
	struct a2a_host *h = uar_zalloc(sizeof *h);

	if (!h)
		return UAR_ENOMEM;
	h->base.ops = &ops;
	h->client = client;
	h->quiet_us = quiet_us;
	uar_list_init(&h->open);
	*out = &h->base;
	return UAR_OK;
}

void uar_remotes_destroy(struct uar_remotes *h)
{
	if (h)
		h->ops->destroy(h);
}
