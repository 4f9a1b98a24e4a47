#!/usr/bin/env python3
"""How well mini-batches are staged to a GPU while a DLRM trains on it.

    python staging.py                        # makes RM1 and trains on it
    python staging.py --file day_0.parquet --pipeline pipeline.yaml --output json

The same DLRM (examples/dlrm.py) trains three times over the same mini-batches:

    resident    one mini-batch that lies on the GPU already, again and again: what the GPU could do
    staged      millrace.open(device="cuda"): pinned ring, asynchronous copy on a stream of its own, events
    plain       each mini-batch copied by batch.to(device) in the loop, as a loop without staging does

For each it prints rows/s and the share of the time in which the GPU computed nothing, by CUDA events around every step.
The overlap is the share of the plain way's additional time that staging saves. The first steps are left out. Without a
GPU it says so and measures nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from typing import Any, Callable, Iterator, Optional, Sequence

import millrace
import torch
from millrace import binary
from millrace.tensors import moved
from torch import nn

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples"))
from dlrm import DLRM  # noqa: E402 (it lies in another folder)

WARM = 5  # steps that are left out


@dataclass(frozen=True)
class Way:
    """One training.

    Attributes:
        rows_per_second: of the steps that count.
        seconds: of these steps.
        waiting: share of the seconds in which the GPU computed no step.
    """

    name: str
    steps: int
    rows_per_second: float
    seconds: float
    waiting: float


class GPUEvents:
    """The time that the GPU spends in steps, by events on the trainer's stream."""

    def __init__(self) -> None:
        self._pairs: list[tuple[Any, Any]] = []

    def begin(self) -> None:
        pair = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        pair[0].record()
        self._pairs.append(pair)

    def end(self) -> None:
        self._pairs[-1][1].record()

    def finish(self) -> None:
        """Waits until everything that was begun is through."""
        torch.cuda.synchronize()

    def seconds(self) -> float:
        """Of all steps; behind :meth:`finish`."""
        return sum(a.elapsed_time(b) for a, b in self._pairs) / 1e3


def measure(name: str, batches: Iterator[Any], step: Callable[[Any], Any], events: Callable[[], Any]) -> Way:
    """Trains on mini-batches. ``events`` makes what :class:`GPUEvents` is, once for the steps that count."""
    meter = events()
    rows = steps = 0
    begun = time.perf_counter()
    for i, batch in enumerate(batches):
        if i == WARM:
            meter.finish()
            meter, rows, steps, begun = events(), 0, 0, time.perf_counter()
        meter.begin()
        step(batch)
        meter.end()
        rows += batch.rows
        steps += 1
    meter.finish()
    seconds = time.perf_counter() - begun
    return Way(name, steps, rows / seconds, seconds, max(0.0, 1 - meter.seconds() / seconds))


def overlap(resident: Way, staged: Way, plain: Way) -> Optional[float]:
    """The share of the plain way's additional time a row that staging saves; None if the plain way takes no longer."""
    own, with_staging, without = (1 / way.rows_per_second for way in (resident, staged, plain))
    if without <= own:
        return None
    return max(0.0, min(1.0, (without - with_staging) / (without - own)))


def ways(file: str, pipeline: str, batch: int, device: torch.device, events: Callable[[], Any]) -> tuple[Way, ...]:
    """The three trainings."""

    def opened(**options: Any) -> Any:
        return millrace.open(file, pipeline, batch=batch, order="deterministic", torchrec=False, **options)

    with opened() as data:
        model = DLRM(data.schema(), rows=100_000, dim=64).to(device)
        on_device = [moved(b, device) for b in data]
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    loss_of = nn.BCEWithLogitsLoss()

    def step(b: Any) -> None:
        optimizer.zero_grad(set_to_none=True)
        loss_of(model(b.dense, b.sparse), b.label).backward()
        optimizer.step()

    resident = measure("resident", iter([on_device[0]] * len(on_device)), step, events)
    with opened(device=device) as data:
        staged = measure("staged", iter(data), step, events)
    with opened() as data:
        plain = measure("plain", (moved(b, device) for b in data), step, events)
    return resident, staged, plain


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """The command line; returns the exit status."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--file", help="a Parquet file (default: RM1 is made)")
    p.add_argument("--pipeline", default="rm1")
    p.add_argument("--rows", type=int, default=2_000_000, help="of RM1")
    p.add_argument("--batch", type=int, default=8192)
    p.add_argument("--output", choices=("table", "json"), default="table")
    a = p.parse_args(arguments)
    if not torch.cuda.is_available():
        print("staging.py: this machine has no GPU that torch can use: nothing is measured")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        file = a.file
        if file is None:
            command = [binary.find(), "dataset", "generate", "--rows", str(a.rows), "--out", folder]
            command += ["--progress", "none"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            file = os.path.join(folder, "part-00000.parquet")
        found = ways(file, a.pipeline, a.batch, torch.device("cuda"), GPUEvents)
    saved = overlap(*found)
    if a.output == "json":
        print(json.dumps({"gpu": torch.cuda.get_device_name(), "overlap": saved, "ways": [asdict(w) for w in found]}))
        return 0
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}; load average {os.getloadavg()[0]:.1f}")
    for w in found:
        print(f"{w.name:10}{w.rows_per_second:>14,.0f} rows/s{100 * w.waiting:>7.1f} % of the time the GPU waits")
    print("overlap: not known" if saved is None else f"overlap: {100 * saved:.0f} % of what copying costs is hidden")
    return 0


if __name__ == "__main__":
    sys.exit(main())
