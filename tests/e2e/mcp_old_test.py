#!/usr/bin/env python3
"""MCP servers of 2024-11-05, whose transport has two addresses: used, reconnected, and kept to their origin."""
import os
import subprocess

from lib import check, equal, main, test, wait_until
from lib.mcp_host import Host, connected, log_file, of, state
from lib.mcp_mock import HttpMock, asked
from lib.mcp_old import OldMock
from lib.npm import modules, node
from lib.web import free_port


@test("servers_of_2024_are_found_out_and_used", "MCP-01 MCP-03")
def used():
    for refusal in (404, 405):
        log = log_file("a")
        with OldMock(log, refusal=refusal) as old, Host({"web": {"url": old.url, "ask": False, "headers": {"X-Key": "k"}}}) as s:
            equal(connected(s, "web")["revision"], "2024-11-05")
            events = s.finished('tool mcp__web_add {"a":40,"b":2}', "tool mcp__web_fails")
            equal([r["preview"] for r in of(events, "tool.result")], [{"sum": 42}])
            equal(len(of(events, "tool.failed")), 1)
            equal({m["headers"].get("x-key") for m in asked(log)}, {"k"})
            equal(len(asked(log, "tools/list")), 2, "two pages, once")


@test("a_stream_that_ends_fails_its_call_once_and_comes_back", "MCP-09")
def ended():
    log = log_file("a")
    with OldMock(log) as old, Host({"web": {"url": old.url, "ask": False}}) as s:
        connected(s, "web")
        events = s.finished("tool mcp__web_die")
        equal((len(of(events, "tool.failed")), len(asked(log, "tools/call", "die"))), (1, 1))
        wait_until(lambda: len(asked(log, "initialize")) == 2, "it connects again")
        connected(s, "web")
        equal(len(of(s.finished('tool mcp__web_add {"a":1,"b":2}'), "tool.result")), 1)


@test("messages_do_not_go_to_another_origin", "")
def elsewhere():
    taken = log_file("b")
    with HttpMock(taken) as other, OldMock(log_file("a"), elsewhere=other.url) as old:
        with Host({"web": {"url": old.url, "headers": {"X-Key": "k"}}}) as s:
            wait_until(lambda: state(s, "web").get("state") == "failed", "it is refused")
            check("where messages go" in state(s, "web")["reason"], state(s, "web"))
            equal(asked(taken), [])


@test("an_address_that_is_no_server_says_its_status", "")
def nothing_there():
    with OldMock(log_file("a")) as old, Host({"web": {"url": old.url.replace("/sse", "/nothing")}}) as s:
        wait_until(lambda: state(s, "web").get("state") == "failed", "it is given up for now")
        check("HTTP status 404" in state(s, "web")["reason"], state(s, "web"))


@test("a_ready_server_over_two_addresses_is_used", "MCP-03")
def everything():
    program = os.path.join(modules("mcp-servers"), "@modelcontextprotocol", "server-everything", "dist", "index.js")
    port = free_port()
    web = subprocess.Popen([node(), program, "sse"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                           env={**os.environ, "PORT": str(port)})
    try:
        with Host({"all": {"url": f"http://127.0.0.1:{port}/sse", "ask": False}}) as s:
            connected(s, "all")
            events = s.finished('tool mcp__all_echo {"message":"hello"}')
            check("hello" in str(of(events, "tool.result")), of(events, "tool.failed"))
    finally:
        web.kill()
        web.wait()


if __name__ == "__main__":
    main()
