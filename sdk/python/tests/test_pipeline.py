"""Pipelines that are built in Python equal the documents that a person would write, and errors name the faulty line."""

from __future__ import annotations

import inspect
import json
import os
import pathlib
import random
import subprocess
import tempfile
import unittest
from typing import Any
from unittest import mock

import millrace
from millrace import BinaryError, Control, Pipeline, PipelineError, ServiceError, binary, operators
from millrace.operators import (
    bucketize,
    cartesian,
    clamp,
    fill_null,
    firstx,
    hex_to_int,
    identity,
    log,
    min_max,
    normalize,
    positive_modulus,
    sigrid_hash,
    vocabulary,
)
from millrace.filters import Filter, all_of, any_of, column, sampling
from millrace.pipeline import LogSpaced, Operator, bound

MILLRACE = os.environ.get("MILLRACE_BIN", "")

RM1 = """\
name: rm1
batch: 8192
ids: int32
label: {column: label}
dense:
  - columns: [int_0..int_12]
    ops: [fill_null: 0, clamp: {min: 0}, log: {add: 1}]
sparse:
  - columns: [cat_0..cat_25]
    ops: [fill_null: 0, sigrid_hash: {salt: 0, max: 500000}]
generated:
  - columns: [int_0..int_12]
    as: "bucket_{n}"
    ops: [fill_null: 0, bucketize: {borders: {log_spaced: {from: 1, to: 1.0e6, count: 1024}}}, sigrid_hash: {salt: 0, max: 500000}]
"""


def rm1() -> Pipeline:
    return (
        Pipeline("rm1", batch=8192, ids="int32")
        .label("label")
        .dense("int_0..int_12", ops=[fill_null(0), clamp(min=0), log(add=1)])
        .sparse("cat_0..cat_25", ops=[fill_null(0), sigrid_hash(max=500_000)])
        .generated(
            "int_0..int_12",
            name="bucket_{n}",
            ops=[fill_null(0), bucketize(LogSpaced(1, 1e6, 1024)), sigrid_hash(max=500_000)],
        )
    )


