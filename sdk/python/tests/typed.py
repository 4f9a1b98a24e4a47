"""Calls of the package whose types mypy checks (.ci/python). Nothing runs this file."""

from __future__ import annotations

from typing import Iterator, Optional

import torch

import millrace
from millrace.filters import column, sampling
from millrace.operators import fill_null, sigrid_hash
from millrace.torch import Batch, MiniBatches


def loop(files: list[str]) -> Iterator[Optional[torch.Tensor]]:
    built = millrace.Pipeline("p").label("y", null=0).sparse("id", ops=[fill_null(0), sigrid_hash(max=10)])
    built.filter(column("id", one_of=[1, 2]) & ~sampling("row", rate=0.25)).statistics("s", {"id": {"mean": 1.5}})
    data: MiniBatches = millrace.open(files, pipeline=built, batch=64, order="deterministic", device="cpu")
    for batch in data:
        typed: Batch = batch
        yield typed.dense
    dense: tuple[str, ...] = data.schema().dense
    print(dense, data.state_dict()["token"])


def views() -> int:
    print(millrace.open("day_*.parquet", "rm1", split=("validation", 0.9)).epochs)
    with millrace.open("day_*.parquet", "rm1", tensors="views", epochs=2, split=("train", 0.9, 7, "id")) as job:
        also: millrace.Job = job
        return sum(mb.rows for mb in also)


def passes() -> None:
    summary = millrace.summarize("day_*.parquet", out="days.summary", control=["http://localhost:7460"], whole=True)
    print(summary["rows"], millrace.build_vocabulary(["a", "b"], "p.yaml", out="v.vocab", name="v")["keys"])


def wrong() -> None:
    # Each line is an error; mypy warns of an ignore that is not needed.
    millrace.open("x", "rm1", order="any")  # type: ignore[call-overload]
    millrace.open("x", "rm1", bach=64)  # type: ignore[call-overload]
    millrace.open("x", "rm1", batch="64")  # type: ignore[call-overload]
    millrace.open("x", "rm1", split="train:0.9")  # type: ignore[call-overload]
    millrace.open("x")  # type: ignore[call-overload]
    millrace.summarize("x", out=3)  # type: ignore[arg-type]
    millrace.build_vocabulary("x", "rm1")  # type: ignore[call-arg]
    millrace.Pipeline().vocabulary("v", order="last")  # type: ignore[arg-type]
    millrace.Pipeline().filter({"column": "a"})  # type: ignore[arg-type]
    column("a", equal=1)  # type: ignore[call-arg]
    sigrid_hash(maximum=10)  # type: ignore[call-arg]
