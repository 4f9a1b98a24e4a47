"""Checkpoint tokens: which mini-batches of which epoch of which job a trainer has acknowledged.

A token counts mini-batches, not rows or bytes, so that it holds on any number of drives. Its binary form is::

    "MRCT" | version, u8 = 2 | job digest, 32 bytes | epoch | mark | number of runs |
    for each run: gap since the mark or the last run's end, length | CRC32C of all before it, u32 little-endian

where the fields without a type are unsigned LEB128 in the fewest bytes. A token's text is the unpadded URL-safe base64
of its binary form. The control plane seals a token as ``MRT1 | token | tag``; only the control plane can make and check
the 32 bytes of tag.
"""

from __future__ import annotations

import base64
import bisect
import struct
from dataclasses import dataclass
from typing import Iterable, Iterator

from . import crc32c
from .errors import TokenError

__all__ = ["Progress", "Ranges", "Token", "read_token"]

_MAGIC = b"MRCT\x02"
_MAX_RUNS = 1 << 20
_MAX_BYTES = len(_MAGIC) + 32 + 30 + _MAX_RUNS * 20 + 4


class Ranges:
    """A set of numbers as ascending half-open ranges that neither touch nor are empty."""

    def __init__(self, ranges: Iterable[tuple[int, int]] = ()) -> None:
        self._from: list[int] = []
        self._to: list[int] = []
        for a, b in ranges:
            self.add(a, b)

    def add(self, first: int, end: int) -> None:
        """Adds [first, end)."""
        if first >= end:
            return
        i = bisect.bisect_left(self._to, first)  # the first range that touches [first, end) or follows it
        j = bisect.bisect_right(self._from, end)  # the index after the last range that touches it
        if i < j:
            first, end = min(first, self._from[i]), max(end, self._to[j - 1])
        self._from[i:j] = [first]
        self._to[i:j] = [end]

    def __contains__(self, number: int) -> bool:
        i = bisect.bisect_right(self._from, number) - 1
        return i >= 0 and number < self._to[i]

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return iter(list(zip(self._from, self._to)))

    def __len__(self) -> int:
        """How many numbers there are."""
        return sum(self._to) - sum(self._from)

    def __bool__(self) -> bool:
        return bool(self._from)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Ranges) and list(self) == list(other)

    def __repr__(self) -> str:
        return f"Ranges({list(self)})"

    def first_missing(self, number: int) -> int:
        """Returns the least number from ``number`` on that is not in the set."""
        i = bisect.bisect_right(self._from, number) - 1
        return self._to[i] if i >= 0 and number < self._to[i] else number

    def minus(self, other: "Ranges") -> "Ranges":
        """Returns the numbers that are in this set and not in ``other``."""
        left = Ranges()
        holes = list(other)
        for a, b in self:
            for c, d in holes:
                if d <= a:
                    continue
                if c >= b:
                    break
                left.add(a, c)
                a = max(a, d)
            left.add(a, b)
        return left

    def copy(self) -> "Ranges":
        """Returns a copy of the set."""
        return Ranges(self)


