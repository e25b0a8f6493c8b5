"""Child agents and jobs through the control plane."""
from lib import equal


def command(s, name, **body):
    a = s.http.post(f"/api/control/{name}", body)
    equal(a.status, 200, (name, a.body))
    return a.json


def parent_of(s, message="hello", agent="echo", **more):
    """A turn that is over, as start of children: (session_id, thread_id, turn_id, run_id)."""
    t = command(s, "submit_turn", agent_id=agent, message=message, **more)["result"]
    s.finish(t["run_id"])
    return t


def spawn(s, parent, message="dig", agent_id="echo", **more):
    a = command(s, "spawn_subagent", thread_id=parent["thread_id"], agent_id=agent_id, message=message, **more)
    return a["result"]["subagent"]


def wait(s, *ids, timeout_ms=30000, **more):
    return command(s, "wait_subagents", subagent_ids=list(ids), timeout_ms=timeout_ms, **more)["result"]


def rest(s, child):
    """The child's record once nothing of it is under way."""
    while (r := wait(s, child["subagent_id"]))["timed_out"]:
        pass
    return r["subagents"][0]


def children(s, session_id, **more):
    return command(s, "list_subagents", session_id=session_id, **more)["result"]["subagents"]


def log_of(s, session_id):
    """The session's events so far."""
    last = s.http.get(f"/api/sessions/{session_id}").json["through_sequence"]
    out = []
    with s.session_stream(session_id) as stream:
        for event in stream:
            out.append(event.data)
            if event.data["sequence"] >= last:
                return out
    return out


def of_class(events, name, child=None):
    return [e for e in events if e["type"] == name and (not child or e["subagent_id"] == child["subagent_id"])]
