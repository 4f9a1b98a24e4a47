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
    """The sparse tensors of a fragment."""

    def __init__(self, part: MiniBatch) -> None:
        keys = range(len(part.schema.keys))
        self._rows = part.rows
        self._size = _ID_BYTES[part.schema.ids]
        self._values, self._weights = part.content("kjt.values"), part.content("kjt.weights")
        self._lengths = part.content("kjt.lengths")
        self._ends = list(accumulate((sum(self._lengths_of(k)) for k in keys), initial=0))  # of the keys' ids

    def _lengths_of(self, key: int) -> list[int]:
        """Returns how many ids each row of a key has."""
        if not self._lengths:
            return [1] * self._rows
        return self._lengths.cast("i")[key * self._rows : (key + 1) * self._rows].tolist()

    def add_to(self, pieces: _Pieces, key: int) -> None:
        """Adds the rows of a key to those of the mini-batch."""
        a, b = self._ends[key], self._ends[key + 1]
        pieces.add("kjt.values", self._values[a * self._size : b * self._size])
        pieces.add("kjt.weights", self._weights[4 * a : 4 * b])
        pieces.add("kjt.lengths", self._lengths[4 * key * self._rows : 4 * (key + 1) * self._rows])

    def cells(self, key: int) -> tuple[list[bytes], list[bytes]]:
        """Returns the bytes of the ids of each row of a key, and those of their weights."""
        a, b = self._ends[key], self._ends[key + 1]
        ids, weights = bytes(self._values[a * self._size : b * self._size]), bytes(self._weights[4 * a : 4 * b])
        ends = list(accumulate(self._lengths_of(key), initial=0))
        spans = list(zip(ends, ends[1:]))
        weighted = [weights[4 * i : 4 * j] for i, j in spans] if weights else [b""] * self._rows
        return [ids[i * self._size : j * self._size] for i, j in spans], weighted


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
            unique.append(_deduplicate(schema, parts, keys, pieces))
            continue
        for k in keys:
            for p in parts:
                p.add_to(pieces, k)
    return unique


def _deduplicate(schema: Schema, parts: Sequence[_Part], keys: Sequence[int], pieces: _Pieces) -> int:
    """Adds the tensors of a set of keys, which have each different row once, in the order in which rows first appear.
    Returns how many different rows there are.
    """
    columns: list[list[bytes]] = []  # of each key the ids of every row, and the weights of every row
    for k in keys:
        for of_parts in zip(*(p.cells(k) for p in parts)):
            columns.append([cell for cells in of_parts for cell in cells])
    seen: dict[tuple[bytes, ...], int] = {}
    firsts: list[int] = []
    inverse = array("i")
    for r, row in enumerate(zip(*columns)):
        number = seen.setdefault(row, len(seen))
        if number == len(firsts):
            firsts.append(r)
        inverse.append(number)
    pieces.add("kjt.inverse", memoryview(inverse).cast("B"))
    for ids, weights in zip(columns[::2], columns[1::2]):
        different = [ids[r] for r in firsts]
        pieces.add("kjt.values", memoryview(b"".join(different)))
        pieces.add("kjt.weights", memoryview(b"".join([weights[r] for r in firsts])))
        lengths = array("i", [len(x) // _ID_BYTES[schema.ids] for x in different])
        pieces.add("kjt.lengths", memoryview(lengths).cast("B"))
    return len(firsts)
