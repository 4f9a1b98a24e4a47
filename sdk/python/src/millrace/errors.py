"""The exceptions of the package: one class for each cause that a caller may handle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Mapping, Optional, Sequence, Union


class MillraceError(Exception):
    """The base class of every exception of this package. Exceptions can be pickled, so that they pass between
    processes whole.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.args, self.__dict__)


def _restored(kind: type[MillraceError], arguments: tuple[Any, ...], attributes: Mapping[str, Any]) -> MillraceError:
    """Makes a pickled exception again. It does not call the class, whose arguments differ from ``args``."""
    error = kind.__new__(kind, *arguments)
    error.args = arguments
    error.__dict__.update(attributes)
    return error


class BinaryError(MillraceError):
    """There is no ``millrace`` binary on this machine, or it cannot be run."""


class PassError(MillraceError):
    """A pass that ends in a file failed: :func:`millrace.summarize` or :func:`millrace.build_vocabulary`. The message
    is the command's, with what to do. What was taken of a cluster's data is kept, and the same call goes on.
    """


@dataclass(frozen=True)
class PipelineProblem:
    """One error of a pipeline.

    Attributes:
        message: what is wrong, with the place in the document and what to do.
        path: the place in the document, as ``dense[0].ops[1]``.
        file: the Python file that added the faulty part, or the document that was read; empty for a document in memory.
        line: the line of that file; None if no line is at fault.
    """

    message: str
    path: str = ""
    file: str = ""
    line: Optional[int] = None

    def __str__(self) -> str:
        if self.line is None:
            return f"{self.file}: {self.message}" if self.file else self.message
        return f"{self.file}:{self.line}: {self.message}" if self.file else f"line {self.line}: {self.message}"


class PipelineError(MillraceError, ValueError):
    """A pipeline has errors: :attr:`problems`, at most 20 of them."""

    def __init__(self, problems: Union[str, Sequence[PipelineProblem]]) -> None:
        if isinstance(problems, str):  # torch makes an exception of a DataLoader's process again from its text
            problems = [PipelineProblem(problems)]
        super().__init__("\n".join(map(str, problems)))
        self.problems = tuple(problems)


class FrameError(MillraceError, ValueError):
    """Bytes are not the whole, unchanged frame of a mini-batch."""


class SchemaError(MillraceError, ValueError):
    """The control plane's description of the mini-batches contradicts itself."""


class TokenError(MillraceError, ValueError):
    """Bytes are not a whole, unchanged checkpoint token."""


class OtherJobError(TokenError):
    """The token is of another job: resume with the data, pipeline and options that it was made with."""


class ClosedError(MillraceError):
    """The job was closed."""


class ServiceError(MillraceError):
    """The control plane or a node answered with an error.

    Attributes:
        code: one of Connect's codes: ``not_found``, ``failed_precondition``, ``unavailable``, ...
        message: the server's text.
        where: the server and the method that was called; empty where they are not known.
        details: the messages that came with the error, by type, in protobuf's binary form.
    """

    def __init__(self, code: str, message: str, where: str = "", details: Optional[Mapping[str, bytes]] = None) -> None:
        super().__init__(f"{where}: {code}: {message}" if where else f"{code}: {message}")
        self.code = code
        self.message = message
        self.where = where
        self.details = dict(details or {})


class UnreachableError(MillraceError):
    """No member of the control plane answered as its leader within the caller's patience."""


class AddressError(UnreachableError):
    """The control plane's address is wrong: the host is unknown, nothing listens there, or another server listens
    there.
    """


class TLSError(AddressError):
    """Address and TLS do not match: http in place of https or the reverse, or one side refuses the other's certificate.
    """


class ContextError(MillraceError, ValueError):
    """There is no such context, or the file of contexts cannot be read."""


class FencedError(MillraceError):
    """Another consumer attached as this rank: this one gets no further mini-batches and must not train on."""


class DataLossError(MillraceError):
    """A page, a row or a program is at fault and would fail on every drive. The job fails.

    Attributes:
        file: the partition; empty where it is not known.
        column: the name of the column; empty where it is not known.
        row_group, page, row: the place in the column; None where they are not known.
        line: the line of a text file, counted from 1; None for other files.
    """

    def __init__(
        self,
        message: str,
        file: str = "",
        column: str = "",
        row_group: Optional[int] = None,
        page: Optional[int] = None,
        row: Optional[int] = None,
        line: Optional[int] = None,
    ) -> None:
        super().__init__(message)
        self.file = file
        self.column = column
        self.row_group = row_group
        self.page = page
        self.row = row
        self.line = line


class ChangedError(DataLossError):
    """A file was written or replaced while it was read, or after the state was kept with which the job goes on.
    ``file`` names the partition."""


class FilesError(MillraceError, OSError):
    """A file is missing, or is not a readable partition. ``filename`` names it where one file is at fault."""

    def __init__(self, message: str, filename: str = "") -> None:
        super().__init__(message)
        self.filename = filename or None

    def __str__(self) -> str:
        # OSError's own text consists of errno and filename, without the message.
        return str(self.args[0])

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.args[0], self.filename or "")


class OptionsError(MillraceError, ValueError):
    """An argument of :func:`millrace.open`, or of another function, is of another type or out of range. ``argument``
    names it where it is known.
    """

    def __init__(self, message: str, argument: str = "") -> None:
        super().__init__(message)
        self.argument = argument


class RanksError(MillraceError, ValueError):
    """The ranks of a run do not fit together. ``variable`` names the environment variable or argument at fault."""

    def __init__(self, message: str, variable: str = "") -> None:
        super().__init__(message)
        self.variable = variable


class PrivateProcessError(MillraceError):
    """The private process does not start, or has ended although it was needed."""


class JobEndedError(MillraceError):
    """The job has ended: it failed or was cancelled before every mini-batch was delivered, or it is done."""


class JobAbandonedError(JobEndedError):
    """The job has ended because no rank called for longer than the job, or the control plane, allows. Submit it again,
    with the trainer's token as ``resume``.
    """


class PartlyConsumedError(MillraceError):
    """Another run has acknowledged mini-batches of this rank, and this run would never get them.

    Pass ``resume=True`` to go on without them, or the state of a checkpoint. For all of the data, submit the job under
    another name, or cancel it first. All ranks of a run pass the same ``run``.

    Attributes:
        job: the job's id.
        rank: this rank's number.
        epoch: the rank's current epoch, counted from 0.
        epochs: how many epochs the job has.
        delivered: how many mini-batches of that epoch the rank has acknowledged.
        minibatches: how many mini-batches of that epoch the rank owns.
        finished: whether all ranks have acknowledged everything. The job then waits until its trainers report that they
            are done.
    """

    def __init__(
        self,
        message: str,
        job: str = "",
        rank: int = 0,
        epoch: int = 0,
        epochs: int = 0,
        delivered: int = 0,
        minibatches: int = 0,
        finished: bool = False,
    ) -> None:
        super().__init__(message)
        self.job = job
        self.rank = rank
        self.epoch = epoch
        self.epochs = epochs
        self.delivered = delivered
        self.minibatches = minibatches
        self.finished = finished


class NoMiniBatchWarning(UserWarning):
    """A loop over mini-batches got no mini-batch. The message says why."""


class DataLoaderWarning(UserWarning):
    """A DataLoader reads mini-batches in a worker process, which is not faster: use ``num_workers=0``."""
