/* regex_test.c - syntax, meaning and cost of regular expressions. */
#include "json/regex.h"
#include "base/buf.h"
#include "test.h"

#define YES true
#define NO  false

static const struct {
	const char *pattern, *text;
	bool found;
} matches[] = {
	{ "", "", YES },
	{ "", "abc", YES },
	{ "b", "abc", YES },
	{ "d", "abc", NO },
	{ "^b", "abc", NO },
	{ "^a", "abc", YES },
	{ "c$", "abc", YES },
	{ "^abc$", "abc\n", NO },
	{ "a|b", "xbx", YES },
	{ "^(a|bc)$", "bc", YES },
	{ "^(a|bc)$", "b", NO },
	{ "^(a|b|)$", "", YES },
	{ "^a*$", "aaaa", YES },
	{ "^a*$", "aab", NO },
	{ "^a+b?$", "aa", YES },
	{ "^a+b?$", "b", NO },
	{ "^a{3}$", "aaa", YES },
	{ "^a{3}$", "aa", NO },
	{ "^a{2,}$", "aaaaa", YES },
	{ "^a{2,}$", "a", NO },
	{ "^a{2,3}$", "aaaa", NO },
	{ "^a{2,3}?$", "aaa", YES },
	{ "^a{0}$", "", YES },
	{ "^(ab){2}c$", "ababc", YES },
	{ "^((a|b)*c)+$", "abcbac", YES },
	{ "^.$", "\xC3\xA4", YES },
	{ "^.$", "\xF0\x9F\x98\x80", YES },
	{ "^.$", "\n", NO },
	{ "^.$", "\xE2\x80\xA8", NO },
	{ "^[abc]$", "b", YES },
	{ "^[^abc]$", "b", NO },
	{ "^[^abc]$", "\xC3\xA4", YES },
	{ "^[a-c]$", "c", YES },
	{ "^[a-c]$", "d", NO },
	{ "^[]$", "a", NO },
	{ "^[^]$", "a", YES },
	{ "^[a\\-z]$", "-", YES },
	{ "^[a-]$", "-", YES },
	{ "^[-a]$", "-", YES },
	{ "^[\\w-]$", "-", YES },
	{ "^[\\d.]+$", "1.2.3", YES },
	{ "^[^\\d]$", "5", NO },
	{ "^[\\D]$", "5", NO },
	{ "^[\\b]$", "\b", YES },
	{ "^[\xC3\xA4-\xC3\xBC]$", "\xC3\xB6", YES },
	{ "^\\d$", "\xDF\x80", NO },
	{ "^\\w+$", "aZ_09", YES },
	{ "^\\W$", "\xC3\xA9", YES },
	{ "^\\s$", "\xC2\xA0", YES },
	{ "^\\s$", "\xEF\xBB\xBF", YES },
	{ "^\\s$", "\xE2\x80\xA9", YES },
	{ "^\\S$", "\t", NO },
	{ "^\\cC$", "\x03", YES },
	{ "^\\x41\\u0042\\u{43}$", "ABC", YES },
	{ "^\\ud83d\\ude00$", "\xF0\x9F\x98\x80", YES },
	{ "^\\u{1F600}$", "\xF0\x9F\x98\x80", YES },
	{ "^\\.\\*\\/\\@$", ".*/@", YES },
	{ "^{a}$", "{a}", YES },
	{ "^a{,2}$", "a{,2}", YES },
	{ "^]$", "]", YES },
	{ "^\\p{Letter}+$", "a\xC3\xA9\xD0\x96", YES },
	{ "^\\p{L}$", "1", NO },
	{ "^\\P{L}$", "1", YES },
	{ "^\\p{Lu}$", "\xC4\x80", YES }, /* U+0100, in an alternating run */
	{ "^\\p{Lu}$", "\xC4\x81", NO },
	{ "^\\p{Ll}$", "\xC4\x81", YES },
	{ "^\\p{digit}+$", "\xE0\xA7\xAA\xE0\xA7\xA8", YES },
	{ "^\\p{gc=Nd}$", "7", YES },
	{ "^\\p{General_Category=Uppercase_Letter}$", "A", YES },
	{ "^\\p{Any}$", "\xF4\x8F\xBF\xBF", YES },
	{ "^\\p{ASCII}$", "\xC3\xA9", NO },
	{ "^[\\p{L}\\p{Nd}_]+$", "x\xC3\xA9_9", YES },
	{ "^\\p{Cn}$", "\xCD\xB8", YES }, /* U+0378 is unassigned */
	{ "\\bfoo\\b", "a foo b", YES },
	{ "\\bfoo\\b", "afoo b", NO },
	{ "\\Boo\\b", "foo", YES },
	{ "^(?:ab)+$", "abab", YES },
	{ "^(?<year>\\d{4})-(?<m>\\d\\d)$", "2024-02", YES },
	/* looks */
	{ "^(?=a)", "abc", YES },
	{ "^(?=b)", "abc", NO },
	{ "^(?!b)a", "abc", YES },
	{ "^(?!.*secret)", "my secret", NO },
	{ "^(?!.*secret)", "my name", YES },
	{ "^(?=.*\\d)(?=.*[a-z]).{4,}$", "abc1", YES },
	{ "^(?=.*\\d)(?=.*[a-z]).{4,}$", "abcd", NO },
	{ "(?<=\\$)\\d+$", "cost $42", YES },
	{ "(?<=\\$)\\d+$", "cost 42", NO },
	{ "(?<!\\$)\\b\\d+$", "cost $42", NO },
	{ "^(?=(?!ab)a)a", "ac", YES },
	{ "^(?=(?!ab)a)a", "ab", NO },
	{ "^(?:(?!--)\\w|-(?!-))+$", "a-b-c", YES },
	{ "^(?:(?!--)\\w|-(?!-))+$", "a--c", NO },
	{ "(?=\xC3\xA4)", "x\xC3\xA4", YES },
	{ "(?<=\xC3\xA4)x", "\xC3\xA4x", YES },
	{ "^(?!^$).*$", "", NO },
	{ "(?=a$)a", "ba", YES },
};

