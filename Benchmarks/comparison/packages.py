"""What has to be installed."""

import os
import subprocess

from . import certificates
from .places import ROOT
from .peer_servers import PeerServer
from .processes import Failure, find_program, run, say
from .workloads import Protocol

HEADERS_OF_LIBRARIES = {
    "-lcurl": ("curl/curl.h", "libcurl4-openssl-dev"),
    "-lssl": ("openssl/ssl.h", "libssl-dev"),
}

# A client of such a library is left out where the library is missing.
HEADERS_OF_OPTIONAL_LIBRARIES = {
    "-lwebsockets": ("libwebsockets.h", "libwebsockets-dev"),
}


def has_header(header):
    if not find_program("cc"):
        return False
    probe = subprocess.run(["cc", "-E", "-x", "c", "-"], input=f"#include <{header}>\n", text=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return probe.returncode == 0


def missing_packages(options):
    """The apt packages without which the chosen comparison cannot run."""
    needs = {
        "nginx": find_program("nginx"),
        "openssl": find_program("openssl"),
        "ca-certificates": certificates.SYSTEM_BUNDLE.exists(),
        "util-linux": find_program("taskset"),
    }
    has_peer_servers = any(workload.upload_bytes or workload.protocol is not Protocol.HTTP
                           for workload in options.workloads)
    if has_peer_servers or any(client.source for client in options.clients):
        needs["gcc"] = find_program("cc")
    flags = {flag for client in options.clients for flag in client.flags}
    if has_peer_servers:
        flags |= set(PeerServer.flags)
    for flag, (header, package) in HEADERS_OF_LIBRARIES.items():
        if flag in flags:
            needs[package] = has_header(header)
    if options.instructions or options.start:
        needs["valgrind"] = find_program("valgrind")
    if options.syscalls:
        needs["strace"] = find_program("strace")
    return [package for package, is_present in needs.items() if not is_present]


def install_missing_packages(options):
    missing = missing_packages(options)
    if not missing:
        return
    installer = ROOT / ".ci" / "install"
    if os.access(installer, os.X_OK):
        say(f"installing {' '.join(missing)}")
        run([installer, *missing])
        missing = missing_packages(options)
    if missing:
        raise Failure(f"something is missing; install it with: apt-get install {' '.join(missing)}")


def left_out(clients):
    """The clients whose library is missing, each with the reason."""
    reasons = {}
    for client in clients:
        for flag, (header, package) in HEADERS_OF_OPTIONAL_LIBRARIES.items():
            if flag in client.flags and not has_header(header):
                reasons[client.name] = f"there is no {header}; install it with: apt-get install {package}"
    return reasons
