#!/usr/bin/env python3
"""The verbs of `uar` against a real server, for people and for programs."""
import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import tempfile

from lib import FIXTURES, SAFETY, UAR, Provider, Server, check, equal, main, run_uar, test, text_of
from lib.disk import SmallDisk
from lib.server import clean_environment


def uar(s, *argv, **more):
    return run_uar(*argv, "--data", s.data, home=s.root, **more)


def good(s, *argv, **more):
    out = uar(s, *argv, **more)
    equal(out.returncode, 0, f"{argv} {out.stderr}")
    return out.stdout


def lines(text):
    return [json.loads(line) for line in text.splitlines()]


def begin(s, *argv):
    return subprocess.Popen([UAR, *argv, "--data", s.data], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, text=True, env=clean_environment(s.root))


def end(proc):
    out, err = proc.communicate(timeout=120)
    return proc.returncode, out, err


@test("run_says_what_the_agent_says", "API-26 ACC-01 ACC-02")
def run():
    with Server(fixtures_dir=FIXTURES) as s:
        equal(good(s, "run", "echo", "hi", "there"), "hi there\n")
        equal(good(s, "run", "echo", "-", input="from a pipe\n"), "from a pipe\n")
        events = lines(good(s, "run", "demo", "--json", "hi"))
        equal((events[0]["type"], events[-1]["type"]), ("RunStart", "RunDone"))
        first = good(s, "run", "demo", "--conversation", "c", "one")
        check("this one: 0" in first and "this one: 1" in
              good(s, "run", "demo", "--conversation", "c", "two"), first)
        key = lines(good(s, "run", "echo", "--idempotency-key", "k", "--json", "x"))
        equal(lines(good(s, "run", "echo", "--idempotency-key", "k", "--json", "x")), key)
        out = uar(s, "run", "nobody", "x")
        check(out.returncode == 1 and "nobody" in out.stderr, out)
        equal(uar(s, "run").returncode, 2)


@test("the_exit_status_tells_the_outcome", "RUN-14")
def exit_status():
    with Provider() as p, Server(env=p.env("err500")) as s:
        out = uar(s, "run", "assistant", "x")
        check(out.returncode == 1 and "The server had an error." in out.stderr + out.stdout, out)
    with Provider() as p, Server(env=p.env("gate")) as s:
        equal(uar(s, "run", "assistant", "--timeout", "0.5", "x").returncode, 4)
        equal(uar(s, "run", "assistant", "--timeout", ".5", "x").returncode, 4)
        equal(uar(s, "run", "assistant", "--timeout", "0", "x").returncode, 2)
        proc = begin(s, "run", "assistant", "--json", "x")
        run_id = json.loads(proc.stdout.readline())["data"]["run_id"]
        good(s, "cancel", run_id, "--reason", "enough")
        status, out, err = end(proc)
        equal(status, 3, out + err)
        equal(s.record(run_id)["cancel_reason"], "enough")


@test("leaving_the_command_does_not_cancel_the_run", "SSE-11")
def interrupted():
    with Provider() as p, Server(env=p.env("gate")) as s:
        proc = begin(s, "run", "assistant", "--json", "x")
        run_id = json.loads(proc.stdout.readline())["data"]["run_id"]
        proc.send_signal(signal.SIGINT)
        status, out, err = end(proc)
        equal(status, -signal.SIGINT, "it died by the signal")
        equal(err, f"uar: the run goes on: `uar logs -f {run_id}` shows it, `uar cancel {run_id}` stops it\n")
        p.release()
        record = s.finish(run_id)
        equal(record["status"], "succeeded", record)


