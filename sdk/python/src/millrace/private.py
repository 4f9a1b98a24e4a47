"""Preprocessing on this machine by the private process, a program that this process starts and that ends with it.

The process is ``millrace private``, at the other end of a connected unix socket. It makes the mini-batches of a job of
its own over files, ahead of the trainer, and hands them over in shared memory (:mod:`millrace.buffers`). One thread of
this process receives. Only this process knows the trainer's acknowledgements, so a token needs no call.

The private process ends whenever this process ends, since the kernel closes the socket. A forked child closes its copy
of the socket. A child that was not forked by Python may keep its copy, since the private process also watches the
process that started it. Shared memory has no name and ends with its last user.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import re
import secrets
import shlex
import signal
import socket
import subprocess
import threading
import time
from dataclasses import dataclass
from typing import Any, Iterator, Mapping, Optional

from . import binary
from .bounds import integer, real
from .buffers import Buffers
from .channel import VERSION, Channel, ChannelError
from .consumption import Consumption
from .errors import (
    ChangedError,
    DataLossError,
    FilesError,
    MillraceError,
    OptionsError,
    OtherJobError,
    PipelineError,
    PipelineProblem,
    PrivateProcessError,
    RanksError,
    ServiceError,
    TokenError,
)
from .exit import AtExit
from .frame import MAX_ROWS, MiniBatch, decode
from .intake import Intake, Lease, Work
from .ranks import Ranks
from .schema import Schema
from .token import Ranges, Token, read_token

__all__ = ["PrivateSession"]

log = logging.getLogger("millrace")

_MAX_MEAN = 1e6  # elements a row of a list column
_MAX_BYTES = 1 << 40  # bytes of a buffer
_MAX_BUFFERS = 1 << 30
SAID_AFTER = 10.0  # seconds that a rank waits for the others before it logs that
#: What may lie behind a signal that the process did not ask for.
_CAUSES: dict[int, str] = {
    signal.SIGKILL: ", as the system does where memory is short",
    signal.SIGBUS: ", as happens where shared memory (/dev/shm) is full, or a file was cut while it was read",
}
_SECONDS = 5.0  # the time that the process has to end after its connection was closed


@dataclass(frozen=True)
class Rendezvous:
    """How the ranks of one machine find the private process.

    Attributes:
        name: what the name of its abstract socket begins with. The first rank adds characters that nobody can guess,
            so that no other user can take the name before.
        patience: seconds that ranks wait for each other.
    """

    name: str
    patience: float


def _listening(name: str) -> list[str]:
    """Returns the names of the abstract sockets at which processes listen for the ranks that meet at a name."""
    with open("/proc/net/unix", errors="replace") as f:
        lines = [line.split() for line in f]
    ours = re.compile(re.escape(f"@{name}-") + "[0-9a-f]{32}")
    # The fourth field holds flags, of which one says that a process listens.
    return [
        fields[7][1:] for fields in lines if len(fields) == 8 and fields[3] == "00010000" and ours.fullmatch(fields[7])
    ]


def _connect_own(name: str, others: dict[str, int]) -> Optional[socket.socket]:
    """Connects to an abstract socket of this user. Returns None if it is gone, does not accept now, or is of another
    user, which is noted in others.
    """
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.setblocking(False)  # the queue of another user's socket may be full for ever
        sock.connect("\0" + name)
        user = int.from_bytes(sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, 12)[4:8], "little")
        if user == os.getuid():
            sock.setblocking(True)
            return sock
        others[name] = user
    except (ConnectionRefusedError, FileNotFoundError, BlockingIOError):
        pass
    except BaseException:
        sock.close()
        raise
    sock.close()
    return None


class PrivateSession(Consumption):
    """One rank's session with the private process, which the first rank of a machine starts.

    Args:
        request: the members of the message ``open``, but those about ranks.
        ranks: this process's place among the ranks.
        meeting: how the ranks find each other; None if this is the only rank of this machine.
        token: the position to begin at, in its binary form; None begins at the start.
        check: whether every frame's CRC32C is checked; None does not check.
        stamps: where the files lay, and in which state, when the position was kept; None does not compare.

    Raises:
        BinaryError, PrivateProcessError: the private process does not start, or ends.
        FilesError, PipelineError, OptionsError, RanksError, TokenError, OtherJobError: the private process refuses the
            request; see :func:`failure`.
    """

    again = "open it again, or with more epochs="

    def __init__(
        self,
        request: Mapping[str, Any],
        ranks: Ranks,
        meeting: Optional[Rendezvous],
        token: Optional[bytes],
        check: Optional[bool],
        stamps: Optional[Mapping[str, Any]] = None,
    ) -> None:
        super().__init__("private", ranks.rank)
        self.ranks = ranks
        self._check = bool(check)  # the bytes do not leave this machine's memory
        self._process: Optional[subprocess.Popen[bytes]] = None
        self._patience = meeting.patience if meeting is not None else 0.0
        with _said_when_slow(ranks, self._patience):
            self._channel = self._connect(ranks, meeting)
        self._buffers = Buffers(lambda buffer: self._channel.send("free", buffer=buffer))
        self._generation = 0
        self._sought: dict[int, dict[str, Any]] = {}  # answers to seeks, by generation
        self._early: dict[int, list[MiniBatch]] = {}  # mini-batches of epochs that have not begun, by epoch
        # Of each mini-batch that waits, by its identity: its buffer, and the rows of its epoch that are left out.
        self._where: dict[int, tuple[int, int]] = {}
        self._gone = threading.Event()
        self._at_exit: Optional[AtExit] = None
        message = dict(request, version=VERSION, rank=ranks.rank, ranks=ranks.world_size, local_ranks=ranks.local_size)
        if token is not None:
            message["token"] = str(read_token(token))
            if stamps:
                message["stamps"] = dict(stamps)
        if meeting is not None and ranks.local_rank == 0:
            message.update(listen=f"{meeting.name}-{secrets.token_hex(16)}", patience=max(1, int(meeting.patience)))
        try:
            self._channel.send("open", **message)
            self._begin(self._answer())
        except BaseException:
            self._end()
            raise
        self._receiving = threading.Thread(
            target=self.guard, args=(self._receive_loop,), name="millrace-private", daemon=True
        )

    def start(self) -> None:
        """Starts the thread. From now on the end of this process closes the session."""
        self._receiving.start()
        self._at_exit = AtExit(self.leave)

    # --- opening ------------------------------------------------------------------------------------------------------

    def _connect(self, ranks: Ranks, meeting: Optional[Rendezvous]) -> Channel:
        if ranks.local_rank == 0 or meeting is None:
            return self._start_process()
        deadline = time.monotonic() + meeting.patience
        others: dict[str, int] = {}  # the users of sockets that are not this user's, by name
        while True:
            for name in _listening(meeting.name):
                sock = None if name in others else _connect_own(name, others)
                if sock is not None:
                    return Channel(sock)
            if time.monotonic() > deadline:
                raise RanksError(
                    f"rank {ranks.rank}: the first rank of this machine (LOCAL_RANK=0) has not started the private "
                    f"process in {meeting.patience:.0f} s: every rank calls millrace.open, in the same order; ranks "
                    "that are started one by one need the same run= or MILLRACE_RUN"
                    + "".join(f"; the process at @{name} is of user {user}" for name, user in list(others.items())[:3]),
                    "LOCAL_RANK",
                )
            time.sleep(0.02)

    def _start_process(self) -> Channel:
        command = [binary.find(), "private"]
        if os.environ.get("MILLRACE_PRIVATE_LOG"):
            command.append("--verbose")
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            # A session of its own: the terminal's interrupt is for the trainer.
            self._process = subprocess.Popen(
                command, stdin=theirs.fileno(), stdout=subprocess.DEVNULL, start_new_session=True, close_fds=True
            )
        except OSError as e:
            ours.close()
            raise PrivateProcessError(f"{command[0]}: it does not start: {e}") from e
        finally:
            theirs.close()
        return Channel(ours)

    def _answer(self) -> dict[str, Any]:
        with _said_when_slow(self.ranks, self._patience):
            answer = self._channel.receive()
        if answer is None:
            raise self._died()
        if answer["kind"] == "failed":
            raise failure(answer)
        if answer["kind"] != "opened":
            raise ChannelError(f"the private process answered {answer['kind'][:40]!r}")
        return answer

    def _begin(self, answer: dict[str, Any]) -> None:
        try:
            self.digest = str(answer["digest"])
            self.called = self.digest[:12]
            self.id = self.called
            self.schema = Schema.from_json(json.dumps(answer["schema"]))
            self.order = str(answer["order"])
            self.manifest = json.dumps(answer.get("manifest") or {}).encode()
            self.mean_length = {
                str(k): real(v, f"mean length of {k!r}", _MAX_MEAN)
                for k, v in (answer.get("mean_length") or {}).items()
            }
            self.spec = {
                "epochs": integer(answer.get("epochs"), "epochs"),
                "plan": {"batch": integer(answer.get("batch"), "batch", MAX_ROWS)},
            }
            self.owned = (integer(answer.get("from"), "from"), integer(answer.get("to"), "to"))
            self.statistics.left_out_rows = integer(answer.get("left_out_rows", 0), "left_out_rows")
            self.statistics.short_minibatches = integer(answer.get("short_minibatches", 0), "short_minibatches")
            self.pid = integer(answer.get("pid"), "pid", 1 << 30)
            self.threads = integer(answer.get("threads"), "threads", 1 << 20)
            self.stamps = dict(answer.get("stamps") or {})
            self.intake = Intake(self.order == "deterministic", _MAX_BYTES)
            self._with_position(Token.parse(str(answer["token"])))
        except MillraceError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as e:
            raise ChannelError(f"an answer that makes no sense: {e!r}") from e

    def _with_position(self, token: Token) -> None:
        """Starts the epoch of a token."""
        self._job_done = False
        self._early.clear()
        self._where.clear()
        self.intake.begin(self.digest, token.epoch, Ranges([self.owned]), Ranges([(0, token.mark), *token.runs]))

    def place(self) -> dict[str, Any]:
        """Returns the members of a state that say how many ranks share the mini-batches, and from which files."""
        return {"world_size": self.ranks.world_size, "stamps": self.stamps}

    # --- the thread ---------------------------------------------------------------------------------------------------

    def _receive_loop(self) -> None:
        while True:
            message = self._channel.receive()
            if self._closed:
                return
            if message is None:
                raise self._died()
            try:
                self._take(message)
            except MillraceError:
                raise
            except (ValueError, TypeError, KeyError, AttributeError) as e:
                raise ChannelError(f"{message['kind'][:40]}: a message that makes no sense: {e!r}") from e

    def _take(self, message: dict[str, Any]) -> None:
        kind = message["kind"]
        if kind == "minibatch":
            self._take_minibatch(message)
        elif kind == "buffer":
            descriptor = self._channel.descriptor()
            self._buffers.add(
                integer(message.get("buffer"), "buffer", _MAX_BUFFERS),
                descriptor,
                integer(message.get("bytes"), "bytes", _MAX_BYTES),
                integer(message.get("limit"), "limit", _MAX_BYTES),
            )
        elif kind == "retired":
            self._buffers.retire(integer(message.get("buffer"), "buffer", _MAX_BUFFERS))
        elif kind == "sought" or kind == "failed" and message.get("generation"):
            generation = integer(message.get("generation"), "generation", _MAX_BUFFERS)
            with self.cond:
                if kind == "sought":  # in this thread, since the messages after it are of the new position
                    self._generation = generation
                    self._with_position(Token.parse(str(message.get("token"))))
                self._sought[generation] = message
                self.cond.notify_all()
        elif kind == "failed":
            raise failure(message)
        else:
            raise ChannelError(f"the private process sent {kind[:40]!r}")

    def _take_minibatch(self, message: dict[str, Any]) -> None:
        buffer = integer(message.get("buffer"), "buffer", _MAX_BUFFERS)
        view = self._buffers.map(buffer, integer(message.get("bytes"), "bytes", _MAX_BYTES))
        batch = decode(view, check=self._check)
        epoch, number = integer(message.get("epoch"), "epoch"), integer(message.get("number"), "number")
        if batch.name != (self.digest, epoch, number) or not self.owned[0] <= number < self.owned[1]:
            raise ChannelError(f"mini-batch {batch.name} came where {epoch}/{number} was announced")
        if batch.schema != self.schema:
            raise ChannelError(f"mini-batch {batch.name} has another schema than the job")
        generation = integer(message.get("generation"), "generation", _MAX_BUFFERS)
        left_out = integer(message.get("left_out_rows", 0), "left_out_rows")
        with self.cond:
            if generation != self._generation or epoch < self.intake.epoch:
                return  # the trainer went elsewhere meanwhile; the view goes, and with it the buffer
            if epoch > self.intake.epoch:
                self._early.setdefault(epoch, []).append(batch)
            else:
                self._with_arrived(batch)
            self._where[id(batch)] = buffer, left_out
            self.cond.notify_all()

    def _with_arrived(self, batch: MiniBatch) -> None:
        lease = Lease(0, batch.name.epoch, 0, batch.name.number, batch.name.number + 1, "", "files", ())
        if not self.intake.fetched(Work(lease, batch.name.number), batch):
            self.statistics.duplicates += 1

    def with_given(self, batch: MiniBatch) -> MiniBatch:
        """Returns the mini-batch in its buffer, or a copy of it if too few buffers would be left."""
        buffer, self.statistics.left_out_rows = self._where.pop(id(batch))
        whole = batch.data.obj
        view = memoryview(whole)
        del whole
        kept = self._buffers.keep(buffer, view)
        if kept is view:
            return batch
        return decode(kept, check=False)

    def _died(self) -> MillraceError:
        """Returns the error for a private process that ended although this process did not ask it to end."""
        status = None
        if self._process is not None:
            try:
                status = self._process.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                pass
        if status is None:
            why = "" if self._process is not None else ": the rank that started it has ended, or another rank's trainer"
            return PrivateProcessError(f"the private process has closed its connection{why}")
        if status == 2:
            return PrivateProcessError(
                "the program millrace does not know the command private: it is older than this package; install both "
                "from one release"
            )
        how = f"by signal {-status}" + _CAUSES.get(-status, "") if status < 0 else f"with status {status}"
        return PrivateProcessError(
            f"the private process ended {how}; what it said is on standard error. Resume from a checkpoint's state"
        )

    # --- what Job calls -----------------------------------------------------------------------------------------------

    def flush(self) -> None:
        """Raises the error that ended the session. Nothing has to become durable: the trainer's token is the record."""
        with self.cond:
            self.with_look()
            self.intake.sent(self.intake.epoch, self.intake.sending())

    def seal(self) -> bytes:
        """Returns the token of the acknowledgements, without a seal, since no other process is involved."""
        with self.cond:
            self.intake.sent(self.intake.epoch, self.intake.sending())
            return self.intake.progress.token().to_bytes()

    def advance(self) -> bool:
        """Moves to the next epoch. Returns False if there is none."""
        with self.cond:
            self.with_look()
            epoch = self.intake.epoch + 1
            if epoch >= self.spec["epochs"]:
                self._job_done = True
                return False
            self.intake.begin(self.digest, epoch, Ranges([self.owned]), Ranges())
            for batch in self._early.pop(epoch, ()):
                self._with_arrived(batch)
            self.cond.notify_all()
            return True

    def attach(self, token: Optional[bytes], stamps: Optional[Mapping[str, Any]] = None) -> None:
        """Goes to a token's position. None goes to the position of the acknowledgements. ``stamps`` are those of the
        state that has the token.
        """
        with self.cond:
            self.with_look()
            position = read_token(token) if token is not None else self.intake.progress.token()
            generation = self._generation + 1
            self._channel.send("seek", generation=generation, token=str(position), stamps=dict(stamps or {}))
            while generation not in self._sought:
                self.cond.wait(1.0)
                self.with_look()
            answer = self._sought.pop(generation)
            if answer["kind"] == "failed":
                raise failure(answer)

    def status(self) -> dict[str, Any]:
        """Returns ``state``, ``epoch`` and ``spec`` of the job, in the form of the control plane's JobStatus."""
        with self.cond:
            i = self.intake
            done = self._job_done or (i.epoch + 1 >= self.spec["epochs"] and i.delivered and not i.yielded)
            return {"state": "done" if done else "running", "epoch": str(i.epoch), "spec": self.spec}

    # --- the end ------------------------------------------------------------------------------------------------------

    def abandon(self) -> None:
        """Closes in the background. Any thread may call it at any time."""
        if self._closed or os.getpid() != self._pid:
            return
        try:
            threading.Thread(target=self.leave, name="millrace-close", daemon=True).start()
        except RuntimeError:  # the interpreter ends, and closes what is open
            self._channel.shutdown()

    def leave(self) -> None:
        """Closes the session without raising errors, for a caller that cannot handle them."""
        self.close()

    def close(self) -> None:
        """Ends the session, and the process with its last session."""
        if os.getpid() != self._pid:
            return  # in a forked child: thread and process belong to the parent
        with self.cond:
            first, self._closed = not self._closed, True
            self.cond.notify_all()
        if not first:
            if threading.current_thread() is not self._receiving:
                self._gone.wait(2 * _SECONDS)
            return
        try:
            self._channel.send("leave")
            self._end()
            if threading.current_thread() is not self._receiving:
                self._receiving.join(_SECONDS)
        finally:
            if self._at_exit is not None:
                self._at_exit.cancel()
            self._gone.set()

    def _end(self) -> None:
        """Closes the connection, and waits for the process if no other rank needs it."""
        with self.cond:
            if hasattr(self, "intake"):
                self.intake.waiting.clear()
            self._early.clear()
            self._where.clear()
        self._channel.shutdown()
        receiving = getattr(self, "_receiving", None)
        if receiving is not None and receiving.is_alive() and threading.current_thread() is not receiving:
            receiving.join(_SECONDS)
        self._channel.close()
        self._buffers.close()
        if self._process is None:
            return
        try:
            self._process.wait(_SECONDS if self.ranks.local_size == 1 else 0.2)
        except subprocess.TimeoutExpired:
            if self.ranks.local_size == 1:
                log.warning("the private process %d does not end: it is killed", self._process.pid)
                self._process.kill()
                self._process.wait()
            else:  # the process serves the other ranks to their end; Python must not warn that it still runs
                threading.Thread(target=self._process.wait, name="millrace-wait", daemon=True).start()


