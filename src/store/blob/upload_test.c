/* upload_test.c - blobs that arrive in pieces, in both stores. */
#include "store/world_test.h"

#include "base/sha256.h"
#include "store/store_int.h"

static bool told;

static uar_err step(struct world *w, struct uar_upload_op *op, uar_str bytes)
{
	op->bytes = bytes;
	return upload_step(w, op);
}

static void got(struct uar_blob_get *b)
{
	(void)b;
	told = true;
}

static bool reads(struct world *w, const char *sha256, uar_str want)
{
	struct uar_blob_get b = { .limit = 1 << 20, .done = got };
	bool same;

	snprintf(b.sha256, sizeof b.sha256, "%s", sha256);
	told = false;
	if (w->store->ops->blob_get(w->store, &b))
		return false;
	uar_pump_until(&w->pump, &told);
	same = !b.err && uar_str_eq(b.bytes, want);
	uar_store_blob_get_fini(&b);
	return same;
}

BOTH(pieces_become_one_blob, "EXP-21")
{
	struct uar_upload_op op = { 0 };
	char want[65];

	CHECK_INT(step(w, &op, UAR_STR("one ")), UAR_OK);
	CHECK(op.upload && op.total == 4);
	CHECK_INT(step(w, &op, UAR_STR("")), UAR_OK);
	op.finish = true;
	CHECK_INT(step(w, &op, UAR_STR("two")), UAR_OK);
	CHECK(!op.upload && op.total == 7);
	uar_sha256_hex(UAR_STR("one two"), want);
	CHECK_STR(uar_str_c(op.sha256), want);
	CHECK(reads(w, want, UAR_STR("one two")));
	/* the same bytes once more are the same blob */
	op = (struct uar_upload_op){ .finish = true, .expect = uar_str_c(want) };
	CHECK_INT(step(w, &op, UAR_STR("one two")), UAR_OK);
	CHECK(reads(w, want, UAR_STR("one two")));
}

BOTH(wrong_bytes_leave_nothing, "EXP-21")
{
	struct uar_upload_op op = { .finish = true };
	char other[65], sum[65];

	uar_sha256_hex(UAR_STR("other"), other);
	uar_sha256_hex(UAR_STR("these"), sum);
	op.expect = uar_str_c(other);
	CHECK_INT(step(w, &op, UAR_STR("these")), UAR_EINVALID);
	CHECK(!op.upload);
	CHECK(!reads(w, sum, UAR_STR("these")));
	/* one that is dropped is gone, too */
	op = (struct uar_upload_op){ 0 };
	CHECK_INT(step(w, &op, UAR_STR("these")), UAR_OK);
	REQUIRE(op.upload);
	op.upload->drop(op.upload);
	CHECK(!reads(w, sum, UAR_STR("these")));
}

BOTH(an_upload_outlives_nothing_it_needs, "")
{
	struct uar_upload_op op = { 0 };

	CHECK_INT(step(w, &op, UAR_STR("these")), UAR_OK);
	REQUIRE(op.upload);
	uar_facts_drain(&w->pump, w->store);
	uar_store_destroy(w->store);
	op.upload->drop(op.upload);
	uar_pump_fini(&w->pump);
	open_world(w, w->sqlite);
}
