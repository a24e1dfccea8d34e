"""The clients, and how to build them."""

import dataclasses
import os
import pathlib
import shutil

from .places import BUILD, PEERS, ROOT
from .processes import Failure, find_program, run, say
from .workloads import API_CONCURRENT, API_SERIAL, EVENTS, LATENCY, TRANSPORT, UPLOADS, WEBSOCKETS


@dataclasses.dataclass(frozen=True)
class Client:
    name: str
    # A client is one C file with its compiler flags, one Go file, a program of the Rust peer, or a product of a Swift
    # package.
    source: str = ""
    flags: tuple[str, ...] = ()
    crate_program: str = ""
    package: pathlib.Path = ROOT
    product: str = ""
    scratch: pathlib.Path = BUILD
    swift_flags: tuple[str, ...] = ()
    # The options before the arguments that all clients get.
    options: tuple[str, ...] = ()
    # The schemes that the client supports. It takes part in workloads of these schemes only.
    schemes: tuple[str, ...] = ("http", "https")
    # The only workloads of the client. None: it takes part in all workloads that are for every client.
    workloads: "tuple[str, ...] | None" = None
    # Workloads for few clients in which this client takes part as well.
    besides: tuple[str, ...] = ()
    # Whether the client is left out where it cannot be built: its tools and packages are not those of every machine.
    is_optional: bool = False
    # Whether the client takes no CA file. Then the run mounts the CA file over the system's, for this client only.
    trusts_only_the_system: bool = False

    def takes_part(self, workload):
        if self.workloads is not None or workload.is_for_few:
            return workload.name in (self.workloads or ()) + self.besides
        return workload.scheme in self.schemes

    def build(self):
        """Builds the client and returns the path of its program."""
        say(f"building {self.name}")
        if self.source.endswith(".go"):
            return build_go(self.name, self.source)
        if self.crate_program:
            return build_crate(self.crate_program)
        if self.source:
            return compile_peer(self.name, self.source, self.flags)
        swift = ["swift", "build", "-c", "release", "--package-path", self.package, "--scratch-path", self.scratch,
                 *self.swift_flags]
        # The manifest of the root package has the benchmark clients only on request.
        environment = os.environ | {"LARKSPUR_BENCHMARKS": "1"}
        run([*swift, "--product", self.product], environment=environment)
        folder = run([*swift, "--show-bin-path"], environment=environment).strip()
        return pathlib.Path(folder) / self.product


def build_go(name, source):
    program = BUILD / f"{name}-{pathlib.Path(source).stem}"
    run_tool("golang-go", ["go", "build", "-trimpath", "-ldflags", "-s -w", "-o", program, PEERS / source])
    return program


def build_crate(program):
    # Debian's packages of crates are a registry of files. The lock file would be written beside the manifest.
    folder = BUILD / "hyper"
    shutil.copytree(PEERS / "hyper", folder, dirs_exist_ok=True)
    run_tool("cargo librust-hyper-dev librust-tokio-dev",
             ["cargo", "build", "--quiet", "--release", "--offline", "--manifest-path", folder / "Cargo.toml",
              "--config", 'source.crates-io.replace-with="debian"',
              "--config", 'source.debian.directory="/usr/share/cargo/registry"'])
    return folder / "target" / "release" / program


def run_tool(packages, command):
    """Runs a tool that not every machine has."""
    try:
        if not find_program(command[0]):
            raise Failure(f"there is no {command[0]}")
        run(command)
    except Failure as failure:
        raise Failure(f"{failure}\nIt needs: apt-get install {packages}") from None


def compile_peer(name, source, flags):
    program = BUILD / name
    run(["cc", "-O2", "-Wall", "-Wextra", "-o", program, PEERS / source, *flags])
    return program


# Linked as a command-line program is shipped: one file, without the dynamic linker in every call of the runtime, and
# without debugging information, which valgrind cannot read.
LARKSPUR = {"product": "larkspur-bench", "scratch": ROOT / ".build" / "benchmarks",
            "swift_flags": ("--static-swift-stdlib", "-Xlinker", "--strip-debug")}

ASYNC_HTTP_CLIENT = {"package": PEERS / "AsyncHTTPClient", "scratch": BUILD / "async-http-client",
                     "swift_flags": LARKSPUR["swift_flags"], "is_optional": True}

