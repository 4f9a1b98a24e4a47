"""One rank's session with the control plane: the threads behind :class:`millrace.client.Job`.

One thread asks for leases and extends them, one sends acknowledgements and gives leases back, and ``credits``
threads fetch. Their state is an :class:`millrace.intake.Intake`; one condition guards it and every other field that
changes. The first error of a thread ends the session and is raised in every thread that waits.
"""

from __future__ import annotations

import logging
import os
import threading
import time
from typing import Any, Callable, Mapping, Optional

from .bounds import integer, real
from .consumption import SILENCE, Consumption
from .control import Control, b64, of_token, partly_consumed, unb64
from .errors import (
    FencedError,
    JobAbandonedError,
    JobEndedError,
    MillraceError,
    OtherJobError,
    ServiceError,
    TokenError,
    UnreachableError,
)
from .exit import AtExit, Leaving
from .fetching import Fetchers
from .frame import MiniBatch
from .intake import Intake, Lease
from .metricfile import KeptProfile, is_whole
from .nodes import Nodes, batch_of, planned_rows
from .profiling import Profiler, Sample, available_processors
from .schema import Schema
from .sides import Sides
from .token import Ranges, read_token

__all__ = ["Session"]

log = logging.getLogger("millrace")

_MAX_MEAN = 1e6  # elements a row of a list column
_MAX_LEASE = 1 << 21  # fragments, the most of a split in sdk/dataset; a split has 16 by default
_HEARTBEAT = 0.5  # seconds: a rank must name the leases that it holds every second
_COMPANY = 0.1  # seconds that an acknowledgement waits for others
_RETELL = 5.0  # seconds without the next epoch after which acknowledgements are sent again
_STUCK = 2.0  # seconds without a lease for the mini-batch that is due, before a later lease is given back
_SEALS = 3  # how often a leader is asked for a token that counts what was acknowledged
_POLICIES = ("extended", "paper", "fastflow-code")  # of offloading; a number is a share without a policy
_FAREWELL = 20.0  # seconds that closing waits for the last acknowledgements to be durable: longer than an election
_PREPARATION = 600.0  # seconds that attaching waits for a job that is being prepared
# In the error of Attach, while it waits for as long as it takes: the rows that pass the pipeline's filter are being
# selected, or other jobs hold the room that the job needs.
_WITHOUT_BOUND = ("rows are selected", "for room held by ")
_leaving = Leaving()  # sessions of this process that are being closed


class _NotYet(Exception):
    """The next epoch has not begun."""


