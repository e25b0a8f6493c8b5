#!/usr/bin/env python3
"""The checks must be able to fail: each is run on a small tree with a fault in it."""
# time limit: 200 s, it builds small projects, links every room by itself and waits for what hangs
import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", ".."))
TABLE = """```rooms
room | may use | libraries
base | -       | -
json | base    | -
core | base    | pure
top  | json    | uv
```
"""
tests = []


def test(name, ids):
    def keep(fn):
        tests.append((name, ids, fn))
        return fn
    return keep


class Tree:
    """A project of its own with the real tools; removed at the end."""

    def __init__(self):
        self.path = tempfile.mkdtemp(prefix="uar-tools-")
        shutil.copytree(f"{ROOT}/tools", f"{self.path}/tools")
        self.write("docs/ARCHITECTURE.md", TABLE)
        self.write("tests/lib/test.h", "")
        self.write("docs/requirements.tsv", "# id\tlevel\tsource\n# RUN\truns\nRUN-01\tMUST\t000 a\nRUN-02\tMAY\t000 b\n")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.path)

    def write(self, path, text):
        os.makedirs(os.path.dirname(f"{self.path}/{path}"), exist_ok=True)
        with open(f"{self.path}/{path}", "w", encoding="utf-8") as out:
            out.write(text)

    def read(self, path):
        with open(f"{self.path}/{path}", encoding="utf-8") as f:
            return f.read()

    def run(self, tool, *args, **env):
        done = subprocess.run([f"{self.path}/tools/{tool}", *args], stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.STDOUT, text=True, cwd=self.path,
                              env={**os.environ, "BUILD": f"{self.path}/build", **env})
        return done.returncode, done.stdout


def says(tree, tool, wanted, *args):
    """The tool fails and its words contain `wanted`."""
    code, out = tree.run(tool, *args)
    assert code != 0 and wanted in out, f"{tool}: status {code}: {out}"


def content(tree, tool, *args):
    code, out = tree.run(tool, *args)
    assert code == 0, f"{tool}: {out}"


@test("a_room_uses_only_what_its_row_names", "")
def _():
    cases = [
        ("src/json/a.c", '#include "base/a.h"\n#include "json/b_int.h"\n#include <dlfcn.h>\n', None),
        ("src/top/a_test.c", '#include "test.h"\n#include "base/a.h"\n#include <jansson.h>\n', None),
        ("src/top/a.c", '#include "base/a.h"\n', "top may not use base"),
        ("src/base/a.c", '# include  "json/a.h"\n', "base may not use json"),
        ("src/base/a.c", '#include <uv.h>\n', "base may not use <uv.h>"),
        ("src/json/a.c", '#include "base/x_int.h"\n', "belongs to base alone"),
        ("src/json/a.c", '#include "a.h"\n', 'write "room/file"'),
        ("src/core/a.c", '#include <unistd.h>\n', "core is pure"),
        ("src/attic/a.c", "", "room attic has no row"),
    ]
    for path, text, wanted in cases:
        with Tree() as t:
            t.write(path, text)
            if wanted:
                says(t, "check-layers", wanted)
            else:
                content(t, "check-layers")


@test("a_header_includes_only_the_limits_that_it_needs", "")
def _():
    with Tree() as t:
        t.write("src/base/sizes.h", "")
        t.write("src/base/limits.h", '#include "base/sizes.h"\n')
        t.write("src/base/a.c", '#include "base/limits.h"\n')
        content(t, "check-layers")
        t.write("src/json/a.h", '#include "base/limits.h"\n')
        says(t, "check-layers", "a header includes base/sizes.h")


def rooms():
    """{room: rooms that it may use} of the real table."""
    with open(f"{ROOT}/docs/ARCHITECTURE.md", encoding="utf-8") as f:
        rows = f.read().partition("```rooms\n")[2].partition("```")[0].splitlines()[1:]
    return {row.split("|")[0].strip(): set(row.split("|")[1].replace("-", "").split()) for row in rows}


@test("facts_know_nothing_of_what_others_govern", "FACT-01 FACT-11")
def _():
    """The engine of facts cannot name a surface, a provider, a protocol of tools, a registry or an account: what the
    first document leaves open is decided in rooms that it does not see."""
    table, facts = rooms(), ("event", "core", "store", "bus")
    assert set(facts) <= set(table), table
    for room in facts:
        above = table[room] - {"base", "json", "event", "loop"}
        assert not above, f"{room} uses {above}"
    assert subprocess.run([f"{ROOT}/tools/check-layers"], cwd=ROOT, check=False).returncode == 0


