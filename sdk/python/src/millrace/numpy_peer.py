"""Makes the same mini-batches with pyarrow and NumPy, for the comparison of :mod:`millrace.compare`.

The module is written as an expert in both libraries would write it: pyarrow decodes, NumPy computes whole columns, and
no Python loop goes over rows. It reads its operators from the canonical form of a pipeline, so that both sides make the
same mini-batches.
"""

from __future__ import annotations

import json
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Deque, Iterator, Mapping, Optional, Union

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from numpy.typing import NDArray

from .errors import MillraceError
from .text_hashes import hash_text

__all__ = ["Tensors", "Transform", "UnsupportedPipelineError", "minibatches", "tables", "version"]


class UnsupportedPipelineError(MillraceError):
    """The pipeline or the file uses a part for which this module has no NumPy code."""


@dataclass(frozen=True)
class Tensors:
    """A mini-batch of B rows, D dense features and F keys.

    Attributes:
        label: float32 [B], or None.
        dense: float32 [B, D], or the bits of bfloat16 as uint16, or None.
        values: int64 or int32 [N], feature-major, or None without keys.
        lengths: int32 [F, B], or None if every length is 1.
    """

    rows: int
    label: Optional[NDArray[Any]]
    dense: Optional[NDArray[Any]]
    values: Optional[NDArray[Any]]
    lengths: Optional[NDArray[Any]]


def version() -> str:
    """Returns the names and versions of the libraries, as text."""
    return f"pyarrow {pa.__version__}, NumPy {np.__version__}"


def minibatches(file: str, canonical: str, batch: int, cores: int) -> Iterator[Tensors]:
    """Yields the mini-batches of a Parquet file in the order of its rows.

    Args:
        file: the file's path.
        canonical: the canonical form of the pipeline, as :attr:`millrace.pipeline.Checked.canonical` has it.
        batch: rows of a mini-batch; the last mini-batch may have fewer.
        cores: how many threads decode, and how many compute, each a mini-batch. NumPy releases the interpreter lock
            where arrays are large.

    Raises:
        UnsupportedPipelineError: the pipeline takes features from maps, or a column has another type than numbers,
            booleans and text.
        ValueError: a value that an operator refuses: a NaN or text that is not a hexadecimal number.
    """
    pipeline = Transform(json.loads(canonical))
    pa.set_cpu_count(cores)
    pa.set_io_thread_count(max(cores, 1))
    with pa.memory_map(file) as source:
        parts = tables(pq.ParquetFile(source), pipeline.columns, batch, cores)
        if cores == 1:
            for table in parts:
                yield pipeline.run(table)
            return
        with ThreadPoolExecutor(cores) as pool:
            ahead: Deque[Future[Tensors]] = deque()
            for table in parts:
                ahead.append(pool.submit(pipeline.run, table))
                if len(ahead) > cores:
                    yield ahead.popleft().result()
            while ahead:
                yield ahead.popleft().result()


def tables(file: pq.ParquetFile, columns: list[str], batch: int, cores: int) -> Iterator[pa.Table]:
    """Yields tables of ``batch`` rows, across row groups; the last may have fewer. With ``cores`` above 1, several
    threads decode.
    """
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for part in file.iter_batches(batch_size=batch, columns=columns, use_threads=cores > 1):
        while part.num_rows:
            taken = part.slice(0, batch - rows)
            waiting.append(taken)
            rows += taken.num_rows
            part = part.slice(taken.num_rows)
            if rows == batch:
                yield pa.Table.from_batches(waiting).combine_chunks()
                waiting, rows = [], 0
    if waiting:
        yield pa.Table.from_batches(waiting).combine_chunks()


def _bfloat16(x: NDArray[Any]) -> NDArray[Any]:
    """The bits of the bfloat16 nearest to each float32, ties to even; 0x7fc0 for every NaN."""
    bits = x.view(np.uint32)
    rounded = ((bits + 0x7FFF + ((bits >> 16) & 1)) >> 16).astype(np.uint16)
    return np.where(np.isnan(x), np.uint16(0x7FC0), rounded)


