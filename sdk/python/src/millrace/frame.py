"""The frame of a mini-batch: how it crosses the wire, and how it may rest in a file.

A frame is a safetensors file whose data starts at a 64-byte boundary (any safetensors library reads a saved one)::

    length of the JSON, u64 little-endian | JSON, ended by spaces | tensors without gaps

The tensors lie in the order ``kjt.values``, ``dense``, ``kjt.lengths``, ``label``, ``kjt.weights``; a ``dense`` of
bfloat16 comes last, and the frame's format is then ``millrace.frame/2``. A deduplicated mini-batch has ``kjt.inverse``
behind ``kjt.lengths``, ``sets`` and ``unique`` before ``crc32c``, and the format ``millrace.frame/3``. The JSON's
``__metadata__`` holds, all as strings: ``format``, ``name`` (JOB/EPOCH/NUMBER), ``shapes``, ``dense`` and ``keys``
(names), ``num_embeddings``, ``list``, ``ids``, ``lengths`` ("ones" where every row has exactly one id of every key and
``kjt.lengths`` is left out) and ``crc32c`` of the data. One mini-batch has exactly one frame: :func:`decode` writes the
header again and refuses a frame whose header differs.

The frame of a fragment, some of a mini-batch's rows, has ``fragment`` (INDEX/OF) behind ``name``, the name of the whole
mini-batch, and the format ``millrace.frame/4``. It is not deduplicated: ``sets`` says what :func:`millrace.join.join`
deduplicates when it has all fragments.

Frames are untrusted bytes. Every length, offset, type and shape is checked before it is used, no allocation exceeds the
frame's own length, and every fault raises a :class:`millrace.errors.FrameError`.

Nothing is copied: tensors are memoryviews of the caller's buffer, which must not change while they are used.
"""

from __future__ import annotations

import json
import re
import struct
import sys
from dataclasses import dataclass
from math import prod
from typing import Any, Iterable, NamedTuple, Sequence, Union

from . import crc32c
from .errors import FrameError, SchemaError
from .schema import Key, Schema

__all__ = [
    "ALIGN",
    "FORMAT",
    "MAX_HEADER",
    "Extent",
    "Fragment",
    "MiniBatch",
    "Name",
    "decode",
    "encode",
    "packed",
    "read",
]

FORMAT = "millrace.frame/1"
FORMAT_2 = "millrace.frame/2"  # of frames whose dense tensor is bfloat16
FORMAT_3 = "millrace.frame/3"  # of frames of deduplicated mini-batches
FORMAT_4 = "millrace.frame/4"  # of frames of fragments
_FORMATS = (FORMAT, FORMAT_2, FORMAT_3, FORMAT_4)
ALIGN = 64
MAX_HEADER = 64 << 20  # bytes of JSON, padding included
MAX_ROWS = 1 << 30
MAX_VALUES = 1 << 40
MAX_FEATURES = 1 << 20  # dense, and keys

Buffer = Union[bytes, bytearray, memoryview]

# Of each type: memoryview's letter, bytes of an element, and safetensors' name. A view of bfloat16 shows its bits.
_TYPES = {"float32": ("f", 4, "F32"), "int32": ("i", 4, "I32"), "int64": ("q", 8, "I64"), "bfloat16": ("H", 2, "BF16")}

if sys.byteorder != "little":  # the views would show wrong numbers
    raise ImportError("millrace needs a little-endian machine")


class Name(NamedTuple):
    """Names a mini-batch: the job's digest (64 hex digits), the epoch, and its number in the epoch's plan."""

    job: str
    epoch: int
    number: int

    def __str__(self) -> str:
        return f"{self.job}/{self.epoch}/{self.number}"

    @classmethod
    def parse(cls, text: str) -> "Name":
        """Reads JOB/EPOCH/NUMBER; raises :class:`FrameError`."""
        m = re.fullmatch(r"([0-9a-f]{64})/(0|[1-9][0-9]{0,19})/(0|[1-9][0-9]{0,19})", text, re.ASCII)
        if not m or max(int(m[2]), int(m[3])) >= 1 << 64:
            raise FrameError(f"name {text[:120]!r}, want JOB/EPOCH/NUMBER")
        return cls(m[1], int(m[2]), int(m[3]))


