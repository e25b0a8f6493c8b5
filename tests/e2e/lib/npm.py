"""Packages of the npm registry that tests need: installed once, outside the tree."""
import fcntl
import os
import shutil
import subprocess

from lib.check import Skip

# One version of each, and why.
PLAYWRIGHT = "playwright-core@1.61.1"  # drives a real browser; the last one for the Node.js of Debian 12
TYPESCRIPT = "typescript@5.9.3"        # the types of the page and of the SDK
NODE_TYPES = "@types/node@20.19.43"    # what the SDK's types stand on


def cache():
    home = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(home, "uar-test-npm")


def modules(name, *packages):
    """The node_modules folder with exactly these, kept under a name; one installer at a time."""
    folder = os.path.join(cache(), name)
    found = os.path.join(folder, "node_modules")
    stamp = os.path.join(folder, "has " + " ".join(packages).replace("/", "+"))
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if os.path.exists(stamp):
            return found
        if not shutil.which("npm"):
            raise Skip(f"{packages[0]} is not installed and there is no npm")
        done = subprocess.run(["npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts",
                               *packages], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
        if done.returncode:
            raise Skip(f"{packages[0]} could not be installed: " + " ".join(done.stdout.split())[-160:])
        with open(stamp, "w"):
            pass
    return found


def tsc(cwd, *files):
    """What the strict type check says of these files; nothing when it is content."""
    folder = modules("tsc", TYPESCRIPT, NODE_TYPES)
    p = subprocess.run(["node", os.path.join(folder, "typescript", "bin", "tsc"), "--noEmit", "--allowJs", "--checkJs",
                        "--strict", "--target", "es2023", "--lib", "es2023,dom,dom.iterable,dom.asynciterable",
                        "--module", "nodenext", "--typeRoots", os.path.join(folder, "@types"), *files],
                       cwd=cwd, stdout=subprocess.PIPE, text=True, check=False)
    return p.stdout if p.returncode else ""
