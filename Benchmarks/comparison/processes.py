"""Running other programs, and ending them."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys


class Failure(Exception):
    """Something that ends the comparison; its text is for the person who started it."""


def run(command, *, seconds_max=None, environment=None, what=None):
    """Runs a command to its end and returns its standard output; a failure carries its standard error."""
    command = [str(part) for part in command]
    what = what or " ".join(command)
    # A session of its own, so that Ctrl-C reaches only this script, which then stops the child and the child's
    # children.
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env=environment, start_new_session=True, text=True, errors="replace")
    try:
        output, errors = process.communicate(timeout=seconds_max)
    except subprocess.TimeoutExpired:
        stop(process)
        output, errors = process.communicate()
        raise Failure(f"{what}: did not end within {seconds_max} s\n{(errors or output).rstrip()}") from None
    finally:
        stop(process)
    if process.returncode != 0:
        reason = f"signal {-process.returncode}" if process.returncode < 0 else f"exit code {process.returncode}"
        raise Failure(f"{what}: {reason}\n{(errors + output).rstrip()}")
    return output


def stop(process):
    """Ends a process started by `run`, and whatever it started."""
    # First the signal that a build tool passes on to its compilers, and then the one that no process can ignore.
    for number in (signal.SIGINT, signal.SIGKILL):
        if process.poll() is not None:
            return
        os.killpg(process.pid, number)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(timeout=5)


def find_program(name):
    # nginx is in sbin, which may not be on the path.
    return shutil.which(name, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")


def say(text):
    print(text, file=sys.stderr, flush=True)
