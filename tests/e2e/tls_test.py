#!/usr/bin/env python3
"""Providers over https: who is trusted, and that nothing is said to anybody else."""
import contextlib
import os
import socket
import threading
from urllib.parse import urlsplit

from lib import Provider, Server, all_of, check, equal, main, test, text_of
from lib.tls import Certificates, Relay

KEY = Provider.KEY


def settings(port, model="hello"):
    return {"OPENAI_BASE_URL": f"https://127.0.0.1:{port}/v1", "OPENAI_API_KEY": KEY, "UAR_MODEL": model}


def port_of(provider):
    return urlsplit(provider.url).port


def failed(s, run_id):
    """The stream of a run that its model's failure ended, and what is said of the failure."""
    events = s.events(run_id)
    log = s.session_events(run_id)
    end = [e.data["payload"] for e in log if e.data["type"] == "model.failed"]
    record = s.record(run_id)
    equal((record["status"], record["error"]["code"]), ("failed", "PROVIDER_ERROR"))
    equal(events[-1].data["data"]["code"], "PROVIDER_ERROR")
    equal(events[-1].data["data"]["message"], record["error"]["message"])
    check(KEY not in "".join(e.text for e in events + log), "the key is in an event")
    return record["error"]["message"], end[-1]


def check_silence(raw):
    """What was on the wire is the beginning of a handshake and no request."""
    equal(raw[:2], b"\x16\x03", "no TLS")
    for word in (KEY, "Bearer", "POST", "chat/completions", "secret message"):
        check(word.encode() not in raw, word, "went over the wire")


def refuse(pair, words, vanishes=False, **trust):
    with Provider() as p, Relay(port_of(p), pair) as inside, Relay(inside.port) as wire:
        with Server(env=settings(wire.port), log_level="debug", **trust) as s:
            if vanishes:
                os.unlink(trust["ca_file"])
            message, end = failed(s, s.create("assistant", "secret message"))
            check(message.startswith("the provider's certificate cannot be trusted: "), message)
            check(any(w in message for w in words), message)
            equal((end["failure_category"], end["retryable"]), ("network", False))
            check_silence(wire.all_sent())
            equal((p.stats()["requests"], bytes(inside.sent)), (0, b""))
            equal(s.finish(s.create("echo", "still here"))["status"], "succeeded")
            equal(s.stop(), 0)
            check(KEY not in s.log(), "the key is in the log")


@test("a_certificate_that_is_not_trusted_ends_the_call_before_a_word", "SEC-03")
def untrusted():
    with Certificates() as c:
        ours = c.authority("ours")
        c.authority("other")
        refuse(c.server("own"), ["self-signed", "self signed"])
        refuse(c.server("theirs", by="other"), ["issuer certificate"], ca_file=ours)
        refuse(c.server("elsewhere", by="ours", of="DNS:other.example,IP:127.0.0.2"), ["match"], ca_file=ours)
        refuse(c.server("old", by="ours", days=0), ["expired"], ca_file=ours)
        refuse(c.server("fine", by="ours"), [ours], ca_file=ours, vanishes=True)


@test("who_does_not_speak_tls_is_told_nothing", "SEC-03")
def plain():
    """A port that answers in plain text gets a handshake, and neither key nor request."""
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as listener:
        def serve():
            with listener.accept()[0] as c, contextlib.suppress(ConnectionError):
                heard.append(c.recv(65536))
                c.sendall(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\nConnection: close\r\n\r\n")
                while more := c.recv(65536):
                    heard.append(more)
        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        with Server(env=settings(listener.getsockname()[1]), model_retries=0) as s:
            _, end = failed(s, s.create("assistant", "secret message"))
            equal(end["failure_category"], "network")
            thread.join()
            check_silence(b"".join(heard))


def trusted(env=(), flags=()):
    """Two runs at once over TLS; each event is there before the provider says more."""
    with Certificates() as c:
        ca = c.authority("ours")
        with Provider() as p, Relay(port_of(p), c.server(by="ours")) as inside, Relay(inside.port) as wire:
            variables = {**settings(wire.port, "gate"), **dict.fromkeys(env, ca)}
            with Server(env=variables, **dict.fromkeys(flags, ca)) as s:
                runs = all_of([lambda: s.create("assistant", "secret message")] * 2)
                streams = [s.stream(r) for r in runs]
                for stream in streams:
                    equal(text_of(stream.until(lambda e: e.type == "ChatDelta")), "before ")
                equal(p.wait_for(requests=2)["requests"], 2)
                p.release()
                for run_id, stream in zip(runs, streams):
                    equal(text_of(stream.all()), "after")
                    equal(s.record(run_id)["status"], "succeeded")
                equal(s.stop(), 0)
            check_silence(wire.all_sent())
            equal(inside.all_sent().count(KEY.encode()), 2, "inside TLS it is said")


@test("a_certificate_of_an_authority_that_the_user_names_is_fine", "NEV-03")
def named():
    trusted(env=["UAR_CA_FILE"])
    trusted(flags=["ca_file"])


@test("the_variable_that_other_programs_read_counts_too", "")
def alias():
    trusted(env=["SSL_CERT_FILE"])


main()
