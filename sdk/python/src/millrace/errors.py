"""What can go wrong, one class for each thing that a caller may want to decide by."""

from __future__ import annotations


class MillraceError(Exception):
    """The root of every exception that this package raises by itself."""


class FrameError(MillraceError, ValueError):
    """Bytes are not the whole, untouched frame of a mini-batch."""


class SchemaError(MillraceError, ValueError):
    """The control plane's description of the mini-batches makes no sense."""


class TokenError(MillraceError, ValueError):
    """Bytes are not a whole, untouched checkpoint token."""


class OtherJobError(TokenError):
    """The token is of another job: resume with the data, pipeline and options that it was made with."""


class ClosedError(MillraceError):
    """The job was closed."""


class ServiceError(MillraceError):
    """The control plane or a node answered with an error.

    ``code`` is one of Connect's: ``not_found``, ``failed_precondition``, ``unavailable``, ...
    """

    def __init__(self, code: str, message: str, where: str = "") -> None:
        super().__init__(f"{where}: {code}: {message}" if where else f"{code}: {message}")
        self.code = code
        self.message = message
        self.where = where


class UnreachableError(MillraceError):
    """No member of the control plane answered, or none of them leads, for as long as the caller was willing to wait."""


class FencedError(MillraceError):
    """Another consumer attached as this rank: this one no longer gets mini-batches, and must not train on."""


class DataLossError(MillraceError):
    """A page, a row or a program fails, and would fail again on any drive; the job fails with it."""


class JobEndedError(MillraceError):
    """The job failed or was cancelled while mini-batches were still owed."""


class JobAbandonedError(JobEndedError):
    """The job has ended because no rank had called for as long as the job, or the control plane, allows: submit it again, with the
    trainer's token as ``resume``."""
