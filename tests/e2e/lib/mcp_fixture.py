#!/usr/bin/env python3
"""An MCP server of 2026-07-28 over pipes that offers what the conformance suite asks servers for.

UAR passes it on (`"offer": true`): what the suite judges is how UAR speaks, in both eras. The names
and texts are the suite's."""
import json
import struct
import sys
import threading
import time
import zlib

MODERN = "2026-07-28"
META = "io.modelcontextprotocol/"
LOCK = threading.Lock()
LISTENERS = {}  # id of the request: what it wants to hear of
CANCELLED = set()
TASKS_EXTENSION = "io.modelcontextprotocol/tasks"
TASKS = {}  # id: Task


def base64_of(data):
    import base64
    return base64.b64encode(data).decode()


def png():
    def chunk(kind, body):
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))
    return base64_of(b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 1, 1, 8, 2, 0, 0, 0)) +
                     chunk(b"IDAT", zlib.compress(b"\0\xff\0\0")) + chunk(b"IEND", b""))


def wav():
    return base64_of(b"RIFF" + struct.pack("<I", 38) + b"WAVEfmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 8000, 1, 8) +
                     b"data" + struct.pack("<I", 2) + b"\x80\x80")


def send(message):
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def text(t):
    return {"type": "text", "text": t}


def embedded(uri, mime, t):
    return {"type": "resource", "resource": {"uri": uri, "mimeType": mime, "text": t}}


IMAGE = {"type": "image", "data": png(), "mimeType": "image/png"}
NONE = {"type": "object", "additionalProperties": False}


def form(message, **properties):
    return {"method": "elicitation/create", "params": {"mode": "form", "message": message, "requestedSchema": {
        "type": "object", "properties": properties, "required": list(properties)}}}


def sampling(prompt, tokens=100):
    return {"method": "sampling/createMessage", "params": {
        "messages": [{"role": "user", "content": text(prompt)}], "maxTokens": tokens}}


ROOTS = {"method": "roots/list", "params": {}}
NAME = {"type": "string"}


