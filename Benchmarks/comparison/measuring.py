"""Runs: one client at one workload, for its times or for counts."""

import json
import os
import subprocess
import tempfile

from .certificates import SYSTEM_BUNDLE
from .processes import Failure, run, say
from .workloads import Lifetime

RUN_SECONDS_MAX = 300
INSTRUMENTED_RUN_SECONDS_MAX = 1800

# Mounts the first file over the second, visible to the following program only.
IN_PLACE_OF_THE_SYSTEMS = ["unshare", "--mount", "--map-root-user", "sh", "-c",
                           'mount --bind "$0" "$1" && shift && exec "$@"']


def client_environment(folder, home, upload_file, rate):
    """The environment without proxy settings, which some clients would obey even for loopback.

    Downloads go to `folder`. Caches and cookies go to `home`, which the run has to itself. `rate` is that of a paced
    workload, in requests for each second.
    """
    environment = {name: value for name, value in os.environ.items()
                   if not name.lower().endswith("_proxy") and not name.startswith("XDG_")}
    return environment | {"TMPDIR": str(folder), "HOME": home, "UPLOAD_FILE": str(upload_file),
                          "RATE": str(rate)}


class Bench:
    """The programs, the server, the core and where files go: all that a run needs."""

    def __init__(self, programs, server, core, folder):
        self.programs = programs
        self.server = server
        self.core = core
        self.folder = folder

    def run(self, client, workload, requests, *, rate=0, through=(), seconds_max=RUN_SECONDS_MAX):
        """One run. Returns what the client printed, or None when it does not offer the workload."""
        what = f"{client.name} {workload.name}"
        trusting, ca_file = [], []
        if workload.trust:
            ca_file = [self.server.certificates.trusted(workload.trust)]
            if client.trusts_only_the_system:
                trusting = [*IN_PLACE_OF_THE_SYSTEMS, *ca_file, SYSTEM_BUNDLE]
                if not may_mount(trusting):
                    say(f"{what}: needs a mount of its own, which this system does not allow")
                    return None
        command = ["taskset", "-c", self.core, *trusting, *through, self.programs[client.name],
                   *client.options, workload.name, self.server.host, self.server.port(workload), requests, *ca_file]
        self.server.forget_connections()
        with tempfile.TemporaryDirectory(prefix="larkspur-benchmark-", dir=self.folder) as home:
            environment = client_environment(self.folder, home, self.server.upload_file, rate)
            output = run(command, seconds_max=seconds_max, environment=environment, what=what)
        try:
            result = json.loads(output)
            if result.get("unsupported"):
                return None
            complete = (result["requests"] == requests and result["bytes"] == requests * workload.moved_bytes
                        and min(result["wall_us"], result["peak_rss_kib"]) > 0 and result["cpu_us"] >= 0
                        and result.get("idle_bytes_per_connection", 0) >= 0
                        and ("idle_bytes_per_connection" in result) == workload.measures_memory
                        and ("p999_us" in result) == workload.is_paced)
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Failure(f"{what}: this is not a result: {output!r}") from None
        if not complete:
            raise Failure(f"{what}: the result is not about {requests} complete requests: {output!r}")
        if workload.lifetime is not Lifetime.KEPT:
            try:
                self.server.check_connections(workload, workload.total_requests(requests))
            except Failure as failure:
                raise Failure(f"{what}: {failure}, says nginx") from None
        return result

    def measure(self, clients, workload, requests, rounds, *, rate=0):
        """Runs the clients in turns. Returns for each client its results, one for each round."""
        results = {client.name: [] for client in clients}
        for number in range(1, rounds + 1):
            for client in clients:
                if results[client.name] is None:
                    continue
                say(f"{workload.name}, round {number} of {rounds}: {client.name}")
                result = self.run(client, workload, requests, rate=rate)
                if result is None:
                    results[client.name] = None
                else:
                    results[client.name].append(result)
        return {name: runs for name, runs in results.items() if runs}

    def count(self, client, workload, counter):
        """What one request adds to the counts of `counter`, from two runs of different length; None if unsupported."""
        counts = []
        for requests in workload.counted_requests:
            say(f"{workload.name}, {counter.program} over {requests} requests: {client.name}")
            file = self.server.folder / "counts"
            result = self.run(client, workload, requests, through=counter.command(file),
                              seconds_max=INSTRUMENTED_RUN_SECONDS_MAX)
            if result is None:
                return None
            counts.append(counter.read(file))
        short, long = counts
        short_requests, long_requests = map(workload.total_requests, workload.counted_requests)
        return {name: (long[name] - short.get(name, 0)) / (long_requests - short_requests) for name in long}


def may_mount(trusting):
    probe = subprocess.run([*map(str, trusting), "true"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                           stderr=subprocess.DEVNULL)
    return probe.returncode == 0


class InstructionCounter:
    program = "valgrind"

    def command(self, file):
        return ["valgrind", "--tool=callgrind", f"--callgrind-out-file={file}"]

    def read(self, file):
        for line in file.read_text(errors="replace").splitlines():
            if line.startswith("summary:"):
                return {"instructions": int(line.split()[1])}
        raise Failure("callgrind wrote no summary")


class SystemCallCounter:
    program = "strace"

    def command(self, file):
        return ["strace", "-f", "-c", "-o", file]

    def read(self, file):
        # Columns: % time, seconds, usecs/call, calls, errors (often empty), syscall; the last line is a total.
        counts = {}
        for line in file.read_text().splitlines():
            columns = line.split()
            if len(columns) >= 5 and columns[3].isdigit() and columns[-1] != "total":
                counts[columns[-1]] = int(columns[3])
        if not counts:
            raise Failure("strace counted no system call")
        return counts
