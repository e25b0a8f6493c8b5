#!/usr/bin/env python3
"""A provider that speaks HTTP/2 alone: answers that share a connection do not hold each other up."""
import json
import os
import subprocess

from lib import ROOT, Server, all_of, check, equal, main, npm, test, text_of
from lib.check import readable
from lib.tls import Certificates

KEY = "sk-canary-0123456789abcdefghijklmnop"


class Provider:
    """tests/lib/h2_provider.mjs as a child: what it tells is waited for, by kind and number."""

    def __init__(self, pair, streams):
        program = os.path.join(ROOT, "tests", "lib", "h2_provider.mjs")
        self.proc = subprocess.Popen([npm.node(), program, *pair, str(streams)], bufsize=0, stdin=subprocess.PIPE,
                                     stdout=subprocess.PIPE)
        self.told = []
        self.port = self.wait("port")["port"]

    def wait(self, kind, value=None):
        def fits(x):
            return kind in x and value in (None, x[kind], x.get("message"))
        while not any(map(fits, self.told)):
            check(readable(self.proc.stdout), "the provider says nothing")
            self.told.append(json.loads(self.proc.stdout.readline()))
        return next(filter(fits, self.told))

    def order(self, request, **what):
        self.proc.stdin.write(json.dumps({"to": request, **what}).encode() + b"\n")

    def has_told(self, kind):
        return [x for x in self.told if kind in x]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.proc.kill()
        self.proc.wait()
        self.proc.stdin.close()
        self.proc.stdout.close()


class Talk:
    """One run, its stream, and its request at the provider."""

    def __init__(self, s, p, message):
        self.s, self.p, self.message = s, p, message
        self.run_id = s.create("assistant", message)
        self.stream = s.stream(self.run_id)
        self.heard = ""

    def begin(self):
        self.request = self.p.wait("request", self.message)
        equal(self.request["key"], "Bearer " + KEY)
        return self

    def say(self, word):
        """The provider says it, and it is shown before anything else is said."""
        self.p.order(self.request["request"], say=word)
        self.hear(word)

    def hear(self, last):
        while not self.heard.endswith(last):
            self.heard += text_of(self.stream.until(lambda e: e.type == "ChatDelta"))

    def end(self):
        self.p.order(self.request["request"], end=True)
        equal(self.stream.all()[-1].type, "RunDone")
        equal(self.s.record(self.run_id)["status"], "succeeded")


def world(fn, streams=100):
    """`streams`: how many a connection to the provider takes."""
    with Certificates() as c:
        ca = c.authority("ours")
        with Provider(c.server(by="ours"), streams) as p:
            env = {"OPENAI_BASE_URL": f"https://127.0.0.1:{p.port}/v1", "OPENAI_API_KEY": KEY, "UAR_MODEL": "m"}
            with Server(env=env, ca_file=ca, model_retries=0) as s:
                fn(s, p)


@test("tokens_over_http2_are_shown_one_by_one", "VAL-02 NEV-03")
def one_by_one():
    def go(s, p):
        talk = Talk(s, p, "hello").begin()
        words = [f"word{i} " for i in range(30)]
        for word in words:
            talk.say(word)
        talk.end()
        equal(talk.heard, "".join(words))
        equal(p.wait("closed", 1)["code"], 0)
    world(go)


@test("answers_that_share_a_connection_do_not_wait_for_each_other", "")
def together():
    def go(s, p):
        a = Talk(s, p, "a").begin()
        a.say("a0 ")
        b = Talk(s, p, "b").begin()
        equal(b.request["session"], a.request["session"], "one connection")
        for i in range(20):  # a is silent
            b.say(f"b{i} ")
        a.say("a1 ")
        b.end()
        c = Talk(s, p, "c").begin()
        equal(c.request["session"], a.request["session"])
        for i in range(10):
            c.say(f"c{i} ")
            a.say(f"a{2 + i} ")
        a.end()
        c.end()
        equal(a.heard, "".join(f"a{i} " for i in range(12)))
        equal(p.has_told("gone"), [])
    world(go)


@test("runs_that_begin_at_once_are_all_served", "")
def crowd():
    def go(s, p):
        talks = all_of([lambda i=i: Talk(s, p, f"m{i}") for i in range(24)])
        for talk in talks:
            talk.begin()
        for talk in talks:
            talk.say(talk.message + " ")
        for talk in reversed(talks):
            talk.end()
        check(len({t.request["session"] for t in talks}) <= 12, "more connections than may be")
    world(go)


@test("runs_that_begin_at_once_are_served_where_streams_are_few", "")
def narrow():
    def go(s, p):
        runs = all_of([lambda i=i: s.create("assistant", f"m{i}") for i in range(48)])
        for i in range(len(runs)):
            p.wait("request", 1 + i)
            p.order(1 + i, end=True)
        for run_id in runs:
            equal(s.finish(run_id)["status"], "succeeded")
    world(go, streams=2)


