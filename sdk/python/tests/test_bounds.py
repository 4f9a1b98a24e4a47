"""Numbers and answers from a hostile peer."""

from __future__ import annotations

import contextlib
import json
import random
import re
import threading
import time
import unittest
from typing import Any, Callable, Iterator
from unittest import mock

from millrace import nodes as nodes_module
from millrace.bounds import MAX_COUNT, document, integer, real, seconds
from millrace.control import Control, _details, _leader
from millrace.errors import MillraceError, SchemaError, ServiceError, UnreachableError
from millrace.intake import Lease, Work
from millrace.nodes import Failed, Nodes
from millrace.schema import Schema
from millrace.wire import _CONTROL, _NODE

from .fake import JOB, SCHEMA, Serving, b64, content


class Numbers(unittest.TestCase):
    def test_seconds(self) -> None:
        for text in (
            "nan",
            "NaN",
            "inf",
            "-inf",
            "Infinity",
            "-1",
            "1e9",
            "0x10",
            "1_0",
            "",
            "abc",
            None,
            "9" * 400,
            "1.",
            ".5",
            "１",
        ):
            with self.subTest(text):
                self.assertEqual(seconds(text, 0.1, 0.02, 5.0), 0.1)
        for text, want in {"0": 0.02, "0.001": 0.02, "1": 1.0, " 2.5 ": 2.5, "999999999": 5.0}.items():
            with self.subTest(text):
                self.assertEqual(seconds(text, 0.1, 0.02, 5.0), want)

    def test_integer(self) -> None:
        for value in (
            -1,
            1.0,
            True,
            "-1",
            "1.0",
            "",
            " 1",
            "１",
            MAX_COUNT + 1,
            str(MAX_COUNT + 1),
            "1" * 5000,
            float("nan"),
            [],
            {},
        ):
            with self.subTest(str(value)[:20]), self.assertRaises(ValueError):
                integer(value, "x")
        self.assertEqual(
            [integer(v, "x") for v in (None, 0, "7", MAX_COUNT, str(MAX_COUNT))], [0, 0, 7, MAX_COUNT, MAX_COUNT]
        )
        self.assertEqual(integer(5, "x", 5), 5)
        with self.assertRaisesRegex(ValueError, "x: '6' where a number to 5 belongs"):
            integer(6, "x", 5)

    def test_real(self) -> None:
        for value in (float("nan"), float("inf"), -0.5, 2e6, "1", True, None):
            with self.subTest(value), self.assertRaises(ValueError):
                real(value, "x", 1e6)
        self.assertEqual([real(v, "x", 1e6) for v in (0, 1e6, 0.5)], [0.0, 1e6, 0.5])

    def test_documents(self) -> None:
        for text in ("NaN", '{"a": Infinity}', "[" * 200_000, '{"a":' * 200_000, "1" * 5000, "", "{", b"\xff\xfe\xfd"):
            with self.subTest(text[:20]), self.assertRaises(ValueError):
                document(text)
        self.assertEqual(document('{"a": [1, 2.5]}'), {"a": [1, 2.5]})
        with self.assertRaises(SchemaError):
            Schema.from_json("[" * 200_000)
        with self.assertRaises(SchemaError):
            Schema.from_json('{"Keys": [{"Name": "a", "NumEmbeddings": 1e400}]}')
        with self.assertRaises(SchemaError):
            Schema.from_json('{"Keys": [{"Name": "a", "NumEmbeddings": true}]}')

    def test_leases(self) -> None:
        good = {
            "lease": "7",
            "epoch": "1",
            "split": 2,
            "from": "32",
            "to": "48",
            "node": "n",
            "drive": "d",
            "urls": ["http://h:1"],
            "ticket": "t",
        }
        self.assertEqual((Lease.of(good).first, Lease.of(good).end, Lease.of(good).ticket), (32, 48, "t"))
        for field, value in {
            "lease": -1,
            "epoch": "x",
            "split": 1.5,
            "from": "1" * 5000,
            "to": 1 << 64,
            "urls": "http://h:1",
        }.items():
            with self.subTest(field), self.assertRaises(ValueError):
                Lease.of({**good, field: value})
        for urls in ([7], ["u"] * 1000, {"a": 1}):
            with self.subTest(str(urls)[:20]), self.assertRaises(ValueError):
                Lease.of({**good, "urls": urls})

    def test_leader_of_a_long_number(self) -> None:
        begun = time.monotonic()
        self.assertEqual(_leader(_details([{"type": "x.NotLeader", "value": b64(b"\x0a" + b"\xff" * (4 << 20))}])), "")
        self.assertLess(time.monotonic() - begun, 60)  # it took quadratic time: hours
        self.assertEqual(_leader(_details([{"type": "x.NotLeader", "value": b64(b"\x0a\x05abcde")}])), "abcde")

    def test_server_identities(self) -> None:
        for form, uri in ((_NODE, "spiffe://millrace/node/n0"), (_CONTROL, "spiffe://millrace/control/m-1.example")):
            self.assertTrue(re.fullmatch(form, uri, re.ASCII))
        self.assertFalse(re.fullmatch(_CONTROL, "spiffe://millrace/node/n0", re.ASCII))
        self.assertFalse(re.fullmatch(_NODE, "spiffe://millrace/control/m0", re.ASCII))
        for uri in (
            "SPIFFE://millrace/node/n0", "spiffe://millrace/node/", "spiffe://millrace/node/n0/", "spiffe://millrace/node//n0", "spiffe://millrace/node/N0",
            "spiffe://millrace/node/n0?x", "spiffe://millrace/node/%6e0", "spiffe://millrace/launcher/x", "spiffe://millrace:1/node/n0", "spiffe://millrace/node/n0\n",
        ):  # fmt: skip
            with self.subTest(uri):
                self.assertFalse(re.fullmatch(_NODE, uri, re.ASCII))
                self.assertFalse(re.fullmatch(_CONTROL, uri.replace("node", "control"), re.ASCII))

    def test_anything(self) -> None:
        """Parsers of a peer's messages raise their documented exceptions, and no other."""
        r = random.Random(7)
        atoms: list[Any] = [
            None,
            True,
            -1,
            0,
            1,
            1 << 70,
            1.5,
            float("nan"),
            "",
            "1",
            "x",
            "NaN",
            "1" * 30,
            [],
            {},
            ["a"],
            {"a": 1},
            [[]],
        ]
        fields = [
            "lease",
            "epoch",
            "split",
            "from",
            "to",
            "node",
            "drive",
            "urls",
            "ticket",
            "IDs",
            "Label",
            "Dense",
            "Keys",
            "Weights",
            "type",
            "value",
        ]
        for _ in range(5000):
            doc = {f: r.choice(atoms) for f in r.sample(fields, r.randrange(len(fields)))}
            with contextlib.suppress(ValueError):
                lease = Lease.of(doc)
                self.assertTrue(0 <= lease.first <= MAX_COUNT and 0 <= lease.end <= MAX_COUNT)
            with contextlib.suppress(SchemaError):
                Schema.from_json(json.dumps(doc))
            _leader(_details([doc]))
            text = "".join(r.choice("0123456789.eEnaif+-_ ") for _ in range(r.randrange(8)))
            self.assertTrue(0.02 <= seconds(text, 0.1, 0.02, 5.0) <= 5.0, text)


