#!/usr/bin/env python3
"""What `make install` and `make deb` give: it compiles, links, finds its parts and runs where it lies."""
import os
import re
import shutil
import subprocess
import tempfile

from lib import BUILD, Skip, check, equal, main, test
from lib.backends import recording
from lib.server import ROOT, clean_environment


def sh(*argv, env=None, cwd=ROOT):
    """A command that must succeed; its output."""
    p = subprocess.run(argv, cwd=cwd, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                       stdin=subprocess.DEVNULL, text=True, check=False)
    equal(p.returncode, 0, f"{argv} {p.stdout[-3000:]}")
    return p.stdout


def make(*argv):
    inherited = ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")
    sh("make", "-s", *argv, "BUILD=" + os.path.relpath(BUILD, ROOT),
       env={k: v for k, v in os.environ.items() if k not in inherited})


def need(*programs):
    if "san" in os.path.basename(BUILD):
        raise Skip("what is installed is a plain build")
    for name in programs:
        if not shutil.which(name):
            raise Skip(f"{name} is not installed")


class Place:
    """A root of its own, and an environment in which compilers and programs look there."""

    def __init__(self):
        self.root = tempfile.mkdtemp(prefix="uar-install-")
        self.work = os.path.join(self.root, "work")
        os.mkdir(self.work)
        self.env = clean_environment(self.root, {
            "PKG_CONFIG_SYSROOT_DIR": self.root, "PKG_CONFIG_LIBDIR": self.path("usr/lib/pkgconfig"),
            "LD_LIBRARY_PATH": self.path("usr/lib")})

    def path(self, *parts):
        return os.path.join(self.root, *parts)

    def flags(self, *argv):
        return sh("pkg-config", *argv, env=self.env).split()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        shutil.rmtree(self.root)


def example():
    """The program of the manual."""
    with open(os.path.join(ROOT, "docs", "agent-api.md")) as f:
        return re.search(r"^```c\n(.*?)^```", f.read(), re.S | re.M)[1]


def try_library(p):
    """The manual's example, shared and static, against a CLI that says hello."""
    with open(p.path("work", "example.c"), "w") as f:
        f.write(example())
    with open(p.path("work", "claude"), "w") as f:
        f.write(f"#!/bin/sh\nexec cat {recording('claude_code/hello.jsonl')}\n")
    os.chmod(f.name, 0o755)
    flags = p.flags("--cflags", "--libs", "agent_api")
    sh("cc", "-o", "shared", "example.c", *flags, cwd=p.work)
    static = [x for x in p.flags("--static", "--cflags", "--libs", "agent_api") if x != "-lagent_api"]
    sh("cc", "-o", "static", "example.c", p.path("usr/lib/libagent_api.a"), *static, cwd=p.work)
    check("hello" in sh("./shared", "hi", "./claude", cwd=p.work, env=p.env), "the supervisor beside the library")
    env = {**p.env, "AGENT_API_SUPERVISOR": p.path("usr/libexec/agent-api-supervisor")}
    check("hello" in sh("./static", "hi", "./claude", cwd=p.work, env=env))


def try_plugin(p):
    """A new plugin in C, with the installed SDK in place of its own copy, as program and as library."""
    uar = p.path("usr/bin/uar")
    sh(uar, "plugin", "new", "words", "--lang", "c", cwd=p.work, env=p.env)
    folder = p.path("work", "words")
    shutil.rmtree(os.path.join(folder, "uar"))
    sh("make", "-C", folder, "main", "main.so", "CFLAGS=" + " ".join(p.flags("--cflags", "uar_plugin")),
       "LDFLAGS=" + " ".join(p.flags("--libs-only-L", "uar_plugin")), env={**os.environ, **p.env})
    said = sh(uar, "plugin", "check", folder, "count", "--args", '{"text": "one three"}', env=p.env)
    check('{"words":2}' in said.replace(" ", ""), said)


@test("what_is_installed_compiles_and_runs", "")
def installed():
    need("cc", "pkg-config")
    with Place() as p:
        make("install", "DESTDIR=" + p.root, "PREFIX=/usr")
        check("uar 0." in sh(p.path("usr/bin/uar"), "version", env=p.env))
        check(os.path.exists(p.path("usr/share/man/man1/uar.1")))
        try_library(p)
        try_plugin(p)
        try_runtime(p)


def try_runtime(p):
    """The example of docs/embedding.md, a program with a runtime inside."""
    program = os.path.join(p.work, "tasks")
    sh("cc", "-o", program, os.path.join(ROOT, "examples", "embed", "tasks.c"), *p.flags("--cflags", "--libs", "uar"),
       env=p.env)
    check("turn.completed" in sh(program, os.path.join(p.work, "state"), "hello", env=p.env, cwd=p.work))


@test("uninstall_leaves_what_is_not_ours", "")
def uninstalled():
    need("cc", "readelf")
    with Place() as p:
        make("install", "DESTDIR=" + p.root, "PREFIX=/usr")
        check(".symtab" not in sh("readelf", "-SW", p.path("usr/bin/uar")), "it is stripped")
        os.mkdir(p.path("usr/include/uar/own"))
        with open(p.path("usr/lib/libother.a"), "w"):
            pass
        make("uninstall", "DESTDIR=" + p.root, "PREFIX=/usr")
        equal([os.path.join(at, f) for at, _, files in os.walk(p.path("usr")) for f in files],
              [p.path("usr/lib/libother.a")])
        check(os.path.isdir(p.path("usr/include/uar/own")))
        check(not os.path.exists(p.path("usr/include/agent_api")), "a folder of its own goes as well")
        make("install", "DESTDIR=" + p.root, "PREFIX=/usr", "INSTALL_STRIP=")
        check(".symtab" in sh("readelf", "-SW", p.path("usr/bin/uar")), "unless symbols are wanted")


@test("packages_hold_the_same_and_name_what_they_need", "")
def packages():
    need("cc", "pkg-config", "dpkg-deb")
    make("deb")
    with Place() as p:
        found = [f for f in os.listdir(BUILD) if f.endswith(".deb")]
        equal({f.split("_")[0] for f in found}, {"uar", "libuar1", "libagent-api1", "uar-dev"})
        depends = {}
        for f in found:
            sh("dpkg-deb", "-x", os.path.join(BUILD, f), p.root)
            depends[f.split("_")[0]] = sh("dpkg-deb", "-f", os.path.join(BUILD, f), "Depends")
        check("libuv1" in depends["uar"] and "libagent-api1 (=" in depends["uar"], depends)
        check("libagent-api1 (=" in depends["uar-dev"], depends)
        for path in ("usr/bin/uar", "usr/libexec/agent-api-supervisor", "usr/include/uar/plugin.h",
                     "usr/include/agent_api/agent_api.h", "usr/lib/libuar_plugin.a", "usr/include/uar/uar.h",
                     "usr/share/man/man1/uar.1.gz"):
            check(os.path.exists(p.path(path)), path)
        try_library(p)
        try_plugin(p)
        try_runtime(p)


main()
