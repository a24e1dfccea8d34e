"""The command `compare`: its options, and what they lead to."""

import argparse
import datetime
import json
import os
import pathlib
import signal
import sys

from .clients import CLIENTS, STARTERS
from .measuring import Bench, InstructionCounter, SystemCallCounter
from .packages import install_missing_packages, left_out
from .places import BUILD
from .plots import draw
from .processes import Failure
from .reporting import machine, print_environment, print_latencies, print_table, print_timings, summarise
from .server import Server
from .starting import measure_starters
from .workloads import WORKLOADS

# The workload whose rate decides at which rates latencies are measured, and how long a run of those is.
UNPACED = next(workload for workload in WORKLOADS if workload.name == "concurrent-tiny")
LATENCY_SECONDS = 5
# How often each program is started in a round.
START_RUNS = 10


def parse_options():
    parser = argparse.ArgumentParser(description="Measures Larkspur beside its peers, on loopback.")

    def chosen(kind, everything):
        def parse(text):
            names = text.split(",")
            unknown = set(names) - {thing.name for thing in everything}
            if unknown:
                known = ", ".join(thing.name for thing in everything)
                raise argparse.ArgumentTypeError(f"no {kind} {', '.join(sorted(unknown))}; there are {known}")
            return [thing for thing in everything if thing.name in names]
        return parse

    def round_count(text):
        if not text.isdigit() or int(text) < 3:
            raise argparse.ArgumentTypeError("a median needs at least 3 rounds")
        return int(text)

    parser.add_argument("--clients", type=chosen("client", CLIENTS), default=CLIENTS, metavar="A,B",
                        help="only these: " + ", ".join(client.name for client in CLIENTS))
    parser.add_argument("--workloads", type=chosen("workload", WORKLOADS), default=WORKLOADS, metavar="X,Y",
                        help="only these: " + ", ".join(workload.name for workload in WORKLOADS))
    parser.add_argument("--rounds", type=round_count, metavar="N",
                        help="rounds of each workload, at least 3 (default 5, with --quick 3)")
    parser.add_argument("--quick", action="store_true", help="few requests: shows that everything works, not how fast")
    parser.add_argument("--instructions", action="store_true",
                        help="instead of the clock: user instructions for each request, by callgrind")
    parser.add_argument("--syscalls", action="store_true",
                        help="instead of the clock: system calls for each request of the workloads, by strace")
    parser.add_argument("--start", action="store_true",
                        help="instead of the workloads: programs of one GET, their size and what a start costs")
    parser.add_argument("--folder", type=pathlib.Path, default=pathlib.Path("/dev/shm"), metavar="FOLDER",
                        help="where downloaded files go (default: %(default)s, without a disk)")
    parser.add_argument("--busy-server", action="store_true",
                        help="the server writes lines for each request, so that it is the slower side")
    parser.add_argument("--json", type=pathlib.Path, default=BUILD / "compare.json", metavar="FILE",
                        help="where the numbers go (default: %(default)s)")
    parser.add_argument("--plot", type=pathlib.Path, metavar="FOLDER", help="pictures of the numbers (SVG) go there")
    options = parser.parse_args()
    if not options.json.parent.is_dir() and options.json.parent != BUILD:
        parser.error(f"there is no folder {options.json.parent}")
    if not options.folder.is_dir():
        parser.error(f"there is no folder {options.folder}")
    options.rounds = options.rounds or (3 if options.quick else 5)
    return options


def taking_part(clients, workload):
    return [client for client in clients if client.takes_part(workload)]


def time_clients(bench, options):
    objects = []
    for workload in options.workloads:
        clients = taking_part(options.clients, workload)
        if workload.is_paced:
            objects += measure_latencies(bench, options, workload, clients)
            continue
        requests = workload.quick_requests if options.quick else workload.requests
        results = bench.measure(clients, workload, requests, options.rounds)
        print_timings(clients, workload, requests, options.rounds, results)
        objects += [summarise(name, workload, runs) for name, runs in results.items()]
    return objects


def measure_latencies(bench, options, workload, clients):
    """Latencies at a third and at two thirds of the slowest client's rate, which is measured first."""
    requests = UNPACED.quick_requests if options.quick else UNPACED.requests
    unpaced = bench.measure(clients, UNPACED, requests, options.rounds)
    rates = {name: summarise(name, UNPACED, runs)["requests_per_second"] for name, runs in unpaced.items()}
    slowest = min(rates, key=rates.get)
    objects = []
    for thirds in (1, 2):
        rate = int(rates[slowest] * thirds / 3)
        requests = rate * LATENCY_SECONDS // (10 if options.quick else 1)
        results = bench.measure(clients, workload, requests, options.rounds, rate=rate)
        share = f"{thirds}/3 of the rate of {slowest} ({rates[slowest]:,.0f} requests/s)"
        print_latencies(clients, workload, rate, share, options.rounds, results)
        objects += [summarise(name, workload, runs) | {"rate": rate} for name, runs in results.items()]
    return objects


