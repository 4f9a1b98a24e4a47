"""Mini-batches as tensors of PyTorch that share their memory, and as TorchRec's KeyedJaggedTensor."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple, Optional, Union

import torch

from . import frame
from .errors import FrameError
from .schema import Schema

try:
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor as _KeyedJaggedTensor
except Exception as e:  # TorchRec raises any exception on a torch or Python that it does not support
    if not isinstance(e, ModuleNotFoundError):
        logging.getLogger("millrace").warning("torchrec is installed and does not load, so Jagged is used: %r", e)
    _KeyedJaggedTensor = None

__all__ = ["Batch", "Jagged", "assemble", "batch_of", "bytes_of", "check_lengths", "moved", "use_torchrec"]

_DTYPES = {"float32": torch.float32, "int32": torch.int32, "int64": torch.int64, "bfloat16": torch.bfloat16}


class Jagged(NamedTuple):
    """The sparse features where TorchRec is not installed: the fields of its KeyedJaggedTensor.

    With F keys, B rows and N values:

    Attributes:
        keys: F names.
        values: int32 or int64 [N]: all ids of the first key row by row, then of the second, ...
        lengths: int32 [F * B]: how many ids row b of key f has, at f * B + b.
        weights: float32 [N], or None.
        stride: B.
        fixed: whether every length is 1, so that ``values.view(F, B)`` holds one id a row where no key is deduplicated.
        strides: how many rows each key has, or () where all have B. A key that is deduplicated holds each different row
            once; ``lengths`` then has as many elements as all strides together.
        inverse: int64 [F, B]: the index of row b among its key's different rows; None where no key is deduplicated.
    """

    keys: tuple[str, ...]
    values: torch.Tensor
    lengths: torch.Tensor
    weights: Optional[torch.Tensor]
    stride: int
    fixed: bool
    strides: tuple[int, ...] = ()
    inverse: Optional[torch.Tensor] = None

    def expanded(self) -> "Jagged":
        """Returns the same features with every row of every key, as if no key were deduplicated: copies on the same
        device, or this object if no key is deduplicated.
        """
        if self.inverse is None:
            return self
        values, lengths, weights = [], [], []
        offsets, at = self.offsets(), 0
        for f, rows in enumerate(self.strides):
            which = self.inverse[f]
            n = self.lengths[at : at + rows].index_select(0, which)
            begins = offsets[at : at + rows].index_select(0, which)
            # Element i of a row lies i places after the row's first element.
            ends = torch.cumsum(n, 0, dtype=torch.int64)
            first = torch.repeat_interleave(begins - (ends - n), n)
            index = first + torch.arange(first.numel(), device=first.device)
            values.append(self.values.index_select(0, index))
            if self.weights is not None:
                weights.append(self.weights.index_select(0, index))
            lengths.append(n)
            at += rows
        return Jagged(
            self.keys,
            torch.cat(values),
            torch.cat(lengths),
            torch.cat(weights) if self.weights is not None else None,
            self.stride,
            self.fixed,
        )

    def _index_of(self, key: Union[int, str]) -> int:
        f = self.keys.index(key) if key in self.keys else key
        if isinstance(f, str) or not 0 <= f < len(self.keys):
            names = ", ".join(self.keys[:8]) + (", ..." if len(self.keys) > 8 else "")
            raise ValueError(
                f"feature({key!r}): there is no such key: want one of {names}, or an index from 0 to "
                f"{len(self.keys) - 1}"
            )
        return f

    def offsets(self) -> torch.Tensor:
        """Returns int64 o [F * B + 1]: row b of key f has values [o[f * B + b], o[f * B + b + 1]). Where keys are
        deduplicated, o is [sum(strides) + 1], and row i of key f has the index ``sum(strides[:f]) + i`` in it.
        """
        o = torch.zeros(self.lengths.numel() + 1, dtype=torch.int64, device=self.lengths.device)
        torch.cumsum(self.lengths, 0, dtype=torch.int64, out=o[1:])
        return o

    def feature(self, key: Union[int, str]) -> tuple[torch.Tensor, torch.Tensor]:
        """Returns one key's values [n] and offsets int64 [B], as ``torch.nn.EmbeddingBag`` takes them. For a
        deduplicated key they are those of its different rows, int64 [strides[f]]: ``bag(*feature(key)).index_select(0,
        inverse[f])`` has all B rows.

        Args:
            key: the key's index from 0, or its name.

        Raises:
            ValueError: there is no such key.
        """
        f = self._index_of(key)
        b = self.strides[f] if self.strides else self.stride
        at = sum(self.strides[:f]) if self.strides else f * b
        lengths = self.lengths[at : at + b]
        if self.fixed:
            return self.values[at : at + b], torch.arange(b, device=self.values.device)
        ends = torch.cumsum(lengths, 0, dtype=torch.int64)
        start = int(self.lengths[:at].sum())
        count = int(ends[-1]) if b else 0
        return self.values[start : start + count], ends - lengths


class Batch(NamedTuple):
    """One mini-batch as tensors, with B rows, D dense features and F keys.

    Attributes:
        dense: float32 or bfloat16 [B, D], or None.
        sparse: TorchRec's KeyedJaggedTensor, else :class:`Jagged`, or None without keys.
        label: float32 [B], or None.
        name: job, epoch and number; None for a dummy.
    """

    dense: Optional[torch.Tensor]
    sparse: Any
    label: Optional[torch.Tensor]
    name: Optional[frame.Name]

    @property
    def rows(self) -> int:
        """B, the number of rows"""
        for t in (self.dense, self.label):
            if t is not None:
                return int(t.shape[0])
        stride = self.sparse.stride
        return int(stride() if callable(stride) else stride)


class _Ones:
    """Keeps one tensor of ones for each device, for mini-batches where every length is 1."""

    def __init__(self) -> None:
        self._ones: dict[torch.device, torch.Tensor] = {}

    def take(self, n: int, device: torch.device) -> torch.Tensor:
        ones = self._ones.get(device)
        if ones is None or ones.numel() < n:
            ones = self._ones[device] = torch.ones(n, dtype=torch.int32, device=device)
        some: torch.Tensor = ones[:n]
        return some


_ones = _Ones()


def check_lengths(mb: frame.MiniBatch, data: torch.Tensor) -> None:
    e = next((e for e in mb.extents if e.name == "kjt.inverse"), None)
    if e is not None and mb.rows:
        inverse = data[e.offset : e.offset + e.nbytes].view(torch.int32).view(e.shape)
        low, high = inverse.amin(1).tolist(), inverse.amax(1).tolist()
        for i, n in enumerate(mb.unique):
            if low[i] < 0 or high[i] >= n:
                raise FrameError(
                    f"{mb.name}: kjt.inverse of set {i + 1} goes from {low[i]} to {high[i]}, want 0 to {n - 1}"
                )
    if mb.schema.fixed:
        return
    e = next(e for e in mb.extents if e.name == "kjt.lengths")
    values = next(e.shape[0] for e in mb.extents if e.name == "kjt.values")
    lengths = data[e.offset : e.offset + e.nbytes].view(torch.int32)
    if lengths.numel() and int(lengths.min()) < 0 or int(lengths.sum(dtype=torch.int64)) != values:
        raise FrameError(f"{mb.name}: its lengths do not add up to its {values} values")


def assemble(mb: frame.MiniBatch, blob: torch.Tensor, torchrec: bool, named: bool) -> Batch:
    """Returns tensors that are views of a mini-batch's data.

    Args:
        blob: the data, uint8 [n], on the CPU or a device.
        torchrec: whether ``sparse`` is TorchRec's KeyedJaggedTensor.
        named: whether the batch has the mini-batch's name.
    """
    parts: dict[str, torch.Tensor] = {}
    for e in mb.extents:
        parts[e.name] = blob[e.offset : e.offset + e.nbytes].view(_DTYPES[e.dtype]).view(e.shape)
    sparse: Any = None
    schema = mb.schema
    if schema.keys:
        keys, values = schema.key_names, parts["kjt.values"]
        weights = parts.get("kjt.weights")
        strides = tuple(mb.rows_of_keys) if mb.unique else ()
        n = sum(strides) if strides else len(keys) * mb.rows
        lengths = _ones.take(n, blob.device) if schema.fixed else parts["kjt.lengths"].view(-1)
        inverse = _inverse(schema, parts["kjt.inverse"]) if strides else None
        sparse = Jagged(keys, values, lengths, weights, mb.rows, schema.fixed, strides, inverse)
        if torchrec:
            sparse = _keyed(sparse)
    return Batch(parts.get("dense"), sparse, parts.get("label"), mb.name if named else None)


def _inverse(schema: Schema, sets: torch.Tensor) -> torch.Tensor:
    """Returns the inverse of every key, int64 [F, B], from the inverse of the sets, int32 [G, B]. The inverse of a key
    in no set is 0, 1, ..., B - 1.
    """
    rows = sets.shape[1]
    whole = torch.arange(rows, dtype=torch.int64, device=sets.device)
    wide = sets.to(torch.int64)
    return torch.stack([wide[k.set - 1] if k.set else whole for k in schema.keys])


def _keyed(sparse: Jagged) -> Any:
    """Returns TorchRec's KeyedJaggedTensor. A version without inverse_indices (before 1.0) gets every row."""
    if sparse.inverse is not None:
        try:
            return _KeyedJaggedTensor(
                keys=list(sparse.keys),
                values=sparse.values,
                weights=sparse.weights,
                lengths=sparse.lengths,
                stride_per_key_per_rank=[[n] for n in sparse.strides],
                inverse_indices=(list(sparse.keys), sparse.inverse),
            )
        except TypeError as e:
            if "stride_per_key_per_rank" not in str(e) and "inverse_indices" not in str(e):
                raise
            sparse = sparse.expanded()
    return _KeyedJaggedTensor(
        keys=list(sparse.keys),
        values=sparse.values,
        weights=sparse.weights,
        lengths=sparse.lengths,
        stride=sparse.stride,
    )