TEST(finds_what_is_there, "")
{
	for (size_t i = 0; i < ARRAY_LEN(matches); i++) {
		struct uar_regex *re = NULL;
		uint64_t steps = 100000;
		bool found = !matches[i].found;
		struct uar_error error = { 0 };

		if (!CHECK_MSG(!uar_regex_create(uar_str_c(matches[i].pattern), &re, &error),
			       "%s: %s", matches[i].pattern, error.text))
			continue;
		CHECK_INT(uar_regex_match(re, uar_str_c(matches[i].text), &steps, &found), UAR_OK);
		CHECK_MSG(found == matches[i].found, "/%s/ in \"%s\"", matches[i].pattern,
			  matches[i].text);
		uar_regex_destroy(re);
	}
}

static const char *const refused[] = {
	"(",	  ")",	      "(a",	     "a)",     "[",	  "[a",	    "[b-a]",  "[a-\\d]",
	"*",	  "+a",	      "?",	     "a**",    "a{2}{3}", "^*",	    "a|*",    "a{3,2}",
	"\\",	  "\\1",      "(a)\\1",	     "\\k<n>", "\\a",	  "\\Z",    "\\z",    "\\A",
	"\\u12",  "\\u{}",    "\\u{110000}", "\\xg0",  "\\08",	  "\\c1",   "\\p",    "\\p{Foo}",
	"\\p{L",  "(?P<n>x)", "(?#c)a",	     "(?i)a",  "(?>a)",	  "(?<1a>", "(?<>a)", "(?",
	"(?=a)*", "\\b+",     "[\\q]",	     "(?<n",   "\\_",	  "a\xFF",
};

TEST(refuses_what_it_cannot_do, "")
{
	for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
		struct uar_regex *re = NULL;
		struct uar_error error = { 0 };
		uar_err e = uar_regex_create(uar_str_c(refused[i]), &re, &error);

		CHECK_MSG(e == UAR_EINVALID || e == UAR_ENOTIMPL, "/%s/: %s", refused[i],
			  uar_err_name(e));
		CHECK(error.text[0] && error.where[0]);
		uar_regex_destroy(re);
	}
}

