"""What the benches of Python share: turns in processes of their own, their processor time, and the machine's name."""

import importlib.metadata
import json
import os
import platform
import resource
import subprocess
import sys
import time


def say(line):
    """Tells a person how far it is."""
    print(line, file=sys.stderr, flush=True)


def cpu_seconds():
    """The processor time of this process and of the processes that it started and that have ended."""
    used = map(resource.getrusage, (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return sum(u.ru_utime + u.ru_stime for u in used)


def in_a_process(script, turn):
    """Runs a turn of a script in a process of its own. Returns its answer, or the text of its error. The turn comes as
    the input, since RM5's pipeline is longer than an argument may be.
    """
    command = [sys.executable, os.path.abspath(script), "--turn"]
    done = subprocess.run(command, input=json.dumps(turn), capture_output=True, text=True)
    if done.returncode:
        lines = done.stderr.strip().splitlines() or [f"it ended with status {done.returncode}"]
        return None, lines[-1]
    return json.loads(done.stdout.splitlines()[-1]), ""


def program(*arguments):
    """Runs the millrace program. Returns what it prints."""
    import millrace

    command = [millrace.binary.find(), *arguments, "--progress", "none"]
    return subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout


def header(command, packages, load, **more):
    """Where, when and by what command the results were made, as capacity/results keeps it. ``load`` are the averages
    before the run. The commit has a + if tracked files outside capacity/results differ from it.
    """
    versions = [f"Python {platform.python_version()}"]
    for name in packages:
        try:
            versions.append(f"{name} {importlib.metadata.version(name)}")
        except importlib.metadata.PackageNotFoundError:
            pass  # its side is skipped, with the reason
    changed = git("status", "--porcelain", "--untracked-files=no", "--", ":/", ":(exclude,top)capacity/results")
    return {
        "time": time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime()),
        "cpu": processor(),
        "cores": os.cpu_count(),
        "system": f"{platform.system().lower()}/{platform.machine()}",
        "commit": git("rev-parse", "--short=12", "HEAD") + ("+" if changed else ""),
        "command": command,
        "versions": versions,
        **more,
        "load_before": " ".join(f"{x:.2f}" for x in load),
    }


def git(*arguments):
    """What git says of this tree."""
    return subprocess.run(["git", *arguments], capture_output=True, text=True).stdout.strip()


def processor():
    """The processor's name, family and model: virtual machines often hide which AMD EPYC they have."""
    with open("/proc/cpuinfo") as f:
        said = dict(line.split("\t", 1) for line in f.read().split("\n\n")[0].splitlines() if "\t" in line)
    of = {name.strip(): value.strip(" :\t") for name, value in said.items()}
    return f"{of['model name']}, family {of['cpu family']}, model {of['model']}"
