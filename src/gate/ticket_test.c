/* ticket_test.c - upload ids say what was agreed, and only ours do. */
#include "gate/ticket.h"

#include "test.h"

static const struct uar_owner owner = { UAR_STR("t"), UAR_STR("w"), UAR_STR("u") };
static const struct uar_owner stranger = { UAR_STR("t"), UAR_STR("w"), UAR_STR("v") };
static const char hash[] = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

static struct gate_ticket_key key(const char *secret, const struct uar_owner *o)
{
	return (struct gate_ticket_key){ uar_str_c(secret), o };
}

TEST(an_upload_id_says_what_was_agreed, "EXP-21")
{
	static const uint64_t sizes[] = { 0, 1, 4294967296, 1099511627776, GATE_TICKET_ANY };

	for (size_t i = 0; i < 2 * ARRAY_LEN(sizes); i++) {
		struct gate_ticket t = { .run_id = UAR_STR("01a1e306-9a89-73f5-bf0d-9ac5dfbfe286"),
					 .blob_id = "aa3652c645ab8336be7622b9",
					 .size = sizes[i / 2] },
				   got;
		struct uar_buf id = uar_buf_make(UAR_LIMIT_ID_BYTES);
		struct uar_arena a;

		uar_arena_init(&a, 0);
		snprintf(t.sha256, sizeof t.sha256, "%s", i % 2 ? hash : "");
		REQUIRE(gate_ticket_write(key("secret", &owner), &t, &id) == UAR_OK);
		CHECK(uar_str_is_id(uar_buf_str(&id)));
		CHECK(uar_str_find(uar_buf_str(&id), '/') == id.n);
		REQUIRE(gate_ticket_read(key("secret", &owner), &a, uar_buf_str(&id), &got) ==
			UAR_OK);
		CHECK(uar_str_eq(got.run_id, t.run_id));
		CHECK_STR(uar_str_c(got.blob_id), t.blob_id);
		CHECK_STR(uar_str_c(got.sha256), t.sha256);
		CHECK_INT(got.size, t.size);
		uar_arena_fini(&a);
		uar_buf_fini(&id);
	}
}

static bool is_read(struct gate_ticket_key k, uar_str id)
{
	struct gate_ticket got;
	struct uar_arena a;
	uar_err e;

	uar_arena_init(&a, 0);
	e = gate_ticket_read(k, &a, id, &got);
	uar_arena_fini(&a);
	CHECK(e == UAR_OK || e == UAR_ENOTFOUND);
	return e == UAR_OK;
}

TEST(an_upload_id_that_we_did_not_write_is_unknown, "EXP-21")
{
	struct gate_ticket t = { .run_id = UAR_STR("run"), .blob_id = "aa3652c645ab8336be7622b9" };
	struct uar_buf id = uar_buf_make(UAR_LIMIT_ID_BYTES);

	REQUIRE(gate_ticket_write(key("secret", &owner), &t, &id) == UAR_OK);
	CHECK(is_read(key("secret", &owner), uar_buf_str(&id)));
	CHECK(!is_read(key("other", &owner), uar_buf_str(&id)));
	CHECK(!is_read(key("secret", &stranger), uar_buf_str(&id)));
	for (size_t i = 0; i < id.n; i++) {
		char was = id.p[i];

		CHECK(!is_read(key("secret", &owner), uar_str_n(id.p, i)));
		for (int c = 0; c < 256; c++) {
			id.p[i] = (char)c;
			if (id.p[i] != was)
				CHECK_MSG(!is_read(key("secret", &owner), uar_buf_str(&id)),
					  "byte %zu as %d", i, c);
		}
		id.p[i] = was;
	}
	uar_buf_fini(&id);
}
