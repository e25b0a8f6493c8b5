#!/usr/bin/env python3
"""The load tests of bench/ at a small scale: they run to their end and report what they measured.

What the numbers are is not looked at here; `make bench` holds them against the bars."""
import os
import re
import subprocess

from lib import BUILD, Skip, check, main, test
from lib.server import ROOT


def measured(name):
    """{row: what it says} of one measurement."""
    if "san" in os.path.basename(BUILD):
        raise Skip("load is measured in the plain build")
    p = subprocess.run([os.path.join(ROOT, "bench", "run"), name], cwd=ROOT, stdout=subprocess.PIPE,
                       stderr=subprocess.STDOUT, text=True, check=False,
                       env={**os.environ, "BUILD": os.path.relpath(BUILD, ROOT), "BENCH_SCALE": "0.01"})
    check(p.returncode in (0, 1), p.stdout)  # 1: a bar was missed
    rows = [re.split(r"  +", line, maxsplit=1) for line in p.stdout.splitlines() if "  " in line]
    return {r[0]: r[1] for r in rows}, p.stdout


def rate_and_tail(rows, name, whole):
    found = re.match(r"(\d+)/s, .*p99 ([\d.]+) ms", rows.get(name, ""))
    check(found and int(found[1]) > 0 and float(found[2]) > 0, name, whole)


@test("many_short_runs_with_their_rate_and_tail", "PERF-07")
def short():
    rows, whole = measured("runs")
    rate_and_tail(rows, "short run, rate and latency", whole)


@test("runs_items_and_notices_at_once", "PERF-08")
def mixed():
    rows, whole = measured("mixed")
    rate_and_tail(rows, "mixed: runs, items, two channels", whole)
    found = re.search(r"(\d+) notices of runs, (\d+) of items for (\d+) runs", whole)
    check(found and all(int(n) > 0 for n in found.groups()), whole)


main()
