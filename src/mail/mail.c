/* mail.c - the mailer's life. */
#include "mail/push_int.h"

static void stop_mailer(struct rt_part *p)
{
	struct uar_mailer *ml = UAR_OWNER(p, struct uar_mailer, part);

	rt_outboxes_stop(ml);
	rt_pushes_stop(ml);
}

static void mailer_committed(struct rt_part *p, const struct rt_commit *c)
{
	rt_pushes_committed(UAR_OWNER(p, struct uar_mailer, part), c);
}

static void mailer_evicted(struct rt_part *p, const struct uar_owner *owner, uar_str run_id)
{
	rt_pushes_evicted(UAR_OWNER(p, struct uar_mailer, part), owner, run_id);
}

/* Inboxes are operations under way, which the engine has dropped before. */
static void destroy_mailer(struct rt_part *p)
{
	struct uar_mailer *ml = UAR_OWNER(p, struct uar_mailer, part);

	rt_outboxes_fini(ml);
	rt_pushes_fini(ml);
	uar_map_fini(&ml->in);
	uar_free(ml);
}

uar_err uar_mailer_create(struct uar_runtime *rt, struct uar_peers *peers,
			  struct uar_pushes *pushes, struct uar_mailer **out)
{
	struct uar_mailer *ml = uar_zalloc(sizeof *ml);

	if (!ml)
		return UAR_ENOMEM;
	ml->rt = rt;
	ml->peers = peers;
	uar_map_init(&ml->in, rt_hash_seed(rt));
	uar_map_init(&ml->out, rt_hash_seed(rt));
	rt_pushes_init(ml, pushes);
	ml->part = (struct rt_part){ .committed = mailer_committed,
				     .evicted = mailer_evicted,
				     .stop = stop_mailer,
				     .destroy = destroy_mailer };
	rt_part_add(rt, &ml->part);
	*out = ml;
	return UAR_OK;
}

uar_str uar_mailer_own_name(const struct uar_mailer *ml)
{
	return ml->peers ? ml->peers->own_name : UAR_STR_NONE;
}
