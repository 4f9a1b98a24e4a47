"""The arguments of one call of :func:`millrace.open`, with which a process attaches to the job, or makes a private
process that preprocesses.
"""

from __future__ import annotations

import glob
from dataclasses import dataclass, field, replace
from typing import Any, Iterable, Mapping, Optional, Union

from .client import Job, position_bytes
from .control import Control
from .errors import PipelineError, PipelineProblem, RanksError
from .metricfile import KeptProfile
from .own import OwnWorker
from .pipeline import Pipeline
from .private import PrivateSession, Rendezvous
from .ranks import Ranks

__all__ = ["Opening", "names_of_this_machine"]


@dataclass(frozen=True)
class Opening:
    """The arguments of :func:`millrace.open`. :meth:`job` attaches; a process other than the one that opened may call it, too.

    Attributes:
        files: names of files and folders, and patterns.
        pipeline: a YAML document, or the name of a built-in pipeline.
        plan: how rows are cut into mini-batches: batch, boundary, tail, shuffle, seed,
            split_batches, window.
        options: further members of the private process's message, or fields of the control plane's job.
        ranks: this process's place among the ranks.
        control: the argument of :class:`millrace.client.Job`; None preprocesses on this machine.
        job_arguments: more arguments of :class:`millrace.client.Job`.
        meeting: where the ranks of this machine find the private process.
        shares: whether this rank's own CPUs make a share of its splits, beside the control plane's workers.
        own_worker: the path of the configuration of the worker that these CPUs are; None takes a default.
        offload_model: the name under which the profile is kept for the next job; None keeps none.
        offload_metrics: the file in which it is kept; None takes a default.
        check: whether every frame's CRC32C is checked.
        pipeline_file: the file that the pipeline was read from, for error messages; empty if there is none.
        built: the pipeline that was built in Python, for error messages; None if there is none.
    """

    files: tuple[str, ...]
    pipeline: str
    plan: Mapping[str, Any]
    options: Mapping[str, Any]
    ranks: Ranks
    control: Union[None, str, Iterable[str]] = None
    job_arguments: Mapping[str, Any] = field(default_factory=dict)
    meeting: Optional[Rendezvous] = None
    shares: bool = False
    own_worker: Optional[str] = None
    offload_model: Optional[str] = None
    offload_metrics: Optional[str] = None
    check: Optional[bool] = None
    pipeline_file: str = ""
    built: Optional[Pipeline] = None

    @property
    def private(self) -> bool:
        """Reports whether a private process of this machine preprocesses."""
        return self.control is None

    def job(self, token: Any, acknowledge: str) -> Job:
        """Attaches at a position that ``state_dict()`` returned, or at a token, and returns the job. Raises the errors
        of :func:`millrace.open`, but those about its arguments.
        """
        if not self.private:
            return self._job_of_control(token, acknowledge)
        if isinstance(token, Mapping):
            self._check_world(token)
        try:
            session = PrivateSession(
                {"files": list(self.files), "pipeline": self.pipeline, **self.plan, **self.options},
                self.ranks,
                self.meeting,
                position_bytes(token),
                self.check,
                token.get("stamps") if isinstance(token, Mapping) else None,
            )
        except PipelineError as e:
            raise PipelineError([self._located(problem) for problem in e.problems]) from None
        return Job.of_session(session, acknowledge)

    def _job_of_control(self, token: Any, acknowledge: str) -> Job:
        """Attaches to the control plane's job, with this rank's own CPUs as a worker if :attr:`shares`."""
        own, kept, found = None, None, []
        if self.shares:
            found = names_of_this_machine(self.files)
            id, tls = str(self.job_arguments["id"]), self.job_arguments.get("tls")
            assert self.control is not None
            with Control(self.control, tls=tls, patience=self.job_arguments["patience"]) as client:
                own = OwnWorker(client, id, self.ranks.rank, found, self.own_worker)
        try:
            if own is not None and self.offload_model is not None:
                kept = KeptProfile(self.offload_model, self.offload_metrics, "files" if found else "nodes")
            job = Job(self.control, rank=self.ranks.rank, token=token, acknowledge=acknowledge, **self.job_arguments)
        except BaseException:
            if own is not None:
                own.close()
            raise
        if own is not None:
            job.keep(own, kept)
        return job

    def _located(self, problem: PipelineProblem) -> PipelineProblem:
        """Adds the file that the pipeline was read from, or the line of Python that added the faulty group."""
        place = self.built.locate(problem.path) if self.built is not None else None
        if place is not None:
            return replace(problem, file=place.file, line=place.line)
        if self.built is not None:
            return replace(problem, line=None)  # the line is of the document that Pipeline wrote, which no user sees
        return replace(problem, file=self.pipeline_file) if problem.path or problem.line else problem

    def _check_world(self, state: Mapping[str, Any]) -> None:
        """Raises RanksError for a state of another rank or of another number of ranks. Such a state counts another set
        of mini-batches: this rank would leave some out or repeat some.
        """
        for name, mine in (("rank", self.ranks.rank), ("world_size", self.ranks.world_size)):
            theirs = state.get(name, mine)
            if theirs != mine:
                raise RanksError(
                    f"the state is of {name} {theirs!r}, this is {name} {mine}: resume as many ranks as were saved, "
                    "each from its own state",
                    name,
                )


def names_of_this_machine(files: Iterable[str]) -> list[str]:
    """Returns the names of files, folders and patterns that stand for something on this machine. The binary, which they
    are given to, names and orders what they stand for.
    """
    return [name for name in files if glob.glob(name)]
