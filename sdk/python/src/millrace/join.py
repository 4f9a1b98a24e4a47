"""Joins fragments into their mini-batch.

A fragment is the rows of a mini-batch that are in one split. Its node does not have the others, so whoever delivers the
mini-batch joins its fragments: each key's ids of the first fragment, then those of the second, and so on. A schema with
sets of keys is deduplicated afterwards, over all rows. The bytes are those of sdk/tensor's Join.
"""

from __future__ import annotations

from array import array
from itertools import accumulate, chain, compress, count, groupby
from struct import Struct, iter_unpack
from typing import Callable, Hashable, Iterable, Sequence

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

    def content(self, tensor: str, key: int) -> memoryview:
        """Returns the bytes of a key's rows in a tensor."""
        a, b = self._ends[key], self._ends[key + 1]
        if tensor == "kjt.values":
            return self._values[a * self._size : b * self._size]
        if tensor == "kjt.weights":
            return self._weights[4 * a : 4 * b]
        return self._lengths[4 * key * self._rows : 4 * (key + 1) * self._rows]

    def cells(self, tensor: str, key: int) -> tuple[bytes, ...]:
        """Returns the bytes of each row of a key in ``kjt.values`` or ``kjt.weights``."""
        size = 4 if tensor == "kjt.weights" else self._size
        lengths = self._lengths_of(key)
        formats = {n: f"{size * n}s" for n in set(lengths)}
        # One call that cuts every row takes two thirds of the time that a slice for each row takes.
        return Struct("".join(map(formats.__getitem__, lengths))).unpack(self.content(tensor, key))


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
                for tensor in ("kjt.values", "kjt.weights", "kjt.lengths"):
                    pieces.add(tensor, p.content(tensor, k))
    return unique


def _deduplicate(schema: Schema, parts: Sequence[_Part], keys: Sequence[int], pieces: _Pieces) -> int:
    """Adds the tensors of a set of keys, which have each different row once, in the order in which rows first appear.
    Returns how many different rows there are.
    """
    tensors = ("kjt.values", "kjt.weights") if schema.weights else ("kjt.values",)
    columns = [(tensor, k) for k in keys for tensor in tensors]
    if not any(schema.keys[k].is_list for k in keys):
        table = _Table([4 if tensor == "kjt.weights" else _ID_BYTES[schema.ids] for tensor, _ in columns])
        rows = table.rows([b"".join([p.content(*c) for p in parts]) for c in columns])
        inverse, is_first, n = _numbered(rows)
        for (tensor, _), content in zip(columns, table.columns(list(compress(rows, is_first)))):
            pieces.add(tensor, content)
        if not schema.fixed:
            pieces.add("kjt.lengths", memoryview(array("i", [1]) * (n * len(keys))).cast("B"))
    else:
        cells = [list(chain.from_iterable([p.cells(*c) for p in parts])) for c in columns]
        inverse, is_first, n = _numbered(zip(*cells))
        for (tensor, _), column in zip(columns, cells):
            pieces.add(tensor, memoryview(b"".join(list(compress(column, is_first)))))
        table = _Table([4] * len(keys))
        rows = table.rows([b"".join([p.content("kjt.lengths", k) for p in parts]) for k in keys])
        for content in table.columns(list(compress(rows, is_first))):
            pieces.add("kjt.lengths", content)
    pieces.add("kjt.inverse", inverse)
    return n


def _numbered(rows: Iterable[Hashable]) -> tuple[memoryview, bytearray, int]:
    """Numbers the different rows in the order in which they first appear. Returns the number of each row (int32), for
    each row 1 if it appears first and 0 otherwise, and how many different rows there are.
    """
    first: dict[Hashable, int] = {}  # of each different row, where it appears first
    firsts = list(map(first.setdefault, rows, count()))
    numbers = dict(zip(first.values(), count()))
    is_first = bytearray(len(firsts))
    for r in numbers:
        is_first[r] = 1
    inverse = array("i", list(map(numbers.__getitem__, firsts)))
    return memoryview(inverse).cast("B"), is_first, len(numbers)


class _Table:
    """Turns columns whose cells all have the same size into rows and back. A cell is one or two words of 4 bytes, and
    strided slices move a whole column of words at once.
    """

    def __init__(self, sizes: Sequence[int]) -> None:
        """Makes a table of columns whose cells have these bytes, 4 or 8."""
        self._places: list[range] = []  # of each column: the words of a row that have its cell
        at = 0
        for size in sizes:
            self._places.append(range(at, at + size // 4))
            at += size // 4
        self._width = at

    def rows(self, columns: Sequence[bytes]) -> list[bytes]:
        """Returns the bytes of each row."""
        words = array("i", bytes(len(columns[0]) // len(self._places[0]) * self._width))
        for place, column in zip(self._places, columns):
            of_column = array("i", column)
            for i, at in enumerate(place):
                words[at :: self._width] = of_column[i :: len(place)]
        return [row for row, in iter_unpack(f"{4 * self._width}s", words)]

    def columns(self, rows: Sequence[bytes]) -> list[memoryview]:
        """Returns the bytes of each column."""
        words, columns = array("i", b"".join(rows)), []
        for place in self._places:
            column = array("i", bytes(4 * len(place) * len(rows)))
            for i, at in enumerate(place):
                column[i :: len(place)] = words[at :: self._width]
            columns.append(memoryview(column).cast("B"))
        return columns
