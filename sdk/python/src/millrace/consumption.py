"""The part of a session that :class:`millrace.client.Job` uses, whether storage nodes or a private process make the
mini-batches.
"""

from __future__ import annotations

import copy
import logging
import os
import threading
import time
import traceback
from typing import Any, Callable, Optional

from .errors import ClosedError, MillraceError
from .forking import ForkedCondition
from .frame import MiniBatch
from .intake import Intake
from .schema import Schema
from .statistics import Statistics

__all__ = ["SILENCE", "Consumption"]

log = logging.getLogger("millrace")

SILENCE = 10.0  # seconds without a mini-batch after which the log says why


class Consumption:
    """A session as the trainer's thread sees it. Other threads fill :attr:`intake` and notify :attr:`cond`.

    The caller of a method whose name begins with ``with_`` holds :attr:`cond`.
    """

    id: str
    rank: int
    called: str  # the id or name by which calls name the job
    digest: str
    order: str
    schema: Schema
    spec: dict[str, Any]
    manifest: bytes
    mean_length: dict[str, float]
    intake: Intake

    def __init__(self, id: str, rank: int) -> None:
        self.id = id
        self.rank = rank
        self._pid = os.getpid()
        self.cond: threading.Condition = ForkedCondition()
        self.statistics = Statistics()
        self.throughput = 0.0  # T in rows a second, 0 until it is measured
        self._error: Optional[BaseException] = None
        self._closed = False
        self._job_done = False
        self._waiting = ""  # why nothing comes
        self._waited_from: Optional[float] = None  # when the trainer began to wait

    @property
    def ending(self) -> bool:
        """Reports whether the threads must end."""
        return self._closed or self._error is not None

    def with_look(self) -> None:
        """Raises the error that ended the session; ClosedError if it was closed; MillraceError in a forked child."""
        if self._closed:
            raise ClosedError("the job was closed")
        if os.getpid() != self._pid:
            raise MillraceError("the job was attached before a fork: attach in the process that iterates")
        if self._error is not None:
            raise _raisable(self._error)

    def with_given(self, batch: MiniBatch) -> MiniBatch:
        """Returns the mini-batch as the trainer gets it."""
        return batch

    def with_take(self, stop: Optional[Callable[[], bool]], stall: bool) -> Optional[MiniBatch]:
        """Waits for the next mini-batch and returns it; returns None when the epoch is over or ``stop()`` returns True.
        """
        self.with_look()
        begun, silence = time.monotonic(), SILENCE
        self._waited_from = begun if stall else None
        try:
            while True:
                batch = self.intake.take()
                if batch is not None or self.intake.delivered or (stop is not None and stop()):
                    break
                self.cond.wait(1.0)
                self.with_look()
                silence = self._speak("no mini-batch", time.monotonic() - begun, silence)
        finally:
            self._waited_from = None
            if stall:
                self.with_stalled(time.monotonic() - begun)
        if batch is not None:
            batch = self.with_given(batch)
            s = self.statistics
            s.minibatches, s.rows, s.nbytes = s.minibatches + 1, s.rows + batch.rows, s.nbytes + batch.nbytes
            self.cond.notify_all()  # there is room in the queue
        return batch

    def with_stalled(self, seconds: float) -> None:
        """Counts the seconds for which the trainer waited."""
        if not self.statistics.stall_seconds:
            self.statistics.first_seconds = seconds
        self.statistics.stall_seconds += seconds

    def with_acknowledge(self, number: int) -> None:
        """Records that the trainer is done with a mini-batch. Raises MillraceError if this rank did not get it."""
        try:
            self.intake.acknowledge(number)
        except KeyError:
            raise MillraceError(f"acknowledge mini-batch {number}: it was not delivered to this rank") from None
        if len(self.intake.unsent) == 1:
            self.cond.notify_all()

    def with_nothing(self) -> str:
        """Returns the reason, in words, why a loop got no mini-batch."""
        i = self.intake
        who = f"rank {self.rank} of job {self.id}"
        if not i.owned:
            why = "every one was acknowledged before, or there are fewer of them than ranks, or the data have no rows"
            return f"{who} owns no mini-batch of epoch {i.epoch}: {why}"
        if self._job_done:
            return f"{who}: the job is over, every epoch was acknowledged: {self.again} to go over the data once more"
        return f"{who}: every mini-batch of epoch {i.epoch} was acknowledged before this loop began"

    again = "submit it again"  # what to do when the job is over

    def place(self) -> dict[str, Any]:
        """Returns the members of a state that describe this process, except its rank."""
        return {}

    def _speak(self, what: str, waited: float, silence: float) -> float:
        """Logs the reason of the trainer's wait once it has waited longer than ``silence``. Returns the ``silence`` for
        the next call.
        """
        if waited < silence:
            return silence
        log.warning(
            "job %s, rank %d: %s for %.0f s: %s",
            self.id,
            self.rank,
            what,
            waited,
            self._waiting or "mini-batches are leased and under way",
        )
        return 3 * silence

    def guard(self, loop: Callable[[], None]) -> None:
        """Runs a thread's loop. An error of the loop ends the session."""
        try:
            loop()
        except BaseException as e:
            with self.cond:
                if self._error is None and not self._closed:
                    self._error = e
                self.cond.notify_all()
            _clear_locals(e)


def _raisable(error: BaseException) -> BaseException:
    """Returns a copy of a session's error for a caller to raise. A traceback refers to the caller's functions, so to
    the job and to all that the trainer holds; the session, which keeps its error, must not keep these.
    """
    if not isinstance(error, MillraceError):
        return error
    raised = copy.copy(error).with_traceback(error.__traceback__)
    raised.__cause__, raised.__context__ = error.__cause__, error.__context__
    raised.__suppress_context__ = error.__suppress_context__
    return raised


def _clear_locals(error: BaseException) -> None:
    """Clears the local variables of the functions that an error and its causes have left. The session keeps the error,
    and the variables hold the memory of mini-batches.
    """
    seen: set[int] = set()
    cause: Optional[BaseException] = error
    while cause is not None and id(cause) not in seen:
        seen.add(id(cause))
        traceback.clear_frames(cause.__traceback__)
        cause = cause.__cause__ or cause.__context__
