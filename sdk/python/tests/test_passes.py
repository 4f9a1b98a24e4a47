"""Passes that end in a file: which command is run, with which flags, and what its ends become."""

from __future__ import annotations

import json
import os
import pathlib
import pickle
import ssl
import sys
import tempfile
import unittest
from typing import Any
from unittest import mock

import millrace
from millrace import OptionsError, PassError, PipelineError
from millrace.operators import vocabulary

# A program that writes its arguments, and the pipeline that it is given, as JSON.
_PROGRAM = f"""#!{sys.executable}
import json, os, sys
answer = {{"arguments": sys.argv[1:]}}
for argument in sys.argv:
    if argument.startswith("--pipeline=") and os.path.exists(argument[11:]):
        answer["document"] = open(argument[11:]).read()
if os.environ.get("END"):
    print("millrace: it ended: do something", file=sys.stderr)
    sys.exit(int(os.environ["END"]))
print(json.dumps(answer))
"""


class Passes(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        program = self.folder / "millrace"
        program.write_text(_PROGRAM)
        program.chmod(0o755)
        self.environ = {k: v for k, v in os.environ.items() if not k.startswith("MILLRACE_")}
        self.environ["MILLRACE_BIN"] = str(program)
        self.environ["XDG_CONFIG_HOME"] = str(self.folder / "config")
        patch = mock.patch.dict(os.environ, self.environ, clear=True)
        patch.start()
        self.addCleanup(patch.stop)

    def test_a_summary_of_files(self) -> None:
        made: Any = millrace.summarize(
            ["a.parquet", pathlib.Path("b.parquet")], out="s", columns=["x", "y_*"], whole=True, overwrite=True
        )
        self.assertEqual(
            made["arguments"],
            ["dataset", "summarize", "--output=json", "--progress=none", "--columns=x", "--columns=y_*", "--whole"]
            + ["--overwrite", "--out=s", "--in=a.parquet", "--in=b.parquet"],
        )

    def test_a_summary_of_a_cluster(self) -> None:
        made: Any = millrace.summarize(
            "/data/day_*.parquet", control="http://a:1,http://b:2", placement="held", work=self.folder / "w"
        )
        self.assertEqual(
            made["arguments"][4:],
            ["--control=http://a:1", "--control=http://b:2", "--partitions=day_*.parquet", "--placement=held"]
            + [f"--work={self.folder}/w"],
        )

    def test_a_vocabulary_of_a_cluster(self) -> None:
        built = millrace.Pipeline("p").sparse("id", ops=[vocabulary("v")]).vocabulary("v")
        made: Any = millrace.build_vocabulary(
            "day",
            built,
            out="v.vocab",
            memory=1 << 20,
            control=["https://a:1"],
            tls=("c", "k", "ca"),
            name="v",
            split=("train", 0.9, 7),
        )
        self.assertEqual(made["document"], built.to_yaml())
        flags = [flag for flag in made["arguments"] if not flag.startswith("--pipeline=")]
        self.assertEqual(
            flags,
            ["vocabulary", "build", "--output=json", "--progress=none", f"--memory={1 << 20}", "--split=train:0.9:7"]
            + ["--out=v.vocab", "--name=v", "--control=https://a:1", "--partitions=day", "--cert=c", "--key=k"]
            + ["--ca=ca"],
        )

    def test_a_pipeline_that_ships_goes_by_its_name(self) -> None:
        made: Any = millrace.summarize("day", pipeline="rm1", statistics={"other": "o.summary"})
        self.assertIn("--pipeline=rm1", made["arguments"])
        self.assertIn("--statistics=other=o.summary", made["arguments"])

    def test_a_command_that_fails(self) -> None:
        os.environ["END"] = "1"
        with self.assertRaisesRegex(PassError, "^it ended: do something$") as failed:
            millrace.summarize("day")
        again = pickle.loads(pickle.dumps(failed.exception))
        self.assertEqual((type(again), str(again)), (PassError, "it ended: do something"))
        os.environ["END"] = "2"
        with self.assertRaisesRegex(OptionsError, "do something"):
            millrace.build_vocabulary("day", "rm1", out="v")

    def test_arguments_that_cannot_be(self) -> None:
        for wrong in (
            {"placement": "held"},
            {"work": "w"},
            {"tls": ("c", "k", "ca")},
            {"control": ""},
            {"control": "http://a:1", "tls": ssl.create_default_context()},
            {"name": ""},
            {"statistics": ["a"]},
        ):
            with self.subTest(wrong), self.assertRaises(OptionsError):
                millrace.summarize("day", **wrong)
        with self.assertRaises(OptionsError):
            millrace.summarize([])
        with self.assertRaises(OptionsError):
            millrace.build_vocabulary("day", "rm1", out="v", memory=0)
        with self.assertRaises(PipelineError):
            millrace.build_vocabulary("day", "missing.yaml", out="v")
        with self.assertRaises(millrace.ContextError):
            millrace.summarize("day", control="nowhere")


if __name__ == "__main__":
    unittest.main()
