#!/usr/bin/env python3
"""Channels: remote peers follow a session, leave, come back, acknowledge, decide permissions."""
import json

from lib import Server, Stream, check, check_session, equal, main, refused, test, wait_until
from lib.payloads import check_payload

ASK = 'tool fs.write {"path": "a.txt", "text": "x"}'
PEER = {"transport": "sse", "peer_role": "peer_agent", "peer_id": "https://peer.example/a2a/bob", "native_protocol": "a2a",
        "account_ref": "account://bob", "agent_card_ref": "https://peer.example/.well-known/agent-card.json",
        "capabilities": ["permissions"]}


def command(s, name, **body):
    return s.http.post("/api/control/" + name, body)


def done(s, name, **body):
    a = command(s, name, **body)
    equal(a.status, 200, (name, a.body))
    return a.json["result"]


def session(s, message="hello", agent="echo"):
    run = s.record(s.create(agent, message))
    return run["session_id"], run["run_id"]


def connect(s, session_id, **more):
    got = done(s, "connect_channel", session_id=session_id, **{**PEER, **more})
    return got["channel"]["channel_id"], got["resume_token"]


def log(s, session_id, *kinds):
    events = [e.data for e in s.session_stream(session_id, stored=1).all()]
    for e in events:
        check_payload(e)
    return [e for e in events if not kinds or e["type"] in kinds]


def summary(s, session_id):
    got = s.http.get(f"/api/sessions/{session_id}?verify=1").json
    equal(got["read_models"]["channel_summary"]["state"], "available")
    return got["channel_summary"]["channels"][0]


def follow(s, channel_id):
    return Stream(s.url, f"/api/channels/{channel_id}/events", s.token)


def gone(s, session_id):
    return wait_until(lambda: log(s, session_id, "channel.disconnected"), "the disconnect")


@test("a_channel_has_an_identity_and_a_peer", "CHAN-01 ID-14 EVT-102 SNAP-13")
def identity():
    with Server() as s:
        session_id, run_id = session(s)
        s.finish(run_id)
        channel_id, token = connect(s, session_id)
        [e] = log(s, session_id, "channel.connected")
        equal(e["channel_id"], channel_id)
        equal({k: e["payload"][k] for k in ("transport", "peer_role", "peer_id", "native_protocol", "account_ref",
                                            "capabilities", "resume_supported")},
              {**{k: v for k, v in PEER.items() if k != "agent_card_ref"}, "resume_supported": True})
        equal(e["refs"]["agent_card_ref"], PEER["agent_card_ref"])
        check(e["refs"]["resume_token_ref"].startswith("channel-token://"), e)
        check(token not in json.dumps(log(s, session_id)), "the token is in no event")
        c = summary(s, session_id)
        equal((c["channel_id"], c["peer_id"], c["native_protocol"], c["status"]),
              (channel_id, PEER["peer_id"], "a2a", "connected"))
        check(c["last_seen_at"] and c["permission_bridge"]["state"] == "idle", c)
        check_session(s.session_events(run_id))


@test("events_are_acknowledged_once", "CTL-44 SNAP-13")
def acknowledged():
    with Server() as s:
        session_id, run_id = session(s)
        s.finish(run_id)
        channel_id, _ = connect(s, session_id)
        at = done(s, "ack_events", channel_id=channel_id, cursor="1")["channel"]["last_ack_sequence"]
        equal(log(s, session_id, "channel.message"), [], "an earlier cursor changes nothing")
        got = done(s, "ack_events", channel_id=channel_id, cursor=str(at + 1))
        equal(got["channel"]["last_ack_sequence"], at + 1)
        [e] = log(s, session_id, "channel.message")
        equal((e["payload"]["kind"], e["payload"]["native_ids"]), ("protocol", {"ack_sequence": at + 1}))
        s.kill()
        s.start()
        equal(summary(s, session_id)["last_ack_sequence"], at + 1)
        refused(command(s, "ack_events", channel_id=channel_id, cursor="100000"), 400, "VALIDATION_ERROR", "/cursor")
        refused(command(s, "ack_events", channel_id=channel_id, cursor="x"), 400, "VALIDATION_ERROR", "/cursor")


@test("a_peer_that_leaves_is_a_fact_and_comes_back_with_a_snapshot_first",
      "CTL-43 CTL-48 EVT-103 EVT-104 FACT-10")
