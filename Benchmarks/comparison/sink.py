"""The server of uploads. nginx answers before it has read a body that it throws away; this one answers afterwards."""

import subprocess

from .clients import compile_peer
from .processes import Failure, stop


class Sink:
    """A running `peers/sink.c`."""

    flags = ("-lssl", "-lcrypto")

    def __init__(self, core, certificates=None):
        program = compile_peer("sink", "sink.c", self.flags)
        files = [certificates.leaf, certificates.leaf_key] if certificates else []
        self.process = subprocess.Popen(["taskset", "-c", str(core), program, *files], stdin=subprocess.DEVNULL,
                                        stdout=subprocess.PIPE, start_new_session=True, text=True)
        port = self.process.stdout.readline().strip()
        if not port.isdigit():
            self.stop()
            raise Failure("the sink did not start")
        self.port = int(port)

    def stop(self):
        stop(self.process)
