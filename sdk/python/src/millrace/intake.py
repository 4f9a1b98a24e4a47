"""The state of a consumer's mini-batches: owed, leased, being fetched, waiting, yielded, acknowledged.

This module has no threads, no clock and no network. A session (:mod:`millrace.session`) reports events to an
:class:`Intake` and asks it what to do next, and holds one lock around it.

The life of a mini-batch::

    owed --granted--> leased --next_fetch--> fetching --fetched--> waiting --take--> yielded
      ^                 |                        |                                      |
      +---- revoked, failed, lost session -------+                                 acknowledge
                                                                                        |
                                                            gone <--durable-- acknowledged

A lost session keeps mini-batches that wait or were yielded, since the same bytes would come again.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Iterable, Optional, Union

from .bounds import integer
from .frame import MiniBatch
from .token import Progress, Ranges

__all__ = ["Intake", "Lease", "Work"]

_Id = Union[str, int]
_MAX_URLS = 64  # of a node
_MAX_ENDED = 1024  # leases that ended last: far more than end before the leader hears of it


@dataclass
class Lease:
    """A lease: the mini-batches [first, end) of a split, which ``drive`` of ``node`` makes."""

    id: int
    epoch: int
    split: int
    first: int
    end: int
    node: str
    drive: str
    urls: tuple[str, ...]
    own: bool = False  # the drive is a worker that serves this rank alone
    without_data: bool = False  # the leader decides whether the worker's word that data are bad ends the job
    ticket: str = ""  # in base64, as the control plane sends it and the node receives it
    todo: deque[int] = field(default_factory=deque)  # numbers that were not requested yet, ascending
    out: int = 0  # how many mini-batches are being fetched

    @property
    def fetched(self) -> bool:
        """Reports whether every mini-batch was fetched, so that the lease needs no drive any more."""
        return not self.todo and not self.out

    @classmethod
    def of(cls, grant: dict[str, Any]) -> "Lease":
        """Reads a Grant of LeaseResponse. Raises ValueError if a field has another type or is out of range."""
        urls = grant.get("urls") or ()
        if not isinstance(urls, list) or len(urls) > _MAX_URLS or not all(isinstance(u, str) for u in urls):
            raise ValueError(f"lease: {str(urls)[:80]!r} where URLs belong")
        return cls(
            id=integer(grant.get("lease"), "lease"),
            epoch=integer(grant.get("epoch"), "epoch of a lease"),
            split=integer(grant.get("split"), "split of a lease"),
            first=integer(grant.get("from"), "first mini-batch of a lease"),
            end=integer(grant.get("to"), "end of a lease"),
            node=str(grant.get("node", "")),
            drive=str(grant.get("drive", "")),
            urls=tuple(urls),
            own=grant.get("own") is True,
            without_data=grant.get("reach") == "any",
            ticket=str(grant.get("ticket", "")),
        )

    def held(self) -> dict[str, Any]:
        """Returns the HeldLease message, which describes the lease to a new leader."""
        return {
            "lease": str(self.id),
            "epoch": str(self.epoch),
            "split": self.split,
            "node": self.node,
            "drive": self.drive,
            "from": str(self.first),
            "to": str(self.end),
        }


@dataclass(frozen=True)
class Work:
    """One mini-batch to fetch."""

    lease: Lease
    number: int


class Intake:
    """The consumer's side of one epoch after the other. Its owner holds a lock.

    Args:
        deterministic: whether mini-batches are yielded in ascending order of their numbers; if False, in the order in
            which they come.
        limit: bytes of mini-batches that may wait or be under way. One mini-batch is always let in, so that the next
            one comes.
    """

    def __init__(self, deterministic: bool, limit: int) -> None:
        self.deterministic = deterministic
        self.limit = limit
        self.leases: dict[int, Lease] = {}
        self._ended: dict[int, None] = {}  # the leases that ended last, the oldest first
        self.frame_bytes = 0  # bytes of the largest frame so far: the estimate for a frame that is under way
        self.begin("0" * 64, 0, Ranges(), Ranges())

    def begin(self, job: str, epoch: int, owned: Ranges, acknowledged: Ranges) -> None:
        """Starts an epoch, or moves to another position in one. It forgets the mini-batches that wait. ``owned`` are
        this rank's numbers.
        """
        self.progress = Progress(job, epoch, acknowledged)
        self.owned = owned
        self.unsent = Ranges()  # numbers that are acknowledged and not sent to the control plane
        self.durable = acknowledged.copy()
        self.yielded = Ranges()  # numbers that are yielded and not acknowledged
        self.waiting: dict[int, MiniBatch] = {}
        self.waiting_bytes = 0
        self.made_by_own: set[int] = set()  # numbers of waiting that the rank's own CPUs made
        self.fetching: dict[int, int] = {}  # by number: how many fetches of it are under way
        self.leases.clear()
        self.all_granted = False  # the control plane's last answer: every mini-batch is delivered or leased
        self.full = False  # the last fetch that was considered did not fit
        self.news = False  # a lease needs its drive no more; the next message reports it
        self._next = -1
        self._step()

    @property
    def epoch(self) -> int:
        """The epoch, counted from 0."""
        return self.progress.epoch

    # --- leases -----------------------------------------------------------------------------------------------------

    def owns(self, lease: Lease) -> bool:
        """Reports whether a lease's numbers, if they are of this epoch, are this rank's."""
        return lease.epoch != self.epoch or not Ranges([(lease.first, lease.end)]).minus(self.owned)

    def granted(self, lease: Lease) -> bool:
        """Takes a lease. Returns False if it is empty or of another epoch; the caller gives it back. The leader repeats
        a grant until a call names its lease, so a lease that is held or has ended is ignored.
        """
        if lease.id in self.leases or lease.id in self._ended:
            return True
        if lease.epoch != self.epoch or lease.end <= lease.first:
            return False
        span = Ranges([(lease.first, lease.end)])
        # The leader may not know that some of the lease's numbers were acknowledged: a new leader knows of whole splits
        # only.
        self.retell(span)
        lease.todo = deque(n for n in range(lease.first, lease.end) if not self._have(n))
        self.leases[lease.id] = lease
        return True

    def dropped(self, ids: Iterable[int]) -> None:
        """Drops leases that were revoked or whose session is gone. Their mini-batches that wait stay."""
        for i in ids:
            self._end(i)

    def _end(self, id: int) -> Optional[Lease]:
        """Forgets a lease and returns it, or None if it is not held."""
        lease = self.leases.pop(id, None)
        if lease is not None:
            self._ended[id] = None
            if len(self._ended) > _MAX_ENDED:
                del self._ended[next(iter(self._ended))]
        return lease

    def lacking(self, splits: int) -> int:
        """Returns how many more leases this rank needs until ``splits`` of them have mini-batches left to request."""
        return max(0, splits - sum(1 for lease in self.leases.values() if lease.todo))

    def spent(self) -> list[int]:
        """Forgets leases whose mini-batches are all durable, and returns their ids."""
        gone = [i for i, x in self.leases.items() if not x.out and self.durable.first_missing(x.first) >= x.end]
        self.dropped(gone)
        return gone

    def missing(self, lease: Lease) -> list[int]:
        """Returns the numbers of a lease whose mini-batches have not come yet, ascending."""
        return [n for n in range(lease.first, lease.end) if not self._have(n)]

    def _have(self, number: int) -> bool:
        return number in self.waiting or number in self.yielded or number in self.progress.acknowledged

    # --- fetching ---------------------------------------------------------------------------------------------------

    def next_fetch(self, usable: Any = None) -> Optional[Work]:
        """Returns the mini-batch to fetch next, or None if nothing is leased or the queue is full.

        Args:
            usable: a function that reports whether a lease's node may be called now; None allows every node.
        """
        best: Optional[Lease] = None
        for lease in self.leases.values():
            while lease.todo and self._have(lease.todo[0]):
                lease.todo.popleft()
            if not lease.todo or (usable is not None and not usable(lease)):
                continue
            if self.deterministic and lease.todo[0] == self._next:
                best = lease  # the trainer waits for this mini-batch: it is let in even when the queue is full
                break
            # Every split should keep its drive busy: the lease with the fewest requests is next, then the earliest.
            if best is None or (lease.out, lease.todo[0]) < (best.out, best.todo[0]):
                best = lease
        self.full = False
        if best is None:
            return None
        number = best.todo[0]
        under_way = len(self.fetching) * self.frame_bytes
        if self.waiting_bytes + under_way + self.frame_bytes > self.limit:
            urgent = number == self._next if self.deterministic else not self.waiting and not self.fetching
            if not urgent:
                self.full = True
                return None
        best.todo.popleft()
        best.out += 1
        self.fetching[number] = self.fetching.get(number, 0) + 1
        return Work(best, number)

    def _fetched(self, work: Work) -> None:
        work.lease.out -= 1
        if work.lease.fetched:
            self.news = True
        left = self.fetching.get(work.number, 1) - 1
        if left > 0:
            self.fetching[work.number] = left
        else:
            self.fetching.pop(work.number, None)

    def fetched(self, work: Work, batch: MiniBatch) -> bool:
        """Takes a mini-batch. Returns False, and drops it, if it came before or is of an epoch that is over."""
        self._fetched(work)
        if batch.name.epoch != self.epoch or batch.name.job != self.progress.job or self._have(work.number):
            return False
        self.waiting[work.number] = batch
        if work.lease.own:
            self.made_by_own.add(work.number)
        self.waiting_bytes += batch.nbytes
        self.frame_bytes = max(self.frame_bytes, batch.nbytes)
        return True

    def failed(self, work: Work) -> bool:
        """Records that a fetch failed for good. Returns True if the lease was still held; the caller releases it, so
        that another worker makes the rest.
        """
        self._fetched(work)
        return self._end(work.lease.id) is work.lease

    # --- the trainer's side -------------------------------------------------------------------------------------------

    def take(self) -> Optional[MiniBatch]:
        """Returns the next mini-batch for the trainer, or None if it has not come or the epoch is over."""
        if not self.waiting:
            return None
        if self.deterministic:
            if self._next not in self.waiting:
                return None
            number = self._next
        else:
            number = next(iter(self.waiting))
        batch = self.waiting.pop(number)
        self.waiting_bytes -= batch.nbytes
        self.yielded.add(number, number + 1)
        if self.deterministic:
            self._step()
        return batch

    def _step(self) -> None:
        """Moves on to the least number that is owed."""
        if not self.deterministic:
            return
        number = self._next + 1
        for first, end in self.owned:
            n = max(first, number)
            while n < end and (n in self.progress.acknowledged or n in self.yielded):
                n = max(self.progress.acknowledged.first_missing(n), self.yielded.first_missing(n))
            if n < end:
                self._next = n
                return
        self._next = -1

    def acknowledge(self, number: int) -> None:
        """Records that the trainer is done with a mini-batch. Raises KeyError if it was not yielded."""
        if number in self.progress.acknowledged:
            return
        if number not in self.yielded:
            raise KeyError(number)
        self.yielded = self.yielded.minus(Ranges([(number, number + 1)]))
        self.progress.add(number)
        self.unsent.add(number, number + 1)

    def sending(self) -> Ranges:
        """Returns the acknowledgements to send to the control plane, and counts them as sent."""
        sent, self.unsent = self.unsent, Ranges()
        return sent

    def sent(self, epoch: int, numbers: Ranges) -> None:
        """Records that these acknowledgements are durable."""
        if epoch == self.epoch:
            for a, b in numbers:
                self.durable.add(a, b)

    def retell(self, within: Optional[Ranges] = None) -> None:
        """Marks acknowledgements, those within these numbers or all, to be sent again, because the control plane may
        have forgotten them.
        """
        again = self.progress.acknowledged if within is None else within.minus(within.minus(self.progress.acknowledged))
        self.durable = self.durable.minus(again)
        for a, b in again:
            self.unsent.add(a, b)

    @property
    def delivered(self) -> bool:
        """Reports whether every mini-batch of the epoch was yielded."""
        return not self.owned.minus(self.progress.acknowledged).minus(self.yielded)

    @property
    def due(self) -> Optional[int]:
        """The number that the trainer waits for in the deterministic order, or None if that mini-batch is leased, is
        under way or waits, or if the order is ``fastest``.
        """
        n = self._next
        if n < 0 or n in self.waiting or n in self.fetching or any(x.first <= n < x.end for x in self.leases.values()):
            return None
        return n

    @property
    def idle(self) -> bool:
        """Reports whether nothing is leased, under way or waiting."""
        return not (self.leases or self.fetching or self.waiting)

    @property
    def settled(self) -> bool:
        """Reports whether every acknowledgement is durable."""
        return not self.unsent and self.durable == self.progress.acknowledged
