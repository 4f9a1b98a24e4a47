"""Fragments joined: the tensors of the whole mini-batch, whatever it was cut into."""

from __future__ import annotations

import os
import pathlib
import random
import struct
import unittest
from typing import Any, Optional, Sequence

from millrace import frame
from millrace.errors import FrameError
from millrace.frame import Fragment, MiniBatch, Name
from millrace.join import join
from millrace.pool import Pool
from millrace.schema import Key, Schema

from .fake import JOB

NAME = Name(JOB, 3, 7)
SCHEMAS = (
    Schema(label=True, dense=("a", "b", "c"), keys=(Key("x", 9), Key("y", 9, True)), ids="int64", weights=True),
    Schema(dense=("a", "b", "c"), keys=(Key("x", 9), Key("y", 9)), ids="int32", dense_type="bfloat16"),
    Schema(label=True),
    Schema(label=True, keys=(Key("x", 3, True, 1), Key("y", 3, False, 1), Key("z", 2, True), Key("w", 2, True, 2))),
    Schema(keys=(Key("x", 2, set=1), Key("y", 2), Key("z", 2, set=2), Key("w", 2, set=2)), ids="int32", weights=True),
    Schema(
        keys=(Key("x", 2, set=1), Key("y", 2, set=1), Key("z", 2, True), Key("w", 2, True, 2), Key("v", 2, set=2)),
        ids="int32",
        weights=True,
    ),
)

# A row: its label, its dense features (as bytes), and of each key its ids and their weights.
Row = tuple[float, bytes, list[tuple[list[int], list[float]]]]


def row(schema: Schema, r: random.Random) -> Row:
    size = 2 if schema.dense_type == "bfloat16" else 4
    keys = []
    for k in schema.keys:
        n = r.randrange(3) if k.is_list else 1
        keys.append(([r.randrange(k.num_embeddings) for _ in range(n)], [float(r.randrange(2)) for _ in range(n)]))
    return float(r.randrange(2)), r.randbytes(size * len(schema.dense)), keys


def encoded(schema: Schema, rows: Sequence[Row], fragment: Optional[Fragment] = None) -> bytes:
    """The frame of rows, made row by row from the definition. A whole mini-batch is deduplicated."""
    values: list[int] = []
    weights: list[float] = []
    lengths: list[int] = []
    inverse: list[int] = []
    unique: list[int] = []
    for i, k in enumerate(schema.keys):
        lists = [cells[i] for _, _, cells in rows]
        if k.set and fragment is None:
            members = [j for j, other in enumerate(schema.keys) if other.set == k.set]
            whole = [[cells[j] if schema.weights else cells[j][0] for j in members] for _, _, cells in rows]
            firsts = [r for r, w in enumerate(whole) if whole.index(w) == r]
            if i == members[0]:
                unique.append(len(firsts))
                inverse += [firsts.index(whole.index(w)) for w in whole]
            lists = [lists[r] for r in firsts]
        for ids, w in lists:
            lengths.append(len(ids))
            values += ids
            weights += w
    tensors: dict[str, Any] = {}
    if schema.label:
        tensors["label"] = struct.pack(f"<{len(rows)}f", *[label for label, _, _ in rows])
    if schema.dense:
        tensors["dense"] = b"".join(dense for _, dense, _ in rows)
    if schema.keys:
        tensors["kjt.values"] = struct.pack(f"<{len(values)}{'i' if schema.ids == 'int32' else 'q'}", *values)
        if not schema.fixed:
            tensors["kjt.lengths"] = struct.pack(f"<{len(lengths)}i", *lengths)
        if schema.weights:
            tensors["kjt.weights"] = struct.pack(f"<{len(weights)}f", *weights)
    if unique:
        tensors["kjt.inverse"] = struct.pack(f"<{len(inverse)}i", *inverse)
    return frame.encode(NAME, schema, len(rows), tensors, unique, fragment)


def cut(schema: Schema, rows: Sequence[Row], ends: Sequence[int]) -> list[MiniBatch]:
    """The fragments that end before these rows."""
    parts, at = [], 0
    for i, end in enumerate(ends):
        parts.append(frame.decode(encoded(schema, rows[at:end], Fragment(i, len(ends))), check=True).validate())
        at = end
    return parts


