"""Calls to the control plane: Connect's JSON over HTTP/1.1.

Only the leader answers. The other members name the leader, if they know it. :class:`Control` asks the members in turn
until the leader answers, for as long as its ``patience`` lasts. Messages are plain dictionaries with protobuf's JSON
names (camelCase; 64-bit numbers as text; bytes in base64), as in host/api/v1/millrace.proto.
"""

from __future__ import annotations

import base64
import difflib
import json
import os
import re
import threading
import time
from typing import Any, Iterable, Mapping, Optional, Sequence, Union

from . import arguments
from .arguments import named_paths
from .bounds import document, read_all
from .contexts import resolve
from .errors import (
    AddressError,
    ClosedError,
    MillraceError,
    OptionsError,
    OtherJobError,
    PartlyConsumedError,
    ServiceError,
    TokenError,
    UnreachableError,
)
from .jobfile import JobFile, describe_files
from .pipeline import Pipeline, bound
from .wire import BROKEN, TLS, Address, Connections

__all__ = ["Control", "b64", "pipeline_bytes", "unb64"]

_MAX_ANSWER = 256 << 20  # bytes; a manifest is the largest part of one
# Fields of JobSpec and of its plan. The service ignores fields that it does not know, since a newer client may send
# them.
_SPEC = frozenset(
    (
        "name pipeline partitions plan epochs ranks rank_tail order weight t_rows_per_second max_drives resume "
        "follow follow_once exclude placement offload abandon_after_seconds vocabularies modules"
    ).split()
)
_PLAN = frozenset("batch boundary tail shuffle seed split_batches window".split())
_AGAIN = {"unavailable", "resource_exhausted", "deadline_exceeded", "canceled"}


def b64(data: bytes) -> str:
    """Returns bytes in base64, the form of protobuf's JSON."""
    return base64.b64encode(data).decode()


def unb64(text: Optional[str]) -> bytes:
    """Returns the bytes of base64, padded or not and in either alphabet, as protobuf's JSON allows; None gives b"".
    Raises ValueError.
    """
    text = (text or "").replace("-", "+").replace("_", "/").rstrip("=")
    return base64.b64decode(text + "=" * (-len(text) % 4))


def _known(where: str, given: Any, fields: frozenset[str]) -> None:
    """Raises ValueError for a key that is not a field in either of protobuf's spellings, since the service would ignore
    a misspelled key.
    """
    if not isinstance(given, Mapping):
        raise TypeError(f"{where}: want a mapping of {', '.join(sorted(fields))}")
    names = fields | {re.sub("_([a-z])", lambda m: m[1].upper(), f) for f in fields}
    for key in given:
        if key not in names:
            near = difflib.get_close_matches(str(key), names, 1)
            raise ValueError(
                f"{where}: no field {key!r}"
                + (f"; did you mean {near[0]!r}?" if near else f"; want one of {', '.join(sorted(fields))}")
            )


def _details(said: Any) -> dict[str, bytes]:
    """Returns an error's details, by the last part of their type's name. A detail whose value is not base64 is empty;
    other malformed details are left out.
    """
    found: dict[str, bytes] = {}
    for d in said if isinstance(said, list) else ():
        if isinstance(d, dict):
            try:
                found[str(d.get("type", "")).rpartition(".")[2]] = unb64(d.get("value"))
            except (ValueError, AttributeError, TypeError):
                found[str(d.get("type", "")).rpartition(".")[2]] = b""
    return found


def _fields(data: bytes) -> dict[int, Union[int, bytes]]:
    """Returns the numbers and strings of a protobuf message, by field number. The result is empty if the bytes are not
    a message or hold a field of another kind.
    """
    found: dict[int, Union[int, bytes]] = {}
    at = 0

    def varint() -> int:
        nonlocal at
        n = 0
        for i in range(10):
            b = data[at]
            at += 1
            n |= (b & 127) << (7 * i)
            if b < 128:
                return n
        raise ValueError("a number of more than ten bytes")

    try:
        while at < len(data):
            key = varint()
            if key & 7 == 0:
                found[key >> 3] = varint()
            elif key & 7 == 2:
                n = varint()
                if at + n > len(data):
                    raise ValueError("a string beyond the end")
                found[key >> 3] = data[at : at + n]
                at += n
            else:
                raise ValueError(f"wire type {key & 7}")
    except (ValueError, IndexError):
        return {}
    return found