class Fragment(NamedTuple):
    """The place of a fragment: number ``position``, counted from 0, of the ``of`` fragments whose rows the mini-batch
    has.
    """

    position: int
    of: int

    def __str__(self) -> str:
        return f"{self.position}/{self.of}"

    @classmethod
    def parse(cls, text: str) -> "Fragment":
        """Reads INDEX/OF; raises :class:`FrameError`."""
        m = re.fullmatch(r"(0|[1-9][0-9]{0,9})/([1-9][0-9]{0,9})", text, re.ASCII)
        if not m:
            raise FrameError(f"fragment {text[:60]!r}, want INDEX/OF")
        return cls(int(m[1]), int(m[2])).check()

    def check(self) -> "Fragment":
        """Returns itself; raises :class:`FrameError` if there is no such fragment."""
        if not (2 <= self.of <= MAX_ROWS and 0 <= self.position < self.of):
            raise FrameError(f"fragment {self}, want INDEX/OF: an index from 0 of 2 to {MAX_ROWS} fragments")
        return self


class Extent(NamedTuple):
    """Where a tensor lies in the data: its name, type (float32, int32, int64, bfloat16), shape, first byte and bytes."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    offset: int
    nbytes: int


def _rows_of_keys(schema: Schema, rows: int, unique: Sequence[int]) -> list[int]:
    """Returns how many rows each key has: the different rows of its set, or all rows. ``unique`` is empty where nothing
    is deduplicated.
    """
    return [unique[k.set - 1] if k.set and unique else rows for k in schema.keys]


def packed(schema: Schema, rows: int, values: int, unique: Sequence[int] = ()) -> tuple[Extent, ...]:
    """Returns the extents of a mini-batch's tensors in the order in which they lie in a frame.

    Args:
        rows: rows of the mini-batch.
        values: elements of ``kjt.values``.
        unique: how many different rows each set of keys has; empty without sets.

    Raises:
        FrameError: the numbers do not fit the schema, or exceed the bounds of a frame.
    """
    if len(unique) != schema.sets:
        raise FrameError(f"different rows of {len(unique)} sets of keys, the schema has {schema.sets}")
    for i, n in enumerate(unique):
        if type(n) is not int or not min(rows, 1) <= n <= rows:
            raise FrameError(f"set {i + 1} of keys has {str(n)[:40]} different rows, want 1 to {rows}")
    d, f = len(schema.dense), len(schema.keys)
    if not (0 <= rows <= MAX_ROWS and 0 <= values <= MAX_VALUES and d <= MAX_FEATURES and f <= MAX_FEATURES):
        raise FrameError(f"{rows} rows, {values} values, {d} dense features and {f} keys are not a mini-batch")
    key_rows = sum(_rows_of_keys(schema, rows, unique))
    if schema.fixed and values != key_rows:
        raise FrameError(f"{values} values for {rows} rows of {f} keys with one id each")
    wanted: list[tuple[str, str, tuple[int, ...]]] = []
    if f:
        wanted.append(("kjt.values", schema.ids, (values,)))
    if d and schema.dense_type == "float32":
        wanted.append(("dense", "float32", (rows, d)))
    if f and not schema.fixed:
        wanted.append(("kjt.lengths", "int32", (key_rows,) if unique else (f, rows)))
    if unique:
        wanted.append(("kjt.inverse", "int32", (len(unique), rows)))
    if schema.label:
        wanted.append(("label", "float32", (rows,)))
    if schema.weights:
        wanted.append(("kjt.weights", "float32", (values,)))
    if d and schema.dense_type != "float32":  # last: an odd number of its elements would leave the others unaligned
        wanted.append(("dense", schema.dense_type, (rows, d)))
    extents, at = [], 0
    for name, dtype, shape in wanted:
        n = prod(shape) * _TYPES[dtype][1]
        extents.append(Extent(name, dtype, shape, at, n))
        at += n
    return tuple(extents)


@dataclass(frozen=True)
class MiniBatch:
    """One train-ready mini-batch: views of a frame.

    With B rows, D dense features, F keys and N sparse values:

    * ``label`` float32 [B], None if the data has none
    * ``dense`` float32 [B, D], row-major, None without dense features; a bfloat16 tensor shows its bits as uint16 (see
      ``schema.dense_type``): ``numpy.asarray(dense).view(ml_dtypes.bfloat16)``, or :mod:`millrace.torch`
    * ``values`` int32 or int64 [N]: all ids of the first key row by row, then of the second, ...
    * ``lengths`` int32 [F, B], None where every length is 1 (``schema.fixed``) and without keys
    * ``weights`` float32 [N], None without weights

    Together the last three are TorchRec's KeyedJaggedTensor. If the schema has G sets of keys that are deduplicated, a
    set's keys hold each different row once, in the order in which rows first appear. Set g has ``unique[g]`` different
    rows. ``inverse`` int32 [G, B] is the index of row b among the different rows of set g. ``lengths`` then has one
    dimension, key after key (:attr:`rows_of_keys` of each). A view of a tensor with no element has one dimension.

    The views stay valid as long as one of them is referenced; after that the memory goes back to its pool.
    """

    name: Name
    schema: Schema
    rows: int
    extents: tuple[Extent, ...]
    data: memoryview
    nbytes: int  # of the whole frame; of the tensors, if the mini-batch was joined
    unique: tuple[int, ...] = ()  # different rows of each set of keys
    fragment: Fragment | None = None  # None: the whole mini-batch

    def content(self, name: str) -> memoryview:
        """Returns the bytes of a tensor by its name in the frame; none if there is no such tensor."""
        for e in self.extents:
            if e.name == name:
                return self.data[e.offset : e.offset + e.nbytes]
        return self.data[:0]

    def tensor(self, name: str) -> memoryview | None:
        """Returns a tensor by its name in the frame (``dense``, ``kjt.values``, ...), or None if there is none."""
        for e in self.extents:
            if e.name == name:
                view = self.content(name)
                letter: Any = _TYPES[e.dtype][0]
                shaped: memoryview = (
                    view.cast(letter) if len(e.shape) == 1 or not e.nbytes else view.cast(letter, e.shape)
                )
                return shaped
        return None

    @property
    def label(self) -> memoryview | None:
        """float32 [B], None if the data has no label"""
        return self.tensor("label")

    @property
    def dense(self) -> memoryview | None:
        """float32 [B, D], or the bits of bfloat16 as uint16 [B, D]; None without dense features"""
        return self.tensor("dense")

    @property
    def values(self) -> memoryview | None:
        """int32 or int64 [N], None without keys"""
        return self.tensor("kjt.values")

    @property
    def lengths(self) -> memoryview | None:
        """int32 [F, B], or with sets int32 [the sum of :attr:`rows_of_keys`]; None where every length is 1"""
        return self.tensor("kjt.lengths")

    @property
    def inverse(self) -> memoryview | None:
        """int32 [G, B], None without sets"""
        return self.tensor("kjt.inverse")

    @property
    def rows_of_keys(self) -> list[int]:
        """How many rows each key has, in the order of the keys: the different rows of its set, or B."""
        return _rows_of_keys(self.schema, self.rows, self.unique)

    @property
    def weights(self) -> memoryview | None:
        """float32 [N], None without weights"""
        return self.tensor("kjt.weights")

    def validate(self) -> "MiniBatch":
        """Checks every length (about ten milliseconds for a million lengths): no length is negative, keys with one id
        in each row have lengths of 1, the lengths add up to the number of values, and the inverse of each set numbers
        its rows as they first appear. Returns itself or raises :class:`FrameError`.

        :func:`decode` does not make these checks. :mod:`millrace.torch` makes similar ones with tensors, which is fast.
        """
        self._validate_inverse()
        e = next((e for e in self.extents if e.name == "kjt.lengths"), None)
        if e is None:
            return self
        lengths = self.content("kjt.lengths").cast("i")
        total = at = 0
        for k, rows in zip(self.schema.keys, self.rows_of_keys):
            part = lengths[at : at + rows].tolist()
            at += rows
            if part and (min(part) < 0 or not k.is_list and (min(part) != 1 or max(part) != 1)):
                raise FrameError(f"{self.name}: lengths of key {k.name!r} go from {min(part)} to {max(part)}")
            total += sum(part)
        n = next(e.shape[0] for e in self.extents if e.name == "kjt.values")
        if total != n:
            raise FrameError(f"{self.name}: the lengths sum to {total}, there are {n} values")
        return self

    def _validate_inverse(self) -> None:
        inverse = self.content("kjt.inverse").cast("i")
        for i, n in enumerate(self.unique):
            greatest = -1
            for r, index in enumerate(inverse[i * self.rows : (i + 1) * self.rows]):
                if not 0 <= index < n:
                    raise FrameError(f"{self.name}: kjt.inverse of set {i + 1}, row {r} is {index}, want 0 to {n - 1}")
                if index > greatest + 1:
                    raise FrameError(
                        f"{self.name}: kjt.inverse of set {i + 1}, row {r} is {index} before a row is {greatest + 1}: "
                        "rows are numbered as they first appear"
                    )
                greatest = max(greatest, index)
            if greatest + 1 != n:
                raise FrameError(
                    f"{self.name}: set {i + 1} of keys has {n} different rows, kjt.inverse names {greatest + 1}"
                )


def _escape(text: str) -> str:
    """The Go side's escapes, written out there because frames must stay the same in every release."""
    return re.sub(r'["\\\x00-\x1f]', lambda m: "\\" + m[0] if m[0] in '"\\' else f"\\u00{ord(m[0]):02x}", text)


