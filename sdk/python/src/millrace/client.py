"""A training job's mini-batches, from the storage nodes that make them.

:class:`Job` attaches to a job as one of its ranks. One thread asks the control plane for leases and keeps them alive, one
sends acknowledgements, and ``credits`` threads each have one GET outstanding at a node, which reads into pooled memory
(:mod:`millrace.pool`) without holding the interpreter lock. What came waits in a queue that is bounded in bytes; a trainer that
stops stops the drives.

What may fail, and what happens then:

* a node: its leases go back to the control plane, which has others make what is missing. The same bytes come again;
  what the trainer was given is never given again.
* the leader of the control plane: mini-batches keep flowing while the next one is elected; it is told what is held.
* this process: a new one attaches with the token of its own checkpoint and goes on from there; what still runs of the old
  one is fenced off.
* a page, a row or a partition, for good: :class:`millrace.errors.DataLossError`, and the job fails.
"""

from __future__ import annotations

import json
import logging
import os
import re
import threading
import time
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Union

from .control import Control, b64, of_token, unb64
from .errors import (
    ClosedError,
    DataLossError,
    FencedError,
    FrameError,
    JobEndedError,
    MillraceError,
    OtherJobError,
    ServiceError,
    TokenError,
)
from .frame import MiniBatch, Name, decode
from .intake import Intake, Lease, Work
from .pool import Pool
from .schema import Schema
from .token import Ranges, Token
from .wire import BROKEN, TLS, Connections

__all__ = ["Job", "Statistics"]

log = logging.getLogger("millrace")

_MAX_FRAME = 16 << 30
_MAX_DESCRIPTION = 256 << 20
_STUCK = 2.0  # seconds
_CONTENT = "application/vnd.millrace.minibatch"


class Statistics:
    """What a consumer saw so far.

    Attributes:
        minibatches: yielded.
        rows: of them.
        nbytes: of their frames.
        stall_seconds: that the trainer stood still, waiting for a mini-batch, since the first one was asked for.
        first_seconds: of these, until the first mini-batch came.
        failures: fetches that failed and were made up for.
        duplicates: mini-batches that came a second time and were dropped.
    """

    def __init__(self) -> None:
        self.minibatches = 0
        self.rows = 0
        self.nbytes = 0
        self.stall_seconds = 0.0
        self.first_seconds = 0.0
        self.failures = 0
        self.duplicates = 0

    def __repr__(self) -> str:
        return f"Statistics({', '.join(f'{k}={v}' for k, v in vars(self).items())})"


