"""Memory for frames, which is used again as soon as no view of it is left.

A frame's tensors are memoryviews into a pooled bytearray, and tensors of PyTorch or Arrow made from them hold those
views. When the last tensor is gone, Python releases the views. The pool sees that no view is left because a bytearray
with a view refuses to change its length. So no caller has to give memory back, and none can give it back too early.
"""

from __future__ import annotations

import ctypes
import threading

__all__ = ["Pool"]

_ALIGN = 64
_ROUND = 1 << 20


def _idle(memory: bytearray) -> bool:
    """Reports whether no view of the memory is left. Shortening and lengthening by one byte moves nothing."""
    try:
        last = memory.pop()
    except BufferError:
        return False
    memory.append(last)
    return True


class Pool:
    """Lends memory for frames. Any number of threads may use it.

    Args:
        keep: how many buffers the pool keeps. It may lend more; Python frees those that it does not keep.
    """

    def __init__(self, keep: int = 64) -> None:
        self._keep = keep
        self._lock = threading.Lock()
        self._all: list[bytearray] = []
        self.made = 0  # how many buffers were made; for tests and measurements

    def take(self, nbytes: int) -> memoryview:
        """Returns a view of ``nbytes`` bytes, which starts at a multiple of 64 and is not cleared."""
        with self._lock:
            memory = None
            for i, m in enumerate(self._all):
                # A buffer that is far too large is not used: a short last mini-batch would keep it.
                if nbytes + _ALIGN <= len(m) <= 4 * nbytes + 2 * _ROUND and _idle(m):
                    memory = self._all.pop(i)
                    break
            if memory is None:
                memory = bytearray(-(-(nbytes + _ALIGN) // _ROUND) * _ROUND)
                self.made += 1
                if len(self._all) >= self._keep:
                    # Forget a buffer that is free, else the oldest: its views keep it alive.
                    del self._all[next((i for i, m in enumerate(self._all) if _idle(m)), 0)]
            self._all.append(memory)
            whole = memoryview(memory)
        start = -ctypes.addressof(ctypes.c_char.from_buffer(whole)) % _ALIGN
        return whole[start : start + nbytes]
