"""Locks that a forked child can take, whatever the parent's threads held when it forked."""

from __future__ import annotations

import os
import threading
import weakref

__all__ = ["ForkedCondition"]

_conditions: "weakref.WeakSet[ForkedCondition]" = weakref.WeakSet()


class ForkedCondition(threading.Condition):
    """A condition whose lock is free in a forked child. The child has no other thread, so a lock that another thread
    of the parent held at the fork would never be released there. The child may find fields between two states: it
    learns from the number of its process that they are the parent's.
    """

    def __init__(self) -> None:
        super().__init__()
        _conditions.add(self)


def _forked() -> None:
    for condition in list(_conditions):
        threading.Condition.__init__(condition)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)
