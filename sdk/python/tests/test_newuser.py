"""The steps of a new user: ``millrace up``, a Parquet file, a PyTorch loop that is run twice, killed and resumed. No
step names an address or a certificate.
"""

from __future__ import annotations

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import unittest

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import torch
except ImportError:
    pa = None

MILLRACE = os.environ.get("MILLRACE_BIN", "")

PIPELINE = """\
name: mine
batch: 64
label: {column: clicked, null: -1}
dense:
  - columns: [price]
    ops: [fill_null: 0]
sparse:
  - columns: [item]
    ops: [fill_null: 0, sigrid_hash: {salt: 0, max: 1000}]
"""

LOOP = """\
import os, signal, sys
from millrace import Control
from millrace.torch import MiniBatches

die, resume = int(sys.argv[1]), sys.argv[2] == "resume"
with Control() as control:
    control.submit({"name": "mine", "pipeline": open("pipeline.yaml").read(), "order": "deterministic"})
data = MiniBatches(id="mine", resume=resume)
for i, batch in enumerate(data):
    print(*(int(v) for v in batch.label.flatten()), flush=True)
    if die and i + 1 == die:
        data.job.flush()
        os.kill(os.getpid(), signal.SIGKILL)
"""


@unittest.skipUnless(pa is not None and MILLRACE, "wants torch, pyarrow and MILLRACE_BIN")
class NewUser(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.env = {k: v for k, v in os.environ.items() if not k.startswith(("MILLRACE_C", "MILLRACE_KEY", "XDG_"))}
        self.env["HOME"] = folder.name

    def millrace(self, *args: str) -> str:
        done = subprocess.run(
            [MILLRACE, *args], cwd=self.home, env=self.env, capture_output=True, text=True, timeout=170
        )
        self.assertEqual(done.returncode, 0, f"millrace {' '.join(args)}: {done.stdout}{done.stderr}")
        return done.stdout

    def loop(self, die: int = 0, resume: bool = False) -> tuple[list[int], int, str]:
        done = subprocess.run(
            [sys.executable, "loop.py", str(die), "resume" if resume else "whole"],
            cwd=self.home,
            env=self.env,
            capture_output=True,
            text=True,
            timeout=170,
        )
        return [int(v) for v in done.stdout.split()], done.returncode, done.stderr

    def test_from_up_to_resume(self) -> None:
        rows = 2000
        self.millrace(
            "up", "--detach", "--listen", "127.0.0.1:0", "--node-listen", "127.0.0.1:0", "--drive-size", "64MiB"
        )
        self.addCleanup(self.millrace, "down", "--purge")
        # pyarrow's columns are nullable. The label is the row's number.
        table = pa.table(
            {
                "clicked": pa.array(range(rows), pa.float32()),
                "price": pa.array([None if i % 7 == 0 else i / 10 for i in range(rows)], pa.float32()),
                "item": pa.array([None if i % 5 == 0 else i * 31 for i in range(rows)], pa.int64()),
            }
        )
        pq.write_table(table, self.home / "day.parquet", row_group_size=700)
        (self.home / "pipeline.yaml").write_text(PIPELINE)
        (self.home / "loop.py").write_text(LOOP)
        self.millrace("dataset", "place", "day.parquet")

        every = list(range(rows))
        for run in ("first", "second"):
            seen, code, said = self.loop()
            self.assertEqual(code, 0, said)
            self.assertEqual(sorted(seen), every, f"the {run} run sees each row once")

        before, code, _ = self.loop(die=10)
        self.assertEqual(code, -signal.SIGKILL)
        self.assertEqual(len(before), 640)
        # The killed run's acknowledgements are durable, so that a loop from the start is refused.
        after, code, said = self.loop()
        self.assertNotEqual(code, 0)
        self.assertEqual(after, [])
        self.assertIn("PartlyConsumedError", said)
        after, code, said = self.loop(resume=True)
        self.assertEqual(code, 0, said)
        self.assertLess(len(after), rows, "rows that the killed run acknowledged do not come again")
        self.assertEqual(sorted(set(before) | set(after)), every, "no row is lost")
        self.assertEqual(len(after), len(set(after)), "none comes twice in one run")
        self.assertIn("mine", self.millrace("jobs", "list"))


    def test_one_line_changes_from_files_to_a_cluster(self) -> None:
        self.millrace(
            "up", "--detach", "--listen", "127.0.0.1:0", "--node-listen", "127.0.0.1:0", "--drive-size", "64MiB"
        )
        self.addCleanup(self.millrace, "down", "--purge")
        columns = {
            "clicked": pa.array(range(1000), pa.float32()),
            "price": pa.array([n / 10 for n in range(1000)], pa.float32()),
            "item": pa.array([n * 31 for n in range(1000)], pa.int64()),
        }
        pq.write_table(pa.table(columns), self.home / "day_0.parquet", row_group_size=300)
        (self.home / "pipeline.yaml").write_text(PIPELINE)
        self.millrace("dataset", "place", "day_0.parquet")
        said = []
        for more in ("", ", control=os.environ['CONTEXT']", ", control=os.environ['CONTEXT'] + '-launcher'"):
            script = (
                "import millrace, os, zlib\n"
                f"data = millrace.open('day_*.parquet', 'pipeline.yaml', order='deterministic', seed=3{more})\n"
                "print([(str(b.name), zlib.crc32(bytes(b.dense.flatten().tolist().__repr__(), 'ascii')),"
                " b.label.tolist()) for b in data])\n"
                "print(data.state_dict()['token'])\n"
            )
            done = subprocess.run(
                [sys.executable, "-c", script],
                cwd=self.home,
                env={**self.env, "CONTEXT": self.context()},
                capture_output=True,
                text=True,
                timeout=170,
            )
            self.assertEqual(done.returncode, 0, done.stderr)
            said.append(done.stdout)
        self.assertEqual(said[0], said[1], "names, tensors and token are the same")
        self.assertEqual(said[0], said[2], "with a launcher's certificate, too")
        self.assertIn("/0/15", said[0])

    def context(self) -> str:
        """Returns the name of the context that `millrace up` made."""
        listed = json.loads(self.millrace("context", "list", "--output", "json"))
        return str(next(c["name"] for c in listed if c["current"]))


if __name__ == "__main__":
    unittest.main()
