/* manifest_test.c - good manifests, and what is wrong with the others. */
#include "plugin/manifest.h"

#include "test.h"

static uar_err verdict(const char *text, struct uar_error *error)
{
	struct uar_manifest m;
	uar_err e = uar_manifest_read(uar_str_c(text), "/", &m, error);

	if (!e)
		uar_manifest_fini(&m);
	return e;
}

TEST(a_manifest_is_read, "PLUG-14")
{
	static const char text[] =
		"{\"id\":\"a.b\",\"version\":\"1\",\"command\":[\"x\",\"y\"],\"concurrency\":3,"
		"\"processes\":2,\"env\":[\"A\"],\"cancel_grace_seconds\":0.5,\"entries\":["
		"{\"id\":\"e\",\"args_schema\":{\"type\":\"object\"},\"timeout_seconds\":2},"
		"{\"id\":\"f\",\"restart\":\"retry\"}]}";
	struct uar_error error = { 0 };
	struct uar_manifest m;

	REQUIRE(uar_manifest_read(uar_str_c(text), "/dir", &m, &error) == UAR_OK);
	CHECK_STR(m.id, "a.b");
	CHECK_STR(uar_str_c(m.command[1]), "y");
	CHECK(m.command[2] == NULL);
	CHECK_INT(m.cancel_grace_us, 500000);
	CHECK_INT(m.entry_count, 2);
	CHECK(uar_manifest_entry(&m, UAR_STR("e"))->args != NULL);
	CHECK(uar_manifest_entry(&m, UAR_STR("e"))->info.restart_fails);
	CHECK_INT(uar_manifest_entry(&m, UAR_STR("e"))->info.timeout_us, 2000000);
	CHECK(!uar_manifest_entry(&m, UAR_STR("f"))->info.restart_fails);
	CHECK_INT(uar_manifest_entry(&m, UAR_STR("f"))->info.concurrency, 6);
	CHECK(uar_manifest_entry(&m, UAR_STR("g")) == NULL);
	uar_manifest_fini(&m);
}

#define WITH(ID, REST) "{\"id\":\"" ID "\",\"version\":\"1\",\"command\":[\"x\"]," REST "}"

#define OF(KIND) "{\"id\":\"p\",\"version\":\"1\"," KIND "\"entries\":[{\"id\":\"e\"}]}"

TEST(wrong_manifests_are_refused, "")
{
	static const struct {
		const char *text;
		uar_err want;
	} cases[] = {
		{ WITH("p", "\"entries\":[{\"id\":\"e\"}]"), UAR_OK },
		{ "{", UAR_ESYNTAX },
		{ "[]", UAR_ESCHEMA },
		{ WITH("P", "\"entries\":[{\"id\":\"e\"}]"), UAR_ESCHEMA },
		{ WITH("uar.x", "\"entries\":[{\"id\":\"e\"}]"), UAR_ESCHEMA },
		{ WITH("p", "\"entries\":[]"), UAR_ESCHEMA },
		{ WITH("p", "\"entries\":[{\"id\":\"e\"}],\"extra\":1"), UAR_ESCHEMA },
		{ WITH("p", "\"entries\":[{\"id\":\"e\",\"restart\":\"maybe\"}]"), UAR_ESCHEMA },
		{ WITH("p", "\"entries\":[{\"id\":\"e\"},{\"id\":\"e\"}]"), UAR_EEXISTS },
		{ WITH("p", "\"concurrency\":0,\"entries\":[{\"id\":\"e\"}]"), UAR_ESCHEMA },
		{ WITH("p", "\"entries\":[{\"id\":\"e\",\"args_schema\":{\"type\":\"nonsense\"}}]"),
		  UAR_EINVALID },
		{ WITH("p", "\"library\":\"x.so\",\"entries\":[{\"id\":\"e\"}]"), UAR_ESCHEMA },
		{ OF("\"library\":\"x.so\","), UAR_OK },
		{ OF("\"library\":\"../x.so\","), UAR_ESCHEMA },
		{ OF("\"library\":\"/x.so\","), UAR_ESCHEMA },
		{ OF("\"library\":\"x.so\",\"processes\":1,"), UAR_ESCHEMA },
		{ OF("\"library\":\"x.so\",\"env\":[],"), UAR_ESCHEMA },
		{ OF(""), UAR_ESCHEMA },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct uar_error error = { 0 };
		uar_err e = verdict(cases[i].text, &error);

		CHECK_MSG(e == cases[i].want, "%s: %s %s", cases[i].text, uar_err_name(e),
			  error.text);
	}
}