@dataclass
class _Column:
    """A column on its way through its operators.

    Attributes:
        values: one for each row, or one for each element of the rows' lists.
        null: bool, which values are null; None where none is.
        lengths: int32 [B], the lengths of lists; None where each row has one value.
    """

    values: Any
    null: Optional[NDArray[Any]]
    lengths: Optional[NDArray[Any]]


@dataclass(frozen=True)
class _Step:
    """An operator of whole values, and the value that it takes if it is one."""

    name: str
    parameters: Mapping[str, Any]
    input: Mapping[str, Any]

    @classmethod
    def of(cls, step: Mapping[str, Any]) -> _Step:
        """Returns a step of the canonical form."""
        ((name, parameters),) = ((k, v) for k, v in step.items() if k != "inputs")
        return cls(name, parameters, step["inputs"][0])


class Transform:
    """The canonical form of a pipeline, run by NumPy."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.label = document.get("label")
        self.dense = document["dense"]
        self.keys = document["keys"]
        self.ids = np.dtype("<i4" if document["ids"] == "int32" else "<i8")
        self.narrow = document.get("dense_type") == "bfloat16"
        self.fixed = bool(document["fixed"])
        self.borders = [_borders(b) for b in document["borders"]]
        self.steps = [_Step.of(step) for step in document.get("steps", [])]
        features = [*([self.label] if self.label else []), *self.dense, *self.keys]
        self.columns = list(dict.fromkeys(self._column_of(feature, feature["name"]) for feature in features))

    def _column_of(self, value: Mapping[str, Any], name: str) -> str:
        """Returns the column that a value is made of, for the feature of the given name."""
        if "step" in value:
            step = self.steps[value["step"]]
            if step.name not in ("split", "list_length", "unpack"):
                raise UnsupportedPipelineError(
                    f"{name}: made of several columns or whole lists, which NumPy has no vectorised way to combine row "
                    "by row: name features of one column"
                )
            return self._column_of(step.input, name)
        if "key" in value:
            raise UnsupportedPipelineError(
                f"{name}: a feature of the map {value['column']}, which pyarrow and NumPy have no vectorised way to "
                "take apart: name columns that are not maps"
            )
        return str(value["column"])

    def run(self, table: pa.Table) -> Tensors:
        """Makes a mini-batch of a table's rows."""
        label = dense = values = lengths = None
        if self.label:
            label = self._number(table, self.label)
        if self.dense:
            dense = np.column_stack([self._number(table, feature) for feature in self.dense])
            if self.narrow:
                dense = _bfloat16(dense)
        if self.keys:
            made = [self.key_ids(table, feature) for feature in self.keys]
            values = np.concatenate([ids for ids, _ in made])
            if not self.fixed:
                lengths = np.stack([n for _, n in made])
        return Tensors(table.num_rows, label, dense, values, lengths)

    def _number(self, table: pa.Table, feature: Mapping[str, Any]) -> NDArray[Any]:
        numbers: NDArray[Any] = self._column(table, feature).values.astype(np.float32, copy=False)
        return numbers

    def key_ids(self, table: pa.Table, feature: Mapping[str, Any]) -> tuple[NDArray[Any], NDArray[Any]]:
        """Returns a key's ids, row by row, and int32 [B], how many ids each row has."""
        column = self._column(table, feature)
        values, lengths = column.values, column.lengths
        if lengths is None:
            if column.null is None:
                return values.astype(self.ids, copy=False), np.ones(table.num_rows, np.int32)
            return values[~column.null].astype(self.ids, copy=False), (~column.null).astype(np.int32)
        if column.null is not None:
            values, lengths = _without_nulls(values, column.null, lengths)
        return values.astype(self.ids, copy=False), lengths

    def _source(self, table: pa.Table, value: Mapping[str, Any]) -> _Column:
        """Returns the column or the step that a value begins with."""
        if "step" in value:
            step = self.steps[value["step"]]
            column = self._column(table, step.input)
            getattr(self, "_" + step.name)(column, **step.parameters)
            return column
        array = table.column(value["column"])
        array = array.chunk(0) if array.num_chunks == 1 else array.combine_chunks()
        lengths = None
        if value["list"]:
            lengths = pc.fill_null(pc.list_value_length(array), 0).to_numpy(zero_copy_only=False).astype(np.int32)
            array = array.flatten()
        return _decoded(array, value["kind"], lengths)

    def _column(self, table: pa.Table, value: Mapping[str, Any]) -> _Column:
        """Returns a feature, or the input of a step."""
        column = self._source(table, value)
        kind = value["kind"]
        for op in value["ops"]:
            ((name, parameters),) = op.items()
            takes_nulls = name in ("fill_null", "fill_nan", "hash_bytes", "float16", *_TEXT_READERS)
            if column.lengths is not None and column.null is not None and not takes_nulls:
                column.values, column.lengths = _without_nulls(column.values, column.null, column.lengths)
                column.null = None
            kind = getattr(self, "_" + name)(column, kind, **parameters)
        return column

    # The operators of whole values. Each makes another column of the column.

    def _split(self, c: _Column, separator: str, empty: str) -> None:
        lists = pc.split_pattern(c.values, separator)
        parts = lists.flatten()
        rows = np.repeat(np.arange(len(lists)), pc.list_value_length(lists).to_numpy(zero_copy_only=False))
        kept = np.ones(len(parts), bool)
        if empty == "drop":
            kept = pc.binary_length(parts).to_numpy(zero_copy_only=False) > 0
        if c.null is not None:
            kept &= ~c.null[rows]
        c.values, c.null = parts.filter(pa.array(kept)), None
        c.lengths = np.bincount(rows[kept], minlength=len(lists)).astype(np.int32)

    def _unpack(self, c: _Column, element: str) -> None:
        values = c.values.cast(pa.large_binary())
        lengths = pc.binary_length(values).to_numpy(zero_copy_only=False)
        if (lengths % 4).any():
            raise ValueError("unpack: bytes that are not those of float32 numbers")
        offsets = np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values) + 1]
        data = values.buffers()[2] or b""
        c.values = np.frombuffer(memoryview(data)[offsets[0] : offsets[-1]], "<f4")
        c.lengths, c.null = (lengths // 4).astype(np.int32), None

    def _list_length(self, c: _Column) -> None:
        assert c.lengths is not None  # the check of the pipeline says so
        lengths = c.lengths
        if c.null is not None:
            _, lengths = _without_nulls(np.empty(len(c.null), bool), c.null, lengths)
        c.values, c.null, c.lengths = lengths.astype(np.int64), None, None

    # The operators of values. Each changes the column and returns the kind of its values.

    def _fill_null(self, c: _Column, kind: str, value: Any) -> str:
        if c.null is not None:
            c.values = np.where(c.null, _number_of(value, kind), c.values)
            c.null = None
        return kind

    def _fill_nan(self, c: _Column, kind: str, value: Any) -> str:
        c.values = np.where(np.isnan(c.values), _number_of(value, kind), c.values)
        return kind

    def _clamp(self, c: _Column, kind: str, min: Any, max: Any) -> str:  # noqa: A002 (the operator's parameters)
        low, high = _number_of(min, kind), _number_of(max, kind)
        v = c.values
        # Comparisons leave a NaN and the sign of a zero as they are.
        v = np.where(v < low, low, v)
        c.values = np.where(v > high, high, v)
        return kind

    def _log(self, c: _Column, kind: str, add: str) -> str:
        x = c.values.astype(np.float32) + _number_of(add, "float32")
        with np.errstate(divide="ignore", invalid="ignore"):
            c.values = np.log(x, out=x)
        return "float32"

    def _ngram(self, c: _Column, kind: str, n: int, mode: str = "fold") -> str:
        assert c.lengths is not None  # the check of the pipeline says so
        lengths = c.lengths.astype(np.int64)
        window = np.minimum(lengths, n) if mode == "rap" else n
        windows = np.maximum(lengths - window + 1, 0)
        starts = np.cumsum(lengths) - lengths
        first = np.arange(windows.sum()) + np.repeat(starts - (np.cumsum(windows) - windows), windows)
        if mode == "rap":
            ids = np.repeat(window, windows)  # of each window
            c.values = c.values[np.arange(ids.sum()) + np.repeat(first - (np.cumsum(ids) - ids), ids)]
            c.lengths = (windows * window).astype(np.int32)
            return kind
        h = np.zeros(len(first), np.uint64)
        for k in range(n):
            h = _hashed(c.values[first + k].view(np.uint64), h)
        c.values, c.lengths = h.view(np.int64), windows.astype(np.int32)
        return kind

    def _list_slice(self, c: _Column, kind: str, start: int, end: int, pad: Union[int, str, None] = None) -> str:
        assert c.lengths is not None  # the check of the pipeline says so
        n = c.lengths.astype(np.int64)
        first = np.maximum(n + start, 0) if start < 0 else np.minimum(n, start)
        behind = np.maximum(np.maximum(n + end, 0) if end < 0 else np.minimum(n, end), first)
        kept = behind - first
        starts = np.cumsum(n) - n + first
        at = np.arange(kept.sum()) + np.repeat(starts - (np.cumsum(kept) - kept), kept)
        values = c.values[at]
        if pad is not None:
            length = max((0 if start < 0 and end == 2**63 - 1 else end) - start, 0)
            filled = np.full(len(n) * length, _number_of(pad, kind), values.dtype)
            rows = np.repeat(np.arange(len(n)) * length - (np.cumsum(kept) - kept), kept)
            filled[np.arange(len(values)) + rows] = values
            values, kept = filled, np.full(len(n), length)
        c.values, c.lengths = values, kept.astype(np.int32)
        return kind

    def _logit(self, c: _Column, kind: str, eps: str) -> str:
        t, low = c.values.astype(np.float32), _number_of(eps, "float32")
        if low >= 0:
            t = np.clip(t, low, np.float32(1) - low)
        x = t.astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            c.values = np.log(x / (1 - x)).astype(np.float32)
        return "float32"

    def _box_cox(self, c: _Column, kind: str, lambda1: str, lambda2: str, mode: str) -> str:
        x, power = c.values.astype(np.float32), float(_number_of(lambda1, "float32"))
        t = x if mode == "rap" else np.maximum(x + _number_of(lambda2, "float32"), np.float32(1e-6))
        with np.errstate(all="ignore"):
            y = np.log(t.astype(np.float64))
            if power:
                y = np.expm1(power * y) / power
            y = y.astype(np.float32)
        c.values = np.where(x > 0, y, x) if mode == "rap" else y
        return "float32"

    def _bucketize(self, c: _Column, kind: str, borders: int, side: str, nan: str, compare: str) -> str:
        table = self.borders[borders]
        x = c.values.astype(table.dtype, copy=False)
        bucket = np.searchsorted(table, x, side=side)  # type: ignore[call-overload]
        last = len(table) - 1
        if side == "left":
            # Equal borders: TorchArrow goes one bucket on unless the value is below the next border.
            following = table[np.minimum(bucket + 1, last)]
            bucket = np.where((bucket < last) & (x >= following), bucket + 1, bucket)
        if table.dtype.kind == "f":
            nans = np.isnan(x)
            if nans.any():
                if nan == "error":
                    raise ValueError("bucketize: a NaN, and nan is error")
                bucket = np.where(nans, {"first": 0, "last": last + 1}.get(nan, int(last > 0)), bucket)
        c.values = bucket.astype(np.int64, copy=False)
        return "int64"

    def _normalize(self, c: _Column, kind: str, mean: str, deviation: str) -> str:
        # Rounded to float64 between, and so in the last bit of a float32 once in 2^28 values.
        by = _number_of(deviation, "float64")
        x = c.values.astype(np.float32) - np.float64(_number_of(mean, "float64"))
        c.values = (x / by if by else x).astype(np.float32)
        return "float32"

    def _min_max(self, c: _Column, kind: str, min: str, max: str) -> str:  # noqa: A002
        low, high = np.float64(_number_of(min, "float64")), np.float64(_number_of(max, "float64"))
        x = c.values.astype(np.float32).astype(np.float64)
        with np.errstate(divide="ignore", invalid="ignore"):
            c.values = ((x - low) / (high - low) if high > low else x / (2 * x)).astype(np.float32)
        return "float32"

    def _sigrid_hash(self, c: _Column, kind: str, salt: int, max: int) -> str:  # noqa: A002
        k = _hashed(c.values.view(np.uint64), np.uint64(salt & (1 << 64) - 1))
        h, divisor = k.view(np.int64), np.int64(max)
        c.values = h - h // divisor * divisor  # NumPy divides by one divisor with vectors, and takes remainders one by one
        return kind

    def _positive_modulus(self, c: _Column, kind: str, modulus: int) -> str:
        c.values = c.values % np.int64(modulus)
        return kind

    def _unsigned_modulus(self, c: _Column, kind: str, modulus: int) -> str:
        c.values = (c.values.view(np.uint64) % np.uint64(modulus)).view(np.int64)
        return kind

    def _hex_to_int(self, c: _Column, kind: str) -> str:
        lengths = pc.binary_length(c.values).to_numpy(zero_copy_only=False)
        if (lengths > 8).any():
            raise ValueError("hex_to_int: text of more than eight digits")
        digits = _HEX[np.frombuffer(_bytes(pc.utf8_lpad(c.values, 8, "0")), np.uint8)].reshape(-1, 8).astype(np.uint64)
        if (digits > 15).any():
            raise ValueError("hex_to_int: text that is not hexadecimal")
        shifts = np.arange(28, -4, -4, dtype=np.uint64)
        c.values = (digits << shifts).sum(axis=1, dtype=np.uint64).view(np.int64)
        _note_empty(c, lengths == 0)
        return "int64"

    def _cast(self, c: _Column, kind: str, to: str, overflow: str = "fail", **source: str) -> str:
        numbers = c.values.view(np.uint64) if source else c.values
        if to == "float64_bits":
            bits = (numbers + 0.0).view(np.int64)  # -0 + 0 is 0
            c.values = np.where(np.isnan(numbers), np.int64(0x7FF8 << 48), bits)
            return "int64"
        if to != "int64":
            with np.errstate(over="ignore"):
                c.values = numbers.astype(to)
            return to
        fits = numbers < np.float64(2**63)
        if not source:
            fits &= numbers >= np.float64(-(2**63))
        if overflow == "fail" and not (fits if c.null is None else fits | c.null).all():
            raise ValueError("cast: a number that is not within int64")
        c.values = np.where(fits, numbers, 0).astype(np.int64)
        if overflow == "as_null" and not fits.all():
            c.null = ~fits if c.null is None else c.null | ~fits
        return "int64"

    def _text_to_int(self, c: _Column, kind: str) -> str:
        texts = _read_texts(c)
        if not pc.all(pc.match_substring_regex(texts, r"^[+-]?[0-9]+\z")).as_py() and len(texts):
            raise ValueError("text_to_int: text that is not a decimal integer")
        c.values = pc.cast(pc.utf8_ltrim(texts, "+"), pa.int64()).fill_null(0).to_numpy(zero_copy_only=False)
        return "int64"

    def _text_to_seconds(self, c: _Column, kind: str, offset: Optional[int] = None) -> str:
        texts = _read_texts(c)
        parts = pc.extract_regex(texts, _TIME)
        if parts.null_count != texts.null_count:
            raise ValueError("text_to_seconds: text that is not a time")
        day, clock, zone = parts.flatten()  # null where the text is
        if offset is None and pc.any(pc.equal(zone, "")).as_py():
            raise ValueError("text_to_seconds: a time without an offset")
        clock = pc.if_else(pc.equal(clock, ""), "00:00:00", clock)
        local = pc.strptime(pc.binary_join_element_wise(day, clock, " "), "%Y-%m-%d %H:%M:%S", "s").cast(pa.int64())
        digits = pc.utf8_rpad(pc.replace_substring(pc.utf8_ltrim(zone, "+-Z"), ":", ""), 4, "0")
        ahead = pc.add(
            pc.multiply(pc.utf8_slice_codeunits(digits, 0, 2).cast(pa.int64()), 3600),
            pc.multiply(pc.utf8_slice_codeunits(digits, 2, 4).cast(pa.int64()), 60),
        )
        ahead = pc.if_else(pc.starts_with(zone, "-"), pc.negate(ahead), ahead)
        ahead = pc.if_else(pc.equal(zone, ""), pa.scalar(offset or 0, pa.int64()), ahead)
        c.values = pc.subtract(local, ahead).fill_null(0).to_numpy(zero_copy_only=False)
        return "int64"

    def _hash_bytes(self, c: _Column, kind: str, function: str) -> str:
        c.values = hash_text(c.values, function)
        if c.lengths is not None and c.null is not None:
            c.values, c.lengths = _without_nulls(c.values, c.null, c.lengths)
            c.null = None
        return "int64"

    def _get_local_hour(self, c: _Column, kind: str, **tables: int) -> str:
        starts, offsets = self.borders[tables["from"]], self.borders[tables["offsets"]]
        offset = offsets[np.searchsorted(starts, c.values, side="right") - 1]
        c.values = (c.values % 86400 + offset) % 86400 // 3600
        return kind

    def _map_text(
        self, c: _Column, kind: str, keys: int, values: int, unknown: str, default: Optional[int] = None
    ) -> str:
        # pyarrow looks texts up by a hash. A place that is null is that of a null or of a text that the table lacks.
        texts = pa.array(self.borders[keys], c.values.type)
        places = pc.index_in(c.values, value_set=texts)
        lacks = pc.is_null(places).to_numpy(zero_copy_only=False)
        if c.null is not None:
            lacks &= ~c.null
        if unknown == "fail" and lacks.any():
            raise ValueError("map_text: a text that the table lacks")
        if unknown == "as_null" and lacks.any():
            c.null = lacks if c.null is None else c.null | lacks
        at = pc.fill_null(places, 0).to_numpy(zero_copy_only=False)
        found = self.borders[values][at]
        c.values = np.where(lacks, np.int64(default), found) if default is not None else found
        return "int64"

    def _map_id(self, c: _Column, kind: str, values: int, default: int, keys: Optional[int] = None) -> str:
        table, at = self.borders[values], c.values
        if keys is not None:
            at = np.searchsorted(self.borders[keys], c.values)
            found = self.borders[keys][np.minimum(at, len(table) - 1)] == c.values
        else:
            found = (c.values >= 0) & (c.values < len(table))
        c.values = np.where(found, table[np.where(found, at, 0)], np.int64(default))
        return kind

    def _fixed_length(self, c: _Column, kind: str, length: int, pad: Optional[str] = None) -> str:
        assert c.lengths is not None  # the check of the pipeline says so
        if (c.lengths > length).any() or pad is None and (c.lengths != length).any():
            raise ValueError(f"a list of another length than {length}")
        filled = np.full((len(c.lengths), length), 0 if pad is None else _number_of(pad, "float32"), np.float32)
        filled[np.arange(length) < c.lengths[:, None]] = c.values
        c.values, c.lengths = filled, None
        return "float32"

    def _rescale(self, c: _Column, kind: str, multiplier: int, divisor: int) -> str:
        c.values = np.floor_divide(c.values, np.int64(divisor)) if divisor > 1 else c.values * np.int64(multiplier)
        return kind

    def _int96_time(self, c: _Column, kind: str, to: str) -> str:
        c.values = np.floor_divide(c.values, np.int64({"seconds": 10**9, "days": 86400 * 10**9}[to]))
        return "int64"

    def _decimal(self, c: _Column, kind: str, scale: int, to: str) -> str:
        if to == "int64":
            return to
        if len(c.values) and (int(c.values.min()) < -(2**53) or int(c.values.max()) > 2**53 or scale > 22):
            raise UnsupportedPipelineError("decimals beyond 2^53, or of a scale above 22, which NumPy rounds twice")
        c.values = (c.values / np.float64(10**scale)).astype(to)
        return to

    def _float16(self, c: _Column, kind: str) -> str:
        c.values = c.values.astype(np.float32)
        return "float32"

    def _zero_extend(self, c: _Column, kind: str) -> str:
        c.values = c.values & np.int64(0xFFFFFFFF)
        return kind

    def _firstx(self, c: _Column, kind: str, n: int) -> str:
        assert c.lengths is not None  # the check of the pipeline says so
        if (c.lengths > n).any():
            starts = np.cumsum(c.lengths) - c.lengths
            place = np.arange(len(c.values)) - np.repeat(starts, c.lengths)
            c.values = c.values[place < n]
            c.lengths = np.minimum(c.lengths, n).astype(np.int32)
        return kind


def _hashed(k: NDArray[Any], salted: Union[np.uint64, NDArray[Any]]) -> NDArray[Any]:
    """Returns the hash of ids before the modulus, with one salt for all ids or one salt for each."""
    k = ~k + (k << np.uint64(21))
    k ^= k >> np.uint64(24)
    k *= np.uint64(265)
    k ^= k >> np.uint64(14)
    k *= np.uint64(21)
    k ^= k >> np.uint64(28)
    k *= np.uint64(1 + (1 << 31))
    m = np.uint64(0x9DDFEA08EB382D69)
    k ^= salted
    k *= m
    k ^= k >> np.uint64(47)
    k ^= salted
    k *= m
    k ^= k >> np.uint64(47)
    k *= m
    return k


_HEX = np.full(256, 255, np.uint8)
for _digit, _characters in enumerate("0 1 2 3 4 5 6 7 8 9 aA bB cC dD eE fF".split()):
    for _character in _characters:
        _HEX[ord(_character)] = _digit


# The operators that make a null of an empty text.
_TEXT_READERS = ("hex_to_int", "map_text", "text_to_int", "text_to_seconds")

# The text of a time: its day, its time of day and its offset.
_TIME = (
    r"^(?P<day>[0-9]{4}-[0-9]{2}-[0-9]{2})(?:[T ](?P<clock>[0-9]{2}:[0-9]{2}:[0-9]{2})(?:\.[0-9]{1,9})?"
    r"(?P<zone>(?:Z|[+-][0-9]{2}(?::?[0-9]{2})?)?))?\z"
)


def _note_empty(c: _Column, empty: NDArray[Any]) -> None:
    """Makes nulls of empty texts."""
    if empty.any():
        c.null = empty if c.null is None else c.null | empty


def _read_texts(c: _Column) -> pa.Array:
    """Returns a column's texts, null where they are empty, and notes which are."""
    empty = pc.equal(pc.binary_length(c.values), 0)
    _note_empty(c, empty.to_numpy(zero_copy_only=False))
    return pc.if_else(empty, None, c.values)


def _bytes(padded: pa.Array) -> memoryview:
    """The bytes of texts that are eight bytes long each."""
    offsets = np.frombuffer(padded.buffers()[1], np.int64 if pa.types.is_large_string(padded.type) else np.int32)
    first = int(offsets[padded.offset])
    return memoryview(padded.buffers()[2])[first : first + 8 * len(padded)]


def _decoded(array: pa.Array, kind: str, lengths: Optional[NDArray[Any]]) -> _Column:
    """Returns a column's values as a NumPy array, or text as Arrow's, with a filler where they are null."""
    null = None
    if array.null_count:
        null = pc.is_null(array).to_numpy(zero_copy_only=False)
    if pa.types.is_decimal(array.type) or pa.types.is_temporal(array.type) or pa.types.is_float16(array.type):
        return _Column(_unscaled(array), null, lengths)
    if kind == "bytes":
        # Bytes need not be UTF-8, which an unsafe cast does not check.
        text = array.cast(pa.string(), safe=False) if not pa.types.is_large_string(array.type) else array
        return _Column(pc.fill_null(text, "") if null is not None else text, null, lengths)
    if pa.types.is_boolean(array.type) or pa.types.is_null(array.type):
        array = array.cast(pa.uint8())
    elif not (pa.types.is_integer(array.type) or pa.types.is_floating(array.type)):
        raise UnsupportedPipelineError(f"a column of {array.type}: this comparison has numbers, booleans and text")
    if null is not None:
        array = pc.fill_null(array, 0)
    dtype = {"int64": np.int64, "float32": np.float32, "float64": np.float64}[kind]
    values = array.to_numpy(zero_copy_only=False)
    if values.dtype == np.uint64:
        return _Column(values.view(np.int64), null, lengths)
    return _Column(values.astype(dtype, copy=False), null, lengths)


def _unscaled(array: pa.Array) -> NDArray[Any]:
    """Returns the integers that times and decimals count, INT96 as nanoseconds, or the values of float16. A null is 0."""
    if pa.types.is_float16(array.type):
        halves: NDArray[Any] = array.to_numpy(zero_copy_only=False)
        return np.where(pc.is_valid(array).to_numpy(zero_copy_only=False), halves, np.float16(0))
    if not pa.types.is_decimal(array.type):
        narrow = pa.types.is_date32(array.type) or pa.types.is_time32(array.type)
        whole: NDArray[Any] = pc.fill_null(array.cast(pa.int32() if narrow else pa.int64()), 0).to_numpy()
        return whole.astype(np.int64)
    wide = array.cast(pa.decimal128(38, array.type.scale))
    words = np.frombuffer(wide.buffers()[1], np.int64)[2 * wide.offset : 2 * (wide.offset + len(wide))].reshape(-1, 2)
    valid = pc.is_valid(wide).to_numpy(zero_copy_only=False)
    if ((words[:, 1] != words[:, 0] >> 63) & valid).any():
        raise UnsupportedPipelineError("decimals beyond int64, which NumPy does not have")
    return np.where(valid, words[:, 0], 0)


def _without_nulls(
    values: NDArray[Any], null: NDArray[Any], lengths: NDArray[Any]
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Returns the values and lengths of lists, where a list that holds a null becomes empty."""
    ends = np.cumsum(lengths)
    nulls = np.concatenate([[0], np.cumsum(null)])
    harmed = nulls[ends] > nulls[ends - lengths]
    return values[~np.repeat(harmed, lengths)], np.where(harmed, 0, lengths).astype(np.int32)


def _number_of(value: Any, kind: str) -> Any:
    """Returns a parameter, from an integer or, for a float, from the hexadecimal digits of its bits."""
    if kind == "int64":
        return np.int64(value)
    if kind == "float32":
        return np.array([int(value, 16)], np.uint32).view(np.float32)[0]
    return np.array([int(value, 16)], np.uint64).view(np.float64)[0]


def _borders(table: Mapping[str, str]) -> NDArray[Any]:
    """Returns a table, which the canonical form writes as texts, or as the hexadecimal digits of the bits of numbers."""
    ((kind, digits),) = table.items()
    if kind == "texts":
        return np.array(digits, dtype=object)
    unsigned, dtype = {"float32": (">u4", np.float32), "float64": (">u8", np.float64), "int64": (">u8", np.int64)}[kind]
    bits = np.frombuffer(bytes.fromhex(digits), unsigned)
    return bits.astype(bits.dtype.newbyteorder("=")).view(dtype)