@test("each_room_links_with_the_rooms_below_it_and_has_tests_of_its_own", "BLD-07")
def _():
    """A room can be built and tested without those above it: no object of it needs a symbol that is defined there, which
    check-layers reads from the objects."""
    build, table = os.path.join(ROOT, os.environ.get("BUILD", "build")), rooms()
    built = {r for r in table if glob.glob(f"{build}/obj/src/{r}/**/*.o", recursive=True)}
    assert len(built) >= 15, f"{build} is not built: {sorted(built)}"
    done = subprocess.run([f"{ROOT}/tools/check-layers"], cwd=ROOT, check=False, stdout=subprocess.PIPE, text=True,
                          env={**os.environ, "BUILD": build})
    assert done.returncode == 0, done.stdout
    for room in built:
        sources = [f"{folder}/{n}" for folder, _, names in os.walk(f"{ROOT}/src/{room}")
                   for n in names if n.endswith("_test.c")]
        assert sources, f"{room} has no test"
        target = "build/tests/" + os.path.relpath(sources[0], ROOT).removesuffix(".c")
        done = subprocess.run(["make", "-n", "BUILD=build", target], cwd=ROOT, stdout=subprocess.DEVNULL, check=False)
        assert done.returncode == 0, f"{target} cannot be built alone"


@test("a_room_sees_through_headers_only_what_its_row_names", "")
def _():
    cases = [
        ('#include "base/b.h"\n', '#include "json/a.h"\n', "top may not use base, but sees base/b.h"),
        ('#include "json/a_int.h"\n', '#include "json/a.h"\n', "json/a_int.h belongs to json alone"),
        ('#include "json/b.h"\n', '#include "json/a.h"\n', None),
    ]
    for header, source, wanted in cases:
        with Tree() as t:
            t.write("src/base/b.h", "")
            t.write("src/json/b.h", "")
            t.write("src/json/a_int.h", "")
            t.write("src/json/a.h", header)
            t.write("src/top/a.c", source)
            if wanted:
                says(t, "check-layers", wanted)
            else:
                content(t, "check-layers")


@test("a_room_uses_only_symbols_of_rooms_that_its_row_names", "")
def _():
    for room, wanted in (("top", "top may not use base, but uses b of src/base/b"), ("json", None)):
        with Tree() as t:
            t.write("src/base/b.c", "int b(void)\n{\n\treturn 1;\n}\n")
            t.write(f"src/{room}/a.c", "int b(void);\nint a(void)\n{\n\treturn b();\n}\n")
            for unit in ("base/b", f"{room}/a"):
                os.makedirs(os.path.dirname(f"{t.path}/build/obj/src/{unit}"), exist_ok=True)
                subprocess.run(["cc", "-c", "-o", f"{t.path}/build/obj/src/{unit}.o",
                                f"{t.path}/src/{unit}.c"], check=True)
            if wanted:
                says(t, "check-layers", wanted)
            else:
                content(t, "check-layers")


@test("the_table_of_rooms_has_no_circle", "")
def _():
    with Tree() as t:
        t.write("docs/ARCHITECTURE.md", TABLE.replace("base | -  ", "base | top"))
        t.write("src/base/a.c", "")
        says(t, "check-layers", "circle")


@test("what_is_too_large_is_named", "")
def _():
    def function(lines):
        return "int f(int a)\n{\n" + "\ta++;\n" * (lines - 4) + "\treturn a;\n}\n"
    cases = [
        (function(80), None),
        (function(81), "f has 81 lines"),
        ("int f(int a)\n{\n\treturn " + "a && " * 14 + "a;\n}\n", None),
        ("int f(int a)\n{\n\treturn " + "a && " * 15 + "a;\n}\n", "f has complexity 16"),
        ("int f(int a)\n{\n\t/* if if if " + "&& " * 20 + "*/\n\treturn '?' + \"||||||\"[a];\n}\n", None),
        ("int f(int a, int b, int c, int d, int e);\n", None),
        ("int f(int a, int b, int c, int d, int e, struct uar_error *error);\n", None),
        ("int f(int a, int b, int c, int d, int (*e)(int, int), int g);\n", "f has more than 5 parameters"),
        ("struct s {\n" + "".join(f"\tint f{i};\n" for i in range(25)) + "};\n", None),
        ("struct s {\n" + "".join(f"\tint f{i};\n" for i in range(26)) + "};\n", "struct s has 26 fields"),
        ("\n" * 700, None),
        ("\n" * 701, "701 lines"),
    ]
    for text, wanted in cases:
        with Tree() as t:
            t.write("src/base/a.c", text)
            if wanted:
                says(t, "check-sizes", wanted)
            else:
                content(t, "check-sizes")