@test("runs_show_and_cancel", "API-19 API-20 API-21")
def records():
    with Server() as s:
        ids = [s.create("echo", f"m{i}") for i in range(3)] + [s.create("demo", "x")]
        for run_id in ids:
            s.finish(run_id)
        table = good(s, "runs")
        equal([line.split()[0] for line in table.splitlines()[1:]], ids[::-1])
        equal([line.split()[0] for line in good(s, "runs", "--agent", "demo").splitlines()[1:]],
              ids[3:])
        page = json.loads(good(s, "runs", "--json", "--limit", "2"))
        equal([r["run_id"] for r in page["runs"]], ids[:1:-1])
        page = json.loads(good(s, "runs", "--json", "--before", page["next_before"]))
        equal([r["run_id"] for r in page["runs"]], ids[1::-1])
        equal(json.loads(good(s, "show", ids[0], "--json")), s.record(ids[0]))
        check("succeeded" in good(s, "show", ids[0]) and ids[0] in good(s, "show", ids[0]))
        equal(json.loads(good(s, "cancel", ids[0], "--json")), s.record(ids[0]))
        check("succeeded" in good(s, "cancel", ids[0]))
        for verb in ("show", "cancel", "logs"):
            out = uar(s, verb, "01a1e106-d68b-740e-8cdd-a8031c7b3c19")
            check(out.returncode == 1 and "NOT_FOUND" in out.stderr, out)


@test("logs_follow_across_a_crash", "API-27 SSE-08")
def logs():
    with Provider() as p, Server(env=p.env("gate"), start=False) as s:
        s.settings["listen"] = "unix:" + os.path.join(s.root, "uar.sock")
        s.start()
        run_id = s.create("assistant", "x")
        proc = begin(s, "logs", "-f", "--json", run_id)
        heard = []
        while not heard or heard[-1]["type"] != "ChatDelta":
            heard.append(json.loads(proc.stdout.readline()))
        s.kill()
        equal(proc.stderr.readline(), "uar: the server is gone; trying again ...\n")
        s.start()
        equal(proc.stderr.readline(), "uar: the server is back\n", "before anything new happens")
        p.release()
        status, out, err = end(proc)
        equal((status, err), (0, ""))
        heard += lines(out)
        equal(heard, [e.data for e in s.events(run_id)], "each event once, in order")
        equal(lines(good(s, "logs", "--json", run_id)), heard)
        after = s.events(run_id)[2].id
        equal(lines(good(s, "logs", "--json", "--after", str(after), run_id)),
              [e.data for e in s.events(run_id, after=after)])
        check("after" in good(s, "logs", run_id))


@test("health_version_config_and_check", "CFG-04")
def local():
    with Server(env={"UAR_TOKEN": "a-token-that-must-not-be-shown-123"}) as s:
        env = {"UAR_TOKEN": s.token}
        equal(json.loads(good(s.ready(), "health", "--json", env=env)),
              {"url": s.url, "alive": True, "ready": True})
        check("ready" in good(s, "health", env=env))
        version = json.loads(run_uar("version", "--json").stdout)["version"]
        equal(version, s.http.get("/version").json["version"])
        check(version in run_uar("version").stdout)
        shown = good(s, "config", env=env) + good(s, "config", "--json", env=env)
        check(s.token not in shown, "config shows the token")
        check("UAR_TOKEN" in shown, "and where each setting came from")
        said = good(s, "check", env=env)
        check(f"a server at {s.url} (pid {s.proc.pid}) uses the data" in said, said)
        check(said.endswith("what is stored was not looked at\n"), said)
        check("usage" in run_uar("--help").stdout)
        check("heartbeat" in run_uar("help", "config").stdout)
        s.stop()
        out = uar(s, "health", env=env)
        check(out.returncode == 1 and "uar serve" in out.stderr, out)
        out = uar(s, "health", "--json", env=env)
        equal((out.returncode, json.loads(out.stdout)["code"]), (1, "TRANSPORT_ERROR"))
        good(s, "check", env=env)
        with open(os.path.join(s.data, "uar.db"), "r+b") as f:
            f.write(b"garbage, not a database")
        out = uar(s, "check", env=env)
        check(out.returncode == 1 and out.stderr.endswith("\n1 damaged place\n"), out)


@test("check_tells_a_server_that_died_from_one_at_work", "")
def died():
    with Server() as s:
        s.kill()
        said = good(s, "check")
        check(f"the server at {s.url} (pid " in said and "is not running" in said, said)
        s.start()
        s.stop()
        said = good(s, "check")
        check("server" not in said, said)


