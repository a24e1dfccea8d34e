"""What has to be installed."""

import os
import subprocess

from . import certificates
from .places import ROOT
from .processes import Failure, find_program, run, say
from .sink import Sink

HEADERS_OF_LIBRARIES = {
    "-lcurl": ("curl/curl.h", "libcurl4-openssl-dev"),
    "-lssl": ("openssl/ssl.h", "libssl-dev"),
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
    has_uploads = any(workload.upload_bytes for workload in options.workloads)
    if has_uploads or any(client.source for client in options.clients):
        needs["gcc"] = find_program("cc")
    flags = {flag for client in options.clients for flag in client.flags} | set(Sink.flags if has_uploads else ())
    for flag, (header, package) in HEADERS_OF_LIBRARIES.items():
        if flag in flags:
            needs[package] = has_header(header)
    if options.instructions:
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
