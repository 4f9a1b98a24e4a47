"""Mini-batches for PyTorch and TorchRec.

:class:`MiniBatches` is an ``IterableDataset``::

    data = MiniBatches("http://127.0.0.1:7460", id="rm1", device="cuda")
    model = build(data.schema())
    data.measure_throughput(step, model=model, optimizer=optimizer)
    for epoch in range(data.epoch, data.epochs):
        for batch in data:
            step(batch)
        torch.save({"model": model.state_dict(), "data": data.state_dict()}, path)

One ``for`` is one epoch, or what is left of it. Iterate it directly, or through ``DataLoader(data, batch_size=None)`` (or
torchdata's ``StatefulDataLoader``, which saves and restores the position by itself) with ``num_workers`` 0 or 1: the threads behind it
fetch without holding the interpreter lock, so more processes gain nothing, and a rank has one consumer.

On the CPU tensors are views of the bytes that came from the socket. With a CUDA device a thread copies each mini-batch
once, in one piece, into pinned memory, and from there asynchronously to the device, ahead of the trainer; tensors are views of
that piece.
"""

from __future__ import annotations

import os
import threading
import time
from collections import deque
from typing import Any, Callable, Iterator, Mapping, NamedTuple, Optional, Sequence, Union

import torch
from torch.utils.data import IterableDataset, get_worker_info

from . import frame
from .client import Job, Statistics
from .errors import FrameError, MillraceError
from .measure import Throughput, dummy_frame, untouched
from .schema import Schema

try:
    from torchrec.sparse.jagged_tensor import KeyedJaggedTensor as _KeyedJaggedTensor
except ImportError:
    _KeyedJaggedTensor = None

__all__ = ["Batch", "Jagged", "MiniBatches", "Throughput", "batch_of"]

_DTYPES = {"float32": torch.float32, "int32": torch.int32, "int64": torch.int64}

Device = Union[str, torch.device, None]


class Jagged(NamedTuple):
    """The sparse features where TorchRec is not installed: the fields of its KeyedJaggedTensor.

    With F keys, B rows and N values:

    Attributes:
        keys: F names.
        values: int32 or int64 [N]: all ids of the first key row by row, then of the second, ...
        lengths: int32 [F * B]: how many ids row b of key f has, at f * B + b.
        weights: float32 [N], or None.
        stride: B.
        fixed: every length is 1, so that ``values.view(F, B)`` holds one id a row.
    """

    keys: tuple[str, ...]
    values: torch.Tensor
    lengths: torch.Tensor
    weights: Optional[torch.Tensor]
    stride: int
    fixed: bool

    def offsets(self) -> torch.Tensor:
        """int64 [F * B + 1]: row b of key f has values [o[f * B + b], o[f * B + b + 1])."""
        o = torch.zeros(self.lengths.numel() + 1, dtype=torch.int64, device=self.lengths.device)
        torch.cumsum(self.lengths, 0, dtype=torch.int64, out=o[1:])
        return o

    def feature(self, key: Union[int, str]) -> tuple[torch.Tensor, torch.Tensor]:
        """One key's (values, offsets int64 [B]) as ``torch.nn.EmbeddingBag`` takes them."""
        f = key if isinstance(key, int) else self.keys.index(key)
        b = self.stride
        lengths = self.lengths[f * b : (f + 1) * b]
        if self.fixed:
            return self.values[f * b : (f + 1) * b], torch.arange(b, device=self.values.device)
        ends = torch.cumsum(lengths, 0, dtype=torch.int64)
        start = int(self.lengths[: f * b].sum())
        count = int(ends[-1]) if b else 0
        return self.values[start : start + count], ends - lengths


