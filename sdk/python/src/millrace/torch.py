"""Mini-batches for PyTorch and TorchRec.

:class:`MiniBatches` is an ``IterableDataset``::

    data = MiniBatches("http://127.0.0.1:7460", id="rm1", device="cuda")
    model = build(data.schema())
    data.measure_throughput(step, model=model, optimizer=optimizer)
    for epoch in range(data.epoch, data.epochs):
        for batch in data:
            step(batch)
        torch.save({"model": model.state_dict(), "data": data.state_dict()}, path)

One ``for`` is one epoch, or the rest of one. Iterate a ``MiniBatches`` directly, or through ``DataLoader(data,
batch_size=None, num_workers=0)``, or through torchdata's ``StatefulDataLoader``, which saves and restores the position
by itself. A worker process of the loader is not faster: threads fetch ahead of the loop without holding the interpreter
lock, and the worker copies every mini-batch from process to process. So ``num_workers=1`` issues a
:class:`~millrace.DataLoaderWarning`, and more workers are an error, since a rank has one consumer. Over files of this
machine any worker is an error.

On the CPU, tensors are views of the bytes that came from the socket. With a CUDA device a thread copies each mini-batch
once, in one piece, into pinned memory, and from there asynchronously to the device, ahead of the trainer; tensors are
views of the copy on the device.
"""

from __future__ import annotations

import os
import time
import warnings
from collections import deque
from typing import Any, Callable, Iterator, Mapping, Optional, Sequence, Union, cast

import torch
from torch.utils.data import IterableDataset, get_worker_info
from torch.utils.data._utils import collate as _torch_collate

from . import frame
from .client import Job
from .errors import DataLoaderWarning, MillraceError, OptionsError
from .handover import Handover
from .measure import Throughput, dummy_frame, untouched
from .opening import Opening
from .run import default_run
from .schema import Schema
from .staging import Pinned, Staged, Stager
from .statistics import Statistics
from .tensors import Batch, Jagged, assemble, batch_of, bytes_of, moved, use_torchrec

__all__ = ["Batch", "Jagged", "MiniBatches", "Throughput", "batch_of"]

Device = Union[str, torch.device, None]


def _refuse_collation(*_: Any, **__: Any) -> None:
    raise OptionsError(
        "DataLoader makes batches of what it takes, and these are mini-batches already: write "
        "DataLoader(data, batch_size=None); the rows of a mini-batch are batch= of millrace.open or of the job",
        "batch_size",
    )


# A DataLoader with a batch_size would make batches of mini-batches. torch looks up in this map how it collates elements
# of a type; old versions of torch have no such map.
getattr(_torch_collate, "default_collate_fn_map", {})[Batch] = _refuse_collation