@dataclass(frozen=True)
class Token:
    """A checkpoint.

    Attributes:
        job: the job's digest, 64 hex digits.
        epoch: counted from 0.
        mark: the least number that was not acknowledged.
        runs: acknowledged numbers above the mark, as ascending ranges [from, to) that neither touch nor are empty.
    """

    job: str
    epoch: int = 0
    mark: int = 0
    runs: tuple[tuple[int, int], ...] = ()

    def to_bytes(self) -> bytes:
        """Returns the binary form. Raises :class:`TokenError` if a field is out of range."""
        self._check()
        b = bytearray(_MAGIC + bytes.fromhex(self.job))
        end = self.mark
        for v in (self.epoch, self.mark, len(self.runs)):
            _put(b, v)
        for first, last in self.runs:
            _put(b, first - end)
            _put(b, last - first)
            end = last
        return bytes(b) + struct.pack("<I", crc32c.fold(b))

    def _check(self) -> None:
        if (
            len(self.job) != 64
            or len(self.runs) > _MAX_RUNS
            or not 0 <= self.epoch < 1 << 64
            or not 0 <= self.mark < 1 << 64
        ):
            raise TokenError(f"job {self.job[:80]!r}, epoch {self.epoch}, mark {self.mark}, {len(self.runs)} runs")
        end = self.mark
        for first, last in self.runs:
            if first <= end or last <= first or last >= 1 << 64:
                raise TokenError(f"run [{first}, {last}) does not follow {end}")
            end = last

    @classmethod
    def from_bytes(cls, b: bytes) -> "Token":
        """Reads the binary form. Raises :class:`TokenError` if the bytes are not one whole token."""
        fixed = len(_MAGIC) + 32
        if len(b) > _MAX_BYTES or len(b) < fixed + 3 + 4 or b[:4] != _MAGIC[:4]:
            raise TokenError(f"{len(b)} bytes that are not a token")
        if b[4] == 1:
            raise TokenError(
                "version 1, of a build that read units, decimals, NaN and the order of files differently: its "
                "mini-batches are not those of this build; start again, without the state"
            )
        if b[4] != _MAGIC[4]:
            raise TokenError(f"version {b[4]}, this version reads {_MAGIC[4]}")
        body, (said,) = b[:-4], struct.unpack("<I", b[-4:])
        if crc32c.fold(body) != said:
            raise TokenError("its CRC32C differs: it was changed or cut")
        at = fixed
        epoch, at = _get(body, at)
        mark, at = _get(body, at)
        n, at = _get(body, at)
        if n > _MAX_RUNS or n > (len(body) - at) // 2:  # a run takes two bytes at least
            raise TokenError(f"{n} runs in {len(body) - at} bytes")
        runs, end = [], mark
        for _ in range(n):
            gap, at = _get(body, at)
            length, at = _get(body, at)
            runs.append((end + gap, end + gap + length))
            end += gap + length
        if at != len(body):
            raise TokenError(f"{len(body) - at} bytes too many")
        token = cls(body[len(_MAGIC) : fixed].hex(), epoch, mark, tuple(runs))
        token._check()
        return token

    def __str__(self) -> str:
        """The text form."""
        return base64.urlsafe_b64encode(self.to_bytes()).rstrip(b"=").decode()

    @classmethod
    def parse(cls, text: str) -> "Token":
        """Reads the text form. Raises :class:`TokenError` if the text is not the one text of a token."""
        try:
            b = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
        except ValueError as e:
            raise TokenError(f"not base64: {e}") from None
        token = cls.from_bytes(b)
        if str(token) != text:
            raise TokenError("not the one text of a token")
        return token


def read_token(raw: bytes) -> Token:
    """Reads a token in its binary form, with or without the control plane's seal. It does not check the seal, which
    only the control plane can do. Raises :class:`TokenError`.
    """
    return Token.from_bytes(raw[4:-32] if raw[:4] == b"MRT1" else raw)


def _put(b: bytearray, v: int) -> None:
    while v >= 128:
        b.append(v & 127 | 128)
        v >>= 7
    b.append(v)


def _get(b: bytes, at: int) -> tuple[int, int]:
    v = shift = 0
    while True:
        if at >= len(b) or shift > 63:
            raise TokenError("a number is cut or too large")
        c = b[at]
        at += 1
        v |= (c & 127) << shift
        if c < 128:
            break
        shift += 7
    if v >= 1 << 64:
        raise TokenError("a number is too large")
    if shift and not c:
        raise TokenError("a number takes more bytes than it needs")
    return v, at


class Progress:
    """Counts the acknowledged mini-batches of one epoch."""

    def __init__(self, job: str, epoch: int, acknowledged: Ranges | None = None) -> None:
        self.job = job
        self.epoch = epoch
        self.acknowledged = acknowledged.copy() if acknowledged is not None else Ranges()

    @classmethod
    def of(cls, token: Token) -> "Progress":
        """Returns the progress that a token records."""
        p = cls(token.job, token.epoch, Ranges(token.runs))
        p.acknowledged.add(0, token.mark)
        return p

    def add(self, number: int) -> None:
        """Acknowledges a mini-batch. A second acknowledgement changes nothing."""
        self.acknowledged.add(number, number + 1)

    def token(self) -> Token:
        """Returns the token of the mini-batches that are acknowledged now."""
        mark = self.acknowledged.first_missing(0)
        return Token(self.job, self.epoch, mark, tuple(r for r in self.acknowledged if r[0] > mark))