def tree(root):
    """Every file below: its size, mode and time of change, which reading leaves alone."""
    found = {}
    for folder, folders, files in os.walk(root):
        for name in folders + files:
            st = os.lstat(os.path.join(folder, name))
            found[os.path.join(folder, name)] = (st.st_ino, st.st_mode, st.st_size, st.st_mtime_ns)
    return found


def damage(data):
    """In a row, so that only who looks at the data sees it."""
    with contextlib.closing(sqlite3.connect(os.path.join(data, "uar.db"))) as db:
        db.execute("UPDATE runs SET agent_id = 'else'")
        db.commit()


@test("check_leaves_nothing_behind", "CFG-04")
def no_trace():
    for leave in ("stop", "kill"):
        with Server() as s:
            s.finish(s.create("echo", "x"))
            getattr(s, leave)()
            equal(os.path.exists(os.path.join(s.data, "uar.db-wal")), leave == "kill")
            for name in ("uar.db-shm", "lock", "blobs/tmp"):  # none of it is made
                before = tree(s.data)
                check(good(s, "check").endswith("ok\n"))
                equal(tree(s.data), before, (leave, name))
                path = os.path.join(s.data, name)
                if os.path.isdir(path):
                    os.rmdir(path)
                elif os.path.exists(path):
                    os.unlink(path)
            before = tree(s.data)
            check(good(s, "check").endswith("ok\n"))
            equal(tree(s.data), before)
            s.start()


@test("check_verifies_what_is_on_a_read_only_disk", "CFG-04")
def read_only():
    for leave in ("stop", "kill"):
        with SmallDisk("12m") as disk, Server(data=os.path.join(disk.path, "data")) as s:
            def look():
                subprocess.run(["mount", "-o", "remount,ro", disk.path], check=True)
                out = uar(s, "check")
                subprocess.run(["mount", "-o", "remount,rw", disk.path], check=True)
                check("cannot be written, and a server has to: Read-only file system" in out.stdout, out)
                return out
            s.finish(s.create("echo", "x"))
            getattr(s, leave)()
            out = look()
            check(out.returncode == 0 and out.stdout.endswith("ok to read, not to serve\n"), leave, out)
            for name in ("uar.db-shm", "lock"):  # as a copy may lack them
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(os.path.join(s.data, name))
                equal(look().returncode, 0, (leave, name))
            damage(s.data)
            out = look()
            check(out.returncode == 1 and " is damaged\n" in out.stderr and
                  out.stdout.endswith("not usable\n"), leave, out)


@test("check_looks_at_the_data_whatever_is_wrong_beside_them", "")
def token_of_a_copy():
    with Server() as s:
        s.finish(s.create("echo", "x"))
        s.stop()
        token = os.path.join(s.data, "token")
        for faults in ([], [" is damaged\n"]):
            if faults:
                damage(s.data)
            for mode, text, words in ((0o644, s.token, "can be read by others"), (0o600, "", "does not hold a token")):
                with open(token, "w") as f:
                    f.write(text)
                os.chmod(token, mode)
                out = uar(s, "check")
                check(out.returncode == 1 and out.stdout.endswith("not usable\n"), out)
                check(all(x in out.stderr for x in [words, *faults]), out)
                equal("damaged" in out.stderr, bool(faults), out)


@test("data_of_an_older_version_are_not_called_damaged", "")
def older():
    with Server() as s:
        s.stop()
        with contextlib.closing(sqlite3.connect(os.path.join(s.data, "uar.db"))) as db:
            db.execute("PRAGMA user_version = 2")
        said = good(s, "check")
        check("has version 2; a server that starts brings it to" in said and said.endswith("ok\n"), said)


@test("data_of_a_first_start_that_was_cut_off_are_empty_not_damaged", "")
def cut_off():
    with Server(start=False) as s:
        os.mkdir(s.data, 0o700)
        path = os.path.join(s.data, "uar.db")
        for sql in ("", "PRAGMA journal_mode=WAL"):  # what it does first, and then
            with open(path, "ab"), contextlib.closing(sqlite3.connect(path)) as db:
                db.execute(sql)
            equal(os.path.getsize(path) > 0, bool(sql))
            before = tree(s.data)
            said = good(s, "check")
            check("uar.db is empty" in said and said.endswith("ok\n"), said)
            equal(tree(s.data), before)
        s.start().stop()
        check("empty" not in good(s, "check"))


