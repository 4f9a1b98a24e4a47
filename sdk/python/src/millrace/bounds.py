"""Numbers and documents from a peer, bounded where they are read.

A peer may be broken or hostile: a count of 10^18 must not become a loop or memory, a time that is "nan" must not become
a wait without end. Each function here raises a :class:`ValueError` that quotes the value, or takes a default where one
makes sense.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any

__all__ = ["MAX_COUNT", "document", "integer", "real", "read_all", "seconds"]

MAX_COUNT = (1 << 64) - 1  # of protobuf's uint64: ids, epochs, numbers of mini-batches
_CHUNK = 1 << 20


def integer(value: Any, what: str, most: int = MAX_COUNT) -> int:
    """Returns a whole number from 0 to ``most``, which JSON holds as a number or, for protobuf's 64-bit numbers, as
    text. None gives 0. Raises ValueError for any other value.
    """
    if value is None:
        return 0
    if isinstance(value, str) and re.fullmatch("[0-9]{1,20}", value, re.ASCII):
        value = int(value)
    if type(value) is not int or not 0 <= value <= most:
        raise ValueError(f"{what}: {str(value)[:40]!r} where a number to {most} belongs")
    return value


def real(value: Any, what: str, most: float) -> float:
    """Returns a number from 0 to ``most``. Raises ValueError for any other value, also for text: protobuf's JSON writes
    NaN and infinities as text ("NaN").
    """
    if type(value) not in (int, float) or not 0 <= value <= most:  # false for NaN
        raise ValueError(f"{what}: {str(value)[:40]!r} where a number to {most} belongs")
    return float(value)


def seconds(text: Any, default: float, least: float, most: float) -> float:
    """Returns the seconds in a header, clamped to [least, most], or ``default`` if the header is absent or is not a
    plain decimal number.
    """
    if not isinstance(text, str) or not re.fullmatch(r"[0-9]{1,9}(\.[0-9]{1,9})?", text.strip(), re.ASCII):
        return default
    value = float(text)
    return min(max(value, least), most) if math.isfinite(value) else default


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a number of JSON")


def document(data: bytes | str) -> Any:
    """Reads JSON. Raises ValueError if the text is not JSON, holds NaN or Infinity, or is nested too deeply."""
    try:
        return json.loads(data, parse_constant=_no_constant)
    except RecursionError:
        raise ValueError("JSON that is nested too deeply") from None


def read_all(response: Any, most: int) -> bytes:
    """Returns the body of an answer, of at most ``most`` bytes. Memory is allocated as bytes come, not as the header
    claims. Raises OSError if the body is longer, or shorter than the header says.
    """
    if response.length is not None and response.length > most:
        raise OSError(f"an answer of {response.length} bytes, want {most} at most")
    parts, total = [], 0
    while True:
        part = response.read(min(_CHUNK, most + 1 - total))
        if not part:
            break
        parts.append(part)
        total += len(part)
        if total > most:
            raise OSError(f"an answer of more than {most} bytes")
    if response.length:
        raise OSError(f"an answer was cut after {total} bytes, {response.length} are missing")
    return b"".join(parts)
