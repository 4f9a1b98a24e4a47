"""Mini-batches from storage nodes: one GET each, read into pooled memory without holding the interpreter lock.

A node is reached at any of its URLs, unix sockets of this machine first. Its answer is checked: it must be a whole
frame of the requested mini-batch, with the job's schema.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Optional
from urllib.parse import quote

from .bounds import document, integer, read_all, seconds
from .control import unb64
from .errors import FrameError
from .frame import MAX_ROWS, MiniBatch, decode
from .intake import Lease, Work
from .pool import Pool
from .schema import Schema
from .wire import BROKEN, TLS, Connections

__all__ = ["ANSWER_SECONDS", "Failed", "Nodes", "batch_of", "planned_rows"]

ANSWER_SECONDS = 15.0  # that an answer of a node may take, from the request to its last byte; as in the Go launcher

_MAX_FRAME = 2 << 30
_MAX_DESCRIPTION = 256 << 20
_MAX_REFUSAL = 1 << 20
_CREDIBLE = 16 << 20  # bytes that a node may claim before any has come; more once it has sent more
_ATTEMPTS = 3  # answers of a node that come too late, before the node is given up; as in the Go launcher
_CONTENT = "application/vnd.millrace.minibatch"


class Failed(Exception):
    """A node did not give a mini-batch.

    Attributes:
        code: one of Connect's codes.
        retry_after: seconds after which the node may be asked again.
        final: whether every node would fail in the same way.
        refused: whether the node does not hold the partition: it has changed, or was moved to another node.
    """

    def __init__(self, code: str, message: str, retry_after: float = 0.1) -> None:
        super().__init__(f"{code}: {message}")
        self.code = code
        self.retry_after = retry_after
        self.final = code == "data_loss"
        self.refused = code == "failed_precondition"


def batch_of(spec: Mapping[str, Any]) -> int:
    """Returns the rows of a job's mini-batches; 0 if the job does not give it."""
    said = integer((spec.get("plan") or {}).get("batch") or 0, "batch of the job", MAX_ROWS)
    if not said:
        found = re.search(rb"^batch:\s*([0-9]{1,9})\b", unb64(spec.get("pipeline")), re.MULTILINE)
        said = int(found[1]) if found else 0
    return said


def planned_rows(
    manifest: bytes, batch: int, passing: Sequence[int] = (), boundary: str = "partition"
) -> frozenset[int]:
    """Returns every number of rows that a mini-batch of the job can have: ``batch``, and what is left at the end of a
    partition or, with the boundary ``none``, of the data set. Empty if the manifest or ``batch`` is not known.

    Args:
        passing: the rows of each partition that pass the pipeline's filter; empty if there is no filter.

    Raises:
        ValueError: the manifest makes no sense.
    """
    if not manifest or not batch:
        return frozenset()
    found = []
    partitions = document(manifest).get("partitions") or ()
    if passing and len(passing) != len(partitions):
        raise ValueError(f"a selection of {len(passing)} partitions for {len(partitions)}")
    for number, partition in enumerate(partitions):
        rows = integer(partition.get("rows"), "rows of a partition")
        if passing:
            if not 0 <= passing[number] <= rows:
                raise ValueError(f"{passing[number]} of {rows} rows of a partition are selected")
            rows = passing[number]
        found.append(rows)
    if boundary == "none":
        found = [sum(found)]
    return frozenset(left for rows in found for left in (min(rows, batch), rows % batch) if left)


