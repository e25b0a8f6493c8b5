"""A disk that is soon full."""
import os
import subprocess
import tempfile

from lib.check import Skip


class SmallDisk:
    """A file system of a few megabytes, if this machine lets us have one."""

    def __init__(self, size):
        self.path = tempfile.mkdtemp(prefix="uar-e2e-disk-")
        done = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "uar-e2e", self.path],
                              stderr=subprocess.PIPE, text=True)
        if done.returncode:
            os.rmdir(self.path)
            raise Skip("no tmpfs may be mounted here: " + done.stderr.strip().replace("\n", " "))

    def fill(self):
        with open(os.path.join(self.path, "filler"), "wb", 0) as f:
            for block in (65536, 4096, 1):
                try:
                    while f.write(b"x" * block):
                        pass
                except OSError:
                    pass

    def free(self):
        os.unlink(os.path.join(self.path, "filler"))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        subprocess.run(["umount", "-l", self.path], check=True)
        os.rmdir(self.path)
