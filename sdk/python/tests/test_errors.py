"""Every exception keeps its text and its attributes on its way to another process."""

from __future__ import annotations

import copy
import inspect
import pickle
import unittest

from millrace import errors
from millrace.errors import MillraceError

MADE = [
    errors.PipelineError([errors.PipelineProblem("no such operator", "dense[0]", "p.yaml", 7)]),
    errors.ServiceError("not_found", "no job", "http://c:1", {"t": b"x"}),
    errors.DataLossError("f: bad page", "f", "c", 1, 2, 3, 4),
    errors.FilesError("f.parquet: no such file", "f.parquet"),
    errors.OptionsError("batch=0: want more", "batch"),
    errors.RanksError("RANK=2", "RANK"),
    errors.PartlyConsumedError("partly", "job", 1, 2, 3, 4, 5, True),
]


class Errors(unittest.TestCase):
    def test_every_class_passes_between_processes(self) -> None:
        classes = [c for _, c in inspect.getmembers(errors, inspect.isclass) if issubclass(c, MillraceError)]
        made = {type(e) for e in MADE}
        for error in [*MADE, *(c("it failed") for c in classes if c not in made)]:
            for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
                with self.subTest(type(error).__name__):
                    self.assertIs(type(other), type(error))
                    self.assertEqual(str(other), str(error))
                    self.assertEqual(vars(other), vars(error))
                    self.assertEqual(getattr(other, "filename", None), getattr(error, "filename", None))

    def test_texts(self) -> None:
        self.assertEqual(str(MADE[0]), "p.yaml:7: no such operator")
        self.assertEqual(str(errors.FilesError("f.parquet: no such file", "f.parquet")), "f.parquet: no such file")
        # torch makes the exception of a DataLoader's process again, from its text.
        self.assertEqual(str(errors.PipelineError("two\nlines")), "two\nlines")


if __name__ == "__main__":
    unittest.main()
