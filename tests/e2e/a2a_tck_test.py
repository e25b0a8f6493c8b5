#!/usr/bin/env python3
"""The technology compatibility kit of the A2A project judges the server, where it is at hand.

UAR_TEST_TCK is a checkout of its branch 1.0-dev, UAR_TEST_TCK_PATH what its Python needs beside it (pytest, httpx,
jsonschema, jinja2, pytest-asyncio; without it they have to be installed). See docs/a2a.md for what comes out."""
# time limit: 600 s, the kit itself waits ten seconds in each of six tests
import json
import os
import subprocess
import tempfile
import xml.etree.ElementTree

from lib import Server, Skip, check, equal, main, test
from lib.tck_agent import Model

KIT = os.environ.get("UAR_TEST_TCK", "")
EXPECTED = {f"TestMessageResponse.test_returns_message_with_text_part[{binding}]"  # as docs/a2a.md explains
            for binding in ("jsonrpc", "http_json")}

SETTINGS = """[pytest]
testpaths = tests
asyncio_mode = auto
markers =
    core
    must
    should
    may
    grpc
    jsonrpc
    http_json
    streaming
    integration
"""

# No gRPC; a caller shows its token, which the kit has no option for; and each message has an id of its own: the kit
# gives one id to many messages, but here an id is one message.
PLUGIN = """
import itertools, os, sys
from unittest.mock import MagicMock
for name in ("grpc", "google", "google.protobuf", "google.protobuf.json_format", "google.protobuf.descriptor",
             "google.protobuf.message", "google.rpc", "google.rpc.error_details_pb2", "google.rpc.status_pb2", "google.api",
             "specification.generated", "specification.generated.a2a_pb2", "specification.generated.a2a_pb2_grpc"):
    sys.modules[name] = MagicMock()
sys.modules["grpc"].RpcError = type("RpcError", (Exception,), {})
import httpx
build, count = httpx.Client.build_request, itertools.count(1)
def build_request(self, method, url, **more):
    body = more.get("json")
    for part in (body, (body or {}).get("params") if isinstance(body, dict) else None):
        message = part.get("message") if isinstance(part, dict) else None
        if isinstance(message, dict) and "messageId" in message:
            message["messageId"] += f"-{next(count)}"
    request = build(self, method, url, **more)
    request.headers.setdefault("Authorization", "Bearer " + os.environ["UAR_TCK_TOKEN"])
    return request
httpx.Client.build_request = build_request
"""

AGENT = {"version": "1.0", "kind": "agent", "id": "tck", "metadata": {"title": "TCK", "description": "Does what the kit expects"},
         "runtime": {"entry": "llm.chat"}, "policy": {"tools": {"allow": ["internal:ui.form.request", "internal:artifact.put"]}}}


def run_kit(s, out):
    """The cases of the kit by their outcome."""
    with open(os.path.join(out, "pytest.ini"), "w") as f:
        f.write(SETTINGS)
    with open(os.path.join(out, "tck_uar.py"), "w") as f:
        f.write(PLUGIN)
    path = os.pathsep.join(p for p in (out, os.environ.get("UAR_TEST_TCK_PATH", ""), KIT) if p)
    report = os.path.join(out, "tck.xml")
    done = subprocess.run(["python3", "-m", "pytest", "-p", "tck_uar", "-p", "no:cacheprovider", "-c",
                           os.path.join(out, "pytest.ini"), "--rootdir=" + KIT, os.path.join(KIT, "tests", "compatibility"),
                           "--ignore=" + os.path.join(KIT, "tests", "compatibility", "grpc"), "--sut-host=" + s.url,
                           "--transport=jsonrpc,http_json", "--webhook-host=127.0.0.1", "--tb=line", "-q",
                           "--junitxml=" + report, "--compatibility-report=" + os.path.join(out, "report")],
                          cwd=KIT, env={**os.environ, "PYTHONPATH": path, "PYTHONDONTWRITEBYTECODE": "1",
                                        "UAR_TCK_TOKEN": s.token, "PATH": "/usr/bin:" + os.environ["PATH"]},
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    check(os.path.exists(report), done.stdout[-3000:])
    cases = {"passed": [], "failed": [], "skipped": []}
    for case in xml.etree.ElementTree.parse(report).iter("testcase"):
        name = case.get("classname").rsplit(".", 1)[-1] + "." + case.get("name")
        kinds = {child.tag: child.get("message", "") for child in case}
        kind = "failed" if kinds.keys() & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        cases[kind].append((name, " ".join(kinds.values())[:300]))
    return cases


@test("the_kit_of_the_protocol_is_content", "A2A-10")
def kit():
    if not KIT:
        raise Skip("the kit of others lies beside the tree, not in it")
    with tempfile.TemporaryDirectory() as out, Model() as model:
        data = os.path.join(out, "data")
        os.makedirs(os.path.join(data, "agents"), mode=0o700)
        with open(os.path.join(data, "agents", "tck.json"), "w") as f:
            json.dump(AGENT, f)
        env = {"OPENAI_BASE_URL": model.url + "/v1", "OPENAI_API_KEY": "sk-none", "UAR_MODEL": "tck"}
        with Server(data=data, env=env, a2a_agent="tck", a2a_compat_0_3="false", outbound_allow="127.0.0.1") as s:
            s.ready()
            model.work_for(s.url, s.token)
            cases = run_kit(s, out)
    for kind in ("skipped", "failed"):
        for name, why in cases[kind]:
            print(f"# {kind}: {name}: {why}")
    print("# " + ", ".join(f"{len(c)} {k}" for k, c in cases.items()))
    equal({name for name, _ in cases["failed"]} - EXPECTED, set())


if __name__ == "__main__":
    main()