def _names(names: Iterable[str]) -> str:
    return _escape(",".join(f'"{_escape(n)}"' for n in names))


class _Lists(NamedTuple):
    """The part of the metadata that is the same in every mini-batch of a job, as text, and the schema in it."""

    text: str
    schema: Schema


def _format(schema: Schema, fragment: Fragment | None) -> str:
    """Returns the format of the frames of a schema's mini-batches, or of fragments: the first that can hold them."""
    if fragment is not None:
        return FORMAT_4
    if schema.sets:
        return FORMAT_3
    return FORMAT_2 if schema.dense and schema.dense_type == "bfloat16" else FORMAT


def _lists(schema: Schema) -> str:
    keys = schema.keys
    text = f',"dense":"[{_names(schema.dense)}]","keys":"[{_names(schema.key_names)}]"'
    text += f',"num_embeddings":"[{",".join(str(k.num_embeddings) for k in keys)}]"'
    text += f',"list":"[{",".join("true" if k.is_list else "false" for k in keys)}]"'
    if keys:
        text += f',"ids":"{schema.ids}"'
        if schema.fixed:
            text += ',"lengths":"ones"'
    return text


def _header(
    name: Name,
    schema: Schema,
    lists: str,
    rows: int,
    values: int,
    extents: Sequence[Extent],
    crc: int,
    unique: Sequence[int] = (),
    fragment: Fragment | None = None,
) -> bytes:
    shapes = f'{{"rows":{rows},"dense":{len(schema.dense)},"keys":{len(schema.keys)},"values":{values}}}'
    text = f'{{"__metadata__":{{"format":"{_format(schema, fragment)}","name":"{name}"'
    if fragment is not None:
        text += f',"fragment":"{fragment}"'
    text += f',"shapes":"{_escape(shapes)}"'
    if schema.sets:
        lists += f',"sets":"[{",".join(str(k.set) for k in schema.keys)}]"'
    if unique:
        lists += f',"unique":"[{",".join(map(str, unique))}]"'
    text += f'{lists},"crc32c":"{crc:08x}"}}'
    for e in extents:
        dims = ",".join(map(str, e.shape))
        text += f',"{e.name}":{{"dtype":"{_TYPES[e.dtype][2]}","shape":[{dims}],'
        text += f'"data_offsets":[{e.offset},{e.offset + e.nbytes}]}}'
    raw = (text + "}").encode()
    raw += b" " * (-(len(raw) + 8) % ALIGN)
    return struct.pack("<Q", len(raw)) + raw