class Refused(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


class Call:
    """One request, and what its handler needs of it."""

    def __init__(self, request_id, method, params):
        self.id, self.method, self.params = request_id, method, params
        self.meta = params.get("_meta", {})
        self.arguments = params.get("arguments") or {}
        self.state = params.get("requestState")
        self.answers = params.get("inputResponses") or {}
        self.capabilities = self.meta.get(META + "clientCapabilities", {})

    def notify(self, method, **params):
        send({"method": method, "params": params})

    def progress(self, at, total):
        if "progressToken" in self.meta:
            self.notify("notifications/progress", progressToken=self.meta["progressToken"], progress=at, total=total,
                        message=f"{at} of {total}")

    def log(self, data):
        if META + "logLevel" in self.meta:
            self.notify("notifications/message", level="info", logger="fixture", data=data)

    def ask(self, state=None, **questions):
        out = {"resultType": "input_required", "inputRequests": questions}
        return {**out, "requestState": state} if state else out

    def content_of(self, key):
        """What the person wrote, or None where it must be asked again."""
        answer = self.answers.get(key)
        if not isinstance(answer, dict) or answer.get("action") not in ("accept", "decline", "cancel"):
            return None
        return answer.get("content") or {}


def said(*content, **more):
    return {"content": list(content), **more}


def with_form(key, message, then, **properties):
    """A tool that asks for a form and says what came of it."""
    def tool(call):
        if call.content_of(key) is None:
            return call.ask(**{key: form(message(call), **properties)})
        return said(text(then(call.answers[key])))
    return tool


def completed(answer):
    return f"Elicitation completed: action={answer['action']}, content={json.dumps(answer.get('content'))}"


def slowly(step):
    def tool(call):
        for i in range(3):
            step(call, i)
            time.sleep(0.05)
        return said(text("done"))
    return tool


def sample(call):
    if "answer" not in call.answers:
        return call.ask(answer=sampling(call.arguments["prompt"]))
    return said(text("LLM response: " + call.answers["answer"]["content"]["text"]))


def missing_capability(call):
    if "sampling" not in call.capabilities:
        raise Refused(-32021, "sampling is needed", {"requiredCapabilities": {"sampling": {}}})
    return said(text("sampling is there"))


def tool_change(_call):
    changed("toolsListChanged", "notifications/tools/list_changed")
    return said(text("changed"))


def prompt_change(_call):
    changed("promptsListChanged", "notifications/prompts/list_changed")
    return said(text("changed"))


def changed(kind, method):
    for request_id, wanted in list(LISTENERS.items()):
        if wanted.get(kind):
            send({"method": method, "params": {"_meta": {META + "subscriptionId": request_id}}})


def ask_name(call):
    content = call.content_of("user_name")
    if content is None or not isinstance(content.get("name"), str):
        return call.ask(user_name=form("What is your name?", name=NAME))
    return said(text(f"Hello, {content['name']}!"))


def ask_capital(call):
    if "capital_question" not in call.answers:
        return call.ask(capital_question=sampling("What is the capital of France?"))
    return said(text(call.answers["capital_question"]["content"]["text"]))


def ask_roots(call):
    if "client_roots" not in call.answers:
        return call.ask(client_roots=ROOTS)
    return said(text(", ".join(r["uri"] for r in call.answers["client_roots"]["roots"])))


def with_state(call):
    if call.content_of("confirm") is None:
        return call.ask("begun", confirm=form("Please confirm", ok={"type": "boolean"}))
    if call.state != "begun":
        raise Refused(-32602, "requestState is wrong")
    return said(text("state-ok"))


def many_inputs(call):
    if {"user_name", "greeting", "client_roots"} - set(call.answers):
        return call.ask("many", user_name=form("What is your name?", name=NAME),
                        greeting=sampling("Generate a greeting", 50), client_roots=ROOTS)
    return said(text("all were answered"))


def rounds(call):
    if call.state == "two":
        return said(text(f"color {call.content_of('step2')}"))
    if call.state == "one":
        return call.ask("two", step2=form("Step 2: What is your favorite color?", color={"type": "string"}))
    return call.ask("one", step1=form("Step 1: What is your name?", name=NAME))


def by_capability(call):
    questions = {"elicitation": form("What is your name?", name=NAME), "sampling": sampling("Hello"), "roots": ROOTS}
    if call.answers:
        return said(text("answered"))
    return call.ask(**{k: v for k, v in questions.items() if k in call.capabilities})


def streaming_form(call):
    call.progress(1, 2)
    return ask_name(call)


def header_tool(call):
    return said(text(f"region {call.arguments.get('region')}"))


class Task:
    """A call that goes on behind its answer; `work(task)` gives its result, or raises Refused."""

    def __init__(self, work):
        self.id, self.status, self.end = f"task-{len(TASKS) + 1}", "working", {}
        self.created = self.updated = stamp()
        self.questions, self.answers, self.answered = {}, {}, threading.Condition()
        TASKS[self.id] = self
        threading.Thread(target=self.run, args=(work,), daemon=True).start()

    def run(self, work):
        try:
            result = work(self)
            self.settle("completed", result={"resultType": "complete", **result})
        except Refused as e:
            self.settle("failed", error=e.error)

    def settle(self, status, **end):
        with self.answered:
            if self.status in ("working", "input_required"):
                self.status, self.end, self.updated, self.questions = status, end, stamp(), {}
            self.answered.notify_all()

    def wait(self, seconds):
        with self.answered:
            self.answered.wait_for(lambda: self.status == "cancelled", seconds)

    def ask(self, **questions):
        with self.answered:
            self.questions, self.status = dict(questions), "input_required"
            self.answered.wait_for(lambda: not self.questions)
            if self.status == "input_required":
                self.status = "working"
        return self.answers

    def update(self, answers):
        with self.answered:
            for key in set(answers) & set(self.questions):
                self.answers[key] = answers[key]
                del self.questions[key]
            self.answered.notify_all()

    def shown(self):
        with self.answered:
            asks = {"inputRequests": dict(self.questions)} if self.questions else {}
            return {"taskId": self.id, "status": self.status, "createdAt": self.created, "lastUpdatedAt": self.updated,
                    "ttlMs": 600000, "pollIntervalMs": 100, **asks, **self.end}


def stamp():
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def has_tasks(call):
    return TASKS_EXTENSION in call.capabilities.get("extensions", {})


def as_task(work, required=False):
    """A tool whose call is a task for clients that know tasks."""
    def tool(call):
        if has_tasks(call):
            return {"resultType": "task", **{k: v for k, v in Task(lambda t: work(t, call)).shown().items()
                                             if k not in ("result", "error", "inputRequests")}}
        if required:
            raise Refused(-32021, "tasks are needed", {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}})
        return work(None, call)
    return tool


