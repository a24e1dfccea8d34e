"""Where things are."""

import pathlib

BENCHMARKS = pathlib.Path(__file__).resolve().parent.parent
ROOT = BENCHMARKS.parent
BUILD = BENCHMARKS / ".build"
PEERS = BENCHMARKS / "peers"