class Job:
    """One rank's consumer of a job. Iterating yields :class:`millrace.frame.MiniBatch`, one epoch after the other.

    ::

        with Job("http://127.0.0.1:7070", id="rm1") as job:
            model = build(job.schema)
            for batch in job:
                step(batch.dense, batch.values, batch.label)
            saved = job.state_dict()

    Args:
        control: URLs of the control plane's members (``http://``, ``https://``, ``unix:PATH``), separated by commas or as a list.
        id: the job's id or name.
        rank: of ``ranks`` in the job's specification.
        token: where to go on: bytes or text of a token, or what ``state_dict()`` gave. None goes on where the ledger stands.
        order: ``deterministic`` or ``fastest``; None takes what the job says.
        queue_bytes: of mini-batches that wait or are under way.
        credits: requests that are outstanding.
        splits: that this rank works on at once; the control plane may grant fewer.
        check: whether CRC32C of every frame is checked; see :func:`millrace.frame.decode`.
        acknowledge: ``auto`` acknowledges a mini-batch when the next one is asked for (and the last when the epoch
            ends); ``manual`` leaves it to :meth:`acknowledge`.
        tls: ``ssl.SSLContext`` or PEM files (certificate, key, authority).
        timeout: seconds without a byte from a node after which it is given up.
        patience: seconds without a leader after which iteration fails.

    One thread iterates; every method may be called from any thread.
    """

    def __init__(
        self,
        control: Union[str, Iterable[str]],
        id: str,
        rank: int = 0,
        *,
        token: Union[None, bytes, str, Token, Mapping[str, Any]] = None,
        order: Optional[str] = None,
        queue_bytes: int = 256 << 20,
        credits: int = 8,
        splits: int = 8,
        check: Optional[bool] = None,
        acknowledge: str = "auto",
        tls: TLS = None,
        timeout: float = 60.0,
        patience: float = 60.0,
    ) -> None:
        if order not in (None, "fastest", "deterministic"):
            raise ValueError(f"order {order!r}, want fastest or deterministic")
        if acknowledge not in ("auto", "manual"):
            raise ValueError(f"acknowledge {acknowledge!r}, want auto or manual")
        if credits < 1 or splits < 1 or queue_bytes < 1:
            raise ValueError("credits, splits and queue_bytes are at least 1")
        self.id = id
        self.rank = rank
        self._check = check
        self._manual = acknowledge == "manual"
        self._splits = splits
        self._timeout = timeout
        self._pid = os.getpid()
        self._control = Control(control, tls=tls, patience=patience)
        self._nodes = Connections(tls)
        self._pool = Pool()
        self._stats = Statistics()
        self._near: dict[tuple[str, str], bool] = {}  # of a unix socket and a node: the node is behind it

        # Guards all that follows, and the intake.
        self._cond = threading.Condition()
        self._error: Optional[BaseException] = None
        self._closed = False
        self._job_done = False
        self._adopt = False
        self._advancing = False
        self._hurry = False  # somebody waits for acknowledgements to be durable
        self._again = False  # something was given back: ask for it anew
        self._stuck_since: Optional[float] = None
        self._releases: list[tuple[int, str]] = []
        self._sick: dict[str, tuple[float, float]] = {}  # node: not before, last pause
        self._throughput = 0.0
        self._last: Optional[int] = None  # yielded and, in auto, not acknowledged
        self._iterating = False
        self._waited_from: Optional[float] = None
        self._generation = 0

        try:
            answer = self._attach(self._token_bytes(token))
        except BaseException:
            self._control.close()
            raise
        self.order = order or str(self._spec.get("order") or "fastest")
        self._intake = Intake(self.order == "deterministic", queue_bytes)
        self._intake.frame_bytes = self._estimate()
        self._begin(answer)
        self._threads = [threading.Thread(target=self._guard, args=(self._lease_loop,), name="millrace-lease", daemon=True)]
        self._threads.append(threading.Thread(target=self._guard, args=(self._tell_loop,), name="millrace-tell", daemon=True))
        for i in range(credits):
            self._threads.append(threading.Thread(target=self._guard, args=(self._fetch_loop,), name=f"millrace-fetch-{i}", daemon=True))
        for t in self._threads:
            t.start()

    # --- what a launcher sees -----------------------------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """The mini-batches' tensors, before the first one."""
        return self._schema

    @property
    def digest(self) -> str:
        """The job's digest, 64 hex digits: equal digests deliver equal mini-batches."""
        return self._digest

    @property
    def epoch(self) -> int:
        """The current epoch, counted from 0."""
        with self._cond:
            return self._intake.epoch

    @property
    def delivered(self) -> bool:
        """All of the current epoch was yielded."""
        with self._cond:
            return self._intake.delivered

    @property
    def over(self) -> bool:
        """All of the current epoch is acknowledged: :meth:`next_epoch` is next."""
        with self._cond:
            return self._intake.delivered and not self._intake.yielded

    @property
    def epochs(self) -> int:
        """How many epochs the job has."""
        return int(self._spec.get("epochs") or 1)

    @property
    def batch(self) -> int:
        """Rows of a mini-batch, as the job says; the last of a partition may have fewer. 0 if it does not say."""
        said = int((self._spec.get("plan") or {}).get("batch") or 0)
        if not said:
            found = re.search(rb"^batch:\s*([0-9]{1,9})\b", unb64(self._spec.get("pipeline")), re.MULTILINE)
            said = int(found[1]) if found else 0
        return said

    @property
    def manifest(self) -> dict[str, Any]:
        """The job's partitions, as sdk/dataset lists them."""
        return dict(json.loads(self._manifest)) if self._manifest else {}

    @property
    def owned(self) -> list[tuple[int, int]]:
        """This rank's mini-batches of the current epoch, as ranges [from, to)."""
        with self._cond:
            return list(self._intake.owned or ())

    @property
    def statistics(self) -> Statistics:
        """A copy of what was counted so far."""
        with self._cond:
            s = Statistics()
            vars(s).update(vars(self._stats))
            return s

    def status(self) -> dict[str, Any]:
        """The job's status as the control plane tells it now (JobStatus)."""
        return self._control.job(self.id)

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[MiniBatch]:
        """Yields what is left of the current epoch, then of the next, to the job's end."""
        while True:
            yield from self.minibatches()
            if not self.next_epoch():
                return

    def minibatches(self) -> Iterator[MiniBatch]:
        """Yields what is left of the current epoch. One iteration at a time.

        In ``auto``, a loop that is left early leaves its last mini-batch unacknowledged.
        """
        with self._cond:
            if self._iterating:
                raise MillraceError("the job is being iterated already")
            self._iterating = True
        try:
            while True:
                batch = self.take()
                if batch is None:
                    return
                yield batch
        finally:
            with self._cond:
                self._iterating = False

    def acknowledge(self, name: Name) -> None:
        """Says that the trainer is done with a mini-batch: it is never delivered again. Durable after :meth:`flush`."""
        with self._cond:
            if name.job != self._digest or name.epoch != self._intake.epoch:
                raise OtherJobError(f"acknowledge {name}: this is job {self._digest[:12]}, epoch {self._intake.epoch}")
            self._acknowledge(name.number)

    def flush(self) -> None:
        """Waits until what was acknowledged is durable in the control plane."""
        with self._cond:
            self._look()
            try:
                while not self._intake.settled:
                    self._hurry = True
                    self._cond.notify_all()
                    self._cond.wait(1.0)
                    self._look()
            finally:
                self._hurry = False

    def next_epoch(self) -> bool:
        """Goes on to the next epoch when all of this one is acknowledged; False when the job has no other."""
        with self._cond:
            if not self._intake.delivered:
                raise MillraceError(f"epoch {self._intake.epoch} is not over")
            if self._intake.yielded:
                raise MillraceError(f"mini-batches {list(self._intake.yielded)[:4]} of epoch {self._intake.epoch} are not acknowledged")
            self._look()
        self.flush()
        return self._advance()

    def state_dict(self) -> dict[str, Any]:
        """The position: everything that was acknowledged and, in ``auto``, the mini-batch yielded last too, whose step is
        done when a trainer saves. Plain values, for torch.save or JSON.

        It is made durable and sealed by the control plane, which takes no other token back; a fraction of a second at
        most, unless a leader is being elected. ``token`` is the same unsealed, for those who want to read it. When the job is done there is
        nothing to resume, and ``sealed`` is empty.
        """
        state = {"version": 1, "job": self._digest, "rank": self.rank}
        try:
            sealed = self.checkpoint()
        except JobEndedError:
            if self.status().get("state") != "done":
                raise
            return {**state, "token": str(self.token), "sealed": ""}
        return {**state, "token": str(self._read(sealed)), "sealed": b64(sealed)}

    @property
    def token(self) -> Token:
        """What was acknowledged so far, from memory. Attaching wants it sealed (:meth:`checkpoint`); a new job's ``resume``
        does not."""
        with self._cond:
            return self._intake.progress.token()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to a position that :meth:`state_dict` gave, in this process or an earlier one; the loop starts anew after it."""
        token = self._token_bytes(state)
        assert token is not None
        if self._iterating:
            raise MillraceError("load a state before or after the loop, not inside")
        if self._read(token).job != self._digest:
            raise OtherJobError(f"the state is of job {self._read(token).job[:12]}, this is {self._digest[:12]}")
        self._reattach(token)

    def checkpoint(self) -> bytes:
        """The token of what this rank has acknowledged, made durable and sealed by the control plane, which thereby
        takes it back. While the control plane is away it waits.
        """
        with self._cond:
            if not self._manual:
                self._acknowledge_last()
            session = b64(self._session)
        self.flush()
        try:
            sealed = unb64(self._control.call("Checkpoint", {"id": self._called, "session": session}).get("token"))
        except ServiceError as e:
            raise self._named(e) from e
        self._read(sealed)
        return sealed

    def report_throughput(self, rows_per_second: float) -> None:
        """Tells the control plane T, this rank's highest throughput, measured on dummy mini-batches."""
        with self._cond:
            self._throughput = float(rows_per_second)

    def close(self) -> None:
        """Gives leases back, ends all threads and connections. Mini-batches that were yielded stay valid."""
        with self._cond:
            if self._closed:
                return
            self._closed = True
            self._cond.notify_all()
        if os.getpid() != self._pid:
            return  # a fork: threads and session belong to the parent
        self._nodes.close()
        for t in self._threads:
            if t is not threading.current_thread() and t.name.startswith("millrace-fetch"):
                t.join()
        # What the call under way is granted goes back too; else its drives would wait for it to expire.
        if self._threads[0] is not threading.current_thread():
            self._threads[0].join(2.0)
        self._farewell()
        self._control.close()
        for t in self._threads:
            if t is not threading.current_thread():
                t.join()

    def __del__(self) -> None:
        with_threads = getattr(self, "_threads", None)
        if with_threads and not self._closed:
            self._closed = True  # the daemons end by themselves

    # --- attaching ----------------------------------------------------------------------------------------------------

    @staticmethod
    def _token_bytes(token: Union[None, bytes, str, Token, Mapping[str, Any]]) -> Optional[bytes]:
        if token is None:
            return None
        if isinstance(token, Mapping):
            if token.get("version") != 1 or not isinstance(token.get("sealed"), str):
                raise TokenError(f"a state of version {token.get('version')!r}; this version reads 1")
            if not token["sealed"]:
                raise JobEndedError("the state is of a job that was done: nothing is left of it")
            try:
                token = unb64(token["sealed"])
            except ValueError as e:
                raise TokenError(f"a state whose token is not base64: {e}") from None
        if isinstance(token, Token):
            return token.to_bytes()
        if isinstance(token, str):
            return Token.parse(token).to_bytes()
        Job._read(bytes(token))
        return bytes(token)

    @staticmethod
    def _read(raw: bytes) -> Token:
        """What a token says, bare or sealed by the control plane (which alone can check the seal)."""
        return Token.from_bytes(raw[4:-32] if raw[:4] == b"MRT1" else raw)

    def _attach(self, token: Optional[bytes]) -> dict[str, Any]:
        """Attaches and keeps what holds for the whole session."""
        message: dict[str, Any] = {"id": self.id, "rank": self.rank}
        if token is not None:
            message["token"] = b64(token)
        try:
            # A job whose drives are being measured says so, and to ask again.
            answer = self._control.call("Attach", message, wait=20, busy=600)
        except ServiceError as e:
            raise of_token(e) from e
        status = answer.get("job") or {}
        self._spec: dict[str, Any] = status.get("spec") or {}
        self._digest = unb64(status.get("digest")).hex()
        self._session = unb64(answer.get("session"))
        self._schema = Schema.from_json(unb64(answer.get("tensorSchema")))
        self._manifest = unb64(answer.get("manifest"))
        self.mean_length: dict[str, float] = {str(k): float(v) for k, v in (answer.get("meanLength") or {}).items()}
        # Calls name the job by the id, which stays; a name could be another job's tomorrow.
        self._called = str(status.get("id") or self.id)
        return answer

    def _begin(self, answer: dict[str, Any]) -> None:
        """Starts the epoch that the control plane says. The caller holds the lock, or nobody else runs yet."""
        epoch = int(answer.get("epoch", 0))
        acknowledged = Ranges()
        raw = unb64(answer.get("token"))
        if raw:
            t = self._read(raw)
            if t.job != self._digest:
                raise OtherJobError(f"attached to job {self._digest[:12]}, its token is of {t.job[:12]}")
            if t.epoch == epoch:
                acknowledged = Ranges([(0, t.mark), *t.runs])
        owned: Optional[Ranges] = None
        if answer.get("owned") is not None or self.order == "deterministic":
            owned = Ranges((int(r.get("from", 0)), int(r.get("to", 0))) for r in answer.get("owned") or ())
        self._intake.begin(self._digest, epoch, owned, acknowledged)
        self._last = None
        self._adopt = False
        self._stuck_since = None
        self._generation += 1

    def _estimate(self) -> int:
        """Bytes of a mini-batch, before the first one tells."""
        s = self._schema
        row = 4 + 4 * len(s.dense) + len(s.keys) * (4 if s.ids == "int32" else 8)
        return self.batch * (row + (0 if s.fixed else 4 * len(s.keys)))

    def _reattach(self, token: bytes) -> None:
        answer = self._attach(token)
        with self._cond:
            self._begin(answer)
            self._cond.notify_all()

    def _advance(self) -> bool:
        """Moves to the next epoch; False if there is none."""
        with self._cond:
            self._look()
            if self._job_done:
                return False
            following = self._intake.epoch + 1
            self._advancing = True  # the lease loop rests: it would ask for the epoch that is over
            message = {"id": self._called, "session": b64(self._session), "epoch": str(following), "want": 1, "waitSeconds": 0.5}
        try:
            pause = 0.05
            while True:
                # To ask for a lease of the next epoch is what begins it.
                try:
                    answer = self._control.call("Lease", message, wait=0.5)
                except ServiceError as e:
                    raise self._named(e) from e
                with self._cond:
                    self._look()
                if answer.get("unknownSession"):
                    raise self._fenced("the control plane does not know the session")
                if answer.get("jobDone"):
                    with self._cond:
                        self._job_done = True
                    return False
                if answer.get("grants") or answer.get("epochDone"):
                    # Which numbers are this rank's is in the answer to Attach, whose new session gets what was just granted.
                    attached = self._attach(None)
                    message["session"] = b64(self._session)
                    if int(attached.get("epoch", 0)) >= following:
                        with self._cond:
                            self._begin(attached)
                            self._cond.notify_all()
                        return True
                with self._cond:  # other ranks are not through yet, or the data has not grown yet
                    self._cond.wait_for(lambda: self._closed, pause)
                pause = min(2 * pause, 2.0)
        finally:
            with self._cond:
                self._advancing = False
                self._cond.notify_all()

    def _fenced(self, why: str) -> FencedError:
        return FencedError(f"rank {self.rank} of job {self.id}: {why}: attach again with the trainer's token to take it back")

    def _named(self, e: ServiceError) -> MillraceError:
        """What an error of the control plane means to a session."""
        if e.code in ("failed_precondition", "aborted"):
            return self._fenced(e.message) if "session" in e.message else JobEndedError(f"job {self.id}: {e.message}")
        if e.code == "not_found":
            return JobEndedError(f"job {self.id}: {e.message}")
        return e

    # --- threads ------------------------------------------------------------------------------------------------------

    def _guard(self, loop: Callable[[], None]) -> None:
        try:
            loop()
        except BaseException as e:
            with self._cond:
                if self._error is None and not self._closed:
                    self._error = e
                self._cond.notify_all()

    def _look(self) -> None:
        """Raises what ended the job. The caller holds the lock."""
        if self._closed:
            raise ClosedError("the job was closed")
        if os.getpid() != self._pid:
            raise MillraceError("the job was attached before a fork: attach in the process that iterates")
        if self._error is not None:
            raise self._error

    def take(self, stop: Optional[Callable[[], bool]] = None, *, stall: bool = True) -> Optional[MiniBatch]:
        """The next mini-batch of the current epoch, or None when it is over (or ``stop()``, asked every second and on
        :meth:`wake`). What :meth:`minibatches` does, for those who stage mini-batches themselves.

        Args:
            stall: whether waiting counts as the trainer standing still; else tell :meth:`stalled`.
        """
        begun = time.monotonic()
        with self._cond:
            self._look()
            if not self._manual:
                self._acknowledge_last()
            self._waited_from = begun if stall else None
            try:
                while True:
                    batch = self._intake.take()
                    if batch is not None or self._intake.delivered or (stop is not None and stop()):
                        break
                    self._cond.wait(1.0)
                    self._look()
            finally:
                self._waited_from = None
                if stall:
                    self._stalled(time.monotonic() - begun)
            if batch is None:
                return None
            self._last = batch.name.number
            self._stats.minibatches += 1
            self._stats.rows += batch.rows
            self._stats.nbytes += batch.nbytes
            self._cond.notify_all()
            return batch

    def wake(self) -> None:
        """Has a :meth:`take` that waits look at ``stop`` now."""
        with self._cond:
            self._cond.notify_all()

    def stalled(self, seconds: float) -> None:
        """Counts time that the trainer stood still, where mini-batches are staged by somebody else."""
        with self._cond:
            self._stalled(seconds)

    def _stalled(self, seconds: float) -> None:
        if not self._stats.stall_seconds:
            self._stats.first_seconds = seconds
        self._stats.stall_seconds += seconds

    def _acknowledge(self, number: int) -> None:
        try:
            self._intake.acknowledge(number)
        except KeyError:
            raise MillraceError(f"acknowledge mini-batch {number}: it was not delivered to this rank") from None
        if number == self._last:
            self._last = None

    def _acknowledge_last(self) -> None:
        if self._last is not None:
            self._acknowledge(self._last)

    def _lease_loop(self) -> None:
        while True:
            with self._cond:
                self._cond.wait_for(lambda: not self._advancing or self._closed)
                if self._closed or self._error is not None:
                    return
                generation = self._generation
                self._again = False
                message = self._lease_message()
            begun = time.monotonic()
            try:
                answer = self._control.call("Lease", message, wait=float(message.get("waitSeconds", 0.0)))
            except ServiceError as e:
                with self._cond:
                    if generation != self._generation or self._advancing:
                        continue  # attached anew meanwhile: it was the old session that was refused
                raise self._named(e) from e
            with self._cond:
                if generation != self._generation or self._advancing:
                    continue
                granted = self._leased(answer)
                self._cond.notify_all()
                ended = self._job_done and not granted and not self._intake.delivered and self._intake.idle
                if not (granted or self._adopt or ended):
                    # Nothing to be had, or nothing wanted: until a lease is used up, or those held want to be extended.
                    busy = "want" not in message
                    self._cond.wait_for(
                        lambda: self._closed
                        or self._error is not None
                        or self._again
                        or self._generation != generation
                        or (busy and self._intake.lacking(self._splits) > 0),
                        max(0.0, 0.5 - (time.monotonic() - begun)),
                    )
            if ended:
                self._ended()

    def _lease_message(self) -> dict[str, Any]:
        i = self._intake
        waits = self._waited_from
        stall = self._stats.stall_seconds + (time.monotonic() - waits if waits is not None else 0.0)
        message: dict[str, Any] = {
            "id": self._called,
            "session": b64(self._session),
            "epoch": str(i.epoch),
            "held": [str(x) for x in i.leases],
            "report": {
                "queueBatches": float(len(i.waiting)),
                "queueBytes": str(i.waiting_bytes),
                "queueLimitBytes": str(i.limit),
                "stallSeconds": stall,
                "tRowsPerSecond": self._throughput,
            },
        }
        fetched = [str(x.id) for x in i.leases.values() if not x.todo and not x.out]
        if fetched:
            message["fetched"] = fetched
        if i.full:
            message["report"]["blocked"] = True
        if self._adopt:
            message["adopt"] = [x.held() for x in i.leases.values()]
        self._unstick()
        want = i.lacking(self._splits)
        if not want and i.due is not None:
            want = 1  # the mini-batch that is due comes first, whatever else is held
        if want and not i.delivered:
            message["want"] = want
            # Not longer: leases that are held are extended by the next call.
            message["waitSeconds"] = 0.5
        return message

    def _unstick(self) -> None:
        """Gives the last lease back when the mini-batch that is due is in nobody's hands for a while: the drive that could
        make it may be busy with leases whose mini-batches no longer fit into the queue."""
        i = self._intake
        if i.due is None:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = time.monotonic()
        elif time.monotonic() - self._stuck_since > _STUCK:
            self._stuck_since = None
            open_ = [x for x in i.leases.values() if x.todo]
            if open_:
                last = max(open_, key=lambda x: x.first)
                i.dropped([last.id])
                self._releases.append((last.id, "stop"))

    def _leased(self, answer: dict[str, Any]) -> bool:
        """Takes an answer of Lease. The caller holds the lock. True: something was granted."""
        if answer.get("unknownSession"):
            raise self._fenced("the control plane does not know the session")
        self._adopt = bool(answer.get("adopt"))
        self._intake.dropped(int(x) for x in answer.get("revoked", ()))
        grants = answer.get("grants", ())
        for g in grants:
            lease = Lease.of(g)
            if not self._intake.granted(lease):
                self._releases.append((lease.id, "stop"))
        self._intake.all_granted = bool(answer.get("epochDone"))
        self._job_done = self._job_done or bool(answer.get("jobDone"))
        return bool(grants)

    def _ended(self) -> None:
        """The job is over and mini-batches are owed: says why."""
        state = str(self._control.job(self._called).get("state", ""))
        if state.startswith("failed") or state == "cancelled":
            raise JobEndedError(f"job {self.id}: {state}")

    def _tell_loop(self) -> None:
        """Acknowledges in batches, and gives leases back."""
        while True:
            with self._cond:
                self._cond.wait_for(lambda: self._closed or self._error is not None or self._releases or self._intake.unsent)
                if self._closed or self._error is not None:
                    return
                # A little patience makes one message of many.
                self._cond.wait_for(lambda: self._closed or self._hurry or len(self._intake.unsent) > 1024 or bool(self._releases), 0.1)
                message = self._acknowledgement()
                generation = self._generation
                releases, self._releases = self._releases, []
                session = b64(self._session)
            for reason in sorted({r for _, r in releases}):
                ids = [str(i) for i, r in releases if r == reason]
                try:
                    self._control.call("Release", {"id": self._called, "session": session, "leases": ids, "reason": reason})
                except ServiceError as e:
                    log.info("release leases %s: %s", ids, e)  # they expire by themselves
            if releases:
                with self._cond:
                    self._again = True
                    self._cond.notify_all()
            if message is None:
                continue
            epoch, numbers, body = message
            try:
                self._control.call("Acknowledge", body)
            except ServiceError as e:
                with self._cond:
                    if generation != self._generation:
                        continue  # attached anew: the token that went with it, or the ledger, knows
                raise self._named(e) from e
            with self._cond:
                if generation == self._generation:
                    self._intake.sent(epoch, numbers)
                    self._intake.spent()
                self._cond.notify_all()

    def _acknowledgement(self) -> Optional[tuple[int, Ranges, dict[str, Any]]]:
        numbers = self._intake.sending()
        if not numbers:
            return None
        ranges = [{"from": str(a), "to": str(b)} for a, b in numbers]
        body = {"id": self._called, "session": b64(self._session), "epoch": str(self._intake.epoch), "numbers": ranges}
        return self._intake.epoch, numbers, body

    def _farewell(self) -> None:
        """Tells the last acknowledgements and gives leases back; a control plane that does not answer is not waited for."""
        with self._cond:
            message = self._acknowledgement() if self._error is None else None
            held = [str(i) for i in self._intake.leases]
        try:
            if message is not None:
                self._control.call("Acknowledge", message[2], patience=2)
            if held:
                self._control.call("Release", {"id": self._called, "session": b64(self._session), "leases": held, "reason": "stop"}, patience=2)
        except MillraceError as e:
            log.info("job %s, rank %d: closing: %s", self.id, self.rank, e)

    # --- fetching -----------------------------------------------------------------------------------------------------

    def _fetch_loop(self) -> None:
        while True:
            with self._cond:
                work = None
                while work is None:
                    if self._closed or self._error is not None:
                        return
                    now = time.monotonic()
                    work = self._intake.next_fetch(lambda lease: self._sick.get(lease.node, (0.0, 0.0))[0] <= now)
                    if work is None:
                        self._cond.wait(0.1 if self._sick else 1.0)
            try:
                batch = self._fetch(work)
            except _Failed as e:
                self._fetch_failed(work, e)
                continue
            except BROKEN as e:
                self._fetch_failed(work, _Failed("unavailable", str(e) or type(e).__name__))
                continue
            with self._cond:
                self._sick.pop(work.lease.node, None)
                if not self._intake.fetched(work, batch):
                    self._stats.duplicates += 1
                self._cond.notify_all()
            del batch, work

    def _fetch_failed(self, work: Work, e: "_Failed") -> None:
        lease = work.lease
        with self._cond:
            if self._closed:
                return
            held = self._intake.failed(work)
            self._stats.failures += 1
            if e.final:
                if held:
                    self._releases.append((lease.id, f"data: {e}"))
                self._cond.notify_all()
            elif held:
                log.warning("job %s: mini-batch %d from drive %s of node %s: %s; another makes it", self.id, work.number, lease.drive, lease.node, e)
                _, pause = self._sick.get(lease.node, (0.0, 0.05))
                pause = min(2 * pause, 2.0)
                self._sick[lease.node] = (time.monotonic() + pause, pause)
                self._releases.append((lease.id, f"node: {e}"))
                self._cond.notify_all()
        if e.final:
            with self._cond:  # the control plane is told first are told first
                self._cond.wait_for(lambda: self._closed or not self._releases, 2.0)
            raise DataLossError(f"mini-batch {work.number} from drive {lease.drive} of node {lease.node}: {e}")

    def _fetch(self, work: Work) -> MiniBatch:
        """GETs a mini-batch, from whichever of the node's URLs answers: unix sockets first."""
        lease = work.lease
        urls = [u for u in lease.urls if u.startswith("unix:") and self._is_near(u, lease.node)]
        urls += [u for u in lease.urls if not u.startswith("unix:")]
        if not urls:
            raise _Failed("unavailable", f"node {lease.node} is not reached at any of {list(lease.urls)}")
        path = f"/v1/minibatch?job={self._digest}&epoch={lease.epoch}&drive={_quote(lease.drive)}&number={work.number}&until={lease.end}"
        failure: Optional[_Failed] = None
        for url in urls:
            try:
                return self._get(url, path, work)
            except ValueError as e:
                failure = _Failed("unavailable", f"{url}: {e}")
            except BROKEN as e:
                failure = _Failed("unavailable", f"{url}: {e or type(e).__name__}")
        assert failure is not None
        raise failure

    def _is_near(self, url: str, node: str) -> bool:
        """Whether a unix socket is that of the node: another machine's node may name the same path."""
        with self._cond:
            known = self._near.get((url, node))
        if known is not None:
            return known
        answers = False
        try:
            conn, _ = self._nodes.take(url, self._timeout)
            try:
                conn.request("POST", "/millrace.v1.Node/Describe", b"{}", {"Content-Type": "application/json"})
                response = conn.getresponse()
                doc = json.loads(response.read(_MAX_DESCRIPTION))
                answers = response.status == 200 and doc.get("status", {}).get("name") == node
            finally:
                self._nodes.drop(conn)
        except (*BROKEN, ValueError, AttributeError):
            return False  # it may answer the next time
        with self._cond:
            self._near[url, node] = answers
        return answers

    def _get(self, url: str, path: str, work: Work) -> MiniBatch:
        busy_until = time.monotonic() + self._timeout
        while True:
            conn, used = self._nodes.take(url, self._timeout)
            try:
                conn.request("GET", path, headers={"Accept": _CONTENT})
                response = conn.getresponse()
            except BROKEN as e:
                self._nodes.drop(conn)
                if used and not isinstance(e, TimeoutError):
                    continue  # it had rested too long
                raise
            except BaseException:
                self._nodes.drop(conn)
                raise
            try:
                if response.status == 200:
                    kind = response.headers.get("Content-Type")
                    if kind != _CONTENT:
                        raise _Failed("internal", f"an answer of type {kind}, want {_CONTENT}")
                    batch = self._body(response)
                    self._nodes.give(url, conn)
                    conn = None  # type: ignore[assignment]
                    if batch.name != (self._digest, work.lease.epoch, work.number):
                        raise _Failed("internal", f"asked for {work.number} of epoch {work.lease.epoch}, got {batch.name}")
                    if batch.schema != self._schema:
                        raise _Failed("internal", f"mini-batch {batch.name.number} has another schema than the job")
                    return batch
                failed = _refusal(response)
                self._nodes.give(url, conn)
                conn = None  # type: ignore[assignment]
            except FrameError as e:
                raise _Failed("internal", f"{url}: {e}") from e
            finally:
                if conn is not None:
                    self._nodes.drop(conn)
            # Busy is not broken: wait as it asks. Draining is, for this lease.
            if failed.code == "resource_exhausted" and time.monotonic() + failed.retry_after < busy_until:
                with self._cond:
                    self._cond.wait_for(lambda: self._closed, failed.retry_after)
                    if self._closed:
                        raise failed
                continue
            raise failed

    def _body(self, response: Any) -> MiniBatch:
        length = response.length
        if length is None or not 8 <= length <= _MAX_FRAME:
            raise FrameError(f"Content-Length is {length}")
        memory = self._pool.take(length)
        at = 0
        while at < length:
            n = response.readinto(memory[at:])
            if not n:
                raise OSError(f"the node sent {at} of {length} bytes")
            at += n
        response.read()  # ends the response
        return decode(memory, check=self._check)


class _Failed(Exception):
    """A mini-batch was not to be had from a node."""

    def __init__(self, code: str, message: str, retry_after: float = 0.1) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.retry_after = retry_after
        # It would fail again anywhere; a partition that changed is not the job's any more.
        self.final = code in ("data_loss", "failed_precondition")


def _refusal(response: Any) -> _Failed:
    if response.length is not None and response.length > 1 << 20:
        raise OSError(f"an error of {response.length} bytes")
    data = response.read(1 << 20)
    try:
        doc = json.loads(data)
        code, message = str(doc["code"]), str(doc.get("message", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        code, message = "unavailable", f"HTTP status {response.status}"
    try:
        after = min(max(float(response.headers.get("Retry-After", "0.1")), 0.02), 5.0)
    except ValueError:
        after = 0.1
    return _Failed(code, message, after)


def _quote(text: str) -> str:
    from urllib.parse import quote

    return quote(text, safe="")