@test("a_refused_stream_is_tried_again_and_not_for_ever", "")
def refused():
    """libcurl gives up at the sixth; begun again eight times (CLIENT_REFUSED) that is 54."""
    def go(s, p):
        talk = Talk(s, p, "refuse:20").begin()
        talk.say("at last ")
        talk.end()
        equal([len(p.has_told(x)) for x in ("refused", "request")], [20, 1])
        record = s.finish(s.create("assistant", "refuse:1000"))
        equal((record["status"], record["error"]["code"]), ("failed", "PROVIDER_ERROR"))
        equal(record["error"]["details"], {"retriable": True})
        Talk(s, p, "b").begin().end()
        equal([len(p.has_told(x)) for x in ("refused", "request")], [20 + 54, 2])
    world(go)


@test("a_request_whose_connection_breaks_is_not_begun_again", "")
def broken():
    """Where it has been read it may have been obeyed. libcurl itself tries again, on connections that stood idle,
    when one is reset before a byte of an answer: six times are its own."""
    def go(s, p):
        for how, most in (("break:close", 1), ("break:stream", 1), ("break:abort", 6)):
            for talk in [Talk(s, p, f"{how} {i}").begin() for i in range(8)]:
                talk.end()  # and leaves a connection
            record = s.finish(s.create("assistant", how))
            equal((record["status"], record["error"]["code"]), ("failed", "PROVIDER_ERROR"))
            Talk(s, p, f"after {how}").begin().end()  # whatever else was sent has come by now
            check(1 <= len([x for x in p.has_told("broken") if x["broken"] == how]) <= most, how, p.told)
    world(go, streams=1)


@test("a_flood_in_one_answer_leaves_room_for_another", "")
def flood():
    """Far more than waits for the loop at once (CLIENT_INBOX) and than a window of HTTP/2 has."""
    def go(s, p):
        a, b = Talk(s, p, "a").begin(), Talk(s, p, "b").begin()
        equal(a.request["session"], b.request["session"])
        text = "0123456789" * 10
        for i in range(10):
            p.order(a.request["request"], fill=text, times=2000)
            b.say(f"b{i} ")
        p.order(a.request["request"], say="the end")
        a.hear("the end")
        equal(len(a.heard), 10 * 2000 * len(text) + len("the end"))
        a.end()
        b.say("last ")
        b.end()
    world(go)


@test("a_connection_that_takes_no_more_requests_ends_what_it_has", "")
def goaway():
    def go(s, p):
        a = Talk(s, p, "a").begin()
        a.say("a0 ")
        p.order(a.request["request"], goaway=True)
        a.say("a1 ")  # it has come after the notice
        b = Talk(s, p, "b").begin()
        check(b.request["session"] != a.request["session"], "another connection")
        b.say("b0 ")
        a.say("a2 ")
        a.end()
        b.say("b1 ")
        b.end()
    world(go)


def cancel(talk):
    talk.s.cancel(talk.run_id)
    equal(talk.s.finish(talk.run_id)["status"], "canceled")


def overflow(talk):
    """An error answer without end is read up to a limit and no further."""
    talk.p.order(talk.request["request"], fill="0123456789" * 10, times=2000)
    record = talk.s.finish(talk.run_id)
    equal((record["status"], record["error"]["code"]), ("failed", "PROVIDER_ERROR"))


def left(leave, message):
    """The provider hears that nobody listens without anything else being said: others who share
    the connection are silent, and stay, or there are none."""
    def shared(s, p):
        a, b = Talk(s, p, message).begin(), Talk(s, p, "b").begin()
        b.say("b0 ")
        leave(a)
        check(p.wait("closed", a.request["request"])["code"] != 0, "it counts as a whole answer")
        for i in range(10):
            b.say(f"b{1 + i} ")
        c = Talk(s, p, "c").begin()
        equal({t.request["session"] for t in (a, b, c)}, {1}, "the connection stays")
        b.end()
        c.end()
        equal(p.has_told("gone"), [])

    def alone(s, p):
        a = Talk(s, p, message).begin()
        leave(a)
        p.wait("closed", a.request["request"])
        b = Talk(s, p, "b").begin()
        b.say("b0 ")
        b.end()
    world(shared)
    world(alone)


@test("a_cancelled_answer_ends_while_nobody_else_speaks", "RUN-36")
def cancelled():
    left(cancel, "a")


@test("an_answer_that_is_given_up_ends_while_nobody_else_speaks", "")
def given_up():
    left(overflow, "status:500")


main()