@test("json_is_answered_also_to_a_wrong_command_line", "")
def wrong_line():
    for argv in (["runs", "--nope"], ["show"], ["run"], ["frobnicate"], ["runs", "--limit", "many"],
                 ["serve", "--listen", "nowhere"], ["plugin", "make", "x"], ["config", b"--\xff\x1b"]):
        out = run_uar(*argv, "--json")
        told = json.loads(out.stdout)
        equal((out.returncode, sorted(told), told["code"]), (2, ["code", "error"], "VALIDATION_ERROR"), out)
        check(told["error"] in out.stderr, out)


@test("a_switch_may_be_given_as_true_or_false", "")
def switches():
    plain = run_uar("version").stdout
    for value, said in (("true", run_uar("version", "--json").stdout), ("false", plain)):
        out = run_uar("version", "--json=" + value)
        equal((out.returncode, out.stdout, out.stderr), (0, said, ""))
        equal(run_uar("version", "--json=true", "--json=" + value).stdout, said, "the last one counts")
    out = run_uar("runs", "--json=maybe")
    why = "--json takes no value but true or false"
    equal((out.returncode, out.stderr), (2, f"uar: {why}\n"))
    equal(json.loads(out.stdout), {"error": why, "code": "VALIDATION_ERROR"}, "it was asked for")
    out = run_uar("runs", "--json=false", "--nope")
    equal((out.returncode, out.stdout), (2, ""), out)


def starts(root, *argv, env=None):
    """None, or what is said by a server that does not start and by a check of the same settings."""
    data = ["--data", os.path.join(root, "data")]
    proc = subprocess.Popen([UAR, "serve", "--json", *data, *argv], stdout=subprocess.PIPE,
                            stderr=subprocess.PIPE, env=clean_environment(root, env))
    told = json.loads(proc.stdout.readline())
    if "url" in told:
        proc.terminate()
    err = proc.communicate(timeout=SAFETY)[1].decode()
    out = subprocess.run([UAR, "check", *data, *argv], capture_output=True, timeout=SAFETY,
                         check=False, env=clean_environment(root, env))
    if "url" in told:
        equal((proc.returncode, out.returncode), (0, 0), (err, out))
        return None
    check(told["error"] in err and told["error"] in out.stderr.decode(), told, err, out)
    return proc.returncode, told["error"]


HTTPS = {"OPENAI_API_KEY": "k", "UAR_MODEL": "m"}


@test("a_file_of_authorities_that_cannot_be_read_is_told_at_the_start", "CFG-04")
def authorities():
    with tempfile.TemporaryDirectory() as root:
        gone, config = os.path.join(root, "gone.pem"), os.path.join(root, "c.json")
        why = f"ca_file: cannot read {gone}: No such file or directory"
        with open(config, "w") as f:
            json.dump({"ca_file": gone}, f)
        equal(starts(root, "--ca-file", gone), (2, "--ca-file: " + why))
        equal(starts(root, env={"UAR_CA_FILE": gone}), (1, "UAR_CA_FILE: " + why))
        equal(starts(root, "--config", config), (1, f"{config}:1:2: " + why))
        equal(starts(root, env={"UAR_CA_FILE": root}),
              (1, f"UAR_CA_FILE: ca_file: cannot read {root}: not a file"))
        equal(starts(root, env={"UAR_CA_FILE": config}),
              (1, f"UAR_CA_FILE: ca_file: cannot read {config}: there is no certificate in PEM form in it"))
        equal(starts(root, env={"SSL_CERT_FILE": gone, **HTTPS}), (1, "SSL_CERT_FILE: " + why))
        equal(starts(root, env={"SSL_CERT_FILE": gone, "UAR_A2A_PEERS": "p=https://h"}),
              (1, "SSL_CERT_FILE: " + why))
        pem = os.path.join(root, "some.pem")
        with open(pem, "w") as f:
            f.write("their names\n-----BEGIN CERTIFICATE-----\n")
        for env in ({}, {"UAR_A2A_PEERS": "p=http://h"}, {"UAR_CA_FILE": pem, **HTTPS},
                    {"OPENAI_BASE_URL": "http://127.0.0.1:1/v1", "UAR_MODEL": "m"}):
            equal(starts(root, env={"SSL_CERT_FILE": gone, **env}), None, env)
        equal(run_uar("config", env={"UAR_CA_FILE": gone}, home=root).returncode, 0)


