"""Pictures of the numbers: bars as SVG, readable on light and dark pages."""

import html

STYLE = """
  text { font: 12px system-ui, sans-serif; fill: #24292f; }
  .title { font-size: 15px; font-weight: 600; }
  .note { font-size: 11px; fill: #57606a; }
  .value { font-size: 11px; }
  .bar { fill: #8c959f; }
  .own { fill: #0969da; }
  .line { stroke: #d0d7de; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .note { fill: #9198a1; }
    .bar { fill: #6e7681; }
    .own { fill: #4493f8; }
    .line { stroke: #3d444d; }
  }
"""
WIDTH, LABEL, VALUE, BAR, GAP = 720, 190, 90, 15, 4


def bars(title, unit, groups, note):
    """A picture with a group of bars for each subject. A group is its name and pairs of a client and a number."""
    rows, y = [], 54
    for name, pairs in groups:
        longest = max(number for _, number in pairs)
        rows.append(f'<text x="0" y="{y}">{html.escape(name)}</text>')
        rows.append(f'<line class="line" x1="0" y1="{y + 5}" x2="{WIDTH}" y2="{y + 5}"/>')
        y += 12
        for client, number in pairs:
            width = max(1, (WIDTH - LABEL - VALUE) * number / longest)
            kind = "own" if client.startswith("larkspur") else "bar"
            text = f"{number:,.0f}" if number >= 100 else f"{number:.3g}"
            rows.append(f'<text class="value" x="{LABEL - 8}" y="{y + 12}" text-anchor="end">{html.escape(client)}</text>')
            rows.append(f'<rect class="{kind}" x="{LABEL}" y="{y}" width="{width:.1f}" height="{BAR}" rx="2"/>')
            rows.append(f'<text class="value" x="{LABEL + width + 6:.1f}" y="{y + 12}">{text}</text>')
            y += BAR + GAP
        y += 22
    head = [f'<text class="title" x="0" y="18">{html.escape(title)}</text>',
            f'<text class="note" x="{WIDTH}" y="18" text-anchor="end">{html.escape(unit)}; shorter is better</text>',
            f'<text class="note" x="0" y="{y}">{html.escape(note)}</text>']
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-8 0 {WIDTH + 16} {y + 10}" role="img">\n'
            f"<title>{html.escape(title)}</title>\n<style>{STYLE}</style>\n" + "\n".join(head + rows) + "\n</svg>\n")


# A picture has the numbers of one name, of the workloads that have it: its file, title, unit, divisor.
PICTURES = {
    "cpu": ("cpu_us_per_request", "CPU for each request", "microseconds", 1),
    "memory": ("peak_rss_kib", "Peak memory", "MiB", 1024),
    "latency-p50": ("p50_us", "Latency at a fixed rate, median", "microseconds", 1),
    "latency-p99": ("p99_us", "Latency at a fixed rate, 99th percentile", "microseconds", 1),
    "start-size": ("bytes", "Size of a program of one GET, without symbols", "MB", 1e6),
    "start-cpu": ("cpu_us", "CPU of a program of one GET, from start to end", "milliseconds", 1000),
}
# Bodies of 1 GiB have a scale of their own, and a baseline that uses shared libraries has no size.
SMALLEST_SIZE = 100_000


def draw(objects, folder, note):
    """Writes the pictures that the objects of a JSON file have numbers for, and returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = []
    for file, (name, title, unit, divisor) in PICTURES.items():
        groups = {}
        for entry in objects:
            is_bulk = "download-1g" in entry["workload"] or "upload-1g" in entry["workload"]
            if name not in entry or is_bulk or name == "bytes" and entry[name] < SMALLEST_SIZE:
                continue
            subject = entry["workload"]
            if "rate" in entry:
                subject += f", {entry['rate']:,} requests/s"
            groups.setdefault(subject, []).append((entry["client"], entry[name] / divisor))
        if groups:
            path = folder / f"{file}.svg"
            path.write_text(bars(title, unit, list(groups.items()), note))
            paths.append(path)
    return paths
