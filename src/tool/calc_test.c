/* calc_test.c - arithmetic, right and wrong. */
#include "test.h"
#include "tooled.h"

#include "tool/internal_int.h"
#include "tool/limits.h"

TEST(values_are_right, "")
{
	static const struct {
		const char *text;
		double value;
	} cases[] = {
		{ "1", 1 },
		{ " 1 + 2 * 3 ", 7 },
		{ "(1+2)*3", 9 },
		{ "10-3-2", 5 },
		{ "100/10/2", 5 },
		{ "7%4", 3 },
		{ "-7%4", -3 },
		{ "7.5%2", 1.5 },
		{ "2^10", 1024 },
		{ "2^3^2", 512 },
		{ "-2^2", -4 },
		{ "(-2)^2", 4 },
		{ "2^-1", 0.5 },
		{ "--1", 1 },
		{ "+-+1", -1 },
		{ "1.5e3", 1500 },
		{ "1E-2*100", 1 },
		{ "0*-1", 0 },
		{ "0.1+0.2", 0.1 + 0.2 },
		{ "((((((((((1))))))))))", 1 },
		{ "9007199254740993-9007199254740992", 0 }, /* doubles, no more */
		{ "2\n*\t3", 6 },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		double v = -1;
		struct uar_error error = { 0 };

		CHECK_MSG(uar_calc_evaluate(uar_str_c(cases[i].text), &v, &error) == UAR_OK,
			  "%s: %s", cases[i].text, error.text);
		CHECK_MSG(v == cases[i].value, "%s is %.17g", cases[i].text, v);
	}
}

TEST(what_is_wrong_is_named, "")
{
	static const struct {
		const char *text, *where;
		uar_err e;
	} cases[] = {
		{ "", "1", UAR_EINVALID },	  { "1+", "3", UAR_EINVALID },
		{ "(1", "3", UAR_EINVALID },	  { "1)", "2", UAR_EINVALID },
		{ "1 2", "3", UAR_EINVALID },	  { "1/0", "4", UAR_EINVALID },
		{ "1%(2-2)", "8", UAR_EINVALID }, { "007", "1", UAR_EINVALID },
		{ "1.", "1", UAR_EINVALID },	  { ".5", "1", UAR_EINVALID },
		{ "1e", "2", UAR_EINVALID },	  { "1e+", "1", UAR_EINVALID },
		{ "1..2", "1", UAR_EINVALID },	  { "pi", "1", UAR_EINVALID },
		{ "2**3", "3", UAR_EINVALID },	  { "1e999", "1", UAR_EINVALID },
		{ "10^999", "", UAR_ENUMBER },	  { "(-8)^(1/3)", "", UAR_ENUMBER },
		{ "0^-1", "", UAR_ENUMBER },
	};

	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		double v = -1;
		struct uar_error error = { 0 };
		uar_err e = uar_calc_evaluate(uar_str_c(cases[i].text), &v, &error);

		CHECK_MSG(e == cases[i].e, "%s: %s", cases[i].text, uar_err_name(e));
		CHECK_STR(uar_str_c(error.where), cases[i].where);
		CHECK(v == -1 && error.text[0]);
	}
}

TEST(size_and_depth_are_bounded, "")
{
	static char text[UAR_LIMIT_CALC_BYTES + 1];
	static const char openers[] = "(-+";
	double v;

	for (size_t i = 0; i < sizeof openers - 1; i++) {
		memset(text, openers[i], sizeof text);
		text[UAR_LIMIT_CALC_BYTES - 1] = '1';
		CHECK_INT(uar_calc_evaluate(uar_str_n(text, UAR_LIMIT_CALC_BYTES), &v, NULL),
			  UAR_EDEPTH);
	}
	for (size_t i = 0; i < sizeof text; i++)
		text[i] = i % 2 ? '^' : '1';
	CHECK_INT(uar_calc_evaluate(uar_str_n(text, UAR_LIMIT_CALC_BYTES - 1), &v, NULL),
		  UAR_EDEPTH);
	CHECK_INT(uar_calc_evaluate(uar_str_n(text, sizeof text), &v, NULL), UAR_ETOOBIG);
	for (size_t i = 1; i < sizeof text; i += 2)
		text[i] = '+';
	CHECK_INT(uar_calc_evaluate(uar_str_n(text, UAR_LIMIT_CALC_BYTES - 1), &v, NULL), UAR_OK);
	CHECK_INT(v, UAR_LIMIT_CALC_BYTES / 2);
}

TEST(the_tool_tells_value_or_reason, "")
{
	struct tooled f;

	REQUIRE(tooled_init(&f, NULL));
	CHECK(tooled_call(&f, "internal:math.evaluate", "{\"expression\":\"6*7\"}"));
	CHECK_STR(uar_buf_str(&f.output), "{\"value\":42}");
	CHECK(tooled_fails(&f, "internal:math.evaluate", "{\"expression\":\"1/0\"}",
			   "value_invalid", "division by zero at character 4"));
	CHECK(!f.retryable);
	CHECK(!tooled_try(&f, "internal:math.evaluate", "{}"));
	tooled_fini(&f);
}