@test("test_functions_have_the_same_limits", "")
def _():
    with Tree() as t:
        t.write("src/base/a_test.c", 'TEST(long_one, "RUN-01")\n{\n' + "\tCHECK(1);\n" * 80 + "}\n")
        says(t, "check-sizes", "long_one has 83 lines")


@test("words_that_belong_to_one_machine_are_found", "")
def _():
    for text, found in (("see /ro" "ot/x", True), ("https://regis" "try.example.org/x", True),
                        ("network/root/thing, /api/work", False)):
        with Tree() as t:
            t.write("notes.md", text + "\n")
            code, out = t.run("lint", "words")
            assert ("notes.md:1" in out) == found == (code != 0), out


@test("the_conformance_page_follows_the_tests", "")
def _():
    with Tree() as t:
        t.write("src/base/a_test.c", 'TEST(one, "RUN-01")\n{\n}\n')
        t.write("build/test-results.tsv", "ok\tsrc/base/a_test.c:one\tRUN-01\t\n")
        says(t, "conformance", "stale", "--check")
        content(t, "conformance")
        content(t, "conformance", "--check")
        page = t.read("docs/CONFORMANCE.md")
        assert "| RUN-01 | MUST | 000 a | `src/base/a_test.c` one |" in page, page
        assert "| RUN-02 | MAY | 000 b | **missing** |" in page, page
        t.write("tests/e2e/b_test.py", '@test("two",\n      "RUN-02 RUN-99")\n')
        says(t, "conformance", "two names RUN-99", "--check")


@test("only_a_test_that_passed_proves_anything", "")
def _():
    ok, bad, skip = (f"{how}\tsrc/base/a_test.c:one\tRUN-01\t{why}\n"
                     for how, why in (("ok", ""), ("not ok", "wrong"), ("skipped", "no disk")))
    other = "ok\tsrc/core/a_test.c:one\t\t\n"  # another test of the same name
    for plain, asan, wanted in ((ok, skip, None), (skip, ok, None), (ok, "", None), ("", ok, None),
                                (ok, bad, "one failed"), (bad, ok, "one failed"),
                                (skip, skip, "one was skipped: no disk"),
                                (other, "", "one did not run"), ("", "", "one did not run")):
        with Tree() as t:
            t.write("src/base/a_test.c", 'TEST(one, "RUN-01")\n{\n}\n')
            t.write("build/test-results.tsv", plain)
            t.write("build/asan/test-results.tsv", asan)
            code, out = t.run("conformance")
            assert (code != 0) == bool(wanted) and (wanted or "") in out, (plain, asan, out)
            proven = "| all | 2 | 1 | 1 |" in t.read("docs/CONFORMANCE.md")
            assert proven != bool(wanted), t.read("docs/CONFORMANCE.md")
            assert t.run("conformance", "--check")[0] == code


@test("a_skip_that_is_expected_proves_nothing_anywhere", "")
def _():
    with Tree() as t:
        t.write("src/base/a_test.c", 'TEST(one, "RUN-01")\n{\n}\n')
        t.write("tests/expected-skips.tsv", "# why\nsrc/base/a_test.c:one\tno such disk in a container\n")
        says(t, "conformance", "no test has run")
        t.write("build/test-results.tsv", "")
        says(t, "conformance", "one did not run")
        t.write("build/test-results.tsv", "skipped\tsrc/base/a_test.c:one\tRUN-01\twhy\n")
        content(t, "conformance")
        page = t.read("docs/CONFORMANCE.md")
        assert "| **missing**, `src/base/a_test.c` one (may be skipped) |" in page, page
        for how in ("ok", "skipped"):  # one page for all machines
            t.write("build/test-results.tsv", f"{how}\tsrc/base/a_test.c:one\tRUN-01\twhy\n")
            content(t, "conformance", "--check")
        t.write("build/test-results.tsv", "not ok\tsrc/base/a_test.c:one\tRUN-01\twhy\n")
        says(t, "conformance", "one failed", "--check")
        t.write("tests/expected-skips.tsv", "src/base/a_test.c:one\n")
        says(t, "conformance", "one has no reason")
        t.write("tests/expected-skips.tsv", "src/base/a_test.c:gone\twhy\n")
        says(t, "conformance", "gone is no test")


@test("a_skip_that_nobody_expected_fails", "")
def _():
    """Also of a test that proves no requirement: what it was written for is not shown then."""
    with Tree() as t:
        t.write("src/base/a_test.c", 'TEST(one, "")\n{\n}\n')
        t.write("tests/e2e/b_test.py", '@test("two", "")\n')
        one, two = (f"skipped\t{name}\t\tno disk\n" for name in ("src/base/a_test.c:one", "tests/e2e/b_test.py:two"))
        t.write("build/test-results.tsv", one)
        says(t, "conformance", "src/base/a_test.c: one was skipped: no disk")
        t.write("tests/expected-skips.tsv", "src/base/a_test.c:one\tno such disk in a container\n")
        content(t, "conformance")
        t.write("build/test-results.tsv", one + two)
        says(t, "conformance", "tests/e2e/b_test.py: two was skipped: no disk", "--check")
        t.write("build/asan/test-results.tsv", two.replace("skipped", "ok"))
        content(t, "conformance", "--check")