def slow_compute(task, call):
    seconds = call.arguments.get("seconds", 0)
    task.wait(seconds) if task else time.sleep(seconds)
    return said(text(f"computed for {seconds} s"))


def failing_job(task, _call):
    task.wait(1)
    return said(text("the job failed"), isError=True)


def protocol_error_job(_task, _call):
    raise Refused(-32603, "the job broke")


def confirm_delete(task, call):
    answers = task.ask(confirm=form(f"Delete {call.arguments.get('filename')}?", confirm={"type": "boolean"}))
    return said(text(f"Deleted: {json.dumps(answers['confirm'])}"))


def multi_input(task, _call):
    answers = task.ask(first=form("First", value=NAME), second=form("Second", value=NAME))
    return said(text(json.dumps(answers)))


def form_then_task(call):
    content = call.content_of("user_name")
    if content is None:
        return call.ask("form", user_name=form("What is your name?", name=NAME))
    return as_task(lambda t, c: said(text(f"Hello, {content.get('name')}!")), True)(call)


def task_of(call):
    if not has_tasks(call):
        raise Refused(-32021, "tasks are needed", {"requiredCapabilities": {"extensions": {TASKS_EXTENSION: {}}}})
    if call.params.get("taskId") not in TASKS:
        raise Refused(-32602, "there is no such task")
    return TASKS[call.params["taskId"]]


def update_task(call):
    task_of(call).update(call.answers)
    return {}


def cancel_task(call):
    task_of(call).settle("cancelled")
    return {}


DEFAULTS = dict(name={"type": "string", "default": "John Doe"}, age={"type": "integer", "default": 30},
                score={"type": "number", "default": 95.5},
                status={"type": "string", "enum": ["active", "inactive", "pending"], "default": "active"},
                verified={"type": "boolean", "default": True})
ENUMS = dict(untitledSingle={"type": "string", "enum": ["option1", "option2", "option3"]},
             titledSingle={"type": "string", "oneOf": [{"const": f"value{i}", "title": f"{n} Option"}
                                                       for i, n in ((1, "First"), (2, "Second"), (3, "Third"))]},
             legacyEnum={"type": "string", "enum": ["opt1", "opt2", "opt3"],
                         "enumNames": ["Option One", "Option Two", "Option Three"]},
             untitledMulti={"type": "array", "items": {"type": "string", "enum": ["option1", "option2", "option3"]}},
             titledMulti={"type": "array", "items": {"anyOf": [{"const": f"value{i}", "title": f"{n} Choice"}
                                                               for i, n in ((1, "First"), (2, "Second"), (3, "Third"))]}})
SCHEMA_2020 = {
    "$schema": "https://json-schema.org/draft/2020-12/schema", "type": "object",
    "$defs": {"address": {"$anchor": "addressDef", "type": "object",
                          "properties": {"street": {"type": "string"}, "city": {"type": "string"}}}},
    "properties": {"name": {"type": "string"}, "address": {"$ref": "#/$defs/address"},
                   "contactMethod": {"type": "string", "enum": ["phone", "email"]},
                   "phone": {"type": "string"}, "email": {"type": "string"}},
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]}, "else": {"required": ["email"]}, "additionalProperties": False}


def needs(**properties):
    return {"type": "object", "properties": properties, "required": list(properties)}


