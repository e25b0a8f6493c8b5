/* blocks.c - finds fenced blocks in text that comes in pieces. */
#include "agent/blocks.h"

#include <string.h>

#include "agent/limits.h"
#include "base/alloc.h"

enum { INDENT_MOST = 3, FENCE_LEAST = 3 };

static const struct {
	const char *language, *type, *mime;
} kinds[] = {
	{ "html", "html", "text/html" },
	{ "svg", "svg", "image/svg+xml" },
	{ "mermaid", "mermaid", "text/vnd.mermaid" },
	{ "markdown", "markdown", "text/markdown" },
	{ "md", "markdown", "text/markdown" },
	{ "json", "code", "application/json" },
	{ "css", "code", "text/css" },
	{ "csv", "data", "text/csv" },
};

const char *uar_block_type(const struct uar_block *b)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(b->language, kinds[i].language) == 0)
			return kinds[i].type;
	return "code";
}

const char *uar_block_mime(const struct uar_block *b)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (strcmp(b->language, kinds[i].language) == 0)
			return kinds[i].mime;
	return "text/plain";
}

const char *uar_artifact_mime(uar_str type, uar_str language)
{
	for (size_t i = 0; i < ARRAY_LEN(kinds); i++)
		if (uar_str_is(language, kinds[i].language) || uar_str_is(type, kinds[i].language))
			return kinds[i].mime;
	return "text/plain";
}

void uar_blocks_init(struct uar_blocks *b)
{
	*b = (struct uar_blocks){ 0 };
}

void uar_blocks_fini(struct uar_blocks *b)
{
	for (size_t i = 0; b->at && i < UAR_LIMIT_ANSWER_BLOCKS; i++)
		uar_buf_fini(&b->at[i].text);
	uar_free(b->at);
	uar_blocks_init(b);
}

/* How many of one kind the line begins with; *out_rest is what follows them. */
static size_t fence_of(uar_str line, char *out_kind, uar_str *out_rest)
{
	size_t at = 0, n = 0;

	while (at < line.n && at <= INDENT_MOST && line.p[at] == ' ')
		at++;
	if (at > INDENT_MOST || at == line.n || (line.p[at] != '`' && line.p[at] != '~'))
		return 0;
	*out_kind = line.p[at];
	while (at + n < line.n && line.p[at + n] == *out_kind)
		n++;
	*out_rest = uar_str_trim(uar_str_from(line, at + n));
	return n >= FENCE_LEAST ? n : 0;
}

static bool is_name(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '+' || c == '#' ||
	       c == '-' || c == '_' || c == '.';
}

/* False: there is no name, or none that a language has. */
static bool read_language(struct uar_block *block, uar_str *info)
{
	size_t n = 0;

	while (n < info->n && info->p[n] != ' ' && info->p[n] != '\t' && info->p[n] != '{') {
		char c = info->p[n];

		c = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
		if (!is_name(c) || n + 1 >= sizeof block->language)
			return false;
		block->language[n++] = c;
	}
	block->language[n] = 0;
	*info = uar_str_trim(uar_str_from(*info, n));
	return n > 0;
}

/* Where the next block goes; NULL: nowhere. */
static struct uar_block *next_block(struct uar_blocks *b)
{
	if (!b->at)
		b->at = uar_zalloc(UAR_LIMIT_ANSWER_BLOCKS * sizeof *b->at);
	return b->at && b->count < UAR_LIMIT_ANSWER_BLOCKS ? &b->at[b->count] : NULL;
}

static void open_block(struct uar_blocks *b, char kind, size_t n, uar_str info)
{
	struct uar_block block = { .language = "" };

	if (kind == '`' && info.n && memchr(info.p, '`', info.n))
		return; /* code within a line, not a block */
	b->fence = kind;
	b->fence_n = n;
	b->open = NULL;
	if (!read_language(&block, &info))
		return;
	info = uar_str_utf8_prefix(info, sizeof block.title - 1);
	if (info.n)
		memcpy(block.title, info.p, info.n);
	block.text = uar_buf_make(UAR_LIMIT_ANSWER_BLOCK_BYTES);
	b->open = next_block(b);
	if (b->open)
		*b->open = block;
	else
		b->dropped++;
}

/* The line that ends it, of so many bytes, is not a part of it. */
static void close_block(struct uar_blocks *b, size_t bytes)
{
	struct uar_block *block = b->open;

	b->fence = 0;
	b->open = NULL;
	if (!block)
		return;
	if (!block->text.err && block->text.n > bytes) {
		block->text.n -= bytes;
		b->count++;
		return;
	}
	b->dropped += block->text.err != UAR_OK;
	uar_buf_fini(&block->text);
}

static bool ends_block(const struct uar_blocks *b, uar_str line)
{
	uar_str rest = UAR_STR_NONE;
	char kind = 0;
	size_t n = fence_of(line, &kind, &rest);

	return n >= b->fence_n && kind == b->fence && rest.n == 0;
}

static void end_line(struct uar_blocks *b, size_t bytes)
{
	uar_str line = { b->line, b->line_n }, rest = UAR_STR_NONE;
	char kind = 0;
	size_t n;

	b->line_n = 0;
	if (line.n > sizeof b->line)
		return; /* too long for either */
	if (line.n && line.p[line.n - 1] == '\r')
		line.n--;
	if (b->fence && ends_block(b, line))
		close_block(b, bytes);
	else if (!b->fence && (n = fence_of(line, &kind, &rest)))
		open_block(b, kind, n, rest);
}

static void take_line(struct uar_blocks *b, uar_str part)
{
	size_t room = b->line_n < sizeof b->line ? sizeof b->line - b->line_n : 0;

	if (part.n)
		memcpy(b->line + (sizeof b->line - room), part.p, part.n < room ? part.n : room);
	b->line_n += part.n;
}

void uar_blocks_feed(struct uar_blocks *b, uar_str text)
{
	while (text.n) {
		const char *end = memchr(text.p, '\n', text.n);
		uar_str part = uar_str_n(text.p, end ? (size_t)(end - text.p) : text.n);

		take_line(b, part);
		if (b->open) /* the line that ends it, too, until it is known to */
			uar_buf_add_str(&b->open->text, uar_str_n(text.p, part.n + (end != NULL)));
		text = uar_str_from(text, part.n + (end != NULL));
		if (end)
			end_line(b, b->line_n + 1);
	}
}

void uar_blocks_end(struct uar_blocks *b)
{
	if (b->line_n)
		end_line(b, b->line_n);
	if (b->open)
		uar_buf_fini(&b->open->text);
	b->open = NULL;
	b->fence = 0;
}
