"""Hashes of text by NumPy, all values of one length at a time, for the comparison with pyarrow and NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

__all__ = ["hash_text"]

Words = NDArray[Any]  # uint64 [n], or uint32 [n] for murmur3_32


def hash_text(text: pa.Array, function: str) -> NDArray[Any]:
    """Returns the int64 ids of texts by ``hash_bytes``'s function of that name. Each different text is hashed once."""
    if not len(text):
        return np.zeros(0, np.int64)
    encoded = text.dictionary_encode()
    different = encoded.dictionary
    size = np.int64 if pa.types.is_large_string(different.type) else np.int32
    offsets = np.frombuffer(different.buffers()[1], size)[different.offset : different.offset + len(different) + 1]
    data = np.frombuffer(different.buffers()[2] or b"", np.uint8)
    starts, lengths = offsets[:-1].astype(np.int64), np.diff(offsets)
    ids = np.empty(len(different), np.int64)
    hashed = {"xxh3": _xxh3, "murmur3_32": _murmur3, "farmhash64": _farmhash}[function]
    with np.errstate(over="ignore"):
        for n in np.unique(lengths):
            which = np.flatnonzero(lengths == n)
            ids[which] = hashed(data[starts[which][:, None] + np.arange(n)])
    of_rows: NDArray[Any] = ids[encoded.indices.to_numpy(zero_copy_only=False)]
    return of_rows


def _word(rows: NDArray[Any], at: int, kind: str = "<u8") -> Words:
    """The numbers that lie at a place of each row."""
    return np.ascontiguousarray(rows[:, at : at + np.dtype(kind).itemsize]).view(kind)[:, 0]


def _u(x: int) -> np.uint64:
    return np.uint64(x & (1 << 64) - 1)


def _left(x: Words, by: int) -> Words:
    bits = 8 * x.dtype.itemsize
    kind = x.dtype.type
    turned: Words = (x << kind(by)) | (x >> kind(bits - by))
    return turned


def _murmur3(rows: NDArray[Any]) -> NDArray[Any]:
    count, n = rows.shape
    h = np.full(count, 42, np.uint32)
    words = [_word(rows, at, "<u4") for at in range(0, n - n % 4, 4)]
    words += [rows[:, at].view(np.int8).astype(np.int32).view(np.uint32) for at in range(n - n % 4, n)]
    for word in words:
        h ^= _left(word * np.uint32(0xCC9E2D51), 15) * np.uint32(0x1B873593)
        h = _left(h, 13) * np.uint32(5) + np.uint32(0xE6546B64)
    h ^= np.uint32(n)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):
        h = (h ^ (h >> np.uint32(shift))) * np.uint32(factor)
    h ^= h >> np.uint32(16)
    return h.view(np.int32).astype(np.int64)


_K0, _K1, _K2 = 0xC3A5C85C97CB3127, 0xB492B66FBE98F273, 0x9AE16A3B2F90404F


def _right(x: Words, by: int) -> Words:
    return _left(x, 64 - by)


def _shifted(x: Words) -> Words:
    mixed: Words = x ^ (x >> _u(47))
    return mixed


def _joined(u: Words, v: Words, factor: Any) -> Words:
    joined: Words = _shifted((v ^ _shifted((u ^ v) * factor)) * factor) * factor
    return joined


def _farmhash(rows: NDArray[Any]) -> NDArray[Any]:
    count, n = rows.shape
    factor = _u(_K2 + 2 * n)
    if n == 0:
        h = np.full(count, _K2, np.uint64)
    elif n < 4:
        y = rows[:, 0].astype(np.uint64) + (rows[:, n >> 1].astype(np.uint64) << _u(8))
        z = _u(n) + (rows[:, n - 1].astype(np.uint64) << _u(2))
        h = _shifted(y * _u(_K2) ^ z * _u(_K0)) * _u(_K2)
    elif n < 8:
        first, last = (_word(rows, at, "<u4").astype(np.uint64) for at in (0, n - 4))
        h = _joined(_u(n) + (first << _u(3)), last, factor)
    elif n <= 16:
        a, b = _word(rows, 0) + _u(_K2), _word(rows, n - 8)
        h = _joined(_right(b, 37) * factor + a, (_right(a, 25) + b) * factor, factor)
    elif n <= 64:
        a, b = _word(rows, 0) * _u(_K1 if n <= 32 else _K2), _word(rows, 8)
        c, d = _word(rows, n - 8) * factor, _word(rows, n - 16) * _u(_K2)
        y, z = _right(a + b, 43) + _right(c, 30) + d, a + _right(b + _u(_K2), 18) + c
        h = _joined(y, z, factor)
        if n > 32:
            e, f = _word(rows, 16) * factor, _word(rows, 24)
            g, i = (y + _word(rows, n - 32)) * factor, (h + _word(rows, n - 24)) * factor
            h = _joined(_right(e + f, 43) + _right(g, 30) + i, e + _right(f + a, 18) + g, factor)
    else:
        h = _long_farmhash(rows)
    return h.view(np.int64)