def _leader(details: Mapping[str, bytes]) -> Optional[str]:
    """Returns the leader's URL ("" if it is not known) when an error's details hold a NotLeader, else None."""
    if "NotLeader" not in details:
        return None
    url = _fields(details["NotLeader"]).get(1, b"")
    return url.decode(errors="replace") if isinstance(url, bytes) else ""


def partly_consumed(e: ServiceError) -> Optional[PartlyConsumedError]:
    """Returns Attach's error about another run as a :class:`PartlyConsumedError`, or None if it is another error."""
    if "PartlyConsumed" not in e.details:
        return None
    f = _fields(e.details["PartlyConsumed"])
    job = f.get(1, b"")
    rank, epoch, epochs, delivered, minibatches, finished = (
        v if isinstance(v := f.get(n, 0), int) else 0 for n in range(2, 8)
    )
    return PartlyConsumedError(
        f"{e.message} (here: state= or token=, resume=True, run= or MILLRACE_RUN)",
        job.decode(errors="replace") if isinstance(job, bytes) else "",
        rank,
        epoch,
        epochs,
        delivered,
        minibatches,
        bool(finished),
    )


def of_token(e: ServiceError) -> MillraceError:
    """Returns the control plane's error about a token as an :class:`OtherJobError` or a :class:`TokenError`, and any
    other error as it is.
    """
    if "token is of another job" in e.message:
        return OtherJobError(str(e))
    return TokenError(str(e)) if "checkpoint token" in e.message else e


def pipeline_bytes(text: "str | os.PathLike[str]") -> bytes:
    """Returns the bytes of the file at the path ``text`` if there is one, else the text itself, which is a document or
    a pipeline's name.

    Raises:
        FileNotFoundError: ``text`` ends in ``.yaml`` or ``.yml`` and there is no such file.
        OSError: the file cannot be read.
    """
    if isinstance(text, str) and ("\n" in text or ":" in text or not os.path.isfile(text)):
        if text.endswith((".yaml", ".yml")) and "\n" not in text:
            raise FileNotFoundError(f"pipeline {text}: no such file; give a path, a YAML document or a pipeline's name")
        return text.encode()
    with open(text, "rb") as f:
        return f.read()


