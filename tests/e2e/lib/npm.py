"""Packages of the npm registry that tests need, and Node.js; tools/npm-get says which."""
import functools
import os
import subprocess

from lib.check import Skip
from lib.server import ROOT


@functools.cache
def said(tool, argument):
    done = subprocess.run([os.path.join(ROOT, "tools", tool), argument], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, check=False)
    return done.stdout.strip(), done.stderr.strip()


def path_from(tool, argument):
    path, why = said(tool, argument)
    if not path:
        raise Skip(why)
    return path


def modules(name):
    """The node_modules folder of a set."""
    return path_from("npm-get", name)


def node():
    """Node.js as tools/node finds it; from then on also what a child finds under that name."""
    program = path_from("node", "--where")
    folder = os.path.dirname(program)
    if not os.environ["PATH"].startswith(folder + ":"):
        os.environ["PATH"] = folder + ":" + os.environ["PATH"]
    return program


def tsc(cwd, *files):
    """What the strict type check says of these files; nothing when it is content."""
    folder = modules("tsc")
    p = subprocess.run([node(), os.path.join(folder, "typescript", "bin", "tsc"), "--noEmit", "--allowJs", "--checkJs",
                        "--strict", "--target", "es2023", "--lib", "es2023,dom,dom.iterable,dom.asynciterable",
                        "--module", "nodenext", "--typeRoots", os.path.join(folder, "@types"), *files],
                       cwd=cwd, stdout=subprocess.PIPE, text=True, check=False)
    return p.stdout if p.returncode else ""
