/* blocks_test.c - fenced blocks, however the text is cut. */
#include "agent/blocks.h"

#include <string.h>

#include "agent/limits.h"
#include "base/alloc.h"
#include "test.h"

static const struct {
	const char *text;
	size_t count;
	const char *language, *title, *first; /* of the first one */
} cases[] = {
	{ "no block at all", 0, NULL, NULL, NULL },
	{ "see:\n```html\n<p>hi</p>\n```\nbye", 1, "html", "", "<p>hi</p>\n" },
	{ "```Python main.py\nprint(1)\n\nprint(2)\n```", 1, "python", "main.py",
	  "print(1)\n\nprint(2)\n" },
	{ "~~~~c\n~~~\n```\n~~~~\n", 1, "c", "", "~~~\n```\n" },
	{ "```js\na\n````\n", 1, "js", "", "a\n" },
	{ "   ```c++ {.numbers}\r\nint i;\r\n   ```\r\n", 1, "c++", "{.numbers}", "int i;\r\n" },
	{ "```\nno language\n```\n```sql\nselect 1\n```\n", 1, "sql", "", "select 1\n" },
	{ "    ```c\nindented too far\n```\n", 0, NULL, NULL, NULL },
	{ "a ```c\nnot at the beginning\n```\n", 0, NULL, NULL, NULL },
	{ "```c inline``` code\nx\n", 0, NULL, NULL, NULL },
	{ "```c\nnever ends\n``\n", 0, NULL, NULL, NULL },
	{ "```c\n```\n", 0, NULL, NULL, NULL },
	{ "``` <script>\nx\n```\n", 0, NULL, NULL, NULL },
	{ "```a\n1\n```\n```b\n2\n```\n", 2, "a", "", "1\n" },
};

static void feed(struct uar_blocks *b, const char *text, size_t step)
{
	size_t n = strlen(text);

	uar_blocks_init(b);
	for (size_t at = 0; at < n; at += step)
		uar_blocks_feed(b, uar_str_n(text + at, n - at < step ? n - at : step));
	uar_blocks_end(b);
}

TEST(blocks_are_found_however_the_text_is_cut, "")
{
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		for (size_t step = 1; step <= strlen(cases[i].text); step++) {
			struct uar_blocks b;

			feed(&b, cases[i].text, step);
			CHECK_MSG(b.count == cases[i].count, "case %zu step %zu: %zu", i, step,
				  b.count);
			if (b.count && cases[i].count) {
				CHECK_STR(uar_str_c(b.at[0].language), cases[i].language);
				CHECK_STR(uar_str_c(b.at[0].title), cases[i].title);
				CHECK_STR(uar_buf_str(&b.at[0].text), cases[i].first);
			}
			uar_blocks_fini(&b);
		}
}

TEST(too_many_and_too_long_ones_are_counted, "")
{
	struct uar_blocks b;

	uar_blocks_init(&b);
	uar_blocks_feed(&b, UAR_STR("```c\n"));
	for (int i = 0; i < UAR_LIMIT_ANSWER_BLOCK_BYTES / 4 + 1; i++)
		uar_blocks_feed(&b, UAR_STR("1234"));
	uar_blocks_feed(&b, UAR_STR("\n```\n"));
	CHECK_INT(b.count, 0);
	CHECK_INT(b.dropped, 1);
	for (int i = 0; i < UAR_LIMIT_ANSWER_BLOCKS + 2; i++)
		uar_blocks_feed(&b, UAR_STR("```c\nx\n```\n"));
	uar_blocks_end(&b);
	CHECK_INT(b.count, UAR_LIMIT_ANSWER_BLOCKS);
	CHECK_INT(b.dropped, 3);
	uar_blocks_fini(&b);
}

static int refuse(void *ctx)
{
	(void)ctx;
	return 1;
}

TEST(without_memory_a_block_is_dropped_and_the_text_goes_on, "")
{
	struct uar_blocks b;

	uar_blocks_init(&b);
	uar_alloc_set_hook(refuse, NULL);
	uar_blocks_feed(&b, UAR_STR("```c\nx\n```\n"));
	uar_alloc_set_hook(NULL, NULL);
	uar_blocks_feed(&b, UAR_STR("```c\ny\n```\n"));
	uar_blocks_end(&b);
	CHECK_INT(b.count, 1);
	CHECK_INT(b.dropped, 1);
	uar_blocks_fini(&b);
}

TEST(kinds_of_artifacts, "")
{
	struct uar_block html = { .language = "html" }, rust = { .language = "rust" };

	CHECK_STR(uar_str_c(uar_block_type(&html)), "html");
	CHECK_STR(uar_str_c(uar_block_mime(&html)), "text/html");
	CHECK_STR(uar_str_c(uar_block_type(&rust)), "code");
	CHECK_STR(uar_str_c(uar_block_mime(&rust)), "text/plain");
}