def back():
    with Server() as s:
        session_id, run_id = session(s)
        s.finish(run_id)
        channel_id, token = connect(s, session_id)
        stream = follow(s, channel_id)
        first = stream.next()
        equal((first.name, first.data["session"]["session_id"]), ("snapshot", session_id))
        seen = stream.next()
        equal(seen.data["type"], "channel.connected")
        done(s, "ack_events", channel_id=channel_id, cursor=str(seen.data["sequence"]))
        equal(stream.next().data["type"], "channel.message")
        stream.close()
        [e] = gone(s, session_id)
        equal((e["payload"]["clean"], e["payload"]["reason_code"], e["payload"]["retryable"]), (False, "peer_gone", True))
        equal(e["payload"]["last_ack_sequence"], seen.data["sequence"])
        refused(s.http.get(f"/api/channels/{channel_id}/events"), 409, "CONFLICT")
        s.finish(s.create("echo", "meanwhile", conversation_id=s.record(run_id)["conversation_id"]))
        refused(command(s, "reconnect_channel", channel_id=channel_id, resume_token="wrong"), 403, "FORBIDDEN", "/resume_token")
        a = Stream(s.url, "/api/control/reconnect_channel", s.token,
                   body={"channel_id": channel_id, "resume_token": token})
        frames = [a.next()]
        while not frames[-1].data.get("type") == "channel.resumed":
            frames.append(a.next())
        equal(frames[0].name, "snapshot")
        sequences = [f.data["sequence"] for f in frames[1:]]
        equal(sequences, list(range(seen.data["sequence"] + 1, sequences[-1] + 1)), "all that it missed")
        p = frames[-1].data["payload"]
        equal((p["mode"], p["from_sequence"], p["gap"]), ("snapshot_and_replay", seen.data["sequence"], False))
        equal(p["replayed"], p["to_sequence"] - p["from_sequence"])
        c = summary(s, session_id)
        equal((c["status"], c["resumed_by"], c["resume_cursor"]), ("connected", "snapshot_and_replay", seen.data["sequence"]))
        a.close()
        wait_until(lambda: len(gone(s, session_id)) == 2, "the second disconnect")
        got = done(s, "reconnect_channel", channel_id=channel_id, resume_token=token, cursor="7-99")
        equal((got["mode"], got["gap"]), ("snapshot", True), "a cursor of another history")
        stream = follow(s, channel_id)
        equal(stream.next().name, "snapshot")
        equal(stream.next().data["type"], "channel.resumed", "nothing is replayed")
        stream.close()


@test("a_channel_survives_kill_9", "FACT-10")
def killed():
    with Server() as s:
        session_id, run_id = session(s)
        s.finish(run_id)
        channel_id, token = connect(s, session_id)
        stream = follow(s, channel_id)
        stream.next()
        s.kill()
        s.start()
        got = done(s, "reconnect_channel", channel_id=channel_id, resume_token=token)
        equal(got["mode"], "snapshot_and_replay")
        kinds = [e["type"] for e in log(s, session_id) if e["type"].startswith("channel.")]
        equal(kinds, ["channel.connected", "channel.disconnected", "channel.resumed"])
        equal(gone(s, session_id)[0]["payload"]["reason_code"], "superseded")
        got = done(s, "disconnect_channel", channel_id=channel_id, reason="bye")
        equal(got["channel"]["status"], "disconnected")
        equal(gone(s, session_id)[1]["payload"]["clean"], True)


@test("a_permission_crosses_a_channel_and_says_who_decided", "CHAN-03 EVT-106 EVT-107 SNAP-13")
def bridged():
    with Server() as s:
        session_id, first = session(s)
        s.finish(first)
        conversation = s.record(first)["conversation_id"]
        channel_id, _ = connect(s, session_id)
        stream = follow(s, channel_id)
        for remote in (True, False):
            run_id = s.create("tools", ASK, conversation_id=conversation)
            action = wait_until(lambda run_id=run_id: s.record(run_id).get("actions"), "a question")[0]["action_id"]
            n = 1 if remote else 2
            [*_, e] = wait_until(lambda n=n: (lambda l: l if len(l) == n else None)(
                log(s, session_id, "channel.permission_forwarded")), "the question crosses")
            p = e["payload"]
            equal((e["action_id"], p["decision_id"], p["to_channel_id"]), (action, action, channel_id))
            equal(p["target"]["kind"], "tool")
            check(p["requesting_peer"], p)
            equal(summary(s, session_id)["permission_bridge"]["state"], "pending")
            if remote:
                a = s.http.post(f"/api/channels/{channel_id}/permissions/{action}", {"decision": "allow"})
                equal(a.status, 200, a.body)
            else:
                done(s, "respond_action", action_id=action, decision="deny")
            equal(s.finish(run_id)["status"], "succeeded")
            [*_, e] = wait_until(lambda n=n: (lambda l: l if len(l) == n else None)(
                log(s, session_id, "channel.permission_returned")), "the decision")
            p = e["payload"]
            equal((p["outcome"], p["decided_side"], p["source"], p["channel_scoped"]),
                  ("allowed", "remote", "response", False) if remote else ("denied", "local", "response", False))
            equal(p["decided_by"]["type"], "channel" if remote else "user")
        bridge = summary(s, session_id)["permission_bridge"]
        equal((bridge["state"], bridge["pending"], bridge["returned"]), ("returned", 0, 2))
        equal(bridge["last_decision"]["decided_side"], "local")
        resolved = log(s, session_id, "action.resolved")[0]["payload"]
        equal((resolved["source"], resolved["resolved_by"]), ("channel", {"type": "channel", "id": channel_id}))
        stream.close()


@test("another_owner_has_other_channels", "CHAN-02")
def owners():
    with Server(user="one") as s:
        session_id, run_id = session(s)
        s.finish(run_id)
        channel_id, token = connect(s, session_id)
        s.restart(user="two")
        equal(s.http.get(f"/api/channels/{channel_id}/events").status, 404)
        equal(command(s, "reconnect_channel", channel_id=channel_id, resume_token=token).status, 404)
        equal(s.http.post(f"/api/channels/{channel_id}/permissions/x", {"decision": "allow"}).status, 404)


if __name__ == "__main__":
    main()
