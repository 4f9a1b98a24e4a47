#!/usr/bin/env python3
"""Trains a small DLRM on RM1, whose rows are preprocessed by the drives that hold them.

    python dlrm.py                                  # makes RM1, two software drives, nodes, a control plane; trains
    python dlrm.py --control URL --job NAME         # trains on a job that was submitted
    python dlrm.py --experiment --out docs          # the same training five times, disturbed in five ways; a picture

Training measures T first, on dummy mini-batches and without harm to the model, and reports how long the trainer stood
still. On a GPU where there is one, else on the CPU with one thread.

The experiment trains on 2 drives, on 1, on 5, on 2 of which one is killed (-9) on the way, and on 2 with a trainer that
is killed (-9) and started again from its last checkpoint. Order, seeds and algorithms are deterministic, and every
mini-batch comes exactly once and byte for byte the same, so the five loss curves are equal to the last bit; it fails if
they are not.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, dataclass, field
from typing import Any, Callable, Optional, Sequence

os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # deterministic algorithms want it, before CUDA starts

import torch
from millrace import Control, Schema
from millrace.measure import fingerprint
from millrace.torch import Batch, MiniBatches
from torch import nn

PIPELINE = """name: rm1
batch: {batch}
ids: int32
label: {{column: label}}
dense:
  - columns: [int_0..int_12]
    ops: [fill_null: 0, clamp: {{min: 0}}, log: {{add: 1}}]
sparse:
  - columns: [cat_0..cat_25]
    ops: [fill_null: 0, sigrid_hash: {{salt: 0, max: 500000}}]
generated:
  - columns: [int_0..int_12]
    as: "bucket_{{n}}"
    ops: [fill_null: 0, bucketize: {{borders: {{log_spaced: {{from: 1, to: 1.0e6, count: 1024}}}}}}, sigrid_hash:
        {{salt: 0, max: 500000}}]
