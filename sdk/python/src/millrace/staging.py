"""Copies mini-batches to a CUDA device: through pinned memory, on a separate stream, by a separate thread."""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import replace
from typing import Any, NamedTuple, Optional

import torch

from . import frame
from .client import Job
from .forking import ForkedCondition
from .tensors import bytes_of, check_lengths

__all__ = ["Pinned", "Staged", "Stager"]


class Staged(NamedTuple):
    """A mini-batch on its way to the device.

    Attributes:
        mb: the mini-batch, without its data.
        blob: its data on the device, uint8 [n].
        ready: the event of the copy.
    """

    mb: frame.MiniBatch  # without data
    blob: torch.Tensor
    ready: Any  # torch.cuda.Event


class CUDA:
    """The parts of ``torch.cuda`` that staging uses: pinned memory, copies on a separate stream, events. Tests replace
    this class by one that delays copies.
    """

    def __init__(self, device: torch.device) -> None:
        self.device = device
        self._stream = torch.cuda.Stream(device)  # type: ignore[no-untyped-call, unused-ignore]

    def pinned(self, size: int) -> torch.Tensor:
        """Returns pinned memory, uint8 [size]."""
        return torch.empty(size, dtype=torch.uint8, pin_memory=True)

    def start(self, source: torch.Tensor) -> tuple[torch.Tensor, torch.cuda.Event]:
        """Starts the copy of pinned memory to the device. Returns the copy, in the form of ``source``, and an event
        that happens when the copy is done.
        """
        with torch.cuda.stream(self._stream):
            there = source.to(self.device, non_blocking=True)
            done = torch.cuda.Event()  # type: ignore[no-untyped-call, unused-ignore]
            done.record(self._stream)
        return there, done

    def wait(self, there: torch.Tensor, done: torch.cuda.Event) -> None:
        """Makes the trainer's stream wait for the copy, and keeps the memory until the trainer's stream has used it."""
        stream = torch.cuda.current_stream(self.device)
        stream.wait_event(done)
        there.record_stream(stream)


class Pinned:
    """Copies mini-batches to a CUDA device through a ring of pinned buffers. One thread calls :meth:`copy`; the
    trainer's thread calls :meth:`use`.

    Args:
        slots: how many buffers the ring has; fewer than two give two.
        calls: the calls of CUDA; None makes a :class:`CUDA`.
    """

    def __init__(self, device: torch.device, slots: int, calls: Optional[CUDA] = None) -> None:
        self._calls = CUDA(device) if calls is None else calls
        self._ring: deque[tuple[Optional[torch.Tensor], Any]] = deque([(None, None)] * max(slots, 2))

    def copy(self, data: torch.Tensor) -> tuple[torch.Tensor, Any]:
        """Starts the copy of ``data``, uint8 [n]. Returns the tensor on the device, uint8 [n], and the copy's event,
        for which :meth:`use` waits before the tensor's first use.
        """
        buffer, done = self._ring.popleft()
        if done is not None:
            done.synchronize()  # the last copy from this buffer is done
        n = data.numel()
        if buffer is None or buffer.numel() < n:
            buffer = self._calls.pinned(max(n + n // 4, 1))
        buffer[:n].copy_(data)
        there, done = self._calls.start(buffer[:n])
        self._ring.append((buffer, done))
        return there, done

    def use(self, staged: "Staged") -> None:
        """Has the trainer's stream wait for the copy, and the memory wait for the trainer's stream."""
        self._calls.wait(staged.blob, staged.ready)


class Stager:
    """A thread that stages mini-batches for the device while the trainer steps. Mini-batches that were staged and not
    taken when the loop ends stay with the data set, for the next loop.
    """

    def __init__(self, job: Job, pinned: Pinned, staged: deque[Staged], prefetch: int, validate: bool) -> None:
        self._job = job
        self._pinned = pinned
        self._staged = staged
        self._prefetch = prefetch
        self._validate = validate
        self._cond = ForkedCondition()
        self._stop = False
        self._over = False
        self._error: Optional[BaseException] = None
        self._thread = threading.Thread(target=self._run, name="millrace-stage", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            while True:
                with self._cond:
                    self._cond.wait_for(lambda: self._stop or len(self._staged) < self._prefetch)
                    if self._stop:
                        return
                mb = self._job.take(lambda: self._stop, stall=False)
                if mb is None:
                    break
                data = bytes_of(mb)
                if self._validate:
                    check_lengths(mb, data)
                blob, ready = self._pinned.copy(data)
                del data
                mb = replace(mb, data=memoryview(b""))  # its memory is free for the next one
                with self._cond:
                    self._staged.append(Staged(mb, blob, ready))
                    self._cond.notify_all()
        except BaseException as e:
            self._error = e
        finally:
            with self._cond:
                self._over = True
                self._cond.notify_all()

    def next(self) -> Optional[Staged]:
        """Waits for the mini-batch that was staged first and returns it; returns None when the epoch is over. Raises
        the error that ended the thread.
        """
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
        """Ends the thread."""
        with self._cond:
            self._stop = True
            self._cond.notify_all()
        self._job.wake()
        self._thread.join()
