#!/usr/bin/env python3
"""GB/s of the Python consumer, over TCP and unix sockets.

    python throughput.py                 # a server in a process of its own that sends made-up frames: what Python can
    take python throughput.py --service       # the real control plane and nodes: what the drives of this machine make

Server and consumer share this machine. CPU-s/GB is of the consumer's process alone. ``raw`` reads the same bytes from
the same kind of socket without HTTP and without frames: the bound. Every row is the best of ``--turns`` turns, taken in
turn.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import resource
import shutil
import socket
import ssl
import subprocess
import tempfile
import threading
import time
from typing import Any, Callable, Iterator, Optional

import millrace
from millrace import frame
from millrace.pool import Pool
from millrace.schema import Key, Schema
from millrace.wire import TLS, Connections

# RM1: 13 dense features, 39 keys with one id a row.
SCHEMA = Schema(True, tuple(f"int_{i}" for i in range(13)), tuple(Key(f"cat_{i}", 500_000) for i in range(39)), "int32")
JOB = hashlib.sha256(b"benchmark").hexdigest()


def one_frame(rows: int) -> bytes:
    """A frame of RM1's shape."""
    r = os.urandom(1 << 16)

    def some(n: int) -> bytes:
        return (r * (n // len(r) + 1))[:n]

    tensors = {"kjt.values": some(4 * 39 * rows), "dense": some(4 * 13 * rows), "label": bytes(4 * rows)}
    return frame.encode(frame.Name(JOB, 0, 0), SCHEMA, rows, tensors)


def serve(listener: socket.socket, body: bytes, context: Optional[ssl.SSLContext] = None) -> None:
    """Answers every GET with the frame; ``raw`` sends it without end. A thread a connection."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.millrace.minibatch\r\nContent-Length: %d\r\n\r\n" % len(
        body
    )

    def one(conn: socket.socket) -> None:
        if context is not None:
            conn = context.wrap_socket(conn, server_side=True)
        with conn:
            if conn.family != socket.AF_UNIX:
                conn.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            try:
                while True:
                    request = b""
                    while not request.endswith(b"\r\n\r\n"):
                        got = conn.recv(65536)
                        if not got:
                            return
                        request += got
                    if request.startswith(b"RAW"):
                        while True:
                            conn.sendall(body)
                    if context is not None:
                        conn.sendall(head)
                        conn.sendall(body)
                        continue
                    buffers = [memoryview(head), memoryview(body)]
                    while buffers:
                        n = conn.sendmsg(buffers)
                        while buffers and n >= len(buffers[0]):
                            n -= len(buffers.pop(0))
                        if buffers:
                            buffers[0] = buffers[0][n:]
            except OSError:
                return

    while True:
        conn, _ = listener.accept()
        threading.Thread(target=one, args=(conn,), daemon=True).start()


class Consumer:
    """What a fetch thread of a Job does, without its bookkeeping: GET, read into pooled memory, decode, views."""

    def __init__(self, url: str, check: bool, tls: TLS = None) -> None:
        self.url, self.check = url, check
        self.connections, self.pool = Connections(tls, makers=True), Pool()

    def __call__(self) -> int:
        conn, _ = self.connections.take(self.url, 10)
        conn.request("GET", f"/v1/minibatch?job={JOB}&epoch=0&drive=d0&number=0&until=1")
        response = conn.getresponse()
        length = response.length
        memory = self.pool.take(length)
        at = 0
        while at < length:
            at += response.readinto(memory[at:])
        response.read()
        self.connections.give(self.url, conn)
        mb = frame.decode(memory, check=self.check)
        assert mb.dense is not None and mb.values is not None and mb.label is not None
        return mb.nbytes


def raw(url: str) -> Callable[[], int]:
    """recv_into a fixed buffer."""
    if url.startswith("unix:"):
        s = socket.socket(socket.AF_UNIX)
        s.connect(url[5:])
    else:
        host, port = url[len("http://") :].split(":")
        s = socket.create_connection((host, int(port)))
    s.sendall(b"RAW\r\n\r\n")
    buffer = memoryview(bytearray(4 << 20))

    def take() -> int:
        at = 0
        while at < len(buffer):
            at += s.recv_into(buffer[at:])
        return at

    return take


def measure(take: Callable[[], int], seconds: float, threads: int = 1) -> dict[str, float]:
    """GB/s and CPU-s/GB of this process."""
    total = [0] * threads
    take()
    before, begun = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()

    def loop(i: int) -> None:
        while time.perf_counter() - begun < seconds:
            total[i] += take()

    workers = [threading.Thread(target=loop, args=(i,)) for i in range(threads)]
    for w in workers:
        w.start()
    for w in workers:
        w.join()
    took = time.perf_counter() - begun
    after = resource.getrusage(resource.RUSAGE_SELF)
    gb = sum(total) / 1e9
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"gb_per_second": gb / took, "cpu_seconds_per_gb": cpu / gb}


def identities(folder: str) -> Optional[dict[str, tuple[str, str, str]]]:
    """Certificates of a node and a launcher, if there is a ``millrace`` program to make them."""
    program = os.environ.get("MILLRACE_BIN") or shutil.which("millrace")
    if not program:
        return None
    pki = os.path.join(folder, "pki")
    subprocess.run([program, "pki", "init", "--dir", pki], check=True, capture_output=True)
    for role in ("node", "launcher"):
        subprocess.run(
            [program, "pki", "issue", "--dir", pki, "--role", role, "--name", "a", "--host", "127.0.0.1"],
            check=True,
            capture_output=True,
        )
    return {role: (f"{pki}/{role}-a.pem", f"{pki}/{role}-a.key", f"{pki}/ca.pem") for role in ("node", "launcher")}


def synthetic(rows: int, seconds: float, turns: int) -> Iterator[dict[str, Any]]:
    """The consumer against a server that costs next to nothing."""
    body = one_frame(rows)
    with tempfile.TemporaryDirectory() as folder:
        tcp = socket.create_server(("127.0.0.1", 0))
        unix = socket.socket(socket.AF_UNIX)
        unix.bind(folder + "/s")
        unix.listen(16)
        urls = {"tcp": f"http://127.0.0.1:{tcp.getsockname()[1]}", "unix": f"unix:{folder}/s"}
        fork = multiprocessing.get_context("fork")
        servers = [fork.Process(target=serve, args=(s, body), daemon=True) for s in (tcp, unix)]
        tls = identities(folder)
        if tls is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls["node"][:2])
            secure = socket.create_server(("127.0.0.1", 0))
            servers.append(fork.Process(target=serve, args=(secure, body, context), daemon=True))
        for s in servers:
            s.start()
        cases: list[tuple[str, str, Callable[[], int], int]] = []
        for name, url in urls.items():
            cases.append((name, "raw", raw(url), 1))
            cases.append((name, "frames", Consumer(url, False), 1))
            cases.append((name, "frames, 2 threads", Consumer(url, False), 2))
            how = "google-crc32c" if millrace.crc32c.fast() else "plain Python"
            cases.append((name, f"frames, CRC32C by {how}", Consumer(url, True), 1))
        if tls is not None:
            url = f"https://127.0.0.1:{secure.getsockname()[1]}"
            cases.append(("tls", "frames", Consumer(url, False, tls["launcher"]), 1))
        best: dict[tuple[str, str], dict[str, float]] = {}
        for _ in range(turns):
            for name, what, take, threads in cases:
                got = measure(take, seconds, threads)
                if got["gb_per_second"] > best.get((name, what), {"gb_per_second": 0.0})["gb_per_second"]:
                    best[name, what] = got
        for s in servers:
            s.terminate()
            s.join()
        for (name, what), got in best.items():
            yield {"socket": name, "what": what, "frame_bytes": len(body), **got}


def service(rows: int, turns: int) -> Iterator[dict[str, Any]]:
    """Jobs over the real service; the drives of this machine are the bound."""
    import sys

    sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples"))
    from dlrm import PIPELINE
    from service import Service

    for name, unix in (("tcp", False), ("unix", True)):
        with Service(2, rows=40 * rows, partitions=4, copies=1, unix=unix) as s, millrace.Control(s.url) as control:
            best = 0.0
            cpu = 0.0
            for turn in range(turns):
                plan = {"seed": str(turn)}
                id = control.submit({"name": f"b{turn}", "pipeline": PIPELINE.format(batch=rows), "plan": plan})["id"]
                with millrace.Job(s.url, id) as job:
                    before, begun = resource.getrusage(resource.RUSAGE_SELF), time.perf_counter()
                    for b in job:
                        del b
                    took = time.perf_counter() - begun
                    after = resource.getrusage(resource.RUSAGE_SELF)
                    gb = job.statistics.nbytes / 1e9
                    if gb / took > best:
                        best = gb / took
                        cpu = (after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime) / gb
                    size = job.statistics.nbytes // job.statistics.minibatches
            yield {
                "socket": name,
                "what": "a job over 2 drives",
                "frame_bytes": size,
                "gb_per_second": best,
                "cpu_seconds_per_gb": cpu,
            }


def main() -> None:
    """The command line."""
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rows", type=int, default=20_000, help="rows of a mini-batch (224 bytes each)")
    p.add_argument("--seconds", type=float, default=1.0, help="a turn")
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--service", action="store_true", help="over the real control plane and nodes")
    p.add_argument("--json", action="store_true")
    a = p.parse_args()
    rows = list(service(a.rows, a.turns) if a.service else synthetic(a.rows, a.seconds, a.turns))
    if a.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'socket':8}{'what':36}{'GB/s':>8}{'CPU-s/GB':>10}   frames of {rows[0]['frame_bytes'] / 1e6:.1f} MB")
    for r in rows:
        print(f"{r['socket']:8}{r['what']:36}{r['gb_per_second']:8.2f}{r['cpu_seconds_per_gb']:10.3f}")


if __name__ == "__main__":
    main()
