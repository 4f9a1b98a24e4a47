"""How much memory the private process takes over 10 GB of files, and over as many as are asked for.

    MILLRACE_BIN=bin/millrace python -m tests.memory [--gigabytes 10] [--threads 1] [--pause 0]

One file is written and linked under many names, so that little disk is needed. ``make long LONG=python-memory`` runs
it; it fails where the process has more than 400 MB (its proportional set size, PSS).
"""

from __future__ import annotations

import argparse
import math
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import millrace

_MOST = 400_000_000  # bytes


def proportional(pid: int) -> int:
    """Returns the proportional set size of a process in bytes: shared pages count by their share."""
    for line in pathlib.Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Pss:"):
            return int(line.split()[1]) * 1024
    raise OSError(f"no PSS of process {pid}")


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--gigabytes", type=float, default=10.0)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("--pause", type=float, default=0.0, help="seconds without a step, once: the queue fills")
    chosen = arguments.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        generate = [os.environ["MILLRACE_BIN"], "dataset", "generate", "--model", "rm1", "--rows", "500000"]
        subprocess.run([*generate, "--codec", "snappy", "--out", folder, "--progress", "none"], check=True)
        (first,) = pathlib.Path(folder).glob("*.parquet")
        files = math.ceil(chosen.gigabytes * 1e9 / first.stat().st_size)
        for i in range(1, files):
            os.link(first, first.with_name(f"link-{i:06d}.parquet"))
        begun, rows, most, batches = time.monotonic(), 0, 0, 0
        with millrace.open(folder, "rm1", batch=8192, threads=chosen.threads, tensors="views") as job:
            pid = job._session.pid
            for batch in job:
                rows, batches = rows + batch.rows, batches + 1
                if batches == 100:
                    time.sleep(chosen.pause)
                if batches % 50 == 0:
                    most = max(most, proportional(pid))
        took = time.monotonic() - begun
    speed = f"{rows / took:.0f} rows/s"
    print(f"{files} files, {rows} rows, {chosen.threads} threads: PSS at most {most / 1e6:.0f} MB, {speed}")
    if rows != files * 500_000:
        sys.exit(f"{rows} rows of {files * 500_000}")
    if most > _MOST:
        sys.exit(f"more than {_MOST / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
