"""The servers of our own, for what nginx does not do.

nginx answers an upload before it has read a body that it throws away; `peers/sink.c` answers afterwards. WebSockets and
event streams come from `peers/live.c`.
"""

import subprocess

from .clients import compile_peer
from .processes import Failure, stop


class PeerServer:
    """A running server of `peers`. It chooses its port and prints it."""

    flags = ("-lssl", "-lcrypto")

    def __init__(self, name, core, *arguments):
        program = compile_peer(name, f"{name}.c", self.flags)
        self.process = subprocess.Popen(["taskset", "-c", str(core), program, *arguments], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, start_new_session=True, text=True)
        port = self.process.stdout.readline().strip()
        if not port.isdigit():
            self.stop()
            raise Failure(f"the server {name} did not start")
        self.port = int(port)

    def stop(self):
        stop(self.process)
