/* agents.c - the agents that are there without any configuration. */
#include "runtime/runtime.h"

static const struct uar_agent agents[] = {
	{ "echo", "Echo", "Answers with the message it was given.", UAR_ENTRY_ECHO, NULL, NULL },
	{ "demo", "Demo", "A scripted model that thinks aloud and answers; needs no key.",
	  UAR_ENTRY_LLM, "scripted-reasoning", "You are the demo agent of UAR." },
	{ "assistant", "Assistant",
	  "The configured model (OPENAI_BASE_URL, OPENAI_API_KEY, UAR_MODEL), else the scripted "
	  "one.",
	  UAR_ENTRY_LLM, NULL, "You are a helpful assistant." },
	{ "fixture", "Fixture",
	  "Replays a recorded stream: inputs {\"fixture\": NAME, \"pace\": \"recorded\"|\"full\"}.",
	  UAR_ENTRY_FIXTURE, NULL, NULL },
};

const struct uar_agent *uar_agent_find(uar_str id)
{
	for (size_t i = 0; i < ARRAY_LEN(agents); i++)
		if (uar_str_is(id, agents[i].id))
			return &agents[i];
	return NULL;
}

const struct uar_agent *uar_agent_at(size_t index)
{
	return index < ARRAY_LEN(agents) ? &agents[index] : NULL;
}
