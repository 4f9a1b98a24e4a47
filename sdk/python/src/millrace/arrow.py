"""Mini-batches for pyarrow, without copying.

A mini-batch becomes a record batch of one row, as in Millrace's Arrow files: columns ``dense``, ``label``,
``kjt.values``, ``kjt.lengths`` and ``kjt.weights``, as far as there are such tensors, each a LargeList of the tensor's
elements in memory order. Shapes and names are in the schema's metadata; the mini-batch's name and rows are in the
fields ``millrace.name`` and ``millrace.rows`` of the metadata of each record batch's schema.

::

    with Job(control, id="rm1") as job:
        # Schemas differ in the mini-batch's name: see unnamed.
        table = pyarrow.Table.from_batches(map(record_batch, job.minibatches()))
        # One row for each row, one column for each feature.
        frame = flat(next(job.minibatches())).to_pandas()

Files that nodes and ``millrace preprocess --format arrow`` write are read by :func:`open_file`.
"""

from __future__ import annotations

import json
from itertools import accumulate
from typing import Iterator, Union

import pyarrow as pa

from .errors import FrameError
from .frame import MiniBatch
from .schema import Key, Schema

__all__ = ["flat", "open_file", "record_batch", "schema_of"]

# Arrow has no bfloat16: its bits are there as uint16.
_ELEMENTS = {"float32": pa.float32(), "int32": pa.int32(), "int64": pa.int64(), "bfloat16": pa.uint16()}
_ORDER = ("dense", "label", "kjt.values", "kjt.lengths", "kjt.weights")
_FORMAT = "millrace.arrow/1"
_FORMAT_2 = "millrace.arrow/2"  # dense is bfloat16


def _fields(schema: Schema) -> list[tuple[str, pa.DataType]]:
    keys = bool(schema.keys)
    found = {
        "dense": bool(schema.dense) and _ELEMENTS[schema.dense_type],
        "label": schema.label and pa.float32(),
        "kjt.values": keys and _ELEMENTS[schema.ids],
        "kjt.lengths": keys and not schema.fixed and pa.int32(),
        "kjt.weights": schema.weights and pa.float32(),
    }
    return [(name, found[name]) for name in _ORDER if found[name]]


def schema_of(schema: Schema) -> pa.Schema:
    """Returns the Arrow schema of a job's mini-batches, byte for byte that of Millrace's files."""

    def text(v: object) -> str:
        return json.dumps(v, ensure_ascii=False, separators=(",", ":"))

    narrow = bool(schema.dense) and schema.dense_type != "float32"
    metadata = {
        "millrace.format": _FORMAT_2 if narrow else _FORMAT,
        "millrace.shapes": text({"dense": len(schema.dense), "keys": len(schema.keys)}),
        "millrace.dense": text(list(schema.dense)),
        "millrace.keys": text(list(schema.key_names)),
        "millrace.num_embeddings": text([k.num_embeddings for k in schema.keys]),
        "millrace.list": text([k.is_list for k in schema.keys]),
    }
    if schema.keys and schema.fixed:
        metadata["millrace.lengths"] = "ones"
    if narrow:
        metadata["millrace.dense_type"] = schema.dense_type
    fields = [
        pa.field(name, pa.large_list(pa.field("item", t, nullable=False)), nullable=False)
        for name, t in _fields(schema)
    ]
    return pa.schema(fields, metadata)


def _array(mb: MiniBatch, name: str, element: pa.DataType) -> pa.Array:
    e = next(e for e in mb.extents if e.name == name)
    buffer = pa.py_buffer(mb.data[e.offset : e.offset + e.nbytes])
    n = e.nbytes // (element.bit_width // 8)
    return pa.Array.from_buffers(element, n, [None, buffer])


def _tensors(mb: MiniBatch) -> dict[str, pa.Array]:
    """The tensors of a mini-batch, those of deduplicated keys with every row."""
    found = {e.name: _array(mb, e.name, _ELEMENTS[e.dtype]) for e in mb.extents}
    inverse = found.pop("kjt.inverse", None)
    if inverse is None:
        return found
    mb.validate()  # a wrong index or length would address elements that do not exist
    parts: dict[str, list[pa.Array]] = {"kjt.values": [], "kjt.lengths": [], "kjt.weights": []}
    rows_at = at = 0
    for k, rows in zip(mb.schema.keys, mb.rows_of_keys):
        which = inverse.slice((k.set - 1) * mb.rows, mb.rows) if k.set else pa.array(range(mb.rows), pa.int32())
        ends = [at + i + 1 for i in range(rows)]
        if not mb.schema.fixed:
            lengths = found["kjt.lengths"].slice(rows_at, rows)
            parts["kjt.lengths"].append(lengths.take(which))
            ends = [at + n for n in accumulate(lengths.to_pylist())]
        for name in ("kjt.values", "kjt.weights"):
            if name in found:
                lists = pa.LargeListArray.from_arrays(pa.array([at, *ends], pa.int64()), found[name])
                parts[name].append(lists.take(which).flatten())
        rows_at, at = rows_at + rows, ends[-1] if ends else at
    for name, arrays in parts.items():
        if name in found:
            found[name] = pa.concat_arrays(arrays)
    return found