class Joining(unittest.TestCase):
    def test_every_cut_gives_the_whole(self) -> None:
        pool = Pool()
        for seed in range(72):
            r = random.Random(seed)
            schema = SCHEMAS[seed % len(SCHEMAS)]
            rows = [row(schema, r) for _ in range(r.randrange(2, 25))]
            ends = sorted({*r.sample(range(1, len(rows)), r.randrange(1, min(5, len(rows)))), len(rows)})
            ends += [len(rows)] * (seed % 2)  # a fragment without rows
            with self.subTest(seed=seed, ends=ends):
                want = frame.decode(encoded(schema, rows))
                have = join(cut(schema, rows, ends), pool.take).validate()
                self.assertEqual(bytes(have.data), bytes(want.data))
                self.assertEqual((have.name, have.rows, have.unique), (want.name, want.rows, want.unique))
                self.assertEqual((have.extents, have.schema, have.fragment), (want.extents, schema, None))

    def test_a_fragment_of_every_row(self) -> None:
        schema = SCHEMAS[0]
        rows = [row(schema, random.Random(n)) for n in range(30)]
        have = join(cut(schema, rows, range(1, 31)), Pool().take)
        self.assertEqual(bytes(have.data), bytes(frame.decode(encoded(schema, rows)).data))

    def test_fragments_that_are_not_one_minibatch(self) -> None:
        schema = SCHEMAS[0]
        rows = [row(schema, random.Random(n)) for n in range(9)]
        a, b, c = cut(schema, rows, (2, 5, 9))
        other = frame.decode(encoded(SCHEMAS[3], [row(SCHEMAS[3], random.Random(1))], Fragment(1, 3)))
        longer = frame.decode(encoded(schema, rows[5:], Fragment(2, 4)))
        whole = frame.decode(encoded(schema, rows))
        for parts in ([a, c], [a, b], [b, c], [c, b, a], [a, b, b, c], [a, other, c], [a, b, longer], [whole]):
            with self.assertRaises(FrameError):
                join(parts, Pool().take)


class Frames(unittest.TestCase):
    def test_the_frame_of_the_go_side(self) -> None:
        repository = pathlib.Path(os.environ.get("MILLRACE_REPOSITORY") or pathlib.Path(__file__).parents[3])
        raw = bytes.fromhex((repository / "sdk" / "tensor" / "testdata" / "frame.v4.hex").read_text())
        mb = frame.decode(raw, check=True).validate()
        self.assertIsNotNone(mb.fragment)
        tensors = {e.name: mb.content(e.name) for e in mb.extents}
        self.assertEqual(frame.encode(mb.name, mb.schema, mb.rows, tensors, fragment=mb.fragment), raw)

    def test_places_from_both_sides(self) -> None:
        rows = [row(SCHEMAS[0], random.Random(n)) for n in range(4)]
        for place in ((0, 2), (1, 2), (0, 1 << 30), ((1 << 30) - 1, 1 << 30)):
            self.assertEqual(frame.decode(encoded(SCHEMAS[0], rows, Fragment(*place))).fragment, place)
        for place in ((0, 1), (2, 2), (0, 0), (0, (1 << 30) + 1), (-1, 2)):
            with self.assertRaises(FrameError):
                encoded(SCHEMAS[0], rows, Fragment(*place))

    def test_damaged_places(self) -> None:
        raw = encoded(SCHEMAS[2], [row(SCHEMAS[2], random.Random(1))] * 3, Fragment(11, 15))
        for bad in (b"-1/15", b"11-15", b"111/5", b"15/15", b"+1/15", b"11/03", b" 1/15", b"11/1 "):
            with self.subTest(bad), self.assertRaises(FrameError):
                frame.decode(raw.replace(b"11/15", bad))
        with self.assertRaisesRegex(FrameError, "format"):
            frame.decode(raw.replace(b"frame/4", b"frame/1"))
        whole = encoded(SCHEMAS[2], [row(SCHEMAS[2], random.Random(1))] * 3)
        with self.assertRaisesRegex(FrameError, "format"):
            frame.decode(whole.replace(b"frame/1", b"frame/4"))
