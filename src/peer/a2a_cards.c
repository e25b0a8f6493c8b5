/* a2a_cards.c - cards of agents elsewhere, kept in memory by their address. */
#include "base/alloc.h"
#include "peer/a2a_int.h"

struct a2a_kept_card *a2a_cards_find(struct a2a_cards *c, uar_str url)
{
	for (size_t i = 0; i < ARRAY_LEN(c->at); i++)
		if (c->at[i].url && uar_str_is(url, c->at[i].url))
			return &c->at[i];
	return NULL;
}

static void drop(struct a2a_kept_card *k)
{
	uar_free((char *)k->url);
	uar_free((char *)k->etag);
	uar_free((char *)k->text);
	*k = (struct a2a_kept_card){ 0 };
}

static char *copy_of(const char *text)
{
	size_t n = text ? strlen(text) : 0;
	char *c = uar_alloc(n + 1);

	if (c && n)
		memcpy(c, text, n);
	if (c)
		c[n] = 0;
	return c;
}

/* The one that was looked at longest ago makes room. */
void a2a_cards_keep(struct a2a_cards *c, const struct a2a_kept_card *card)
{
	struct a2a_kept_card *to = a2a_cards_find(c, uar_str_c(card->url));

	for (size_t i = 0; i < ARRAY_LEN(c->at) && !to; i++)
		to = c->at[i].url ? NULL : &c->at[i];
	if (!to)
		to = &c->at[0];
	for (size_t i = 0; i < ARRAY_LEN(c->at) && to->url && strcmp(to->url, card->url) != 0; i++)
		if (c->at[i].checked_us < to->checked_us)
			to = &c->at[i];
	drop(to);
	*to = (struct a2a_kept_card){ copy_of(card->url), copy_of(card->etag), copy_of(card->text),
				      card->checked_us };
	if (!to->url || !to->etag || !to->text)
		drop(to);
}

void a2a_cards_forget(struct a2a_cards *c, uar_str url)
{
	struct a2a_kept_card *k = a2a_cards_find(c, url);

	if (k)
		drop(k);
}

void a2a_cards_fini(struct a2a_cards *c)
{
	for (size_t i = 0; i < ARRAY_LEN(c->at); i++)
		drop(&c->at[i]);
}
