"""FastFlow's metrics, measured over the first mini-batches of a job."""

from __future__ import annotations

import math
import os
import time
import unittest
from typing import Any, Optional
from unittest import mock

from millrace import Job
from millrace.profiling import (
    OTHERS,
    OWN,
    STEPS,
    Profiler,
    Sample,
    _parsed_quota,
    available_processors,
    process_seconds,
)

from .fake import Cluster

ROWS = 10


class Machine:
    """A trainer in virtual time. Each side makes a mini-batch in so many seconds, and the trainer waits for it."""

    def __init__(self, step: float = 0.01, own: float = 0.04, others: float = 0.02, throughput: float = 0.0) -> None:
        self.step, self.makes = step, {True: own, False: others}
        self.now, self.stalled, self.process, self.fetching, self.worker = 100.0, 7.0, 3.0, 1.0, 50.0
        self.queued = 0
        self.samples = 0
        self.profiler = Profiler(lambda: throughput, 4.0)

    def sample(self) -> Sample:
        self.samples += 1
        return Sample(self.now, self.stalled, self.queued, self.process, self.fetching, self.worker)

    def take(self, own: bool, count: int = 1, made: Optional[float] = None) -> None:
        """The trainer takes mini-batches, each of which comes after the step on the one before."""
        for _ in range(count):
            period = max(self.step, self.makes[own] if made is None else made)
            self.now += period
            self.stalled += period - self.step
            self.fetching += 0.001
            self.process += 0.001 + 0.005  # the step's
            self.worker += 0.03 if own else 0.0
            self.profiler.taken(own, ROWS, self.sample)

    def until(self, own: bool, side: str) -> int:
        taken = 0
        while self.profiler.side != side:
            self.take(own)
            taken += 1
            assert taken < 10_000
        return taken