class Batch(NamedTuple):
    """One mini-batch as tensors, with B rows, D dense features and F keys.

    Attributes:
        dense: float32 [B, D], or None.
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
        """B"""
        for t in (self.dense, self.label):
            if t is not None:
                return int(t.shape[0])
        stride = self.sparse.stride
        return int(stride() if callable(stride) else stride)


class _Ones:
    """Lengths where every length is 1: made once."""

    def __init__(self) -> None:
        self._ones: dict[torch.device, torch.Tensor] = {}

    def take(self, n: int, device: torch.device) -> torch.Tensor:
        ones = self._ones.get(device)
        if ones is None or ones.numel() < n:
            ones = self._ones[device] = torch.ones(n, dtype=torch.int32, device=device)
        return ones[:n]


_ones = _Ones()


def _check_lengths(mb: frame.MiniBatch, data: torch.Tensor) -> None:
    if mb.schema.fixed:
        return
    e = next(e for e in mb.extents if e.name == "kjt.lengths")
    values = next(e.shape[0] for e in mb.extents if e.name == "kjt.values")
    lengths = data[e.offset : e.offset + e.nbytes].view(torch.int32)
    if lengths.numel() and int(lengths.min()) < 0 or int(lengths.sum(dtype=torch.int64)) != values:
        raise FrameError(f"{mb.name}: its lengths do not add up to its {values} values")


def _assemble(mb: frame.MiniBatch, blob: torch.Tensor, torchrec: bool, named: bool) -> Batch:
    """Tensors as views of a mini-batch's data, wherever that is."""
    parts: dict[str, torch.Tensor] = {}
    for e in mb.extents:
        parts[e.name] = blob[e.offset : e.offset + e.nbytes].view(_DTYPES[e.dtype]).view(e.shape)
    sparse: Any = None
    schema = mb.schema
    if schema.keys:
        keys, values = schema.key_names, parts["kjt.values"]
        weights = parts.get("kjt.weights")
        lengths = _ones.take(len(keys) * mb.rows, blob.device) if schema.fixed else parts["kjt.lengths"].view(-1)
        if torchrec:
            sparse = _KeyedJaggedTensor(keys=list(keys), values=values, weights=weights, lengths=lengths, stride=mb.rows)
        else:
            sparse = Jagged(keys, values, lengths, weights, mb.rows, schema.fixed)
    return Batch(parts.get("dense"), sparse, parts.get("label"), mb.name if named else None)


def _bytes(mb: frame.MiniBatch) -> torch.Tensor:
    """A mini-batch's data as uint8 [n], the same memory; it lives as long as a tensor made of it."""
    if not len(mb.data):
        return torch.empty(0, dtype=torch.uint8)
    # Tensors can be written to; bytes cannot, so they are copied.
    return torch.frombuffer(bytearray(mb.data) if mb.data.readonly else mb.data, dtype=torch.uint8)


def batch_of(mb: frame.MiniBatch, *, torchrec: Optional[bool] = None, validate: bool = True) -> Batch:
    """Tensors on the CPU that share a mini-batch's memory.

    Args:
        torchrec: whether ``sparse`` is TorchRec's; None means where it is installed.
        validate: whether lengths are checked (a fraction of a millisecond); raises :class:`FrameError`.
    """
    data = _bytes(mb)
    if validate:
        _check_lengths(mb, data)
    return _assemble(mb, data, _use_torchrec(torchrec), True)


def _use_torchrec(wanted: Optional[bool]) -> bool:
    if wanted and _KeyedJaggedTensor is None:
        raise ImportError("torchrec is not installed")
    return _KeyedJaggedTensor is not None if wanted is None else wanted


