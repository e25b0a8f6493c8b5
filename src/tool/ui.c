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

void uar_tool_ui_navigate(struct uar_tool_job *j)
{
	uar_tool_fail(j, "unavailable", "a run is shown to somebody: there is none");
}
