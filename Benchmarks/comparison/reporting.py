"""What the runs come to: the objects of the JSON file, and the tables."""

import contextlib
import pathlib
import platform
import statistics
import subprocess

from .processes import find_program


PERCENTILES = {"p50_us": "p50 us", "p99_us": "p99 us", "p999_us": "p99.9 us"}


def cpu_per_request(run):
    return run["cpu_us"] / run["requests"]


def idle_bytes(run):
    return run["idle_bytes_per_connection"]


def cost(workload):
    """What a workload is about, and so what its ratios compare."""
    return idle_bytes if workload.measures_memory else cpu_per_request


def summarise(client_name, workload, runs):
    """The medians of one client's rounds, under the names of the JSON file."""
    def median(value):
        return statistics.median(map(value, runs))
    summary = {
        "client": client_name,
        "workload": workload.name,
        "requests": runs[0]["requests"],
        "cpu_us_per_request": round(median(cpu_per_request), 3),
        "requests_per_second": round(median(lambda run: run["requests"] * 1e6 / run["wall_us"]), 3),
        "bytes_per_second": round(median(lambda run: run["bytes"] * 1e6 / run["wall_us"])),
        "peak_rss_kib": round(median(lambda run: run["peak_rss_kib"])),
    }
    if workload.is_paced:
        summary |= {name: round(median(lambda run: run[name])) for name in PERCENTILES}
    if workload.measures_memory:
        summary["idle_bytes_per_connection"] = round(median(idle_bytes))
    return summary


def ratio(workload, runs, peer_runs):
    """The median of each round's ratio: the machine's speed drifts between rounds more than within one."""
    costs = map(cost(workload), runs), map(cost(workload), peer_runs)
    ratios = [ours / theirs for ours, theirs in zip(*costs) if theirs > 0]
    return statistics.median(ratios) if ratios else float("nan")


def print_table(title, header, rows):
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    print(f"\n{title}\n")
    for row in [header, ["-" * width for width in widths], *rows]:
        cells = [row[0].ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(row[1:], widths[1:]))]
        print("  ".join(cells).rstrip())


def print_timings(clients, workload, requests, rounds, results):
    names = [client.name for client in clients if client.name in results]
    header = ["", "CPU s/GB" if workload.is_bulk else "CPU us/request", "spread", "requests/s", "MB/s", "peak MiB"]
    if workload.measures_memory:
        header[1:3] = ["idle KiB/connection", "spread", "CPU us/request"]
    header += [f"x {name}" for name in names]
    rows = []
    for client in clients:
        if client.name not in results:
            rows.append([client.name, "unsupported", *[""] * (len(header) - 2)])
            continue
        runs = results[client.name]
        summary = summarise(client.name, workload, runs)
        cpu = summary["cpu_us_per_request"]
        costs = sorted(map(cost(workload), runs))
        middle = statistics.median(costs)
        spread = f"{(costs[-1] - costs[0]) / middle:.0%}" if middle else ""
        if workload.measures_memory:
            figures = [f"{middle / 1024:.1f}", spread, f"{cpu:.2f}"]
        elif workload.is_bulk:
            figures = [f"{cpu / workload.moved_bytes * 1e3:.3f}", spread]
        else:
            figures = [f"{cpu:.2f}" if cpu >= 1 else f"{cpu:.3f}", spread]
        rows.append([
            client.name,
            *figures,
            f"{summary['requests_per_second']:,.{1 if workload.is_bulk else 0}f}",
            f"{summary['bytes_per_second'] / 1e6:,.1f}",
            f"{summary['peak_rss_kib'] / 1024:.1f}",
            *(f"{ratio(workload, runs, results[peer]):.2f}" for peer in names),
        ])
    plural = "" if requests == 1 else "s"
    print_table(f"{workload.name}: {workload.what}; {requests:,} request{plural} a run, medians of {rounds} rounds, "
                f"ratios of {'memory' if workload.measures_memory else 'CPU'}", header, rows)


def print_latencies(clients, workload, rate, share, rounds, results):
    rows = []
    for client in clients:
        if client.name not in results:
            rows.append([client.name, "unsupported", *[""] * len(PERCENTILES)])
            continue
        summary = summarise(client.name, workload, results[client.name])
        rows.append([client.name, *(f"{summary[name]:,}" for name in PERCENTILES),
                     f"{summary['cpu_us_per_request']:.2f}"])
    print_table(f"{workload.name}: {workload.what}; {rate:,} requests/s, {share}; medians of {rounds} rounds",
                ["", *PERCENTILES.values(), "CPU us/request"], rows)


def machine():
    """The processor and the kernel."""
    model = ""
    with contextlib.suppress(OSError):
        for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                model = line.partition(":")[2].strip()
                break
    return f"{model or platform.machine()}, Linux {platform.release()}"


def print_environment(server_core, client_core, load):
    nginx = subprocess.run([find_program("nginx"), "-v"], stderr=subprocess.PIPE, text=True).stderr.strip()
    print(f"{machine()}, {nginx}; "
          f"server on core {server_core}, client on core {client_core}")
    if server_core == client_core:
        print("Only one core: server and client take turns on it, and requests per second mean little.")
    if load > 0.5:
        print(f"Others were busy here when this began (load {load:.1f}): quote counts, but no times.")
