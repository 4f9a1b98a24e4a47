"""The threads that fetch what is leased, one outstanding GET each."""

from __future__ import annotations

import logging
import threading
import time
from typing import Callable, Protocol

from .errors import DataLossError
from .frame import MiniBatch
from .intake import Intake, Lease, Work
from .join import join
from .nodes import Failed, Nodes
from .schema import Schema
from .sides import Sides
from .statistics import Statistics
from .wire import BROKEN

__all__ = ["Fetchers", "Fetching"]

log = logging.getLogger("millrace")

# How long, in seconds, nodes may refuse a mini-batch before the data count as at fault. The nodes' heartbeats tell the
# control plane within seconds that a partition was moved.
REFUSED = 5.0


class Fetching(Protocol):
    """What the threads need of the session that they fetch for (:class:`millrace.session.Session`). The caller of a
    method whose name begins with ``with_`` holds ``cond``, which guards the attributes.
    """

    id: str
    cond: threading.Condition
    digest: str
    schema: Schema
    rows: frozenset[int]
    intake: Intake
    nodes: Nodes
    sides: Sides
    statistics: Statistics
    fetch_seconds: float

    @property
    def ending(self) -> bool: ...

    def guard(self, loop: Callable[[], None]) -> None: ...

    def with_release(self, lease: Lease, reason: str) -> None: ...

    def with_told(self, seconds: float) -> None: ...


class Fetchers:
    """``count`` threads that fill a session's intake."""

    def __init__(self, session: Fetching, count: int) -> None:
        self._session = session
        self._sick: dict[str, tuple[float, float]] = {}  # by node: earliest time of the next fetch, and the last pause
        self._refused: dict[tuple[int, int], float] = {}  # by epoch and number: since when nodes refuse the fragment
        self._threads = [
            threading.Thread(target=session.guard, args=(self._loop,), name=f"millrace-fetch-{i}", daemon=True)
            for i in range(count)
        ]

    def start(self) -> None:
        """Starts the threads."""
        for t in self._threads:
            t.start()

    def runs(self, thread: threading.Thread) -> bool:
        """Reports whether a thread is one of these."""
        return thread in self._threads

    def join(self, seconds: float) -> None:
        """Waits for the threads when the session is closed, for at most ``seconds``, since a thread may be connecting
        to a node that does not answer.
        """
        end = time.monotonic() + seconds
        for t in self._threads:
            if t is not threading.current_thread():
                t.join(max(0.0, end - time.monotonic()))

    def _loop(self) -> None:
        s = self._session
        while True:
            with s.cond:
                work = None
                while work is None:
                    if s.ending:
                        return
                    now = time.monotonic()
                    work = s.intake.next_fetch(lambda lease: self._sick.get(lease.node, (0.0, 0.0))[0] <= now)
                    if work is None:
                        s.cond.wait(0.1 if self._sick else 1.0)
                job, schema, rows = s.digest, s.schema, s.rows
                meter = s.sides.meter(work.lease.own)
                meter.enter(time.monotonic())
            spent = time.thread_time()
            try:
                batch = s.nodes.fetch(job, schema, work, rows)
            except Failed as e:
                self._failed(work, e)
                continue
            except BROKEN as e:
                self._failed(work, Failed("unavailable", str(e) or type(e).__name__))
                continue
            parts: list[MiniBatch] = []
            with s.cond:
                fits = s.intake.fits(work, batch, rows)
                if fits:
                    meter.leave(time.monotonic(), batch.rows)
                    s.fetch_seconds += time.thread_time() - spent
                    self._sick.pop(work.lease.node, None)
                    self._refused.pop((work.lease.epoch, work.number), None)
                    if s.intake.fetched(work, batch):
                        parts = s.intake.complete(work)
                    else:
                        s.statistics.duplicates += 1
                    s.cond.notify_all()
            if not fits:
                self._misfit(work, batch)
            if parts:
                self._join(parts)
            del batch, work, parts  # this thread does not hold the mini-batch's memory while it waits

    def _misfit(self, work: Work, batch: MiniBatch) -> None:
        """Gives back every lease of a mini-batch whose fragments do not fit each other."""
        e = Failed("internal", f"fragment {batch.fragment} does not fit those of other splits")
        with self._session.cond:
            for lease in self._session.intake.misfit(work):
                self._session.with_release(lease, f"node: {e}")
        self._failed(work, e)

    def _join(self, parts: list[MiniBatch]) -> None:
        """Joins the fragments of a mini-batch, all of which have come."""
        s, begun = self._session, time.thread_time()
        batch = join(parts, s.nodes.pool.take)
        with s.cond:
            s.fetch_seconds += time.thread_time() - begun
            s.intake.joined(batch)
            s.cond.notify_all()

    def _failed(self, work: Work, e: Failed) -> None:
        s, lease = self._session, work.lease
        with s.cond:
            s.sides.meter(lease.own).leave(time.monotonic(), 0)
            if s.ending:
                return
            held = s.intake.failed(work)
            s.statistics.failures += 1
            bad_data = held and (e.final or e.refused and self._stays_refused(work))
            ends = bad_data and not lease.without_data
            if held and not ends:
                log.warning(
                    "job %s: mini-batch %d from drive %s of node %s: %s; another makes it",
                    s.id,
                    work.minibatch,
                    lease.drive,
                    lease.node,
                    e,
                )
                # The leader may grant this rank another lease of the same node at once.
                _, pause = self._sick.get(lease.node, (0.0, 0.05))
                pause = min(2 * pause, 2.0)
                self._sick[lease.node] = (time.monotonic() + pause, pause)
            if held:
                s.with_release(lease, f"{'data' if bad_data else 'node'}: {e}")
            if ends:  # the control plane gets the report first
                s.with_told(2.0)
        if ends:
            raise DataLossError(f"mini-batch {work.minibatch} from drive {lease.drive} of node {lease.node}: {e}")

    def _stays_refused(self, work: Work) -> bool:
        """Reports whether nodes have refused a fragment for longer than :data:`REFUSED`."""
        now = time.monotonic()
        return now - self._refused.setdefault((work.lease.epoch, work.number), now) > REFUSED
