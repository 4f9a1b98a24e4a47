"""Compares Millrace with pyarrow and NumPy on a file of yours::

    python -m millrace.compare day_0.parquet
    python -m millrace.compare day_0.parquet --pipeline pipeline.yaml --cores 2 --output json

Both make the same mini-batches: the label, dense features and ids of a pipeline; without ``--pipeline`` of one that
``millrace pipeline init`` drafts. Both have the same cores, and take turns. The time of a turn is that of the whole
call, from opening the file to the last mini-batch, starting Millrace's private process included. Before a cold turn the
kernel is asked to forget the file; before the warm turns both have read it once. The results are compared bit for bit.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import math
import os
import platform
import subprocess
import sys
import time
import warnings
from dataclasses import asdict, dataclass
from typing import Any, Iterator, Optional, Sequence

import numpy as np
from numpy.typing import NDArray

from . import binary, numpy_peer
from .errors import FilesError, MillraceError, NoMiniBatchWarning
from .numpy_peer import Tensors
from ._open import open as open_files
from .pipeline import Checked, Pipeline

__all__ = ["Comparison", "Difference", "Speed", "compare", "main", "table"]

OURS, THEIRS = "Millrace", "pyarrow + NumPy"


@dataclass(frozen=True)
class Difference:
    """How one tensor of one side differs from the same tensor of the other side.

    Attributes:
        tensor: label, dense, values or lengths.
        compared: how many elements were compared.
        different: how many of these elements have different bits.
        greatest_ulp: the greatest distance of two elements of a float32 or bfloat16 tensor, in units of the last place;
            0 for tensors of integers; None if one of two different elements is NaN, or if shapes or types differ.
    """

    tensor: str
    compared: int
    different: int
    greatest_ulp: Optional[int]


@dataclass(frozen=True)
class Speed:
    """The speed of the fastest of a side's turns.

    Attributes:
        who: the side.
        cache: ``cold`` or ``warm``.
        rows_per_second: rows a second over the whole call.
        seconds: the time of the whole call.
        first_seconds: the time from the start of the call to the first mini-batch.
    """

    who: str
    cache: str
    rows_per_second: float
    seconds: float
    first_seconds: float


@dataclass(frozen=True)
class Comparison:
    """What was compared, how fast each side was, and how the results differ.

    Attributes:
        file: the file's name without its folder.
        rows: rows of the file.
        dense: how many dense features there are.
        keys: how many keys there are.
        batch: rows of a mini-batch.
        pipeline: the pipeline's name, or where the pipeline comes from.
        cores: cores of each side.
        cores_of_machine: cores of this machine.
        turns: warm turns of each side.
        load: the load average over one minute, at the end.
        cold: whether there are cold turns.
        versions: the versions of Python, pyarrow and NumPy.
        speeds: the speed of each side, cold (if there are cold turns) and warm.
        differences: one for each tensor that a side has.
    """

    file: str
    rows: int
    dense: int
    keys: int
    batch: int
    pipeline: str
    cores: int
    cores_of_machine: int
    turns: int
    load: float
    cold: bool
    versions: str
    speeds: tuple[Speed, ...]
    differences: tuple[Difference, ...]


def compare(
    file: str,
    pipeline: Optional[Pipeline] = None,
    *,
    batch: Optional[int] = None,
    cores: int = 1,
    turns: int = 3,
) -> Comparison:
    """Compares both sides on a Parquet file.

    Args:
        file: the file's path.
        pipeline: the pipeline of both sides; None drafts one.
        batch: rows of a mini-batch; None takes the pipeline's.
        cores: cores of each side, at least 1 and at most those of the machine. This thread, and the processes and
            threads that it starts, are bound to this number of cores until the function returns.
        turns: warm turns of each side, at least 1, taken alternately; the fastest counts.

    Raises:
        FilesError: there is no such file, or it has no rows.
        PipelineError: the pipeline has errors, or the file lacks its columns.
        UnsupportedPipelineError: the comparison has no NumPy code for a part of the pipeline.
        BinaryError: there is no ``millrace`` binary.
        MillraceError: the two sides have different numbers of rows, or no pipeline can be drafted.
    """
    if not os.path.isfile(file):
        raise FilesError(f"{file}: no such file: give the path of one Parquet file", file)
    named = "drafted by millrace pipeline init" if pipeline is None else pipeline.name or "given"
    chosen = pipeline or _draft(file)
    checked = chosen.check(file)
    size = batch or chosen.batch
    machine = os.cpu_count() or 1
    cores = max(1, min(cores, machine))

    def ours() -> Iterator[Tensors]:
        return _ours(file, chosen, size, cores, checked)

    def theirs() -> Iterator[Tensors]:
        return numpy_peer.minibatches(file, checked.canonical, size, cores)

    with _on_cores(cores):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", NoMiniBatchWarning)  # the FilesError below replaces it
            rows, differences = _differences(ours(), theirs())
        if not rows:
            raise FilesError(f"{file}: it has no rows, so there is nothing to compare", file)
        speeds = []
        cold = _forget(file)
        if cold:
            for who, side in ((OURS, ours), (THEIRS, theirs)):
                _forget(file)
                speeds.append(_turn(who, "cold", side()))
        warm: dict[str, list[Speed]] = {OURS: [], THEIRS: []}
        for side in (ours, theirs):
            for _ in side():
                pass
        for _ in range(max(turns, 1)):
            for who, side in ((OURS, ours), (THEIRS, theirs)):
                warm[who].append(_turn(who, "warm", side()))
        speeds += [min(of, key=lambda s: s.seconds) for of in warm.values()]
    return Comparison(
        file=os.path.basename(file),
        rows=rows,
        dense=len(checked.dense),
        keys=len(checked.keys),
        batch=size,
        pipeline=named,
        cores=cores,
        cores_of_machine=machine,
        turns=max(turns, 1),
        load=os.getloadavg()[0],
        cold=cold,
        versions=f"Python {platform.python_version()}, {numpy_peer.version()}",
        speeds=tuple(speeds),
        differences=differences,
    )


def _draft(file: str) -> Pipeline:
    done = subprocess.run([binary.find(), "pipeline", "init", file], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MillraceError(done.stderr.strip().removeprefix("millrace: "))
    return Pipeline.from_yaml(done.stdout)


def _ours(file: str, pipeline: Pipeline, batch: int, cores: int, checked: Checked) -> Iterator[Tensors]:
    """Millrace's mini-batches, in the order of the file's rows."""
    job = open_files(
        file,
        pipeline,
        batch=batch,
        shuffle="none",
        order="deterministic",
        input_format="parquet",
        threads=cores,
        tensors="views",
    )
    with job:
        for mb in job:
            dense = values = lengths = label = None
            if mb.label is not None:
                label = np.asarray(mb.label)
            if mb.dense is not None:
                dense = np.asarray(mb.dense).reshape(mb.rows, -1)
            if mb.values is not None and checked.keys:
                values = np.asarray(mb.values)
            if mb.lengths is not None and any(key.list for key in checked.keys):
                lengths = np.asarray(mb.lengths).reshape(-1, mb.rows)
            yield Tensors(mb.rows, label, dense, values, lengths)


@contextlib.contextmanager
def _on_cores(cores: int) -> Iterator[None]:
    """Binds this thread and what it starts to a number of cores inside a ``with``, where the system supports that."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, sorted(allowed)[:cores])
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


