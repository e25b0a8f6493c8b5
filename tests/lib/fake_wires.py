"""How the fake provider speaks: OpenAI's chat completions and Responses, and Anthropic's Messages.

A wire turns what a script says (text, reasoning, pieces of calls, an end) into the events of its API, and reads from a
request what the script wants to know: the last message of the user, what tools brought, whether a sealed block came back.
"""
import json

def plain(content):
    """The text of what a tool brought, with or without images."""
    if isinstance(content, str):
        return content
    return " ".join(part["text"] if "text" in part else f"[{part['type']}]" for part in content)


SEAL = "c2VhbGVk/+8="  # what a provider wants back to the letter


class Wire:
    def __init__(self, handler, model, body):
        self.handler, self.model, self.body = handler, model, body
        self.tokens = 0
        self.twice = False  # each event is sent two times, where its wire allows for it
        self.usage = True

    def send(self, value, name=None):
        head = f"event: {name}\n".encode() if name else b""
        self.handler.chunk(head + b"data: " + json.dumps(value).encode() + b"\n\n")


class Chat(Wire):
    """POST /chat/completions"""
    path = "/chat/completions"

    @staticmethod
    def last_user(body):
        texts = [m.get("content") or "" for m in body.get("messages", []) if m.get("role") == "user"]
        return texts[-1] if texts else ""

    @staticmethod
    def results(body):
        return [m["content"] for m in body["messages"] if m["role"] == "tool"]

    @staticmethod
    def error(kind, message, code=None):
        return {"error": {"message": message, "type": kind, "code": code}}

    def event(self, delta, finish=None, usage=None):
        choice = None if usage else {"index": 0, "delta": delta, "finish_reason": finish}
        value = {"id": "chatcmpl-fake", "object": "chat.completion.chunk", "created": 1700000000,
                 "model": "fake-" + self.model, "choices": [choice] if choice else []}
        if usage:
            value["usage"] = usage
        self.send(value)

    def begin(self):
        self.event({"role": "assistant", "content": ""})

    def text(self, value):
        self.tokens += 1
        self.event({"content": value})

    def reasoning(self, value):
        self.tokens += 1
        self.event({"reasoning_content": value})

    def seal(self):
        pass

    def has_seal(self):
        return True

    def calls(self, value):
        self.tokens += 1
        self.event({"tool_calls": value})

    def unknown(self):
        self.send({"object": "surprise", "x": [1]}, "surprise")

    def fail(self):
        self.send({"error": {"message": "It broke.", "code": "server_error"}})

    def end(self, finish):
        if finish:
            for _ in range(1 + self.twice):
                self.event({}, finish=finish)
        if self.usage and (self.body.get("stream_options") or {}).get("include_usage"):
            prompt = sum(len(str(m.get("content") or "").split()) for m in self.body.get("messages", []))
            self.event({}, usage={"prompt_tokens": prompt, "completion_tokens": self.tokens,
                                  "total_tokens": prompt + self.tokens})
        self.handler.chunk(b"data: [DONE]\n\n")


