"""A private process that sends wrong messages: each is a MillraceError, and nothing is left of the process."""

from __future__ import annotations

import os
import pathlib
import re
import stat
import sys
import tempfile
import unittest
from unittest import mock

import millrace
from millrace.errors import MillraceError
from millrace.frame import Name, encode
from millrace.schema import Schema
from millrace.token import Token

from .leaks import Leaks

DIGEST = "ab" * 32
SCHEMA = Schema(label=True, dense=("x",))

# The program in place of millrace: it answers the message open, then runs the code in the environment variable LIE.
LIAR = """\
import json, os, socket, struct, sys
sock = socket.socket(fileno=os.dup(0))
def send(_fds=(), **message):
    body = json.dumps(message).encode()
    socket.send_fds(sock, [struct.pack("<I", len(body)) + body], list(_fds))
def memory(data, size=None):
    fd = os.memfd_create("millrace-minibatch")
    os.write(fd, data)
    os.ftruncate(fd, size or len(data))
    return fd
n, = struct.unpack("<I", sock.recv(4, socket.MSG_WAITALL))
sock.recv(n, socket.MSG_WAITALL)
opened = {"kind": "opened", "version": 1, "digest": "%(digest)s", "schema": json.loads('''%(schema)s'''),
          "manifest": {}, "batch": 2, "epochs": 1, "order": "fastest", "minibatches": 4, "from": 0, "to": 4,
          "token": "%(token)s", "threads": 1, "pid": os.getpid()}
frame = bytes.fromhex("%(frame)s")
mb = {"kind": "minibatch", "generation": 0, "buffer": 0, "bytes": len(frame), "epoch": 0, "number": 1}
buffer = {"kind": "buffer", "buffer": 0, "bytes": len(frame), "limit": 1 << 20}
exec(os.environ["LIE"])
while sock.recv(1 << 16):
    pass
"""

GOOD = "send(**opened); send([memory(frame)], **buffer); send(**mb)"

# By name: what the program does in place of GOOD, and what the error for the first mini-batch says.
LIES: dict[str, tuple[str, str]] = {
    "an answer of another kind": ("send(kind='sought')", "answered 'sought'"),
    "an answer without a digest": ("del opened['digest']; send(**opened)", "makes no sense: KeyError('digest')"),
    "a schema of nothing": ("send(**{**opened, 'schema': {}})", "nothing to train on"),
    "epochs below 0": ("send(**{**opened, 'epochs': -1})", "epochs: '-1'"),
    "a token of nothing": ("send(**{**opened, 'token': 'x'})", "not base64"),
    "an owned range of text": ("send(**{**opened, 'to': 'x'})", "to: 'x'"),
    "the end": ("sys.exit(0)", "ended with status 0"),
    "the end after opened": ("send(**opened); sys.exit(0)", "ended with status 0"),
    "a length beyond the most": (
        "send(**opened); sock.sendall(b'\\xff' * 4)",
        "a message of 4294967295 bytes, at most",
    ),
    "no JSON": ("send(**opened); sock.sendall(struct.pack('<I', 3) + b'abc')", "what is not a message: Expecting value"),
    "no kind": ("send(**opened); send(x=1)", 'what is not a message: b\'{"x": 1}\''),
    "an unknown kind": ("send(**opened); send(kind='hello')", "sent 'hello'"),
    "a kind of another type": ("send(**opened); send(kind=['minibatch'])", "what is not a message"),
    "a mini-batch without a buffer": ("send(**opened); send(**mb)", "of buffer 0, which has 0"),
    "a buffer without its descriptor": ("send(**opened); send(**buffer)", "a buffer without its descriptor"),
    "a buffer of another size": (
        "send(**opened); send([memory(frame, 1 << 16)], **buffer)",
        "sent buffer 0 of N bytes, which is not so",
    ),
    "a buffer that is a pipe": (
        "send(**opened); send([os.pipe()[0]], **buffer)",
        "sent buffer 0 of N bytes, which is not so",
    ),
    "a buffer that comes twice": (
        "send(**opened); send([memory(frame)], **buffer); send([memory(frame)], **buffer)",
        "sent buffer 0 of N bytes, which is not so",
    ),
    "more bytes than the buffer": (
        GOOD.replace("send(**mb)", "send(**{**mb, 'bytes': 1 << 30})"),
        "names 1073741824 bytes of buffer 0",
    ),
    "no byte": (GOOD.replace("send(**mb)", "send(**{**mb, 'bytes': 0})"), "names 0 bytes of buffer 0"),
    "a part of the frame": (
        GOOD.replace("send(**mb)", "send(**{**mb, 'bytes': len(frame) - 4})"),
        "12 bytes of data, the header says 16",
    ),
    "another number": (GOOD.replace("send(**mb)", "send(**{**mb, 'number': 2})"), "/0/1 came where 0/2 was announced"),
    "a number of another rank": (
        GOOD.replace("send(**opened)", "send(**{**opened, 'to': 1})"),
        "/0/1 came where 0/1 was announced",
    ),
    "another epoch": (GOOD.replace("send(**mb)", "send(**{**mb, 'epoch': 1})"), "/0/1 came where 1/1 was announced"),
    "a number that is text": (GOOD.replace("send(**mb)", "send(**{**mb, 'number': 'one'})"), "number: 'one'"),
    "bytes that are no frame": ("frame = bytes(len(frame)); " + GOOD, "data starts at 8"),
    "another schema": (
        GOOD.replace("send(**opened)", "opened['schema']['Dense'] = ['y']; send(**opened)"),
        "has another schema than the job",
    ),
    "too many descriptors": (
        "send(**opened); send([memory(frame) for _ in range(40)], **buffer)",
        "too many descriptors at once",
    ),
}


