"""The comparison makes the same mini-batches on both sides and reports where they differ. No test checks the speeds."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import json
import math
import os
import pathlib
import tempfile
import unittest
from datetime import datetime, timedelta, timezone
from decimal import Decimal
from typing import Any, Optional

try:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as pq

    from millrace import compare as module
    from millrace.compare import Difference, compare, difference, main, table
except ImportError as e:
    raise unittest.SkipTest(f"pyarrow and NumPy are not installed: {e}") from None

from millrace import Pipeline
from millrace.operators import (
    box_cox,
    bucketize,
    cast,
    clamp,
    decimal,
    fill_nan,
    fill_null,
    firstx,
    fixed_length,
    get_local_hour,
    hash_bytes,
    hex_to_int,
    list_length,
    list_slice,
    log,
    logit,
    map_id,
    map_text,
    ngram,
    positive_modulus,
    sigrid_hash,
    split,
    text_to_int,
    text_to_seconds,
    to_days,
    to_seconds,
    unpack,
    unsigned_modulus,
    zero_extend,
)
from millrace.pipeline import LogSpaced

MILLRACE = os.environ.get("MILLRACE_BIN", "")
ROWS = 1000


def columns() -> dict[str, Any]:
    """Returns columns with nulls, NaN, infinities, empty lists and lists of nulls."""
    draw = np.random.default_rng(7)
    whole = draw.integers(-(2**31), 2**31, ROWS)
    odd = [None, math.nan, math.inf, -math.inf, -0.0, 0.0, 1.5, 1e-30]
    real = [odd[i] if i < len(odd) else float(draw.normal() * 100) for i in draw.integers(0, 30, ROWS)]
    lists = [
        None if n == 0 else [None if v % 11 == 0 else int(v) for v in draw.integers(-(2**60), 2**60, n - 1)]
        for n in draw.integers(0, 6, ROWS)
    ]
    text = [None if v % 7 == 0 else "" if v % 7 == 1 else f"{v % 2**32:x}" for v in draw.integers(0, 2**40, ROWS)]
    words = [None if i % 13 == 0 else ("é" * (i % 300) + str(i % 500)) for i in range(ROWS)]
    tags = [
        None if i % 7 == 0 else [None if (i + j) % 19 == 0 else "tag" * j for j in range(i % 4)] for i in range(ROWS)
    ]
    return {
        "label": pa.array([None if i % 9 == 0 else i % 2 for i in range(ROWS)], pa.int8()),
        "whole": pa.array([None if i % 5 == 0 else int(v) for i, v in enumerate(whole)], pa.int32()),
        "wide": pa.array(draw.integers(-(2**63), 2**63 - 1, ROWS), pa.int64()),
        "unsigned": pa.array(draw.integers(0, 2**63 - 1, ROWS, dtype=np.uint64) * np.uint64(2), pa.uint64()),
        "real": pa.array(real, pa.float32()),
        "double": pa.array(real, pa.float64()),
        "yes": pa.array([i % 3 == 0 for i in range(ROWS)]),
        "list": pa.array(lists, pa.list_(pa.int64())),
        "text": pa.array(text, pa.string()),
        "words": pa.array(words, pa.string()),
        "decimal_text": pa.array(
            [None if i % 8 == 0 else "" if i % 8 == 1 else f"{v:+d}" for i, v in enumerate(whole)]
        ),
        "time_text": pa.array([time_text(i, int(v)) for i, v in enumerate(whole)]),
        "tags": pa.array(tags, pa.list_(pa.string())),
        **annotated(draw),
    }


def time_text(i: int, seconds: int) -> Optional[str]:
    """Returns the text of a time, in one of several forms."""
    at = datetime.fromtimestamp(seconds, timezone.utc) + timedelta(microseconds=i)
    return [
        None,
        "",
        at.date().isoformat(),
        at.isoformat(),
        at.isoformat(" "),
        at.strftime("%Y-%m-%d %H:%M:%S"),
        at.astimezone(timezone(timedelta(hours=-7, minutes=-30))).isoformat(" "),
        at.strftime("%Y-%m-%dT%H:%M:%S.25Z"),
        at.strftime("%Y-%m-%d %H:%M:%S%z"),
    ][i % 9]


def annotated(draw: Any) -> dict[str, Any]:
    """Returns columns of times, decimals and float16, with nulls."""

    def some(values: Any, kind: Any) -> Any:
        return pa.array([None if i % 6 == 0 else v for i, v in enumerate(values)], pa.int64()).cast(kind)

    stamps = [int(v) for v in draw.integers(-(2**61), 2**61, ROWS)]
    unscaled = [int(v) for v in draw.integers(-(2**50), 2**50, ROWS)]
    halves = draw.normal(size=ROWS).astype(np.float16)
    return {
        "nanos": some(stamps, pa.timestamp("ns")),
        "micros": some(stamps, pa.timestamp("us", "UTC")),
        "millis": some(stamps, pa.timestamp("ms")),
        "noon": pa.array([v % (86400 * 10**6) for v in stamps], pa.int64()).cast(pa.time64("us")),
        "date": pa.array([None if v % 6 == 0 else v % 2**31 - 2**30 for v in stamps], pa.int32()).cast(pa.date32()),
        "price": pa.array([None if v % 6 == 0 else Decimal(v).scaleb(-4) for v in unscaled], pa.decimal128(22, 4)),
        "half": pa.array(halves, pa.float16()),
        "packed": pa.array(
            [None if i % 9 == 0 else draw.normal(size=i % 4).astype("<f4").tobytes() for i in range(ROWS)], pa.binary()
        ),
        "embedding": pa.array(list(draw.normal(size=(ROWS, 4))), pa.list_(pa.float64())),
        "halves": pa.array([list(halves[i : i + i % 4]) for i in range(ROWS)], pa.list_(pa.float16())),
    }


def everything() -> Pipeline:
    """Returns a pipeline with every operator on every kind of column that takes it, but without logarithms, which NumPy
    rounds differently.
    """
    hashed = sigrid_hash(salt=-5, max=1000)
    return (
        Pipeline("everything", batch=64)
        .label("label", null=-1)
        .dense(["whole", "real", "double"], ops=[fill_null(7), clamp(min=-50, max=60)], nan="keep")
        .dense("double", name="filled", ops=[fill_nan(3), fill_null(7)])
        .dense(["wide", "yes"], ops=[fill_null(0)])
        .sparse(["whole", "unsigned", "wide", "yes"], ops=[hashed])
        .sparse("whole", name="modulus", ops=[zero_extend(), positive_modulus(977)])
        .sparse("list", ops=[firstx(2), hashed])
        .sparse("list", name="filled", ops=[fill_null(3), positive_modulus(97), firstx(3)])
        .sparse("list", name="as it is")
        .sparse("list", name="windows", ops=[ngram(2), hashed])
        .sparse("list", name="three", ops=[ngram(3)])
        .sparse("list", name="listed", ops=[ngram(3, mode="rap"), hashed])
        .sparse("text", ops=[hex_to_int()])
        .sparse(["real", "double"], name="{column}_whole", ops=[cast("int64", overflow="as_null")])
        .sparse("double", name="double_bits", ops=[cast("float64_bits"), hashed])
        .sparse("unsigned", name="unsigned_whole", ops=[cast("int64", overflow="as_null")])
        .dense("unsigned", name="unsigned_32", ops=[cast("float32"), fill_null(0)])
        .dense("wide", name="wide_twice", ops=[cast("float64"), fill_null(0.5), cast("float32")])
        .sparse("decimal_text", ops=[text_to_int()])
        .sparse("time_text", ops=[text_to_seconds(offset="-05:30"), positive_modulus(86400)])
        .dense("decimal_text", name="decimal_number", ops=[text_to_int(), fill_null(-1)])
        .sparse("list", name="last", ops=[list_slice(start=-2, pad=7)])
        .sparse("list", name="inner", ops=[list_slice(start=1, end=-1)])
        .sparse("list", name="mapped", ops=[map_id([4, 5, 6], default=9)])
        .sparse(["words", "tags"], name="{column}_table", ops=[map_text({"": 3, "tag": 1, "é1": 2}, default=-1)])
        .sparse("words", name="known", ops=[map_text({"é1": 1, "300": 2}, unknown="as_null"), fill_null(5)])
        .sparse("list", name="pairs", ops=[positive_modulus(50), map_id({7: 1, 3: 2, 49: 3})])
        .sparse("list", name="hours", ops=[get_local_hour(zone="America/St_Johns")])
        .sparse("list", name="later", ops=[get_local_hour(offset="-05:30"), fill_null(0)])
        .sparse(["text", "words", "tags"], name="{column}_xxh3", ops=[hash_bytes("xxh3"), hashed])
        .sparse(["words", "tags"], name="{column}_spark", ops=[hash_bytes("murmur3_32"), fill_null(0)])
        .sparse(["words", "tags"], name="{column}_farm", ops=[hash_bytes("farmhash64"), positive_modulus(977)])
        .sparse(["words", "tags"], name="{column}_fast", ops=[hash_bytes("farmhash64"), unsigned_modulus(977)])
        .sparse("words", name="parts", ops=[split(separator="éé"), hash_bytes("xxh3"), hashed])
        .sparse("text", name="digits", ops=[split(separator="a", empty="keep"), hex_to_int(), fill_null(-1)])
        .sparse("tags", name="tag_count", ops=[list_length()])
        .dense("text", name="digit_count", ops=[split(separator="0"), list_length()])
        .dense("list", name="length", ops=[list_length()])
        .dense("list", name="length_with_nulls", ops=[fill_null(0), list_length()])
        .dense("price", name="price_32", ops=[decimal("float32"), fill_null(-1)])
        .dense("price", name="price_64", ops=[decimal("float64"), fill_null(-1), clamp(min=0)])
        .dense(["half", "date"], ops=[fill_null(2)])
        .dense(["nanos", "micros", "millis", "date"], name="{column}_days", ops=[fill_null(-7), to_days()])
        .sparse(["nanos", "micros", "millis", "date", "noon"], name="{column}_seconds", ops=[to_seconds()])
        .dense("halves", ops=[fixed_length(3, pad=-1.5)])
        .dense("list", name="first", ops=[fill_null(1), firstx(2), fixed_length(2, pad=0)])
        .dense("embedding", ops=[fixed_length(4)])
        .dense("packed", ops=[unpack("float32"), fixed_length(3, pad=0.5)])
        .sparse("wide", name="wide_days", ops=[to_days(unit="micros")])
        .sparse("price", name="unscaled", ops=[decimal("int64"), fill_null(0)])
        .generated("halves", name="buckets", ops=[bucketize([-1, 0, 1])])
        .generated("real", name="left", ops=[fill_null(0), bucketize([-1, 0, 0, 1.5], nan="last")])
        .generated("double", name="right", ops=[bucketize([-1, 0, 1.5, math.inf], side="right", compare="float64")])
        .generated("real", name="one", ops=[bucketize([0.5])])
        .generated("whole", name="spaced", ops=[bucketize(LogSpaced(1, 1e9, 50), nan="first")])
        .generated("wide", name="exact", ops=[bucketize([-(2**60), 0, 2**60 + 1], compare="int64")])
    )


class Differences(unittest.TestCase):
    def test_counts_and_distances(self) -> None:
        x = np.array([1, -1, 0, 5], np.float32)
        y = np.array([np.nextafter(np.float32(1), np.float32(2)), -1, 0, 5], np.float32)
        self.assertEqual(difference("dense", x, x), Difference("dense", 4, 0, 0))
        self.assertEqual(difference("dense", x, y), Difference("dense", 4, 1, 1))
        self.assertEqual(difference("dense", x * 0, -x * 0).different, 4, "the sign of a zero is a bit")
        y[0] = math.nan
        self.assertEqual(difference("dense", x, y), Difference("dense", 4, 1, None))
        tiny = np.array([1e-45, -1e-45], np.float32)
        self.assertEqual(difference("dense", tiny, tiny[::-1]), Difference("dense", 2, 2, 2))

    def test_bits_of_bfloat16(self) -> None:
        x = np.array([0x3F80, 0x8001, 0x7F80], np.uint16)
        y = np.array([0x3F82, 0x0001, 0x7F80], np.uint16)
        self.assertEqual(difference("dense", x, x), Difference("dense", 3, 0, 0))
        self.assertEqual(difference("dense", x, y), Difference("dense", 3, 2, 2))
        self.assertEqual(difference("dense", x, np.array([0x7FC0, 0x8001, 0x7F80], np.uint16)).greatest_ulp, None)

    def test_other_shapes_and_types(self) -> None:
        x = np.arange(4)
        self.assertEqual(difference("values", x, x[:3]), Difference("values", 4, 4, None))
        self.assertEqual(difference("values", x, x.astype(np.int32)).different, 4)
        self.assertEqual(difference("lengths", None, x), Difference("lengths", 4, 4, None))
        self.assertEqual(difference("values", x, np.array([0, 1, 2, 4])), Difference("values", 4, 1, 0))


@unittest.skipUnless(MILLRACE, "wants MILLRACE_BIN")
class OfAFile(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.file = str(pathlib.Path(folder.name) / "day, 0.parquet")
        pq.write_table(pa.table(columns()), cls.file, row_group_size=300)

    def test_the_results_are_equal(self) -> None:
        for cores in (1, 2):
            before = os.sched_getaffinity(0)
            c = compare(self.file, everything(), turns=1, cores=cores)
            self.assertEqual(os.sched_getaffinity(0), before)
            self.assertEqual((c.rows, c.dense, c.keys, c.batch), (ROWS, 32, 52, 64))
            self.assertEqual([d.tensor for d in c.differences], ["label", "dense", "values", "lengths"])
            for d in c.differences:
                self.assertEqual(d.different, 0, d)
                self.assertGreaterEqual(d.compared, ROWS)

    def test_bfloat16_is_equal(self) -> None:
        p = Pipeline(ids="auto", dense_type="bfloat16").dense(["whole", "wide", "yes"], ops=[fill_null(0), clamp(min=-3)])
        p.sparse("wide", ops=[fill_null(0), positive_modulus(1000)])
        dense, values = compare(self.file, p, turns=1, batch=100).differences
        self.assertEqual((dense.different, values.different), (0, 0))
        self.assertGreaterEqual(dense.compared, 3 * ROWS)

    def test_logarithms_differ_by_a_unit_of_the_last_place_at_most(self) -> None:
        p = Pipeline().dense(["whole", "wide", "yes"], ops=[fill_null(0), clamp(min=0), log(add=1)])
        (d,) = compare(self.file, p, turns=1, batch=100).differences
        self.assertLessEqual(d.greatest_ulp or 0, 4, "NumPy's own bound")

    def test_logit_and_box_cox_differ_by_a_unit_of_the_last_place_at_most(self) -> None:
        p = Pipeline().dense(["whole", "wide", "yes"], ops=[fill_null(0), clamp(min=0), logit()])
        p.dense(["yes"], name="open", ops=[fill_null(0), logit(eps=-1)])
        p.dense(["whole", "wide"], name="{column}_caffe2", ops=[fill_null(0), clamp(min=0), box_cox(0.5, lambda2=1)])
        p.dense(["yes"], name="rap", ops=[fill_null(0), box_cox(0, mode="rap")])
        (d,) = compare(self.file, p, turns=1, batch=100).differences
        self.assertLessEqual(d.greatest_ulp or 0, 1, "NumPy works in float64 and rounds once more")

    def test_a_difference_is_told(self) -> None:
        p = Pipeline().dense("wide", ops=[fill_null(0)]).sparse("wide", ops=[positive_modulus(100)])
        c = compare(self.file, p, turns=1)
        told = (Difference("values", 1000, 3, 0), Difference("dense", 5, 0, 0))
        other = dataclasses.replace(c, differences=told)
        self.assertIn("The same bits: dense.", table(other))
        self.assertIn("Different: values: 3 of 1,000", table(other))

    def test_what_it_prints(self) -> None:
        def run(*arguments: str) -> tuple[int, str, str]:
            out, errors = io.StringIO(), io.StringIO()
            with contextlib.redirect_stdout(out), contextlib.redirect_stderr(errors):
                status = main([self.file, "--turns", "1", *arguments])
            return status, out.getvalue(), errors.getvalue()

        status, out, _ = run("--batch", "128")  # a draft
        self.assertEqual(status, 0)
        self.assertRegex(out, r"^day, 0.parquet: 1,000 rows, \d dense features, \d keys, mini-batches of 128; ")
        self.assertIn("pipeline: drafted by millrace pipeline init\n", out)
        self.assertRegex(out, r"\n1 of \d+ cores for each side; Python 3[^\n]*pyarrow [^\n]*, NumPy [^\n]*load average ")
        for side in (module.OURS, module.THEIRS):
            for cache in ("cold", "warm"):
                self.assertRegex(out, rf"\n{side.replace('+', '.')}, {cache} +[\d,]+ +\d+\.\d{{3}} +\d+\.\d{{3}}\n")
        self.assertIn("The same bits: ", out)
        status, out, _ = run("--output", "json")
        self.assertEqual(status, 0)
        document = json.loads(out)
        self.assertEqual([s["cache"] for s in document["speeds"]], ["cold", "cold", "warm", "warm"])
        for s in document["speeds"]:
            self.assertGreater(s["rows_per_second"], 0)
            self.assertLessEqual(s["first_seconds"], s["seconds"])
        status, _, errors = run("--pipeline", "rm1")
        self.assertEqual(status, 1)
        self.assertIn("missing column", errors)

    def test_a_column_without_values(self) -> None:
        # pandas writes a column of None with this type.
        path = self.file.replace("day, 0", "nulls")
        pq.write_table(pa.table({"y": pa.array([1, 0, 1], pa.int32()), "nothing": pa.nulls(3)}), path)
        p = Pipeline().label("y", null=0).dense("nothing", ops=[fill_null(7)])
        self.assertEqual([(d.tensor, d.different) for d in compare(path, p, turns=1).differences],
                         [("label", 0), ("dense", 0)])

    def test_what_cannot_be_compared(self) -> None:
        empty = self.file.replace("day, 0", "empty")
        pq.write_table(pa.table({"y": pa.array([], pa.float32()), "x": pa.array([], pa.int64())}), empty)
        for file, why in (
            (empty, "it has no rows"),
            ("nothing.parquet", "nothing.parquet: no such file"),
            (str(pathlib.Path(self.file).parent / "*.parquet"), "one Parquet file"),
        ):
            said = io.StringIO()
            with contextlib.redirect_stderr(said):
                self.assertEqual(main([file, "--turns", "1"]), 1)
            self.assertIn(why, said.getvalue())
            self.assertNotIn("Warning", said.getvalue())

    def test_a_small_file_is_said_to_be_small(self) -> None:
        c = compare(self.file, everything(), turns=1)

        def with_first(share: float) -> str:
            speeds = [dataclasses.replace(s, first_seconds=s.seconds * share) for s in c.speeds]
            return table(dataclasses.replace(c, speeds=tuple(speeds)))

        self.assertIn("too small", with_first(0.6))
        self.assertNotIn("too small", with_first(0.4))

    def test_maps_are_refused_by_name(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        path = folder.name + "/maps.parquet"
        pq.write_table(pa.table({"m": pa.array([[(1, 2)]], pa.map_(pa.int64(), pa.int64()))}), path)
        out = io.StringIO()
        with contextlib.redirect_stderr(out):
            pipeline = folder.name + "/p.yaml"
            pathlib.Path(pipeline).write_text('dense: [{columns: ["m[1]"], ops: [fill_null: 0]}]\n')
            self.assertEqual(main([path, "--pipeline", pipeline]), 1)
        self.assertIn("m[1]: a feature of the map m", out.getvalue())


if __name__ == "__main__":
    unittest.main()