@test("a_test_of_both_stores_must_pass_in_both", "")
def _():
    with Tree() as t:
        t.write("src/store/a_test.c", 'BOTH(one, "RUN-01")\n{\n}\n')
        t.write("build/test-results.tsv", "ok\tsrc/store/a_test.c:sqlite_one\tRUN-01\t\n")
        says(t, "conformance", "one did not run")
        t.write("build/test-results.tsv", "".join(f"ok\tsrc/store/a_test.c:{kind}_one\tRUN-01\t\n"
                                                  for kind in ("sqlite", "memory")))
        content(t, "conformance")


@test("generate_reports_a_stale_file", "")
def _():
    with Tree() as t:
        for old in os.listdir(f"{t.path}/tools"):
            if old.startswith("gen-"):
                os.remove(f"{t.path}/tools/{old}")
        content(t, "generate", "--check")
        t.write("tools/gen-x", "#!/bin/sh\n[ \"$1\" = --check ] && exit 1\nexit 0\n")
        os.chmod(f"{t.path}/tools/gen-x", 0o755)
        assert t.run("generate", "--check")[0] != 0
        content(t, "generate")


@test("a_test_program_that_dies_counts_as_failed", "")
def _():
    with Tree() as t:
        for name, text, closing in (
                ("good", "echo 'ok a [RUN-01]'; echo 'skipped b [] # why'", "1 passed, 0 failed, 1 skipped"),
                ("bad", "echo 'ok a []'; echo 'not ok b []'; exit 1", "1 passed, 1 failed, 0 skipped"),
                ("dies", "echo 'ok a []'; kill -9 $$", "1 passed, 1 failed, 0 skipped"),
                ("mute", "exit 0", "0 passed, 1 failed, 0 skipped")):
            t.write(name, f"#!/bin/sh\n{text}\n")
            os.chmod(f"{t.path}/{name}", 0o755)
            code, out = t.run("run-tests", f"{t.path}/{name}")
            assert out.splitlines()[-1] == closing and (code == 0) == (name == "good"), out


@test("results_name_the_source_of_a_test", "")
def _():
    with Tree() as t:
        for program in ("build/tests/src/core/a_test", "build/tests/src/base/a_test", "tests/e2e/a_test.py"):
            text = "print('ok one []')" if program.endswith(".py") else "#!/bin/sh\necho 'ok one []'"
            t.write(program, text + "\n")
            os.chmod(f"{t.path}/{program}", 0o755)
            content(t, "run-tests", program)
        names = [line.split("\t")[1] for line in t.read("build/test-results.tsv").splitlines()]
        assert names == ["src/core/a_test.c:one", "src/base/a_test.c:one", "tests/e2e/a_test.py:one"], names


@test("each_failure_is_told_in_a_line_before_the_closing_one", "")
def _():
    with Tree() as t:
        for name, text, line in (
                ("bad", "echo 'not ok b [] # 1 is not 2'; seq 3000; exit 1", "  not ok bad:b: 1 is not 2"),
                ("dies", "echo 'ok a []'; echo x; kill -9 $$", "  not ok dies: exit status -9: x")):
            t.write(name, f"#!/bin/sh\n{text}\n")
            os.chmod(f"{t.path}/{name}", 0o755)
            out = t.run("run-tests", f"{t.path}/{name}")[1]
            assert out.splitlines()[-2] == line, out


HANGS = """# A server may need long: time limit: 1 s, the test waits for it
import subprocess
left = [subprocess.Popen(["sleep", "1000"], start_new_session=new) for new in (False, True)]
print("ok first []")
open("pids", "w").write(" ".join(str(p.pid) for p in left))
left[0].wait()
"""


def is_there(pid):
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8") as f:
            return f.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@test("a_test_program_that_hangs_is_killed_and_named", "")
def _():
    with Tree() as t:
        t.write("tests/e2e/hangs_test.py", HANGS)
        code, out = t.run("run-tests", "tests/e2e/hangs_test.py", TEST_PATIENCE="1")
        lines = out.splitlines()
        assert code == 1 and lines[-1] == "1 passed, 1 failed, 0 skipped", out
        assert lines[-2] == "  not ok hangs_test.py: killed: it had not ended within 1 s; it hung after first", out
        assert "left[0].wait()" in HANGS and 'hangs_test.py", line 6' in out, out  # where it hung
        pids = t.read("pids").split()
        assert len(pids) == 2
        while any(map(is_there, pids)):  # killed they are; when they are gone the kernel says
            time.sleep(0.01)


