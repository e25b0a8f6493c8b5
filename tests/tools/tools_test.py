#!/usr/bin/env python3
"""The checks must be able to fail: each is run on a small tree with a fault in it."""
import os
import shutil
import subprocess
import sys
import tempfile

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

    def run(self, tool, *args):
        done = subprocess.run([f"{self.path}/tools/{tool}", *args], stdout=subprocess.PIPE, check=False,
                              stderr=subprocess.STDOUT, text=True, cwd=self.path,
                              env={**os.environ, "BUILD": f"{self.path}/build"})
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
        says(t, "conformance", "stale", "--check")
        content(t, "conformance")
        content(t, "conformance", "--check")
        page = t.read("docs/CONFORMANCE.md")
        assert "| RUN-01 | MUST | 000 a | `src/base/a_test.c` one |" in page, page
        assert "| RUN-02 | MAY | 000 b | **missing** |" in page, page
        # A reason for skipping is shown, but does not make the page stale elsewhere.
        t.write("build/test-results.tsv", "skipped\ta_test:one\tRUN-01\tno disk, no test\n")
        content(t, "conformance", "--check")
        content(t, "conformance")
        assert "one (skipped: no disk  no test) |" in t.read("docs/CONFORMANCE.md")
        os.remove(f"{t.path}/build/test-results.tsv")
        content(t, "conformance", "--check")
        t.write("tests/e2e/b_test.py", '@test("two",\n      "RUN-02 RUN-99")\n')
        says(t, "conformance", "two names RUN-99", "--check")


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


def main():
    failed = False
    for name, ids, fn in tests:
        try:
            fn()
            print(f"ok {name} [{ids}]", flush=True)
        except AssertionError as e:
            failed = True
            print(f"  {e}\nnot ok {name} [{ids}]", flush=True)
    sys.exit(failed)


main()
