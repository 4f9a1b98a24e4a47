"""Acknowledges mini-batches in a DataLoader's worker when the trainer has received them.

A worker asks for mini-batches ahead of the trainer. If a request acknowledged the mini-batch before it, mini-batches
that wait between the two processes would be lost when the trainer dies. So the trainer's process reports over a pipe
which mini-batches the trainer received. A mini-batch is acknowledged when the trainer receives the next one. The last
one is acknowledged when the trainer asks beyond the epoch's end; that call returns when the acknowledgement is durable.

The only code of this module that runs in the trainer's process is the code that unpickling calls. A mini-batch's name
travels as :class:`Handed`, the epoch's end as torch's own marker, and both report to the worker when they are
unpickled. A mini-batch that is unpickled after its loop was left early does not count.
"""

from __future__ import annotations

import atexit
import logging
import os
import sys
import threading
from collections import deque
from multiprocessing.connection import Connection, Pipe, wait
from multiprocessing.process import parent_process
from multiprocessing.reduction import ForkingPickler
from multiprocessing.util import Finalize
from typing import Any, Callable, Optional

from torch.utils.data._utils import worker as _torch_worker

from .client import Job
from .errors import MillraceError
from .frame import Name

__all__ = ["Handed", "Handover"]

log = logging.getLogger("millrace")

_TAKEN, _OVER, _FLUSH, _AHEAD = b"t", b"o", b"f", b"a"  # messages of the trainer's process
# Seconds that the trainer's process waits for the worker. They exceed the time that the control plane may be without a
# leader.
_DURABLE = 120.0


class Handed:
    """A mini-batch's name on its way to the trainer, where it becomes a :class:`millrace.frame.Name`."""

    def __init__(self, name: Name, turn: int, handover: "Handover") -> None:
        self.name = name
        self._turn = turn
        self._handover = handover

    job = property(lambda self: self.name.job)
    epoch = property(lambda self: self.name.epoch)
    number = property(lambda self: self.name.number)

    def __str__(self) -> str:
        return str(self.name)

    def __reduce__(self) -> tuple[Any, ...]:
        return _taken, (*self._handover.address(), self._turn, tuple(self.name))


class Handover:
    """The worker's side of the pipe."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._ours, self._theirs = Pipe()
        self._id = f"{os.getpid()}-{os.urandom(8).hex()}"
        self._lock = threading.RLock()  # guards the fields below, and reading
        self._handed: deque[tuple[int, Name]] = deque()  # turns and names, handed over and not acknowledged
        self._turn = 0  # the turn of the last mini-batch that was handed over
        self._given = 0  # the turn of the last mini-batch that the trainer received
        self._heard = False  # the trainer's process has the pipe
        self._ahead = False  # the trainer's process takes mini-batches before the trainer asks for them
        marker = getattr(_torch_worker, "_IterableDatasetStopIteration", None)
        if marker is None:
            raise MillraceError("this version of torch says otherwise how an epoch ends in a worker: use num_workers=0")
        ForkingPickler.register(marker, self._reduce_end)
        threading.Thread(target=self._run, name="millrace-handover", daemon=True).start()
        if parent_process() is not None:
            Finalize(None, self._hear, exitpriority=20)  # before the session is closed

    def address(self) -> tuple[str, Optional[Connection]]:
        """Returns the name of the pipe, and the trainer's end of it or, once a message has come from the trainer's
        process, None. The trainer's process needs both to report.
        """
        return self._id, None if self._heard else self._theirs

    def _reduce_end(self, marker: Any) -> tuple[Any, ...]:
        return _ended, (*self.address(), marker.worker_id)

    def hand(self, name: Name) -> Handed:
        """Hands a mini-batch over to the trainer's process."""
        with self._lock:
            self._turn += 1
            self._handed.append((self._turn, name))
            return Handed(name, self._turn, self)

    def look(self) -> None:
        """Raises MillraceError if this worker cannot learn which mini-batches the trainer received."""
        if self._ahead:
            raise MillraceError(
                "DataLoader(pin_memory=True) with a worker takes mini-batches that the trainer has not asked for: "
                "use num_workers=0, or leave pin_memory and give MiniBatches device='cuda', "
                "which stages them in pinned memory by itself"
            )

    def all(self) -> None:
        """Acknowledges every mini-batch that was handed over: the trainer saves its position."""
        with self._lock:
            self._acknowledge(self._turn)

    def restart(self) -> None:
        """Starts another loop of the trainer's process after the last mini-batch that the trainer received.
        Mini-batches that were handed over after that one are lost on their way, and come again.
        """
        with self._lock:
            self._hear()
            self._acknowledge(self._given)
            lost = bool(self._handed)
            self._handed.clear()
        if lost:
            self._job.rejoin()

    def _acknowledge(self, turn: int) -> None:
        while self._handed and self._handed[0][0] <= turn:
            self._job.acknowledge(self._handed.popleft()[1])

    # --- hearing ------------------------------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            while wait([self._ours]):
                self._hear()
        except (EOFError, OSError):
            pass  # the trainer's process is gone

    def _hear(self) -> None:
        """Handles the messages that the trainer's process has sent so far."""
        try:
            with self._lock:
                while self._ours.poll(0):
                    self._do(self._ours.recv_bytes(64))
        except (EOFError, OSError):
            pass

    def _do(self, message: bytes) -> None:
        kind, turn = message[:1], int.from_bytes(message[1:], "little")
        self._heard = True
        said = b""
        try:
            if kind == _AHEAD:
                self._ahead = True
            elif kind == _TAKEN:
                self._given = max(self._given, turn)
                self._acknowledge(self._given - 1)
            else:
                if kind == _OVER:
                    self._acknowledge(self._turn)
                self._job.flush()
        except MillraceError as e:
            said = str(e).encode() or b"failed"
        if kind in (_OVER, _FLUSH):
            self._ours.send_bytes(said)