def record_batch(mb: MiniBatch, *, named: bool = True) -> pa.RecordBatch:
    """Returns a mini-batch as a record batch of one row. Its columns share the mini-batch's memory and keep it alive.
    The columns of a deduplicated mini-batch are copies that hold every row, as in Millrace's files.

    Args:
        named: whether name and rows are in the schema's metadata. Without them all batches of a job have one schema,
            and make a table.

    Raises:
        FrameError: the lengths or the inverse of a deduplicated mini-batch contradict its values.
    """
    schema = schema_of(mb.schema)
    columns, tensors = [], _tensors(mb)
    for name, _ in _fields(mb.schema):
        values = tensors[name]
        offsets = pa.array([0, len(values)], pa.int64())
        kind = schema.field(name).type
        columns.append(pa.Array.from_buffers(kind, 1, [None, offsets.buffers()[1]], children=[values]))
    if named:
        schema = schema.with_metadata(
            {**(schema.metadata or {}), "millrace.name": str(mb.name), "millrace.rows": str(mb.rows)}
        )
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def flat(mb: MiniBatch) -> pa.RecordBatch:
    """Returns a mini-batch as a table for analysis: B rows, and a column for each feature, under the feature's name;
    ``label`` comes first if there is one.

    A sparse feature is a column of integers where its key has one id in each row, else a column of lists. Dense columns
    are copies, since their elements lie across rows; bfloat16 shows its bits as uint16. The other columns share the
    mini-batch's memory, except those of a deduplicated mini-batch, which are copies.

    Raises:
        FrameError: a length is negative, or the lengths exceed the values.
    """
    names: list[str] = []
    columns: list[pa.Array] = []
    rows, schema, tensors = mb.rows, mb.schema, _tensors(mb)
    if schema.label:
        names.append("label")
        columns.append(tensors["label"])
    if schema.dense:
        d = len(schema.dense)
        dense = tensors["dense"]
        for i, name in enumerate(schema.dense):
            names.append(name)
            columns.append(dense.take(pa.array(range(i, rows * d, d), pa.int64())))
    if schema.keys:
        values = tensors["kjt.values"]
        lengths = None if schema.fixed else tensors["kjt.lengths"].to_pylist()
        at = 0
        for f, k in enumerate(schema.keys):
            names.append(k.name)
            if not k.is_list:
                columns.append(values.slice(at, rows))
                at += rows
                continue
            assert lengths is not None
            offsets = [at]
            for n in lengths[f * rows : (f + 1) * rows]:
                offsets.append(offsets[-1] + n)
            if min(lengths[f * rows : (f + 1) * rows], default=0) < 0 or offsets[-1] > len(values):
                raise FrameError(f"{mb.name}: lengths of key {k.name!r} pass its values")
            columns.append(pa.LargeListArray.from_arrays(pa.array(offsets, pa.int64()), values))
            at = offsets[-1]
    return pa.RecordBatch.from_arrays(columns, names)


def _read_schema(a: pa.Schema) -> Schema:
    meta = {k.decode(): v.decode() for k, v in (a.metadata or {}).items()}
    if meta.get("millrace.format") not in (_FORMAT, _FORMAT_2):
        raise FrameError(
            f"millrace.format is {meta.get('millrace.format')!r}, this version reads {_FORMAT!r} and {_FORMAT_2!r}"
        )
    try:
        keys = map(
            Key,
            json.loads(meta["millrace.keys"]),
            json.loads(meta["millrace.num_embeddings"]),
            json.loads(meta["millrace.list"]),
        )
        dense = tuple(json.loads(meta["millrace.dense"]))
        names = set(a.names)
        ids = "int64"
        if "kjt.values" in names and a.field("kjt.values").type.value_type == pa.int32():
            ids = "int32"
        dense_type = meta.get("millrace.dense_type", "float32")
        schema = Schema("label" in names, dense, tuple(keys), ids, "kjt.weights" in names, dense_type).validate()
    except (KeyError, ValueError, TypeError, AttributeError) as e:
        raise FrameError(f"the metadata is not that of mini-batches: {e!r}") from e
    if not a.equals(schema_of(schema)):
        raise FrameError("columns and metadata do not agree")
    return schema


def open_file(source: Union[str, bytes, pa.Buffer]) -> Iterator[tuple[Schema, str, int, pa.RecordBatch]]:
    """Yields (schema, name, rows, record batch) of every mini-batch of an Arrow file. ``source`` is a path, or bytes
    such as a node sends for ``Accept: application/vnd.apache.arrow.file``.

    Raises:
        FrameError: the Arrow file does not hold mini-batches, or its schema or metadata contradicts itself.
        OSError: the file cannot be read.
        pyarrow.ArrowInvalid: the bytes are not an Arrow file. It is a ValueError.
    """
    opened = pa.memory_map(source) if isinstance(source, str) else pa.BufferReader(source)
    with opened, pa.ipc.open_file(opened) as reader:
        schema = _read_schema(reader.schema)
        for i in range(reader.num_record_batches):
            batch = reader.get_batch_with_custom_metadata(i)
            meta = batch.custom_metadata or {}
            try:
                name, rows = meta[b"millrace.name"].decode(), int(meta[b"millrace.rows"])
            except (KeyError, ValueError) as e:
                raise FrameError(f"record batch {i} has no name or rows: {e!r}") from e
            yield schema, name, rows, batch.batch