"""


AS_FAST_AS_ALL_DRIVES = 1e9  # rows/s: a T that no drives of one machine reach, so that all of them run


class DLRM(nn.Module):
    """Naumov et al., 2019, small: dense features and embeddings meet in pairwise dot products.

    Embedding tables hold ``rows`` rows each (ids are taken modulo that), all in one ``EmbeddingBag``.
    """

    def __init__(self, schema: Schema, rows: int = 20_000, dim: int = 8) -> None:
        super().__init__()
        self.features, self.rows, self.dim = len(schema.keys), rows, dim
        self.bottom = nn.Sequential(nn.Linear(len(schema.dense), 64), nn.ReLU(), nn.Linear(64, dim), nn.ReLU())
        self.tables = nn.EmbeddingBag(self.features * rows, dim, mode="sum", sparse=True)
        nn.init.normal_(self.tables.weight, std=0.1)
        n = self.features + 1
        self.register_buffer("pairs", torch.tril_indices(n, n, offset=-1), persistent=False)
        self.top = nn.Sequential(nn.Linear(dim + n * (n - 1) // 2, 64), nn.ReLU(), nn.Linear(64, 1))

    def forward(self, dense: torch.Tensor, sparse: Any) -> torch.Tensor:
        """dense float32 [B, D] and the sparse features -> logits float32 [B]"""
        b = dense.shape[0]
        lengths = (sparse.lengths() if callable(sparse.lengths) else sparse.lengths).long()
        values = (sparse.values() if callable(sparse.values) else sparse.values).long() % self.rows
        ends = torch.cumsum(lengths, 0)
        feature = torch.arange(self.features, device=dense.device).repeat_interleave(
            lengths.view(self.features, b).sum(1)
        )
        bags = self.tables(values + feature * self.rows, ends - lengths).view(self.features, b, self.dim)
        x = self.bottom(dense)
        all_ = torch.cat([x.unsqueeze(1), bags.transpose(0, 1)], 1)  # [B, 1 + F, dim]
        dots = torch.bmm(all_, all_.transpose(1, 2))[:, self.pairs[0], self.pairs[1]]
        return self.top(torch.cat([x, dots], 1)).squeeze(1)


@dataclass
class Result:
    """What a training left behind. ``losses`` are exact: Python prints floats so that they read back the same."""

    losses: list[float] = field(default_factory=list)
    rows: int = 0
    t_rows_per_second: float = 0.0
    untouched: bool = False  # model, optimiser, random states and position were the same after T was measured
    seconds: float = 0.0  # of the loop
    stall_seconds: float = 0.0  # the trainer stood still
    first_seconds: float = 0.0  # of these, before the first mini-batch
    failures: int = 0  # fetches that failed and were made up for; where a node is killed, since then
    returned: int = 0  # leases that came back and were granted again; where a node is killed, since then
    device: str = "cpu"


def deterministic(seed: int) -> None:
    """The same seed gives the same weights, and the same input the same output."""
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True, warn_only=True)
    torch.set_num_threads(1)  # sums in one order; and the drives of this machine want a core


def train(
    control: str,
    job: str,
    *,
    seed: int = 1,
    lr: float = 0.1,
    device: Optional[str] = None,
    checkpoint: str = "",
    every: int = 10,
    on_step: Optional[Callable[[int, MiniBatches], None]] = None,
    **options: Any,
) -> Result:
    """Trains to the job's end.

    Args:
        checkpoint: a file that is written every ``every`` steps; where it exists, training goes on from it.
        on_step: called with the number of steps done and the mini-batches, after each.
        options: more arguments of MiniBatches.
    """
    deterministic(seed)
    device = device or ("cuda" if torch.cuda.is_available() else "cpu")
    saved = torch.load(checkpoint, map_location="cpu") if checkpoint and os.path.exists(checkpoint) else None
    with MiniBatches(control, job, device=device, state=saved["data"] if saved else None, **options) as data:
        model = DLRM(data.schema()).to(device)
        optimizer = torch.optim.SGD(model.parameters(), lr=lr)
        loss_of = nn.BCEWithLogitsLoss()
        result = Result(device=device)
        if saved:
            model.load_state_dict(saved["model"])
            optimizer.load_state_dict(saved["optimizer"])
            torch.set_rng_state(saved["rng"])
            result.losses = saved["losses"]

        def step(batch: Batch) -> torch.Tensor:
            optimizer.zero_grad(set_to_none=True)
            loss: torch.Tensor = loss_of(model(batch.dense, batch.sparse), batch.label)
            loss.backward()
            optimizer.step()
            return loss.detach()

        def everything() -> str:
            return fingerprint(model, optimizer, torch.get_rng_state(), data.state_dict()["token"])

        before = everything()
        t = data.measure_throughput(step, model=model, optimizer=optimizer, seconds=0.5)
        result.t_rows_per_second, result.untouched = t.rows_per_second, everything() == before

        begun = time.monotonic()
        for _ in range(data.epoch, data.epochs):
            for batch in data:
                result.losses.append(float(step(batch)))
                result.rows += batch.rows
                done = len(result.losses)
                if checkpoint and done % every == 0:
                    state = {
                        "model": model.state_dict(),
                        "optimizer": optimizer.state_dict(),
                        "rng": torch.get_rng_state(),
                        "losses": result.losses,
                    }
                    torch.save({**state, "data": data.state_dict()}, checkpoint + ".part")
                    os.replace(checkpoint + ".part", checkpoint)
                if on_step is not None:
                    on_step(done, data)
        result.seconds = time.monotonic() - begun
        s = data.statistics
        result.returned = int(data.job.status().get("redelivered", 0))
        result.stall_seconds, result.first_seconds, result.failures = s.stall_seconds, s.first_seconds, s.failures
    return result


def submit(control: str, name: str, *, batch: int, epochs: int, seed: int = 1, t: float = 0.0) -> str:
    """Submits the training's job; returns its id. ``t`` is T where it is to be that, whatever the training measures."""
    with Control(control) as c:
        plan = {"shuffle": "splits", "seed": str(seed), "splitBatches": "4"}
        spec = {
            "name": name,
            "pipeline": PIPELINE.format(batch=batch),
            "order": "deterministic",
            "epochs": str(epochs),
            "plan": plan,
        }
        if t:
            spec["tRowsPerSecond"] = str(t)
        return str(c.submit(spec)["id"])


