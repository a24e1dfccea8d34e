"""The smallest programs of the clients: their size, and what one request costs from the start of the process to its end."""

import pathlib
import shutil
import statistics
import subprocess

from .clients import compile_peer
from .measuring import InstructionCounter, client_environment
from .processes import Failure, run, say
from .reporting import print_table
from .workloads import TINY_BODY


def measure_starters(programs, server, core, folder, rounds, runs):
    """Measures the programs in turns, and prints a table. Returns the objects of the JSON file."""
    url = f"http://{server.host}:{server.ports.plain}/tiny"
    environment = client_environment(folder, str(server.folder), "", 0)
    stripped = {name: strip(program, server.folder / f"fetch-{name}") for name, program in programs.items()}
    start = compile_peer("start", "start.c", ("-D_GNU_SOURCE",))
    times = {name: [] for name in programs}
    for number in range(1, rounds + 1):
        say(f"start, round {number} of {rounds}")
        for name, program in stripped.items():
            output = run(["taskset", "-c", core, start, runs, len(TINY_BODY), program, url], environment=environment)
            times[name] += [[int(figure) for figure in line.split()] for line in output.splitlines()]
    objects, rows = [], []
    for name, program in stripped.items():
        cpu, wall, peak = (statistics.median(column) for column in zip(*times[name]))
        summary = {"client": name, "workload": "start", "bytes": program.stat().st_size,
                   "libraries": len(libraries(program)), "cpu_us": round(cpu), "wall_us": round(wall),
                   "peak_rss_kib": round(peak), "user_instructions": count_instructions(program, url, core, server, environment)}
        objects.append(summary)
        rows.append([name, f"{summary['bytes'] / 1e6:.1f}", str(summary["libraries"]), f"{cpu / 1e3:.2f}",
                     f"{wall / 1e3:.2f}", f"{peak / 1024:.1f}",
                     f"{summary['user_instructions'] / 1e6:.2f}" if summary["user_instructions"] else ""])
    print_table(f"start: a program of one GET, from its start to its end; medians of {rounds * runs} runs",
                ["", "stripped MB", "libraries", "CPU ms", "wall ms", "peak MiB", "million instructions"], rows)
    return objects


def strip(program, target):
    """Copies a program without its symbols, as it is shipped."""
    shutil.copy(program, target)
    run(["strip", target])
    return target


def libraries(program):
    """The shared libraries that a program loads, without the system's own C library and loader."""
    lines = subprocess.run(["ldd", program], capture_output=True, text=True).stdout.splitlines()
    names = {pathlib.Path(line.split()[0]).name for line in lines if "=>" in line}
    return {name for name in names if not name.startswith(("libc.so", "libm.so", "libdl.so", "libpthread.so"))}


def count_instructions(program, url, core, server, environment):
    counter, file = InstructionCounter(), server.folder / "counts"
    say(f"start, {counter.program}: {program.name}")
    command = ["taskset", "-c", core, *counter.command(file), program, url]
    try:
        run(command, seconds_max=600, environment=environment)
    except Failure:
        return None  # valgrind cannot run every program of Go
    return counter.read(file)["instructions"]
