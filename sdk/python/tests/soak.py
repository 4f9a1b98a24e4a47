"""Everything goes wrong at random, for as long as asked: not a unit test.

    MILLRACE_BIN=bin/millrace PYTHONPATH=sdk/python/src:sdk/python python -m tests.soak --turns 3 --seed 1

A turn runs a job of three epochs while nodes are killed (-9) and started again, the leader of three members is killed,
trainers are lost and resumed from their last checkpoint, and trainers go back to it. What is left of the mini-batches,
bytes included, must be what an undisturbed job gives.
"""

from __future__ import annotations

import argparse
import logging
import random
import time
from typing import Any

from millrace import Control, Job

from .test_endtoend import PIPELINE, digest, service


class Turn:
    """One job, and the faults during it."""

    def __init__(self, seed: int) -> None:
        self.r = random.Random(seed)
        self.members = 3 if seed % 3 == 0 else 1
        self.unix = bool(seed % 2)
        self.events: dict[str, int] = {}
        self.log: list[str] = []

    def run(self) -> str:
        """Runs the job. Returns a line with the counts of events; raises AssertionError if the mini-batches differ."""
        begun = time.monotonic()
        with service.Service(3, rows=60_000, partitions=6, copies=2, unix=self.unix, members=self.members) as s:
            self.service = s
            with Job(s.url, self.submit("undisturbed", 1)) as job:
                want = [digest(b) for b in job]
            got = self.disturbed(self.submit("disturbed", 2), want)
            at = self.difference(got, want)
            assert got == want, (
                f"{len(got)} mini-batches, want {len(want)}; from {at} on {[x[:2] for x in got[at - 3 : at + 6]]}:\n"
                + "\n".join(self.log)
            )
        return f"{len(want)} mini-batches in {time.monotonic() - begun:.0f} s: " + ", ".join(
            f"{n} {what}" for what, n in sorted(self.events.items())
        )

    @staticmethod
    def difference(got: list[Any], want: list[Any]) -> int:
        return next((i for i, (a, b) in enumerate(zip(got, want)) if a != b), min(len(got), len(want)))

    def submit(self, name: str, seed: int) -> str:
        # Different seeds give different digests. The order is the data's, since nothing is shuffled.
        plan = {"shuffle": "none", "splitBatches": "4", "seed": str(seed)}
        with Control(self.service.url) as c:
            spec = {"name": name, "pipeline": PIPELINE, "order": "deterministic", "epochs": "3", "plan": plan}
            return str(c.submit(spec)["id"])

    def attach(self, id: str, state: Any = None) -> Job:
        return Job(
            self.service.url,
            id,
            token=state,
            check=True,
            queue_bytes=self.r.choice([1 << 18, 1 << 20, 1 << 24]),
            credits=self.r.choice([1, 4, 8]),
        )

    def disturbed(self, id: str, want: list[Any]) -> list[Any]:
        r, s = self.r, self.service
        got: list[Any] = []
        saved, state = 0, None
        dead, leader_lives = None, self.members > 1
        job = self.attach(id)
        it = iter(job)
        while True:
            b = next(it, None)
            if b is None:
                job.close()
                return got
            got.append(digest(b))
            x, before = r.random(), dict(self.events)
            if x < 0.10:
                what, state, saved = "checkpoints", job.state_dict(), len(got)
            elif x < 0.14 and dead is None:
                what, dead = "killed nodes", r.randrange(3)
                s.kill_node(dead)
            elif x < 0.22 and dead is not None:
                what = "started nodes"
                s.start_node(dead)
                dead = None
            elif x < 0.26 and leader_lives:
                what, leader_lives = "killed leaders", False
                s.kill_leader()
            elif x < 0.31 and state and state["sealed"]:
                what = "lost trainers"
                if r.random() < 0.5:  # otherwise it goes on for a while, and is fenced
                    it.close()
                    job.close()
                job = self.attach(id, state)
                it, got = iter(job), got[:saved]
            elif x < 0.33 and state and state["sealed"]:
                what = "trainers that went back"
                it.close()
                job.load_state_dict(state)
                it, got = iter(job), got[:saved]
            else:
                continue
            self.events[what] = before.get(what, 0) + 1
            self.log.append(f"{what} after {len(got) and got[-1][:2]}, {len(got)} mini-batches; saved: {saved}")


def main() -> None:
    """The command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--turns", type=int, default=1)
    a = p.parse_args()
    logging.getLogger("millrace").setLevel(logging.ERROR)
    for seed in range(a.seed, a.seed + a.turns):
        print(f"seed {seed}: {Turn(seed).run()}", flush=True)


if __name__ == "__main__":
    main()
