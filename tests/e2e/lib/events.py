"""What must hold of every stream: the envelope, the numbers, and the order of things."""
import json
import os
import re

from lib.check import check, equal
from lib.server import ROOT

UUID = re.compile(r"^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$")
TIME = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$")
ALWAYS = ("type", "event_id", "timestamp", "sequence", "schema_version", "runtime_id", "session_id",
          "payload")
# The ids that each scope of the table asks for.
SCOPES = {"SESSION": ["session_id"], "THREAD": ["session_id", "thread_id"],
          "TURN": ["session_id", "thread_id", "turn_id"],
          "RUN": ["session_id", "thread_id", "turn_id", "task_id", "run_id", "attempt_id"]}
ATTEMPT_END = ("task.attempt.completed", "task.attempt.failed")
TASK_END = ("task.completed", "task.failed", "task.cancelled", "task.timed_out", "task.lost")
TURN_END = ("turn.completed", "turn.failed")
AFTER_END = TASK_END + TURN_END


def table_of_ids():
    """{type: ids that an event of it must carry}, from the table of classes itself."""
    def read(name):
        with open(os.path.join(ROOT, "src", "event", name)) as f:
            return f.read()
    names = dict(re.findall(r'^I\((\w+), "(\w+)"\)', read("ids.def"), re.M))
    table = {}
    for kind, ids in re.findall(r'^X\(\w+, "([\w.]+)",\s*((?:[\w()]+(?:\s*\|\s*)?)+),',
                                read("event.def"), re.M):
        wanted = [i for scope in re.findall(r"IDS\((\w+)\)", ids) for i in SCOPES.get(scope, [])]
        table[kind] = wanted + [names[i] for i in re.findall(r"\bID\((\w+)\)", ids)]
    return table


CLASSES = table_of_ids()


def check_envelope(e):
    for key in ALWAYS:
        check(key in e, "without", key, e)
    check(UUID.match(e["event_id"]), e["event_id"])
    check(TIME.match(e["timestamp"]), e["timestamp"])
    equal(e["schema_version"], "1.0")
    check(isinstance(e["payload"], dict), e)
    check(e["type"] in CLASSES or e["type"].startswith("vendor.uar."), "unknown class", e["type"])
    for key in CLASSES.get(e["type"], ()):
        check(e.get(key), f"{e['type']} without {key}", e)
    check(("run_id" in e) == ("run_sequence" in e), e)


def check_attempt(run_id, events):
    """Rules 1 to 6 for the events of one run, in their order."""
    kinds = [e["type"] for e in events]
    equal(kinds[0], "turn.submitted", run_id)
    equal([e["run_sequence"] for e in events], list(range(1, len(events) + 1)), run_id)
    equal(kinds.count("task.queued"), 1, kinds)
    check(kinds.count("task.attempt.started") <= 1, kinds)
    check_tools(events)
    check_models(events)
    ends = [i for i, k in enumerate(kinds) if k in ATTEMPT_END]
    check(len(ends) <= 1, kinds)
    if not ends:
        return False
    after = kinds[ends[0] + 1:]
    equal([k for k in after if k not in AFTER_END], [], "after the end")
    check(len([k for k in after if k in TASK_END]) <= 1 and
          len([k for k in after if k in TURN_END]) <= 1, after)
    return True


def check_tools(events):
    """Rule 2: started, args*, progress*, then exactly one end (none only while the run goes on)."""
    state = {}
    for e in events:
        if not e["type"].startswith("tool.") or e["type"] == "tool.catalog.resolved":
            continue
        call, kind = e["tool_call_id"], e["type"]
        before = state.get(call)
        allowed = {"tool.started": (None,), "tool.args": ("tool.started", "tool.args"),
                   "tool.progress": ("tool.started", "tool.args", "tool.progress"),
                   "tool.result": ("tool.started", "tool.args", "tool.progress"),
                   "tool.failed": ("tool.started", "tool.args", "tool.progress")}[kind]
        check(before in allowed, f"{kind} after {before}", call)
        state[call] = kind


def check_models(events):
    """A request is open from model.requested to its one end; deltas come in between."""
    opened, closed = set(), set()
    for e in events:
        request = e.get("model_request_id")
        if e["type"] == "model.requested":
            check(request not in opened, "requested twice", request)
            opened.add(request)
        elif e["type"] in ("model.completed", "model.failed"):
            check(request in opened and request not in closed, "ended twice or never begun", e)
            closed.add(request)
        elif e["type"] in ("model.delta", "reasoning.delta") and request:
            check(request in opened and request not in closed, "a delta outside its call", e)


def check_session(events):
    """Events of a session's stream from its beginning. Returns {run_id: has it ended}."""
    log = [e.data for e in events]
    equal([e["sequence"] for e in log], list(range(1, len(log) + 1)), "the session's numbers")
    equal([e.id for e in events], [e["sequence"] for e in log], "ids are the numbers")
    check(all(e.name == "event" for e in events), "name of the frames")
    equal(log[0]["type"], "session.created")
    equal(len({e["event_id"] for e in log}), len(log), "event ids are unique")
    equal(len({(e["runtime_id"], e["session_id"]) for e in log}), 1)
    runs, turns = {}, set()
    for e in log:
        check_envelope(e)
        if e["type"] == "turn.submitted":
            check(e["turn_id"] not in turns, "submitted twice")
            turns.add(e["turn_id"])
        if "turn_id" in e:
            check(e["turn_id"] in turns, e["type"], "before its turn was submitted")
        if "run_id" in e:
            runs.setdefault(e["run_id"], []).append(e)
    check_threads(log)
    return {run_id: check_attempt(run_id, mine) for run_id, mine in runs.items()}


def check_threads(log):
    """Turns of one thread never overlap: each starts after the one before has ended."""
    active = {}
    for e in log:
        thread = e.get("thread_id")
        if e["type"] == "turn.started":
            check(not active.get(thread), "two turns at once in", thread)
            active[thread] = e["turn_id"]
        elif e["type"] in TURN_END and active.get(thread) == e["turn_id"]:
            active[thread] = None


def check_run_stream(events, run_id, end=("RunDone", "Error")):
    """A whole normalized stream: RunStart first, one end and it is last, ids strictly rising."""
    kinds = [e.data["type"] for e in events]
    equal(kinds[0], "RunStart", kinds)
    check(kinds[-1] in end, kinds[-1])
    equal([k for k in kinds[:-1] if k in ("RunDone", "Error", "RunStart")], ["RunStart"])
    ids = [e.id for e in events]
    check(all(a < b for a, b in zip(ids, ids[1:])), "ids do not rise", ids)
    for e in events:
        equal(sorted(e.data), ["data", "type"])
        equal(e.data["data"]["run_id"], run_id)
        equal(e.name, "event")
    return kinds


def text_of(events, kind="ChatDelta"):
    return "".join(e.data["data"]["text_delta"] for e in events if e.data["type"] == kind)


def without_run_id(event):
    data = event if isinstance(event, dict) else event.data
    return {"type": data["type"], "data": {k: v for k, v in data["data"].items() if k != "run_id"}}


def lines_of(path):
    with open(path) as f:
        return [json.loads(line) for line in f if line.strip()]
