"""A validation split: two jobs that share no row and leave none out."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import tempfile
import unittest
from typing import Any, Dict, Optional

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
except ImportError:
    pa = None

import millrace
from millrace import Control, OptionsError, Pipeline, PipelineError, arguments
from millrace.filters import column
from millrace.operators import fill_null

from .fake import Cluster

MILLRACE = os.environ.get("MILLRACE_BIN", "")


class Arguments(unittest.TestCase):
    def test_the_form_of_the_flag(self) -> None:
        for split, text in (
            (("train", 0.9), "train:0.9:0"),
            (["validation", 0.1, 7], "validation:0.1:7"),
            (("train", 1e-9, (1 << 64) - 1, None), "train:1e-09:18446744073709551615"),
            (("train", 0.5, 0, "a:b"), "train:0.5:0:a:b"),
        ):
            self.assertEqual(arguments.split(split), text)
        self.assertIsNone(arguments.split(None))

    def test_wrong_splits(self) -> None:
        wrong: Any
        for wrong, says in (
            ("train", r"want \(part, rate\), \(part, rate, seed\) or"),
            (("train",), r'as \("train", 0.9, 7\)'),
            (("train", 0.9, 7, "a", "b"), "want .part, rate"),
            ((0.9, "train"), 'the part is 0.9, want "train" or "validation"'),
            (("test", 0.9), "the part is 'test'"),
            (("train", 0), "the rate is 0, want a number of more than 0 and less than 1"),
            (("train", 1.0), "the rate is 1.0"),
            (("train", float("nan")), "the rate is nan"),
            (("train", "0.9"), "the rate is '0.9'"),
            (("train", True), "the rate is True"),
            (("train", None), "the rate is None"),
            (("train", 0.9, -1), "seed=-1: want a whole number from 0 to 18446744073709551615"),
            (("train", 0.9, 1.5), "seed=1.5"),
            (("train", 0.9, 7, ""), "the column is '', want a name, or None to draw each row"),
            (("train", 0.9, 7, 3), "the column is 3"),
        ):
            with self.subTest(wrong), self.assertRaisesRegex(OptionsError, says) as caught:
                millrace.open("none.parquet", "rm1", split=wrong)
            self.assertEqual(caught.exception.argument, "split")


@unittest.skipUnless(pa is not None and MILLRACE, "wants pyarrow and MILLRACE_BIN")
class Files(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        self.users: Dict[int, Optional[str]] = {}
        for i, rows in enumerate((700, 333)):
            numbers = range(1000 * i, 1000 * i + rows)
            users = [None if n % 7 == 0 else f"user-{n * n % 41}" for n in numbers]
            self.users.update(zip(numbers, users))
            table = pa.table(
                {"row": pa.array(numbers, pa.int64()), "price": [n / 8 for n in numbers], "user": pa.array(users)}
            )
            pq.write_table(table, self.folder / f"day_{i}.parquet", row_group_size=200)
        self.pipeline = Pipeline(batch=64).dense("price", ops=[fill_null(0)]).sparse("row")

    def rows(self, split: Any, pipeline: Any = None) -> list[int]:
        with millrace.open(
            str(self.folder / "day_*"), pipeline or self.pipeline, split=split, tensors="views", order="deterministic"
        ) as job:
            return [row for mb in job for row in mb.values]

    def test_each_row_is_in_one_part(self) -> None:
        filtered = Pipeline(batch=64).dense("price", ops=[fill_null(0)]).sparse("row").filter(column("row", ge=300))
        for by, pipeline in ((None, self.pipeline), ("user", filtered)):
            with self.subTest(by=by, filtered=pipeline is filtered):
                train = self.rows(("train", 0.8, 7, by), pipeline)
                validation = self.rows(("validation", 0.8, 7, by), pipeline)
                want = [row for row in self.users if pipeline is not filtered or row >= 300]
                self.assertEqual(sorted(train + validation), want)
                self.assertGreater(len(train), len(validation))
                self.assertGreater(len(validation), 0)
                if by is not None:
                    users = [{self.users[row] for row in part} for part in (train, validation)]
                    self.assertEqual(users[0] & users[1], set())
                    self.assertIn(None, users[0], "rows without a value belong to train")

    def test_wrong_columns(self) -> None:
        for by, says in (("usr", 'did you mean "user"'), ("price", "sampling takes ids or strings as its key")):
            built = Pipeline(batch=64).dense("price", ops=[fill_null(0)]).sparse("row").filter(column("row", ge=0))
            with self.subTest(by), self.assertRaisesRegex(PipelineError, says) as caught:
                millrace.open(str(self.folder / "day_*"), built, split=("train", 0.8, 7, by))
            (problem,) = caught.exception.problems
            self.assertTrue(problem.path.startswith("split"), problem)
            self.assertEqual(problem.file, "", "no line of Python added it")

    def test_a_check_with_a_split(self) -> None:
        files = str(self.folder / "day_*")
        digests = {
            self.pipeline.check(files, split=split).digest
            for split in (None, ("train", 0.8, 7), ("validation", 0.8, 7), ("train", 0.8, 7, "user"))
        }
        self.assertEqual(len(digests), 4)

    def test_a_control_plane_gets_the_filter(self) -> None:
        self.pipeline.filter(column("row", ge=0))
        with Cluster() as c, Control(c.urls) as control:
            for pipeline in (self.pipeline, self.pipeline.to_yaml()):
                control.submit({"name": "a", "pipeline": pipeline}, split=("validation", 0.8, 7, "user"))
                sent = json.loads(base64.b64decode(c.spec["pipeline"]))
                self.assertEqual(sent["filter"]["all"][0], {"column": "row", "ge": 0})
                drawn = sent["filter"]["all"][1]["not"]["any"]
                self.assertEqual(drawn[0]["sampling"]["key"], "user")
                self.assertEqual(drawn[0]["sampling"]["rate"], 0.8)
                self.assertEqual(drawn[1], {"column": "user", "null": True})
            with millrace.open(
                "day_*", self.pipeline, control=c.urls, split=("train", 0.8), tensors="views", patience=20
            ):
                sent = json.loads(base64.b64decode(c.spec["pipeline"]))
                self.assertEqual(sent["filter"]["all"][1]["sampling"]["key"], "row")
            with self.assertRaisesRegex(OptionsError, "split=: the job has no pipeline that takes it"):
                control.submit({"name": "a"}, split=("train", 0.8))
            with self.assertRaisesRegex(OptionsError, "the rate is 2"):
                control.submit({"name": "a", "pipeline": "rm1"}, split=("train", 2))


if __name__ == "__main__":
    unittest.main()
