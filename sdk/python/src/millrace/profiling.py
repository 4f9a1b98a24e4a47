"""Measures FastFlow's metrics of a rank over the first mini-batches of its job (docs/offload.md, "Metrics").

The measurement repeats no step and drops no mini-batch. It asks the control plane that one side, first the rank's own
CPUs and then all other workers, makes every split of the rank, and observes the training: 50 to 100 mini-batches of
each side. Nothing of the model, the optimiser, the random states and the data position differs from a run without it.

This module has no threads and no clock. The session's lock guards a :class:`Profiler`.
"""

from __future__ import annotations

import math
import os
from dataclasses import dataclass
from typing import Callable, Mapping, Optional

__all__ = ["NO_STALL", "OTHERS", "OWN", "STEPS", "Profiler", "Sample", "available_processors", "process_seconds"]

OWN, OTHERS = "own", "others"  # the words of RankReport.profiling
STEPS = 50  # least number of mini-batches of a window, and half of the most (FastFlow, 5.1)
_WARMUP = 4  # mini-batches of a side before its window
_SECONDS = 0.5  # a window lasts as long unless it has 2 * STEPS mini-batches before
_SIDE_SECONDS = 10.0  # least time in which a side must fill a window: the leader may need one to give it every split
_LEAST = 100 * STEPS  # mini-batches of a job below which a profile would take too large a part
_LEAST_EPOCH = 4 * STEPS  # a window lies inside an epoch
_PATIENCE = 8 * STEPS  # mini-batches in which a side must fill a window, beside those that wait
_STEADY_DRAIN = 10  # a steady window takes at most one in this many mini-batches from the queue
_PROFILE_SECONDS = 5.0  # about how long a profile takes: the leader's reviews of the share, and a window, of each side
_SHORT_JOB = 5  # a job gets a profile if it takes at least this many times as long as the profile
NO_STALL = 1.1  # Gthp / Lthp below which nothing is offloaded (FastFlow, Algorithm 1)


@dataclass(frozen=True)
class Sample:
    """The counters of a rank at a moment.

    Attributes:
        seconds: the time.
        stalled: seconds for which the trainer has waited for mini-batches.
        queued: rows of the mini-batches that wait.
        process: CPU seconds of this process.
        fetching: CPU seconds that this process spent on receiving mini-batches; a part of ``process``.
        worker: CPU seconds of the process of the rank's own CPUs.
    """

    seconds: float
    stalled: float
    queued: int
    process: float
    fetching: float
    worker: float


@dataclass(frozen=True)
class _Side:
    """A measured side. Throughputs are in rows a second, CPU times in seconds a row."""

    throughput: float  # with the trainer
    trainer: float  # throughput of the trainer while it did not wait
    trainer_time: float
    fetch_time: float
    worker_time: float