def count_instructions(bench, options):
    objects = []
    for workload in options.workloads:
        if not workload.counts_instructions:
            continue
        rows = []
        for client in taking_part(options.clients, workload):
            counts = bench.count(client, workload, InstructionCounter())
            if counts is None:
                rows.append([client.name, "unsupported"])
                continue
            rows.append([client.name, f"{counts['instructions']:,.0f}"])
            objects.append({"client": client.name, "workload": workload.name,
                            "user_instructions_per_request": round(counts["instructions"])})
        print_table(f"{workload.name}: user instructions for each request", ["", "instructions"], rows)
    return objects


def count_system_calls(bench, options):
    objects = []
    for workload in options.workloads:
        if workload.is_paced:
            continue
        rows = []
        for client in taking_part(options.clients, workload):
            counts = bench.count(client, workload, SystemCallCounter())
            if counts is None:
                rows.append([client.name, "unsupported", ""])
                continue
            total = sum(counts.values())
            commonest = sorted(counts.items(), key=lambda item: -item[1])
            # System calls that occur only once in a hundred requests are chance, not cost.
            parts = ", ".join(f"{name} {count:,.2f}" for name, count in commonest[:6] if count > 0.01)
            rows.append([client.name, f"{total:,.2f}", parts])
            objects.append({"client": client.name, "workload": workload.name,
                            "system_calls_per_request": round(total, 3)})
        width = max(len(row[2]) for row in rows)  # the only column of words on the right: aligned to the left
        print_table(f"{workload.name}: system calls for each request", ["", "calls", "above all".ljust(width)],
                    [[*row[:2], row[2].ljust(width)] for row in rows])
    return objects


def compare(options):
    load = os.getloadavg()[0]  # before the builds add to it
    if options.start:
        names = {client.name for client in options.clients}
        options.clients = [client for client in STARTERS if client.name in names or client.name == "libcurl"]
        options.workloads = []
    options.workloads = [workload for workload in options.workloads if taking_part(options.clients, workload)]
    install_missing_packages(options)
    reasons = left_out(options.clients)
    options.clients = [client for client in options.clients if client.name not in reasons]
    options.workloads = [workload for workload in options.workloads if taking_part(options.clients, workload)]
    BUILD.mkdir(exist_ok=True)
    programs = {}
    for client in options.clients:
        try:
            programs[client.name] = client.build()
        except Failure as failure:
            if not client.is_optional:
                raise
            reasons[client.name] = f"it cannot be built here: {failure}"
    options.clients = [client for client in options.clients if client.name in programs]
    options.workloads = [workload for workload in options.workloads if taking_part(options.clients, workload)]
    cores = sorted(os.sched_getaffinity(0))
    server_core, client_core = cores[0], cores[min(1, len(cores) - 1)]
    with Server(server_core, options.workloads, is_busy=options.busy_server) as server:
        bench = Bench(programs, server, client_core, options.folder.resolve())
        print_environment(server_core, client_core, load)
        for name, reason in reasons.items():
            print(f"{name} is left out: {reason}")
        objects = []
        if options.start:
            objects += measure_starters(programs, server, client_core, options.folder.resolve(), options.rounds,
                                        START_RUNS)
        if options.instructions:
            objects += count_instructions(bench, options)
        if options.syscalls:
            objects += count_system_calls(bench, options)
        if not options.instructions and not options.syscalls and not options.start:
            objects += time_clients(bench, options)
    lines = ",\n  ".join(json.dumps(item) for item in objects)
    options.json.write_text(f"[\n  {lines}\n]\n")
    if options.plot:
        note = f"{datetime.date.today():%-d %B %Y}; {machine()}; medians of {options.rounds} rounds"
        for path in draw(objects, options.plot, note):
            print(f"drew {path}")
    print(f"\nNumbers in {options.json}")


def main():
    def interrupted(number, _):
        # Only the cleanup is left, and a second Ctrl-C must not interrupt it.
        for other in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(other, signal.SIG_IGN)
        raise SystemExit(128 + number)

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, interrupted)
    try:
        compare(parse_options())
    except Failure as failure:
        sys.exit(f"compare: {failure}")