def _laid_out(
    schema: Schema, rows: int, values: int, unique: Sequence[int], fragment: Fragment | None
) -> tuple[Extent, ...]:
    """Returns the extents of the tensors of a mini-batch, or of a fragment, which is not deduplicated."""
    if fragment is None:
        return packed(schema, rows, values, unique)
    fragment.check()
    return packed(schema.without_sets(), rows, values)


def encode(
    name: Name,
    schema: Schema,
    rows: int,
    tensors: dict[str, Any],
    unique: Sequence[int] = (),
    fragment: Fragment | None = None,
) -> bytes:
    """Returns the frame of a mini-batch or of a fragment, byte for byte the one that a node sends.

    Args:
        rows: rows of the mini-batch.
        tensors: the tensors by name (``kjt.values``, ``dense``, ``kjt.lengths``, ``kjt.inverse``, ``label``,
            ``kjt.weights``), as bytes-like objects that hold the elements in memory order; exactly the tensors that the
            schema has.
        unique: how many different rows each set of keys has; empty for a fragment, which is not deduplicated.
        fragment: which fragment of the mini-batch this is; None: the whole mini-batch.

    Raises:
        SchemaError: the schema contradicts itself.
        FrameError: the tensors do not fit the schema and ``rows``.
    """
    schema.validate()
    views = {k: memoryview(v).cast("B") for k, v in tensors.items()}
    values = len(views["kjt.values"]) // _TYPES[schema.ids][1] if schema.keys and "kjt.values" in views else 0
    extents = _laid_out(schema, rows, values, unique, fragment)
    if {e.name for e in extents} != set(views):
        raise FrameError(f"tensors {sorted(views)}, want {sorted(e.name for e in extents)}")
    for e in extents:
        if len(views[e.name]) != e.nbytes:
            raise FrameError(f"tensor {e.name} has {len(views[e.name])} bytes, want {e.nbytes}")
    data = b"".join(views[e.name] for e in extents)
    crc = crc32c.checksum(data)
    return _header(name, schema, _lists(schema), rows, values, extents, crc, unique, fragment) + data


