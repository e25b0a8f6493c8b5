/* plugin_sdk_fuzz.c - the small JSON of the C SDK against the server's: what the SDK
 * takes and sends must be what the server can read, and both must find the same
 * values. */
#include <assert.h>

#include "json/json.h"

#include "../../sdk/c/uar_plugin_json.h"

static void compare_strings(struct json mine, const struct uar_json *theirs)
{
	char *text = malloc((size_t)(mine.end - mine.p));
	size_t n;

	assert(text);
	n = decode(mine, text);
	assert(n == theirs->text.n && !memcmp(text, theirs->text.p, n));
	free(text);
}

static void compare(struct json mine, const struct uar_json *theirs)
{
	const struct uar_json *c = uar_json_at(theirs, 0);
	const char *at = mine.p + 1;
	struct json key, value;

	if (theirs->kind == UAR_JSON_OBJECT)
		c = theirs->first;
	if (theirs->kind == UAR_JSON_STRING)
		compare_strings(mine, theirs);
	if (theirs->kind == UAR_JSON_INT)
		assert(mine.end - mine.p >= 64 || integer_of(mine) == theirs->i);
	if (!is_box(mine))
		return;
	for (; next_child(mine, &at, &key, &value); c = c->next) {
		assert(c);
		if (key.p)
			compare_strings(key, &(struct uar_json){ .text = c->key });
		compare(value, c);
	}
	assert(!c);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data;
	struct json j = read_json(text, size);
	struct text out = { NULL, 0, 0, false };
	const struct uar_json *theirs;
	struct uar_arena arena;

	(void)is_utf8(text, size);
	add_string(&out, text, size);
	assert(read_json(out.p, out.n).p || memchr(text, 0, size));
	free(out.p);
	out = (struct text){ NULL, 0, 0, false };
	add_base64(&out, data, size);
	free(out.p);
	if (!j.p)
		return 0;
	out = (struct text){ NULL, 0, 0, false };
	uar_arena_init(&arena, 0);
	(void)find(j, "/a/0/b~1c");
	(void)number_of(member(j, "n"));
	if (add_json(&out, text, size) &&
	    !uar_json_parse(uar_str_n(text, size), NULL, &arena, &theirs, NULL))
		compare(j, theirs);
	uar_arena_fini(&arena);
	free(out.p);
	return 0;
}