@test("a_program_has_the_limit_of_its_kind_unless_it_says_why", "")
def _():
    """60 s and 180 s, a fiftieth of them here."""
    hang = "import time\nprint('ok one []', flush=True)\ntime.sleep(1000)\n"
    program = "#!/bin/sh\necho 'ok one []'\nexec sleep 1000\n"
    reason = "time limit: 500 s, it waits for a disk"
    cases = (("build/tests/src/base/a_test", program, "", "1 s"),
             ("build/tests/src/base/b_test", program, f"/* b_test.c - b.\n * {reason} */\n", "10 s"),
             ("build/tests/src/base/c_test", program, "/* time limit: 500 s */\n", "1 s"),
             ("tests/e2e/a_test.py", hang, "", "4 s"), ("tests/e2e/b_test.py", f"# {reason}\n" + hang, "", "10 s"),
             ("tests/e2e/c_test.py", "# time limit: 500 s\n" + hang, "", "4 s"))
    with Tree() as t:
        for path, text, source, _ in cases:
            t.write(path, text)
            os.chmod(f"{t.path}/{path}", 0o755)
            if source:
                t.write(path.removeprefix("build/tests/") + ".c", source)
        code, out = t.run("run-tests", *(c[0] for c in cases), TEST_PATIENCE="0.02", TEST_JOBS="6")
        lines = out.splitlines()
        assert code == 1 and lines[-1] == "6 passed, 6 failed, 0 skipped", out
        for path, _, _, limit in cases:
            name = path.rpartition("/")[2]
            assert any(name in line and f"killed: it had not ended within {limit}; it hung after one" in line
                       for line in lines[-7:-1]), (name, limit, out)


@test("what_a_test_leaves_behind_keeps_nobody_waiting", "")
def _():
    with Tree() as t:
        t.write("leaves", "#!/bin/sh\nsleep 30 &\necho $! >pid\necho 'ok a []'\n")
        os.chmod(f"{t.path}/leaves", 0o755)
        code, out = t.run("run-tests", "./leaves")
        alive = is_there(t.read("pid").strip())
        os.kill(int(t.read("pid")), 9)
        assert code == 0 and alive, out


@test("packages_that_cannot_be_had_are_given_up_with_a_reason", "")
def _():
    for npm, wanted in (("exec sleep 1000", "npm view took more than 1 s"),
                        ("echo npm ERR! no such host; exit 1", "npm view failed: no such host"),
                        ("[ $1 = view ] || exec sleep 1000", "npm install took more than 1 s")):
        with Tree() as t:
            t.write("bin/npm", f"#!/bin/sh\necho $1 >>{t.path}/calls\n{npm}\n")
            os.chmod(f"{t.path}/bin/npm", 0o755)
            env = {"PATH": f"{t.path}/bin:{os.environ['PATH']}", "XDG_CACHE_HOME": f"{t.path}/cache", "NPM_SECONDS": "1"}
            for _ in range(2):
                code, out = t.run("npm-get", "page", **env)
                assert code == 1 and out.startswith("playwright-core@") and out.endswith(wanted + "\n"), out
            # The second time it only remembers.
            assert t.read("calls").split() == ["view", "install"][:1 + ("install" in wanted)], t.read("calls")


@test("a_test_whose_packages_cannot_be_had_is_skipped_with_the_reason", "")
def _():
    """Within a minute, though npm would try for a quarter of an hour."""
    with Tree() as t:
        t.write("bin/npm", "#!/bin/sh\nexec sleep 1000\n")
        os.chmod(f"{t.path}/bin/npm", 0o755)
        env = {k: v for k, v in os.environ.items() if k not in ("AGENT_API_REAL", "NPM_SECONDS", "BUILD")}
        done = subprocess.run([sys.executable, f"{ROOT}/tests/e2e/real_agents_test.py"], text=True, check=False, timeout=60,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env={**env, "PATH": f"{t.path}/bin:{env['PATH']}", "XDG_CACHE_HOME": f"{t.path}/cache"})
        lines = [line for line in done.stdout.splitlines() if line.startswith(("ok ", "not ok ", "skipped "))]
        assert done.returncode == 0 and len(lines) > 5, done.stdout
        assert all(re.fullmatch(r"skipped \w+ \[.*\] # \S+ could not be had: npm view took more than 10 s"
                                r"|skipped .* # no recorded agents for this processor", line)
                   for line in lines), done.stdout