class Session(Consumption):
    """Attaches when it is made. ``order``, ``queue_bytes``, ``splits``, ``credits`` as in :class:`millrace.client.Job`.

    The caller of a method whose name begins with ``with_`` holds :attr:`cond`.
    """

    def __init__(
        self,
        control: Control,
        nodes: Nodes,
        id: str,
        rank: int,
        token: Optional[bytes],
        order: Optional[str],
        queue_bytes: int,
        splits: int,
        credits: int,
        run: str,
        resume: bool,
    ) -> None:
        super().__init__(id, rank)
        self.control = control
        self.nodes = nodes
        self._run = run
        self._resume = resume  # until this run has attached
        self._splits = splits
        self._gone = threading.Event()  # closing is over
        self._at_exit: Optional[AtExit] = None
        self._attaching = False  # while set, answers to the old session are ignored
        self._generation = 0  # counts attachments
        self._fence = 0  # the highest fence of an answer: a new leader has a higher one; 0 before the first
        self._adopt = False  # a new leader asks which leases this rank holds
        self._hurry = False  # a thread waits for acknowledgements to be durable
        self._again = False  # a lease was given back: ask for another
        self._stuck_since: Optional[float] = None
        self._releases: list[tuple[int, str]] = []
        self.sides = Sides()
        self.fetch_seconds = 0.0  # CPU time that threads spent on receiving mini-batches
        self._profiler: Optional[Profiler] = None
        self._profiling_since: Optional[float] = None  # when the first profile of this rank was asked for
        self._kept: Optional[KeptProfile] = None  # where the profile is kept for the next job
        self._stored: Optional[dict[str, float]] = None  # the whole profile of an earlier job
        self._profile_keys: dict[str, Any] = {}
        self._own_seconds: Callable[[], float] = float  # returns the CPU time of the rank's own worker
        self._stalled_before = 0.0  # seconds for which the trainer had waited when the session began
        self._releasing = False  # a Release call with leases that were in _releases has not returned

        _leaving.wait(id, rank)  # let an earlier session of this process send its acknowledgements first
        answer = self._attach(token)
        self._resume = False
        self.spec: dict[str, Any] = (answer.get("job") or {}).get("spec") or {}
        self._profile_keys = dict(answer.get("profileKeys") or {})
        self.schema = Schema.from_json(unb64(answer.get("tensorSchema")))
        self.order = order or str(self.spec.get("order") or "fastest")
        self.intake = Intake(self.order == "deterministic", queue_bytes)
        self._with_begin(answer)

        self._leasing = threading.Thread(
            target=self.guard, args=(self._lease_loop,), name="millrace-lease", daemon=True
        )
        self._telling = threading.Thread(target=self.guard, args=(self._tell_loop,), name="millrace-tell", daemon=True)
        self._fetchers = Fetchers(self, credits)

    def start(self) -> None:
        """Starts the threads. From now on the end of the process closes the session."""
        self._leasing.start()
        self._telling.start()
        self._fetchers.start()
        self._at_exit = AtExit(self.leave)

    # --- attaching ----------------------------------------------------------------------------------------------------

    def _attach(self, token: Optional[bytes]) -> dict[str, Any]:
        message: dict[str, Any] = {"id": self.id, "rank": self.rank, "run": self._run, "joins": True}
        if self._resume:
            message["resume"] = True
        if token is not None:
            message["token"] = b64(token)
        begun = time.monotonic()
        try:
            while True:
                try:
                    return self.control.call("Attach", message, wait=20)
                except ServiceError as e:
                    # While a job's drives are measured, its answer asks the caller to try again.
                    waits = any(s in e.message for s in _WITHOUT_BOUND) or time.monotonic() - begun < _PREPARATION
                    if e.code != "unavailable" or not waits:
                        raise
                    log.warning("rank %d: %s", self.rank, e.message)
        except ServiceError as e:
            if e.code == "aborted" and "abandoned: " in e.message:
                raise JobAbandonedError(f"job {self.id}: {e.message}") from e
            if e.code == "aborted":
                raise JobEndedError(f"job {self.id}: {e.message}") from e
            raise partly_consumed(e) or of_token(e) from e

    def _with_begin(self, answer: dict[str, Any]) -> None:
        """Starts the epoch that the answer to Attach names."""
        try:
            self._with_begun(answer)
        except MillraceError:
            raise
        except (ValueError, TypeError, AttributeError) as e:
            raise ServiceError("internal", f"an answer that makes no sense: {e!r}", "Attach") from e

    def _with_begun(self, answer: dict[str, Any]) -> None:
        status = answer.get("job") or {}
        self.digest = unb64(status.get("digest")).hex()
        # Calls use the job's id, which never changes; the name could be another job's later.
        self.called = str(status.get("id") or self.id)
        self._session = b64(unb64(answer.get("session")))
        # In a job that follows a growing data set these change with the next edition.
        self.manifest = unb64(answer.get("manifest"))
        self.statistics.left_out_rows = integer(status.get("leftOutRows") or 0, "left out rows")
        self.statistics.short_minibatches = integer(status.get("shortMinibatches") or 0, "short mini-batches")
        passing = [integer(n, "passing rows of a partition") for n in answer.get("passing") or ()]
        boundary = str((self.spec.get("plan") or {}).get("boundary") or "partition")
        self.rows = planned_rows(self.manifest, batch_of(self.spec), passing, boundary)
        self.mean_length = {
            str(k): real(v, f"mean length of {k!r}", _MAX_MEAN) for k, v in (answer.get("meanLength") or {}).items()
        }
        epoch = integer(answer.get("epoch"), "epoch")
        acknowledged = Ranges()
        raw = unb64(answer.get("token"))
        if raw:
            t = read_token(raw)
            if t.job != self.digest:
                raise OtherJobError(f"attached to job {self.digest[:12]}, its token is of {t.job[:12]}")
            if t.epoch == epoch:
                acknowledged = Ranges([(0, t.mark), *t.runs])
        owned = Ranges(
            (integer(r.get("from"), "owned from"), integer(r.get("to"), "owned to")) for r in answer.get("owned") or ()
        )
        self.intake.begin(self.digest, epoch, owned, acknowledged)
        self._adopt = False
        self._job_done = False  # the session before may have been at the job's end; a token can go back from there
        self._stuck_since = None
        self._generation += 1
        self.sides.begin(time.monotonic())
        if self._profiler is not None:
            self._profiler.restart()
        self._stalled_before = self.statistics.stall_seconds

    def attach(self, token: Optional[bytes], stamps: Optional[Mapping[str, Any]] = None) -> None:
        """Attaches again at the token's position. None takes the ledger's position: mini-batches that were yielded and
        not acknowledged come again.
        """
        self._replace(lambda: self._attach(token))

    def _replace(self, attach: Callable[[], Optional[dict[str, Any]]]) -> bool:
        """Replaces this session by a new one. Returns False if ``attach`` returns None."""
        with self.cond:
            self._attaching = True
        try:
            answer = attach()
            if answer is not None:
                with self.cond:
                    self._with_begin(answer)
                    self.cond.notify_all()
            return answer is not None
        finally:
            with self.cond:
                self._attaching = False
                self.cond.notify_all()

    def advance(self) -> bool:
        """Moves to the next epoch, once this one is finished here. Returns False if there is none."""
        with self.cond:
            self.with_look()
            if self._job_done:
                return False
            following = self.intake.epoch + 1
        while True:
            try:
                return self._replace(lambda: self._begin_epoch(following))
            except _NotYet:
                # A new leader knows of whole splits only, so it may wait for acknowledgements that the previous leader
                # received.
                with self.cond:
                    self.intake.retell()
                self.flush()

    def _begin_epoch(self, following: int) -> Optional[dict[str, Any]]:
        pause, begun, silence = 0.05, time.monotonic(), SILENCE
        while True:
            # The first request for a lease of the next epoch begins that epoch.
            message = {
                "id": self.called,
                "session": self._session,
                "epoch": str(following),
                "want": 1,
                "waitSeconds": _HEARTBEAT,
            }
            try:
                answer = self.control.call("Lease", message, wait=_HEARTBEAT)
            except ServiceError as e:
                raise self.named(e) from e
            with self.cond:
                self.with_look()
                if self._with_former(answer):
                    answer = {}
                if answer.get("unknownSession"):
                    raise self._fenced("the control plane does not know the session")
                if answer.get("jobDone"):
                    self._job_done = True
                    return None
                another = self._with_fence(answer)
            if answer.get("grants") or answer.get("epochDone"):
                # The answer to Attach names this rank's numbers, and the new session gets the lease that was just
                # granted.
                attached = self._attach(None)
                if integer(attached.get("epoch"), "epoch") >= following:
                    return attached
                with self.cond:
                    self._session = b64(unb64(attached.get("session")))
            elif another or time.monotonic() - begun > _RETELL:
                raise _NotYet
            with self.cond:  # other ranks have not finished, or the data has not grown yet
                self._waiting = str(answer.get("waiting") or "the other ranks are not through with the epoch before")
                self.cond.wait_for(lambda: self._closed, pause)
            pause = min(2 * pause, 2.0)
            silence = self._speak(f"epoch {following} does not begin", time.monotonic() - begun, silence)

    def _fenced(self, why: str) -> FencedError:
        return FencedError(
            f"rank {self.rank} of job {self.id}: {why}: attach again with the trainer's token to take it back "
            "(ranks of one run say the same run=)"
        )

    def named(self, e: ServiceError) -> MillraceError:
        """Turns an error of the control plane into the exception that a session raises."""
        if e.code == "aborted" and "abandoned: " in e.message:
            return JobAbandonedError(f"job {self.id}: {e.message}")
        if e.code in ("failed_precondition", "aborted"):
            fenced = "session was fenced off" in e.message  # otherwise the job's name or its end may say "session"
            return self._fenced(e.message) if fenced else JobEndedError(f"job {self.id}: {e.message}")
        return JobEndedError(f"job {self.id}: {e.message}") if e.code == "not_found" else e

    # --- profile ------------------------------------------------------------------------------------------------------

    def begin_profile(
        self, own_seconds: Callable[[], float], kept: Optional[KeptProfile] = None, batch: int = 0
    ) -> None:
        """Measures the metrics by which the control plane decides the share of the rank's own CPUs, if a policy decides
        it and the job is long enough. ``own_seconds`` returns the CPU time of the rank's own worker. What ``kept`` has
        of an earlier job with mini-batches of ``batch`` rows is not measured.
        """
        begun = time.monotonic()
        if self._profiling_since is not None or self.spec.get("offload") not in _POLICIES:
            return
        stored: dict[str, float] = {}
        if kept is not None:
            digests = [unb64(self._profile_keys.get(x)) for x in ("pipeline", "ownWorkers", "otherWorkers")]
            stored = kept.find(batch, digests[0], digests[1], digests[2])
        with self.cond:
            epochs = integer(self.spec.get("epochs") or 1, "epochs of the job") - self.intake.epoch
            self._kept = kept
            if is_whole(stored):
                self._with_stored(stored, begun)
            elif Profiler.suits(len(self.intake.owned), epochs):
                self._own_seconds = own_seconds
                self._profiling_since = begun
                self._profiler = Profiler(
                    lambda: self.throughput,
                    available_processors(),
                    len(self.intake.waiting),
                    stored,
                    len(self.intake.owned) * epochs,
                )

    def _with_stored(self, stored: dict[str, float], begun: float) -> None:
        """Takes the profile of an earlier job."""
        names = ("gthp", "lthp", "pcycle", "rthp", "ocycle", "tcycle", "cores")
        self._stored = {name: stored.get(name, 0.0) for name in names}
        if not self._stored["pcycle"]:
            self._stored["ocycle"] = 0.0  # the entries are of different times, and Ocycle is compared with Pcycle
        self._profiling_since = begun
        self.statistics.profile_from = "stored"
        self.statistics.profile_seconds = time.monotonic() - begun
        log.info(
            "job %s, rank %d: the profile is that of an earlier job with the same model, pipeline and workers: nothing "
            "is measured: %s",
            self.id,
            self.rank,
            self._stored,
        )

    def _with_profile_report(self) -> dict[str, Any]:
        """Returns the fields of a report that describe the profile."""
        if self._profiling_since is None:
            return {}
        report: dict[str, Any] = {
            "profileSeconds": self.statistics.profile_seconds,
            "trainingSeconds": max(time.monotonic() - self._profiling_since, self.statistics.profile_seconds, 1e-9),
        }
        if self.statistics.profile_from:
            report["profileFrom"] = self.statistics.profile_from
        if self._stored is not None:
            report["profile"] = self._stored
        elif self._profiler is not None and self._profiler.side and not self._profiler.looking:
            report["profiling"] = self._profiler.side
        elif self._profiler is not None and self._profiler.profile is not None:
            report["profile"] = self._profiler.profile
        return report

    def with_given(self, batch: MiniBatch) -> MiniBatch:
        number = batch.name.number
        own = number in self.intake.made_by_own
        self.intake.made_by_own.discard(number)
        p = self._profiler
        if p is not None and p.side:
            p.taken(own, batch.rows, lambda: self._with_sample(batch.rows))
            if not p.looking:  # until then the leader waits for the profile, and measures nothing itself
                self.statistics.profile_seconds = time.monotonic() - (self._profiling_since or 0.0)
            if not p.side:
                if p.profile is not None:
                    self.statistics.profile_from = "measured"
                    if self._kept is not None:
                        self._kept.put(p.profile)
                log.info(
                    "job %s, rank %d: the profile took %.1f s: %s",
                    self.id,
                    self.rank,
                    self.statistics.profile_seconds,
                    p.profile or f"none, since {'the job is short' if p.short else 'one side made too few mini-batches'}: "
                    "the control plane uses T and P",
                )
        return batch

    def _with_sample(self, rows: int) -> Sample:
        return Sample(
            seconds=time.monotonic(),
            stalled=self.statistics.stall_seconds,
            queued=rows * len(self.intake.waiting),
            process=time.process_time(),
            fetching=self.fetch_seconds,
            worker=self._own_seconds(),
        )

    # --- what the trainer's thread does -------------------------------------------------------------------------------

    def flush(self) -> None:
        """Waits until all acknowledgements are durable. Raises the error that ends the session before that."""
        with self.cond:
            self.with_look()
            try:
                while not self.intake.settled:
                    self._hurry = True
                    self.cond.notify_all()
                    self.cond.wait(1.0)
                    self.with_look()
            finally:
                self._hurry = False

    def status(self) -> dict[str, Any]:
        """The job's status in the control plane now."""
        return self.control.job(self.called)

    def seal(self) -> bytes:
        """Returns this rank's token, sealed by the control plane. It counts every mini-batch that was acknowledged
        before the call, and none that was not acknowledged.
        """
        with self.cond:
            epoch, told = self.intake.epoch, self.intake.progress.acknowledged.copy()
        for attempt in range(1, _SEALS + 1):
            self.flush()
            with self.cond:
                message = {"id": self.called, "session": self._session}
            try:
                sealed = unb64(self.control.call("Checkpoint", message).get("token"))
            except ServiceError as e:
                raise self.named(e) from e
            token = read_token(sealed)
            counted = Ranges([(0, token.mark), *token.runs])
            with self.cond:
                self.with_look()
                if token.epoch != self.intake.epoch:
                    raise TokenError(f"a token of epoch {token.epoch}, this rank is in {self.intake.epoch}")
                if token.epoch > epoch:
                    return sealed
                extra = counted.minus(self.intake.progress.acknowledged)
                if extra:  # a run that resumed from it would never get these mini-batches
                    few = list(extra)[:4]
                    raise TokenError(f"the ledger says that mini-batches {few} were acknowledged, and they were not")
                missing = told.minus(counted)
                if not missing:
                    return sealed
                if attempt < _SEALS:  # the leader changed after it got the acknowledgements
                    self.intake.retell(missing)
        raise TokenError(f"the ledger does not know that mini-batches {list(missing)[:4]} were acknowledged")

    def abandon(self) -> None:
        """Closes in the background. Any thread may call it at any time, the session's own threads included."""
        if self._closed or os.getpid() != self._pid:
            return
        _leaving.begin(self.id, self.rank)

        def leave() -> None:
            try:
                self.leave()
            finally:
                _leaving.end(self.id, self.rank)

        try:
            threading.Thread(target=leave, name="millrace-close", daemon=True).start()
        except RuntimeError:  # the interpreter ends, and closes what is open
            _leaving.end(self.id, self.rank)

    def leave(self) -> None:
        """Closes the session without raising errors, when no caller can handle them: the process ends, or the job was
        dropped.
        """
        try:
            self.close()
        except MillraceError as e:
            log.warning("%s", e)

    def close(self) -> None:
        """Makes acknowledgements durable, gives leases back and ends the threads. A call during another thread's close
        waits for its end.

        Raises:
            UnreachableError: the last acknowledgements may not be durable.
        """
        if os.getpid() != self._pid:
            return  # in a forked child: threads, connections and session belong to the parent
        me = threading.current_thread()
        with self.cond:
            first, self._closed = not self._closed, True
            self.cond.notify_all()
        if not first:
            if me not in (self._leasing, self._telling) and not self._fetchers.runs(me):
                self._gone.wait(2 * _FAREWELL)
            return
        with _leaving.closing(self.id, self.rank):
            try:
                self._tell_last()
            finally:
                self._end(me)

    def _end(self, me: threading.Thread) -> None:
        """Gives leases back, and ends threads and connections."""
        self.nodes.close()
        self._fetchers.join(5.0)
        # Leases that the call under way is granted go back too; otherwise their drives would wait until they expire.
        if self._leasing is not me:
            self._leasing.join(2.0)
        self._give_back()
        if self._kept is not None:
            self._kept.wait()
        self.control.close()
        for t in (self._leasing, self._telling):
            if t is not me:
                t.join()
        if self._at_exit is not None:
            self._at_exit.cancel()
        self._gone.set()

    def _tell_last(self) -> None:
        """Makes durable every acknowledgement that is not known to be durable, including those that another thread is
        sending.
        """
        with self.cond:
            undurable = self.intake.progress.acknowledged.minus(self.intake.durable)
            if isinstance(self._error, (FencedError, JobEndedError)) or not undurable:
                return
            patience = 2.0 if isinstance(self._error, UnreachableError) else _FAREWELL
            body = self._acknowledgement(undurable)
            # An answer says nothing about the memory of an earlier leader, so this sends every acknowledgement that is
            # not durable.
            self.intake.sending()
        try:
            self.control.call("Acknowledge", body, patience=patience)
        except ServiceError as e:
            named = self.named(e)
            if not isinstance(named, (FencedError, JobEndedError)):
                raise
            log.info("job %s, rank %d: closing: %s", self.id, self.rank, named)
        except UnreachableError as e:
            raise UnreachableError(
                f"job {self.id}, rank {self.rank}: the last {len(undurable)} acknowledgements may not be durable: "
                f"these mini-batches would come again: {e}"
            ) from e
        else:
            with self.cond:
                self.intake.sent(self.intake.epoch, undurable)

    def _give_back(self) -> None:
        """Gives leases back. It does not wait for a control plane that does not answer, since leases expire."""
        with self.cond:
            fenced = isinstance(self._error, FencedError)
            # All leases of the rank come back, and the control plane knows at once that the rank is gone.
            release = {"id": self.called, "session": self._session, "reason": "detach"}
        try:
            if not fenced:
                self.control.call("Release", release, patience=2)
        except MillraceError as e:
            log.info("job %s, rank %d: closing: %s", self.id, self.rank, e)

    # --- threads: leases ----------------------------------------------------------------------------------------------

    def with_told(self, seconds: float) -> None:
        """Waits until the control plane knows of every lease that was given back, for at most this many seconds."""
        self.cond.wait_for(lambda: self._closed or not (self._releases or self._releasing), seconds)

    def _lease_loop(self) -> None:
        while True:
            with self.cond:
                self.cond.wait_for(lambda: not self._attaching or self._closed)
                if self.ending:
                    return
                generation = self._generation
                self._again = False
                message = self._with_lease_message()
            begun = time.monotonic()
            try:
                answer = self.control.call("Lease", message, wait=float(message.get("waitSeconds", 0.0)))
            except ServiceError as e:
                with self.cond:
                    if generation != self._generation or self._attaching:
                        continue  # the refusal was for the old session
                raise self.named(e) from e
            with self.cond:
                if generation != self._generation or self._attaching:
                    continue
                try:
                    granted = self._with_answer(answer)
                except (ValueError, TypeError, AttributeError) as e:
                    raise ServiceError("internal", f"an answer that makes no sense: {e!r}", "Lease") from e
                self.cond.notify_all()
                i = self.intake
                ended = self._job_done and not granted and not i.delivered and i.idle
                if not (granted and granted == message.get("want") or self._adopt or ended):
                    # No lease was granted or wanted: wait until a lease is fetched or used up, or the leases must be
                    # extended.
                    content = "want" not in message
                    self.cond.wait_for(
                        lambda: (
                            self.ending
                            or self._again
                            or self._attaching
                            or i.news
                            or (content and not i.all_granted and i.lacking(self._splits) > 0)
                        ),
                        max(0.0, _HEARTBEAT / 2 - (time.monotonic() - begun)),
                    )
            if ended:
                self._ended()

    def _with_lease_message(self) -> dict[str, Any]:
        i = self.intake
        now, waits = time.monotonic(), self._waited_from
        waited = self.statistics.stall_seconds + (now - waits if waits is not None else 0.0)
        report: dict[str, Any] = {
            "queueBatches": float(len(i.waiting)),
            "queueBytes": str(i.waiting_bytes),
            "queueLimitBytes": str(i.limit),
            "stallSeconds": waited - self._stalled_before,
            "tRowsPerSecond": self.throughput,
            "blocked": i.full,
            **self.sides.report(now),
            **self._with_profile_report(),
        }
        message: dict[str, Any] = {
            "id": self.called,
            "session": self._session,
            "epoch": str(i.epoch),
            "report": report,
            "held": [str(x) for x in i.leases],
            "fetched": [str(x.id) for x in i.leases.values() if x.fetched],
        }
        if self._adopt:
            message["adopt"] = [x.held() for x in i.leases.values()]
        self._with_unstick()
        want = 0 if i.all_granted else i.lacking(self._splits)
        if not want and i.due is not None:
            want = 1  # a lease of the mini-batch that is due is needed, whatever leases are held
        i.news = False
        if want and not i.delivered:
            message["want"] = want
            # A lease's drive can take another lease when this rank has fetched the lease's mini-batches. This rank then
            # calls again, so the control plane need not hold the call open. If everything is fetched, it may hold it.
            if all(x.fetched for x in i.leases.values()):
                message["waitSeconds"] = _HEARTBEAT
        return message

    def _with_unstick(self) -> None:
        """Gives the last lease back when the mini-batch that is due has been neither leased nor here for a while: the
        drive that could make it may be busy with leases whose mini-batches no longer fit into the queue.
        """
        i = self.intake
        if i.due is None:
            self._stuck_since = None
        elif self._stuck_since is None:
            self._stuck_since = time.monotonic()
        elif time.monotonic() - self._stuck_since > _STUCK:
            self._stuck_since = None
            unfinished = [x for x in i.leases.values() if x.todo]
            if unfinished:
                last = max(unfinished, key=lambda x: x.first)
                i.dropped([last.id])
                self.with_release(last, "stop")

    def _with_answer(self, answer: dict[str, Any]) -> int:
        """Takes over the leases of an answer of Lease. Returns how many leases were granted."""
        if self._with_former(answer):
            return 0
        if answer.get("unknownSession"):
            raise self._fenced("the control plane does not know the session")
        if self._with_fence(answer):
            self.intake.retell()  # a new leader knows of whole splits only
        self._adopt = bool(answer.get("adopt"))
        self.intake.dropped(integer(x, "revoked lease") for x in answer.get("revoked", ()))
        for t in answer.get("tickets", ()):
            lease = self.intake.leases.get(integer(t.get("lease"), "lease of a ticket"))
            if lease is not None:
                lease.ticket = str(t.get("ticket", ""))
        grants = answer.get("grants", ())
        for g in grants:
            lease = Lease.of(g)
            if lease.end - lease.first > _MAX_LEASE or not self.intake.owns(lease):
                raise ValueError("mini-batches [%d, %d) are not this rank's" % lease.minibatches)
            if not self.intake.granted(lease):
                self.with_release(lease, "stop")
        self._waiting = str(answer.get("waiting") or "")
        self.intake.all_granted = bool(answer.get("epochDone"))
        self._job_done = self._job_done or bool(answer.get("jobDone"))
        return len(grants)

    def _with_former(self, answer: dict[str, Any]) -> bool:
        """Reports whether an answer of Lease is that of a former leader, which does not know what its successor did."""
        return 0 < integer(answer.get("fence"), "fence") < self._fence

    def _with_fence(self, answer: dict[str, Any]) -> bool:
        """Reports whether an answer of Lease is the first one of a new leader. An answer of a former leader can come
        later than that.
        """
        fence = integer(answer.get("fence"), "fence", (1 << 64) - 1)
        before, self._fence = self._fence, max(self._fence, fence)
        return before < fence

    def _ended(self) -> None:
        """Raises the reason why the job is over while mini-batches are owed."""
        state = str(self.control.job(self.called).get("state", ""))
        if state.startswith("abandoned"):
            raise JobAbandonedError(f"job {self.id}: {state}")
        if state.startswith("failed") or state == "cancelled":
            raise JobEndedError(f"job {self.id}: {state}")

    # --- threads: acknowledgements and what is given back -------------------------------------------------------------

    def with_release(self, lease: Lease, reason: str) -> None:
        """Queues a lease to be given back, which the intake has forgotten."""
        self._releases.append((lease.id, reason))
        self.intake.all_granted = False
        self.cond.notify_all()

    def _tell_loop(self) -> None:
        while True:
            with self.cond:
                self.cond.wait_for(
                    lambda: self.ending or self._releases or (self.intake.unsent and not self._attaching)
                )
                if self.ending:
                    return
                # A short wait combines many acknowledgements in one message.
                self.cond.wait_for(
                    lambda: self._closed or self._hurry or bool(self._releases) or len(self.intake.unsent) > 1024,
                    _COMPANY,
                )
                if self._attaching and not self._releases:
                    continue
                message = self._with_acknowledgement() if not self._attaching else None
                generation = self._generation
                releases, self._releases = self._releases, []
                self._releasing = bool(releases)
                session = self._session
            for reason in sorted({r for _, r in releases}):
                ids = [str(i) for i, r in releases if r == reason]
                try:
                    self.control.call(
                        "Release", {"id": self.called, "session": session, "leases": ids, "reason": reason}
                    )
                except ServiceError as e:
                    log.info("release leases %s: %s", ids, e)  # they expire by themselves
            if releases:
                with self.cond:
                    self._releasing = False
                    self._again = True
                    self.cond.notify_all()
            if message is None:
                continue
            epoch, numbers, body = message
            try:
                self.control.call("Acknowledge", body)
            except ServiceError as e:
                with self.cond:
                    if generation != self._generation or self._attaching:
                        continue  # this rank has attached again: its token, or the ledger, counts these numbers
                raise self.named(e) from e
            with self.cond:
                if generation == self._generation:
                    self.intake.sent(epoch, numbers)
                    self.intake.spent()
                self.cond.notify_all()

    def _with_acknowledgement(self) -> Optional[tuple[int, Ranges, dict[str, Any]]]:
        numbers = self.intake.sending()
        if not numbers:
            return None
        return self.intake.epoch, numbers, self._acknowledgement(numbers)

    def _acknowledgement(self, numbers: Ranges) -> dict[str, Any]:
        ranges = [{"from": str(a), "to": str(b)} for a, b in numbers]
        return {"id": self.called, "session": self._session, "epoch": str(self.intake.epoch), "numbers": ranges}