# Schemas by the text of their lists. All mini-batches of a job have the same text, so it is parsed once.
_known: dict[tuple[str, ...], _Lists] = {}


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise FrameError("a field is there twice")
    return found


def _load(text: str | bytes, what: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_pairs)
    except FrameError:
        raise
    except (ValueError, RecursionError) as e:
        raise FrameError(f"{what}: {str(e)[:200]}") from None


def _schema(meta: dict[str, Any], tensors: dict[str, Any]) -> _Lists:
    fields = tuple(meta.get(f, "") for f in ("dense", "keys", "num_embeddings", "list", "ids", "lengths", "sets"))
    if not all(isinstance(f, str) for f in fields):
        raise FrameError("metadata that is not text")
    dense_of = tensors.get("dense")
    dense_type = "bfloat16" if isinstance(dense_of, dict) and dense_of.get("dtype") == "BF16" else "float32"
    known = (*fields, str("label" in tensors), str("kjt.weights" in tensors), dense_type)
    if known in _known:
        return _known[known]
    dense, keys, embeddings, lists = (_load(f, "metadata") for f in fields[:4])
    sets = _load(fields[6], "sets") if fields[6] else None
    for what in (dense, keys, embeddings, lists):
        if not isinstance(what, list):
            raise FrameError("metadata: want lists")
    if not all(isinstance(n, str) for n in dense + keys):
        raise FrameError("a feature's name is not text")
    if not len(keys) == len(embeddings) == len(lists):
        raise FrameError(f"{len(keys)} keys, {len(embeddings)} num_embeddings, {len(lists)} list")
    sets = [0] * len(keys) if sets is None else sets
    if not isinstance(sets, list) or len(sets) != len(keys):
        raise FrameError(f"{len(keys)} keys, sets are {str(sets)[:40]}")
    if not all(type(e) is int and 0 <= e < 1 << 63 for e in embeddings) or not all(type(b) is bool for b in lists):
        raise FrameError("num_embeddings or list hold something else")
    try:
        schema = Schema(
            label="label" in tensors,
            dense=tuple(dense),
            keys=tuple(map(Key, keys, embeddings, lists, sets)),
            ids=fields[4] if keys else "int64",
            weights="kjt.weights" in tensors,
            dense_type=dense_type,
        ).validate()
    except SchemaError as e:
        raise FrameError(str(e)) from None
    text = _lists(schema)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise FrameError("a feature's name holds half a surrogate pair") from None
    found = _Lists(text, schema)
    if len(_known) >= 16:  # frames from a hostile peer must not fill the memory
        _known.clear()
    _known[known] = found
    return found


def _integer(value: Any, most: int) -> int:
    if type(value) is not int or not 0 <= value <= most:
        raise FrameError(f"shapes: {str(value)[:40]!r} where a number to {most} belongs")
    return value


