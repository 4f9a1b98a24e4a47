"""The benchmark of staging: its three trainings run on the CPU here, and without a GPU it measures nothing."""

from __future__ import annotations

import contextlib
import importlib.util
import io
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
from typing import Any
from unittest import mock

try:
    import torch
except ImportError as e:
    raise unittest.SkipTest(f"torch is not installed: {e}") from None

MILLRACE = os.environ.get("MILLRACE_BIN", "")
_script = pathlib.Path(__file__).resolve().parent.parent / "benchmarks" / "staging.py"


def load() -> Any:
    spec = importlib.util.spec_from_file_location("staging_benchmark", _script)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    with mock.patch.object(sys, "path", list(sys.path)):
        spec.loader.exec_module(module)
    return module


class Clock:
    """A clock in place of CUDA's events: on the CPU a step is done when its call returns."""

    def __init__(self) -> None:
        self.sum = self.begun = 0.0

    def begin(self) -> None:
        self.begun = time.perf_counter()

    def end(self) -> None:
        self.sum += time.perf_counter() - self.begun

    def finish(self) -> None:
        pass

    def seconds(self) -> float:
        return self.sum


class Staging(unittest.TestCase):
    def test_without_a_gpu_nothing_is_measured(self) -> None:
        out = io.StringIO()
        with mock.patch.object(torch.cuda, "is_available", return_value=False), contextlib.redirect_stdout(out):
            self.assertEqual(load().main([]), 0)
        self.assertIn("nothing is measured", out.getvalue())

    def test_overlap(self) -> None:
        staging = load()

        def way(rows_per_second: float) -> Any:
            return staging.Way("", 1, rows_per_second, 1.0, 0.0)

        self.assertAlmostEqual(staging.overlap(way(100), way(100), way(50)), 1.0)
        self.assertAlmostEqual(staging.overlap(way(100), way(50), way(50)), 0.0)
        self.assertAlmostEqual(staging.overlap(way(100), way(80), way(50)), 0.75)
        self.assertIsNone(staging.overlap(way(100), way(100), way(120)))

    @unittest.skipUnless(MILLRACE, "wants MILLRACE_BIN")
    def test_three_trainings(self) -> None:
        staging = load()
        with tempfile.TemporaryDirectory() as folder:
            command = [MILLRACE, "dataset", "generate", "--rows", "640", "--out", folder, "--progress", "none"]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            found = staging.ways(f"{folder}/part-00000.parquet", "rm1", 64, torch.device("cpu"), Clock)
        self.assertEqual([w.name for w in found], ["resident", "staged", "plain"])
        for w in found:
            self.assertEqual(w.steps, 10 - staging.WARM)
            self.assertGreater(w.rows_per_second, 0)
            self.assertTrue(0 <= w.waiting < 1, w)


if __name__ == "__main__":
    unittest.main()