class Control:
    """The control plane, whichever member leads it. Any number of threads may use it.

    Args:
        urls: the URLs of its members (``http://HOST:PORT``, ``https://HOST:PORT`` or ``unix:PATH``), as a list or
            separated by commas; or the name of a context (``millrace context list``). None takes the environment's
            control plane, or the current context's.
        tls: an ``ssl.SSLContext``, or the PEM files (certificate, key, authority). None takes the environment's, or the
            context's.
        patience: seconds that a call goes on looking for a leader. An election takes under ten.
        timeout: seconds without an answer after which a call gives a member up.
        contact: seconds in place of ``patience`` as long as no member has ever answered. An address or a certificate
            that is wrong is an error at once.

    Raises:
        ContextError: there is no such context, or the file of contexts cannot be read.
        ValueError: a URL has another form, or there is none.
        OSError: a PEM file cannot be read. ``ssl.SSLError``, which is an OSError: it holds no certificate or key.
    """

    def __init__(
        self,
        urls: Union[None, str, Iterable[str]] = None,
        *,
        tls: TLS = None,
        patience: float = 60.0,
        timeout: float = 10.0,
        contact: float = 5.0,
    ) -> None:
        self.urls, tls = resolve(urls, tls)
        for u in self.urls:
            Address(u)
        self.patience = patience
        self.timeout = timeout
        self.contact = contact
        self._met = False  # a member has answered once
        self.tls = tls
        self._connections = Connections(tls)
        self._leader = self.urls[0]
        self._stop = threading.Event()

    def close(self) -> None:
        """Closes all connections. Calls that run, and later ones, raise :class:`ClosedError`."""
        self._stop.set()
        self._connections.close()

    def __enter__(self) -> "Control":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def call(
        self,
        method: str,
        message: Mapping[str, Any],
        *,
        wait: float = 0.0,
        patience: Optional[float] = None,
    ) -> dict[str, Any]:
        """Calls a method of millrace.v1.Control and returns the response message.

        Args:
            method: the method's name, as ``GetJob``.
            message: the request message.
            wait: seconds for which the server may hold the answer back, beside ``timeout``.
            patience: seconds in place of the client's ``patience``; None takes the client's.

        Raises:
            ServiceError: the leader refused.
            UnreachableError: no member answered as leader in time.
            AddressError, TLSError: no member ever answered, and why.
            ClosedError: the client was closed.
        """
        body = json.dumps(message).encode()
        begun = time.monotonic()
        patience = self.patience if patience is None else patience
        wrong: dict[str, Optional[AddressError]] = {}  # by URL, of members that were diagnosed
        refused: Optional[ServiceError] = None
        pause, turn, last = 0.05, 0, ""
        url = self._leader
        while True:
            if self._stop.is_set():
                raise ClosedError(f"{method}: the client was closed")
            said: Optional[str] = None
            end = begun + (patience if self._met else min(patience, self.contact))
            refused = None
            try:
                if wait and not self._met:  # a server that listens and never answers would use up the wait
                    self._look(url, wrong)
                answer = self._post(url, method, body, wait)
                self._leader, self._met = url, True
                return answer
            except BROKEN as e:
                last = f"{url}: {e or type(e).__name__}"
                self._look(url, wrong, e)
            except _Alien as e:
                self._look(url, wrong)
                if not self._met and e.error.code not in _AGAIN:
                    raise AddressError(
                        f"{url}: it answers HTTP, but not as a control plane does (status {e.status}): "
                        "give another URL, or the name of a context"
                    )
                if e.error.code not in _AGAIN:
                    raise e.error from None
                last = str(e.error)
            except _Refused as e:
                self._met = True
                end = begun + patience
                if e.leader is None and e.error.code not in _AGAIN:
                    raise e.error from None
                last, said = str(e.error), e.leader
                if e.leader is None:
                    refused = e.error
            if time.monotonic() >= end:
                if refused is not None:
                    raise refused
                if not self._met:
                    raise AddressError(
                        f"{method}: no member of the control plane answers ({', '.join(self.urls)}): {last}: "
                        "is it started, and is this its URL?"
                    )
                raise UnreachableError(f"{method}: nobody leads the control plane ({', '.join(self.urls)}): {last}")
            if said and said.rstrip("/") != url and turn < len(self.urls) + 1:
                turn, url = turn + 1, said.rstrip("/")
                try:
                    Address(url)
                    continue
                except ValueError:
                    pass
            # The next member; a pause after each round.
            i = self.urls.index(url) + 1 if url in self.urls else 0
            url = self.urls[i % len(self.urls)]
            if i >= len(self.urls) or i == 0:
                turn = 0
                self._stop.wait(min(pause, max(0.0, end - time.monotonic())))
                pause = min(2 * pause, 1.0)

    def _look(
        self, url: str, wrong: dict[str, Optional[AddressError]], error: Optional[Exception] = None
    ) -> None:
        """Diagnoses why a member does not answer, if no member ever answered; raises if the address or TLS of every
        member is wrong. ``error`` is how a call of the member failed.
        """
        if self._met:
            return
        wrong[url] = self._connections.diagnose(url, min(self.contact, self.timeout), error)
        found = [wrong.get(u) for u in self.urls]
        if all(found) and found[0] is not None:
            raise found[0]

    def _post(self, url: str, method: str, body: bytes, wait: float) -> dict[str, Any]:
        timeout = self.timeout + wait
        headers = {
            "Content-Type": "application/json",
            "Connect-Protocol-Version": "1",
            "Connect-Timeout-Ms": str(int(timeout * 1000)),
        }
        while True:
            conn, used = self._connections.take(url, timeout)
            try:
                conn.request("POST", "/millrace.v1.Control/" + method, body, headers)
                response = conn.getresponse()
                data = read_all(response, _MAX_ANSWER)
            except BROKEN as e:
                self._connections.drop(conn)
                # A server may end an idle connection; that is not a sign that the server is down.
                if used and not isinstance(e, TimeoutError):
                    continue
                raise
            except BaseException:
                self._connections.drop(conn)
                raise
            self._connections.give(url, conn)
            break
        try:
            doc = document(data)
        except ValueError:
            doc = None
        if response.status == 200 and isinstance(doc, dict):
            return doc
        if not isinstance(doc, dict) or not isinstance(doc.get("code"), str):
            code = "unavailable" if response.status in (408, 429, 502, 503, 504) else "unknown"
            raise _Alien(
                ServiceError(
                    code, f"HTTP status {response.status}, {len(data)} bytes that are not an answer", f"{url} {method}"
                ),
                response.status,
            )
        details = _details(doc.get("details"))
        raise _Refused(
            ServiceError(doc["code"], str(doc.get("message", "")), f"{url} {method}", details), _leader(details)
        )

    # ---------------------------------------------------------------------------------------------------------------

    def submit(
        self,
        spec: Mapping[str, Any],
        owner: str = "",
        vocabularies: Optional[Mapping[str, Union[str, "os.PathLike[str]"]]] = None,
        statistics: Optional[Mapping[str, Union[str, "os.PathLike[str]"]]] = None,
        modules: Optional[Mapping[str, Union[str, "os.PathLike[str]"]]] = None,
        files: Sequence[str] = (),
        split: Optional[arguments.Split] = None,
    ) -> dict[str, Any]:
        """Submits a job and returns its status.

        Args:
            spec: JobSpec in protobuf's JSON; ``pipeline`` may be a :class:`~millrace.Pipeline`, the YAML document as
                text or bytes, a file's path, or the name of a pipeline that ships with Millrace, as "rm1"; ``resume`` a
                token as bytes, sealed or not. In the patterns of ``partitions`` and ``exclude``, ``*`` does not cross
                ``/``.
            owner: whose launchers may see the job, attach to it and cancel it: the name in their certificates up to the
                first dot. Only an operator gives it.
            vocabularies: the files of the pipeline's vocabularies, by name. Those that the control plane lacks are put
                there; nodes fetch them from there, and look ids up in them.
            statistics: the summaries of the pipeline's statistics, by name. The ``millrace`` binary of this machine
                puts their numbers into the job's pipeline.
            modules: the WebAssembly modules that the pipeline's operators ``wasm`` name, by name. Those that the
                control plane lacks are put there. Drives call the functions of their active images' modules; other
                machines run modules of images that their configurations name, and these only if their configurations
                say so.
            files: files, folders and patterns of this machine. If no live node holds a partition of the job, the job is
                over these files: the ``millrace`` binary of this machine describes them, and workers of this machine
                make the job (:class:`millrace.own.OwnWorker`).
            split: the part of the rows, as in :func:`millrace.open`. The ``millrace`` binary of this machine puts it
                into the filter of the job's pipeline.

        Raises:
            FilesError: one of ``files`` cannot be described, or a file of ``vocabularies`` or ``modules`` cannot be read.
            OptionsError: ``vocabularies``, ``statistics`` or ``modules`` is not a mapping of names to paths, or
                ``split`` is not a part.
            PipelineError: the pipeline has errors, or no statistics of a name; or a file of ``statistics`` cannot be
                read.
            BinaryError: ``statistics`` or ``split`` is given, or ``files`` are needed, and there is no ``millrace``
                binary.
            ValueError: a key of ``spec``, or of its ``plan``, is not a field.
            FileNotFoundError: there is no file of the pipeline's name.
            TokenError, OtherJobError: ``resume`` is damaged, or of another job.
            ServiceError: the control plane refuses the job. Further errors are those of :meth:`call`.
        """
        _known("job", spec, _SPEC)
        _known("job: plan", spec.get("plan") or {}, _PLAN)
        doc = dict(spec)
        summaries = named_paths("statistics", statistics)
        built = doc.get("pipeline")
        if isinstance(built, Pipeline):
            doc["pipeline"] = built.to_yaml().encode()
        for field in ("pipeline", "resume"):
            value = doc.get(field)
            if field == "pipeline" and isinstance(value, (str, os.PathLike)):
                value = pipeline_bytes(value)
            if field == "pipeline" and (summaries or split is not None):
                value = _bound(value, built if isinstance(built, Pipeline) else None, summaries, split)
            if isinstance(value, (bytes, bytearray)):
                doc[field] = b64(bytes(value))
        looked_up = [JobFile("vocabulary", *item) for item in (named_paths("vocabularies", vocabularies) or {}).items()]
        called = [JobFile("module", *item) for item in sorted((named_paths("modules", modules) or {}).items())]
        if looked_up:
            doc["vocabularies"] = [file.field() for file in looked_up]
        if called:
            doc["modules"] = [file.field() for file in called]
        request = {"spec": doc, **({"owner": owner} if owner else {})}
        try:
            try:
                return self._submit(request, looked_up + called)
            except ServiceError as e:
                if not files or e.code != "failed_precondition" or "MissingVocabularies" in e.details:
                    raise
                return self._submit({**request, "ownFiles": describe_files(files)}, looked_up + called)
        except ServiceError as e:
            if isinstance(built, Pipeline):
                explained = built.explain(e.message, filters=split is None)  # the part changes the filter's paths
                e = ServiceError(e.code, explained, e.where, e.details)
            raise of_token(e) from e

    def _submit(self, request: Mapping[str, Any], files: list[JobFile]) -> dict[str, Any]:
        """Puts the files, and submits. A leader that has just begun may lack a file that the former one had."""
        tries = 3
        while True:
            tries -= 1
            for file in files:
                file.put(lambda method, message: self.call(method, message, wait=60))
            try:
                status = dict(self.call("SubmitJob", request, wait=30).get("job", {}))
                _check_known(request["spec"], status)
                return status
            except ServiceError as e:
                if tries == 0 or "MissingVocabularies" not in e.details:
                    raise

    def job(self, id: str) -> dict[str, Any]:
        """Returns the status of a job (JobStatus), by its id or name. Raises the errors of :meth:`call`."""
        return dict(self.call("GetJob", {"id": id}).get("job", {}))

    def jobs(self) -> list[dict[str, Any]]:
        """Returns the status of every job. Raises the errors of :meth:`call`."""
        return list(self.call("ListJobs", {}).get("jobs", []))

    def cancel(self, id: str) -> None:
        """Cancels a job, by its id or name. Raises the errors of :meth:`call`."""
        self.call("CancelJob", {"id": id})

    def checkpoint(self, id: str) -> bytes:
        """Returns the token of the whole job, all ranks together, sealed by the control plane. ``resume`` of a new job
        takes it. Raises the errors of :meth:`call`.
        """
        return unb64(self.call("Checkpoint", {"id": id}).get("token"))


