"""The program as a server on the network, at a port of its own."""

import re
import signal
import subprocess
import time
from pathlib import Path

START = 20  # seconds that a server has to say where it listens
STOP = 10  # and to end


class NotServed(Exception):
    """The server does not do what a server does; the text says why, and what it said."""


class Served:
    """`team-table serve` for the network; a context, at the end of which it has to end well."""

    def __init__(self, program: Path, folder: Path, env: dict[str, str], transport: str, *more: str):
        self.log = folder.parent / f"serve-{transport}.log"
        command = [str(program), "serve", "--transport", transport, "--port", "0", *more]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                command, cwd=folder, env=env, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT
            )
        try:
            self.url = self._listening()
        except NotServed:
            self.process.kill()
            self.process.wait()
            raise
        self.port = int(re.sub(r".*:(\d+)/.*", r"\1", self.url))

    def said(self) -> str:
        return self.log.read_text(errors="replace").strip()

    def _listening(self) -> str:
        """The address that it says it listens at: `http://127.0.0.1:8741/mcp`."""
        limit = time.monotonic() + START
        while time.monotonic() < limit and self.process.poll() is None:
            found = re.search(r"^listening on (http://\S+) ", self.said(), re.M)
            if found:
                return found.group(1)
            time.sleep(0.02)
        raise NotServed(f"the server does not listen: {self.said()}")

    def __enter__(self) -> "Served":
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        """As Ctrl-C ends it; what failed before that is the failure to tell of."""
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        try:
            status = self.process.wait(STOP)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = None
        if failure is None and status != 0:
            ended = f"with status {status}" if status is not None else f"not within {STOP} s"
            raise NotServed(f"the server ended {ended}: {self.said()}")