def report(name: str, r: Result) -> str:
    """One line for people."""
    later = r.stall_seconds - r.first_seconds
    return (
        f"{name}: {len(r.losses)} steps on {r.device}, loss {r.losses[0]:.4f} -> {r.losses[-1]:.4f}; T {r.t_rows_per_second:,.0f} rows/s "
        f"({'nothing was touched' if r.untouched else 'SOMETHING WAS TOUCHED'} by measuring); {r.rows / max(r.seconds, 1e-9):,.0f} rows/s trained; "
        f"stood still {r.first_seconds:.2f} s before the first mini-batch, {later:.2f} s of {r.seconds:.2f} s after it"
        + (
            f"; fetches that failed: {r.failures}, leases that came back: {r.returned}, all made up for"
            if r.failures
            else ""
        )
    )


def train_with_a_killed_node(
    control: str, job: str, *, drives: int, after: int, kill: Callable[[int], Any]
) -> Result:
    """Trains, and kills a node that holds a lease, with mini-batches still to be fetched from it.

    Args:
        drives: that all are to run; the job's T must be so high.
        after: steps before a node is killed.
        kill: kills the node of an index.

    Raises:
        RuntimeError: the training shows nothing: not all drives were wanted, no node held such a lease, no fetch failed
            after the kill, or no lease came back.
    """
    dead: list[tuple[str, int, int]] = []  # the node; how many leases had come back, and fetches had failed, before

    def on_step(done: int, data: MiniBatches) -> None:
        if done < after or dead:
            return
        status = data.job.status()
        wanted = int(status.get("drivesWanted", 0))
        if wanted < drives:
            raise RuntimeError(f"T is to be so high that {drives} drives run, and {wanted} are wanted")
        # One mini-batch at most waits in the queue, so that at most one more comes while the node is being killed.
        for node, _, missing in data.job.leases():
            if len(missing) >= 3:
                kill(int(node[1:]))
                dead.append((node, int(status.get("redelivered", 0)), data.statistics.failures))
                return

    result = train(control, job, on_step=on_step, queue_bytes=1)
    if not dead:
        raise RuntimeError("no node held a lease with three mini-batches to make: none was killed")
    node, returned, failures = dead[0]
    result.returned -= returned
    result.failures -= failures
    if result.failures < 1 or result.returned < 1:
        raise RuntimeError(
            f"node {node} was killed with mini-batches to make, and {result.failures} fetches failed, "
            f"{result.returned} leases came back"
        )
    return result