@test("packages_are_installed_once", "")
def _():
    with Tree() as t:
        t.write("bin/npm", f"#!/bin/sh\necho $1 >>{t.path}/calls\n")
        os.chmod(f"{t.path}/bin/npm", 0o755)
        env = {"PATH": f"{t.path}/bin:{os.environ['PATH']}", "XDG_CACHE_HOME": f"{t.path}/cache"}
        for _ in range(2):
            code, out = t.run("npm-get", "page", **env)
            assert (code, out) == (0, f"{t.path}/cache/uar-test-npm/page/node_modules\n"), out
        assert t.read("calls").split() == ["view", "install"], t.read("calls")


# A project whose only test is a shell script beside the file that it tests.
MUTABLE = {
    "Makefile": "build:\n\t@true\nbuild/tests/%: %.c\n\t@mkdir -p $(@D) && cp $< $@ && chmod +x $@\n.PHONY: build\n",
    "src/base/a.c": "one\ntwo\ntwo\n"}
SCRIPT = """#!/bin/sh
: <<'END'
TEST(a_is_one, "")
END
grep -q %s src/base/a.c && echo 'ok a_is_one []' && exit
setsid sh -c 'echo $$ > left; exec sleep 1000' >/dev/null 2>&1 &
until [ -s left ]; do :; done
echo 'not ok a_is_one [] # it is not'
exit 1
"""


def mutable(tree, find, put, test_looks_for="one", case="a_is_one"):
    for path, text in MUTABLE.items():
        tree.write(path, text)
    tree.write("src/base/a_test.c", SCRIPT % test_looks_for)
    tree.write("tests/mutations.toml", "[[mutation]]\nname = 'm'\npromise = 'a promise'\nfile = 'src/base/a.c'\n"
               f"find = '{find}'\nput = '{put}'\ntest = 'src/base/a_test.c'\ncase = '{case}'\n")


@test("a_mutation_that_no_test_notices_is_a_survivor", "")
def _():
    with Tree() as t:
        mutable(t, "one", "three")
        code, out = t.run("mutate")
        assert code == 0 and "m: killed: not ok a_is_one [] # it is not" in out and "1 killed, 0 survived" in out, out
        assert t.read("build/mutate/tree/src/base/a.c") == t.read("src/base/a.c"), "it is restored"
        assert not os.path.exists("/proc/" + t.read("build/mutate/tree/left").strip()), "what a test left is killed"
        mutable(t, "one", "one and more")
        code, out = t.run("mutate")
        assert code == 1 and "survivor m: a promise" in out and "0 killed, 1 survived" in out, out
        mutable(t, "one", "three", test_looks_for="four")
        says(t, "mutate", "src/base/a_test.c a_is_one: does not pass in the unchanged tree")


@test("a_mutation_that_no_longer_fits_the_tree_is_named", "")
def _():
    with Tree() as t:
        for find, put, case, fault in (("two", "x", "a_is_one", "its snippet is 2 times in src/base/a.c, not once"),
                                       ("three", "x", "a_is_one", "its snippet is 0 times"),
                                       ("one", "one", "a_is_one", "it changes nothing"),
                                       ("one", "x", "a_is_two", "src/base/a_test.c has no test a_is_two")):
            mutable(t, find, put, case=case)
            says(t, "mutate", "m: " + fault, "--check")
            says(t, "mutate", "m: " + fault)
        mutable(t, "one", "x")
        content(t, "mutate", "--check")
        assert not os.path.exists(f"{t.path}/build/mutate"), "nothing is copied or built"
        says(t, "mutate", "n: there is no such mutation", "--check", "n")


