"""Scripts that are ended in any way at any point and run again, against the real control plane: no row is lost without
an error.

``MILLRACE_RUNS=N`` draws N endings instead of a few; ``MILLRACE_RUNS_SEED=S`` begins with another seed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
import unittest
from typing import Any, Optional

from millrace import Control, Job, JobEndedError, PartlyConsumedError

from .test_endtoend import PIPELINE, service

try:
    import torch  # noqa: F401

    TORCH = True
except ImportError:
    TORCH = False

ROWS, PARTITIONS, BATCH = 20_000, 2, 1000
TOTAL = ROWS // BATCH  # mini-batches of an epoch

KINDS = ("job", "direct", "loader0", "loader1", "loader1p")
SOFT = (
    "break",
    "sys.exit",
    "exception",
    "with",
    "with exception",
    "close",
    "gc",
)  # Python ends the loop or the process, and closes the session
HARD = ("os._exit", "SIGTERM", "SIGKILL")  # nothing closes it: the last mini-batches may come again


def setUpModule() -> None:
    if not service.program():
        raise unittest.SkipTest("MILLRACE_BIN does not name the program")


class Log:
    """The log that a script wrote."""

    def __init__(self, text: str) -> None:
        self.given: list[tuple[int, int]] = []
        self.durable = 0  # how many of given are known to be durable
        self.saved: Optional[int] = None  # how many of given the saved state counts
        self.over = False
        self.refused = ""
        for line in text.splitlines():
            what, *rest = line.split()
            if what == "given":
                self.given.append((int(rest[0]), int(rest[1])))
            elif what == "durable":
                self.durable = len(self.given) - 1
            elif what == "saved":
                self.saved = len(self.given)
            elif what == "over":
                self.over = True
            elif what == "refused":
                self.refused = rest[0]


class Runs(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.service = service.Service(2, rows=ROWS, partitions=PARTITIONS, copies=2, unix=True, jobs=8)
        cls.addClassCleanup(cls.service.close)
        cls.names = 0

    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.logs = 0

    def spec(self, **more: Any) -> dict[str, Any]:
        """Returns the specification of a new job."""
        type(self).names += 1
        plan = {"splitBatches": "4", "seed": str(self.names), "shuffle": "none"}
        return {"name": f"run-{self.names}", "pipeline": PIPELINE, "order": "deterministic", "plan": plan, **more}

    def submit(self, spec: dict[str, Any]) -> str:
        with Control(self.service.url) as c:
            id = str(c.submit(spec)["id"])
        self.addCleanup(self.cancel, id)
        return id

    def cancel(self, id: str) -> None:
        with Control(self.service.url) as c:
            if not c.job(id)["state"].startswith(("done", "cancelled")):
                c.cancel(id)

    def start(self, job: str, env: Optional[dict[str, str]] = None, **told: Any) -> tuple[subprocess.Popen[bytes], str]:
        self.logs += 1
        log = os.path.join(self.folder, f"log-{self.logs}")
        argument = {
            "url": self.service.url,
            "job": job,
            "log": log,
            "state": os.path.join(self.folder, "state"),
            **told,
        }
        here = os.path.dirname(os.path.abspath(__file__))
        path = os.pathsep.join(p for p in sys.path if p)
        process = subprocess.Popen(
            [sys.executable, os.path.join(here, "script.py"), json.dumps(argument)],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "PYTHONPATH": path, "GLOO_SOCKET_IFNAME": "lo", **(env or {})},
        )
        return process, log

    def finish(self, started: tuple[subprocess.Popen[bytes], str]) -> Log:
        process, path = started
        said, _ = process.communicate(timeout=240)
        self.said = said.decode(errors="replace")
        try:
            with open(path) as f:
                return Log(f.read())
        except FileNotFoundError:
            raise AssertionError(f"the script came to nothing:\n{self.said}") from None

    def script(self, job: str, **told: Any) -> Log:
        return self.finish(self.start(job, **told))

    # --- loops that are left or ended, and run again ------------------------------------------------------------------

    def test_a_script_that_loops_to_the_end_and_runs_again(self) -> None:
        for kind in ("job", "direct", "loader1", "loader1p") if TORCH else ("job",):
            spec = self.spec(epochs="2")
            everything = [(e, n) for e in range(2) for n in range(TOTAL)]
            ids = set()
            for turn in range(2):
                with self.subTest(kind, turn=turn):
                    ids.add(self.submit(spec))
                    log = self.script(spec["name"], kind=kind, ending="end", epochs=2)
                    self.assertEqual(log.given, everything, self.said)
                    self.assertTrue(log.over)
            self.assertEqual(len(ids), 2, "each run has a job of its own, since the one before was done")

    @unittest.skipUnless(TORCH, "torch is not installed")
    def test_two_ranks_run_again(self) -> None:
        spec = self.spec(epochs="1", ranks=2)
        halves = [[(0, n) for n in range(r * TOTAL // 2, (r + 1) * TOTAL // 2)] for r in range(2)]

        def both(name: str, **told: Any) -> list[Log]:
            group = os.path.join(self.folder, f"group-{self.logs}")
            ranks = [
                self.start(spec["name"], kind="direct", epochs=1, rank=r, ranks=2, group=group, **told)
                for r in range(2)
            ]
            return [self.finish(s) for s in ranks]

        for turn in range(2):
            with self.subTest(turn=turn):
                self.assertEqual([log.given for log in both("whole", ending="end", submit=spec)], halves, self.said)
        # The ranks are interrupted and run again: both get an error about the other run; with resume each gets the rest
        # of its mini-batches.
        self.submit(spec)
        first = both("interrupted", ending="exception", at=4)
        self.assertEqual([len(log.given) for log in first], [4, 4], self.said)
        self.assertEqual([log.refused for log in both("again", ending="end")], ["PartlyConsumedError"] * 2)
        rest = both("resumed", ending="end", resume=True)
        self.assertEqual([a.given[:-1] + b.given for a, b in zip(first, rest)], halves, self.said)

    def test_the_error_says_what_to_do(self) -> None:
        spec = self.spec()
        id = self.submit(spec)
        self.script(id, kind="job", ending="break", at=6, epochs=1)
        with self.assertRaises(PartlyConsumedError) as caught:
            Job(self.service.url, id)
        e = caught.exception
        self.assertEqual(
            (e.job, e.rank, e.epoch, e.epochs, e.delivered, e.minibatches, e.finished), (id, 0, 0, 1, 5, TOTAL, False)
        )
        for words in ("another run", f"5 of its {TOTAL}", "resume=True", "state=", "another name", "cancel", "run="):
            self.assertIn(words, str(e))
        # Another process of the same run may attach, later and again.
        job = Job(self.service.url, id, run="mine", resume=True)
        next(iter(job.minibatches()))
        job.close()
        with Job(self.service.url, id, run="mine") as job:
            self.assertEqual([b.name.number for b in job], list(range(5, TOTAL)))
        with self.assertRaisesRegex(JobEndedError, "is done: every mini-batch was acknowledged; submit"):
            Job(self.service.url, id)

    def test_a_loop_that_was_left_goes_on(self) -> None:
        for kind in KINDS if TORCH else ("job",):
            with self.subTest(kind):
                id = self.submit(self.spec())
                log = self.script(id, kind=kind, ending="again", at=7, epochs=1)
                given = [n for _, n in log.given]
                # A worker that ended with the loop could not learn that the loop went on, so its last mini-batch comes
                # again.
                twice = [6] if kind == "loader1" else []
                self.assertEqual(given, [*range(7), *twice, *range(7, TOTAL)], self.said)

    @unittest.skipUnless(TORCH, "torch is not installed")
    def test_a_worker_by_spawn_and_without_names(self) -> None:
        for told in ({"kind": "loader1s"}, {"kind": "loader1", "nameless": True}):
            spec = self.spec()
            for turn in range(2):
                with self.subTest(told, turn=turn):
                    self.submit(spec)
                    log = self.script(spec["name"], ending="end", epochs=1, **told)
                    self.assertEqual([n for _, n in log.given], list(range(TOTAL)), self.said)

    # --- any script, ended in any way, at any point -------------------------------------------------------------------

    def test_any_ending(self) -> None:
        n, first = int(os.environ.get("MILLRACE_RUNS", "8")), int(os.environ.get("MILLRACE_RUNS_SEED", "1"))
        for seed in range(first, first + n):
            self.any_ending(seed)

    def any_ending(self, seed: int) -> None:
        r = random.Random(seed)
        kinds = KINDS if TORCH else ("job",)
        kind, epochs = kinds[seed % len(kinds)], r.choice([1, 2])
        ending = r.choice(SOFT if seed % 3 else HARD)
        everything = [(e, n) for e in range(epochs) for n in range(TOTAL)]
        at = r.randrange(1, len(everything) + 1)
        told: dict[str, Any] = {
            "kind": kind,
            "epochs": epochs,
            "ending": ending,
            "at": at,
            "flush": r.choice([0, 1, 5]),
        }
        told["queue_bytes"] = r.choice([1 << 16, 1 << 20, 1 << 24])
        if r.random() < 0.4 and kind in ("job", "direct", "loader0"):
            told["save"] = r.randrange(1, at + 1)
        again = r.choice(["resume", "resume", "nothing"] if "save" not in told else ["state", "state", "resume"])
        with self.subTest(seed=seed, again=again, **told):
            spec = self.spec(epochs=str(epochs))
            id = self.submit(spec)
            one = self.script(id, **told)
            self.assertEqual(one.given, everything[:at], self.said)
            self.assertFalse(one.refused, self.said)
            where = one.saved if again == "state" else max(0, len(one.given) - 1)
            assert where is not None
            epoch = min(where // TOTAL, epochs - 1)
            two = self.script(
                id,
                kind=kind,
                epochs=epochs,
                epoch=epoch,
                ending="end",
                resume=again == "resume",
                use_state=again == "state",
            )
            if again == "state":  # the mini-batches that the checkpoint's model has seen, and the rest, come once each
                if one.saved == len(everything):
                    self.assertIn(two.refused, ("JobEndedError", ""), self.said)
                self.assertEqual(one.given[: one.saved] + two.given, everything, self.said)
                return
            consumed = one.given[:-1]
            if again == "nothing":
                if two.refused:
                    self.assertEqual(two.refused, "PartlyConsumedError", self.said)
                    self.assertFalse(two.given)
                    self.assertTrue(consumed)
                else:
                    self.assertFalse(consumed if ending in SOFT else consumed[: one.durable], "rows were lost")
                    self.assertEqual(two.given, everything, self.said)
                return
            counted = 0 if one.saved is None else one.saved  # a state counts the mini-batch in hand
            consumed = one.given[: max(counted, len(consumed))]
            if ending in SOFT:
                self.assertEqual(consumed + two.given, everything, self.said)
                return
            # The last acknowledgements before the end were not made durable: these mini-batches may come again, and
            # none is lost.
            kept = len(everything) - len(two.given)
            self.assertEqual(two.given, everything[kept:], self.said)
            self.assertLessEqual(kept, len(consumed), "a mini-batch that the trainer had not gone on from is lost")
            self.assertGreaterEqual(kept, max(one.durable, counted), "what was durable came again")


if __name__ == "__main__":
    unittest.main()
