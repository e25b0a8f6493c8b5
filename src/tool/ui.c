/* ui.c - tools whose result comes from whoever shows the run: here they have none. */
#include "tool/internal_int.h"

void uar_tool_ui_form(struct uar_tool_job *j)
{
	uar_tool_fail(j, "unavailable", "a form is asked by a run: there is none");
}

void uar_tool_artifact_put(struct uar_tool_job *j)
{
	uar_tool_fail(j, "unavailable", "a run keeps artifacts: there is none");
}

/* The log has the call, and those who show the run read the change from it. */
void uar_tool_state_merge(struct uar_tool_job *j)
{
	struct uar_buf b = uar_buf_make(UAR_LIMIT_STATE_MERGE);

	uar_json_write(&b, j->input);
	if (b.err)
		uar_tool_fail(j, "value_invalid",
			      "changes have at most %d bytes: make them in parts",
			      UAR_LIMIT_STATE_MERGE);
	else
		uar_buf_add_str(&j->out, UAR_STR("{\"merged\":true}"));
	uar_buf_fini(&b);
}

void uar_tool_tools_search(struct uar_tool_job *j)
{
	uar_tool_fail(j, "unavailable", "a run has tools to search: there is none");
}

void uar_tool_ui_navigate(struct uar_tool_job *j)
{
	uar_tool_fail(j, "unavailable", "a run is shown to somebody: there is none");
}
