"""What a process does for its sessions when it ends, and how a new session waits for one that is ending."""

from __future__ import annotations

import atexit
import os
import sys
import threading
from collections import Counter
from contextlib import contextmanager
from typing import Any, Callable, Iterator

__all__ = ["AtExit", "Leaving"]


class AtExit:
    """Has ``leave`` called when this process ends, however Python ends it: the end of the script, ``sys.exit``, an
    exception, Ctrl-C, the end of a process of ``multiprocessing`` (which runs no ``atexit``). Not by a signal that
    Python does not handle, nor by ``os._exit``.

    Threads still run then, and no new ones can be started.
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
        if os.getpid() == self._pid:  # not a fork, which has the same list
            self._leave()

    def cancel(self) -> None:
        """Nothing is left to be done."""
        atexit.unregister(self._run)
        if self._finalizer is not None:
            self._finalizer.cancel()


class Leaving:
    """The ranks whose sessions are being closed in this process, so that a new session of the same rank can wait for
    that.
    """

    def __init__(self) -> None:
        self._cond = threading.Condition()
        self._closing: Counter[tuple[str, int]] = Counter()
        if hasattr(os, "register_at_fork"):
            os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._cond = threading.Condition()
        self._closing.clear()

    def begin(self, id: str, rank: int) -> None:
        """A session is about to be closed; may be called by a finalizer, in the middle of anything."""
        with self._cond:
            self._closing[id, rank] += 1

    def end(self, id: str, rank: int) -> None:
        """It was closed."""
        with self._cond:
            self._closing[id, rank] -= 1
            self._cond.notify_all()

    @contextmanager
    def closing(self, id: str, rank: int) -> Iterator[None]:
        """While a session is closed."""
        self.begin(id, rank)
        try:
            yield
        finally:
            self.end(id, rank)

    def wait(self, id: str, rank: int, seconds: float = 30.0) -> None:
        """Waits until no session of the rank is being closed, so long at most."""
        with self._cond:
            self._cond.wait_for(lambda: self._closing[id, rank] <= 0, seconds)