@contextlib.contextmanager
def hostile(handle: Callable[[Any], None]) -> Iterator[tuple[Nodes, Work, Serving]]:
    """Yields a node whose answers ``handle`` makes, and the client's side of it."""
    server = Serving(handle)
    n = Nodes(None, None, 1.0)
    try:
        yield n, Work(Lease(1, 0, 0, 0, 16, "n0", "d0", (server.url,)), 3), server
    finally:
        n.close()
        server.stop()


def held(n: Nodes) -> int:
    """Returns the bytes of memory that the pool has."""
    return sum(len(m) for m in n.pool._all)


class HostileNodes(unittest.TestCase):
    def test_retry_after(self) -> None:
        """A node that always answers that it is busy is given up when the timeout is over, whatever its Retry-After
        is.
        """
        for said in ("nan", "inf", "-inf", "1e308", "-5", "x" * 5000, "0"):
            with (
                self.subTest(said[:10]),
                hostile(lambda h: h.refuse(429, "resource_exhausted", "busy", Retry_After=said)) as (n, work, _),
            ):
                ended: list[BaseException] = []

                def run() -> None:
                    try:
                        n.fetch(JOB, SCHEMA, work)
                    except BaseException as e:
                        ended.append(e)

                t = threading.Thread(target=run, daemon=True)
                t.start()
                t.join(60)
                self.assertFalse(t.is_alive(), "the fetcher hangs")
                self.assertIsInstance(ended[0], Failed)
                self.assertEqual(ended[0].code, "resource_exhausted")

    def test_length_that_is_only_claimed(self) -> None:
        def claims(h: Any) -> None:
            h.send_response(200)
            h.send_header("Content-Type", "application/vnd.millrace.minibatch")
            h.send_header("Content-Length", str(2 << 30))
            h.end_headers()
            h.wfile.write(b"x" * 1000)
            h.close_connection = True

        with hostile(claims) as (n, work, _):
            with self.assertRaisesRegex(Failed, "sent 1000 of|sent 0 of"):
                n.fetch(JOB, SCHEMA, work)
            self.assertLess(held(n), 32 << 20)

    def test_lengths_that_cannot_be(self) -> None:
        for length in ("-1", "nan", "9" * 5000, str((2 << 30) + 1), "7", ""):

            def answers(h: Any) -> None:
                h.send_response(200)
                h.send_header("Content-Type", "application/vnd.millrace.minibatch")
                h.send_header("Content-Length", length)
                h.end_headers()
                h.close_connection = True

            with self.subTest(length[:10]), hostile(answers) as (n, work, _), self.assertRaises(Failed):
                n.fetch(JOB, SCHEMA, work)
            self.assertEqual(held(n), 0)

    def test_refusals(self) -> None:
        bodies = [
            b"[" * 200_000,
            b'{"code": NaN}',
            b"x" * (2 << 20),
            b"",
            b'{"code": {"a": 1}}',
            b"[]",
            b"null",
            b"\xff",
        ]
        for body in bodies:
            with (
                self.subTest(body[:10]),
                hostile(lambda h: h.answer(503, body)) as (n, work, _),
                self.assertRaises(Failed),
            ):
                n.fetch(JOB, SCHEMA, work)

    def test_large_frames_come_whole(self) -> None:
        """Frames that are larger than the first allocation come whole, in steps; the second one is read in one step."""
        frame = content(0, 3, rows=4096)
        with (
            mock.patch.object(nodes_module, "_CREDIBLE", 1000),
            hostile(lambda h: h.answer(200, frame)) as (n, work, _),
        ):
            for _ in range(2):
                batch = n.fetch(JOB, SCHEMA, work)
                self.assertEqual(batch.name, (JOB, 0, 3))
                self.assertEqual(bytes(batch.data), frame[-len(batch.data) :])
            made = n.pool.made
            n.fetch(JOB, SCHEMA, work)
            self.assertLessEqual(n.pool.made, made + 1)


class HostileControl(unittest.TestCase):
    def test_answers(self) -> None:
        for status, body in (
            (200, b"[" * 200_000),
            (200, b'{"a": NaN}'),
            (200, b"[]"),
            (500, b"{" * 100),
            (503, b"1" * 5000),
            (200, b""),
        ):
            with self.subTest(body[:10]):
                server = Serving(lambda h: h.answer(status, body, Content_Type="application/json"))
                with Control(server.url, patience=0.2) as c, self.assertRaises((ServiceError, UnreachableError)):
                    c.job("x")
                server.stop()

    def test_length_that_is_only_claimed(self) -> None:
        def claims(h: Any) -> None:
            h.send_response(200)
            h.send_header("Content-Length", "250000000")
            h.end_headers()
            h.wfile.write(b"{}")
            h.close_connection = True

        server = Serving(claims)
        with Control(server.url, patience=0.2) as c, self.assertRaises(MillraceError):
            c.job("x")
        server.stop()


if __name__ == "__main__":
    unittest.main()