TOOLS = {
    "test_simple_text": lambda c: said(text("This is a simple text response for testing.")),
    "test_image_content": lambda c: said(IMAGE),
    "test_audio_content": lambda c: said({"type": "audio", "data": wav(), "mimeType": "audio/wav"}),
    "test_embedded_resource": lambda c: said(embedded("test://embedded-resource", "text/plain",
                                                      "This is an embedded resource content.")),
    "test_multiple_content_types": lambda c: said(
        text("Multiple content types test:"), IMAGE,
        embedded("test://mixed-content-resource", "application/json", '{"test":"data","value":123}')),
    "test_error_handling": lambda c: said(text("This tool intentionally returns an error for testing"), isError=True),
    "test_tool_with_progress": slowly(lambda c, i: c.progress(i * 50, 100)),
    "test_tool_with_logging": slowly(lambda c, i: c.log(["Tool execution started", "Tool processing data",
                                                         "Tool execution completed"][i])),
    "test_logging_tool": slowly(lambda c, i: c.log(f"step {i}")),
    "test_sampling": sample,
    "test_elicitation": with_form("form", lambda c: c.arguments["message"],
                                  lambda a: f"User response: {json.dumps(a)}",
                                  username={"type": "string"}, email={"type": "string"}),
    "test_elicitation_sep1034_defaults": with_form("form", lambda c: "Check", completed, **DEFAULTS),
    "test_elicitation_sep1330_enums": with_form("form", lambda c: "Choose", completed, **ENUMS),
    "json_schema_2020_12_tool": lambda c: said(text("valid")),
    "test_missing_capability": missing_capability,
    "test_streaming_elicitation": streaming_form,
    "test_trigger_tool_change": tool_change,
    "test_trigger_prompt_change": prompt_change,
    "test_input_required_result_elicitation": ask_name,
    "test_input_required_result_sampling": ask_capital,
    "test_input_required_result_list_roots": ask_roots,
    "test_input_required_result_request_state": with_state,
    "test_input_required_result_multiple_inputs": many_inputs,
    "test_input_required_result_multi_round": rounds,
    "test_input_required_result_tampered_state": with_state,
    "test_input_required_result_capabilities": by_capability,
    "test_header_tool": header_tool,
    "greet": lambda c: said(text(f"Hello, {c.arguments.get('name')}!")),
    "slow_compute": as_task(slow_compute),
    "failing_job": as_task(failing_job, True),
    "protocol_error_job": as_task(protocol_error_job, True),
    "confirm_delete": as_task(confirm_delete, True),
    "multi_input": as_task(multi_input, True),
    "test_tool_with_task": form_then_task,
}
SCHEMAS = {"test_sampling": needs(prompt={"type": "string"}), "test_elicitation": needs(message={"type": "string"}),
           "json_schema_2020_12_tool": SCHEMA_2020,
           "greet": needs(name={"type": "string"}), "slow_compute": needs(seconds={"type": "number"}),
           "confirm_delete": {"type": "object", "properties": {"filename": {"type": "string"}}},
           "test_header_tool": {"type": "object", "properties": {"region": {"type": "string", "x-mcp-header": "Region"}}}}


def prompt(*contents, role="user"):
    return {"messages": [{"role": role, "content": c} for c in contents]}


def prompt_with_input(call):
    content = call.content_of("user_context")
    if content is None:
        return call.ask(user_context=form("What context should the prompt use?", context={"type": "string"}))
    return prompt(text(f"Use {content['context']}"))


PROMPTS = {
    "test_simple_prompt": ([], lambda c: prompt(text("This is a simple prompt for testing."))),
    "test_prompt_with_arguments": (["arg1", "arg2"], lambda c: prompt(
        text(f"Prompt with arguments: arg1='{c.arguments['arg1']}', arg2='{c.arguments['arg2']}'"))),
    "test_prompt_with_embedded_resource": (["resourceUri"], lambda c: prompt(
        embedded(c.arguments["resourceUri"], "text/plain", "Embedded resource content for testing."),
        text("Please process the embedded resource above."))),
    "test_prompt_with_image": ([], lambda c: prompt(IMAGE, text("Please analyze the image above."))),
    "test_input_required_result_prompt": ([], prompt_with_input),
}
RESOURCES = {
    "test://static-text": {"mimeType": "text/plain", "text": "This is the content of the static text resource."},
    "test://static-binary": {"mimeType": "image/png", "blob": png()},
    "test://watched-resource": {"mimeType": "text/plain", "text": "Watched resource content"},
}


