"""Counts what each side makes of a rank's mini-batches: the rank's own CPUs, and all other workers.

The control plane's tuner divides the rank's splits between the sides by these counts (docs/offload.md). This module has
no threads and no clock: the session's lock guards a meter, and its caller passes the time.
"""

from __future__ import annotations

from typing import Any

__all__ = ["SideMeter", "Sides"]


class SideMeter:
    """Counts the rows of one side, and the seconds in which at least one of its mini-batches was being fetched. A
    mini-batch is requested when the queue has room for it, so a full queue does not count as the side's work.
    """

    def __init__(self) -> None:
        self.rows = 0
        self._busy = 0.0
        self._fetches = 0  # under way
        self._since = 0.0  # when the first of them began

    def enter(self, now: float) -> None:
        """Begins a fetch."""
        if not self._fetches:
            self._since = now
        self._fetches += 1

    def leave(self, now: float, rows: int) -> None:
        """Ends a fetch that brought this many rows, 0 if it failed."""
        self.rows += rows
        self._fetches -= 1
        if not self._fetches:
            self._busy += now - self._since

    def busy(self, now: float) -> float:
        """Returns the seconds of work until now."""
        return self._busy + (now - self._since if self._fetches else 0.0)


class Sides:
    """The meters of both sides. :meth:`report` counts since the session began; the meters count since the job was
    opened, because a fetch may outlive its session.
    """

    def __init__(self) -> None:
        self.own = SideMeter()
        self.others = SideMeter()
        self._before = [(0, 0.0), (0, 0.0)]  # rows and busy seconds when the session began

    def meter(self, own: bool) -> SideMeter:
        """Returns the meter of the rank's own CPUs, or of all other workers."""
        return self.own if own else self.others

    def begin(self, now: float) -> None:
        """Begins a session."""
        self._before = [(m.rows, m.busy(now)) for m in (self.own, self.others)]

    def report(self, now: float) -> dict[str, Any]:
        """Returns the fields ``own`` and ``others`` of a RankReport."""
        (own_rows, own_busy), (rows, busy) = self._before
        return {
            "own": {"rows": float(self.own.rows - own_rows), "busySeconds": self.own.busy(now) - own_busy},
            "others": {"rows": float(self.others.rows - rows), "busySeconds": self.others.busy(now) - busy},
        }
