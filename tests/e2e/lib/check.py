"""The frame of a test program: @test(name, ids), checks that show both sides, main()."""
import faulthandler
import os
import select
import signal
import sys
import threading
import traceback

# Slow builds (sanitizers, valgrind) and loaded machines get the same limit: it must never decide.
SAFETY = float(os.environ.get("UAR_TEST_SAFETY", "120"))
TESTS = []


class Skip(Exception):
    """The machine does not allow this test; the text says why."""


def test(name, ids):
    def keep(fn):
        TESTS.append((name, ids, fn))
        return fn
    return keep


def check(condition, *what):
    if not condition:
        raise AssertionError(" ".join(str(w)[:2000] for w in what) or "check failed")


def equal(got, want, what=""):
    if got != want:
        raise AssertionError(f"got {str(got)[:600]!r}, want {str(want)[:600]!r}: {what}")


def refused(answer, status, code, where=None):
    """A problem document with a stable code, and a pointer where there is a place to name."""
    equal(answer.status, status, answer.body)
    equal(answer.headers.get("content-type"), "application/problem+json")
    problem = answer.json
    equal(problem["code"], code, problem)
    equal(problem["status"], status)
    for key in ("type", "title", "detail"):
        check(isinstance(problem.get(key), str) and problem[key], key, problem)
    if where is not None:
        equal(problem.get("where"), where, problem)
    return problem


def wait_until(fn, what="condition"):
    """For states that nothing announces; asks again until they are there."""
    nobody = threading.Event()
    for _ in range(int(SAFETY * 100)):
        value = fn()
        if value:
            return value
        nobody.wait(0.01)
    raise AssertionError(f"never happened: {what}")


def all_of(fns):
    """Runs them at the same time, one thread each; their results in order."""
    results = [None] * len(fns)
    errors = []

    def run(i, fn):
        try:
            results[i] = fn()
        except BaseException as e:  # handed to the caller below
            errors.append(e)

    threads = [threading.Thread(target=run, args=(i, fn), daemon=True)
               for i, fn in enumerate(fns)]
    for t in threads:
        t.start()
    for t in threads:
        t.join(SAFETY)
        check(not t.is_alive(), "a thread did not end")
    if errors:
        raise errors[0]
    return results


def in_one_line(e):
    """What was wrong and where, for readers who see one line of it."""
    here = [f for f in traceback.extract_tb(e.__traceback__) if f.filename.endswith("_test.py")]
    place = f"line {here[-1].lineno}: " if here else ""
    kind = "" if isinstance(e, AssertionError) else type(e).__name__ + ": "
    return (place + kind + " ".join(str(e).split()))[:600]


def goes_on():
    """A hang says where it is and ends the program. A test that takes longer says now and then that it is none."""
    faulthandler.dump_traceback_later(SAFETY * 10, exit=True)


def tries_of(program):
    """A real browser on a busy machine now and then misses a press: such a test has a second try, and says so."""
    return 2 if os.path.basename(program).startswith("page_") else 1


def run_one(name, ids, fn, tries=1):
    goes_on()
    try:
        fn()
        print(f"ok {name} [{ids}]", flush=True)
        return True
    except Skip as why:
        print(f"skipped {name} [{ids}] # {why}", flush=True)
        return True
    except Exception as e:
        traceback.print_exc(file=sys.stdout)
        if tries > 1:
            print(f"# unsteady: {name} is tried again: {in_one_line(e)}", flush=True)
            return run_one(name, ids, fn, tries - 1)
        print(f"not ok {name} [{ids}] # {in_one_line(e)}", flush=True)
        return False
    finally:
        faulthandler.cancel_dump_traceback_later()


def main():
    # Who was started in the background ignores it, and so would all that the tests start.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    wanted = sys.argv[1:]
    good = [run_one(*t, tries_of(sys.argv[0])) for t in TESTS if not wanted or t[0] in wanted]
    sys.stdout.flush()
    os._exit(0 if all(good) else 1)  # threads that hang must not keep the program


def readable(fileno):
    return bool(select.select([fileno], [], [], SAFETY)[0])