@test("the_table_of_mutations_fits_the_tree", "")
def _():
    done = subprocess.run([f"{ROOT}/tools/mutate", "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                          text=True, check=False)
    assert done.returncode == 0, done.stdout
    rows = subprocess.run([f"{ROOT}/tools/mutate", "--list"], stdout=subprocess.PIPE, text=True, check=True).stdout
    assert len(rows.splitlines()) >= 25, rows


@test("quick_knows_every_room_and_names_files_that_exist", "")
def _():
    with open(f"{ROOT}/tests/e2e/rooms.tsv", encoding="utf-8") as f:
        rows = dict(line.rstrip("\n").split("\t") for line in f if line.strip() and not line.startswith("#"))
    rooms = {f"src/{room}" for room in os.listdir(f"{ROOT}/src") if os.path.isdir(f"{ROOT}/src/{room}")}
    assert rooms == {folder for folder in rows if folder.startswith("src/")}, rooms ^ set(rows)
    for folder, names in rows.items():
        assert os.path.isdir(f"{ROOT}/{folder}"), folder
        for name in names.split():
            assert os.path.exists(f"{ROOT}/tests/e2e/{name}_test.py"), name


@test("quick_runs_what_belongs_to_the_changed_room", "")
def _():
    with Tree() as t:
        t.write("tests/e2e/rooms.tsv", "src/base\ta b\nsrc/core\tc\n")
        for path in ("tests/e2e/a_test.py", "tests/e2e/b_test.py", "tests/e2e/c_test.py"):
            t.write(path, f"print('ok {os.path.basename(path)} []')\n")
        for room in ("base", "core"):
            t.write(f"src/{room}/x_test.c", "")
            t.write(f"build/tests/src/{room}/x_test", f"#!/bin/sh\necho 'ok {room} []'\n")
            os.chmod(f"{t.path}/build/tests/src/{room}/x_test", 0o755)
        t.write("Makefile", ".PHONY: build programs\nbuild:\n$(BUILD)/%: build\n\t@echo made\n")
        code, out = t.run("run-tests", "tests/e2e/a_test.py")
        assert code == 1 and "build/uar is missing" in out and "make -j programs`" in out, out
        for program in ("uar", "fake-cli", "agent-api-supervisor", "mcp-client", "embed/driver", "sdk/conform"):
            t.write(f"build/{program}", "")
        code, out = t.run("quick", "src/base")
        assert code == 0 and "a_test.py" in out and "b_test.py" in out and "c_test.py" not in out, out
        assert "3 passed, 0 failed, 0 skipped" in out, out
        code, out = t.run("quick", "src/attic")
        assert code == 1 and "no row for src/attic" in out, out


@test("every_part_of_the_design_is_a_room_of_its_own", "BLD-05")
def _():
    """Domain, api, providers, tools, skills, memory, server application: rooms; fixtures and the page: folders. The table
    of rooms has no circle, and what the sources include keeps to it."""
    uses = rooms()
    for room in ("event", "core", "gate", "model", "tool", "skill", "memory", "app"):
        assert room in uses, room
        assert glob.glob(f"{ROOT}/src/{room}/*.c"), room
    assert glob.glob(f"{ROOT}/fixtures/streams/*.jsonl") and glob.glob(f"{ROOT}/web/src/*.tsx")
    order, left = [], dict(uses)
    while left:
        free = [r for r, needs in left.items() if not needs & set(left)]
        assert free, f"a circle among {sorted(left)}"
        order += free
        for r in free:
            del left[r]
    assert order.index("core") < order.index("gate") < order.index("app"), order
    assert subprocess.run([f"{ROOT}/tools/check-layers"], cwd=ROOT, check=False).returncode == 0


def planned():
    """Rows of "Where the first plan went": what was planned, the files that it is in, the test that shows it."""
    with open(f"{ROOT}/docs/ARCHITECTURE.md", encoding="utf-8") as f:
        section = f.read().split("## Where the first plan went")[1].split("\n## ")[0]
    rows = [[c.strip() for c in line.strip("|").split("|")] for line in section.splitlines() if line.startswith("| ")][1:]
    return [(what, re.findall("`([^`]+)`", where), re.findall("`([^`]+)`", shown)) for what, where, shown in rows]


@test("domain_types_have_headers_and_tests", "BLD-06")
def _():
    """The types of events, artifact, tools, skills and runs, each with the words of the plan in its header."""
    words = {"events": ["struct uar_event"], "artifact": ["struct uar_definition"],
             "tools": ["struct uar_tool ", "struct uar_tool_request", "struct uar_tool_result"],
             "skills": ["struct uar_skill ", "triggers", "overlay", "template"],
             "runs": ["struct uar_run ", "struct uar_run_ids", "struct uar_run_what", "enum uar_status"]}
    for name, needed in words.items():
        where, shown = [(w, s) for what, w, s in planned() if what.split(" ")[0].rstrip(":") == name][0]
        text = "".join(open(f"{ROOT}/{f}", encoding="utf-8").read() for f in where)
        for word in needed:
            assert word in text, f"{word} is not in {where}"
        with open(f"{ROOT}/{shown[0]}", encoding="utf-8") as f:
            assert "TEST(" in f.read(), shown


@test("each_item_of_the_ordered_list_is_a_finished_module", "BLD-10")
def _():
    """Every file of the table exists and is no stub, and the test that shows it has tests."""
    rows = planned()
    assert len(rows) >= 14, rows
    for what, where, shown in rows:
        assert where and shown, what
        for path in where:
            path = f"{ROOT}/{path}"
            assert os.path.exists(path), path
            assert os.listdir(path) if os.path.isdir(path) else os.path.getsize(path) > 500, path
        with open(f"{ROOT}/{shown[0]}", encoding="utf-8") as f:
            assert re.search(r'^@test\(|^TEST\(', f.read(), re.M), shown


@test("event_classes_that_no_code_writes_are_printed", "")
def _():
    done = subprocess.run(["tools/conformance", "--unwritten"], stdout=subprocess.PIPE, cwd=ROOT, text=True, check=True)
    print("written by no code yet:", ", ".join(done.stdout.split()), flush=True)
    for name in done.stdout.split():
        assert os.path.exists(f"{ROOT}/src/event/schemas/{name}.json"), name
    assert not {"turn.completed", "task.created", "queue.changed", "snapshot.updated"} & set(done.stdout.split())
    with Tree() as t:
        t.write("src/event/event.def", 'X(A_B, "a.b", 0,\n  "", "A.")\nX(C_D, "c.d", 0,\n  "", "C.")\n')
        t.write("src/core/x.c", "uar_emit(e, UAR_EV_A_B, 0);\n")
        t.write("src/core/view_x.c", "case UAR_EV_C_D: break;\n")
        t.write("src/core/x_test.c", "x(UAR_EV_C_D);\n")
        code, out = t.run("conformance", "--unwritten")
        assert (code, out.split()) == (0, ["c.d"]), out


def make_without_headers(tree, missing):
    """What `make build` says where no header is found and dpkg knows nothing of one package."""
    tree.write("bin/dpkg-query", f"#!/bin/sh\ncase $* in *' {missing}') exit 1 ;; esac\necho installed\n")
    os.chmod(f"{tree.path}/bin/dpkg-query", 0o755)
    env = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "BUILD", "SAN")}
    done = subprocess.run(["make", "-C", ROOT, f"BUILD={tree.path}/build", "CC=gcc -nostdinc", "build"],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
                          env={**env, "PATH": f"{tree.path}/bin:{env['PATH']}"})
    assert done.returncode != 0 and "LINK" not in done.stdout, done.stdout
    return done.stdout


