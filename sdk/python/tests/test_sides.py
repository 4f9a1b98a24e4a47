"""What each side made, as the control plane's tuner reads it."""

from __future__ import annotations

import unittest
from typing import Any

from millrace import Job
from millrace.sides import SideMeter, Sides

from .fake import Cluster


class Meters(unittest.TestCase):
    def test_busy_is_the_time_with_a_fetch_under_way(self) -> None:
        m = SideMeter()
        self.assertEqual(m.busy(5.0), 0.0)
        m.enter(10.0)
        self.assertEqual(m.busy(11.0), 1.0)
        m.enter(11.0)  # two fetches at once count once
        m.leave(12.0, 32)
        self.assertEqual(m.busy(13.0), 3.0)
        m.leave(14.0, 0)  # a fetch that failed took time, too
        self.assertEqual((m.rows, m.busy(20.0)), (32, 4.0))
        m.enter(20.0)
        m.leave(20.5, 8)
        self.assertEqual((m.rows, m.busy(30.0)), (40, 4.5))

    def test_a_report_counts_from_the_session(self) -> None:
        s = Sides()
        self.assertIs(s.meter(True), s.own)
        self.assertIs(s.meter(False), s.others)
        s.own.enter(0.0)
        s.own.leave(2.0, 100)
        s.others.enter(1.0)
        self.assertEqual(
            s.report(4.0), {"own": {"rows": 100.0, "busySeconds": 2.0}, "others": {"rows": 0.0, "busySeconds": 3.0}}
        )
        s.begin(4.0)
        s.others.leave(5.0, 30)  # a fetch that outlives its session
        self.assertEqual(
            s.report(6.0), {"own": {"rows": 0.0, "busySeconds": 0.0}, "others": {"rows": 30.0, "busySeconds": 1.0}}
        )


class Reports(unittest.TestCase):
    def run_job(self, epochs: int) -> list[dict[str, Any]]:
        """Returns the reports of a job whose first node is the rank's own worker and fails one request."""
        failed: list[int] = []

        def fault(h: Any, epoch: int, number: int) -> Any:
            if failed:
                return None
            failed.append(number)
            h.refuse(503, "unavailable", "a fault")
            return True

        with Cluster(nodes=2, total=40, epochs=epochs) as c:
            c.nodes[0].own = True
            c.nodes[0].faults.append(fault)
            with Job(c.urls, "rm1") as job:
                for _ in job:
                    pass
                made = job._session.sides.report(0.0)
                self.assertEqual(job.statistics.rows, epochs * 40 * 32)
            self.assertTrue(failed)
            # Every row was made by one side; the last session's reports never exceed its epoch.
            self.assertEqual(made["own"]["rows"] + made["others"]["rows"], 40 * 32)
            self.assertGreater(made["own"]["rows"], 0)
            self.assertGreater(made["others"]["rows"], 0)
            return c.ledger.reports

    def test_reports_count_both_sides(self) -> None:
        reports = self.run_job(1)
        for side in ("own", "others"):
            rows = [r[side]["rows"] for r in reports]
            self.assertEqual(rows, sorted(rows), side)
            self.assertGreater(rows[-1], 0, side)
            self.assertGreater(reports[-1][side]["busySeconds"], 0, side)

    def test_each_session_counts_from_its_beginning(self) -> None:
        for r in self.run_job(3):
            self.assertLessEqual(r["own"]["rows"] + r["others"]["rows"], 40 * 32)
            self.assertGreaterEqual(r["stallSeconds"], 0)


if __name__ == "__main__":
    unittest.main()