class Anthropic(Wire):
    """POST /v1/messages"""
    path = "/messages"
    stops = {"stop": "end_turn", "length": "max_tokens", "tool_calls": "tool_use", "content_filter": "refusal"}

    def __init__(self, handler, model, body):
        super().__init__(handler, model, body)
        self.index, self.kind, self.blocks, self.thought = -1, None, {}, ""

    @staticmethod
    def blocks_of(body, role, kind):
        return [b for m in body["messages"] if m["role"] == role and isinstance(m["content"], list)
                for b in m["content"] if b["type"] == kind]

    @classmethod
    def last_user(cls, body):
        texts = [b["text"] for b in cls.blocks_of(body, "user", "text")]
        return texts[-1] if texts else ""

    @classmethod
    def results(cls, body):
        return [plain(b["content"]) for b in cls.blocks_of(body, "user", "tool_result")]

    @staticmethod
    def error(kind, message, code=None):
        kinds = {"requests": "rate_limit_error", "server_error": "api_error", "overloaded": "overloaded_error"}
        kind = "authentication_error" if code == "invalid_api_key" else kinds.get(kind, kind)
        return {"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_fake"}

    def event(self, kind, **members):
        self.send({"type": kind, **members}, kind)

    def begin(self):
        for _ in range(1 + self.twice):
            usage = {"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 1} if self.usage else {}
            self.event("message_start", message={
                "id": "msg_fake", "type": "message", "role": "assistant", "model": "fake-" + self.model,
                "content": [], "stop_reason": None, "usage": usage})
            self.event("ping")

    def close(self):
        if self.kind:
            for _ in range(1 + self.twice):
                self.event("content_block_stop", index=self.index)
        self.kind = None

    def block(self, kind, **members):
        self.close()
        self.index += 1
        self.kind = kind
        self.event("content_block_start", index=self.index, content_block={"type": kind, **members})

    def delta(self, index, kind, **members):
        self.tokens += 1
        self.event("content_block_delta", index=index, delta={"type": kind, **members})

    def text(self, value):
        if self.kind != "text":
            self.block("text", text="")
        self.delta(self.index, "text_delta", text=value)

    def reasoning(self, value):
        if self.kind != "thinking":
            self.block("thinking", thinking="", signature="")
        self.delta(self.index, "thinking_delta", thinking=value)

    def seal(self):
        self.delta(self.index, "signature_delta", signature=SEAL)
        self.block("redacted_thinking", data=SEAL + "x")

    def has_seal(self):
        thought = self.blocks_of(self.body, "assistant", "thinking")
        hidden = self.blocks_of(self.body, "assistant", "redacted_thinking")
        return (thought == [{"type": "thinking", "thinking": "Let me see. ", "signature": SEAL}]
                and hidden == [{"type": "redacted_thinking", "data": SEAL + "x"}])

    def calls(self, value):
        for piece in value:
            key, function = piece["index"], piece["function"]
            if key not in self.blocks:
                self.block("tool_use", id=piece.get("id") or f"toolu_{key}", name=function["name"], input={})
                self.blocks[key] = self.index
            if function.get("arguments"):
                self.delta(self.blocks[key], "input_json_delta", partial_json=function["arguments"])

    def unknown(self):
        self.event("surprise", x=[1])

    def fail(self):
        self.send(self.error("server_error", "It broke."), "error")

    def end(self, finish):
        self.close()
        if finish:
            for _ in range(1 + self.twice):
                usage = {"output_tokens": self.tokens} if self.usage else {}
                self.event("message_delta", delta={"stop_reason": self.stops.get(finish, finish)}, usage=usage)
        self.event("message_stop")


class Responses(Wire):
    """POST /responses"""
    path = "/responses"

    def __init__(self, handler, model, body):
        super().__init__(handler, model, body)
        self.number, self.item, self.output, self.open = 0, None, -1, {}

    @staticmethod
    def last_user(body):
        texts = [i["content"] for i in body["input"] if i.get("role") == "user"]
        return texts[-1] if texts else ""

    @staticmethod
    def results(body):
        return [plain(i["output"]) for i in body["input"] if i.get("type") == "function_call_output"]

    error = staticmethod(Chat.error)

    def event(self, kind, **members):
        for _ in range(1 + self.twice):
            self.send({"type": "response." + kind, "sequence_number": self.number, **members}, "response." + kind)
        self.number += 1

    def begin(self):
        self.event("created", response={"id": "resp_fake", "model": "fake-" + self.model, "status": "in_progress",
                                        "output": []})

    def close(self, **members):
        if self.item:
            self.event("output_item.done", output_index=self.output, item={**self.item, **members})
        self.item = None

    def begin_item(self, **item):
        self.close()
        self.output += 1
        self.item = item
        self.event("output_item.added", output_index=self.output, item=item)

    def piece(self, kind, value, output=None):
        self.tokens += 1
        self.event(kind, output_index=self.output if output is None else output, delta=value)

    def text(self, value):
        if not self.item or self.item["type"] != "message":
            self.begin_item(id="msg_1", type="message", role="assistant", content=[])
        self.piece("output_text.delta", value)

    def reasoning(self, value):
        if not self.item or self.item["type"] != "reasoning":
            self.begin_item(id="rs_1", type="reasoning", summary=[])
        self.piece("reasoning_summary_text.delta", value)

    def seal(self):
        self.close(encrypted_content=SEAL)

    def has_seal(self):
        sealed = [i for i in self.body["input"] if i.get("type") == "reasoning"]
        return [i.get("encrypted_content") for i in sealed] == [SEAL]

    def calls(self, value):
        for piece in value:
            key, function = piece["index"], piece["function"]
            if key not in self.open:
                self.begin_item(id=f"fc_{key}", type="function_call", name=function["name"], arguments="",
                                call_id=piece.get("id") or f"call_{key}")
                self.open[key] = self.output
                self.item = None
            if function.get("arguments"):
                self.piece("function_call_arguments.delta", function["arguments"], self.open[key])

    def unknown(self):
        self.event("surprise", x=[1])

    def fail(self):
        self.event("failed", response={"status": "failed", "error": {"code": "server_error", "message": "It broke."}})

    def end(self, finish):
        self.close()
        response = {"id": "resp_fake", "model": "fake-" + self.model, "output": [], "error": None}
        if self.usage:
            response["usage"] = {"input_tokens": 7, "input_tokens_details": {"cached_tokens": 2},
                                 "output_tokens": self.tokens, "output_tokens_details": {"reasoning_tokens": 0},
                                 "total_tokens": 7 + self.tokens}
        if finish in ("length", "content_filter"):
            reason = "max_output_tokens" if finish == "length" else finish
            self.event("incomplete", response={**response, "status": "incomplete",
                                               "incomplete_details": {"reason": reason}})
        elif finish:
            self.event("completed", response={**response, "status": "completed"})


WIRES = (Chat, Anthropic, Responses)