class _Pinned:
    """Copies mini-batches to a CUDA device through a ring of pinned buffers, on a stream of its own. One thread uses it."""

    def __init__(self, device: torch.device, slots: int) -> None:
        self.device = device
        self._stream = torch.cuda.Stream(device)
        self._ring: deque[tuple[Optional[torch.Tensor], Optional[torch.cuda.Event]]] = deque([(None, None)] * max(slots, 2))

    def copy(self, data: torch.Tensor) -> tuple[torch.Tensor, torch.cuda.Event]:
        """Starts the copy; wait for the event, on the stream that uses the tensor, before its first use."""
        buffer, done = self._ring.popleft()
        if done is not None:
            done.synchronize()  # what was copied from this buffer last is through
        n = data.numel()
        if buffer is None or buffer.numel() < n:
            buffer = torch.empty(max(n + n // 4, 1), dtype=torch.uint8, pin_memory=True)
        buffer[:n].copy_(data)
        with torch.cuda.stream(self._stream):
            there = buffer[:n].to(self.device, non_blocking=True)
            done = torch.cuda.Event()
            done.record(self._stream)
        self._ring.append((buffer, done))
        return there, done

    def use(self, staged: "_Staged") -> None:
        """Has the trainer's stream wait for the copy, and the memory wait for the trainer's stream."""
        stream = torch.cuda.current_stream(self.device)
        stream.wait_event(staged.ready)
        staged.blob.record_stream(stream)


class MiniBatches(IterableDataset):  # type: ignore[misc, type-arg, unused-ignore]
    """One rank's mini-batches of a job, as an ``IterableDataset`` that yields :class:`Batch`.

    It attaches when it is first needed, in the process that needs it, so it may be pickled before that.

    Args:
        control: URLs of the control plane's members, separated by commas or as a list.
        id: the job's id or name.
        rank: of the job's ranks.
        device: where tensors are wanted; None is the CPU. A CUDA device brings pinned staging.
        prefetch: mini-batches that are staged for the device ahead of the trainer.
        state: where to go on: what :meth:`state_dict` gave, or a token.
        torchrec: whether ``sparse`` is TorchRec's KeyedJaggedTensor; None means where it is installed.
        validate: whether the lengths of every mini-batch are checked.
        job: more arguments of :class:`millrace.client.Job`: order, queue_bytes, credits, splits, check, tls, timeout, patience.
    """

    def __init__(
        self,
        control: Union[str, Sequence[str]],
        id: str,
        rank: int = 0,
        *,
        device: Device = None,
        prefetch: int = 2,
        state: Union[None, Mapping[str, Any], bytes, str] = None,
        torchrec: Optional[bool] = None,
        validate: bool = True,
        **job: Any,
    ) -> None:
        super().__init__()
        if "acknowledge" in job or "token" in job:
            raise TypeError("acknowledge is not for choice here, and token is called state")
        if prefetch < 1:
            raise ValueError("prefetch is at least 1")
        self._arguments = {"control": control, "id": id, "rank": rank, **job}
        self._device = torch.device(device) if device is not None else torch.device("cpu")
        self._prefetch = prefetch
        self._torchrec = _use_torchrec(torchrec)
        self._validate = validate
        self._state: Any = state
        self._reset()

    def _reset(self) -> None:
        self._job: Optional[Job] = None
        self._pid = 0
        self._last: Optional[frame.Name] = None  # given to the trainer, not acknowledged
        self._pinned: Optional[_Pinned] = None
        self._staged: deque[_Staged] = deque()  # taken from the job, not given to the trainer

    def __getstate__(self) -> dict[str, Any]:
        kept = dict(self.__dict__)
        # A session is one process's: the other side attaches anew, where the ledger stands.
        if self._job is not None and self._pid == os.getpid():
            self._job.flush()
        for name in ("_job", "_pid", "_last", "_staged", "_pinned"):
            kept.pop(name)
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._reset()

    # --- before the first mini-batch ----------------------------------------------------------------------------------

    @property
    def job(self) -> Job:
        """The consumer behind it; attaches if it is not yet attached in this process."""
        if self._job is None or self._pid != os.getpid():
            # Attached before a fork: the child goes on where the ledger stands.
            self._reset()
            self._job = Job(**self._arguments, token=self._state, acknowledge="manual")
            self._pid = os.getpid()
            self._state = None
        return self._job

    def schema(self) -> Schema:
        """The mini-batches' tensors: number of dense features, keys, embeddings a key, types, fixed or list."""
        return self.job.schema

    @property
    def epoch(self) -> int:
        """The epoch that the next ``for`` is of, counted from 0. When the job is over it is :attr:`epochs`."""
        job = self.job
        self._acknowledge_last_of_epoch(job)
        return job.epoch + (1 if job.over else 0)

    @property
    def epochs(self) -> int:
        """How many epochs the job has."""
        return self.job.epochs

    @property
    def statistics(self) -> Statistics:
        """What was counted so far; ``stall_seconds`` is how long the trainer stood still."""
        return self.job.statistics

    def __len__(self) -> int:
        """Mini-batches of this rank's epoch, whole."""
        return sum(b - a for a, b in self.job.owned)

    def dummy(self, rows: Optional[int] = None, seed: int = 0) -> Batch:
        """A mini-batch of the job's shape with made-up content, on the device: for measuring and for shapes. The same
        seed gives the same one; no random state is touched.
        """
        job = self.job
        mb = dummy_frame(job.schema, rows if rows is not None else job.batch or 1024, job.mean_length, seed)
        return _assemble(mb, _bytes(mb).to(self._device), self._torchrec, False)

    def measure_throughput(
        self,
        step: Callable[[Batch], Any],
        *,
        model: Union[None, torch.nn.Module, Sequence[torch.nn.Module]] = None,
        optimizer: Union[None, torch.optim.Optimizer, Sequence[torch.optim.Optimizer]] = None,
        others: Sequence[Any] = (),
        seconds: float = 1.0,
        warmup: int = 3,
        rows: Optional[int] = None,
    ) -> Throughput:
        """Measures T, the trainer's highest throughput, over its step on dummy mini-batches, and tells the control plane.

        Nothing is different afterwards: weights, gradients, buffers and modes of ``model``, state and settings of
        ``optimizer``, the state of ``others`` (anything with ``state_dict`` and ``load_state_dict``: schedulers,
        scalers), the random states of torch, CUDA, Python and NumPy, and the position in the data are as before. With several
        ranks T is the slowest rank's, times the ranks.

        Args:
            step: what the trainer does with a batch, its optimiser's step included.
            seconds: measured for at least so long, after ``warmup`` steps.
            rows: of a dummy; None takes the job's batch.
        """
        models = [model] if isinstance(model, torch.nn.Module) else list(model or ())
        optimizers = [optimizer] if isinstance(optimizer, torch.optim.Optimizer) else list(optimizer or ())
        dummies = [self.dummy(rows, seed) for seed in range(2)]
        wait = torch.cuda.synchronize if self._device.type == "cuda" else lambda: None
        with untouched(models, optimizers, others):
            for i in range(warmup):
                step(dummies[i % 2])
            wait()
            steps, begun = 0, time.perf_counter()
            while True:
                step(dummies[steps % 2])
                steps += 1
                if time.perf_counter() - begun >= seconds:
                    wait()
                    took = time.perf_counter() - begun
                    if took >= seconds:
                        break
        t = Throughput(steps * dummies[0].rows / took, steps, took)
        self.job.report_throughput(t.rows_per_second)
        return t

    # --- position -----------------------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """The position: everything that the loop was given, the batch of the current step included. Plain values."""
        job = self.job
        self._acknowledge_last(job)
        return job.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to a position that :meth:`state_dict` gave; the next ``for`` goes on from there."""
        if self._job is None or self._pid != os.getpid():
            self._reset()
            self._state = dict(state)
            return
        self._last = None
        self._staged.clear()
        self._job.load_state_dict(state)

    def checkpoint(self) -> bytes:
        """The position as a token that the control plane has sealed; see :meth:`millrace.client.Job.checkpoint`."""
        job = self.job
        self._acknowledge_last(job)
        return job.checkpoint()

    def close(self) -> None:
        """Gives up the session."""
        if self._job is not None and self._pid == os.getpid():
            self._job.close()

    def __enter__(self) -> "MiniBatches":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _pin(self) -> "_Pinned":
        if self._pinned is None:
            self._pinned = _Pinned(self._device, self._prefetch + 1)
        return self._pinned

    def _acknowledge_last(self, job: Job) -> None:
        if self._last is not None:
            name, self._last = self._last, None
            job.acknowledge(name)

    def _acknowledge_last_of_epoch(self, job: Job) -> None:
        """A ``for`` that took the last mini-batch without asking for another one is over, too."""
        if self._last is not None and not self._staged and job.delivered:
            self._acknowledge_last(job)

    # --- the loop -----------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Batch]:
        info = get_worker_info()
        if info is not None and info.num_workers > 1:
            raise MillraceError(
                f"num_workers={info.num_workers}: a rank has one consumer; use 0 or 1, and credits= for more requests at once"
            )
        job = self.job
        self._acknowledge_last(job)
        if not self._staged and job.over and not job.next_epoch():
            return iter(())
        return self._staging(job) if self._device.type == "cuda" or self._pinned is not None else self._plain(job)

    def _plain(self, job: Job) -> Iterator[Batch]:
        while True:
            self._acknowledge_last(job)
            mb = job.take()
            if mb is None:
                return
            self._last = mb.name
            batch = batch_of(mb, torchrec=self._torchrec, validate=self._validate)
            del mb
            yield batch if self._device.type == "cpu" else _moved(batch, self._device)

    def _staging(self, job: Job) -> Iterator[Batch]:
        stager = _Stager(self, job)
        try:
            while True:
                self._acknowledge_last(job)
                staged = stager.next()
                if staged is None:
                    return
                self._last = staged.mb.name
                self._pin().use(staged)
                yield _assemble(staged.mb, staged.blob, self._torchrec, True)
        finally:
            stager.close()


def _moved(batch: Batch, device: torch.device) -> Batch:
    """For devices other than CUDA: tensor by tensor."""
    sparse = batch.sparse
    if isinstance(sparse, Jagged):
        weights = sparse.weights.to(device) if sparse.weights is not None else None
        sparse = sparse._replace(values=sparse.values.to(device), lengths=sparse.lengths.to(device), weights=weights)
    elif sparse is not None:
        sparse = sparse.to(device)
    move = lambda t: t.to(device) if t is not None else None  # noqa: E731
    return Batch(move(batch.dense), sparse, move(batch.label), batch.name)


class _Staged(NamedTuple):
    """A mini-batch on its way to the device."""

    mb: frame.MiniBatch
    blob: torch.Tensor
    ready: Any  # torch.cuda.Event


class _Stager:
    """A thread that stages mini-batches for the device while the trainer steps. What was staged and not taken when the
    loop ends stays with the data set, for the next one.
    """

    def __init__(self, data: MiniBatches, job: Job) -> None:
        self._data = data
        self._job = job
        self._pinned = data._pin()
        self._staged = data._staged
        self._cond = threading.Condition()
        self._stop = False
        self._over = False
        self._error: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._run, name="millrace-stage", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while True:
                with self._cond:
                    self._cond.wait_for(lambda: self._stop or len(self._staged) < self._data._prefetch)
                    if self._stop:
                        return
                mb = self._job.take(lambda: self._stop, stall=False)
                if mb is None:
                    break
                data = _bytes(mb)
                if self._data._validate:
                    _check_lengths(mb, data)
                blob, ready = self._pinned.copy(data)
                with self._cond:
                    self._staged.append(_Staged(mb, blob, ready))
                    self._cond.notify_all()
        except BaseException as e:
            self._error = e
        finally:
            with self._cond:
                self._over = True
                self._cond.notify_all()

    def next(self) -> Optional[_Staged]:
        begun = time.monotonic()
        with self._cond:
            self._cond.wait_for(lambda: bool(self._staged) or self._over)
            staged = self._staged.popleft() if self._staged else None
            self._cond.notify_all()
        self._job.stalled(time.monotonic() - begun)
        if staged is None and self._error is not None:
            raise self._error
        return staged

    def close(self) -> None:
        with self._cond:
            self._stop = True
            self._cond.notify_all()
        self._job.wake()
        self._thread.join()