def decode(buffer: Buffer, *, check: bool | None = None) -> MiniBatch:
    """Reads a whole frame without copying its tensors.

    Args:
        buffer: the frame, nothing before or after it. It must not change while the mini-batch is used.
        check: whether the CRC32C of the data is computed and compared. None (the default) checks if a library computes
            it (:func:`millrace.crc32c.fast`). True always checks; without a library that runs in plain Python, at about
            0.5 GB/s.

    Raises:
        FrameError: the bytes are not the one frame of a mini-batch.
    """
    view = memoryview(buffer).cast("B")
    if len(view) < 8:
        raise FrameError(f"{len(view)} bytes, less than a header's length")
    (n,) = struct.unpack_from("<Q", view)
    if n > MAX_HEADER:
        raise FrameError(f"a header of {n} bytes, at most {MAX_HEADER}")
    if n > len(view) - 8:
        raise FrameError(f"a header of {n} bytes in {len(view) - 8} bytes")
    if (n + 8) % ALIGN:
        raise FrameError(f"data starts at {n + 8}, not at a multiple of {ALIGN}")
    head, data = bytes(view[: 8 + n]), view[8 + n :]
    try:
        text = head[8:].decode("utf-8")
    except UnicodeDecodeError as e:
        raise FrameError(f"the header is not UTF-8: {e.reason}") from None
    doc = _load(text, "header")
    meta = doc.pop("__metadata__", None) if isinstance(doc, dict) else None
    if not isinstance(meta, dict) or not all(isinstance(v, str) for v in meta.values()):
        raise FrameError("the header has no metadata of text")
    if meta.get("format") not in _FORMATS:
        raise FrameError(f"format {str(meta.get('format'))[:40]!r}, this version reads {', '.join(_FORMATS)}")
    name = Name.parse(meta.get("name", ""))
    lists = _schema(meta, doc)
    schema = lists.schema
    fragment = Fragment.parse(meta["fragment"]) if "fragment" in meta else None
    if meta["format"] != _format(schema, fragment):
        raise FrameError(f"format {meta['format']!r}, want {_format(schema, fragment)!r} for these tensors")
    shapes = _load(meta.get("shapes", ""), "shapes")
    if not isinstance(shapes, dict):
        raise FrameError("shapes: want an object")
    rows, values = _integer(shapes.get("rows"), MAX_ROWS), _integer(shapes.get("values"), MAX_VALUES)
    unique = _load(meta.get("unique", ""), "unique") if schema.sets and fragment is None else []
    if not isinstance(unique, list):
        raise FrameError("unique: want a list")
    extents = _laid_out(schema, rows, values, unique, fragment)
    _compare(doc, extents)
    total = extents[-1].offset + extents[-1].nbytes
    if len(data) != total:
        raise FrameError(f"{len(data)} bytes of data, the header says {total}")
    said = meta.get("crc32c", "")
    if not re.fullmatch("[0-9a-f]{8}", said):
        raise FrameError(f"crc32c {said[:20]!r}")
    # One header belongs to these tensors. Any other header is refused here at the latest.
    if head != _header(name, schema, lists.text, rows, values, extents, int(said, 16), unique, fragment):
        raise FrameError("the header is not in canonical form")
    if check if check is not None else crc32c.fast():
        crc = crc32c.checksum(data)
        if crc != int(said, 16):
            raise FrameError(f"{name}: CRC32C {crc:08x}, the header says {said}: the data was changed")
    return MiniBatch(name, schema, rows, extents, data, len(view), tuple(unique), fragment)


def _compare(doc: dict[str, Any], extents: tuple[Extent, ...]) -> None:
    """Raises a FrameError that names the first tensor of the header that does not match its extent."""
    wanted = {e.name: e for e in extents}
    for name in doc:
        if name not in wanted:
            raise FrameError(f"tensor {name[:40]!r} should not be there")
    for e in extents:
        have = doc.get(e.name)
        if not isinstance(have, dict):
            raise FrameError(f"tensor {e.name} is missing")
        want = {"dtype": _TYPES[e.dtype][2], "shape": list(e.shape), "data_offsets": [e.offset, e.offset + e.nbytes]}
        for field, value in want.items():
            if have.get(field) != value:
                raise FrameError(f"tensor {e.name}: {field} {str(have.get(field))[:80]}, want {value}")


def read(path: str, *, check: bool | None = True) -> MiniBatch:
    """Reads a frame from a file; see :func:`decode`, but ``check`` is True by default.

    Raises:
        FrameError: the file is not the one frame of a mini-batch.
        OSError: the file cannot be read.
    """
    with open(path, "rb") as f:
        return decode(bytearray(f.read()), check=check)
