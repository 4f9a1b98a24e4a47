"""A training job's mini-batches, from the storage nodes that make them.

:class:`Job` attaches to a job as one of its ranks. One thread asks the control plane for leases and extends them, one
sends acknowledgements, and ``credits`` threads each have one GET outstanding at a node, which reads into pooled memory
(:mod:`millrace.nodes`) without holding the interpreter lock. Mini-batches that have come wait in a queue that is
bounded in bytes. A trainer that stops taking mini-batches stops the drives.

Failures, and what follows from them:

* A node fails: its leases go back to the control plane, which has other nodes make the mini-batches. The bytes are the
  same, and the trainer gets no mini-batch twice.
* The leader of the control plane fails: mini-batches keep coming while the members elect another leader, to which this
  rank reports its leases.
* This process fails: a new process attaches with the token of its own checkpoint and goes on from there. The old
  session is fenced.
* A page, a row or a partition is damaged: :class:`millrace.errors.DataLossError`, and the job fails.
"""

from __future__ import annotations

import warnings
import weakref
from typing import Any, Callable, Iterable, Iterator, Mapping, Optional, Union

from .bounds import document, integer
from .contexts import resolve
from .consumption import Consumption
from .control import Control, b64, unb64
from .errors import JobEndedError, MillraceError, NoMiniBatchWarning, OtherJobError, TokenError
from .frame import MiniBatch, Name
from .metricfile import KeptProfile
from .nodes import ANSWER_SECONDS, Nodes, batch_of
from .own import OwnWorker
from .run import default_run
from .schema import Schema
from .session import Session
from .statistics import Statistics
from .token import Token, read_token
from .wire import TLS

__all__ = ["Job", "Statistics", "position_bytes"]

Position = Union[None, bytes, str, Token, Mapping[str, Any]]


