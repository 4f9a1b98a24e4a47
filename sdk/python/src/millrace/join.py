"""Joins fragments into their mini-batch.

A fragment is the rows of a mini-batch that are in one split. Its node does not have the others, so whoever delivers the
mini-batch joins its fragments: each key's ids of the first fragment, then those of the second, and so on. A schema with
sets of keys is deduplicated afterwards, over all rows. The bytes are those of sdk/tensor's Join.
"""

from __future__ import annotations

from array import array
from itertools import accumulate, groupby
from typing import Callable, Sequence

from .errors import FrameError
from .frame import MiniBatch, packed
from .schema import Schema

__all__ = ["join"]

_ID_BYTES = {"int32": 4, "int64": 8}  # bytes of an id


class _Pieces:
    """The bytes of a mini-batch's tensors, in pieces that follow each other."""

    def __init__(self) -> None:
        self.tensors: dict[str, list[memoryview]] = {}

    def add(self, tensor: str, piece: memoryview) -> None:
        """Adds the next piece of a tensor."""
        self.tensors.setdefault(tensor, []).append(piece)

    def nbytes(self, tensor: str) -> int:
        """Returns how many bytes of a tensor there are."""
        return sum(map(len, self.tensors.get(tensor, ())))

    def write(self, tensor: str, data: memoryview) -> None:
        """Writes a tensor's bytes."""
        at = 0
        for piece in self.tensors[tensor]:
            data[at : at + len(piece)] = piece
            at += len(piece)


class _Part:
    """The sparse tensors of a fragment. ``rows`` of a method are a range of the rows of all keys, key after key."""

    def __init__(self, part: MiniBatch) -> None:
        self.rows = part.rows
        self._size = _ID_BYTES[part.schema.ids]
        self._values, self._weights = part.content("kjt.values"), part.content("kjt.weights")
        self._lengths = part.content("kjt.lengths")
        fixed = part.schema.fixed
        lengths = [1] * (part.rows * len(part.schema.keys)) if fixed else self._lengths.cast("i").tolist()
        self._ends = list(accumulate(lengths, initial=0))  # of each row's ids

    def add_to(self, pieces: _Pieces, rows: range) -> None:
        """Adds the rows to those of the mini-batch."""
        a, b = self._ends[rows.start], self._ends[rows.stop]
        pieces.add("kjt.values", self._values[a * self._size : b * self._size])
        pieces.add("kjt.weights", self._weights[4 * a : 4 * b])
        pieces.add("kjt.lengths", self._lengths[4 * rows.start : 4 * rows.stop])

    def bits(self, row: int) -> tuple[bytes, bytes]:
        """Returns the bytes of a row's ids and of their weights."""
        a, b = self._ends[row], self._ends[row + 1]
        return bytes(self._values[a * self._size : b * self._size]), bytes(self._weights[4 * a : 4 * b])


def join(parts: Sequence[MiniBatch], memory: Callable[[int], memoryview]) -> MiniBatch:
    """Returns the mini-batch of fragments.

    Args:
        parts: all fragments of one mini-batch in their order; each is valid (:meth:`MiniBatch.validate`).
        memory: returns memory of this many bytes for the tensors.

    Raises:
        FrameError: the fragments are not those of one mini-batch.
    """
    first = parts[0]
    schema, rows = first.schema, 0
    for i, p in enumerate(parts):
        if p.fragment != (i, len(parts)) or p.name != first.name or p.schema != schema:
            raise FrameError(f"{p.name}: fragment {p.fragment}, want {i}/{len(parts)} of {first.name}")
        rows += p.rows
    pieces = _Pieces()
    for p in parts:
        pieces.add("label", p.content("label"))
        pieces.add("dense", p.content("dense"))
    unique = _join_keys(schema, [_Part(p) for p in parts], pieces) if schema.keys else []
    values = pieces.nbytes("kjt.values") // _ID_BYTES[schema.ids] if schema.keys else 0
    extents = packed(schema, rows, values, unique)
    data = memory(extents[-1].offset + extents[-1].nbytes)
    for e in extents:
        pieces.write(e.name, data[e.offset : e.offset + e.nbytes])
    return MiniBatch(first.name, schema, rows, extents, data, len(data), tuple(unique))


def _join_keys(schema: Schema, parts: Sequence[_Part], pieces: _Pieces) -> list[int]:
    """Adds the sparse tensors. Returns how many different rows each set of keys has."""
    unique: list[int] = []
    for number, group in groupby(enumerate(schema.keys), key=lambda x: x[1].set):
        keys = [k for k, _ in group]
        if number:
            rows = [(p, r) for p in parts for r in range(p.rows)]
            firsts, inverse = _different(rows, keys)
            unique.append(len(firsts))
            pieces.add("kjt.inverse", memoryview(inverse).cast("B"))
            for k in keys:
                for p, r in firsts:
                    p.add_to(pieces, range(k * p.rows + r, k * p.rows + r + 1))
        else:
            for k in keys:
                for p in parts:
                    p.add_to(pieces, range(k * p.rows, (k + 1) * p.rows))
    return unique


def _different(
    rows: Sequence[tuple[_Part, int]], keys: Sequence[int]
) -> tuple[list[tuple[_Part, int]], "array[int]"]:
    """Returns the rows that differ in these keys from every row before them, and for each row which of them it equals.
    """
    seen: dict[tuple[tuple[bytes, bytes], ...], int] = {}
    firsts: list[tuple[_Part, int]] = []
    inverse = array("i")
    for p, r in rows:
        number = seen.setdefault(tuple(p.bits(k * p.rows + r) for k in keys), len(seen))
        if number == len(firsts):
            firsts.append((p, r))
        inverse.append(number)
    return firsts, inverse