# --- the trainer's process ---------------------------------------------------------------------------------


class _Workers:
    """Pipes to the workers that this process has heard of."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pipes: dict[str, Connection] = {}
        self._pid = 0

    def pipe(self, id: str, brought: Optional[Connection]) -> Optional[Connection]:
        with self._lock:
            if self._pid != os.getpid():
                self._pid, self._pipes = os.getpid(), {}
                atexit.register(self.flush)
            have = self._pipes.get(id)
            if have is None and brought is not None:
                have = self._pipes[id] = brought
            elif brought is not None:
                brought.close()
            return have

    def forget(self, id: str) -> None:
        with self._lock:
            pipe = self._pipes.pop(id, None)
        if pipe is not None:
            pipe.close()

    def flush(self) -> None:
        """Makes the workers' acknowledgements durable: this process ends, and the workers end with it."""
        if self._pid != os.getpid():
            return
        for id, pipe in list(self._pipes.items()):
            try:
                _ask(pipe, _FLUSH, 10.0)
            except (MillraceError, EOFError, OSError) as e:
                log.info("a DataLoader's worker that is gone: %s", e or type(e).__name__)
            self.forget(id)


_workers = _Workers()


def _ask(pipe: Connection, kind: bytes, seconds: float) -> None:
    pipe.send_bytes(kind)
    if not pipe.poll(seconds):
        raise MillraceError(
            f"the DataLoader's worker says nothing for {seconds:.0f} s: its last acknowledgements may not be durable"
        )
    said = pipe.recv_bytes(1 << 20)
    if said:
        raise MillraceError(f"the DataLoader's worker: {said.decode(errors='replace')}")


def _tell(id: str, brought: Optional[Connection], say: Callable[[Connection], None]) -> None:
    pipe = _workers.pipe(id, brought)
    if pipe is None:
        return  # the mini-batch was unpickled in a process other than the trainer's
    try:
        say(pipe)
    except (EOFError, BrokenPipeError, ConnectionError):
        _workers.forget(id)  # the worker is gone: mini-batches that were not reported to it come again


def _asked() -> bool:
    """Reports whether an iterator's caller asked for the object that is being unpickled. A thread that reads ahead, or
    code that discards objects, does not count.
    """
    f = sys._getframe(1)
    while f is not None:
        if f.f_code.co_name == "__next__":
            return True
        f = f.f_back  # type: ignore[assignment]
    return False


def _taken(id: str, brought: Optional[Connection], turn: int, name: tuple[str, int, int]) -> Name:
    """Turns a :class:`Handed` into a name in the trainer's process."""
    if _asked():
        _tell(id, brought, lambda pipe: pipe.send_bytes(_TAKEN + turn.to_bytes(8, "little")))
    elif _pins():
        _tell(id, brought, lambda pipe: pipe.send_bytes(_AHEAD))
    return Name(*name)


def _pins() -> bool:
    """Reports whether this is the thread in which a DataLoader pins memory."""
    f = sys._getframe(1)
    while f is not None:
        if "pin_memory" in f.f_code.co_name:
            return True
        f = f.f_back  # type: ignore[assignment]
    return False


def _ended(id: str, brought: Optional[Connection], worker_id: int) -> Any:
    """Handles the end of a worker's epoch in the trainer's process: the trainer has asked beyond the last mini-batch.
    """
    if _asked():
        _tell(id, brought, lambda pipe: _ask(pipe, _OVER, _DURABLE))
    return _torch_worker._IterableDatasetStopIteration(worker_id)
