#!/usr/bin/env python3
"""The load tests of bench/ at a small scale: they run to their end and report what they measured.

What the numbers are is not looked at here; `make bench` holds them against the bars. Only two of the same kind are compared."""
import http.client
import json
import os
import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from lib import BUILD, SAFETY, Server, Skip, check, equal, main, test, wait_until
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


CLIENTS, CREATES = 8, 20000


def processor_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cost_of_creates(**more):
    """Processor time of the server for all of them; each waits for a model that takes its time."""
    with Server(scripted_token_ms=60000) as s:
        body = json.dumps({"agent_id": "demo", "inputs": {"message": "hello"}, **more})
        headers = {"Authorization": "Bearer " + s.token, "Content-Type": "application/json"}

        def create(_):
            conn = http.client.HTTPConnection(urlsplit(s.url).netloc, timeout=SAFETY)
            for _ in range(CREATES // CLIENTS):
                conn.request("POST", "/api/runs", body, headers)
                a = conn.getresponse()
                equal((a.status, bool(a.read())), (202, True))
            conn.close()
        before = processor_seconds(s.pid)
        with ThreadPoolExecutor(CLIENTS) as pool:
            list(pool.map(create, range(CLIENTS)))
        wait_until(lambda: s.metric("uar_runs_live") == CREATES, "all runs are counted")
        cost = processor_seconds(s.pid) - before
        s.kill()
    return cost


@test("creates_into_one_conversation_cost_what_those_into_many_do", "")
def one_conversation():
    if "san" in os.path.basename(BUILD):
        raise Skip("load is measured in the plain build")
    one, many = cost_of_creates(conversation_id="c"), cost_of_creates()
    print(f"  {CREATES} creates: {one:.1f} s into one conversation, {many:.1f} s into many")
    check(one < 2 * many, one, many)


main()
