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

Leases and fetches are of fragments, which have numbers of their own: a mini-batch has one fragment in each split that
has some of its rows. A fragment that is not the whole mini-batch waits for the others, within the bound of the queue.
When all have come, the thread that fetched the last one joins them without the session's lock.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from typing import Any, Iterable, Optional, Union

from .bounds import integer
from .frame import Fragment, MiniBatch
from .token import Progress, Ranges

__all__ = ["Intake", "Lease", "Work"]

_Id = Union[str, int]
_MAX_URLS = 64  # of a node
_MAX_ENDED = 1024  # leases that ended last: far more than end before the leader hears of it


@dataclass
class Lease:
    """A lease: the fragments [first, end) of a split, which ``drive`` of ``node`` makes. They are fragments of
    mini-batches that follow each other.
    """

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
    excess: int = 0  # by how much the numbers of the fragments exceed those of their mini-batches
    todo: deque[int] = field(default_factory=deque)  # fragments that were not requested yet, ascending
    out: int = 0  # how many fragments are being fetched

    @property
    def fetched(self) -> bool:
        """Reports whether every fragment was fetched, so that the lease needs no drive any more."""
        return not self.todo and not self.out

    @property
    def minibatches(self) -> tuple[int, int]:
        """The range [from, to) of the mini-batches that the lease has fragments of."""
        return self.first - self.excess, self.end - self.excess

    def __contains__(self, minibatch: int) -> bool:
        """Reports whether the lease has a fragment of a mini-batch."""
        return self.first <= minibatch + self.excess < self.end

    @classmethod
    def of(cls, grant: dict[str, Any]) -> "Lease":
        """Reads a Grant of LeaseResponse. Raises ValueError if a field has another type or is out of range."""
        urls = grant.get("urls") or ()
        if not isinstance(urls, list) or len(urls) > _MAX_URLS or not all(isinstance(u, str) for u in urls):
            raise ValueError(f"lease: {str(urls)[:80]!r} where URLs belong")
        first = integer(grant.get("from"), "first fragment of a lease")
        minibatch = integer(grant.get("miniBatch", first), "first mini-batch of a lease")
        if minibatch > first:
            raise ValueError(f"lease: fragment {first} is of mini-batch {minibatch}, which has a greater number")
        return cls(
            id=integer(grant.get("lease"), "lease"),
            epoch=integer(grant.get("epoch"), "epoch of a lease"),
            split=integer(grant.get("split"), "split of a lease"),
            first=first,
            end=integer(grant.get("to"), "end of a lease"),
            node=str(grant.get("node", "")),
            drive=str(grant.get("drive", "")),
            urls=tuple(urls),
            own=grant.get("own") is True,
            without_data=grant.get("reach") == "any",
            ticket=str(grant.get("ticket", "")),
            excess=first - minibatch,
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
    """One fragment to fetch."""

    lease: Lease
    number: int

    @property
    def minibatch(self) -> int:
        """The number of its mini-batch."""
        return self.number - self.lease.excess


@dataclass
class _Parts:
    """The fragments of one mini-batch that have come."""

    place: tuple[int, int]  # the number of the mini-batch's first fragment, and how many it has
    came: dict[int, MiniBatch] = field(default_factory=dict)  # by fragment
    own: bool = True  # the rank's own CPUs made all of them

    @property
    def complete(self) -> bool:
        """Reports whether all have come."""
        return len(self.came) == self.place[1]

    @property
    def nbytes(self) -> int:
        """The bytes of those that have come."""
        return sum(p.nbytes for p in self.came.values())


def _place(work: Work, fragment: Fragment) -> tuple[int, int]:
    """Returns the number of the first fragment of a fragment's mini-batch, and how many fragments that has."""
    return work.number - fragment.position, fragment.of


class Intake:
    """The consumer's side of one epoch after the other. Its owner holds a lock.

    Args:
        deterministic: whether mini-batches are yielded in ascending order of their numbers; if False, in the order in
            which they come.
        limit: bytes of mini-batches and fragments that may wait or be under way. Fragments are always let in one at a
            time while no mini-batch is whole, and those of the mini-batch that the trainer waits for, so that it comes.
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
        self._parts: dict[int, _Parts] = {}  # by mini-batch: the fragments that wait for others, or are being joined
        self.waiting_bytes = 0  # of waiting, and of fragments
        self.made_by_own: set[int] = set()  # numbers of waiting that the rank's own CPUs made
        self.fetching: dict[int, list[Work]] = {}  # by fragment: the fetches of it that are under way
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
        """Reports whether a lease's mini-batches, if they are of this epoch, are this rank's."""
        return lease.epoch != self.epoch or not Ranges([lease.minibatches]).minus(self.owned)

    def granted(self, lease: Lease) -> bool:
        """Takes a lease. Returns False if it is empty or of another epoch; the caller gives it back. The leader repeats
        a grant until a call names its lease, so a lease that is held or has ended is ignored.
        """
        if lease.id in self.leases or lease.id in self._ended:
            return True
        if lease.epoch != self.epoch or lease.end <= lease.first:
            return False
        # The leader may not know that some of the lease's mini-batches were acknowledged: a new leader lacks
        # acknowledgements that were not answered.
        self.retell(Ranges([lease.minibatches]))
        lease.todo = deque(n for n in range(lease.first, lease.end) if not self._came(Work(lease, n)))
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
        gone = []
        for i, lease in self.leases.items():
            first, end = lease.minibatches
            if not lease.out and self.durable.first_missing(first) >= end:
                gone.append(i)
        self.dropped(gone)
        return gone

    def missing(self, lease: Lease) -> list[int]:
        """Returns the numbers of the mini-batches whose fragments in a lease have not come yet, ascending."""
        work = [Work(lease, n) for n in range(lease.first, lease.end)]
        return [w.minibatch for w in work if not self._came(w)]

    def _came(self, work: Work) -> bool:
        """Reports whether a fragment came, by itself or in a mini-batch that has all of its fragments."""
        n = work.minibatch
        if n in self.waiting or n in self.yielded or n in self.progress.acknowledged:
            return True
        parts = self._parts.get(n)
        return parts is not None and work.number in parts.came

    # --- fetching ---------------------------------------------------------------------------------------------------

    def next_fetch(self, usable: Any = None) -> Optional[Work]:
        """Returns the fragment to fetch next, or None if nothing is leased or the queue is full.

        Args:
            usable: a function that reports whether a lease's node may be called now; None allows every node.
        """
        best: Optional[Lease] = None
        urgent: Optional[Lease] = None  # the lease that has a fragment to let in even when the queue is full
        for lease in self.leases.values():
            while lease.todo and self._came(Work(lease, lease.todo[0])):
                lease.todo.popleft()
            if not lease.todo or (usable is not None and not usable(lease)):
                continue
            if self.deterministic and lease.todo[0] - lease.excess == self._next:
                if urgent is None or lease.todo[0] < urgent.todo[0]:
                    urgent = lease  # the trainer waits for this mini-batch
            # Every split should keep its drive busy: the lease with the fewest requests is next, then the earliest.
            if best is None or (lease.out, lease.todo[0]) < (best.out, best.todo[0]):
                best = lease
            # Without a mini-batch that is whole, the queue gets room only when fragments come that complete one.
            if not self.deterministic and not self.waiting and not self.fetching:
                if urgent is None or self._urgency(lease) < self._urgency(urgent):
                    urgent = lease
        self.full = False
        if self.deterministic and urgent is not None:
            best = urgent
        if best is None:
            return None
        under_way = len(self.fetching) * self.frame_bytes
        if self.waiting_bytes + under_way + self.frame_bytes > self.limit:
            if urgent is None:
                self.full = True
                return None
            best = urgent
        number = best.todo.popleft()
        best.out += 1
        work = Work(best, number)
        self.fetching.setdefault(number, []).append(work)
        return work

    def _urgency(self, lease: Lease) -> tuple[bool, int]:
        """Returns the order in which leases fill a queue that has no whole mini-batch: first the least number of a
        fragment whose mini-batch has others.
        """
        return lease.todo[0] - lease.excess not in self._parts, lease.todo[0]

    def _fetched(self, work: Work) -> None:
        work.lease.out -= 1
        if work.lease.fetched:
            self.news = True
        left = [w for w in self.fetching.pop(work.number, ()) if w is not work]
        if left:
            self.fetching[work.number] = left

    def fits(self, work: Work, batch: MiniBatch, rows: frozenset[int]) -> bool:
        """Reports whether a fragment and those of its mini-batch that came before it can be of the same mini-batch.
        ``rows`` are the numbers of rows that a whole mini-batch can have; empty: any.
        """
        parts = self._parts.get(work.minibatch)
        if parts is None or work.number in parts.came:
            return True
        if batch.fragment is None or parts.place != _place(work, batch.fragment):
            return False
        last = len(parts.came) + 1 == parts.place[1]
        return not (last and rows) or batch.rows + sum(p.rows for p in parts.came.values()) in rows

    def misfit(self, work: Work) -> list[Lease]:
        """Drops the fragments of a mini-batch that the fragment which came now does not fit: any of them may be wrong.
        It forgets the other leases that have fragments of the mini-batch, and returns them; the caller gives them back.
        """
        parts = self._parts.pop(work.minibatch, None)
        if parts is not None:
            self.waiting_bytes -= parts.nbytes
        others = [x for x in self.leases.values() if x is not work.lease and work.minibatch in x]
        self.dropped([x.id for x in others])
        return others

    def fetched(self, work: Work, batch: MiniBatch) -> bool:
        """Takes a mini-batch or a fragment that fits. Returns False, and drops it, if it came before or is of an epoch
        that is over.
        """
        self._fetched(work)
        if batch.name.epoch != self.epoch or batch.name.job != self.progress.job or self._came(work):
            return False
        self.waiting_bytes += batch.nbytes
        self.frame_bytes = max(self.frame_bytes, batch.nbytes)
        if batch.fragment is None:
            self._wait(batch, work.lease.own)
            return True
        parts = self._parts.setdefault(work.minibatch, _Parts(_place(work, batch.fragment)))
        parts.came[work.number] = batch
        parts.own = parts.own and work.lease.own
        return True

    def _wait(self, batch: MiniBatch, own: bool) -> None:
        """Has a mini-batch wait for the trainer."""
        self.waiting[batch.name.number] = batch
        if own:
            self.made_by_own.add(batch.name.number)

    def complete(self, work: Work) -> list[MiniBatch]:
        """Returns the fragments of a mini-batch, in their order, when the last of them has come; otherwise none."""
        parts = self._parts.get(work.minibatch)
        if parts is None or not parts.complete:
            return []
        return [parts.came[n] for n in sorted(parts.came)]

    def joined(self, batch: MiniBatch) -> None:
        """Takes the mini-batch that was joined of the fragments that :meth:`complete` returned. It is dropped if the
        epoch is over or the position changed.
        """
        n = batch.name.number
        parts = self._parts.get(n)
        if batch.name.epoch != self.epoch or parts is None or not parts.complete:
            return
        del self._parts[n]
        self.waiting_bytes += batch.nbytes - parts.nbytes
        self._wait(batch, parts.own)

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
        """The number that the trainer waits for in the deterministic order, or None if that mini-batch waits, if one of
        its fragments is leased or under way, or if the order is ``fastest``.
        """
        n = self._next
        if n < 0 or n in self.waiting:
            return None
        parts = self._parts.get(n)
        if parts is not None and parts.complete:  # it is being joined
            return None
        leased = [Work(x, n + x.excess) for x in self.leases.values() if n in x]
        if any(not self._came(w) for w in leased):
            return None
        return None if any(w.minibatch == n for works in self.fetching.values() for w in works) else n

    @property
    def idle(self) -> bool:
        """Reports whether nothing is leased, under way or waiting."""
        return not (self.leases or self.fetching or self.waiting or self._parts)

    @property
    def settled(self) -> bool:
        """Reports whether every acknowledgement is durable."""
        return not self.unsent and self.durable == self.progress.acknowledged
