"""A forked child, whose parent had threads that held locks."""

from __future__ import annotations

import os
import threading
import time
import unittest
from typing import Callable

from millrace.consumption import Consumption
from millrace.errors import MillraceError
from millrace.exit import Leaving

PATIENCE = 60.0


class Forked(unittest.TestCase):
    def child(self, condition: threading.Condition, run: Callable[[], bool]) -> int:
        """Forks while another thread holds a condition, and returns the status of the child, which runs a function."""
        held, over = threading.Event(), threading.Event()

        def hold() -> None:
            with condition:
                held.set()
                over.wait(PATIENCE)

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait(PATIENCE)
        child = os.fork()
        if not child:
            status = 2
            try:
                status = 0 if run() else 1
            finally:
                os._exit(status)
        over.set()
        holder.join()
        deadline = time.monotonic() + PATIENCE
        while True:
            ended, status = os.waitpid(child, os.WNOHANG)
            if ended:
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                os.kill(child, 9)
                os.waitpid(child, 0)
                self.fail("the child waits for a lock that nobody releases")
            time.sleep(0.01)

    def test_a_session_refuses_a_child(self) -> None:
        session = Consumption("job", 0)

        def run() -> bool:
            try:
                with session.cond:
                    session.cond.notify_all()
                    session.with_look()
            except MillraceError as e:
                return "fork" in str(e)
            return False

        self.assertEqual(self.child(session.cond, run), 0)

    def test_sessions_that_the_parent_closes(self) -> None:
        leaving = Leaving()
        leaving.begin("job", 0)

        def run() -> bool:
            leaving.wait("job", 0, 0.0)
            return not leaving._closing["job", 0]

        self.assertEqual(self.child(leaving._cond, run), 0)


if __name__ == "__main__":
    unittest.main()
