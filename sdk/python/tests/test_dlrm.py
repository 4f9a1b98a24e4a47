"""The DLRM example with few rows: its loss does not depend on drives, crashes and resumes."""

from __future__ import annotations

import importlib.util
import os
import sys
import tempfile
import unittest
import xml.etree.ElementTree
from typing import Any

try:
    import torch
except ImportError as e:
    raise unittest.SkipTest(f"torch is not installed: {e}") from None

from .test_endtoend import setUpModule as setUpModule  # needs the same program

_folder = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples")


def load(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(name, os.path.join(_folder, name + ".py"))
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


class Example(unittest.TestCase):
    def setUp(self) -> None:
        load("service")
        self.dlrm = load("dlrm")
        threads, state = torch.get_num_threads(), torch.get_rng_state()
        self.addCleanup(torch.set_num_threads, threads)
        self.addCleanup(torch.use_deterministic_algorithms, False)
        self.addCleanup(torch.set_rng_state, state)

    def test_five_trainings_one_curve(self) -> None:
        said: list[str] = []
        results = self.dlrm.experiment(rows=5_000, batch=250, epochs=1, every=5, say=said.append)
        self.assertEqual(len(results), 5)
        for name, r in results.items():
            with self.subTest(name):
                self.assertEqual(len(r.losses), 20)
                self.assertLess(sum(r.losses[-5:]), sum(r.losses[:5]), "it learns")
                self.assertTrue(r.untouched)
                self.assertGreater(r.t_rows_per_second, 0)
                self.assertLessEqual(r.first_seconds, r.stall_seconds)
        # The killed node held a lease: fetches from it failed, and its leases came back. The loss is nevertheless the
        # same.
        killed = results["2 drives, one node killed"]
        self.assertGreater(killed.failures, 0)
        self.assertGreater(killed.returned, 0)
        self.assertEqual(killed.losses, results["1 drive"].losses)
        with tempfile.TemporaryDirectory() as folder:
            self.dlrm.write(results, folder)
            root = xml.etree.ElementTree.parse(f"{folder}/dlrm-loss.svg").getroot()
            self.assertEqual(sum(e.tag.endswith("polyline") for e in root.iter()), 5)
            said_of_killed = [e.text for e in root.iter() if (e.text or "").startswith("2 drives, one node killed")]
            self.assertIn(f"fetches failed: {killed.failures}, leases returned: {killed.returned}", said_of_killed[0])
            with open(f"{folder}/dlrm-loss.csv") as f:
                rows = f.read().splitlines()
            self.assertEqual(len(rows), 21)
            for row in rows[1:]:
                self.assertEqual(len(set(row.split(",")[1:])), 1)

    def test_the_training_with_a_killed_node_can_fail(self) -> None:
        service = sys.modules["service"]
        for why, t in (
            ("0 fetches failed, 0 leases came back", self.dlrm.AS_FAST_AS_ALL_DRIVES),  # nothing is killed
            ("2 drives run, and 1 are wanted", 1.0),
        ):
            with self.subTest(why), service.Service(2, rows=2_000, partitions=2, copies=2) as s:
                job = self.dlrm.submit(s.url, "dlrm", batch=100, epochs=1, t=t)
                with self.assertRaisesRegex(RuntimeError, why):
                    self.dlrm.train_with_a_killed_node(s.url, job, drives=2, after=3, kill=lambda node: None)


if __name__ == "__main__":
    unittest.main()
