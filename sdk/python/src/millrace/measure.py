"""Measures T, the trainer's throughput, on dummy mini-batches, and restores the model and the optimiser afterwards."""

from __future__ import annotations

import contextlib
import copy
import ctypes
import hashlib
import random
import struct
import sys
from typing import Any, Iterator, Mapping, NamedTuple, Sequence

import torch

from . import frame
from .schema import Schema

__all__ = ["Throughput", "dummy_frame", "fingerprint", "untouched"]


class Throughput(NamedTuple):
    """A measured T.

    Attributes:
        rows_per_second: T.
        steps: how many steps were timed.
        seconds: how long these steps took.
    """

    rows_per_second: float
    steps: int
    seconds: float


def _raw(t: torch.Tensor) -> bytes:
    """Returns the bytes of a tensor on the CPU, without NumPy."""
    t = t.contiguous()
    return ctypes.string_at(t.data_ptr(), t.numel() * t.element_size()) if t.numel() else b""


def dummy_frame(schema: Schema, rows: int, mean_length: Mapping[str, float], seed: int = 0) -> frame.MiniBatch:
    """Returns a mini-batch of ``rows`` rows with made-up content. Its name has a job digest of zeros and epoch 0.

    Ids are spread over each key's embeddings (or the first million). The lengths of lists are their mean length,
    rounded up and down so that the mean holds. Dense features lie between 0 and 16. Half of the labels are 1.

    Args:
        mean_length: mean number of elements in a row, by list column; 1 for columns that it lacks.
        seed: seeds the random numbers, and is the mini-batch's number.
    """
    g = torch.Generator().manual_seed(seed)
    tensors: dict[str, bytes] = {}

    raw = _raw
    if schema.keys:
        values, lengths = [], []
        for k in schema.keys:
            n = torch.ones(rows, dtype=torch.int32)
            if k.is_list:
                mean = max(0.0, float(mean_length.get(k.name, 1.0)))
                ends = torch.floor(torch.arange(rows + 1, dtype=torch.float64).mul(mean))
                n = (ends[1:] - ends[:-1]).to(torch.int32)
            lengths.append(n)
            most = k.num_embeddings or 1_000_000
            values.append(torch.randint(0, most, (int(n.sum()),), generator=g, dtype=torch.int64))
        ids = torch.cat(values)
        tensors["kjt.values"] = raw(ids.to(torch.int32) if schema.ids == "int32" else ids)
        if not schema.fixed:
            tensors["kjt.lengths"] = raw(torch.cat(lengths))
        if schema.sets:  # all rows differ
            tensors["kjt.inverse"] = raw(torch.arange(rows, dtype=torch.int32).repeat(schema.sets))
        if schema.weights:
            tensors["kjt.weights"] = raw(torch.rand(ids.numel(), generator=g))
    if schema.dense:
        dense = torch.rand(rows, len(schema.dense), generator=g).mul(16)
        tensors["dense"] = raw(dense.to(torch.bfloat16) if schema.dense_type == "bfloat16" else dense)
    if schema.label:
        tensors["label"] = raw(torch.remainder(torch.arange(rows), 2).to(torch.float32))
    encoded = frame.encode(frame.Name("0" * 64, 0, seed), schema, rows, tensors, [rows] * schema.sets)
    return frame.decode(bytearray(encoded), check=False)


@contextlib.contextmanager
def untouched(
    models: Sequence[torch.nn.Module], optimizers: Sequence[torch.optim.Optimizer], others: Sequence[Any] = ()
) -> Iterator[None]:
    """Restores the models, the optimizers, ``others`` (objects with ``state_dict`` and ``load_state_dict``) and the
    random states at the end of the ``with``, also after an exception: the same tensors with the same bits. Inside the
    ``with`` it holds a copy of the weights and of the optimizers' state.
    """
    undo = [_random_states()]
    for m in models:
        undo.append(_module(m))
    for o in optimizers:
        undo.append(_optimizer(o))
    saved = [(o, copy.deepcopy(o.state_dict())) for o in others]
    try:
        yield
    finally:
        with torch.no_grad():
            for restore in reversed(undo):
                restore()
        for o, state in saved:
            o.load_state_dict(state)


def _random_states() -> Any:
    python, cpu = random.getstate(), torch.get_rng_state()
    cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else []
    numpy = sys.modules.get("numpy")
    numbers = numpy.random.get_state() if numpy is not None else None

    def restore() -> None:
        random.setstate(python)
        torch.set_rng_state(cpu)
        if cuda:
            torch.cuda.set_rng_state_all(cuda)
        if numpy is not None:
            numpy.random.set_state(numbers)

    return restore


def _module(m: torch.nn.Module) -> Any:
    weights = [(p, p.detach().clone(), None if p.grad is None else p.grad.detach().clone()) for p in m.parameters()]
    # Every buffer, also those that state_dict leaves out.
    buffers = [
        (sub, name, b, None if b is None else b.detach().clone())
        for sub in m.modules()
        for name, b in sub._buffers.items()
    ]
    modes = [(sub, sub.training) for sub in m.modules()]

    def restore() -> None:
        for p, value, grad in weights:
            p.copy_(value)
            p.grad = grad
        for sub, name, b, kept in buffers:
            if b is not None and kept is not None:
                b.copy_(kept)
            sub._buffers[name] = b
        for sub, training in modes:
            sub.training = training

    return restore


def _optimizer(o: torch.optim.Optimizer) -> Any:
    # Not by load_state_dict, which casts to the parameters' type and takes the parameters' order on trust.
    state = {p: copy.deepcopy(s) for p, s in o.state.items()}
    groups = [{k: copy.deepcopy(v) for k, v in g.items() if k != "params"} for g in o.param_groups]

    def restore() -> None:
        o.state.clear()
        o.state.update(state)
        del o.param_groups[len(groups) :]
        for g, saved in zip(o.param_groups, groups):
            for k in [k for k in g if k != "params" and k not in saved]:
                del g[k]
            g.update(saved)

    return restore


def fingerprint(*things: Any) -> str:
    """Returns the SHA-256, in 64 hex digits, over state_dicts, tensors and plain values, bit for bit."""
    h = hashlib.sha256()

    def add(v: Any) -> None:
        if hasattr(v, "state_dict"):
            add(v.state_dict())
        elif isinstance(v, torch.Tensor):
            t = v.detach().cpu()
            if t.layout != torch.strided:
                t = t.to_dense()
            h.update(f"{t.dtype}{tuple(t.shape)}".encode())
            h.update(_raw(t))
        elif isinstance(v, Mapping):
            h.update(b"{")
            for k in v:
                add(k)
                add(v[k])
            h.update(b"}")
        elif isinstance(v, (list, tuple)):
            h.update(b"[")
            for x in v:
                add(x)
            h.update(b"]")
        elif isinstance(v, float):
            h.update(struct.pack("<d", v))
        else:
            h.update(repr(v).encode())

    for t in things:
        add(t)
    return h.hexdigest()
