"""Millrace: train-ready mini-batches from the computational storage drives that hold the rows.

::

    for batch in millrace.open("day_*.parquet", pipeline="rm1", batch=8192): ...

The core needs the standard library only:

* :func:`millrace.open`: files of this machine, or of a control plane, as mini-batches
* :mod:`millrace.client`: :class:`Job`, a rank's consumer of a training job
* :mod:`millrace.control`: :class:`Control`, to submit jobs and look at them
* :mod:`millrace.pipeline`: :class:`Pipeline`, to build feature pipelines from the operators of
  :mod:`millrace.operators` and the filters of :mod:`millrace.filters`
* :mod:`millrace.frame`: the form in which a mini-batch travels

and, where the library is installed:

* :mod:`millrace.torch`: an ``IterableDataset`` for PyTorch and TorchRec
* :mod:`millrace.arrow`: mini-batches for pyarrow

Nothing is copied between the socket and a tensor.

Debugging: ``logging.getLogger("millrace")`` reports failed nodes and lost sessions at WARNING; :attr:`Job.statistics`
has the time that the trainer waited for mini-batches.
"""

from .client import Job, Statistics
from .control import Control
from .errors import (
    AddressError,
    BinaryError,
    ChangedError,
    ClosedError,
    ContextError,
    DataLoaderWarning,
    DataLossError,
    FencedError,
    FilesError,
    FrameError,
    JobAbandonedError,
    JobEndedError,
    MillraceError,
    NoMiniBatchWarning,
    OptionsError,
    OtherJobError,
    PartlyConsumedError,
    PassError,
    PrivateProcessError,
    RanksError,
    PipelineError,
    PipelineProblem,
    SchemaError,
    ServiceError,
    TLSError,
    TokenError,
    UnreachableError,
)
from .frame import MiniBatch, Name
from ._open import open
from .passes import build_vocabulary, summarize
from .pipeline import Pipeline
from .schema import Key, Schema
from .token import Token

__version__ = "0.4.0"

__all__ = [
    "AddressError",
    "BinaryError",
    "ChangedError",
    "ClosedError",
    "ContextError",
    "Control",
    "DataLoaderWarning",
    "DataLossError",
    "FencedError",
    "FilesError",
    "FrameError",
    "Job",
    "JobAbandonedError",
    "JobEndedError",
    "Key",
    "MillraceError",
    "MiniBatch",
    "Name",
    "NoMiniBatchWarning",
    "OptionsError",
    "OtherJobError",
    "PartlyConsumedError",
    "PassError",
    "PrivateProcessError",
    "RanksError",
    "Pipeline",
    "PipelineError",
    "PipelineProblem",
    "Schema",
    "SchemaError",
    "ServiceError",
    "Statistics",
    "TLSError",
    "Token",
    "TokenError",
    "UnreachableError",
    "build_vocabulary",
    "open",
    "summarize",
]
