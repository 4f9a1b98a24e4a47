"""A control plane and storage nodes for tests: as strict as the real ones, with faults on demand.

The messages are those of host/api/v1/millrace.proto. Mini-batches are a function of (epoch, number), so that every test
can compute the expected ones.
"""

from __future__ import annotations

import base64
import bisect
import hashlib
import json
import random
import socket
import socketserver
import struct
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Callable, Optional
from urllib.parse import parse_qs, urlsplit

from millrace import frame
from millrace.schema import Key, Schema
from millrace.token import Progress, Ranges, Token

JOB = hashlib.sha256(b"job").hexdigest()
SCHEMA = Schema(
    label=True,
    dense=("int_0", "int_1", "int_2"),
    keys=(Key("cat_0", 1000), Key("cat_1", 500, True)),
    ids="int64",
)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def content(epoch: int, number: int, rows: int = 32, schema: Schema = SCHEMA, job: str = JOB) -> bytes:
    """The one frame of a mini-batch."""
    r = random.Random(epoch * 1_000_003 + number)
    keys, tensors = schema.keys, {}
    unique = [1 + rows // 3] * schema.sets if rows else [0] * schema.sets
    rows_of = [unique[k.set - 1] if k.set else rows for k in keys]
    lengths = [[r.randrange(3) if k.is_list else 1 for _ in range(n)] for k, n in zip(keys, rows_of)]
    if unique:  # the different rows, and then repeated ones
        tensors["kjt.inverse"] = b"".join(
            struct.pack(f"<{rows}i", *range(n), *[r.randrange(n) for _ in range(rows - n)]) for n in unique
        )
    flat = [n for ls in lengths for n in ls]
    if keys:
        letter = "q" if schema.ids == "int64" else "i"
        ids = [r.randrange(k.num_embeddings or 100) for k, ls in zip(keys, lengths) for _ in range(sum(ls))]
        tensors["kjt.values"] = struct.pack(f"<{len(ids)}{letter}", *ids)
        if schema.weights:
            tensors["kjt.weights"] = struct.pack(f"<{len(ids)}f", *[r.random() for _ in ids])
        if not schema.fixed:
            tensors["kjt.lengths"] = struct.pack(f"<{len(flat)}i", *flat)
    if schema.dense and schema.dense_type == "bfloat16":
        tensors["dense"] = r.randbytes(2 * rows * len(schema.dense))
    elif schema.dense:
        tensors["dense"] = struct.pack(
            f"<{rows * len(schema.dense)}f", *[r.gauss(0, 1) for _ in range(rows * len(schema.dense))]
        )
    if schema.label:
        tensors["label"] = struct.pack(f"<{rows}f", *[float(r.randrange(2)) for _ in range(rows)])
    return frame.encode(frame.Name(job, epoch, number), schema, rows, tensors, unique)


def whole(mb: frame.MiniBatch) -> dict[str, list[Any]]:
    """Returns a mini-batch's tensors as lists in memory order, with every row of deduplicated keys, by the definition.
    """
    found = {
        e.name: mb.data[e.offset : e.offset + e.nbytes]
        .cast({"float32": "f", "int32": "i", "int64": "q", "bfloat16": "H"}[e.dtype])
        .tolist()
        for e in mb.extents
    }
    inverse = found.pop("kjt.inverse", None)
    if inverse is None:
        return found
    lengths = found.get("kjt.lengths") or [1] * sum(mb.rows_of_keys)
    rows: list[list[int]] = []  # of each key's rows: the places of its values
    at = 0
    for n in lengths:
        rows.append(list(range(at, at + n)))
        at += n
    values, weights, new, first = [], [], [], 0
    for k, n in zip(mb.schema.keys, mb.rows_of_keys):
        for b in range(mb.rows):
            places = rows[first + (inverse[(k.set - 1) * mb.rows + b] if k.set else b)]
            new.append(len(places))
            values.extend(found["kjt.values"][i] for i in places)
            if "kjt.weights" in found:
                weights.extend(found["kjt.weights"][i] for i in places)
        first += n
    found["kjt.values"] = values
    if "kjt.lengths" in found:
        found["kjt.lengths"] = new
    if "kjt.weights" in found:
        found["kjt.weights"] = weights
    return found


class Sequence:
    """The fragments of mini-batches of ``batch`` rows, which are cut from splits of these rows. Without splits there
    are ``total`` mini-batches of one fragment each, ``split`` of them in a split.
    """

    def __init__(self, total: int, split: int, batch: int, splits: tuple[int, ...]) -> None:
        self.fragments: list[tuple[int, int, int]] = []  # mini-batch, its first row in it, rows
        self.ends: list[int] = []  # of the splits: the fragment behind the last
        row = 0
        for left in splits or [min(split, total - n) * batch for n in range(0, total, split)]:
            while left:
                rows = min(left, batch - row % batch)
                self.fragments.append((row // batch, row % batch, rows))
                row, left = row + rows, left - rows
            self.ends.append(len(self.fragments))
        self.total = -(-row // batch)
        self.begins = [i for i, f in enumerate(self.fragments) if not f[1]] + [len(self.fragments)]
        self.rows = [min(batch, row - n * batch) for n in range(self.total)]  # of each mini-batch

    def of(self, minibatches: Ranges) -> Ranges:
        """Returns the fragments of mini-batches."""
        return Ranges((self.begins[a], self.begins[b]) for a, b in minibatches)

    def place(self, number: int) -> Optional[frame.Fragment]:
        """Returns the place of a fragment; None if it is the whole mini-batch."""
        minibatch = self.fragments[number][0]
        first, end = self.begins[minibatch], self.begins[minibatch + 1]
        return frame.Fragment(number - first, end - first) if end - first > 1 else None


def part(raw: bytes, first: int, rows: int, place: frame.Fragment) -> bytes:
    """Returns the frame of some rows of a mini-batch, cut row by row."""
    mb = frame.decode(raw)
    lists, schema = whole(mb), mb.schema
    lengths = lists.get("kjt.lengths") or [1] * (mb.rows * len(schema.keys))
    found: dict[str, list[Any]] = {name: [] for name in lists}
    at = 0
    for i, n in enumerate(lengths):
        if first <= i % mb.rows < first + rows:
            for name in ("kjt.values", "kjt.weights"):
                found.get(name, []).extend(lists.get(name, [])[at : at + n])
            found.get("kjt.lengths", []).append(n)
        at += n
    for name, width in (("label", 1), ("dense", len(schema.dense))):
        if name in lists:
            found[name] = lists[name][first * width : (first + rows) * width]
    letters = {"float32": "f", "int32": "i", "int64": "q", "bfloat16": "H"}
    tensors = {e.name: struct.pack(f"<{len(found[e.name])}{letters[e.dtype]}", *found[e.name]) for e in mb.extents}
    return frame.encode(mb.name, schema, rows, tensors, fragment=place)


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128
    block_on_close = False

    def __init__(self, address: Any, handle: Callable[["_Handler"], None]) -> None:
        self.handle_one = handle
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        pass  # a client that goes away is not logged


class _UnixServer(_Server):
    address_family = socket.AF_UNIX

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)
        self.server_name, self.server_port = "localhost", 0


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    # Without this setting, answers to small requests come 40 ms late.
    disable_nagle_algorithm = True
    server: _Server

    def setup(self) -> None:
        self.disable_nagle_algorithm = self.request.family != socket.AF_UNIX
        super().setup()

    def address_string(self) -> str:
        return "client"

    def log_message(self, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/readyz":
            self.answer(200, b"ready\n", Content_Type="text/plain")
            return
        self.server.handle_one(self)

    do_POST = do_GET

    def answer(self, status: int, body: bytes, **headers: str) -> None:
        if status == 200:
            headers.setdefault("Content_Type", "application/vnd.millrace.minibatch")
        self.send_response(status)
        for k, v in headers.items():
            self.send_header(k.replace("_", "-"), v)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def refuse(self, status: int, code: str, message: str, details: Optional[list[Any]] = None, **headers: str) -> None:
        doc: dict[str, Any] = {"code": code, "message": message}
        if details:
            doc["details"] = details
        self.answer(status, json.dumps(doc).encode(), Content_Type="application/json", **headers)


class Serving:
    """A server on 127.0.0.1 or on a unix socket, until it is stopped."""

    def __init__(self, handle: Callable[[_Handler], None], path: str = "", ssl_context: Any = None) -> None:
        self._server = _UnixServer(path, handle) if path else _Server(("127.0.0.1", 0), handle)
        if ssl_context is not None:
            self._server.socket = ssl_context.wrap_socket(self._server.socket, server_side=True)
        scheme = "https" if ssl_context is not None else "http"
        self.url = f"unix:{path}" if path else f"{scheme}://127.0.0.1:{self._server.server_address[1]}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


class Node:
    """A storage node. Every GET calls each of ``faults``. A fault answers the request and returns True, or returns
    None.
    """

    def __init__(self, name: str, drives: int = 1, path: str = "", rows: int = 32, schema: Schema = SCHEMA) -> None:
        self.name, self.drives, self.rows, self.schema = name, [f"{name}-d{i}" for i in range(drives)], rows, schema
        self.dead = False
        self.own = False  # the node is the worker of the rank's own CPUs
        self.draining = False
        self.called = name
        self.asked: list[tuple[int, int]] = []
        self.issues: list[int] = []  # the issues of the tickets that came with requests
        self.faults: list[Callable[[_Handler, int, int], Optional[bool]]] = []
        self.lock = threading.Lock()
        self.sequence: Optional[Sequence] = None  # the cluster's
        self.serving = Serving(self._handle, path)
        self.urls = [self.serving.url]
        self._frames: dict[tuple[int, int], bytes] = {}

    def _handle(self, h: _Handler) -> None:
        parts = urlsplit(h.path)
        if h.command == "POST":
            assert parts.path == "/millrace.v1.Node/Describe", h.path
            h.rfile.read(int(h.headers["Content-Length"]))
            h.answer(200, json.dumps({"status": {"name": self.called}}).encode(), Content_Type="application/json")
            return
        q = {k: v[0] for k, v in parse_qs(parts.query).items()}
        assert h.command == "GET" and parts.path == "/v1/minibatch", h.path
        epoch, number, until = int(q["epoch"]), int(q["number"]), int(q["until"])
        assert number < until
        if self.dead:
            h.close_connection = True
            h.connection.close()
            return
        with self.lock:
            self.asked.append((epoch, number))
        issue = entitles(h.headers.get("Millrace-Ticket", ""), self.name, number)
        if issue is None:
            h.refuse(401, "unauthenticated", f"no ticket for mini-batch {number}")
            return
        with self.lock:
            self.issues.append(issue)
        for fault in list(self.faults):
            if fault(h, epoch, number):
                return
        if q["job"] != JOB:
            h.refuse(404, "not_found", "no such job: prepare it first")
            return
        if q["drive"] not in self.drives:
            h.refuse(404, "not_found", f"no drive {q['drive']}")
            return
        with self.lock:
            key = (epoch, number)
            if key not in self._frames:
                self._frames[key] = self._make(epoch, number)
            b = self._frames[key]
        h.answer(200, b, Content_Type="application/vnd.millrace.minibatch")

    def _make(self, epoch: int, number: int) -> bytes:
        assert self.sequence is not None
        minibatch, first, rows = self.sequence.fragments[number]
        raw = content(epoch, minibatch, self.rows and self.sequence.rows[minibatch], self.schema)
        place = self.sequence.place(number)
        return part(raw, first, rows, place) if place is not None else raw

    def kill(self) -> None:
        self.dead = True

    def stop(self) -> None:
        self.serving.stop()


def ticket(node: str, first: int, end: int, issue: int) -> str:
    """Returns a ticket of the fake nodes."""
    return base64.b64encode(f"{node} {first} {end} {issue}".encode()).decode()


def entitles(shown: str, node: str, number: int) -> Optional[int]:
    """Returns the issue of a ticket that entitles to a mini-batch of the node, else None."""
    parts = base64.b64decode(shown).decode().split()
    if len(parts) != 4 or parts[0] != node or not int(parts[1]) <= number < int(parts[2]):
        return None
    return int(parts[3])


class Ledger:
    """The state of one job, shared by all members of a fake control plane."""

    def __init__(
        self, nodes: list[Node], sequence: Sequence, epochs: int, ranks: int, order: str, schema: Schema
    ) -> None:
        self.manifest = b'{"partitions":[]}'
        self.nodes, self.sequence, self.epochs, self.ranks, self.order, self.schema = (
            nodes,
            sequence,
            epochs,
            ranks,
            order,
            schema,
        )
        self.total = sequence.total
        self.boundary = "none" if len(sequence.fragments) > sequence.total else "partition"
        self.lock = threading.Condition()
        self.epoch = 0
        self.delivered = Ranges()
        self.sessions: dict[int, bytes] = {}
        self.leases: dict[int, dict[str, Any]] = {}
        self.counter = 0
        self.issue = 0  # the issue of tickets; above 0, every answer sends the tickets of the held leases again
        self.renewed = 0  # how many answers sent tickets again
        self.acks: list[tuple[int, int, int]] = []
        self.released: list[str] = []
        self.adopted: list[dict[str, Any]] = []
        self.reports: list[dict[str, Any]] = []
        self.state = "running"
        self.reach = "held"  # of every worker
        self.lease_seconds = 10.0
        self.revoke: list[int] = []
        self.turn = 0
        self.fence = 1
        self.runs: dict[int, str] = {}
        self.offload = ""
        self.follow_once = False
        self.profiling = ""  # the side that the launcher measures
        self.profile_keys: dict[str, str] = {}  # of the answer to Attach

    def owned(self, rank: int) -> Ranges:
        per = self.total // self.ranks
        return Ranges([(rank * per, (rank + 1) * per)])

    def _mine(self, rank: int) -> Ranges:
        r = Ranges()
        for a, b in self.delivered:
            for c, d in self.owned(rank):
                r.add(max(a, c), min(b, d))
        return r

    def attach(self, rank: int, token: bytes, run: str = "", resume: bool = False) -> dict[str, Any]:
        mine = len(self._mine(rank))
        if run and run != self.runs.get(rank) and not token and not resume and (mine or self.epoch):
            numbers = {2: rank, 3: self.epoch, 4: self.epochs, 5: mine, 6: len(self.owned(rank))}
            value = b"\x0a\x02j1" + b"".join(bytes([n << 3, v]) for n, v in numbers.items() if v)
            raise Refusal(
                400,
                "failed_precondition",
                "job j1 was partly consumed by another run",
                [("millrace.v1.PartlyConsumed", value)],
            )
        self.runs[rank] = run
        if token:
            if token[:4] != b"MRT1" or token[-32:] != bytes(range(32)):
                raise Refusal(
                    400,
                    "invalid_argument",
                    "dataset: checkpoint token: it is not sealed: take the token that Checkpoint returns",
                )
            t = Token.from_bytes(token[4:-32])
            if t.job != JOB:
                raise Refusal(400, "invalid_argument", "dataset: the token is of another job")
            keep = self.delivered.minus(self.owned(rank))
            told = Ranges(t.runs)
            told.add(0, t.mark)
            self.epoch = t.epoch
            for a, b in told:
                for c, d in self.owned(rank):
                    keep.add(max(a, c), min(b, d))
            self.delivered = keep
        self.counter += 1
        session = struct.pack("<QI", self.counter, rank)
        self.sessions[rank] = session
        self.leases = {i: x for i, x in self.leases.items() if x["rank"] != rank}
        mine = self._mine(rank)
        p = Progress(JOB, self.epoch, mine)
        owned = [{"from": str(a), "to": str(b)} for a, b in self.owned(rank)]
        return {
            "job": self.status(),
            "session": b64(session),
            "tensorSchema": b64(self.schema.to_json().encode()),
            "manifest": b64(self.manifest),
            "meanLength": {"cat_1": 1.5},
            "epoch": str(self.epoch),
            "token": b64(p.token().to_bytes()),
            **({"profileKeys": self.profile_keys} if self.profile_keys else {}),
            **({"owned": owned} if owned else {}),  # protobuf's JSON leaves out what is empty
        }

    def done(self) -> bool:
        return self.epoch + 1 == self.epochs and all(not self.owned(r).minus(self.delivered) for r in range(self.ranks))

    def status(self) -> dict[str, Any]:
        return {
            "id": "j1",
            "spec": {
                "name": "rm1",
                "epochs": str(self.epochs),
                "ranks": self.ranks,
                "order": self.order,
                "offload": self.offload,
                "followOnce": self.follow_once,
                "plan": {"batch": "32", "boundary": self.boundary},
            },
            "digest": b64(bytes.fromhex(JOB)),
            "state": "done" if self.done() else self.state,
            "epoch": str(self.epoch),
            "minibatches": str(self.total),
            "delivered": str(len(self.delivered)),
        }

    def session(self, m: dict[str, Any]) -> Optional[int]:
        got = base64.b64decode(m["session"])
        for rank, s in self.sessions.items():
            if s == got:
                return rank
        return None

    def lease(self, m: dict[str, Any]) -> dict[str, Any]:
        rank = self.session(m)
        if rank is None:
            got = base64.b64decode(m["session"])
            if any(s[8:] == got[8:] for s in self.sessions.values()):
                raise Refusal(409, "aborted", "ledger: the session was fenced off: attach again")
            return {"unknownSession": True}
        if "report" in m:
            self.profiling = m["report"].get("profiling", "")
            self.reports.append({**m["report"], "fetched": len(m.get("fetched", ()))})
        if int(m.get("epoch", 0)) == self.epoch + 1:
            if self.delivered != Ranges([(0, self.total)]):
                return {"fence": str(self.fence), "waiting": "the epoch before is not acknowledged"}
            if self.epoch + 1 == self.epochs:
                return {"jobDone": True}
            self.epoch, self.delivered = self.epoch + 1, Ranges()
        elif int(m.get("epoch", 0)) != self.epoch:
            raise Refusal(400, "invalid_argument", f"epoch {m.get('epoch')}, the rank is in {self.epoch}")
        now = time.monotonic()
        for i in m.get("held", ()):
            if int(i) in self.leases:
                self.leases[int(i)]["until"] = now + self.lease_seconds
        if m.get("adopt"):
            self.adopted.extend(m["adopt"])
        for i, x in list(self.leases.items()):
            if x["until"] < now:
                del self.leases[i]
        answer: dict[str, Any] = {"fence": str(self.fence)}
        held = [(i, self.leases[int(i)]) for i in m.get("held", ()) if int(i) in self.leases]
        if self.issue and held:
            answer["tickets"] = [
                {"lease": i, "ticket": ticket(x["node"], x["from"], x["to"], self.issue)} for i, x in held
            ]
            self.renewed += 1
        if self.revoke:
            answer["revoked"] = [str(i) for i in self.revoke]
            for i in self.revoke:
                self.leases.pop(i, None)
            self.revoke = []
        grants = []
        want, until = m.get("want", 0), now + m.get("waitSeconds", 0.0)
        while want and not grants:
            for _ in range(want):
                g = self._grant(rank)
                if g is None:
                    break
                grants.append(g)
            if not grants:
                if self._all_out(rank) or time.monotonic() >= until:
                    break
                self.lock.wait(0.02)
        if grants:
            answer["grants"] = grants
        if self._all_out(rank):
            answer["epochDone"] = True
            if self.epoch + 1 >= self.epochs and self.delivered == Ranges([(0, self.total)]):
                answer["jobDone"] = True
        if self.state != "running":
            answer["jobDone"] = True
        return answer

    def fail_over(self) -> None:
        """A new leader: it knows sessions, leases that it adopts (here: all), and acknowledgements of whole splits."""
        self.fence += 1
        known, delivered = Ranges(), self.sequence.of(self.delivered)
        for span in zip([0, *self.sequence.ends], self.sequence.ends):
            if not Ranges([span]).minus(delivered):
                known.add(*span)
        whole = [n for n in range(self.total) if not self.sequence.of(Ranges([(n, n + 1)])).minus(known)]
        self.delivered = Ranges((n, n + 1) for n in whole)

    def _out(self) -> Ranges:
        return Ranges([(x["from"], x["to"]) for x in self.leases.values()])

    def _all_out(self, rank: int) -> bool:
        return not self._left(rank)

    def _left(self, rank: int) -> Ranges:
        """Returns the fragments that are neither delivered nor leased."""
        return self.sequence.of(self.owned(rank).minus(self.delivered)).minus(self._out())

    def _grant(self, rank: int) -> Optional[dict[str, Any]]:
        left = list(self._left(rank))
        alive = [n for n in self.nodes if not n.dead and not n.draining]
        if not left or not alive or self.state != "running":
            return None
        first, end = left[0]
        split = bisect.bisect_right(self.sequence.ends, first)
        end = min(end, self.sequence.ends[split])
        self.turn += 1
        if self.profiling:
            alive = [n for n in alive if n.own == (self.profiling == "own")] or alive
        node = alive[self.turn % len(alive)]
        self.counter += 1
        until = time.monotonic() + self.lease_seconds
        self.leases[self.counter] = {"rank": rank, "from": first, "to": end, "until": until, "node": node.name}
        shown = ticket(node.name, first, end, self.issue)
        g = {
            "lease": str(self.counter),
            "ticket": shown,
            "split": split,
            "from": str(first),
            "to": str(end),
            "node": node.name,
            "reach": self.reach,
        }
        if self.epoch:
            g["epoch"] = str(self.epoch)
        if node.own:
            g["own"] = True
        if self.sequence.fragments[first][0] != first:
            g["miniBatch"] = str(self.sequence.fragments[first][0])
        if not first:
            del g["from"]  # protobuf's JSON leaves out what is zero
        return {**g, "urls": node.urls, "drive": node.drives[self.turn % len(node.drives)]}

    def acknowledge(self, m: dict[str, Any]) -> None:
        rank = self.session(m)
        if rank is None:
            raise Refusal(409, "aborted", "ledger: the session was fenced off: attach again")
        if int(m["epoch"]) < self.epoch:
            return  # delivered and forgotten
        if int(m["epoch"]) > self.epoch:
            raise Refusal(400, "invalid_argument", f"epoch {m['epoch']}, the rank is in {self.epoch}")
        for r in m["numbers"]:
            a, b = int(r["from"]), int(r["to"])
            assert not Ranges([(a, b)]).minus(self.owned(rank)), "not this rank's"
            self.acks.append((self.epoch, a, b))
            self.delivered.add(a, b)
        done = self.sequence.of(self.delivered)
        self.leases = {i: x for i, x in self.leases.items() if Ranges([(x["from"], x["to"])]).minus(done)}

    def release(self, m: dict[str, Any]) -> None:
        rank = self.session(m)
        if rank is None:
            raise Refusal(409, "aborted", "ledger: the session was fenced off: attach again")
        self.released.append(m["reason"])
        for i in m.get("leases", ()):
            self.leases.pop(int(i), None)
        if m["reason"] == "detach":
            self.leases = {i: x for i, x in self.leases.items() if x["rank"] != rank}
        if m["reason"].startswith("data:") and self.reach != "any":
            self.state = "failed: " + m["reason"]


class Refusal(Exception):
    def __init__(self, status: int, code: str, message: str, details: Optional[list[tuple[str, bytes]]] = None) -> None:
        super().__init__(message)
        self.status, self.code = status, code
        self.details = [{"type": t, "value": base64.b64encode(v).decode().rstrip("=")} for t, v in details or []]


class Cluster:
    """Nodes, and ``members`` of a control plane of which one leads."""

    def __init__(
        self,
        nodes: int = 2,
        total: int = 40,
        split: int = 4,
        epochs: int = 1,
        ranks: int = 1,
        order: str = "deterministic",
        members: int = 1,
        rows: int = 32,
        schema: Schema = SCHEMA,
        unix: str = "",
        drives: int = 1,
        splits: tuple[int, ...] = (),
    ) -> None:
        self.sequence = Sequence(total, split, rows or 32, splits)
        self.nodes = [Node(f"n{i}", drives, f"{unix}/n{i}.sock" if unix else "", rows, schema) for i in range(nodes)]
        for n in self.nodes:
            n.sequence = self.sequence
        self.ledger = Ledger(self.nodes, self.sequence, epochs, ranks, order, schema)
        self.leader = 0
        self.down: set[int] = set()
        self.calls: list[str] = []
        self.members = [
            Serving(lambda h, i=i: self._handle(i, h), f"{unix}/c{i}.sock" if unix else "")
            for i in range(members)  # type: ignore[misc]
        ]
        self.urls = [m.url for m in self.members]
        self.rows, self.schema, self.total = rows, schema, self.sequence.total
        self.spec: dict[str, Any] = {}

    def __enter__(self) -> "Cluster":
        return self

    def __exit__(self, *exc: object) -> None:
        for s in (*self.members, *self.nodes):
            s.stop()

    def expected(self, epoch: int, number: int) -> bytes:
        return content(epoch, number, self.rows and self.sequence.rows[number], self.schema)

    def _handle(self, member: int, h: _Handler) -> None:
        body = h.rfile.read(int(h.headers["Content-Length"]))
        if member in self.down:
            h.close_connection = True
            h.connection.close()
            return
        assert h.command == "POST" and h.headers["Content-Type"] == "application/json"
        method = h.path.rpartition("/")[2]
        assert h.path == "/millrace.v1.Control/" + method
        if member != self.leader:
            url = self.urls[self.leader].encode() if self.leader not in self.down and self.leader >= 0 else b""
            value = base64.b64encode(b"\x0a" + bytes([len(url)]) + url if url else b"").decode().rstrip("=")
            h.refuse(400, "failed_precondition", "not the leader", [{"type": "millrace.v1.NotLeader", "value": value}])
            return
        m = json.loads(body)
        with self.ledger.lock:
            self.calls.append(method)
            try:
                answer = self._call(method, m)
            except Refusal as e:
                h.refuse(e.status, e.code, str(e), e.details)
                return
            self.ledger.lock.notify_all()
        h.answer(200, json.dumps(answer).encode(), Content_Type="application/json")

    def _call(self, method: str, m: dict[str, Any]) -> dict[str, Any]:
        ledger = self.ledger
        if method == "SubmitJob":
            self.spec = m["spec"]
            return {"job": ledger.status()}
        if method == "ListJobs":
            return {"jobs": [ledger.status()]}
        if m["id"] not in ("rm1", "j1"):
            raise Refusal(404, "not_found", f"no job {m['id']}")
        if method == "Attach":
            if ledger.state.split(":")[0] in ("cancelled", "failed", "abandoned"):
                raise Refusal(
                    409,
                    "aborted",
                    f"job rm1 has ended ({ledger.state}): submit it again, with the trainer's token as resume",
                )
            if ledger.boundary == "none" and not m.get("joins"):
                raise Refusal(400, "failed_precondition", "the launcher joins no fragments: upgrade it")
            return ledger.attach(
                m.get("rank", 0), base64.b64decode(m.get("token", "")), m.get("run", ""), m.get("resume", False)
            )
        if method == "Lease":
            return ledger.lease(m)
        if method == "Acknowledge":
            ledger.acknowledge(m)
            return {"fence": "1"}
        if method == "Release":
            ledger.release(m)
            return {}
        if method == "GetJob":
            return {"job": ledger.status()}
        if method == "CancelJob":
            ledger.state = "cancelled"
            return {}
        if method == "Checkpoint":
            rank = ledger.session(m)
            if rank is None:
                raise Refusal(409, "aborted", "ledger: the session was fenced off: attach again")
            if ledger.done():
                raise Refusal(409, "aborted", "job j1 is done: there is nothing to resume")
            token = Progress(JOB, ledger.epoch, ledger._mine(rank)).token().to_bytes()
            return {"token": b64(b"MRT1" + token + bytes(range(32)))}
        raise Refusal(501, "unimplemented", method)
