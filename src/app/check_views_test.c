/* check_views_test.c - a stored snapshot is what its events lead to, or it is named. */
#include "app/check_views.h"

#include "base/sha256.h"
#include "event/limits.h"
#include "test.h"

static struct uar_event told(uint64_t sequence, const char *payload)
{
	struct uar_event ev = { .cls = UAR_EV_SESSION_CREATED,
				.event_id = UAR_STR("e"),
				.sequence = sequence,
				.payload = uar_str_c(payload) };

	ev.ids[UAR_ID_TENANT] = UAR_STR("a");
	ev.ids[UAR_ID_WORKSPACE] = UAR_STR("b");
	ev.ids[UAR_ID_USER] = UAR_STR("c");
	ev.ids[UAR_ID_SESSION] = UAR_STR("s");
	return ev;
}

/* The row of a snapshot behind the event; its strings are in the arena. */
static struct uar_row_snapshot snapshot_of(const struct uar_event *ev, struct uar_arena *arena)
{
	struct uar_row_snapshot snap = { .row = { .kind = UAR_ROW_SNAPSHOT,
						  .id = UAR_STR("s"),
						  .status = UAR_STR("current"),
						  .owner = { UAR_STR("a"), UAR_STR("b"),
							     UAR_STR("c") } },
					 .through = (int64_t)ev->sequence };
	struct uar_buf text = uar_buf_make(UAR_LIMIT_ROW_BYTES);
	char sha256[UAR_SHA256_TEXT + 1];
	struct uar_sview view;

	uar_sview_init(&view);
	CHECK_INT(uar_sview_fold(&view, ev), UAR_OK);
	CHECK_INT(uar_sview_write(&view, &text), UAR_OK);
	uar_sview_fini(&view);
	snap.model = uar_arena_str(arena, uar_buf_str(&text));
	uar_sha256_hex(snap.model, sha256);
	snap.sha256 = uar_arena_str(arena, uar_str_c(sha256));
	uar_buf_fini(&text);
	CHECK_INT(uar_row_pack(&snap.row, arena, NULL), UAR_OK);
	return snap;
}

/* So many snapshots are right; what is wrong is in `problems`. */
static size_t judge(const struct uar_event *stored, const struct uar_event *log,
		    struct uar_buf *problems)
{
	struct uar_view_check k;
	struct uar_arena arena;
	struct uar_row_snapshot snap;
	size_t right;

	uar_arena_init(&arena, 0);
	snap = snapshot_of(stored, &arena);
	uar_view_check_init(&k, problems);
	CHECK_INT(uar_view_check_row(&k, &snap.row), UAR_OK);
	CHECK_INT(k.wanted, 1);
	CHECK_INT(uar_view_check_event(&k, log), UAR_OK);
	right = k.right;
	uar_view_check_fini(&k);
	uar_arena_fini(&arena);
	return right;
}

TEST(a_snapshot_that_its_events_do_not_lead_to_is_named, "VAL-10 SNAP-17")
{
	struct uar_buf problems = uar_buf_make(4096);
	struct uar_event ev = told(1, "{\"source\":\"api\"}"),
			 other = told(1, "{\"source\":\"page\"}");

	CHECK_INT(judge(&ev, &ev, &problems), 1);
	CHECK_INT(problems.n, 0);
	CHECK_INT(judge(&other, &ev, &problems), 0);
	CHECK(strstr(problems.p, "rule snapshot: the stored snapshot of session s at sequence 1"));
	uar_buf_fini(&problems);
}