class Documents(unittest.TestCase):
    """Tests that need no binary."""

    def test_text_is_quoted_where_yaml_would_misread_it(self) -> None:
        document = Pipeline("no").dense(["a b", "x*", "", 'q"\\', "\n", "null", "é", "\u2028"], ops=[identity()]).to_yaml()
        self.assertEqual(
            document,
            'name: "no"\nbatch: 8192\ndense:\n  - columns: ["a b", "x*", "", "q\\"\\\\", "\\U0000000a", "null", "é", "\\U00002028"]\n'
            "    ops: [identity: {}]\n",
        )

    def test_numbers_keep_their_type(self) -> None:
        def written(x: float) -> str:
            return Pipeline().dense("x", ops=[fill_null(x)]).to_yaml().split("value: ")[1].split("}")[0]

        self.assertEqual(
            [written(x) for x in (0, 2**63, -0.0, 1.0, 1e16, 1e-7, float("inf"), -float("inf"), float("nan"))],
            ["0", "9223372036854775808", "-0.0", "1.0", "1.0e+16", "1.0e-07", ".inf", "-.inf", ".nan"],
        )
        with self.assertRaisesRegex(TypeError, "True as a parameter"):
            written(True)

    def test_wrong_arguments_fail_where_they_stand(self) -> None:
        with self.assertRaisesRegex(TypeError, "want operators, as millrace.operators.fill_null"):
            Pipeline().dense("x", ops=["log"])  # type: ignore[list-item]
        with self.assertRaisesRegex(TypeError, "a column is 3, want text"):
            Pipeline().dense(["x", 3])  # type: ignore[list-item]
        with self.assertRaisesRegex(TypeError, "inputs is 'ab', want several names"):
            Pipeline().value("v", inputs="ab")
        with self.assertRaisesRegex(TypeError, "an input is 3, want text"):
            Pipeline().sparse(inputs=["x", 3])  # type: ignore[list-item]

        p = Pipeline()
        with self.assertRaisesRegex(TypeError, "name is 3, want text"):
            p.vocabulary(3)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "joint is 1, want True or False"):
            p.vocabulary("v", joint=1)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "base is True, want a whole number"):
            p.vocabulary("v", base=True)
        with self.assertRaisesRegex(TypeError, "rare_id is 1.5, want a whole number"):
            p.vocabulary("v", rare_id=1.5)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "unknown is 0, want text"):
            p.vocabulary("v", unknown=0)  # type: ignore[arg-type]
        self.assertEqual(p.vocabularies, [], "what is refused is not added")

        with self.assertRaisesRegex(TypeError, "3 is not a filter, as millrace.filters.column"):
            p.filter(3)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "'x' is not a filter"):
            all_of(column("a", eq=1), "x")  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "name is 3, want text"):
            column(3, eq=1)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "null is 1, want True or False"):
            column("a", null=1)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "one_of is '12', want numbers"):
            column("a", one_of="12")  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "key is None, want text"):
            sampling(None, rate=0.5)  # type: ignore[arg-type]
        with self.assertRaisesRegex(TypeError, "join filters with"):
            column("a", eq=1) and column("b", eq=1)
        self.assertIsNone(p.row_filter)
        with self.assertRaisesRegex(TypeError, "summary is 3, want text"):
            p.statistics("s", summary=3)  # type: ignore[arg-type]
        self.assertEqual(p.named_statistics, [])

    def test_filters_and_statistics_are_the_documents_words(self) -> None:
        p = Pipeline().dense("x", ops=[normalize(statistics="s")])
        first = column("a b", ge=-1, lt=2.5, one_of=[1, 4], null=False)
        p.filter(first & ~sampling("row", rate=1, salt=7) | column("x", eq=0))
        p.statistics("s", {"x": {"mean": 1, "deviation": 0.5}}, summary="ab").statistics("t")
        self.assertEqual(
            p.to_yaml().split("statistics: s}]\n")[1],
            "statistics: {s: {summary: ab, values: {x: {mean: 1, deviation: 0.5}}}, t: {}}\n"
            'filter: {any: [{all: [{column: "a b", lt: 2.5, ge: -1, in: [1, 4], "null": false}, '
            "{not: {sampling: {key: row, rate: 1.0, salt: 7}}}]}, {column: x, eq: 0}]}\n",
        )
        self.assertEqual(p.locate("filter.all[0].in"), p.locate("filter"))
        self.assertEqual(p.locate("statistics.s.values"), p.named_statistics[0].place)
        self.assertIsNotNone(p.locate("filter"))
        self.assertIsNone(Pipeline().locate("filter"))

        p = Pipeline().filter(column("a", eq=1)).filter(column("b", eq=2) | column("c", eq=3))
        p.filter(column("d", eq=4))
        self.assertEqual(
            p.to_yaml().splitlines()[-1],
            "filter: {all: [{column: a, eq: 1}, {any: [{column: b, eq: 2}, {column: c, eq: 3}]}, {column: d, eq: 4}]}",
            "every filter holds",
        )
        lines = [p.locate(f"filter.all[{i}].eq").line for i in range(3)]  # type: ignore[union-attr]
        self.assertEqual(lines, [lines[0], lines[0], lines[0] + 1])

    def test_vocabularies_are_written_without_their_defaults(self) -> None:
        p = Pipeline().vocabulary("all", order="count", joint=True, base=5, null_id=-1, rare_id=0, oov_buckets=3)
        p.vocabulary("rest", min_count=2, max_size=7, unknown="drop").vocabulary("a b").vocabulary("no", min_count=1)
        self.assertEqual(
            p.to_yaml(),
            "batch: 8192\nvocabularies:\n"
            "  all: {order: count, joint: true, base: 5, null_id: -1, rare_id: 0, oov_buckets: 3}\n"
            "  rest: {min_count: 2, max_size: 7, unknown: drop}\n"
            '  "a b": {}\n  "no": {}\n',
        )

    def test_every_operator_is_a_documented_function(self) -> None:
        self.assertGreaterEqual(len(operators.__all__), 10)
        for name in operators.__all__:
            function = getattr(operators, name)
            self.assertGreater(len(inspect.getdoc(function) or ""), 40, name)
            arguments: dict[str, Any] = {
                p.name: 1 for p in inspect.signature(function).parameters.values() if p.default is p.empty
            }
            made = function(**arguments)
            self.assertIsInstance(made, Operator)
            self.assertEqual(made.name, name)

    def test_explain_puts_lines_of_python_into_messages(self) -> None:
        p = Pipeline().label("y")
        p.dense("x", ops=[log()])
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        self.assertEqual(
            p.explain("pipeline: line 3:5: dense[0].ops[0]: wrong; pipeline: line 1:2: label.column: y; sparse[7]: ?"),
            f"pipeline: {__file__}:{line}: dense[0].ops[0]: wrong; pipeline: {__file__}:{line - 1}: label.column: y; "
            "sparse[7]: ?",
        )
        p.vocabulary("v").vocabulary("v.w").vocabulary("a b")
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        for path in ("vocabularies.v", "vocabularies.v.base", "vocabularies.v.w.base", "vocabularies.a b"):
            self.assertEqual(p.explain(f"line 7:3: {path}: no"), f"{__file__}:{line}: {path}: no")
        for path in ("vocabularies.vw", "vocabularies.u", "vocabularies"):
            self.assertEqual(p.explain(f"{path}: no"), f"{path}: no")
        p.value("v", "x")
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        self.assertEqual(p.explain("values[0].from: no; values[1]: ?"), f"{__file__}:{line}: values[0].from: no; values[1]: ?")

    def test_submit_takes_a_pipeline(self) -> None:
        p = Pipeline("mine").dense("x", ops=[log()])
        with Control("http://127.0.0.1:1") as control:
            with mock.patch.object(control, "call", return_value={"job": {"id": "j"}}) as call:
                control.submit({"pipeline": p})
            sent = call.call_args.args[1]["spec"]["pipeline"]
            self.assertEqual(sent, millrace.control.b64(p.to_yaml().encode()))
            refused = ServiceError("invalid_argument", "pipeline: line 3:5: dense[0]: it is wrong")
            with mock.patch.object(control, "call", side_effect=refused):
                with self.assertRaisesRegex(ServiceError, r"test_pipeline.py:\d+: dense\[0\]: it is wrong"):
                    control.submit({"pipeline": p})

    def test_no_binary(self) -> None:
        with mock.patch.dict(os.environ, {"MILLRACE_BIN": "/nowhere/millrace"}):
            self.assertRaisesRegex(BinaryError, "MILLRACE_BIN is /nowhere/millrace", binary.find)
        with mock.patch.dict(os.environ, {"PATH": ""}):
            os.environ.pop("MILLRACE_BIN", None)
            held = pathlib.Path(binary.__file__).parent / "_bin" / "millrace"
            if not held.exists():
                self.assertRaisesRegex(BinaryError, "there is no millrace binary", binary.find)