def _boundary(spec: Any) -> str:
    """Returns where the mini-batches of a job's specification end early."""
    plan = spec.get("plan") if isinstance(spec, Mapping) else None
    return str(plan.get("boundary") or "partition") if isinstance(plan, Mapping) else "partition"


def _follows_once(spec: Any) -> bool:
    """Reports whether a job's specification has later partitions delivered once."""
    return isinstance(spec, Mapping) and bool(spec.get("followOnce") or spec.get("follow_once"))


def _check_known(spec: Any, status: Mapping[str, Any]) -> None:
    """Raises ServiceError if a job differs from its specification: an older leader ignores fields."""
    made = status.get("spec")
    differs = ""
    if _boundary(spec) != _boundary(made):
        differs = f"has the boundary {_boundary(made)}, and {_boundary(spec)}"
    elif _follows_once(spec) and not _follows_once(made):
        differs = "delivers later partitions as often as the first ones, and follow_once"
    if differs:
        raise ServiceError(
            "unimplemented",
            f"job {status.get('id')} {differs} was asked for: the leader is older than this package: cancel the job and "
            "upgrade the control plane",
            "SubmitJob",
        )


def _bound(
    document: Any,
    built: Optional[Pipeline],
    summaries: Optional[Mapping[str, str]],
    split: Optional[arguments.Split],
) -> bytes:
    """Returns a job's pipeline with the numbers of summaries, and of a part of the rows."""
    name = "statistics" if summaries else "split"
    if not isinstance(document, (bytes, bytearray)):
        raise OptionsError(f"{name}=: the job has no pipeline that takes it", name)
    try:
        text = bytes(document).decode()
    except UnicodeDecodeError as e:
        raise OptionsError(f"{name}=: the pipeline is not UTF-8", name) from e
    return bound(text, built, summaries, split).encode()


class _Alien(Exception):
    """The answer is not one of a control plane's member, but of a proxy or another server."""

    def __init__(self, error: ServiceError, status: int) -> None:
        super().__init__(str(error))
        self.error = error
        self.status = status


class _Refused(Exception):
    def __init__(self, error: ServiceError, leader: Optional[str]) -> None:
        super().__init__(str(error))
        self.error = error
        self.leader = leader