@test("a_variable_of_other_programs_stops_only_who_uses_it", "CFG-04")
def others_variables():
    with Server() as s:
        s.ready()
        for env in ({"SSL_CERT_FILE": b"/x\xff"}, {"OPENAI_API_KEY": b"\xff"}, {"OPENAI_BASE_URL": b"\xff"}):
            for verb in (["runs"], ["health"], ["run", "echo", "hi"]):
                equal(uar(s, *verb, env=env).returncode, 0, (env, verb))
        s.stop()
        not_text = "SSL_CERT_FILE: ca_file: the value is not UTF-8, expected a path"
        equal(starts(s.root, env={"SSL_CERT_FILE": b"/x\xff", **HTTPS}), (1, not_text))
        equal(starts(s.root, env={"SSL_CERT_FILE": b"/x\xff"}), None)
        equal(starts(s.root, env={"OPENAI_API_KEY": b"\xff"}), None)
        equal(starts(s.root, env={"OPENAI_API_KEY": b"\xff", "UAR_OPENAI_API_KEY": "k", "UAR_MODEL": "m"}), None)
        status, why = starts(s.root, env={"OPENAI_API_KEY": b"\xff", "UAR_MODEL": "m"})
        check(status == 1 and why.startswith("OPENAI_API_KEY: openai_api_key: "), why)


LINKS = {"UAR_PORT": "tcp://10.0.0.1:8080", "UAR_SERVICE_HOST": "10.0.0.1", "UAR_SERVICE_PORT": "8080",
         "UAR_SERVICE_PORT_HTTP": "8080", "UAR_PORT_8080_TCP": "tcp://10.0.0.1:8080",
         "UAR_PORT_8080_TCP_PROTO": "tcp", "UAR_PORT_8080_TCP_PORT": "8080", "UAR_PORT_8080_TCP_ADDR": "10.0.0.1"}


@test("unknown_variables_warn_and_those_of_service_links_do_not", "")
def unknown_variables():
    odd, hint = {"UAR_LOG_LEVLE": "info"}, "UAR_LOG_LEVLE: there is no such setting, did you mean UAR_LOG_LEVEL?"
    with Server(env={**LINKS, **odd}) as s:
        check("config.unknown_variable" in s.log() and hint in s.log() and "UAR_PORT" not in s.log(), s.log())
        for verb in (["runs"], ["run", "echo", "hi"], ["config"], ["check"]):
            out = uar(s, *verb, "--strict", env=LINKS)
            equal((out.returncode, out.stderr), (0, ""), verb)
            out = uar(s, *verb, env=odd)
            equal((out.returncode, out.stderr), (0, f"uar: warning: {hint}\n"), verb)
            out = uar(s, *verb, "--strict", env=odd)
            equal((out.returncode, out.stderr), (1, f"uar: {hint}\n"), verb)
    with tempfile.TemporaryDirectory() as root:
        equal(starts(root, "--strict", env=odd), (1, hint))
        equal(starts(root, "--strict", env=LINKS), None)