class Job:
    """One rank's consumer of a job. Iterating yields :class:`millrace.frame.MiniBatch`, one epoch after the other.

    ::

        with Job("http://127.0.0.1:7070", id="rm1") as job:
            model = build(job.schema)
            for batch in job:
                step(batch.dense, batch.values, batch.label)
            saved = job.state_dict()

    Args:
        control: URLs of the control plane's members (``http://``, ``https://``, ``unix:PATH``), as a list or separated
            by commas; or the name of a context (``millrace context list``). None takes the environment's control
            plane, or the current context's.
        id: the job's id or name.
        rank: this rank's number, from 0 to ``ranks`` - 1 of the job's specification.
        token: where to go on: bytes or text of a token, or the result of ``state_dict()``. None goes on from what the
            ledger knows.
        order: ``deterministic`` or ``fastest``; None takes the job's order.
        queue_bytes: the most bytes of mini-batches that wait or are on their way.
        credits: how many requests are under way at once.
        splits: the most splits that this rank leases at once; the control plane may grant fewer.
        check: whether the CRC32C of every frame is checked; see :func:`millrace.frame.decode`.
        acknowledge: ``auto`` acknowledges a mini-batch when the next one is asked for (and the last when the epoch
            ends); ``manual`` leaves it to :meth:`acknowledge`.
        tls: ``ssl.SSLContext`` or PEM files (certificate, key, authority); None takes the environment's, or the
            context's.
        timeout: seconds that an answer of a node may take, from the request to its last byte. After three answers that
            take longer, another node makes the mini-batch.
        patience: seconds without a leader after which iteration fails.
        run: names the training run of this rank. All ranks of a run give the same name, and no two runs have the same
            name. None finds a name: see :mod:`millrace.run`.
        resume: whether to go on where another run stopped, without the mini-batches that it acknowledged. If False,
            attaching to a job that another run has partly consumed raises :class:`PartlyConsumedError`.

    One thread iterates; every method may be called from any thread.

    Raises:
        ValueError: an argument is out of range, or there is no ``id``.
        ContextError: there is no such context, or the file of contexts cannot be read.
        TokenError, OtherJobError: ``token`` is damaged, or of another job.
        PartlyConsumedError: another run has acknowledged mini-batches of this rank.
        JobEndedError, JobAbandonedError: the job has ended.
        ServiceError: the control plane refuses for another reason, as for a job that it does not know.
        UnreachableError, AddressError, TLSError: no leader of the control plane answers, and why.
    """

    def __init__(
        self,
        control: Union[None, str, Iterable[str]] = None,
        id: str = "",
        rank: int = 0,
        *,
        token: Position = None,
        order: Optional[str] = None,
        queue_bytes: int = 256 << 20,
        credits: int = 8,
        splits: int = 8,
        check: Optional[bool] = None,
        acknowledge: str = "auto",
        tls: TLS = None,
        timeout: float = ANSWER_SECONDS,
        patience: float = 60.0,
        run: Optional[str] = None,
        resume: bool = False,
    ) -> None:
        if order not in (None, "fastest", "deterministic"):
            raise ValueError(f"order {order!r}, want fastest or deterministic")
        if acknowledge not in ("auto", "manual"):
            raise ValueError(f"acknowledge {acknowledge!r}, want auto or manual")
        if credits < 1 or splits < 1 or queue_bytes < 1:
            raise ValueError("credits, splits and queue_bytes are at least 1")
        if not id:
            raise ValueError("no job: give its id or name, as id='ads'")
        control, tls = resolve(control, tls)
        position = position_bytes(token)
        control_ = Control(control, tls=tls, patience=patience)
        nodes = Nodes(tls, check, timeout)
        try:
            session = Session(
                control_, nodes, id, rank, position, order, queue_bytes, splits, credits, run or default_run(), resume
            )
        except BaseException:
            control_.close()
            nodes.close()
            raise
        self._use(session, acknowledge)

    @classmethod
    def of_session(cls, session: Consumption, acknowledge: str = "auto") -> "Job":
        """Returns the consumer of a session that has attached, and starts the session's threads."""
        job = cls.__new__(cls)
        job._use(session, acknowledge)
        return job

    def _use(self, session: Any, acknowledge: str) -> None:
        self.id = session.id
        self.rank = session.rank
        self._manual = acknowledge == "manual"
        self._last: Optional[int] = None  # number that was yielded and, in auto, not acknowledged
        self._iterating = False
        self._session = session
        self._own: Optional[OwnWorker] = None
        self._cond = self._session.cond  # guards the changing fields here, too
        self._session.intake.frame_bytes = self._estimate()
        self._session.start()
        # A Job without references that was not closed ends its threads and gives its leases back.
        self._abandoned = weakref.finalize(self, self._session.abandon)
        self._abandoned.atexit = False  # the session ends itself when the process ends

    # --- the job ------------------------------------------------------------------------------------------------------

    @property
    def schema(self) -> Schema:
        """The tensors of the job's mini-batches, known before the first one comes."""
        found: Schema = self._session.schema
        return found

    @property
    def digest(self) -> str:
        """The job's digest, 64 hex digits. Jobs with equal digests have equal mini-batches."""
        found: str = self._session.digest
        return found

    @property
    def order(self) -> str:
        """``deterministic`` or ``fastest``."""
        found: str = self._session.order
        return found

    @property
    def epochs(self) -> int:
        """How many epochs the job has. One that follows its data set has further ones with each of its editions."""
        return integer(self._session.spec.get("epochs") or 1, "epochs of the job", 1 << 32)

    @property
    def batch(self) -> int:
        """Rows of a mini-batch; the last of a partition, or with the boundary ``none`` of an epoch, may have fewer. 0 if
        the job does not give it.
        """
        return batch_of(self._session.spec)

    @property
    def manifest(self) -> dict[str, Any]:
        """The list of the job's partitions, in the form of sdk/dataset's Manifest; empty where the session has none."""
        return dict(document(self._session.manifest)) if self._session.manifest else {}

    @property
    def mean_length(self) -> dict[str, float]:
        """Mean number of elements in a row, by list column."""
        return dict(self._session.mean_length)

    def status(self) -> dict[str, Any]:
        """The job's status now: the control plane's JobStatus, or what a private process's session knows of it."""
        return dict(self._session.status())

    def _estimate(self) -> int:
        """An estimate of the bytes of a mini-batch, before the first one has come."""
        s = self.schema
        row = 4 + (2 if s.dense_type == "bfloat16" else 4) * len(s.dense) + len(s.keys) * (4 if s.ids == "int32" else 8)
        return self.batch * (row + (0 if s.fixed else 4 * len(s.keys)))

    # --- progress -----------------------------------------------------------------------------------------------------

    @property
    def epoch(self) -> int:
        """The current epoch, counted from 0."""
        with self._cond:
            found: int = self._session.intake.epoch
            return found

    @property
    def owned(self) -> list[tuple[int, int]]:
        """The numbers of this rank's mini-batches of the current epoch, as ascending ranges [from, to)."""
        with self._cond:
            return list(self._session.intake.owned)

    @property
    def delivered(self) -> bool:
        """Reports whether every mini-batch of the current epoch was yielded."""
        with self._cond:
            found: bool = self._session.intake.delivered
            return found

    @property
    def over(self) -> bool:
        """Reports whether every mini-batch of the current epoch is acknowledged, so that :meth:`next_epoch` is next."""
        with self._cond:
            return self._session.intake.delivered and not self._session.intake.yielded

    @property
    def statistics(self) -> Statistics:
        """A copy of the counters."""
        with self._cond:
            s = Statistics()
            vars(s).update(vars(self._session.statistics))
            return s

    def leases(self) -> list[tuple[str, str, list[int]]]:
        """Returns this rank's leases, each as (node, drive, numbers). The numbers are those of the lease's mini-batches
        that have not come, ascending. Leases whose mini-batches have all come are left out. The lease with the least
        number comes first.
        """
        with self._cond:
            held = [(x.node, x.drive, self._session.intake.missing(x)) for x in self._session.intake.leases.values()]
        return sorted((x for x in held if x[2]), key=lambda x: x[2][0])

    # --- the loop -----------------------------------------------------------------------------------------------------

    def __enter__(self) -> "Job":
        return self

    def __exit__(self, kind: object, *exc: object) -> None:
        if kind is None:
            self.close()
        else:
            self._session.leave()  # an error of closing must not replace the exception under way
            self._abandoned.detach()
            if self._own is not None:
                self._own.close()

    def __getitem__(self, index: Any) -> MiniBatch:
        """Raises TypeError: mini-batches come one after the other, and have no index."""
        raise TypeError(
            f"[{index!r}]: mini-batches come one after the other, and have no index: iterate, as `for batch in data` "
            "does, or take() the next one"
        )

    def __iter__(self) -> Iterator[MiniBatch]:
        """Yields what is left of the current epoch, then every further epoch of the job."""
        before = self._session.statistics.minibatches
        while True:
            yield from self.minibatches()
            if not self.next_epoch():
                break
        if self._session.statistics.minibatches == before:
            self.warn_nothing()

    def warn_nothing(self) -> None:
        """Issues a :class:`NoMiniBatchWarning`, which says why a loop got no mini-batch."""
        with self._cond:
            why = self._session.with_nothing()
        warnings.warn(why, NoMiniBatchWarning, stacklevel=3)

    def minibatches(self) -> Iterator[MiniBatch]:
        """Yields what is left of the current epoch. One iteration at a time.

        In ``auto``, the end of the epoch acknowledges the last mini-batch and returns when that is durable. A loop that
        ends early (``break``, an exception) leaves its last mini-batch unacknowledged. The next loop acknowledges it
        by asking for the next one. Without a next loop it comes again in the next run.

        Raises:
            MillraceError: the job is being iterated already. Further errors are those of :meth:`take`.
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

    def take(self, stop: Optional[Callable[[], bool]] = None, *, stall: bool = True) -> Optional[MiniBatch]:
        """Returns the next mini-batch of the current epoch, or None when the epoch is over or ``stop()`` returns True.
        It is one step of :meth:`minibatches`, for callers that stage mini-batches themselves.

        Args:
            stop: called every second and on :meth:`wake` while no mini-batch comes.
            stall: whether the wait counts as a stall of the trainer. A caller that passes False calls :meth:`stalled`.

        Raises:
            ClosedError: the job was closed.
            FencedError: another consumer attached as this rank.
            DataLossError: a page, a row or a partition is damaged.
            JobEndedError, JobAbandonedError: the job ended before the epoch was over.
            PrivateProcessError: the private process has ended.
            UnreachableError: the control plane had no leader for longer than ``patience``.
            MillraceError: this process is a fork of the one that attached.
        """
        with self._cond:
            self._session.with_look()
            self._acknowledge_last()
            batch: Optional[MiniBatch] = self._session.with_take(stop, stall)
            if batch is not None:
                self._last = batch.name.number
                return batch
            i = self._session.intake
            over = i.delivered and not i.yielded
        if over:
            self.flush()
        return None

    def wake(self) -> None:
        """Makes a :meth:`take` that waits call its ``stop`` now."""
        with self._cond:
            self._cond.notify_all()

    def stalled(self, seconds: float) -> None:
        """Counts a stall of the trainer, for a caller that stages mini-batches itself."""
        with self._cond:
            self._session.with_stalled(seconds)

    def next_epoch(self) -> bool:
        """Goes on to the next epoch, once every mini-batch of this one is acknowledged and the acknowledgements are
        durable. Returns False if the job has no further epoch.

        Raises:
            MillraceError: a mini-batch of this epoch was not yielded, or not acknowledged.
        """
        with self._cond:
            i = self._session.intake
            if not i.delivered:
                raise MillraceError(f"epoch {i.epoch} is not over")
            if i.yielded:
                raise MillraceError(f"mini-batches {list(i.yielded)[:4]} of epoch {i.epoch} are not acknowledged")
        self.flush()
        found: bool = self._session.advance()
        return found

    # --- acknowledging and checkpoints --------------------------------------------------------------------------------

    def acknowledge(self, name: Name) -> None:
        """Records that the trainer is done with a mini-batch, so that it never comes again. The acknowledgement is
        durable after :meth:`flush`.

        Raises:
            OtherJobError: the mini-batch is of another job, or not of the current epoch.
            MillraceError: the mini-batch was not delivered to this rank.
        """
        with self._cond:
            epoch = self._session.intake.epoch
            if name.job != self.digest or name.epoch != epoch:
                raise OtherJobError(f"acknowledge {name}: this is job {self.digest[:12]}, epoch {epoch}")
            self._session.with_acknowledge(name.number)
            if name.number == self._last:
                self._last = None

    def rejoin(self) -> None:
        """Attaches again, at the ledger's position: mini-batches that were yielded and not acknowledged come again."""
        self.flush()
        self._last = None
        self._session.attach(None)

    def _acknowledge_last(self) -> None:
        """Acknowledges the mini-batch that was yielded last, in ``auto``."""
        if self._last is not None and not self._manual:
            number, self._last = self._last, None
            self._session.with_acknowledge(number)

    def flush(self) -> None:
        """Waits until every acknowledgement so far is durable in the control plane."""
        self._session.flush()

    @property
    def token(self) -> Token:
        """The token of the mini-batches that were acknowledged so far, from this process's memory. ``resume`` of a new
        job's specification takes this token; attaching takes the sealed token of :meth:`checkpoint`.
        """
        with self._cond:
            found: Token = self._session.intake.progress.token()
            return found

    def checkpoint(self) -> bytes:
        """Makes this rank's acknowledgements durable and returns its token, sealed by the control plane; the token of a
        private process's session has no seal. It waits while the control plane is away.

        Raises:
            JobEndedError: the job has ended.
            UnreachableError: the control plane had no leader for longer than ``patience``.
        """
        with self._cond:
            self._acknowledge_last()
        found: bytes = self._session.seal()
        return found

    def state_dict(self) -> dict[str, Any]:
        """Returns the position, as plain values for torch.save or JSON: every acknowledged mini-batch and, in ``auto``,
        the mini-batch yielded last, whose step the trainer has made when it saves.

        The control plane makes the position durable and seals it, in a fraction of a second unless the members elect a
        leader. Attaching takes ``sealed``; ``token`` is the same token without the seal, for people. When the job is
        done nothing is left to resume, and ``sealed`` is empty.

        Raises:
            JobEndedError: the job failed or was cancelled. Further errors are those of :meth:`checkpoint`.
        """
        state = {"version": 1, "job": self.digest, "rank": self.rank, **self._session.place()}
        try:
            sealed = self.checkpoint()
        except JobEndedError:
            if self.status().get("state") != "done":
                raise
            return {**state, "token": str(self.token), "sealed": ""}
        return {**state, "token": str(read_token(sealed)), "sealed": b64(sealed)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to a position that :meth:`state_dict` returned, in this process or an earlier one. The next loop starts
        there.

        Raises:
            TokenError: ``state`` is not a result of :meth:`state_dict`, or is damaged.
            OtherJobError: ``state`` is of another job.
            JobEndedError: ``state`` is of a job that was done.
            MillraceError: a loop over the mini-batches is running.
        """
        token = position_bytes(state)
        assert token is not None
        if self._iterating:
            raise MillraceError("load a state before or after the loop, not inside")
        job = read_token(token).job
        if job != self.digest:
            raise OtherJobError(f"the state is of job {job[:12]}, this is {self.digest[:12]}")
        self._last = None
        self._session.attach(token, state.get("stamps"))

    def report_throughput(self, rows_per_second: float) -> None:
        """Reports T to the control plane: this rank's highest throughput in rows a second, measured on dummy
        mini-batches.
        """
        with self._cond:
            self._session.throughput = float(rows_per_second)

    def close(self) -> None:
        """Makes acknowledgements durable, gives leases back, and ends all threads and connections. Mini-batches that
        were yielded stay valid.

        The end of a ``with``, of the process, and of the last reference close the job, too. Closing does not
        acknowledge the mini-batch that was yielded last.

        Raises:
            UnreachableError: the last acknowledgements may not be durable.
        """
        try:
            self._session.close()
        finally:
            self._abandoned.detach()  # it would keep the session, whose error refers to this job
            if self._own is not None:
                self._own.close()

    def keep(self, own: OwnWorker, kept: Optional[KeptProfile] = None) -> None:
        """Keeps the worker of this rank's own CPUs, and measures what the control plane decides its share by, unless
        ``kept`` has it of an earlier job. The worker ends with the job.
        """
        self._own = own
        self._session.begin_profile(own.seconds, kept, self.batch)
        weakref.finalize(self, own.close)


def position_bytes(position: Position) -> Optional[bytes]:
    """Returns the token that a position holds, in its binary form and with its seal if it has one; None for None. The
    seal is not checked.

    Raises:
        TokenError: the token or the state is damaged or of another version.
        JobEndedError: the state is of a job that was done.
        TypeError: ``position`` is neither a token nor a state.
    """
    if position is None:
        return None
    if isinstance(position, Mapping):
        sealed = position.get("sealed")
        if position.get("version") != 1:
            raise TokenError(f"a state of version {position.get('version')!r}; this version reads 1")
        if not isinstance(sealed, str):
            raise TokenError("a state without its token (sealed): it is not what state_dict() gave")
        if not sealed:
            raise JobEndedError("the state is of a job that was done: nothing is left of it")
        try:
            position = unb64(sealed)
        except ValueError as e:
            raise TokenError(f"a state whose token is not base64: {e}") from None
    if isinstance(position, Token):
        return position.to_bytes()
    if isinstance(position, str):
        return Token.parse(position).to_bytes()
    if not isinstance(position, (bytes, bytearray, memoryview)):
        raise TypeError(f"a position is a token or what state_dict() gave, not {type(position).__name__}")
    read_token(bytes(position))
    return bytes(position)