@contextlib.contextmanager
def _said_when_slow(ranks: Ranks, patience: float) -> Iterator[None]:
    """Logs that this rank waits for the others of its machine, if that takes longer than :data:`SAID_AFTER`."""
    if ranks.local_size < 2:
        yield
        return
    timer = threading.Timer(
        SAID_AFTER,
        log.warning,
        (
            "rank %d waits for the other ranks of this machine, of which there are %d by WORLD_SIZE or world_size=; it "
            "waits up to %.0f s (patience=). Every rank calls millrace.open, in the same order",
            ranks.rank,
            ranks.local_size,
            patience,
        ),
    )
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


#: Flags in the texts of errors, which are those of the command ``millrace``. A command to type keeps its flags.
_FLAGS = re.compile(
    r"millrace [a-z](?:(?! and )[^;,])*"
    r"|--(?P<of_file>statistics|vocabulary) (?P<name>[^;,=]+)=FILE"
    r"|--(?P<flag>exclude|include|input-format)(?: (?!and )(?P<value>(?:'[^']*'|\\'|[^\s;,:'\\])+))?"
)


def _with_arguments(said: str) -> str:
    """Returns an error's text with the arguments of :func:`millrace.open` in place of the command's flags."""

    def argument(found: re.Match[str]) -> str:
        if found["of_file"]:
            return f"{'vocabularies' if found['of_file'] == 'vocabulary' else 'statistics'}={{{found['name']!r}: FILE}}"
        if found["flag"] is None:
            return found[0]
        value = repr(shlex.split(found["value"])[0]) if found["value"] else ""
        return f"{found['flag'].replace('-', '_')}={value}"

    return _FLAGS.sub(argument, said)


