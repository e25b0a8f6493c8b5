#!/usr/bin/env python3
"""From nothing to a working plugin, in each language, with nothing but the program itself."""
import json
import os
import re
import shutil
import subprocess
import tempfile

from lib import check, equal, main, npm, test
from lib.check import Skip
from lib.plugins import Lab
from lib.server import ROOT, run_uar

NEEDS = {"python": "python3", "c": "cc", "ts": "node"}


def each(name, ids):
    def keep(fn):
        for lang in NEEDS:
            test(f"{lang}_{name}", ids)(lambda lang=lang: fn(lang))
        return fn
    return keep


def new(lang):
    """A folder with one new plugin in it, built."""
    if lang == "ts":
        npm.node()
    if not shutil.which(NEEDS[lang]):
        raise Skip(f"{NEEDS[lang]} is not installed")
    root = tempfile.mkdtemp(prefix="uar-author-")
    folder = os.path.join(root, "my-" + lang)
    p = run_uar("plugin", "new", folder, "--lang", lang)
    equal(p.returncode, 0, p.stderr)
    check("uar plugin check" in p.stdout, p.stdout)
    if lang == "c":
        make(folder, "main")
    return root, folder


def make(folder, *targets):
    p = subprocess.run(["make", "-C", folder, "CFLAGS=-O1 -Wall -Wextra -Werror", *targets],
                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    equal(p.returncode, 0, p.stdout)


def report(folder, *more):
    p = run_uar("plugin", "check", folder, "--json", *more)
    return p.returncode, json.loads(p.stdout)


@each("example_is_written_checked_and_runs", "")
def example(lang):
    root, folder = new(lang)
    status, r = report(folder)
    equal((status, r["ok"], r["plugin_id"], r["entries"]),
          (0, True, "my-" + lang, [{"id": "count", "ok": True}]))
    status, r = report(folder, "count", "--args", '{"text": "one three"}')
    equal((status, r["run"]["items"], r["run"]["result"]), (0, 1, {"words": 2}))
    with open(os.path.join(root, "args.json"), "w") as f:
        f.write('{"text": "one two three"}')
    status, r = report(folder, "count", "--args", "@" + f.name)
    equal((status, r["run"]["result"]), (0, {"words": 3}))
    status, r = report(folder, "count", "--args", '{"text": ""}')
    equal((status, r["run"]["code"]), (1, "EMPTY"))
    status, r = report(folder, "nope")
    equal((status, r["error"]["where"], r["error"]["message"]),
          (1, "", f'plugin my-{lang} has no entry "nope"'))
    status, r = report(folder, "count", "--args", '{"text": 1}')
    equal((status, r["error"]["where"]), (1, "/args/text"))
    with Lab(root) as s:
        r = s.play("count", {"text": "one three five"}, plugin="my-" + lang)
        equal(r["status"], "succeeded", r)
        items = s.items(r["run_id"])["items"]
        equal((items[0]["text"], items[1]["json"]), ("three", {"words": 3}))


@test("c_example_is_also_a_library", "")
def library():
    _, folder = new("c")
    path = os.path.join(folder, "plugin.json")
    make(folder, "main.so")
    with open(path) as f:
        manifest = json.load(f)
    manifest["library"] = "main.so"
    with open(path, "w") as f:
        json.dump(manifest, f)
    status, r = report(folder)
    equal((status, r["error"]["where"]), (1, "/library"), "not both")
    del manifest["command"]
    with open(path, "w") as f:
        json.dump(manifest, f)
    status, r = report(folder, "count", "--args", '{"text": "one three"}')
    equal((status, r["run"]["items"], r["run"]["result"]), (0, 1, {"words": 2}))


@test("what_is_wrong_is_said_with_its_place", "ERR-05")
def wrong():
    folder = tempfile.mkdtemp(prefix="uar-author-")
    good = {"id": "p", "version": "1", "command": ["true"], "entries": [{"id": "e"}]}
    for change, where in (({"id": "Large"}, "/id"), ({"command": []}, "/command"),
                          ({"entries": [{"id": "e", "timeout_seconds": -1}]},
                           "/entries/0/timeout_seconds"),
                          ({"entries": [{"id": "e"}, {"id": "e"}]}, "/entries/1/id"),
                          ({"entries": [{"id": "e", "args_schema": {"type": "odd"}}]},
                           "/entries/0/args_schema"),
                          ({"library": "../x.so", "command": None}, "/library"),
                          ({"surprise": 1}, ""), ({"concurency": 1}, "")):
        manifest = {k: v for k, v in {**good, **change}.items() if v is not None}
        with open(os.path.join(folder, "plugin.json"), "w") as f:
            json.dump(manifest, f)
        status, r = report(folder)
        equal((status, r["ok"]), (1, False), r)
        check(re.fullmatch("[A-Z_]+", r["code"]), r)
        check(r["error"]["where"].startswith(where), where, r)
        if "concurency" in change:
            check("did you mean 'concurrency'?" in r["error"]["message"], r)
    with open(os.path.join(folder, "plugin.json"), "w") as f:
        f.write('{"id": }')
    status, r = report(folder)
    check(status == 1 and r["error"]["where"] == "1:8", r)


@test("programs_that_do_not_work_are_told_apart", "")
def broken():
    folder = tempfile.mkdtemp(prefix="uar-author-")

    def with_script(script, **more):
        with open(os.path.join(folder, "plugin.json"), "w") as f:
            json.dump({"id": "p", "version": "1", "command": ["python3", "-c", script],
                       "entries": [{"id": "e"}], **more}, f)
        return report(folder)

    def answer(result):
        message = json.dumps({"jsonrpc": "2.0", "id": 1, "result": result})
        return f"input(); print({message!r}, flush=True); input()"
    status, r = with_script("raise SystemExit('no licence')")
    check(status == 1 and "no licence" in r["error"]["message"], r)
    equal(r["code"], "TRANSPORT_ERROR", r)
    said = ["first", "/x/main.mjs:3", 'throw new Error("what")', "^", "", "Error: what",
            "    at main (/x/main.mjs:3:7)", "    at node:internal:1:1", "", "Node.js v20"]
    status, r = with_script(f"raise SystemExit({chr(10).join(said)!r})")
    check(status == 1 and r["error"]["message"].endswith(
        'status 1: throw new Error("what") | Error: what | Node.js v20'), r)
    status, r = with_script("import signal; signal.pause()", start_timeout_seconds=0.1)
    check(status == 1 and "hello" in r["error"]["message"], r)
    status, r = with_script(answer({"protocol": "7"}))
    check(status == 1 and "protocol" in r["error"]["message"], r)
    status, r = with_script(answer({"protocol": "1", "entries": ["other"]}))
    equal((status, r["entries"], r["code"]), (1, [{"id": "e", "ok": False}], "NOT_FOUND"))
    status, r = with_script(answer({"protocol": "1"}))
    equal((status, r["ok"], "code" in r), (0, True, False), "entries need not be told")
    equal(run_uar("plugin", "check", os.path.join(folder, "x")).returncode, 1)


@test("wrong_command_lines_make_nothing", "")
def usage():
    root = tempfile.mkdtemp(prefix="uar-author-")
    for argv in (("new", "x"), ("new", "x", "--lang", "cobol"), ("new", "Bad", "--lang", "c"),
                 ("make", "x"), ("new", "uar.x", "--lang", "c")):
        argv = [a if a not in ("x", "Bad", "uar.x") else os.path.join(root, a) for a in argv]
        p = run_uar("plugin", *argv)
        equal(p.returncode, 2, argv)
    check("begin with uar. or backend. are taken" in p.stderr, p.stderr)
    equal(os.listdir(root), [])
    os.mkdir(os.path.join(root, "x"))
    p = run_uar("plugin", "new", os.path.join(root, "x"), "--lang", "c")
    equal((p.returncode, os.listdir(os.path.join(root, "x"))), (1, []), p.stderr)


@test("the_interface_is_clean_c_and_cpp", "")
def header():
    source = os.path.join(ROOT, "tests", "e2e", "sdk", "c", "main.c")
    flags = ["-fsyntax-only", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-I",
             os.path.join(ROOT, "include"), "-D_GNU_SOURCE"]
    if shutil.which("cc"):
        p = subprocess.run(["cc", "-std=c11", *flags, source], stderr=subprocess.PIPE, text=True, check=False)
        equal(p.returncode, 0, p.stderr)
    compiler = shutil.which("c++")
    if not compiler:
        raise Skip("no C++ compiler is installed")
    program = ('#include "uar/plugin.h"\n'
               "static int f(struct uarp_run *run)\n{\n\tuarp_progress(run, 0.5, nullptr);\n"
               '\tuarp_log(run, UARP_INFO, "%s", uarp_id(run));\n'
               '\treturn uarp_fail(run, "X", "%d", 1);\n}\n'
               'static const struct uarp_entry entries[] = { { "f", f }, { nullptr, nullptr } };\n'
               "UARP_PLUGIN(entries);\n")
    p = subprocess.run([compiler, "-std=c++17", "-x", "c++", *flags, "-"], input=program,
                       stderr=subprocess.PIPE, text=True, check=False)
    equal(p.returncode, 0, p.stderr)


@test("types_of_the_typescript_sdk_fit_the_example", "")
def types():
    _, folder = new("ts")
    equal(npm.tsc(folder, "main.mjs"), "")


main()