@test("nothing_that_is_found_steers_the_terminal", "")
def control_bytes():
    with Server() as s:
        s.stop()
        with contextlib.closing(sqlite3.connect(os.path.join(s.data, "uar.db"))) as db:
            db.execute("PRAGMA writable_schema = ON")
            db.execute("UPDATE sqlite_schema SET name = CAST(x'781b5b33316da0' AS TEXT), sql = 'CREATE x'"
                       " WHERE name = 'runs'")
            db.commit()
        odd = b"\x1b[31m\xa0\xe2\x80\xae"
        home = os.path.join(os.fsencode(s.root), odd)
        for argv in (["check", "--data", s.data], ["check"], ["check", "--config", odd], [odd],
                     ["check", odd], ["config"], ["runs", b"--" + odd], ["runs"],
                     ["serve", "--listen", b"unix:/nonexistent/" + odd],
                     ["plugin", "new", "--lang", "c", odd], ["plugin", "check", home]):
            out = subprocess.run([UAR, *argv], capture_output=True, timeout=SAFETY, check=False,
                                 env={**clean_environment(s.root), "XDG_DATA_HOME": home})
            said = (out.stdout + out.stderr).decode()  # it is UTF-8, too
            check(said.replace("\n", "").isprintable(), argv, repr(said))
        out = uar(s, "check")
        check(out.returncode == 1 and "x?[31m" in out.stderr, out)


@test("output_that_cannot_be_written_is_an_error", "")
def full():
    with Server() as s:
        s.finish(s.create("echo", "x"))
        for verb in (["ps"], ["run", "echo", "hi"], ["run", "demo", "hi"], ["run", "demo", "hi", "--json"],
                     ["agents", "--json"], ["version"]):
            argv = [UAR, *verb] + ([] if verb == ["version"] else ["--data", s.data])
            with open("/dev/full", "w") as out:
                p = subprocess.run(argv, stdout=out, stderr=subprocess.PIPE, text=True, timeout=SAFETY, check=False)
            why = "uar: the output cannot be written: No space left on device\n"
            check(p.returncode == 1 and p.stderr.count(why) == 1, p)


ASKING = [line.split() for line in """agents\nhealth\nplugins\nruns\nps\napprove\nrun nosuch hi\nexec nosuch hi
trigger no such\ntrigger no such --wait\nretry nosuch\nretry nosuch --wait\nshow nosuch\nlogs nosuch\nlogs nosuch -f
export nosuch\nexport nosuch 1\ncancel nosuch\napprove nosuch\napprove nosuch 1\napprove nosuch --show""".split("\n")]


@test("every_verb_fails_with_one_json_object", "")
def failures_as_json():
    def told(argv):
        out = run_uar(*argv, "--json", input="")
        check(out.returncode == 1 and out.stderr, argv, out)
        return json.loads(out.stdout)

    with Server() as s:
        for argv in ASKING:
            equal(told([*argv, "--url", s.url, "--token", "wrong"])["code"], "UNAUTHORIZED", argv)
            gone = told([*argv, "--url", "http://127.0.0.1:1"])
            check(gone["code"] == "TRANSPORT_ERROR" and gone["error"], argv, gone)
            if "nosuch" in argv or "such" in argv:
                equal(told([*argv, "--url", s.url, "--token", s.token])["code"], "NOT_FOUND", argv)
        equal(told(["serve", "--data", s.data])["in_use"], True)


@test("a_wrong_token_is_said_plainly", "SEC-01")
def wrong_token():
    with Server() as s:
        wrong = "not-the-right-token-0123456789"
        out = run_uar("runs", "--url", s.url, "--token", wrong, home=s.root)
        check(out.returncode == 1 and "UNAUTHORIZED" in out.stderr, out)
        out = run_uar("health", "--url", s.url, "--token", wrong, home=s.root)
        equal((out.returncode, out.stdout), (1, s.url + "  alive, unauthorized\n"), out)
        out = run_uar("health", "--json", "--url", s.url, "--token", wrong, home=s.root)
        told = json.loads(out.stdout)
        equal((told["alive"], told["ready"], told["code"]), (True, None, "UNAUTHORIZED"), out)
        out = run_uar("run", "echo", "hi", "--url", s.url, "--token", s.token, home=s.root)
        equal((out.returncode, out.stdout), (0, "hi\n"), out.stderr)
        equal(text_of(s.events(s.http.get("/api/runs").json["runs"][0]["run_id"])), "hi")


main()