def failure(message: Mapping[str, Any]) -> MillraceError:
    """Returns the error that the private process sent, as the exception of its kind."""
    code, said = str(message.get("code")), _with_arguments(str(message.get("message")))
    place: dict[str, Any] = {
        "file": str(message.get("file") or ""),
        "column": str(message.get("column") or ""),
        "row_group": message.get("row_group"),
        "page": message.get("page"),
        "row": message.get("row"),
        "line": message.get("line"),
    }
    if code == "pipeline":
        listed = message.get("problems")
        problems = [p for p in listed if isinstance(p, dict)] if isinstance(listed, list) else []
        return PipelineError([_problem(p) for p in problems] or [PipelineProblem(said)])
    if code == "changed":
        return ChangedError(said, **place)
    if code == "data":
        return DataLossError(said, **place)
    if code == "files":
        return FilesError(said, place["file"])
    if code == "options":
        return OptionsError(said)
    if code == "token":
        return TokenError(said)
    if code == "other_job":
        return OtherJobError(said)
    if code == "ranks":
        return RanksError(said, "RANK" if "RANK" in said else "")
    if code == "ended":
        return PrivateProcessError(f"{said}: start all ranks again, each with the state that it saved")
    if code in ("version", "protocol"):
        return ChannelError(said)
    return ServiceError(code, said, "private process")


def _problem(of: Mapping[str, Any]) -> PipelineProblem:
    """Returns one error of a pipeline. The text begins with the line of the document, which becomes a field here."""
    line = of.get("line") if isinstance(of.get("line"), int) else None
    message = re.sub(r"\Aline \d+:\d+: ", "", _with_arguments(str(of.get("message"))))
    return PipelineProblem(message, path=str(of.get("path") or ""), line=line or None)