@test("a_build_without_its_packages_names_them", "")
def _():
    with Tree() as t:
        out = make_without_headers(t, "libuv1-dev")
        assert "UAR needs these Debian packages: libuv1-dev\n" in out and "`make deps`" in out, out
        assert "No such file" not in out, out
        out = make_without_headers(t, "none")  # then the compiler knows more
        assert "No such file" in out and "packages" not in out, out


# Where the parts of a command are declared, and their names in it.
COMMAND_PARTS = {
    "core/core.h": {"uar_prepared": "prepared", "uar_model_end": "model", "uar_tool_begin": "begin", "uar_tool_news": "news",
                    "uar_tool_over": "over", "uar_failure": "fail", "uar_result_refs": "result_refs"},
    "event/entry.h": {"uar_export": "export", "uar_progress": "progress"},
    "event/agent.h": {"uar_tool_report": "tool", "uar_note": "note"},
    "event/action.h": {"uar_ask": "ask", "uar_answer": "answer"}}
CONSUMED = {"ask.whole", "export.upload"}  # they became a blob before the command is sent


def strings_of_struct(text, struct):
    at = text.index(f"struct {struct} {{")
    body = re.sub(r"/\*.*?\*/", "", text[at:text.index("\n}", at)], flags=re.S)
    return [n.strip() for row in re.findall(r"\buar_str ([^;*]+);", body) for n in row.split(",")]


@test("every_string_of_a_command_is_in_its_table", "")
def _():
    with open(f"{ROOT}/src/core/run_command.def", encoding="utf-8") as f:
        commands = re.findall(r"^RUN_CMD\((\w+), .*?\n(.*?)^RUN_END", f.read(), flags=re.S | re.M)
    assert commands, "no command was found"
    missing = []
    for header, structs in COMMAND_PARTS.items():
        with open(f"{ROOT}/src/{header}", encoding="utf-8") as f:
            text = f.read()
        for struct, part in structs.items():
            names = strings_of_struct(text, struct)
            users = [(kind, rows) for kind, rows in commands if f"S({part}." in rows]
            assert names and users, struct
            missing += [f"{kind}: {part}.{n}" for kind, rows in users for n in names if f"{part}.{n}" not in CONSUMED
                        and not re.search(rf"S\({part}\.(\w+\.)?{n}\)", rows)]
    assert not missing, f"these are borrowed from a worker that may have ended: {missing}"


def main():
    failed = False
    wanted = sys.argv[1:]
    unknown = set(wanted) - {name for name, _, _ in tests}
    if unknown:
        sys.exit(f"no such test: {', '.join(sorted(unknown))}")
    for name, ids, fn in tests:
        if wanted and name not in wanted:
            continue
        try:
            fn()
            print(f"ok {name} [{ids}]", flush=True)
        except AssertionError as e:
            failed = True
            print(f"  {e}\nnot ok {name} [{ids}]", flush=True)
    sys.exit(failed)


main()
