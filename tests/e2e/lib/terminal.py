"""A verb of uar on a terminal of its own."""
import os
import pty
import signal

from .server import UAR


class Terminal:
    def __init__(self, s, *argv):
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            for number in (signal.SIGINT, signal.SIGQUIT):  # a shell ignores them in what runs in the background
                signal.signal(number, signal.SIG_DFL)
            os.execve(UAR, [UAR, argv[0], "--data", s.data, *argv[1:]], {"PATH": os.environ["PATH"], "TERM": "dumb"})
        self.seen = ""

    def until(self, text):
        """Reads on until `text` was printed; keeps what comes after it."""
        while text not in self.seen:
            try:
                self.seen += os.read(self.fd, 4096).decode(errors="replace")
            except OSError:  # how a terminal reports its end
                raise AssertionError(f"it ended without {text}: {self.seen}") from None
        before, self.seen = self.seen.split(text, 1)
        return before

    def type(self, line):
        os.write(self.fd, line.encode() + b"\n")

    def press(self, key):
        os.write(self.fd, key)

    def end(self):
        try:
            while chunk := os.read(self.fd, 4096):
                self.seen += chunk.decode(errors="replace")
        except OSError:
            pass
        _, status = os.waitpid(self.pid, 0)
        os.close(self.fd)
        return os.waitstatus_to_exitcode(status)