class Profiler:
    """Measures one side after the other.

    Attributes:
        side: the side that must make every split now: ``own``, ``others``, or nothing, when the profile has ended.
        profile: the OffloadMetrics message; None until both sides are measured, and if that was not possible.
        looking: no side is to be asked for yet: the first mini-batches show how long the job takes.
        short: the job takes less than five times as long as a profile, which is left out.

    Args:
        throughput: returns T in rows a second if it was measured on dummy mini-batches, else 0.
        processors: how many CPUs this machine may use; 0 if that is not known.
        waiting: how many mini-batches wait in the queue when the profile begins.
        stored: metrics of an earlier job with the same model (``gthp``, ``tcycle``), and with the same pipeline
            (``lthp``, ``pcycle``): then only the other workers are measured.
        ahead: how many mini-batches are left in the job; 0: the job is long enough.
    """

    def __init__(
        self,
        throughput: Callable[[], float],
        processors: float,
        waiting: int = 0,
        stored: Optional[Mapping[str, float]] = None,
        ahead: int = 0,
    ) -> None:
        self.side = OWN
        self.looking, self.short = ahead > 0, False
        self._ahead = ahead
        self._looked = 0  # mini-batches since _look_since
        self._look_since: Optional[float] = None
        self.profile: Optional[dict[str, float]] = None
        self._throughput = throughput
        self._processors = processors
        self._patience = _PATIENCE + waiting
        self._left = self._patience
        self._since: Optional[float] = None  # when the trainer took the first mini-batch after the side was asked for
        self._own: Optional[_Side] = None
        if stored and stored.get("gthp"):
            gthp = stored["gthp"]
            self._throughput = lambda: gthp
            if "lthp" in stored:
                self.side = OTHERS
                self._own = _Side(stored["lthp"], gthp, stored["tcycle"], 0.0, stored["pcycle"])
        self._own_is_stored = self._own is not None
        self.restart()

    @staticmethod
    def suits(minibatches: int, epochs: int) -> bool:
        """Reports whether a job is long enough for a profile. ``minibatches`` are those of the rank in an epoch."""
        return minibatches >= _LEAST_EPOCH and minibatches * epochs >= _LEAST

    def restart(self) -> None:
        """Begins the window again: the other side made a mini-batch, or another session began."""
        self._seen = 0
        self._rows = 0
        self._begin: Optional[Sample] = None

    def taken(self, own: bool, rows: int, sample: Callable[[], Sample]) -> None:
        """Counts a mini-batch that the trainer takes. ``own`` says whether the rank's own CPUs made it. ``sample`` is
        called when a window begins and when it may end.
        """
        if not self.side:
            return
        if self.looking:
            self._look(sample().seconds)
            if self.looking or self.short:
                return
        if self._since is None:
            self._since = sample().seconds
        self._left -= 1
        if own != (self.side == OWN):
            self.restart()
        elif self._begin is None:
            self._seen += 1
            if self._seen > _WARMUP:
                self._seen, self._begin = 0, sample()
        else:
            self._seen += 1
            self._rows += rows
            if self._seen >= STEPS:
                now = sample()
                if now.seconds - self._begin.seconds >= _SECONDS or self._seen >= 2 * STEPS:
                    if not self._drained(self._begin, now):
                        self._measured(self._side(self._begin, now))
                        return
                    self._seen, self._rows, self._begin = 0, 0, now
        if self._left <= 0 and self._left % STEPS == 0 and sample().seconds - self._since >= _SIDE_SECONDS:
            self.side = ""  # the side makes too little, or nothing

    def _look(self, now: float) -> None:
        """Finds by the rate of the first mini-batches whether the job is long enough for a profile."""
        if self._look_since is None:
            self._look_since = now
            return
        self._looked += 1
        elapsed = now - self._look_since
        if elapsed < _SECONDS:
            return
        self.looking = False
        self.short = (self._ahead - self._looked) * elapsed < _SHORT_JOB * _PROFILE_SECONDS * self._looked
        if self.short:
            self.side = ""

    def _drained(self, begin: Sample, end: Sample) -> bool:
        """Reports whether so much of a window came from the queue that the window says little: a trainer that does not
        wait may leave the side less CPU time than one that does. Once the queue is empty, both have the same rate.
        """
        return _STEADY_DRAIN * (begin.queued - end.queued) > self._rows

    def _side(self, begin: Sample, end: Sample) -> _Side:
        seconds = max(end.seconds - begin.seconds, 1e-9)
        # Mini-batches that waited when the window began were made before it.
        made = max(self._rows - max(0, begin.queued - end.queued), 1)
        stalled = min(max(end.stalled - begin.stalled, 0.0), seconds)
        fetching = end.fetching - begin.fetching
        return _Side(
            throughput=made / seconds,
            trainer=self._rows / max(seconds - stalled, 1e-9),
            trainer_time=_per_row(end.process - begin.process - fetching, self._rows),
            fetch_time=_per_row(fetching, made),
            worker_time=_per_row(end.worker - begin.worker, made),
        )

    def _measured(self, side: _Side) -> None:
        self.restart()
        self._left, self._since = self._patience, None
        if self._own is None:
            self._own = side
            gthp = self._gthp(side)
            if gthp >= NO_STALL * side.throughput:
                self.side = OTHERS
                return
            others = None
        else:
            gthp, others = self._gthp(self._own, side), side
        own = self._own
        last = own if self._own_is_stored else side
        # Without the worker's CPU time Pcycle is not known, and then Ocycle has nothing to be compared with.
        pcycle = own.worker_time + own.fetch_time if own.worker_time else 0.0
        self.side = ""
        self.profile = {
            "gthp": gthp,
            "lthp": own.throughput,
            "pcycle": pcycle,
            "rthp": others.throughput if others is not None else 0.0,
            "ocycle": others.fetch_time if others is not None and pcycle else 0.0,
            "tcycle": last.trainer_time,
            "cores": self._processors,
        }

    def _gthp(self, *sides: _Side) -> float:
        return self._throughput() or max(x.trainer for x in sides)


def _per_row(seconds: float, rows: int) -> float:
    return max(seconds, 0.0) / max(rows, 1)


def available_processors() -> float:
    """Returns how many CPUs this process may use: those of its affinity, or fewer if a quota of its control groups
    (version 2) says so. Returns 0 where that is not known.
    """
    try:
        count = float(len(os.sched_getaffinity(0)))
        with open("/proc/self/cgroup", encoding="ascii") as f:
            groups = f.read(1 << 16).splitlines()
    except (AttributeError, OSError, ValueError):
        return 0.0
    for line in groups:
        number, _, rest = line.partition(":")
        controllers, _, path = rest.partition(":")
        if "cpu" in controllers.split(","):
            return 0.0  # version 1 keeps the quota
        if number == "0" and not controllers:
            count = min(count, _quota(path))
    return count


def _quota(path: str) -> float:
    """Returns the least quota of a control group and the groups that contain it."""
    least = math.inf
    parts = [p for p in path.split("/") if p not in ("", ".", "..")]
    for depth in range(len(parts) + 1):
        try:
            with open("/".join(["/sys/fs/cgroup", *parts[:depth], "cpu.max"]), encoding="ascii") as f:
                least = min(least, _parsed_quota(f.read(256)))
        except (OSError, ValueError):
            continue
    return least


def _parsed_quota(text: str) -> float:
    """Reads a cpu.max: quota and period in microseconds. Returns infinity for text that is not a quota."""
    words = text.split()
    if len(words) != 2 or not all(w.isascii() and w.isdigit() and len(w) < 16 and int(w) for w in words):
        return math.inf
    return int(words[0]) / int(words[1])


def process_seconds(pid: int) -> float:
    """Returns the CPU seconds of a process, user and system, or 0 where they are not known."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as f:
            fields = f.read(4096).rpartition(b")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError):
        return 0.0
