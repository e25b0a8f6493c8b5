/* seal_test.c - what is sealed is opened by its key, for what it belongs to, unchanged. */
#include "base/seal.h"

#include "test.h"

static uar_err opens(const struct uar_seal_key *key, uar_str sealed, const char *about,
		     struct uar_buf *out)
{
	uar_buf_clear(out);
	return uar_unseal(key, sealed, uar_str_c(about), out);
}

TEST(a_seal_is_opened_by_its_key_for_its_purpose_alone, "")
{
	struct uar_seal_key key = { { 1, 2, 3 } }, other = { { 1, 2, 4 } };
	struct uar_buf sealed = uar_buf_make(4096), plain = uar_buf_make(4096);
	uar_str secret = UAR_STR("{\"password\":\"hunter2\"}");

	CHECK_INT(uar_seal(&key, &uar_rand_system, secret, UAR_STR("run.1"), &sealed), UAR_OK);
	CHECK(!memmem(sealed.p, sealed.n, "hunter2", 7));
	CHECK_INT(opens(&key, uar_buf_str(&sealed), "run.1", &plain), UAR_OK);
	CHECK_STR(uar_buf_str(&plain), "{\"password\":\"hunter2\"}");
	CHECK_INT(opens(&key, uar_buf_str(&sealed), "run.2", &plain), UAR_ECORRUPT);
	CHECK_INT(opens(&other, uar_buf_str(&sealed), "run.1", &plain), UAR_ECORRUPT);
	CHECK_INT(plain.n, 0);
	for (size_t i = 0; i < sealed.n; i++) {
		sealed.p[i] ^= 1;
		CHECK_INT(opens(&key, uar_buf_str(&sealed), "run.1", &plain), UAR_ECORRUPT);
		sealed.p[i] ^= 1;
	}
	for (size_t n = 0; n < sealed.n; n++)
		CHECK_INT(opens(&key, uar_str_n(sealed.p, n), "run.1", &plain), UAR_ECORRUPT);
	uar_buf_clear(&sealed);
	CHECK_INT(uar_seal(&key, &uar_rand_system, UAR_STR(""), UAR_STR("x"), &sealed), UAR_OK);
	CHECK_INT(opens(&key, uar_buf_str(&sealed), "x", &plain), UAR_OK);
	CHECK_INT(plain.n, 0);
	uar_buf_fini(&sealed);
	uar_buf_fini(&plain);
}
