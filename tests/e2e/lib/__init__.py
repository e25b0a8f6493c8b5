"""What the end-to-end tests share: they drive the real program from outside.

Nothing here waits by the clock. Each wait ends with an event; the one limit, SAFETY, only turns
a hang into a failure."""
from lib.check import (SAFETY, Skip, all_of, check, equal, goes_on, main, refused, test, wait_until)
from lib.client import Answer, Client, connect, send_raw
from lib.events import check_session, check_run_stream, text_of, without_run_id
from lib.provider import Provider
from lib.server import BUILD, FIXTURES, ROOT, UAR, Server, run_uar
from lib.sse import Event, Stream
