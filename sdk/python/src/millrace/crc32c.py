"""CRC32C (Castagnoli), which the standard library does not have.

Two ways give the same numbers:

* ``google-crc32c``, where it is installed: several GB/s.
* :func:`fold`, plain Python: about 0.5 GB/s on one core, some thirty times the table of a byte at a time. It holds the
  interpreter lock meanwhile, which slows a trainer down. So frames are checked by default only where
  ``google-crc32c`` is installed (see :func:`millrace.frame.decode`).

How folding works: bit i of a message of N bits (least significant bit of the first byte first) is the coefficient of
x^(N-1-i), and the remainder modulo the Castagnoli polynomial P is wanted. P divides the sparse polynomial x^5685 +
x^1362 + x^426 + 1 (found by search; the test divides), and therefore also x^(5685 s) + x^(1362 s) + x^(426 s) + 1 for
every power of two s, since squaring is linear over GF(2). So any run of leading bits may be dropped if it is XORed back
in at three places further down. Python's integers do that on hundreds of kilobytes at a time, with three shifts; the
few hundred bytes that stay go through the table.
"""

from __future__ import annotations

from typing import Callable, Union

__all__ = ["checksum", "fast", "fold", "table"]

Buffer = Union[bytes, bytearray, memoryview]

_A, _B, _C = 5685, 1362, 426
_BLOCK = 256 << 10  # bytes; integers of this size still fit into the second-level cache


def _make_table() -> list[int]:
    rows = []
    for i in range(256):
        for _ in range(8):
            i = (i >> 1) ^ (0x82F63B78 if i & 1 else 0)
        rows.append(i)
    return rows


_TABLE = _make_table()


def table(data: Buffer, register: int = 0xFFFFFFFF) -> int:
    """The register after ``data``, a byte at a time: the definition. XOR with FFFFFFFFh gives the checksum."""
    rows = _TABLE
    for b in bytes(data):
        register = (register >> 8) ^ rows[(register ^ b) & 255]
    return register


def _shorten(message: int, bits: int) -> tuple[int, int]:
    """Returns a message of fewer bits with the same remainder, and its number of bits."""
    while bits > 2 * _A:
        scale = 1
        while 2 * _A * scale < bits:
            scale *= 2
        # Of the two scales that fit, the one that drops more.
        drop = 0
        for s in (scale, scale // 2):
            d = min(bits - _A * s, (_A - _B) * s)
            if d > drop:
                drop, scale = d, s
        low = message & ((1 << drop) - 1)
        message >>= drop
        message ^= (
            (low << ((_A - _B) * scale - drop)) ^ (low << ((_A - _C) * scale - drop)) ^ (low << (_A * scale - drop))
        )
        bits -= drop
    return message, bits


def fold(data: Buffer) -> int:
    """Returns the CRC32C of ``data``, from 0 to 2^32 - 1, computed in plain Python."""
    view = memoryview(data).cast("B")
    register = 0xFFFFFFFF
    for at in range(0, len(view), _BLOCK):
        block = view[at : at + _BLOCK]
        if len(block) < 2048:
            register = table(block, register)
            continue
        # A register of r before a message is the message with r XORed into its first 32 bits.
        message, bits = _shorten(int.from_bytes(block, "little") ^ register, 8 * len(block))
        pad = -bits % 8  # zeros before the first bit change nothing when the register is zero
        register = table((message << pad).to_bytes((bits + pad) // 8, "little"), 0)
    return register ^ 0xFFFFFFFF


def _library() -> Callable[[Buffer], int] | None:
    try:
        import google_crc32c  # type: ignore[import-not-found, import-untyped, unused-ignore]
    except ImportError:
        return None
    if getattr(google_crc32c, "implementation", "") == "python":
        return None  # its own fallback is the table

    def checksum_of(data: Buffer) -> int:
        if isinstance(data, bytes):
            return int(google_crc32c.value(data))
        # google_crc32c takes only bytes; copying piece by piece keeps each copy in the cache.
        view = memoryview(data).cast("B")
        crc = 0
        for at in range(0, len(view), _BLOCK):
            crc = google_crc32c.extend(crc, bytes(view[at : at + _BLOCK]))
        return int(crc)

    return checksum_of


_fast = _library()


def fast() -> bool:
    """Reports whether a library computes CRC32C, so that checking costs next to nothing."""
    return _fast is not None


def checksum(data: Buffer) -> int:
    """Returns the CRC32C of ``data``, from 0 to 2^32 - 1, by google-crc32c where it is installed, else by :func:`fold`.
    """
    return _fast(data) if _fast is not None else fold(data)