def experiment(
    *, rows: int, batch: int, epochs: int, every: int = 10, say: Callable[[str], None] = print
) -> dict[str, Result]:
    """The five trainings. Raises RuntimeError unless their curves are equal to the last bit."""
    from service import Service

    steps = epochs * rows // batch
    results: dict[str, Result] = {}

    def run(name: str, drives: int, body: Callable[[Any, str], Result], t: float = 0.0) -> None:
        # Every partition lies on two drives, so that one may go.
        with Service(drives, rows=rows, partitions=5, copies=min(2, drives)) as s:
            results[name] = body(s, submit(s.url, "dlrm", batch=batch, epochs=epochs, t=t))
        say(report(name, results[name]))

    def killed(s: Any, job: str) -> Result:
        return train_with_a_killed_node(s.url, job, drives=2, after=steps // 3, kill=s.kill_node)

    def resumed(s: Any, job: str) -> Result:
        with tempfile.TemporaryDirectory() as folder:
            out = os.path.join(folder, "result.json")
            command = [
                sys.executable,
                os.path.abspath(__file__),
                "--control",
                s.url,
                "--job",
                job,
                "--checkpoint",
                folder + "/model.pt",
            ]
            command += ["--every", str(every), "--result", out]
            died = subprocess.run([*command, "--kill-after", str(steps // 2 + 3)], stdout=subprocess.DEVNULL)
            if died.returncode != -signal.SIGKILL:
                raise RuntimeError(f"the trainer that was to die ended with {died.returncode}")
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            with open(out) as f:
                return Result(**json.load(f))

    run("2 drives", 2, lambda s, job: train(s.url, job))
    run("1 drive", 1, lambda s, job: train(s.url, job))
    run("5 drives", 5, lambda s, job: train(s.url, job))
    run("2 drives, one node killed", 2, killed, t=AS_FAST_AS_ALL_DRIVES)
    run("2 drives, trainer killed and resumed", 2, resumed)
    first = results["2 drives"]
    for name, r in results.items():
        if not r.untouched:
            raise RuntimeError(f"{name}: measuring T changed model, optimiser, random state or position")
        if r.losses != first.losses:
            at = next(
                (i for i, (a, b) in enumerate(zip(r.losses, first.losses)) if a != b),
                min(len(r.losses), len(first.losses)),
            )
            raise RuntimeError(
                f"{name}: the loss differs from step {at} on ({len(r.losses)} and {len(first.losses)} steps)"
            )
    return results


def picture(results: dict[str, Result], events: Sequence[tuple[float, str]] = ()) -> str:
    """The curves as SVG, without any library."""
    width, height, left, top, right, bottom = 860, 460, 64, 56, 24, 150
    first = next(iter(results.values())).losses
    n = len(first)
    low, high = min(map(min, (r.losses for r in results.values()))), max(map(max, (r.losses for r in results.values())))
    low, high = low - 0.03 * (high - low), high + 0.03 * (high - low)

    def x(i: float) -> float:
        return left + (width - left - right) * i / max(n - 1, 1)

    def y(v: float) -> float:
        return top + (height - top - bottom) * (high - v) / (high - low)

    # Equal curves lie on each other: the first is the widest, so that all are seen.
    styles = [
        ("#9ecae1", 9, ""),
        ("#fdae6b", 6.5, ""),
        ("#74c476", 4.5, ""),
        ("#de2d26", 2.2, "7 5"),
        ("#252525", 1, "2 3"),
    ]
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{width}" height="{height}" fill="white"/>',
        f'<text x="{left}" y="24" font-size="15">DLRM on RM1: loss at every step, {len(results)} trainings</text>',
        f'<text x="{left}" y="42" fill="#555">deterministic order; the curves are equal to the last bit, so they lie on each other</text>',
    ]
    for k in range(6):
        v = low + (high - low) * k / 5
        out.append(f'<line x1="{left}" x2="{width - right}" y1="{y(v):.1f}" y2="{y(v):.1f}" stroke="#eee"/>')
        out.append(f'<text x="{left - 8}" y="{y(v) + 4:.1f}" text-anchor="end" fill="#555">{v:.3f}</text>')
    for k in range(6):
        i = (n - 1) * k / 5
        out.append(f'<text x="{x(i):.1f}" y="{height - bottom + 18}" text-anchor="middle" fill="#555">{i:.0f}</text>')
    out.append(
        f'<text x="{(left + width - right) / 2}" y="{height - bottom + 36}" text-anchor="middle" fill="#555">step</text>'
    )
    for i, what in events:
        out.append(
            f'<line x1="{x(i):.1f}" x2="{x(i):.1f}" y1="{top}" y2="{height - bottom}" stroke="#888" stroke-dasharray="3 3"/>'
        )
        out.append(f'<text x="{x(i) + 5:.1f}" y="{top + 12}" fill="#555">{what}</text>')
    for (name, r), (colour, w, dash) in zip(results.items(), styles):
        points = " ".join(f"{x(i):.1f},{y(v):.1f}" for i, v in enumerate(r.losses))
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        out.append(
            f'<polyline fill="none" stroke="{colour}" stroke-width="{w}" stroke-linejoin="round"{dashed} points="{points}"/>'
        )
    for k, ((name, r), (colour, w, dash)) in enumerate(zip(results.items(), styles)):
        at = height - bottom + 58 + 18 * k
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        out.append(
            f'<line x1="{left}" x2="{left + 40}" y1="{at - 4}" y2="{at - 4}" stroke="{colour}" stroke-width="{w}"{dashed}/>'
        )
        again = f"; fetches failed: {r.failures}, leases returned: {r.returned}" if r.failures else ""
        still = f"stood still {r.first_seconds:.2f} s before the first mini-batch, {r.stall_seconds - r.first_seconds:.2f} s after it"
        out.append(f'<text x="{left + 50}" y="{at}">{name}: T {r.t_rows_per_second:,.0f} rows/s; {still}{again}</text>')
    return "\n".join([*out, "</svg>", ""])


def write(results: dict[str, Result], folder: str) -> None:
    """dlrm-loss.svg, dlrm-loss.csv (every loss of every training), dlrm-loss.json (the rest)"""
    n = len(next(iter(results.values())).losses)
    os.makedirs(folder, exist_ok=True)
    with open(os.path.join(folder, "dlrm-loss.svg"), "w") as f:
        f.write(picture(results, [(n // 3, "a node is killed"), (n // 2 + 3, "the trainer is killed")]))
    with open(os.path.join(folder, "dlrm-loss.json"), "w") as f:
        json.dump({name: {**asdict(r), "losses": len(r.losses)} for name, r in results.items()}, f, indent=1)
        f.write("\n")
    with open(os.path.join(folder, "dlrm-loss.csv"), "w") as f:
        f.write("step," + ",".join(f'"{name}"' for name in results) + "\n")
        for i, row in enumerate(zip(*(r.losses for r in results.values()))):
            f.write(f"{i}," + ",".join(map(repr, row)) + "\n")


def main() -> None:
    """The command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--control", help="URLs of a control plane; without it everything is started on this machine")
    p.add_argument("--job", default="dlrm", help="name or id of a job there")
    p.add_argument("--drives", type=int, default=2, help="software drives to start")
    p.add_argument("--rows", type=int, default=100_000, help="rows of RM1 to make")
    p.add_argument("--batch", type=int, default=1000)
    p.add_argument("--epochs", type=int, default=2)
    p.add_argument("--device", help="cuda or cpu")
    p.add_argument("--checkpoint", default="", help="file to save to, and to go on from")
    p.add_argument("--every", type=int, default=10, help="steps between checkpoints")
    p.add_argument("--result", help="file for the result, JSON")
    p.add_argument("--kill-after", type=int, default=0, help="kill -9 this trainer after so many steps")
    p.add_argument("--experiment", action="store_true", help="five trainings, a picture")
    p.add_argument("--out", default=".", help="folder for the picture")
    a = p.parse_args()
    if a.experiment:
        results = experiment(rows=a.rows, batch=a.batch, epochs=a.epochs, every=a.every)
        write(results, a.out)
        print(f"the {len(results)} loss curves are equal to the last bit; see {os.path.join(a.out, 'dlrm-loss.svg')}")
        return

    def on_step(n: int, _: MiniBatches) -> None:
        if n == a.kill_after:
            os.kill(os.getpid(), signal.SIGKILL)

    options = {"device": a.device, "checkpoint": a.checkpoint, "every": a.every, "on_step": on_step}
    if a.control:
        result = train(a.control, a.job, **options)
    else:
        from service import Service

        with Service(a.drives, rows=a.rows, partitions=5, copies=min(2, a.drives)) as s:
            result = train(s.url, submit(s.url, "dlrm", batch=a.batch, epochs=a.epochs), **options)
    print(report("trained", result))
    if a.result:
        with open(a.result, "w") as f:
            json.dump(asdict(result), f)


if __name__ == "__main__":
    main()