def read_resource(call):
    uri = call.params.get("uri", "")
    if uri in RESOURCES:
        return {"contents": [{"uri": uri, **RESOURCES[uri]}], "ttlMs": 0, "cacheScope": "public"}
    parts = uri.removeprefix("test://template/").split("/")
    if uri.startswith("test://template/") and parts[1:] == ["data"]:
        body = json.dumps({"id": parts[0], "templateTest": True, "data": f"Data for ID: {parts[0]}"})
        return {"contents": [{"uri": uri, "mimeType": "application/json", "text": body}], "ttlMs": 0,
                "cacheScope": "public"}
    raise Refused(-32602, "there is no such resource", {"uri": uri})


def call_tool(call):
    if call.params.get("name") not in TOOLS:
        raise Refused(-32602, "there is no such tool")
    return TOOLS[call.params["name"]](call)


def get_prompt(call):
    if call.params.get("name") not in PROMPTS:
        raise Refused(-32602, "there is no such prompt")
    return PROMPTS[call.params["name"]][1](call)


def lists(member, items):
    return lambda call: {member: items, "ttlMs": 0, "cacheScope": "public"}


METHODS = {
    "server/discover": lambda c: {"supportedVersions": [MODERN], "ttlMs": 0, "cacheScope": "public", "capabilities": {
        "tools": {"listChanged": True}, "prompts": {"listChanged": True}, "resources": {"subscribe": True},
        "completions": {}, "logging": {}, "extensions": {TASKS_EXTENSION: {}}}},
    "tools/list": lists("tools", [{"name": n, "description": f"The tool {n} of the conformance suite.",
                                   "inputSchema": SCHEMAS.get(n, NONE)} for n in TOOLS]),
    "tools/call": call_tool,
    "prompts/list": lists("prompts", [{"name": n, "description": f"The prompt {n}.", "arguments": [
        {"name": a, "description": f"The argument {a}.", "required": True} for a in p[0]]} for n, p in PROMPTS.items()]),
    "prompts/get": get_prompt,
    "resources/list": lists("resources", [{"uri": u, "name": u.removeprefix("test://"), "mimeType": r["mimeType"],
                                           "description": "A resource of the suite."} for u, r in RESOURCES.items()]),
    "resources/templates/list": lists("resourceTemplates", [{
        "uriTemplate": "test://template/{id}/data", "name": "template", "mimeType": "application/json",
        "description": "A template of the suite."}]),
    "resources/read": read_resource,
    "tasks/get": lambda c: task_of(c).shown(),
    "tasks/update": update_task,
    "tasks/cancel": cancel_task,
    "completion/complete": lambda c: {"completion": {
        "values": [v for v in ("paris", "park", "party") if v.startswith(c.params["argument"]["value"])],
        "total": 3, "hasMore": False}},
}


def answer(call):
    try:
        result = METHODS[call.method](call)
        out = {"result": {"resultType": "complete", "_meta": {META + "serverInfo": {"name": "fixture", "version": "1"}},
                          **result}}
    except Refused as e:
        out = {"error": e.error}
    except Exception as e:  # a fault of the fixture is an answer, too
        out = {"error": {"code": -32603, "message": repr(e)}}
    if call.id not in CANCELLED:
        send({"id": call.id, **out})


def listen(message):
    LISTENERS[message["id"]] = message["params"].get("notifications", {})
    send({"method": "notifications/subscriptions/acknowledged", "params": {
        "notifications": LISTENERS[message["id"]], "_meta": {META + "subscriptionId": message["id"]}}})


def take(message):
    method, request_id = message.get("method"), message.get("id")
    if method == "notifications/cancelled":
        CANCELLED.add(message["params"]["requestId"])
        LISTENERS.pop(message["params"]["requestId"], None)
    elif request_id is None:
        return
    elif method == "subscriptions/listen":
        listen(message)
    elif method not in METHODS:
        send({"id": request_id, "error": {"code": -32601, "message": "there is no such method"}})
    else:
        threading.Thread(target=answer, args=(Call(request_id, method, message.get("params") or {}),), daemon=True).start()


if __name__ == "__main__":
    for line in sys.stdin:
        take(json.loads(line))
