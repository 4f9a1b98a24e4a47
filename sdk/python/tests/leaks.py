"""What a test leaves behind: processes, shared memory, sockets and other descriptors."""

from __future__ import annotations

import collections
import gc
import os
import pathlib
import time
import unittest
import uuid

_MARK = "MILLRACE_TEST_MARK"
_PATIENCE = 120.0  # seconds that processes and buffers may take to end


class Leaks:
    """Counts when it is made, and again in ``check``: the descriptors and the mini-batches' mappings of this process
    and of the processes that it starts, those processes, and the entries of Millrace in /dev/shm. Processes are found
    by a variable of their environment, also when their parents have ended. A test makes it before anything else.
    """

    def __init__(self, test: unittest.TestCase) -> None:
        self._test = test
        self._mark = f"{_MARK}={uuid.uuid4().hex}"
        before = os.environ.get(_MARK)
        os.environ[_MARK] = self._mark.partition("=")[2]
        test.addCleanup(self._restore, before)
        self.before = self.count()

    @staticmethod
    def _restore(before: "str | None") -> None:
        if before is None:
            os.environ.pop(_MARK, None)
        else:
            os.environ[_MARK] = before

    def processes(self) -> list[int]:
        """Returns the processes that were started since, and are alive."""
        found = []
        for process in pathlib.Path("/proc").iterdir():
            try:
                if process.name.isdigit() and self._mark.encode() in (process / "environ").read_bytes().split(b"\0"):
                    found.append(int(process.name))
            except OSError:
                pass  # the process has ended, or belongs to another user
        return [pid for pid in found if pid != os.getpid()]

    def count(self) -> "collections.Counter[str]":
        processes = self.processes()
        counted = collections.Counter({"processes": len(processes)})
        for pid in [os.getpid(), *processes]:
            try:
                maps = pathlib.Path(f"/proc/{pid}/maps").read_text()
                descriptors = os.listdir(f"/proc/{pid}/fd")
            except OSError:
                continue  # the process has ended
            counted["mappings of mini-batches"] += maps.count("millrace-minibatch")
            for fd in descriptors:
                try:
                    target = os.readlink(f"/proc/{pid}/fd/{fd}")
                except OSError:
                    continue  # it has been closed, as that of the list
                counted[self._kind(target)] += 1
        shared = pathlib.Path("/dev/shm")
        if shared.is_dir():
            counted["entries of /dev/shm"] = sum("millrace" in entry.name for entry in shared.iterdir())
        return counted

    @staticmethod
    def _kind(target: str) -> str:
        for prefix, kind in (("/memfd:", "memfds"), ("socket:", "sockets"), ("pipe:", "pipes")):
            if target.startswith(prefix):
                return kind
        return "other descriptors"

    def check(self, what: str = "the test") -> None:
        """Waits until nothing is left that was not there before, and fails the test if that does not happen."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            gc.collect()
            left = self.count() - self.before
            if not left:
                return
            if time.monotonic() > deadline:
                self._test.fail(f"{what} left {dict(left)} in processes {self.processes()}")
            time.sleep(0.02)
