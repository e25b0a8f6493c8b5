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


def put_file(folder, name, text):
    """Whole at once: a server that watches the folder reads no half of it."""
    temporary = os.path.join(folder, "." + name)
    with open(temporary, "w") as f:
        f.write(text)
    os.rename(temporary, os.path.join(folder, name))


class AgentServer(Server):
    def __init__(self, *agents, **more):
        super().__init__(start=False, **more)
        os.makedirs(os.path.join(self.data, "agents"))
        for a in agents:
            self.define(a)
        self.start()

    def define(self, value):
        put_file(os.path.join(self.data, "agents"), value["id"] + ".json", json.dumps(value))