@unittest.skipUnless(MILLRACE, "wants MILLRACE_BIN")
class Checked(unittest.TestCase):
    """Tests of pipelines that the binary checks."""

    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.home = pathlib.Path(folder.name)
        cls.run_binary("dataset", "generate", "--rows", "60", "--out", str(cls.home / "day, one"), "--progress", "none")
        cls.data = cls.home / "day, one" / "part-00000.parquet"

    @classmethod
    def run_binary(cls, *arguments: str) -> str:
        done = subprocess.run([MILLRACE, *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def job_digest(self, document: str) -> str:
        """The digest of the job of a document over the data."""
        path, out = self.home / "p.yaml", self.home / "tensors.arrow"
        path.write_text(document)
        out.unlink(missing_ok=True)
        printed = self.run_binary(
            "preprocess", "--pipeline", str(path), '--in="' + str(self.data) + '"', "--engine", "cpu", "--slm", "32MiB",
            "--format", "arrow", "--out", str(out), "--output", "json", "--progress", "none",
        )  # fmt: skip
        return str(json.loads(printed)["job"])

    def test_the_job_is_that_of_the_document_written_by_hand(self) -> None:
        self.assertEqual(self.job_digest(rm1().to_yaml()), self.job_digest(RM1))
        self.assertEqual(Pipeline.from_yaml(RM1).check(self.data), rm1().check(self.data))
        self.assertNotEqual(self.job_digest(rm1().to_yaml()), self.job_digest(RM1.replace("add: 1}", "add: 2}")))

    def test_reads_texts_files_and_names(self) -> None:
        path = self.home / "rm1.yaml"
        path.write_text(RM1)
        for document in (RM1, path, str(path), "rm1", rm1().to_yaml()):
            self.assertEqual(Pipeline.from_yaml(document), rm1(), document)

    def test_documents_are_read_back(self) -> None:
        """A document that a pipeline writes is read back to an equal pipeline, and its check against data gives the
        same digest as that of the pipeline in JSON, which another writer wrote.
        """
        draw = random.Random(7)
        for _ in range(12):
            p = Pipeline(
                draw.choice(["", "a b", "é\n"]),
                batch=draw.choice([8192, 1, 300]),
                ids=draw.choice(["int64", "auto"]),
                dense_type=draw.choice(["float32", "bfloat16"]),
            )
            by_hand: dict[str, Any] = {"batch": p.batch} if p.batch != 8192 else {}
            if p.ids != "int64":
                by_hand["ids"] = p.ids
            if p.dense_type != "float32":
                by_hand["dense_type"] = p.dense_type
            if draw.random() < 0.5:
                p.label("label", ops=[clamp(max=1)])
                by_hand["label"] = {"column": "label", "ops": [{"clamp": {"max": 1}}]}
            low = draw.randrange(12)
            value = draw.choice([0, -1, 2**53 + 1])
            p.dense(f"int_{low}..int_12", ops=[fill_null(value), log(add=1)], name="d_{i}")
            by_hand["dense"] = [
                {"columns": [f"int_{low}..int_12"], "as": "d_{i}", "ops": [{"fill_null": value}, {"log": {"add": 1}}]}
            ]
            modulus = draw.randrange(1, 10**6)
            together = draw.random() < 0.5
            absent: Any = draw.choice(["allow", "fail"])
            p.sparse(["cat_*"], ops=[positive_modulus(modulus)], deduplicate=together, absent=absent)
            by_hand["sparse"] = [{"columns": ["cat_*"], "ops": [{"positive_modulus": {"modulus": modulus}}]}]
            if together:
                by_hand["sparse"][0]["deduplicate"] = True
            if absent == "allow":
                by_hand["sparse"][0]["absent"] = absent
            if draw.random() < 0.5:
                p.value("pairs", inputs=["cat_0", "cat_1"], ops=[cartesian(max_length=7)], absent=absent)
                p.value("small", "pairs", ops=[positive_modulus(10)])
                p.sparse(inputs=["pairs", "small"], name="crossed", ops=[cartesian(), positive_modulus(modulus)])
                by_hand["values"] = [
                    {"as": "pairs", "inputs": ["cat_0", "cat_1"], "ops": [{"cartesian": {"max_length": 7}}]},
                    {"as": "small", "from": "pairs", "ops": [{"positive_modulus": 10}]},
                ]
                if absent == "allow":
                    by_hand["values"][0]["absent"] = absent
                crossed = {"as": "crossed", "inputs": ["pairs", "small"]}
                by_hand["sparse"].append({**crossed, "ops": ["cartesian", {"positive_modulus": {"modulus": modulus}}]})
            if draw.random() < 0.5:
                count = draw.randrange(1, 4)
                p.sparse("cat_3", ops=[fill_null(0), vocabulary("seen")], name="place")
                p.vocabulary("seen", order="count", min_count=count, unknown="drop", joint=draw.random() < 0.5)
            borders = sorted(draw.choice([-1.5, 0, 3, 1e10, float("inf")]) for _ in range(draw.randrange(1, 6)))
            side = draw.choice(["left", "right"])
            p.generated("int_0", name="b", ops=[fill_null(0), bucketize(borders, side=side)])  # type: ignore[arg-type]
            finite = [x for x in borders if x != float("inf")]
            if finite == borders:
                by_hand["generated"] = [
                    {
                        "columns": ["int_0"],
                        "as": "b",
                        "ops": [{"fill_null": {"value": 0}}, {"bucketize": {"borders": borders, "side": side}}],
                    }
                ]
            if finite == borders and not p.vocabularies:
                by_hand_digest = self.job_digest(json.dumps(by_hand))
                self.assertEqual(self.job_digest(p.to_yaml()), by_hand_digest, p.to_yaml())
            self.assertEqual(Pipeline.from_yaml(p.to_yaml()), p)

    def test_the_keys_of_a_table_of_texts_stay_texts(self) -> None:
        p = Pipeline().label("answer", ops=[operators.map_text({"yes": 1, "1": -5, "null": 3, "é": 0}, default=7)])
        self.assertIn('{table: {"1": -5, "null": 3, "yes": 1, "é": 0}, default: 7}', p.to_yaml())
        self.assertEqual(Pipeline.from_yaml(p.to_yaml()), p)

    def test_vocabularies_are_those_of_the_document_written_by_hand(self) -> None:
        document = """\
label: {column: label}
sparse:
  - columns: [cat_0..cat_2]
    ops: [fill_null: 0, positive_modulus: 7, vocabulary: seen]
  - columns: [cat_3]
    ops: [fill_null: 0, vocabulary: counted]
vocabularies:
  seen:
  counted: {order: count, base: 2, rare_id: 1, min_count: 2}
"""
        p = Pipeline().label("label")
        p.sparse("cat_0..cat_2", ops=[fill_null(0), positive_modulus(7), vocabulary("seen")])
        p.sparse("cat_3", ops=[fill_null(0), vocabulary("counted")])
        p.vocabulary("seen").vocabulary("counted", order="count", base=2, rare_id=1, min_count=2)
        self.assertEqual(Pipeline.from_yaml(document), p)
        path = self.home / "vocabularies.yaml"
        path.write_text(p.to_yaml())
        files = {}
        for name in ("seen", "counted"):
            files[name] = str(self.home / f"{name}.vocab")
            self.run_binary(
                "vocabulary", "build", "--pipeline", str(path), "--name", name, f'--in="{self.data}"',
                "--out", files[name], "--progress", "none",
            )  # fmt: skip
        read = []
        for pipeline in (p, document):
            with millrace.open([self.data], pipeline, batch=60, vocabularies=files, tensors="views") as job:
                read += [(str(mb.name), mb.values.tolist()) for mb in job]
        self.assertEqual(len(read), 2)
        self.assertEqual(read[0], read[1])
        self.assertLess(max(read[0][1][:180]), 7)
        checked = p.check(self.data, vocabularies=files)
        self.assertEqual([key.name for key in checked.keys], ["cat_0", "cat_1", "cat_2", "cat_3"])
        self.assertEqual(checked, Pipeline.from_yaml(document).check(self.data, vocabularies=files))
        with self.assertRaisesRegex(PipelineError, "vocabular"):
            p.check(self.data, vocabularies={"seen": files["seen"]})
        with self.assertRaisesRegex(millrace.OptionsError, "want a mapping of names to files"):
            p.check(self.data, vocabularies=[files["seen"]])  # type: ignore[arg-type]

    def test_filters_are_those_of_the_document_written_by_hand(self) -> None:
        def rows(pipeline: Any) -> list[Any]:
            with millrace.open([self.data], pipeline, batch=60, tensors="views") as job:
                return [(str(mb.name), mb.dense.tolist()) for mb in job]

        draw = random.Random(12)

        def drawn(depth: int) -> tuple[Filter, dict[str, Any]]:
            kind = draw.choice(["all", "any", "not", "test", "test", "sampling"] if depth < 4 else ["test", "sampling"])
            if kind in ("all", "any"):
                parts = [drawn(depth + 1) for _ in range(draw.randrange(1, 4))]
                joined = all_of if kind == "all" else any_of
                return joined(*(f for f, _ in parts)), {kind: [d for _, d in parts]}
            if kind == "not":
                f, d = drawn(depth + 1)
                return ~f, {"not": d}
            if kind == "sampling":
                key, rate, salt = draw.choice(["row", "cat_1"]), draw.random(), draw.randrange(-5, 5)
                return sampling(key, rate=rate, salt=salt), {"sampling": {"key": key, "rate": rate, "salt": salt}}
            tests: dict[str, Any] = {draw.choice(["eq", "ne", "lt", "le", "gt", "ge"]): draw.randrange(0, 40)}
            if draw.random() < 0.3:
                tests["in"] = [draw.randrange(0, 40) for _ in range(20)]
            by_hand = {"column": "int_1", **tests}
            if "in" in tests:
                tests["one_of"] = tests.pop("in")
            return column("int_1", **tests), by_hand

        different = set()
        for turn in range(25):
            chosen, by_hand = drawn(0)
            p = Pipeline().dense("int_0", ops=[fill_null(0)]).filter(chosen)
            document = {"batch": 8192, "dense": [{"columns": ["int_0"], "ops": [{"fill_null": 0}]}], "filter": by_hand}
            self.assertEqual(Pipeline.from_yaml(json.dumps(document)), p, p.to_yaml())
            self.assertEqual(Pipeline.from_yaml(p.to_yaml()), p)
            if turn % 5 == 0:
                try:
                    found = rows(p)
                except PipelineError:  # no row passes
                    continue
                self.assertEqual(found, rows(json.dumps(document)))
                different.add(sum(len(dense) for _, dense in found))
        self.assertGreater(len(different), 1)

    def test_errors_name_the_line_of_a_filter(self) -> None:
        p = Pipeline().dense("int_0", ops=[fill_null(0), normalize(statistics="s")])
        p.filter(any_of(column("int_1", eq=1), sampling("row", rate=2)))
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        p.statistics("s").statistics("unused")
        with self.assertRaises(PipelineError) as caught:
            p.check()
        found = sorted((problem.path, problem.file, problem.line) for problem in caught.exception.problems)
        self.assertEqual(
            found, [("filter.any[1].sampling", __file__, line), ("statistics.unused", __file__, line + 2)]
        )
        message = "line 3:9: filter.any[1].sampling: wrong value; statistics.unused: no use"
        places = f"{__file__}:{line}", f"{__file__}:{line + 2}"
        explained = "{}: filter.any[1].sampling: wrong value; {}: statistics.unused: no use".format(*places)
        self.assertEqual(p.explain(message), explained)
        p = Pipeline().dense("int_0", ops=[fill_null(0)]).filter(column("int_99", eq=1))
        with self.assertRaises(PipelineError) as caught:
            p.check(self.data)
        self.assertEqual(caught.exception.problems[0].file, __file__)

    def test_statistics_of_a_summary(self) -> None:
        p = Pipeline().label("label").dense("int_0", ops=[fill_null(0), clamp(min=0), normalize(statistics="train")])
        p.dense("int_1", ops=[min_max(statistics="train"), fill_null(0)]).statistics("train")
        path, summary = self.home / "statistics.yaml", str(self.home / "train.summary")
        path.write_text(p.to_yaml())
        named = ["--pipeline", str(path), f'--in="{self.data}"', "--out", summary]
        self.run_binary("dataset", "summarize", *named, "--progress", "none")
        self.assertEqual(Pipeline.from_yaml(p.to_yaml()), p)
        read = []
        for pipeline in (p, str(path)):
            with millrace.open([self.data], pipeline, batch=60, statistics={"train": summary}, tensors="views") as job:
                read.append([(str(mb.name), mb.dense.tolist()) for mb in job])
        self.assertEqual(read[0], read[1])
        whole = Pipeline.from_yaml(bound(p.to_yaml(), p, {"train": summary}))
        values = dict(whole.named_statistics[0].values or ())
        self.assertEqual(len(values), 2)
        self.assertEqual(len(whole.named_statistics[0].summary), 64)
        self.assertEqual(Pipeline.from_yaml(whole.to_yaml()), whole)
        with millrace.open([self.data], whole, batch=60, tensors="views") as job:
            self.assertEqual([(str(mb.name), mb.dense.tolist()) for mb in job], read[0])
        checked = p.check(self.data, statistics={"train": summary})
        self.assertEqual(checked.digest, whole.check(self.data).digest)
        with self.assertRaisesRegex(PipelineError, 'the summary "train" is not given'):
            p.check(self.data)
        with self.assertRaisesRegex(millrace.OptionsError, "no statistics"):
            millrace.open([self.data], p, statistics={"trial": summary}, tensors="views").__enter__()
        with self.assertRaisesRegex(PipelineError, 'no statistics "trial"'):
            bound(p.to_yaml(), p, {"trial": summary})
        with self.assertRaisesRegex(millrace.OptionsError, "want a mapping of names to files"):
            p.check(self.data, statistics=[summary])  # type: ignore[arg-type]

    def test_errors_name_the_line_of_a_vocabulary(self) -> None:
        p = Pipeline().sparse("cat_0", ops=[fill_null(0), vocabulary("seen")])
        p.vocabulary("seen", base=-1)
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        p.vocabulary("unused")
        with self.assertRaises(PipelineError) as caught:
            p.check()
        found = [(problem.path, problem.file, problem.line) for problem in caught.exception.problems]
        self.assertIn(("vocabularies.seen.base", __file__, line), found)
        p.vocabularies.pop(0)
        p.vocabulary("seen", unknown="bucket")
        line = inspect.currentframe().f_lineno - 1  # type: ignore[union-attr]
        with self.assertRaises(PipelineError) as caught:
            p.check()
        found = [(problem.path, problem.file, problem.line) for problem in caught.exception.problems]
        self.assertEqual(
            sorted(found), [("vocabularies.seen", __file__, line), ("vocabularies.unused", __file__, line - 6)]
        )

    def test_features_are_known_before_the_first_mini_batch(self) -> None:
        found = rm1().check(self.data)
        self.assertEqual(found.dense, tuple(f"int_{i}" for i in range(13)))
        self.assertEqual([k.name for k in found.keys][25:27], ["cat_25", "bucket_0"])
        self.assertEqual({k.num_embeddings for k in found.keys}, {500_000})
        self.assertEqual(len(found.digest), 64)
        self.assertEqual(rm1().check().dense, ())

    def test_errors_name_the_line_of_python(self) -> None:
        p = rm1()
        p.sparse(
            "cat_0",
            ops=[clamp()],
        )
        line = inspect.currentframe().f_lineno - 4  # type: ignore[union-attr]
        with self.assertRaises(PipelineError) as caught:
            p.check()
        (problem,) = caught.exception.problems
        self.assertEqual((problem.file, problem.path), (__file__, "sparse[1].ops[0].clamp"))
        self.assertIn(problem.line, range(line, line + 4))
        self.assertEqual(str(caught.exception), f"{__file__}:{problem.line}: {problem.message}")

        p = Pipeline().dense("int_0", ops=[hex_to_int()]).sparse("cat_0", ops=[firstx(3)])
        with self.assertRaises(PipelineError) as caught:
            p.check(self.data)
        self.assertEqual(len(caught.exception.problems), 2)
        self.assertIn("hex_to_int takes strings", str(caught.exception))

    def test_errors_name_the_line_of_the_document(self) -> None:
        path = self.home / "wrong.yaml"
        path.write_text("name: x\ndense:\n  - columns: [x]\n    opps: []\n")
        with self.assertRaisesRegex(PipelineError, r"wrong.yaml:4: .*dense\[0\].opps: unknown key"):
            Pipeline.from_yaml(path)
        with self.assertRaisesRegex(PipelineError, r"^line 4: "):
            Pipeline.from_yaml(path.read_text())
        with self.assertRaisesRegex(PipelineError, "no such file"):
            Pipeline.from_yaml(self.home / "none.yaml")
        with self.assertRaisesRegex(PipelineError, "no such file"):
            rm1().check(self.home / "none.parquet")


if __name__ == "__main__":
    unittest.main()
