/* reply_blocks.c - the blocks of an answer, for providers that want some of them back.
 *
 * Text and calls are known without them. They are kept beside those so that the next request
 * can repeat the answer in its order, with the opaque blocks as they came. */
#include "model/reply_int.h"

#include "base/alloc.h"
#include "model/limits.h"

static void fail_memory(struct uar_reply *a)
{
	(void)uar_reply_broken(a, "out of memory");
}

static void fail_limit(struct uar_reply *a, const char *message)
{
	uar_reply_fail(&a->verdict, UAR_MODEL_FAIL_LIMIT, false, a->secret, uar_str_c(message));
}

struct uar_reply_block *uar_reply_block_add(struct uar_reply *a, enum uar_model_part_kind kind,
					    int64_t index)
{
	struct uar_reply_block *b;

	if (a->blocks.count == UAR_LIMIT_MODEL_PARTS) {
		fail_limit(a, "the answer has more blocks than it may");
		return NULL;
	}
	b = uar_zalloc(sizeof *b);
	if (!b) {
		fail_memory(a);
		return NULL;
	}
	b->kind = kind;
	b->index = index;
	b->text = uar_buf_make(UAR_LIMIT_MODEL_OUTPUT);
	b->opaque = uar_buf_make(UAR_LIMIT_MODEL_OUTPUT + 2 * (size_t)UAR_LIMIT_MODEL_OPAQUE);
	b->seal = uar_buf_make(UAR_LIMIT_MODEL_OPAQUE);
	uar_list_add_last(&a->blocks.list, &b->node);
	a->blocks.count++;
	a->blocks.keep |= kind == UAR_PART_OPAQUE;
	return b;
}

struct uar_reply_block *uar_reply_block_find(const struct uar_reply *a, int64_t index)
{
	const struct uar_list *all = &a->blocks.list;

	for (struct uar_list *it = all->prev; it != all; it = it->prev) {
		struct uar_reply_block *b = UAR_OWNER(it, struct uar_reply_block, node);

		if (b->index == index)
			return b;
	}
	return NULL;
}

void uar_reply_block_put(struct uar_reply *a, struct uar_buf *to, uar_str bytes)
{
	a->blocks.bytes += bytes.n;
	if (a->blocks.bytes > UAR_LIMIT_MODEL_OPAQUE)
		fail_limit(a, "the answer has more bytes to be given back than it may");
	else
		uar_buf_add_str(to, bytes);
	if (to->err == UAR_ENOMEM)
		fail_memory(a);
}

static struct uar_model_part part_of_call(const struct uar_reply *a, size_t index)
{
	const struct uar_model_tool_call *call = &a->calls->list[index];

	return (struct uar_model_part){
		.kind = UAR_PART_CALL, .id = call->id, .name = call->name, .text = call->arguments
	};
}

static struct uar_model_part part_of_block(const struct uar_reply *a,
					   const struct uar_reply_block *b)
{
	if (b->kind == UAR_PART_CALL)
		return part_of_call(a, b->call);
	if (b->kind == UAR_PART_OPAQUE)
		return (struct uar_model_part){ .kind = UAR_PART_OPAQUE,
						.name = uar_str_c(a->dialect->name),
						.text = uar_buf_str(&b->opaque) };
	return (struct uar_model_part){ .kind = b->kind, .text = uar_buf_str(&b->text) };
}

void uar_reply_blocks_end(struct uar_reply *a)
{
	size_t n = 0;

	a->text.copy = NULL;
	if (!a->blocks.keep || a->verdict.failure)
		return;
	a->blocks.parts = uar_zalloc(a->blocks.count * sizeof *a->blocks.parts);
	if (!a->blocks.parts) {
		fail_memory(a);
		return;
	}
	UAR_LIST_EACH (it, &a->blocks.list) {
		struct uar_reply_block *b = UAR_OWNER(it, struct uar_reply_block, node);
		struct uar_model_part part = part_of_block(a, b);

		if (b->text.err || b->opaque.err)
			fail_memory(a);
		if (part.text.n || part.kind == UAR_PART_CALL)
			a->blocks.parts[n++] = part;
	}
	a->blocks.count = n;
}

void uar_reply_blocks_fini(struct uar_reply_blocks *b)
{
	while (b->list.next && !uar_list_empty(&b->list)) {
		struct uar_reply_block *at = UAR_OWNER(b->list.next, struct uar_reply_block, node);

		uar_list_remove(&at->node);
		uar_buf_fini(&at->text);
		uar_buf_fini(&at->opaque);
		uar_buf_fini(&at->seal);
		uar_free(at);
	}
	uar_free(b->parts);
	b->parts = NULL;
}
