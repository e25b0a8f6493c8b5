"""A server with a directory of agent definitions that a test writes to."""
import json
import os

from lib.server import Server


def definition(agent_id, **more):
    return {"version": "1.0", "kind": "agent", "id": agent_id, "runtime": {"entry": "llm.chat"}, **more}


def scripted(agent_id, tools, **policy):
    """An agent whose model does what the message says: tool NAME {json}."""
    return definition(agent_id, tools=tools, policy={
        "provider": {"default": {"provider": "scripted", "model": "scripted-tools"}},
        **({"tools": policy} if policy else {})})


class AgentServer(Server):
    def __init__(self, *agents, **more):
        super().__init__(start=False, **more)
        os.makedirs(os.path.join(self.data, "agents"))
        for a in agents:
            with open(os.path.join(self.data, "agents", a["id"] + ".json"), "w") as f:
                json.dump(a, f)
        self.start()
