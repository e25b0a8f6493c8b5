/* list.h - intrusive doubly linked list; the node lives inside its owner. */
#ifndef UAR_BASE_LIST_H
#define UAR_BASE_LIST_H

#include <stdbool.h>
#include <stddef.h>

struct uar_list {
	struct uar_list *prev, *next;
};

#define UAR_OWNER(NODE, TYPE, FIELD) ((TYPE *)(void *)((char *)(NODE)-offsetof(TYPE, FIELD)))

static inline void uar_list_init(struct uar_list *l)
{
	l->prev = l->next = l;
}

static inline bool uar_list_empty(const struct uar_list *l)
{
	return l->next == l;
}

static inline void uar_list_add_last(struct uar_list *l, struct uar_list *node)
{
	node->prev = l->prev;
	node->next = l;
	l->prev->next = node;
	l->prev = node;
}

/* The node becomes a list of its own, so removing it twice is harmless. */
static inline void uar_list_remove(struct uar_list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	uar_list_init(node);
}

/* Moves every node of `from` to the end of `to`. */
static inline void uar_list_move_all(struct uar_list *from, struct uar_list *to)
{
	if (uar_list_empty(from))
		return;
	from->next->prev = to->prev;
	to->prev->next = from->next;
	from->prev->next = to;
	to->prev = from->prev;
	uar_list_init(from);
}

/* Walks the list; the current node may be removed inside the body. */
#define UAR_LIST_EACH(IT, L)                                                                       \
	for (struct uar_list *IT = (L)->next, *IT##_next = IT->next; IT != (L);                    \
	     IT = IT##_next, IT##_next = IT->next)

#endif
