"""The private process's buffers, as this process sees them: sealed memory files, one mini-batch in each.

A mini-batch is mapped privately: its bytes are shared until this process writes to them, which makes a copy of the page
for this process alone. The mapping ends when the last view of it, or tensor made of it, is gone. A finalizer then
returns the buffer to the private process, which fills it again.
"""

from __future__ import annotations

import mmap
import os
import threading
import weakref
from typing import Callable, Optional

from .errors import MillraceError
from .pool import Pool

__all__ = ["Buffers"]

_FREE = 2  # buffers that must stay with the private process; where fewer would, a mini-batch is copied
_LEAST = 4  # buffers that are allowed at any size


class Buffers:
    """The buffers of one session. Its reading thread calls :meth:`add`, :meth:`retire` and :meth:`map`.

    Args:
        give_back: reports to the private process that a buffer is free; any thread may call it at any time.
    """

    def __init__(self, give_back: Callable[[int], None]) -> None:
        self._give_back = give_back
        self._pid = os.getpid()
        self._files: dict[int, tuple[int, int]] = {}  # descriptor and size
        self._limit = 0  # bytes
        self._lock = threading.RLock()  # a finalizer may run inside
        self._kept: dict[int, int] = {}  # given to the trainer and not given back, and their sizes
        self._pool: Optional[Pool] = None
        self._closed = False
        self.copied = 0  # mini-batches; for tests and figures

    def add(self, buffer: int, descriptor: int, size: int, limit: int) -> None:
        """Takes a buffer and its descriptor, and closes the descriptor if it does not take it.

        Args:
            size: bytes of the buffer.
            limit: bytes that all buffers may have together.

        Raises:
            MillraceError: the buffer is known already, or its file has another size.
        """
        with self._lock:
            if self._closed or buffer in self._files or os.fstat(descriptor).st_size != size:
                os.close(descriptor)
                if not self._closed:
                    raise MillraceError(f"the private process sent buffer {buffer} of {size} bytes, which is not so")
                return
            self._files[buffer] = (descriptor, size)
            self._limit = limit

    def retire(self, buffer: int) -> None:
        """Forgets a buffer that was given back."""
        with self._lock:
            descriptor, _ = self._files.pop(buffer, (-1, 0))
            if descriptor >= 0:
                os.close(descriptor)

    def map(self, buffer: int, nbytes: int) -> memoryview:
        """Returns a view of the first ``nbytes`` bytes of a buffer, which hold a mini-batch. When the last view of it
        is gone, the buffer goes back.

        Raises:
            MillraceError: there is no such buffer, or it has fewer bytes.
        """
        with self._lock:
            descriptor, size = self._files.get(buffer, (-1, 0))
            if descriptor < 0 or not 0 < nbytes <= size:
                raise MillraceError(f"the private process names {nbytes} bytes of buffer {buffer}, which has {size}")
            mapped = mmap.mmap(descriptor, nbytes, mmap.MAP_PRIVATE, mmap.PROT_READ | mmap.PROT_WRITE)
        weakref.finalize(mapped, self._returned, buffer).atexit = False
        return memoryview(mapped)

    def keep(self, buffer: int, view: memoryview) -> memoryview:
        """Returns the view that the trainer gets of a mini-batch: ``view`` itself, or a copy if too few buffers would
        be left.

        The caller drops its own references to ``view``.
        """
        with self._lock:
            size = self._files[buffer][1] if buffer in self._files else len(view)
            if (
                sum(self._kept.values()) + (1 + _FREE) * size <= self._limit
                or len(self._kept) + 1 + _FREE <= _LEAST
            ):
                self._kept[buffer] = size
                return view
            if self._pool is None:
                self._pool = Pool()
            self.copied += 1
            copy = self._pool.take(len(view))
        copy[:] = view
        return copy

    def _returned(self, buffer: int) -> None:
        if os.getpid() != self._pid:
            return  # the mapping belongs to a forked child, which must not return the parent's buffer
        with self._lock:
            self._kept.pop(buffer, None)
            if self._closed:
                return
        self._give_back(buffer)

    def close(self) -> None:
        """Closes the descriptors. Mini-batches that the trainer has stay valid."""
        with self._lock:
            self._closed = True
            files, self._files = self._files, {}
        for descriptor, _ in files.values():
            os.close(descriptor)