def _forget(file: str) -> bool:
    """Asks the kernel to drop the file from its cache. Reports whether the system has such a call."""
    if not hasattr(os, "posix_fadvise"):
        return False
    with open(file, "rb") as f:
        os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    return True


def _turn(who: str, cache: str, side: Iterator[Tensors]) -> Speed:
    begun = time.perf_counter()
    first, rows = math.nan, 0
    for mb in side:
        if not rows:
            first = time.perf_counter() - begun
        rows += mb.rows
    seconds = time.perf_counter() - begun
    return Speed(who, cache, rows / seconds, seconds, first)


def _differences(ours: Iterator[Tensors], theirs: Iterator[Tensors]) -> tuple[int, tuple[Difference, ...]]:
    """Returns the number of rows, and how each tensor of one side differs from the same tensor of the other side."""
    rows = 0
    found: dict[str, list[Difference]] = {}
    for a in ours:
        b = next(theirs, None)
        if b is None or a.rows != b.rows:
            raise MillraceError(f"behind row {rows} one side has {a.rows} rows and the other {b.rows if b else 0}")
        rows += a.rows
        for tensor in ("label", "dense", "values", "lengths"):
            x, y = getattr(a, tensor), getattr(b, tensor)
            if x is not None or y is not None:
                found.setdefault(tensor, []).append(difference(tensor, x, y))
    if next(theirs, None) is not None:
        raise MillraceError(f"behind row {rows} only one side has rows")
    return rows, tuple(_joined(tensor, of) for tensor, of in found.items())