def bytes_of(mb: frame.MiniBatch) -> torch.Tensor:
    """Returns a mini-batch's data as uint8 [n] in the same memory, or a copy of it if the memory is read-only. The
    memory lives as long as a tensor made of it.
    """
    if not len(mb.data):
        return torch.empty(0, dtype=torch.uint8)
    # Tensors can be written to, and read-only memory cannot, so it is copied.
    return torch.frombuffer(bytearray(mb.data) if mb.data.readonly else mb.data, dtype=torch.uint8)


def batch_of(mb: frame.MiniBatch, *, torchrec: Optional[bool] = None, validate: bool = True) -> Batch:
    """Returns a mini-batch as tensors on the CPU that share its memory.

    Args:
        torchrec: whether ``sparse`` is TorchRec's KeyedJaggedTensor; None means where TorchRec is installed.
        validate: whether lengths are checked (a fraction of a millisecond).

    Raises:
        FrameError: ``validate`` is True, and the lengths do not add up to the number of values, or an index is out of
            range.
        ImportError: ``torchrec`` is True, and TorchRec is not installed.
    """
    data = bytes_of(mb)
    if validate:
        check_lengths(mb, data)
    return assemble(mb, data, use_torchrec(torchrec), True)


def use_torchrec(wanted: Optional[bool]) -> bool:
    if wanted and _KeyedJaggedTensor is None:
        raise ImportError("torchrec is not installed")
    return _KeyedJaggedTensor is not None if wanted is None else wanted


def moved(batch: Batch, device: torch.device) -> Batch:
    """Returns a batch whose tensors are copied to a device one by one, for devices other than CUDA."""
    sparse = batch.sparse
    if isinstance(sparse, Jagged):
        weights = sparse.weights.to(device) if sparse.weights is not None else None
        inverse = sparse.inverse.to(device) if sparse.inverse is not None else None
        sparse = sparse._replace(
            values=sparse.values.to(device), lengths=sparse.lengths.to(device), weights=weights, inverse=inverse
        )
    elif sparse is not None:
        sparse = sparse.to(device)

    def move(t: Optional[torch.Tensor]) -> Optional[torch.Tensor]:
        return None if t is None else t.to(device)

    return Batch(move(batch.dense), sparse, move(batch.label), batch.name)