static uar_err create_repeated(const char *piece, unsigned times)
{
	struct uar_buf b = uar_buf_make(1 << 20);
	struct uar_regex *re = NULL;
	uar_err e;

	for (unsigned i = 0; i < times; i++)
		uar_buf_printf(&b, "%s", piece);
	e = uar_regex_create(uar_buf_str(&b), &re, NULL);
	uar_regex_destroy(re);
	uar_buf_fini(&b);
	return e;
}

TEST(size_is_bounded, "")
{
	static const char *const huge[] = {
		"a{40000}",
		"(a{300}){300}",
		"((((a{99}){99}){99}){99}){99}",
		"(){4000000000}",
		"((){60000}){60000}",
		"(?:(?:){99999}){99999}",
		"(a{0,5000}){0,5000}",
		"(((x{1,100}){1,100}){1,100}){1,100}",
		"a{999999999999999999999999}",
	};

	for (size_t i = 0; i < ARRAY_LEN(huge); i++)
		CHECK_MSG(create_repeated(huge[i], 1) == UAR_ETOOBIG, "%s", huge[i]);
	CHECK_INT(create_repeated("a", 4096), UAR_OK);
	CHECK_INT(create_repeated("a", 4097), UAR_ETOOBIG);
	CHECK_INT(create_repeated("(", 2000), UAR_EINVALID);
	CHECK_INT(create_repeated("(?=", 150), UAR_EINVALID);
	CHECK_INT(create_repeated("(?=a)", 33), UAR_ETOOBIG);
	CHECK_INT(create_repeated("\\p{L}", 800), UAR_OK);
	CHECK_INT(create_repeated("[^\\p{L}\\P{Nd}]", 200), UAR_OK);
}

/* Patterns that take backtrackers exponential time: here steps are counted. */
TEST(cost_is_linear_in_the_text, "")
{
	static const char *const evil[] = {
		"^(a+)+$",
		"^(a|a)*$",
		"^(a|aa)+$",
		"(.*)*x",
		"^(([a-z])+.)+[A-Z]([a-z])+$",
		"(a?){30}a{30}x",
		"(.+)+\\d+Q",
		"^(?=(a+)+b)a*$",
		"^(a*)*(a*)*(a*)*!$",
	};
	struct uar_buf b = uar_buf_make(1 << 20);

	for (unsigned i = 0; i < 10000; i++)
		uar_buf_add_char(&b, 'a');
	for (size_t i = 0; i < ARRAY_LEN(evil); i++) {
		struct uar_regex *re = NULL;
		uint64_t steps = 4000000, few = 1000;
		bool found = true;

		REQUIRE(!uar_regex_create(uar_str_c(evil[i]), &re, NULL));
		CHECK_MSG(!uar_regex_match(re, uar_buf_str(&b), &steps, &found), "%s", evil[i]);
		if (i > 2)
			CHECK_MSG(!found, "%s", evil[i]);
		CHECK_INT(uar_regex_match(re, uar_buf_str(&b), &few, &found), UAR_ETOOBIG);
		uar_regex_destroy(re);
	}
	uar_buf_fini(&b);
}

TEST(survives_every_failed_allocation, "")
{
	static const char pattern[] = "^(?=[\\p{L}-]+$)((a|\\d){2,9}[^b-z]|(x{300})?)*$";
	bool failed = true;

	for (unsigned long n = 1; failed; n++) {
		struct uar_regex *re = NULL;
		uint64_t steps = 100000;
		bool found = false;
		uar_err e;

		uar_test_fail_alloc(n);
		e = uar_regex_create(uar_str_c(pattern), &re, NULL);
		if (!e)
			e = uar_regex_match(re, UAR_STR("aaa"), &steps, &found);
		failed = uar_test_alloc_failed();
		uar_test_fail_alloc(0);
		CHECK_INT(e, failed ? UAR_ENOMEM : UAR_OK);
		uar_regex_destroy(re);
	}
}