class Nodes:
    """Fetches mini-batches from nodes. Any number of threads may use it.

    Args:
        check: see :func:`millrace.frame.decode`.
        timeout: seconds that an answer of a node may take, from the request to its last byte, and seconds for which a
            node may be busy.
    """

    def __init__(self, tls: TLS, check: Optional[bool], timeout: float) -> None:
        self.pool = Pool()
        self._connections = Connections(tls, makers=True, whole=True)
        self._check = check
        self._timeout = timeout
        self._stop = threading.Event()
        self._lock = threading.Lock()
        self._largest = 0  # bytes of the largest frame that came whole
        self._near: dict[tuple[str, str], bool] = {}  # by unix socket and node: whether the node is behind the socket

    def close(self) -> None:
        """Ends the requests under way."""
        self._stop.set()
        self._connections.close()

    def fetch(self, job: str, schema: Schema, work: Work, rows: frozenset[int] = frozenset()) -> MiniBatch:
        """Gets a fragment, which may be a whole mini-batch, from a node of its lease.

        Args:
            rows: the numbers of rows that a whole mini-batch can have; empty: any.

        Raises:
            Failed: no URL of the node gave the mini-batch, or its name, schema or number of rows is another one's.
        """
        lease = work.lease
        urls = [u for u in lease.urls if u.startswith("unix:") and self._is_near(u, lease.node)]
        urls += [u for u in lease.urls if not u.startswith("unix:")]
        path = f"/v1/minibatch?job={job}&epoch={lease.epoch}&drive={quote(lease.drive, safe='')}"
        path += f"&number={work.number}&until={lease.end}"
        failure = Failed("unavailable", f"node {lease.node} is not reached at any of {list(lease.urls)}")
        late = 0  # answers that did not come in time: the node may be slow, and has the mini-batch ready the next time
        while urls:
            url = urls.pop(0)
            try:
                batch = self._patiently(url, path, lease)
            except TimeoutError as e:
                failure = Failed("unavailable", f"{url}: {e}")
                late += 1
                if late >= _ATTEMPTS:
                    raise failure from e
                urls.append(url)
                continue
            except ValueError as e:
                failure = Failed("unavailable", f"{url}: {e}")
                continue
            except BROKEN as e:
                failure = Failed("unavailable", f"{url}: {e or type(e).__name__}")
                continue
            number = work.minibatch
            if batch.name != (job, lease.epoch, number):
                raise Failed("internal", f"{url}: asked for {number} of epoch {lease.epoch}, got {batch.name}")
            if batch.schema != schema:
                raise Failed("internal", f"{url}: mini-batch {number} has another schema than the job")
            if rows and (batch.rows not in rows if batch.fragment is None else batch.rows > max(rows)):
                raise Failed("internal", f"{url}: mini-batch {number} has {batch.rows} rows, which no plan gives it")
            if batch.fragment is not None:
                _check_fragment(url, work, batch)
            return batch
        raise failure

    def _is_near(self, url: str, node: str) -> bool:
        """Reports whether a unix socket of this machine is the node's. A node of another machine may have a socket with
        the same path there.
        """
        if not os.path.exists(url[len("unix:") :]):
            return False
        with self._lock:
            known = self._near.get((url, node))
        if known is not None:
            return known
        try:
            conn, _ = self._connections.take(url, self._timeout)
            try:
                conn.request("POST", "/millrace.v1.Node/Describe", b"{}", {"Content-Type": "application/json"})
                response = conn.getresponse()
                doc = document(read_all(response, _MAX_DESCRIPTION))
                answers = bool(response.status == 200 and doc.get("status", {}).get("name") == node)
            finally:
                self._connections.drop(conn)
        except (*BROKEN, ValueError, AttributeError):
            return False  # not remembered: the node may answer the next time
        with self._lock:
            self._near[url, node] = answers
        return answers

    def _patiently(self, url: str, path: str, lease: Lease) -> MiniBatch:
        """Gets a mini-batch and waits as long as a busy node asks. A mini-batch whose split the node has closed is
        requested once more.
        """
        until, again = time.monotonic() + self._timeout, True
        while True:
            try:
                return self._get(url, path, lease.ticket)
            except Failed as e:
                wait = e.retry_after
                if e.code == "unavailable" and again:
                    again, wait = False, 0.05
                elif e.code != "resource_exhausted" or time.monotonic() + wait > until:
                    raise
                if self._stop.wait(wait):
                    raise

    def _get(self, url: str, path: str, ticket: str) -> MiniBatch:
        headers = {"Accept": _CONTENT}
        if ticket:  # an older control plane sends none
            headers["Millrace-Ticket"] = ticket
        while True:
            conn, used = self._connections.take(url, self._timeout)
            whole = False
            try:
                try:
                    conn.request("GET", path, headers=headers)
                    response = conn.getresponse()
                except BROKEN as e:
                    if used and not isinstance(e, TimeoutError):
                        continue  # the connection was idle for too long; the node may be fine
                    raise
                if response.status != 200:
                    failed = _refusal(response)
                    whole = True
                    raise failed
                kind = response.headers.get("Content-Type")
                if kind != _CONTENT:
                    raise Failed("internal", f"{url}: an answer of type {kind}, want {_CONTENT}")
                try:
                    batch = self._body(response)
                except FrameError as e:
                    raise Failed("internal", f"{url}: {e}") from e
                whole = True
                return batch
            finally:
                if whole:
                    self._connections.give(url, conn)
                else:
                    self._connections.drop(conn)

    def _body(self, response: Any) -> MiniBatch:
        length = response.length
        if length is None or not 8 <= length <= _MAX_FRAME:
            raise FrameError(f"Content-Length is {length}")
        # The full length that the header claims is allocated only after a part has come: a claim costs a peer nothing.
        memory = self.pool.take(min(length, max(_CREDIBLE, 2 * self._largest)))
        at = 0
        while at < length:
            if at == len(memory):
                grown = self.pool.take(min(length, 4 * at))
                grown[:at] = memory
                memory = grown
            n = response.readinto(memory[at:])
            if not n:
                raise OSError(f"the node sent {at} of {length} bytes")
            at += n
        response.read()  # ends the response
        batch = decode(memory, check=self._check)
        self._largest = max(self._largest, length)
        return batch


def _check_fragment(url: str, work: Work, batch: MiniBatch) -> None:
    """Raises Failed if a fragment's lengths are wrong, so that they cannot be joined, or if the first of its mini-batch
    would have a number below 0.
    """
    try:
        batch.validate()
    except FrameError as e:
        raise Failed("internal", f"{url}: {e}") from e
    if batch.fragment is not None and batch.fragment.position > work.number:
        raise Failed("internal", f"{url}: fragment {work.number} says that it is fragment {batch.fragment}")


def _refusal(response: Any) -> Failed:
    """Returns the error that a node sends in place of a mini-batch."""
    data = read_all(response, _MAX_REFUSAL)
    try:
        doc = document(data)
        code, message = str(doc["code"]), str(doc.get("message", ""))
    except (ValueError, KeyError, TypeError, AttributeError):
        code, message = "unknown", f"HTTP status {response.status}"
    after = seconds(response.headers.get("Retry-After"), 0.1, 0.02, 5.0)
    return Failed(code, message, after)