SESSION = LARKSPUR | {"product": "larkspur-session-bench"}

CLIENTS = [
    Client("raw", source="raw.c", schemes=("http",)),
    Client("raw-tls", source="raw_tls.c", flags=("-lssl", "-lcrypto"), schemes=("https",)),
    Client("raw-websocket", source="raw_websocket.c", workloads=WEBSOCKETS),
    Client("raw-events", source="raw_events.c", workloads=EVENTS),
    Client("libwebsockets", source="libwebsockets.c", flags=("-lwebsockets",), workloads=WEBSOCKETS),
    Client("curl-easy", source="curl_easy.c", flags=("-lcurl", "-lssl"), besides=API_SERIAL + UPLOADS),
    Client("curl-one-shot", source="curl_one_shot.c", flags=("-lcurl", "-lssl"), schemes=("https",)),
    Client("curl-multi", source="curl_multi.c", flags=("-lcurl", "-lssl"), besides=API_SERIAL + API_CONCURRENT + LATENCY),
    Client("curl-multi-collect", source="curl_multi.c", flags=("-DCOLLECTS_BODIES", "-lcurl", "-lssl"),
           workloads=("concurrent-100k",)),
    Client("foundation-networking", package=PEERS / "FoundationNetworking", product="foundation-networking-client",
           scratch=BUILD / "foundation-networking", trusts_only_the_system=True,
           besides=API_SERIAL + API_CONCURRENT + UPLOADS),
    Client("go", source="go/client.go", is_optional=True, workloads=TRANSPORT, besides=LATENCY),
    Client("hyper", crate_program="client", is_optional=True, schemes=("http",), workloads=TRANSPORT, besides=LATENCY),
    Client("async-http-client", **ASYNC_HTTP_CLIENT, product="async-http-client", workloads=TRANSPORT, besides=LATENCY),
    Client("larkspur", **LARKSPUR),
    Client("larkspur-pool", **LARKSPUR, options=("--pool",)),
    Client("larkspur-client", **(LARKSPUR | {"product": "larkspur-client-bench"}), workloads=TRANSPORT,
           besides=API_SERIAL + API_CONCURRENT + UPLOADS + EVENTS + LATENCY),
    Client("larkspur-client-loop", **(LARKSPUR | {"product": "larkspur-client-bench"}), options=("--loop",),
           workloads=TRANSPORT, besides=API_SERIAL + API_CONCURRENT + UPLOADS + EVENTS),
    Client("larkspur-session", **SESSION,
           besides=API_SERIAL + API_CONCURRENT + UPLOADS + WEBSOCKETS + EVENTS + LATENCY),
    Client("larkspur-session-loop", **SESSION, options=("--loop",),
           besides=API_SERIAL + API_CONCURRENT + UPLOADS + WEBSOCKETS + EVENTS),
    Client("larkspur-session-source", **SESSION, options=("--source",), workloads=EVENTS),
    Client("larkspur-session-delegate", **SESSION, options=("--delegate",),
           workloads=API_SERIAL + API_CONCURRENT + ("upload-json",)),
    *(Client(form, **(LARKSPUR | {"product": "larkspur-manager-bench"}), options=(f"--{form}",),
             workloads=("serial-json",) + (API_SERIAL if form in ("manager-main", "manager") else ()))
      for form in ("task", "task-unparsed", "task-main", "data", "manager-main", "manager-queue", "manager")),
]

# The smallest programs: each loads the URL that is its argument and prints the length of the body.
STARTERS = [
    Client("libcurl", source="fetch.c", flags=("-lcurl",)),
    Client("go", source="go/fetch.go", is_optional=True),
    Client("hyper", crate_program="fetch", is_optional=True),
    Client("async-http-client", **ASYNC_HTTP_CLIENT, product="async-http-client-fetch"),
    Client("foundation-networking", package=PEERS / "FoundationNetworking", product="foundation-networking-fetch",
           scratch=BUILD / "foundation-networking-static", swift_flags=LARKSPUR["swift_flags"]),
    Client("larkspur-client", **(LARKSPUR | {"product": "larkspur-fetch"})),
    Client("larkspur-session", **(LARKSPUR | {"product": "larkspur-fetch-session"})),
]
