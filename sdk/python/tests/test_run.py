"""The run that a process belongs to, and the end of a process's sessions."""

from __future__ import annotations

import gc
import logging
import multiprocessing
import os
import random
import subprocess
import sys
import threading
import time
import unittest
import warnings
from typing import Any
from unittest import mock

from millrace import Job, JobEndedError, MillraceError, NoMiniBatchWarning, PartlyConsumedError, UnreachableError
from millrace import run as runs
from millrace.control import _fields

from .fake import Cluster

_SAY = "from millrace.run import default_run; print(default_run())"


def said(env: dict[str, str], *more: str) -> str:
    """Returns the name of the run that a new process finds."""
    kept = {k: v for k, v in os.environ.items() if k != "MILLRACE_RUN"}
    path = os.pathsep.join(p for p in sys.path if p)
    return (
        subprocess.run(
            [sys.executable, "-c", _SAY, *more],
            env={**kept, "PYTHONPATH": path, **env},
            check=True,
            stdout=subprocess.PIPE,
        )
        .stdout.decode()
        .strip()
    )


def _tell(queue: Any) -> None:
    queue.put(runs.default_run())


class DefaultRun(unittest.TestCase):
    def setUp(self) -> None:
        found, runs._found = runs._found, None
        self.addCleanup(setattr, runs, "_found", found)

    def test_a_process_and_its_children(self) -> None:
        own = runs.default_run()
        self.assertEqual(own, runs.default_run())
        for method in ("fork", "spawn"):
            with self.subTest(method):
                context = multiprocessing.get_context(method)
                queue = context.Queue()
                child = context.Process(target=_tell, args=(queue,))
                child.start()
                self.assertEqual(queue.get(timeout=60), own)
                child.join()
                queue.close()
        # A process that is started in another way belongs to another run, and so does a second start in the same way.
        self.assertEqual(len({own, said({}), said({})}), 3)

    def test_the_environment_names_it(self) -> None:
        self.assertEqual(said({"MILLRACE_RUN": "a"}), "a")
        self.assertNotEqual(said({"MILLRACE_RUN": ""}), "")

    def test_ranks_of_torchrun_on_one_machine(self) -> None:
        env = {"TORCHELASTIC_RUN_ID": "none", "WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"}
        ranks = [said({**env, "RANK": str(r)}) for r in range(2)]
        self.assertEqual(len(set(ranks)), 1)
        self.assertNotEqual(ranks[0], said({**env, "TORCHELASTIC_RESTART_COUNT": "1"}), "its models begin again")
        # Another launcher, with the same name as the one before.
        agent = "import subprocess, sys; subprocess.run([sys.executable, '-c', sys.argv[1]], check=True)"
        kept = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p), **env}
        other = (
            subprocess.run([sys.executable, "-c", agent, _SAY], env=kept, check=True, stdout=subprocess.PIPE)
            .stdout.decode()
            .strip()
        )
        self.assertNotEqual(ranks[0], other)

    def test_ranks_that_have_nothing_in_common(self) -> None:
        for env in (
            {"WORLD_SIZE": "2"},
            {"WORLD_SIZE": "2", "LOCAL_WORLD_SIZE": "2"},  # a shell that sets these may start several runs
            {"TORCHELASTIC_RUN_ID": "7", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"},
            {"OMPI_COMM_WORLD_SIZE": "2", "OMPI_COMM_WORLD_LOCAL_SIZE": "1"},
        ):
            with (
                self.subTest(env),
                self.assertRaisesRegex(MillraceError, "init_process_group first, or give all ranks"),
            ):
                runs._find(env)
        self.assertTrue(runs._find({"WORLD_SIZE": "1"}))
        self.assertTrue(runs._find({"WORLD_SIZE": "many"}))

    def test_the_process_group(self) -> None:
        class Store(dict):  # type: ignore[type-arg]
            def add(self, key: str, n: int) -> int:
                self[key] = int(self.get(key, 0)) + n
                return int(self[key])

            def set(self, key: str, value: str) -> None:
                self[key] = value.encode()

            def get(self, key: str, default: Any = None) -> Any:
                return dict.get(self, key, default)

        def group(store: Store, world: int = 2) -> Any:
            dist = mock.Mock()
            dist.is_available.return_value = dist.is_initialized.return_value = True
            dist.get_world_size.return_value = world
            dist.distributed_c10d._get_default_store.return_value = store
            return mock.patch.dict(sys.modules, {"torch.distributed": dist})

        first, second = Store(), Store()
        with group(first):
            name = runs._find({"WORLD_SIZE": "2"})
            self.assertEqual(runs._find({"WORLD_SIZE": "2"}), name, "the next rank's")
        with group(second):
            self.assertNotEqual(runs._find({"WORLD_SIZE": "2"}), name)
        with group(Store(), world=1):
            self.assertNotEqual(runs._find({}), name)


class Ending(unittest.TestCase):
    def test_the_end_of_an_epoch_is_durable(self) -> None:
        with Cluster(total=6, epochs=2) as c, Job(c.urls, "rm1") as job:
            for epoch in range(2):
                self.assertEqual(len(list(job.minibatches())), 6)
                self.assertEqual(sorted(c.ledger.acks)[-1][2], 6)
                with c.ledger.lock:
                    self.assertEqual(len(c.ledger.delivered), 6)
                if epoch == 0:
                    self.assertTrue(job.next_epoch())

    def test_closing_tells_what_another_thread_is_telling(self) -> None:
        with Cluster(total=10) as c:
            job = Job(c.urls, "rm1")
            it = job.minibatches()
            for _ in range(5):
                next(it)
            held = threading.Event()
            call = c._call

            def slow(method: str, m: Any) -> Any:
                if method == "Acknowledge" and not held.is_set():
                    held.set()
                    raise BlockingIOError  # the first answer never comes
                return call(method, m)

            c._call = slow  # type: ignore[method-assign]
            job.acknowledge(next(it).name)
            held.wait(5)
            job.close()
            with c.ledger.lock:
                self.assertEqual(len(c.ledger.delivered), 6)

    def test_what_is_dropped_is_durable_before_the_rank_is_taken_again(self) -> None:
        with Cluster(total=10) as c:
            given = []
            for _ in range(4):
                job = Job(c.urls, "rm1")
                it = iter(job)
                given += [next(it).name.number for _ in range(2)]
                del it, job
                gc.collect()
            self.assertEqual(given, [0, 1, 1, 2, 2, 3, 3, 4], "the mini-batch in hand comes again, no other")

    def test_closing_says_when_it_could_not(self) -> None:
        with Cluster(total=10) as c, mock.patch("millrace.session._FAREWELL", 0.3):
            job = Job(c.urls, "rm1", patience=60)
            it = job.minibatches()
            for _ in range(3):
                next(it)
            c.down.add(0)
            job.acknowledge(next(it).name)
            with self.assertRaisesRegex(UnreachableError, "acknowledgements may not be durable"):
                job.close()
            job.close()  # once is enough
        with (
            Cluster(total=10) as c,
            mock.patch("millrace.session._FAREWELL", 0.3),
            self.assertLogs("millrace", logging.WARNING),
        ):
            with self.assertRaisesRegex(RuntimeError, "of the trainer"), Job(c.urls, "rm1") as job:
                it = job.minibatches()
                next(it), next(it)
                c.down.add(0)
                raise RuntimeError("of the trainer")

    def test_an_exception_never_acknowledges_the_minibatch_in_hand(self) -> None:
        with Cluster(total=10) as c:
            with self.assertRaises(RuntimeError), Job(c.urls, "rm1") as job:
                for b in job:
                    if b.name.number == 4:
                        raise RuntimeError
            with c.ledger.lock:
                self.assertEqual(list(c.ledger.delivered), [(0, 4)])


class Saying(unittest.TestCase):
    def test_a_loop_without_a_minibatch(self) -> None:
        with Cluster(total=4) as c, Job(c.urls, "rm1") as job:
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                self.assertEqual(len(list(job)), 4)
            with self.assertWarnsRegex(NoMiniBatchWarning, "the job is over"):
                self.assertEqual(list(job), [])
        with Cluster(total=2, ranks=3) as c, Job(c.urls, "rm1", rank=1) as job:
            with c.ledger.lock:
                c.ledger.delivered = c.ledger.delivered.__class__([(0, 2)])
            with self.assertWarnsRegex(NoMiniBatchWarning, "rank 1 of job rm1"):
                self.assertEqual(list(job), [])

    def test_a_loop_that_waits(self) -> None:
        with Cluster(total=4) as c, mock.patch("millrace.consumption.SILENCE", 0.2):
            lease = c.ledger.lease

            def nothing(m: Any) -> dict[str, Any]:
                return {**lease({**m, "want": 0}), "waiting": "drive d0 of node n0 is draining"}

            c.ledger.lease = nothing  # type: ignore[method-assign]
            with self.assertLogs("millrace", logging.WARNING) as log, Job(c.urls, "rm1") as job:
                stop = time.monotonic() + 60
                job.take(lambda: "draining" in str(log.output) or time.monotonic() > stop)
            self.assertIn("no mini-batch for", str(log.output))
            self.assertIn("drive d0 of node n0 is draining", str(log.output))

    def test_a_job_that_is_done(self) -> None:
        with Cluster(total=4) as c:
            c.ledger.state = "cancelled"
            with self.assertRaisesRegex(JobEndedError, "has ended"):
                Job(c.urls, "rm1")

    def test_another_run(self) -> None:
        with Cluster(total=10) as c:
            with Job(c.urls, "rm1", run="a") as job:
                it = iter(job)
                for _ in range(4):
                    next(it)
            with self.assertRaises(PartlyConsumedError) as e:
                Job(c.urls, "rm1", run="b")
            self.assertEqual((e.exception.job, e.exception.delivered, e.exception.minibatches), ("j1", 3, 10))
            with Job(c.urls, "rm1", run="b", resume=True) as job:
                self.assertEqual([b.name.number for b in job], list(range(3, 10)))


class Foreign(unittest.TestCase):
    def test_fields_of_anything(self) -> None:
        self.assertEqual(_fields(b"\x0a\x02j1\x20\x03\x28\x96\x01\x38\x01"), {1: b"j1", 4: 3, 5: 150, 7: 1})
        self.assertEqual(_fields(b""), {})
        for bad in (
            b"\x0a\x05j1",
            b"\x20",
            b"\x0d\x00\x00\x00\x00",
            b"\x20" + b"\xff" * 11,
            b"\x0a" + b"\xff" * 9 + b"\x01",
        ):
            self.assertEqual(_fields(bad), {}, bad)
        r = random.Random(1)
        for _ in range(20_000):
            for value in _fields(r.randbytes(r.randrange(24))).values():
                self.assertLess(value if isinstance(value, int) else len(value), 1 << 70)


if __name__ == "__main__":
    unittest.main()