def _long_farmhash(rows: NDArray[Any]) -> Words:
    count, n = rows.shape
    v0, v1, w0, w1 = (np.zeros(count, np.uint64) for _ in range(4))
    x = _word(rows, 0) + _u(81 * _K2)
    y = np.full(count, _u(81 * _K1 + 113))
    z = _shifted(y * _u(_K2) + _u(113)) * _u(_K2)

    def weak(at: int, a: Words, b: Words) -> tuple[Words, Words]:
        a = a + _word(rows, at)
        b = _right(b + a + _word(rows, at + 24), 21)
        c = a + _word(rows, at + 8) + _word(rows, at + 16)
        return c + _word(rows, at + 24), b + _right(c, 44) + a

    places = [*range(0, n - 64, 64), n - 64]
    factor: Any = _u(_K1)
    more = _u(1)
    for at in places:
        if at == n - 64:
            factor, more = _u(_K1) + ((z & _u(255)) << _u(1)), _u(9)
            w0 = w0 + _u((n - 1) & 63)
            v0 = v0 + w0
            w0 = w0 + v0
        x = _right(x + y + v0 + _word(rows, at + 8), 37) * factor ^ w1 * more
        y = _right(y + v1 + _word(rows, at + 48), 42) * factor + v0 * more + _word(rows, at + 40)
        z = _right(z + w0, 33) * factor
        v0, v1 = weak(at, v1 * factor, x + w0)
        w0, w1 = weak(at + 32, z + w1, y + _word(rows, at + 16))
        x, z = z, x
    return _joined(_joined(v0, w0, factor) + _shifted(y) * _u(_K0) + z, _joined(v1, w1, factor) + x, factor)


_SECRET = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_PRIMES32 = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_PRIMES = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)


def _key(at: int) -> np.uint64:
    return _u(int.from_bytes(_SECRET[at : at + 8], "little"))


def _folded(a: Words, b: Words) -> Words:
    """The exclusive or of the halves of the products of 128 bits."""
    half, mask = _u(32), _u(0xFFFFFFFF)
    a0, a1, b0, b1 = a & mask, a >> half, b & mask, b >> half
    low = a0 * b0
    middle = a1 * b0 + (low >> half)
    other = a0 * b1 + (middle & mask)
    high = a1 * b1 + (middle >> half) + (other >> half)
    folded: Words = high ^ (a * b)
    return folded


def _finished(h: Words) -> Words:
    h = (h ^ (h >> _u(37))) * _u(0x165667919E3779F9)
    finished: Words = h ^ (h >> _u(32))
    return finished


def _finished_short(h: Words) -> Words:
    h = (h ^ (h >> _u(33))) * _u(_PRIMES[1])
    h = (h ^ (h >> _u(29))) * _u(_PRIMES[2])
    finished: Words = h ^ (h >> _u(32))
    return finished


def _xxh3(rows: NDArray[Any]) -> NDArray[Any]:
    count, n = rows.shape

    def mixed(at: int, key: int) -> Words:
        return _folded(_word(rows, at) ^ _key(key), _word(rows, at + 8) ^ _key(key + 8))

    if n == 0:
        h = _finished_short(np.full(count, _key(56) ^ _key(64)))
    elif n <= 3:
        first, middle, last = (rows[:, at].astype(np.uint64) for at in (0, n >> 1, n - 1))
        word = (first << _u(16)) | (middle << _u(24)) | last | _u(n << 8)
        h = _finished_short(word ^ (_key(0) & _u(0xFFFFFFFF)) ^ (_key(0) >> _u(32)))
    elif n <= 8:
        first, last = (_word(rows, at, "<u4").astype(np.uint64) for at in (0, n - 4))
        h = (last | (first << _u(32))) ^ _key(8) ^ _key(16)
        h = (h ^ _left(h, 49) ^ _left(h, 24)) * _u(0x9FB21C651E98DF25)
        h = (h ^ ((h >> _u(35)) + _u(n))) * _u(0x9FB21C651E98DF25)
        h = h ^ (h >> _u(28))
    elif n <= 16:
        low, high = _word(rows, 0) ^ _key(24) ^ _key(32), _word(rows, n - 8) ^ _key(40) ^ _key(48)
        h = _finished(_u(n) + low.byteswap() + high + _folded(low, high))
    elif n <= 128:
        h = np.full(count, _u(n * _PRIMES[0]))
        for pair in range((n + 31) // 32):
            h = h + mixed(16 * pair, 32 * pair) + mixed(n - 16 * (pair + 1), 32 * pair + 16)
        h = _finished(h)
    elif n <= 240:
        h = np.full(count, _u(n * _PRIMES[0]))
        for i in range(8):
            h = h + mixed(16 * i, 16 * i)
        h = _finished(h)
        for i in range(8, n // 16):
            h = h + mixed(16 * i, 16 * (i - 8) + 3)
        h = _finished(h + mixed(n - 16, 119))
    else:
        h = _long_xxh3(rows)
    return h.view(np.int64)


def _long_xxh3(rows: NDArray[Any]) -> Words:
    count, n = rows.shape
    begin = (_PRIMES32[2], *_PRIMES[:4], _PRIMES32[1], _PRIMES[4], _PRIMES32[0])
    lanes = [np.full(count, _u(x)) for x in begin]

    def take(at: int, key: int) -> None:
        for i in range(8):
            word = _word(rows, at + 8 * i)
            mixed = word ^ _key(key + 8 * i)
            lanes[i ^ 1] = lanes[i ^ 1] + word
            lanes[i] = lanes[i] + (mixed & _u(0xFFFFFFFF)) * (mixed >> _u(32))

    for stripe in range((n - 1) // 64):
        take(64 * stripe, 8 * (stripe % 16))
        if stripe % 16 == 15:
            for i, lane in enumerate(lanes):
                lanes[i] = (lane ^ (lane >> _u(47)) ^ _key(128 + 8 * i)) * _u(_PRIMES32[0])
    take(n - 64, 121)
    h = np.full(count, _u(n * _PRIMES[0]))
    for i in range(0, 8, 2):
        h = h + _folded(lanes[i] ^ _key(11 + 8 * i), lanes[i + 1] ^ _key(19 + 8 * i))
    return _finished(h)