class Profiles(unittest.TestCase):
    def close(self, got: float, want: float) -> None:
        self.assertLess(abs(got - want), 1e-9 * max(1.0, abs(want)), (got, want))

    def test_both_sides(self) -> None:
        """Every metric of a trainer that waits for its own CPUs: throughputs with the trainer, CPU times without it."""
        m = Machine()
        self.assertEqual(m.profiler.side, OWN)
        self.assertEqual(m.until(True, OTHERS), 4 + 1 + STEPS, "a warm-up, and at least 0.5 s")
        self.assertIsNone(m.profiler.profile)
        m.until(False, "")
        p = m.profiler.profile
        assert p is not None
        self.close(p["gthp"], ROWS / 0.01)
        self.close(p["lthp"], ROWS / 0.04)
        self.close(p["rthp"], ROWS / 0.02)
        self.close(p["pcycle"], (0.03 + 0.001) / ROWS)
        self.close(p["ocycle"], 0.001 / ROWS)
        self.close(p["tcycle"], 0.005 / ROWS)
        self.assertEqual(p["cores"], 4.0)
        self.assertEqual(m.samples, 6, "one when a side begins, two of its window")
        m.take(True, 300)
        self.assertIs(m.profiler.profile, p)

    def test_fast_steps_give_a_hundred(self) -> None:
        m = Machine(step=1e-4, own=4e-4, others=2e-4)
        self.assertEqual(m.until(True, OTHERS), 4 + 1 + 2 * STEPS)

    def test_the_measured_throughput_is_gthp(self) -> None:
        m = Machine(throughput=12_345.0)
        m.until(True, OTHERS)
        m.until(False, "")
        assert m.profiler.profile is not None
        self.assertEqual(m.profiler.profile["gthp"], 12_345.0)

    def test_without_a_stall_the_others_are_not_measured(self) -> None:
        """FastFlow 7.4: workloads with low stalls prevent measuring other metrics after Lthp and Gthp."""
        m = Machine(own=0.0105)
        m.until(True, "")
        p = m.profiler.profile
        assert p is not None
        self.assertEqual((p["rthp"], p["ocycle"]), (0.0, 0.0))
        self.assertLess(p["gthp"], 1.1 * p["lthp"])

    def test_mixed_mini_batches_begin_the_window_again(self) -> None:
        m = Machine()
        m.take(True, 30)
        m.take(False)
        self.assertEqual(m.until(True, OTHERS), 4 + 1 + STEPS)
        m.take(True, 20)  # leases of the side before
        self.assertEqual(m.until(False, ""), 4 + 1 + STEPS)
        assert m.profiler.profile is not None
        self.close(m.profiler.profile["rthp"], ROWS / 0.02)

    def test_another_session_begins_the_window_again(self) -> None:
        m = Machine()
        m.take(True, 40)
        m.profiler.restart()
        m.now += 1000.0
        m.until(True, OTHERS)
        m.until(False, "")
        assert m.profiler.profile is not None
        self.close(m.profiler.profile["lthp"], ROWS / 0.04)

    def test_what_waited_was_made_before(self) -> None:
        m = Machine()
        m.take(True, 4)
        m.queued = 5 * ROWS
        m.take(True)  # the window begins
        m.queued = 0
        m.take(True, 5, made=0.0)  # they were there
        m.until(True, OTHERS)
        m.until(False, "")
        assert m.profiler.profile is not None
        made, seconds = (STEPS - 5) * ROWS, 5 * 0.01 + (STEPS - 5) * 0.04
        self.close(m.profiler.profile["lthp"], made / seconds)

    def test_a_queue_that_drains(self) -> None:
        """A window counts only once the queue has stopped draining: until then the trainer runs at its own speed and
        leaves the side less CPU time than later."""

        def drain(m: Machine, count: int, made: float) -> None:
            for _ in range(count):
                m.queued = max(m.queued - ROWS, 0)
                m.take(True, made=made)

        m = Machine()
        m.take(True, 4)
        m.queued = (STEPS + 1) * ROWS
        drain(m, 1 + STEPS, made=0.16)
        self.assertEqual(m.profiler.side, OWN, "the whole window came from the queue")
        self.assertEqual(m.until(True, OTHERS), STEPS, "the next window begins at once")
        m.until(False, "")
        assert m.profiler.profile is not None
        self.close(m.profiler.profile["lthp"], ROWS / 0.04)

        for waiting, side in ((STEPS // 10, OTHERS), (STEPS // 10 + 1, OWN)):
            m = Machine()
            m.take(True, 4)
            m.queued = (waiting + 1) * ROWS
            drain(m, 1 + STEPS, made=0.04)
            self.assertEqual(m.profiler.side, side)

    def test_a_side_that_makes_nothing_ends_the_profile(self) -> None:
        for first in (False, True):
            m = Machine(own=1.0, others=0.5)
            if first:
                m.until(True, OTHERS)
            self.assertEqual(m.until(first, ""), 8 * STEPS)
            self.assertIsNone(m.profiler.profile)
        m = Machine()
        self.assertGreater(m.until(False, ""), 8 * STEPS, "the leader has ten seconds")
        m = Machine(step=0.0, own=0.0, others=0.0)
        m.take(False, 10_000)
        self.assertEqual(m.profiler.side, OWN)

    def test_unknown_processor_times(self) -> None:
        m = Machine()
        m.until(True, OTHERS)
        m.until(False, "")
        known = m.profiler.profile
        assert known is not None and known["ocycle"] > 0
        m = Machine()
        m.worker = 0.0
        while m.profiler.side:
            m.take(m.profiler.side == OWN)
            m.worker = 0.0
        p = m.profiler.profile
        assert p is not None
        self.assertEqual((p["pcycle"], p["ocycle"]), (0.0, 0.0), "the control plane refuses Ocycle without Pcycle")

    def test_clocks_that_stand_still(self) -> None:
        m = Machine(step=0.0, own=0.0, others=0.0)
        while m.profiler.side:
            m.take(m.profiler.side == OWN)
        p = m.profiler.profile
        assert p is not None
        self.assertTrue(all(math.isfinite(v) and v >= 0 for v in p.values()), p)

    def test_stored_metrics_are_not_measured(self) -> None:
        """With the metrics of its own CPUs from the store, the profile is the one of both sides. With those of the
        model alone, both sides are measured.
        """
        m = Machine(throughput=12_345.0)
        m.until(True, OTHERS)
        m.until(False, "")
        want = m.profiler.profile
        assert want is not None
        own = {name: want[name] for name in ("gthp", "tcycle", "cores", "lthp", "pcycle")}
        m = Machine()
        m.profiler = Profiler(float, 4.0, stored=own)
        self.assertEqual(m.profiler.side, OTHERS)
        self.assertEqual(m.until(False, ""), 4 + 1 + STEPS)
        assert m.profiler.profile is not None
        for name, value in want.items():
            self.close(m.profiler.profile[name], value)
        m.profiler = Profiler(float, 4.0, stored={"gthp": 777.0, "tcycle": 1.0, "cores": 4.0})
        self.assertEqual(m.profiler.side, OWN)
        m.until(True, OTHERS)
        m.until(False, "")
        assert m.profiler.profile is not None
        self.assertEqual(m.profiler.profile["gthp"], 777.0)

    def test_short_jobs_are_not_profiled(self) -> None:
        # Half a second is looked at, 50 mini-batches a second here. A profile takes about 5 s, and a fifth of the job at
        # most.
        for ahead, short in ((1200, True), (1300, False), (0, False)):
            m = Machine()
            m.profiler = Profiler(float, 4.0, ahead=ahead)
            m.take(False)
            self.assertEqual((m.profiler.looking, m.profiler.side), (ahead > 0, OWN))
            m.take(False, 26)
            self.assertEqual((m.profiler.looking, m.profiler.short, m.profiler.side), (False, short, "" if short else OWN))
            self.assertIsNone(m.profiler.profile)
        self.assertFalse(Profiler.suits(100 * STEPS - 1, 1))
        self.assertTrue(Profiler.suits(100 * STEPS, 1))
        self.assertTrue(Profiler.suits(4 * STEPS, 25))
        self.assertFalse(Profiler.suits(4 * STEPS - 1, 1000))


class Processors(unittest.TestCase):
    def test_quota(self) -> None:
        self.assertEqual(_parsed_quota("150000 100000\n"), 1.5)
        for text in ("max 100000", "", "0 100000", "1 0", "-1 100000", "1 2 3", "x y", "1" * 20 + " 1"):
            self.assertEqual(_parsed_quota(text), math.inf, text)

    def test_available(self) -> None:
        found = available_processors()
        self.assertGreaterEqual(found, 0)
        self.assertLessEqual(found, os.cpu_count() or 0)

    def test_seconds_of_a_process(self) -> None:
        if not os.path.exists("/proc/self/stat"):
            self.skipTest("/proc is not there")
        before, end = process_seconds(os.getpid()), time.monotonic() + 60
        while process_seconds(os.getpid()) <= before:
            self.assertLess(time.monotonic(), end, "a minute of work used no processor time")
        self.assertEqual(process_seconds(2**22 + 1), 0.0, "there is no such process")


class Sessions(unittest.TestCase):
    def test_a_session_measures_and_reports(self) -> None:
        """The control plane gives every split to the side that the reports name, and gets the profile."""
        # The job takes seconds: it is taken for one that is long enough.
        with mock.patch("millrace.profiling._PROFILE_SECONDS", 0.0), Cluster(
            nodes=2, total=5000, split=4, rows=4, order="fastest"
        ) as c:
            c.nodes[0].own = True
            c.ledger.offload = "extended"
            with Job(c.urls, "rm1", splits=2) as job:
                job._session.begin_profile(lambda: process_seconds(os.getpid()))
                numbers = sorted(b.name.number for b in job)
                self.assertGreater(job.statistics.profile_seconds, 0)
            self.assertEqual(numbers, list(range(5000)))
            sides = [r.get("profiling", "") for r in c.ledger.reports]
            order = [x for i, x in enumerate(sides) if x and (i == 0 or sides[i - 1] != x)]
            self.assertEqual(order, [OWN, OTHERS])
            profiles = [r["profile"] for r in c.ledger.reports if "profile" in r]
            self.assertTrue(profiles)
            self.assertTrue(all(p == profiles[0] for p in profiles))
            self.assertEqual(set(profiles[0]), {"gthp", "lthp", "pcycle", "rthp", "ocycle", "tcycle", "cores"})
            for name in ("gthp", "lthp", "rthp"):
                self.assertGreater(profiles[0][name], 0, name)

    def test_a_fixed_share_is_not_profiled(self) -> None:
        for offload, total in (("0.5", 5000), ("extended", 400)):
            with Cluster(nodes=2, total=total, split=4, rows=4) as c:
                c.ledger.offload = offload
                with Job(c.urls, "rm1") as job:
                    job._session.begin_profile(float)
                    next(iter(job))
                    self.assertIsNone(job._session._profiler)
            reports: list[dict[str, Any]] = c.ledger.reports
            self.assertFalse([r for r in reports if "profiling" in r or "profile" in r])


if __name__ == "__main__":
    unittest.main()
