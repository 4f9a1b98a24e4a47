"""Tokens and ranges, compared with brute force and with bytes that the Go side wrote."""

from __future__ import annotations

import random
import struct
import unittest

from millrace import crc32c
from millrace.errors import TokenError
from millrace.token import Progress, Ranges, Token

JOB = "0123456789abcdef" * 4


class RangesTest(unittest.TestCase):
    def test_against_a_set_of_numbers(self) -> None:
        r = random.Random(1)
        for _ in range(200):
            mine, brute = Ranges(), set()
            for _ in range(r.randrange(20)):
                a = r.randrange(60)
                b = a + r.randrange(8)
                mine.add(a, b)
                brute |= set(range(a, b))
            self.assertEqual({n for a, b in mine for n in range(a, b)}, brute)
            self.assertEqual(len(mine), len(brute))
            flat = [x for ab in mine for x in ab]
            self.assertEqual(flat, sorted(set(flat)), "ranges neither touch nor are empty")
            for n in range(70):
                self.assertEqual(n in mine, n in brute)
                missing = next(m for m in range(n, 200) if m not in brute)
                self.assertEqual(mine.first_missing(n), missing)
            other = Ranges([(a, a + 3) for a in range(r.randrange(9), 60, 7)])
            holes = {n for a, b in other for n in range(a, b)}
            self.assertEqual({n for a, b in mine.minus(other) for n in range(a, b)}, brute - holes)
            self.assertEqual(mine.copy(), mine)

    def test_emptiness(self) -> None:
        self.assertFalse(Ranges())
        self.assertFalse(Ranges([(3, 3)]))
        self.assertTrue(Ranges([(3, 4)]))


class TokenTest(unittest.TestCase):
    # Written by sdk/dataset's Token.MarshalText.
    def test_golden(self) -> None:
        t = Token(JOB, 3, 300, ((302, 310), (1000, 1001)))
        self.assertEqual(t.to_bytes().hex(), GOLDEN_HEX)
        self.assertEqual(Token.from_bytes(bytes.fromhex(GOLDEN_HEX)), t)
        self.assertEqual(str(t), GOLDEN_TEXT)

    def test_round_trips(self) -> None:
        for t in (Token(JOB), Token(JOB, (1 << 64) - 1, 1 << 62), Token(JOB, 1, 0, ((1, 2), (5, 900)))):
            self.assertEqual(Token.from_bytes(t.to_bytes()), t)
            self.assertEqual(Token.parse(str(t)), t)

    def test_refusals(self) -> None:
        good = Token(JOB, 3, 300, ((302, 310),)).to_bytes()

        def sealed(body: bytes) -> bytes:
            return body + struct.pack("<I", crc32c.fold(body))

        head = b"MRCT\x02" + bytes.fromhex(JOB)
        for what, b in {
            "nothing": b"",
            "cut": good[:-1],
            "longer": good + b"\0",
            "another magic": b"X" + good[1:],
            "the former version": sealed(b"MRCT\x01" + good[5:-4]),
            "another version": sealed(b"MRCT\x03" + good[5:-4]),
            "a flipped bit": good[:20] + bytes([good[20] ^ 1]) + good[21:],
            "bytes after the runs": sealed(good[:-4] + b"\0"),
            "more runs than bytes": sealed(head + b"\x00\x00\xff\xff\x3f"),
            "an empty run": sealed(head + b"\x00\x00\x01\x01\x00"),
            "a run that touches": sealed(head + b"\x00\x00\x01\x00\x01"),
            "a number in too many bytes": sealed(head + b"\x80\x00\x00\x00"),
            "a number too large": sealed(head + b"\xff" * 9 + b"\x02\x00\x00"),
            "a number that never ends": sealed(head + b"\xff" * 12 + b"\x00"),
            "a run past the last number": sealed(head + b"\x00" + b"\xff" * 9 + b"\x01" + b"\x01\x01\x01"),
        }.items():
            with self.subTest(what), self.assertRaises(TokenError):
                Token.from_bytes(b)
        for text in ("!", str(Token(JOB)) + "=", str(Token(JOB)) + "\n", "AAAA"):
            with self.subTest(text), self.assertRaises(TokenError):
                Token.parse(text)
        for t in (Token("ab"), Token(JOB, -1), Token(JOB, 0, 5, ((5, 6),)), Token(JOB, 0, 5, ((7, 7),))):
            with self.subTest(t), self.assertRaises(TokenError):
                t.to_bytes()

    def test_progress(self) -> None:
        p = Progress(JOB, 2)
        for n in (0, 1, 5, 3, 4, 1):
            p.add(n)
        self.assertEqual(p.token(), Token(JOB, 2, 2, ((3, 6),)))
        p = Progress.of(p.token())
        p.add(2)
        self.assertEqual(p.token(), Token(JOB, 2, 6))


GOLDEN_HEX = "4d524354020123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef03ac02020208b205010b3c6713"
GOLDEN_TEXT = "TVJDVAIBI0VniavN7wEjRWeJq83vASNFZ4mrze8BI0VniavN7wOsAgICCLIFAQs8ZxM"

if __name__ == "__main__":
    unittest.main()