def difference(tensor: str, x: Optional[NDArray[Any]], y: Optional[NDArray[Any]]) -> Difference:
    """Returns how two arrays differ. Arrays of different shapes or types differ in every element. Arrays of uint16 hold
    the bits of bfloat16.
    """
    if x is None or y is None or x.shape != y.shape or x.dtype != y.dtype:
        size = max(0 if x is None else x.size, 0 if y is None else y.size)
        return Difference(tensor, size, size, None)
    if x.dtype not in (np.float32, np.uint16):
        return Difference(tensor, x.size, int((x != y).sum()), 0)
    # uint16 are the bits of bfloat16, the upper half of a float32.
    signed, magnitude, infinity = (np.int32, 0x7FFFFFFF, 0x7F800000) if x.dtype == np.float32 else (np.int16, 0x7FFF, 0x7F80)
    p, q = (np.ascontiguousarray(z).view(signed).astype(np.int64) for z in (x, y))
    other = p != q
    if not other.any():
        return Difference(tensor, x.size, 0, 0)
    if any(((z[other] & magnitude) > infinity).any() for z in (p, q)):  # a NaN
        return Difference(tensor, x.size, int(other.sum()), None)
    # As integers in the order of the floats: negative ones count down.
    p, q = (np.where(z < 0, -(z & magnitude), z) for z in (p[other], q[other]))
    return Difference(tensor, x.size, int(other.sum()), int(np.abs(p - q).max()))


def _joined(tensor: str, of: Sequence[Difference]) -> Difference:
    ulps = [d.greatest_ulp for d in of]
    greatest = None if None in ulps else max(u for u in ulps if u is not None)
    return Difference(tensor, sum(d.compared for d in of), sum(d.different for d in of), greatest)


def table(c: Comparison) -> str:
    """Returns the comparison as lines of text for people."""
    lines = [
        f"{c.file}: {c.rows:,} rows, {c.dense} dense features, {c.keys} keys, mini-batches of {c.batch:,}; pipeline: "
        f"{c.pipeline}",
        f"{c.cores} of {c.cores_of_machine} cores for each side; {c.versions}; the best of {c.turns} warm turns, taken "
        f"alternately; load average {c.load:.1f}",
        "",
        f"{'':28}{'rows/s':>12}{'seconds':>10}{'to the first mini-batch':>26}",
    ]
    for s in c.speeds:
        who = f"{s.who}, {s.cache}"
        lines.append(f"{who:28}{s.rows_per_second:>12,.0f}{s.seconds:>10.3f}{s.first_seconds:>26.3f}")
    lines.append("")
    ours = next((s for s in c.speeds if s.who == OURS and s.cache == "warm"), None)
    if ours is not None and ours.first_seconds > ours.seconds / 2:
        lines += [
            "Most of Millrace's time passed before its first mini-batch, in the start of its private process, which",
            "comes once a run: the file is too small to say how fast its rows are made.",
        ]
    if not c.cold:
        lines.append("This system cannot be asked to forget a file: there is no cold turn.")
    equal = [d.tensor for d in c.differences if not d.different]
    if equal:
        lines.append(f"The same bits: {', '.join(equal)}.")
    for d in c.differences:
        if d.different:
            by = "" if d.greatest_ulp is None else f", by {d.greatest_ulp} unit(s) of the last place at most"
            why = " (np.log is not correctly rounded)" if d.tensor == "dense" and d.greatest_ulp else ""
            lines.append(f"Different: {d.tensor}: {d.different:,} of {d.compared:,}{by}{why}.")
    return "\n".join(lines) + "\n"


def main(arguments: Optional[Sequence[str]] = None) -> int:
    """Runs the command line. Returns the exit status, 0 or 1."""
    p = argparse.ArgumentParser(prog="python -m millrace.compare", description=(__doc__ or "").split("\n\n")[-1])
    p.add_argument("file", help="a Parquet file")
    p.add_argument("--pipeline", help="a YAML file, or the name of a built-in pipeline (default: a draft)")
    p.add_argument("--batch", type=int, help="rows of a mini-batch (default: the pipeline's)")
    p.add_argument("--cores", type=int, default=1, help="cores for each side (default 1)")
    p.add_argument("--turns", type=int, default=3, help="warm turns of each side (default 3)")
    p.add_argument("--output", choices=("table", "json"), default="table")
    a = p.parse_args(arguments)
    try:
        pipeline = Pipeline.from_yaml(a.pipeline) if a.pipeline else None
        result = compare(a.file, pipeline, batch=a.batch, cores=a.cores, turns=a.turns)
    except (MillraceError, OSError) as e:
        print(f"millrace.compare: {e}", file=sys.stderr)
        return 1
    if a.output == "json":
        print(json.dumps(asdict(result), indent=2))
    else:
        print(table(result), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
