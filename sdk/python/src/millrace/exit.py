"""Closes a process's sessions when the process ends, and lets a new session wait for one that is being closed."""

from __future__ import annotations

import atexit
import os
import sys
from collections import Counter
from contextlib import contextmanager
from typing import Any, Callable, Iterator

from .forking import ForkedCondition

__all__ = ["AtExit", "Leaving"]


class AtExit:
    """Calls ``leave`` when Python ends this process: at the end of the script, by ``sys.exit``, an exception or Ctrl-C,
    or at the end of a process of ``multiprocessing`` (which runs no ``atexit``). It does not call ``leave`` after a
    signal that Python does not handle, or after ``os._exit``.

    Threads still run during the call, and no new ones can be started.
    """

    def __init__(self, leave: Callable[[], None]) -> None:
        self._leave = leave
        self._pid = os.getpid()
        atexit.register(self._run)
        self._finalizer: Any = None
        process = sys.modules.get("multiprocessing.process")
        if process is not None and process.parent_process() is not None:
            from multiprocessing.util import Finalize

            self._finalizer = Finalize(None, self._run, exitpriority=10)

    def _run(self) -> None:
        if os.getpid() == self._pid:  # a fork inherits the list and must not run it
            self._leave()

    def cancel(self) -> None:
        """Drops the call: nothing is left to do at exit."""
        atexit.unregister(self._run)
        if self._finalizer is not None:
            self._finalizer.cancel()


class Leaving:
    """The ranks whose sessions are being closed in this process, so that a new session of the same rank can wait until
    they are closed.
    """

    def __init__(self) -> None:
        self._cond = ForkedCondition()
        self._closing: Counter[tuple[str, int]] = Counter()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._closing.clear)

    def begin(self, id: str, rank: int) -> None:
        """Records that a session is about to be closed. A finalizer may call it at any point of a thread."""
        with self._cond:
            self._closing[id, rank] += 1

    def end(self, id: str, rank: int) -> None:
        """Records that the session was closed."""
        with self._cond:
            self._closing[id, rank] -= 1
            self._cond.notify_all()

    @contextmanager
    def closing(self, id: str, rank: int) -> Iterator[None]:
        """Marks a session as being closed for the length of a ``with``."""
        self.begin(id, rank)
        try:
            yield
        finally:
            self.end(id, rank)

    def wait(self, id: str, rank: int, seconds: float = 30.0) -> None:
        """Waits until no session of the rank is being closed, for at most ``seconds``."""
        with self._cond:
            self._cond.wait_for(lambda: self._closing[id, rank] <= 0, seconds)