class Hostile(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        frame = encode(Name(DIGEST, 0, 1), SCHEMA, 2, {"dense": bytes(8), "label": bytes(8)})
        program = pathlib.Path(folder.name) / "millrace"
        values = {"digest": DIGEST, "schema": SCHEMA.to_json(), "token": str(Token(DIGEST)), "frame": frame.hex()}
        program.write_text(f"#!{sys.executable}\n" + LIAR % values)
        program.chmod(program.stat().st_mode | stat.S_IXUSR)
        self.program = str(program)

    def first(self, lie: str) -> int:
        with mock.patch.dict(os.environ, {"MILLRACE_BIN": self.program, "LIE": lie}):
            with millrace.open("x", "rm1", tensors="views") as job:
                return next(iter(job)).name.number

    def test_the_truth(self) -> None:
        self.assertEqual(self.first(GOOD), 1)

    def test_lies(self) -> None:
        leaks = Leaks(self)
        for name, (lie, said) in LIES.items():
            with self.subTest(name):
                with self.assertRaises(MillraceError) as caught:
                    self.first(lie)
                self.assertIn(said, re.sub("[0-9]+ bytes, which", "N bytes, which", str(caught.exception)))
                del caught
                leaks.check(name)

    def test_leaks_are_seen(self) -> None:
        """The counters know a private process while it runs, its memory and its socket."""
        leaks = Leaks(self)
        with mock.patch.dict(os.environ, {"MILLRACE_BIN": self.program, "LIE": GOOD}):
            with millrace.open("x", "rm1", tensors="views") as job:
                kept = next(iter(job))
                left = leaks.count() - leaks.before
                self.assertEqual(left["processes"], 1)
                for kind in ("memfds", "sockets", "mappings of mini-batches"):
                    self.assertGreater(left[kind], 0, kind)
        self.assertGreater((leaks.count() - leaks.before)["mappings of mini-batches"], 0, "a mini-batch is kept")
        del kept
        leaks.check()


if __name__ == "__main__":
    unittest.main()
