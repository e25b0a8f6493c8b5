/* tooled.h - a loop with internal tools; keeps how the last call ended. */
#ifndef UAR_TEST_TOOLED_H
#define UAR_TEST_TOOLED_H

#include "loop/loop.h"
#include "tool/tool.h"

struct tooled {
	struct uar_loop *loop;
	struct uar_tools *tools;
	struct uar_tool_call *call;
	unsigned dones;
	bool ok, retryable;
	struct uar_buf output, message;
	char category[40];
};

bool tooled_init(struct tooled *f, const char *files_dir);
void tooled_fini(struct tooled *f);
struct uar_tool_events tooled_events(struct tooled *f);
/* Begins a call, and checks that nothing fires inside. */
bool tooled_start(struct tooled *f, const char *tool_id, const char *input);
/* The same up to its end. False: it did not begin. */
bool tooled_try(struct tooled *f, const char *tool_id, const char *input);
/* The same with failed checks unless it is fine and its output is as the tool declares. */
bool tooled_call(struct tooled *f, const char *tool_id, const char *input);
/* The same with failed checks unless it ends in that category and names the word. */
bool tooled_fails(struct tooled *f, const char *tool_id, const char *input, const char *category,
		  const char *word);

#endif
