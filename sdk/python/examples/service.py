"""A whole Millrace on this machine, for examples, tests and benchmarks: data set, drives, storage nodes, control plane.

Everything is the real program (``millrace``), in processes of their own on 127.0.0.1, in a folder that is removed at
the end.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import threading
import time
from typing import Any, Optional, Sequence

from millrace import Control, MillraceError


def program() -> Optional[str]:
    """The ``millrace`` program: what MILLRACE_BIN names, or what is on the path."""
    return os.environ.get("MILLRACE_BIN") or shutil.which("millrace")


class Process:
    """A server in a process of its own. ``ready`` is the first JSON object that it printed."""

    def __init__(self, log: str, command: Sequence[str]) -> None:
        self._log = open(log, "ab")
        self._path = log
        self._process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=self._log, stdin=subprocess.DEVNULL)
        self.ready: Optional[dict[str, Any]] = None
        self._seen = threading.Event()
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()

    def _read(self) -> None:
        text = b""
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._log.write(line)
            text += line
            if self.ready is None:
                try:
                    self.ready = json.loads(text)
                except ValueError:
                    continue
                self._seen.set()
        self._seen.set()

    def wait_ready(self, seconds: float = 60.0) -> dict[str, Any]:
        """Waits for the line that says that it serves."""
        if not self._seen.wait(seconds) or self.ready is None:
            self.kill()
            with open(self._path, errors="replace") as f:
                raise RuntimeError(f"{self._process.args!r} did not get ready:\n{f.read()[-4000:]}")
        return self.ready

    def kill(self) -> None:
        """kill -9"""
        self._end(signal.SIGKILL)

    def stop(self) -> None:
        """SIGTERM; after ten seconds kill -9."""
        self._end(signal.SIGTERM)

    def _end(self, how: signal.Signals) -> None:
        if self._process.poll() is None:
            self._process.send_signal(how)
            try:
                self._process.wait(10)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        self._thread.join()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._log.close()


class Service:
    """Control plane and nodes over a generated RM1.

    Args:
        drives: how many; each is a software drive (a file) behind a node of its own.
        rows: of the data set.
        partitions: of the data set; each lies on ``copies`` drives.
        unix: nodes serve on unix sockets, too.
        jobs: that a drive holds at once; each has an equal part of its memory.
        members: of the control plane, 1 or 3.
        secure: mutual TLS everywhere; ``tls`` is the launcher's identity.
        folder: where everything lies; None makes one and removes it at the end.
    """

    def __init__(
        self,
        drives: int = 2,
        *,
        rows: int = 100_000,
        partitions: int = 4,
        copies: int = 2,
        model: str = "rm1",
        unix: bool = False,
        threads: int = 1,
        jobs: int = 4,
        members: int = 1,
        secure: bool = False,
        folder: Optional[str] = None,
    ) -> None:
        found = program()
        if found is None:
            raise RuntimeError(
                "no millrace program: build it (make build) and put it on the path, or name it in MILLRACE_BIN"
            )
        self.program = found
        self._made = folder is None
        self.folder = tempfile.mkdtemp(prefix="millrace-") if folder is None else folder
        self.members: list[Optional[Process]] = []
        self.secure = secure
        self.tls: Optional[tuple[str, str, str]] = self._identity("launcher", "trainer") if secure else None
        self.nodes: list[Optional[Process]] = []
        try:
            self.data = os.path.join(self.folder, "data")
            self.run(
                "dataset",
                "generate",
                "--model",
                model,
                "--rows",
                str(rows),
                "--partitions",
                str(partitions),
                "--out",
                self.data,
            )
            self.partitions = sorted(n for n in os.listdir(self.data) if n.endswith(".parquet"))
            size = sum(os.path.getsize(os.path.join(self.data, n)) for n in self.partitions)
            self._flash(drives, copies, size)
            self._start_members(members)
            for i in range(drives):
                self._configure(i, unix, threads, jobs)
                self.nodes.append(None)
            for i in range(drives):
                self.start_node(i, wait=False)
            for node in self.nodes:
                assert node is not None
                node.wait_ready()
            self.wait_nodes(drives)
        except BaseException:
            self.close()
            raise

    def _path(self, name: str) -> str:
        return os.path.join(self.folder, name)

    def _identity(self, role: str, name: str) -> tuple[str, str, str]:
        """Certificate, key and authority of somebody."""
        pki = self._path("pki")
        if not os.path.exists(pki):
            self.run("pki", "init", "--dir", pki)
        self.run("pki", "issue", "--dir", pki, "--role", role, "--name", name, "--host", "127.0.0.1")
        return f"{pki}/{role}-{name}.pem", f"{pki}/{role}-{name}.key", f"{pki}/ca.pem"

    def _start_members(self, n: int) -> None:
        peers = []
        if n > 1:
            scheme = "https" if self.secure else "http"
            ports = [socket.create_server(("127.0.0.1", 0)) for _ in range(n)]
            peers = [
                "--peers",
                ",".join(f"m{i}={scheme}://127.0.0.1:{s.getsockname()[1]}" for i, s in enumerate(ports)),
            ]
            for s in ports:
                s.close()
        for i in range(n):
            arguments = ["control", "run", "--data", self._path(f"etcd{i}"), "--listen", "127.0.0.1:0", *peers]
            if n > 1:
                arguments += ["--name", f"m{i}"]
            if self.secure:
                cert, key, ca = self._identity("control", f"m{i}")
                arguments += ["--cert", cert, "--key", key, "--ca", ca]
            self.members.append(self._start(f"control{i}", *arguments))
        self.urls: list[str] = []
        for m in self.members:
            assert m is not None
            self.urls.append(m.wait_ready()["url"])
        self.url = ",".join(self.urls)

    def kill_leader(self) -> None:
        """kill -9 of the member that leads."""
        for i, m in enumerate(self.members):
            if m is None:
                continue
            with Control(self.urls[i], tls=self.tls, patience=0.0) as control:
                try:
                    control.call("ListNodes", {})
                except MillraceError:
                    continue
            m.kill()
            self.members[i] = None
            return
        raise RuntimeError("nobody leads")

    def run(self, *arguments: str) -> str:
        """Runs the program to its end; returns what it printed."""
        done = subprocess.run(
            [self.program, "--progress", "none", *arguments], capture_output=True, text=True, stdin=subprocess.DEVNULL
        )
        if done.returncode:
            raise RuntimeError(f"millrace {' '.join(arguments)}: status {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def _flash(self, drives: int, copies: int, size: int) -> None:
        room = -(-(size + (8 << 20) + 4096 * len(self.partitions)) // (1 << 20))
        for i in range(drives):
            held = [os.path.join(self.data, n) for k, n in enumerate(self.partitions) if (i - k) % drives < copies]
            self.run("drive", "create", f"file:{self._path(f'd{i}.flash')}?size={room}MiB")
            if held:
                self.run("drive", "put", f"file:{self._path(f'd{i}.flash')}", *held)

    def _start(self, name: str, *arguments: str) -> Process:
        return Process(self._path(name + ".log"), [self.program, "--output", "json", *arguments])

    def _configure(self, i: int, unix: bool, threads: int, jobs: int) -> None:
        listen = [f"unix:{self._path(f'n{i}.sock')}"] if unix else []
        doc: dict[str, Any] = {  # JSON is YAML
            "name": f"n{i}",
            "listen": [*listen, "127.0.0.1:0"],
            "control": self.urls,
            "state_dir": self._path(f"n{i}"),
            "drives": [{"name": "d0", "uri": f"file:{self._path(f'd{i}.flash')}?threads={threads}", "jobs": jobs}],
            "measure": "200ms",
            "drain_time": "2s",
        }
        if self.secure:
            doc["tls"] = dict(zip(("cert", "key", "ca"), self._identity("node", f"n{i}")))
        os.makedirs(self._path(f"n{i}"), exist_ok=True)
        with open(self._path(f"n{i}.yaml"), "w") as f:
            json.dump(doc, f)

    def start_node(self, i: int, *, wait: bool = True) -> None:
        """Starts a node, or starts it again after it was killed."""
        self.nodes[i] = self._start(f"n{i}", "node", "run", "--config", self._path(f"n{i}.yaml"))
        if wait:
            self.nodes[i].wait_ready()  # type: ignore[union-attr]

    def kill_node(self, i: int) -> None:
        """kill -9 of a node, and with it of its drive."""
        node = self.nodes[i]
        assert node is not None
        node.kill()
        self.nodes[i] = None

    def wait_nodes(self, n: int, seconds: float = 60.0) -> None:
        """Waits until ``n`` nodes are ready."""
        end = time.monotonic() + seconds
        with Control(self.url, tls=self.tls) as control:
            while True:
                try:
                    nodes = control.call("ListNodes", {}).get("nodes", [])
                except MillraceError:
                    nodes = []
                if sum(x.get("state") == "ready" for x in nodes) >= n:
                    return
                if time.monotonic() > end:
                    there = {x.get("status", {}).get("name"): x.get("state") for x in nodes}
                    raise RuntimeError(f"{n} nodes were to be ready, there are {there}: {self.logs()}")
                time.sleep(0.1)

    def logs(self) -> str:
        """The end of every log."""
        out = []
        for name in sorted(os.listdir(self.folder)):
            if name.endswith(".log"):
                with open(self._path(name), errors="replace") as f:
                    out.append(f"--- {name}\n{f.read()[-2000:]}")
        return "\n".join(out)

    def __enter__(self) -> "Service":
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()

    def close(self) -> None:
        """Ends all processes."""
        for p in (*self.nodes, *self.members):
            if p is not None:
                p.stop()
        self.nodes, self.members = [], []
        if self._made:
            shutil.rmtree(self.folder, ignore_errors=True)