class MiniBatches(IterableDataset):  # type: ignore[misc, type-arg, unused-ignore]
    """One rank's mini-batches of a job, as an ``IterableDataset`` that yields :class:`Batch`.

    It attaches at the first use that needs the job, in the process of that use, so it may be pickled before that.

    Args:
        control: URLs of the control plane's members, separated by commas or as a list; or the name of a context. None
            takes the environment's, or the current context's (``millrace context list``).
        id: the job's id or name.
        rank: this rank's number, from 0.
        device: the device of the tensors; None is the CPU. Mini-batches for a CUDA device are staged in pinned memory.
        prefetch: how many mini-batches are staged for the device ahead of the trainer, at least 1.
        state: where to go on: a result of :meth:`state_dict`, or a token.
        torchrec: whether ``sparse`` is TorchRec's KeyedJaggedTensor; None means where TorchRec is installed.
        validate: whether the lengths of every mini-batch are checked.
        run: names the training run. None finds a name, in the process that makes this object if that is possible: see
            :mod:`millrace.run`.
        resume: whether to go on where another run stopped; see :class:`millrace.client.Job`.
        opening: the arguments of :func:`millrace.open`, in place of all arguments about a job.
        job: more arguments of :class:`millrace.client.Job`: order, queue_bytes, credits, splits, check, tls, timeout,
            patience.

    Raises:
        TypeError: ``job`` holds ``acknowledge`` or ``token``.
        ValueError: ``prefetch`` is less than 1.
        ImportError: ``torchrec`` is True, and TorchRec is not installed.

    Methods that need the job raise the errors of :class:`millrace.client.Job` when they attach. Iteration raises those
    of :meth:`millrace.client.Job.take`, and FrameError if ``validate`` finds wrong lengths.
    """

    def __init__(
        self,
        control: Union[None, str, Sequence[str]] = None,
        id: str = "",
        rank: int = 0,
        *,
        device: Device = None,
        prefetch: int = 2,
        state: Union[None, Mapping[str, Any], bytes, str] = None,
        torchrec: Optional[bool] = None,
        validate: bool = True,
        run: Optional[str] = None,
        resume: bool = False,
        opening: Optional[Opening] = None,
        **job: Any,
    ) -> None:
        super().__init__()
        if "acknowledge" in job or "token" in job:
            raise TypeError("acknowledge is not for choice here, and token is called state")
        if prefetch < 1:
            raise ValueError("prefetch is at least 1")
        self._arguments = {"control": control, "id": id, "rank": rank, "resume": resume, **job}
        self._opening = opening
        self._run = run
        if opening is None:
            try:
                self._named()
            except MillraceError:
                pass  # there may be a process group when the job is needed
        self._device = torch.device(device) if device is not None else torch.device("cpu")
        self._prefetch = prefetch
        self._torchrec = use_torchrec(torchrec)
        self._validate = validate
        self._state: Any = state
        self._reset()

    def _reset(self) -> None:
        self._job: Optional[Job] = None
        self._pid = 0
        self._last: Optional[frame.Name] = None  # given to the trainer, not acknowledged
        self._handover: Optional[Handover] = None  # in a worker of a DataLoader
        self._pinned: Optional[Pinned] = None
        self._staged: deque[Staged] = deque()  # taken from the job, not given to the trainer

    def __getstate__(self) -> dict[str, Any]:
        kept = dict(self.__dict__)
        # A session belongs to one process: the other process attaches again, at the ledger's position.
        if self._job is not None and self._pid == os.getpid():
            self._job.flush()
            if self._opening is None:
                self._named()
        for name in ("_job", "_pid", "_last", "_handover", "_staged", "_pinned"):
            kept.pop(name)
        return kept

    def __setstate__(self, kept: dict[str, Any]) -> None:
        self.__dict__.update(kept)
        self._reset()

    def __repr__(self) -> str:
        """Names the files or the job, and the position of the loop. It makes no call to another process."""
        opening = self._opening
        if opening is not None:
            what, rank = ", ".join(opening.files[:3]) + (", ..." if len(opening.files) > 3 else ""), opening.ranks.rank
        else:
            what, rank = f"job {self._arguments['id']}", int(self._arguments["rank"])
        job = self._job
        if job is None or self._pid != os.getpid():
            return f"<MiniBatches of {what}: rank {rank}, not attached>"
        taken = f"{job.statistics.minibatches} mini-batches taken"
        return f"<MiniBatches of {what}: rank {rank}, epoch {job.epoch} of {job.epochs}, {taken}>"

    # --- before the first mini-batch ----------------------------------------------------------------------------------

    @property
    def job(self) -> Job:
        """The :class:`millrace.client.Job` of this object; attaches if this process has not attached yet."""
        if self._job is None or self._pid != os.getpid():
            if self._pid and self._private:
                raise MillraceError(
                    "the files were opened before a fork: call millrace.open in the process that iterates"
                )
            # Attached before a fork: the child continues at the ledger's position.
            self._reset()
            if self._opening is not None:
                self._job = self._opening.job(self._state, "manual")
            else:
                self._job = Job(**self._arguments, token=self._state, acknowledge="manual", run=self._named())
            self._pid = os.getpid()
            self._state = None
        return self._job

    def check_device(self) -> None:
        """Raises :class:`~millrace.OptionsError` if the device is a CUDA device and torch can use none."""
        if self._device.type == "cuda" and not torch.cuda.is_available():
            raise OptionsError(
                f"device={str(self._device)!r}: torch {torch.__version__} can use no GPU on this machine: leave device "
                "out to get tensors on the CPU",
                "device",
            )

    @property
    def _private(self) -> bool:
        """Reports whether a private process of this machine preprocesses."""
        return self._opening is not None and self._opening.private

    def _named(self) -> str:
        """Returns the run's name, which is found once, so that the processes that a DataLoader starts have the same
        name.
        """
        if self._run is None:
            self._run = default_run()
        return self._run

    def schema(self) -> Schema:
        """Returns the form of the mini-batches: dense features, keys with their embeddings, and types."""
        return self.job.schema

    @property
    def epoch(self) -> int:
        """The epoch of the next ``for``, counted from 0. When the job is over it is :attr:`epochs`."""
        job = self.job
        self._acknowledge_last_of_epoch(job)
        return job.epoch + (1 if job.over else 0)

    @property
    def epochs(self) -> int:
        """How many epochs the job has. One that follows its data set has further ones with each of its editions."""
        return self.job.epochs

    @property
    def statistics(self) -> Statistics:
        """The counts so far; ``stall_seconds`` is how long the trainer waited for mini-batches."""
        return self.job.statistics

    def __getitem__(self, index: Any) -> Batch:
        """Raises TypeError: mini-batches come one after the other, and have no index."""
        raise TypeError(
            f"data[{index!r}]: mini-batches come one after the other, and have no index: write `for batch in data`, or "
            "next(iter(data)) for the next one; dummy() has the shapes without taking one"
        )

    def __len__(self) -> int:
        """The number of this rank's mini-batches in the current epoch, those that were yielded included."""
        return sum(b - a for a, b in self.job.owned)

    def dummy(self, rows: Optional[int] = None, seed: int = 0) -> Batch:
        """Returns a mini-batch with the job's schema and made-up content, on the device, for measurements and for
        shapes. Its name is None. The same seed gives the same content. It changes no random state.

        Args:
            rows: B; None takes the job's batch.
        """
        job = self.job
        mb = dummy_frame(job.schema, rows if rows is not None else job.batch or 1024, job.mean_length, seed)
        return assemble(mb, bytes_of(mb).to(self._device), self._torchrec, False)

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
        """Measures T, the trainer's highest throughput, over its step on dummy mini-batches, and reports it to the
        control plane. Returns T in rows a second, with the number of steps and their time.

        Nothing is different afterwards: weights, gradients, buffers and modes of ``model``, state and settings of
        ``optimizer``, the state of ``others`` (objects with ``state_dict`` and ``load_state_dict``, such as schedulers
        and scalers), the random states of torch, CUDA, Python and NumPy, and the position in the data are as before.
        With several ranks the control plane takes the slowest rank's T times the number of ranks.

        Args:
            step: a function that does the trainer's step with a :class:`Batch`, the optimizer's step included. Its
                errors pass.
            seconds: the least time to measure for, after ``warmup`` steps.
            rows: rows of a dummy; None takes the job's batch.
        """
        models = [model] if isinstance(model, torch.nn.Module) else list(model or ())
        optimizers = [optimizer] if isinstance(optimizer, torch.optim.Optimizer) else list(optimizer or ())
        dummies = [self.dummy(rows, seed) for seed in range(2)]

        def wait() -> None:
            if self._device.type == "cuda":
                torch.cuda.synchronize(self._device)

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
        """Returns the position, as plain values. It counts every mini-batch that the loop got, the batch of the current
        step included. See :meth:`millrace.client.Job.state_dict`, also for errors.
        """
        job = self.job
        self._acknowledge_last(job)
        return job.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to a position that :meth:`state_dict` returned; the next ``for`` goes on from there. See
        :meth:`millrace.client.Job.load_state_dict` for errors, which come at the next attach if the object has not
        attached yet.
        """
        if self._job is None or self._pid != os.getpid():
            self._reset()
            self._state = dict(state)
            return
        self._last = None
        self._staged.clear()
        self._job.load_state_dict(state)

    def checkpoint(self) -> bytes:
        """Returns the position as a token that the control plane has sealed; see
        :meth:`millrace.client.Job.checkpoint`.
        """
        job = self.job
        self._acknowledge_last(job)
        return job.checkpoint()

    def close(self) -> None:
        """Closes the job, if this process has attached; see :meth:`millrace.client.Job.close`."""
        if self._job is not None and self._pid == os.getpid():
            self._job.close()

    def __enter__(self) -> "MiniBatches":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def _pin(self) -> Pinned:
        if self._pinned is None:
            self._pinned = Pinned(self._device, self._prefetch + 1)
        return self._pinned

    def _acknowledge_last(self, job: Job) -> None:
        if self._last is not None:
            name, self._last = self._last, None
            job.acknowledge(name)
        if self._handover is not None:
            self._handover.all()

    def _acknowledge_last_of_epoch(self, job: Job) -> None:
        """Acknowledges the epoch's last mini-batch if a ``for`` took it and did not ask for another one."""
        if self._last is not None and not self._staged and job.delivered:
            self._acknowledge_last(job)

    # --- the loop -----------------------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Batch]:
        info = get_worker_info()
        if info is not None:
            self._check_workers(info.num_workers)
        job = self.job
        if self._handover is not None:
            self._handover.restart()
        else:
            self._acknowledge_last(job)
        if not self._staged and job.over and not job.next_epoch():
            job.warn_nothing()
            return iter(())
        if info is not None:
            return self._handing(job)
        return self._staging(job) if self._device.type == "cuda" or self._pinned is not None else self._plain(job)

    def _check_workers(self, count: int) -> None:
        """Raises MillraceError for a DataLoader's worker processes over files or for several of them, and issues a
        DataLoaderWarning for one worker process.
        """
        asked = f"DataLoader(num_workers={count}): use num_workers=0"
        if self._private:
            raise MillraceError(
                f"{asked}. The private process preprocesses on this machine's cores already, ahead of the loop; the "
                "loader's processes would only copy mini-batches between processes"
            )
        if count > 1:
            raise MillraceError(
                f"{asked}. Threads fetch ahead of the loop already, and a rank has one consumer: {count} processes "
                "would take each other's mini-batches. credits= and queue_bytes= fetch more at once"
            )
        warnings.warn(
            f"{asked}. Threads fetch ahead of the loop already, without holding the interpreter lock; the loader's "
            "process only copies mini-batches between processes",
            DataLoaderWarning,
            stacklevel=3,
        )

    def _handing(self, job: Job) -> Iterator[Batch]:
        """The loop in a DataLoader's worker, which asks ahead of the trainer: the trainer's process reports which
        mini-batches the trainer is done with.
        """
        if self._handover is None:
            self._handover = Handover(job)
        handover = self._handover
        while True:
            handover.look()
            mb = job.take()
            if mb is None:
                return
            batch = batch_of(mb, torchrec=self._torchrec, validate=self._validate)
            batch = batch._replace(name=cast(frame.Name, handover.hand(mb.name)))  # it becomes one on its way
            del mb
            yield batch if self._device.type == "cpu" else moved(batch, self._device)

    def _plain(self, job: Job) -> Iterator[Batch]:
        given = False
        while True:
            self._acknowledge_last(job)
            mb = job.take()
            if mb is None:
                if not given:
                    job.warn_nothing()
                return
            self._last, given = mb.name, True
            batch = batch_of(mb, torchrec=self._torchrec, validate=self._validate)
            del mb
            yield batch if self._device.type == "cpu" else moved(batch, self._device)
            del batch  # the trainer alone holds the batch, and its memory

    def _staging(self, job: Job) -> Iterator[Batch]:
        stager = Stager(job, self._pin(), self._staged, self._prefetch, self._validate)
        try:
            while True:
                self._acknowledge_last(job)
                staged = stager.next()
                if staged is None:
                    job.flush()  # of the epoch's last mini-batch, too
                    return
                self._last = staged.mb.name
                self._pin().use(staged)
                yield assemble(staged.mb, staged.blob, self._torchrec, True)
        finally:
            stager.close()
