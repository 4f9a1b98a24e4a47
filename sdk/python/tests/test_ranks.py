"""The rank of a process, from arguments and variables, and messages from the private process that are wrong or cut."""

from __future__ import annotations

import json
import os
import random
import socket
import struct
import threading
import unittest
from unittest import mock

from millrace import ranks as ranks_module
from millrace.channel import MAX_MESSAGE, Channel, ChannelError
from millrace.errors import RanksError
from millrace.private import failure
from millrace.ranks import Ranks, check_one_machine, find_ranks


class FindRanks(unittest.TestCase):
    def setUp(self) -> None:
        # A test before this one may have left a process group.
        patch = mock.patch.object(ranks_module, "_process_group", lambda: None)
        patch.start()
        self.addCleanup(patch.stop)

    def test_places(self) -> None:
        torchrun = {"RANK": "5", "WORLD_SIZE": "8", "LOCAL_RANK": "1", "LOCAL_WORLD_SIZE": "4"}
        mpirun = {
            "OMPI_COMM_WORLD_RANK": "1",
            "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_LOCAL_RANK": "1",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
        }
        for arguments, env, want in (
            ((None, None), {}, Ranks()),
            ((None, None), {"WORLD_SIZE": "1"}, Ranks()),
            ((None, None), torchrun, Ranks(5, 8, 1, 4)),
            ((None, None), mpirun, Ranks(1, 2, 1, 2)),
            ((None, None), {"RANK": "1", "WORLD_SIZE": "3"}, Ranks(1, 3, 1, 3)),
            ((2, 3), {}, Ranks(2, 3, 2, 3)),
            ((0, 1), torchrun, Ranks(0, 1)),
            ((6, 8), torchrun, Ranks(6, 8, 1, 4)),
            ((None, None), {"RANK": "", "WORLD_SIZE": ""}, Ranks()),
        ):
            with self.subTest(arguments=arguments, env=env):
                self.assertEqual(find_ranks(*arguments, env=env), want)

    def test_contradictions_name_the_variable(self) -> None:
        for arguments, env, variable in (
            ((1, None), {}, "world_size"),
            ((None, 2), {}, "rank"),
            ((2, 2), {}, "rank"),
            ((-1, 2), {}, "rank"),
            ((0, 0), {}, "world_size"),
            ((True, 2), {}, "rank"),
            ((0, (1 << 16) + 1), {}, "world_size"),
            ((None, None), {"RANK": "0"}, "WORLD_SIZE"),
            ((None, None), {"WORLD_SIZE": "2"}, "RANK"),
            ((None, None), {"RANK": "2", "WORLD_SIZE": "2"}, "RANK"),
            ((None, None), {"RANK": "-1", "WORLD_SIZE": "2"}, "RANK"),
            ((None, None), {"RANK": "0", "WORLD_SIZE": "two"}, "WORLD_SIZE"),
            ((None, None), {"RANK": "0", "WORLD_SIZE": "0"}, "WORLD_SIZE"),
            ((None, None), {"RANK": "0", "WORLD_SIZE": "99999"}, "WORLD_SIZE"),
            ((None, None), {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "0"}, "LOCAL_WORLD_SIZE"),
            ((None, None), {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2"}, "LOCAL_RANK"),
            ((None, None), {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "8"}, "LOCAL_WORLD_SIZE"),
            (
                (None, None),
                {"RANK": "1", "WORLD_SIZE": "4", "LOCAL_WORLD_SIZE": "2", "LOCAL_RANK": "2"},
                "LOCAL_RANK",
            ),
        ):
            with self.subTest(arguments=arguments, env=env):
                with self.assertRaises(RanksError) as wrong:
                    find_ranks(*arguments, env=env)
                self.assertEqual(wrong.exception.variable, variable)
                self.assertIn(variable, str(wrong.exception))

    def test_several_machines(self) -> None:
        check_one_machine(Ranks())
        check_one_machine(Ranks(1, 2, 1, 2))
        with self.assertRaises(RanksError) as several:
            check_one_machine(Ranks(1, 8, 1, 4))
        self.assertIn("control=", str(several.exception))


class Messages(unittest.TestCase):
    def setUp(self) -> None:
        ours, self.theirs = socket.socketpair()
        self.channel = Channel(ours)
        self.addCleanup(self.channel.close)
        self.addCleanup(self.theirs.close)

    def test_descriptors_come_with_their_message(self) -> None:
        body = json.dumps({"kind": "buffer"}).encode()
        before = len(os.listdir("/proc/self/fd"))
        for _ in range(3):
            read, write = os.pipe()
            socket.send_fds(self.theirs, [struct.pack("<I", len(body)) + body], [read])
            os.close(read)
            os.close(write)
        for _ in range(2):
            self.assertEqual(self.channel.receive(), {"kind": "buffer"})
            fd = self.channel.descriptor()
            self.assertFalse(os.get_inheritable(fd))
            os.close(fd)
        self.channel.receive()
        self.channel.close()  # closes the descriptors that were not taken
        self.assertEqual(len(os.listdir("/proc/self/fd")), before - 1)

    def test_a_buffer_without_a_descriptor(self) -> None:
        with self.assertRaises(ChannelError):
            self.channel.descriptor()

    def test_every_length(self) -> None:
        for n in (MAX_MESSAGE + 1, 0xFFFFFFFF):
            ours, theirs = socket.socketpair()
            channel = Channel(ours)
            theirs.sendall(struct.pack("<I", n))
            with self.assertRaises(ChannelError):
                channel.receive()
            channel.close()
            theirs.close()
        self.theirs.sendall(struct.pack("<I", MAX_MESSAGE) + b"{")
        self.theirs.close()
        with self.assertRaises(ChannelError):  # the bytes did not come; no memory of that size was allocated
            self.channel.receive()

    def test_random_bytes(self) -> None:
        rng = random.Random(1)
        good = json.dumps({"kind": "minibatch", "buffer": 1, "bytes": 2, "epoch": 0, "number": 3}).encode()
        for _ in range(2000):
            body = bytearray(good)
            for _ in range(rng.randrange(6)):
                body[rng.randrange(len(body))] = rng.randrange(256)
            length = struct.pack("<I", len(body) + rng.choice((0, 0, -2, 3)))
            stream = length + bytes(body) + rng.randbytes(rng.randrange(9))
            ours, theirs = socket.socketpair()
            channel = Channel(ours)
            theirs.sendall(stream)
            theirs.close()
            try:
                while (message := channel.receive()) is not None:
                    self.assertIsInstance(message["kind"], str)
            except ChannelError:
                pass
            finally:
                channel.close()

    def test_many_threads_send_whole_messages(self) -> None:
        got: list[int] = []

        def send(first: int) -> None:
            for i in range(first, first + 500):
                self.channel.send("free", buffer=i)

        def receive() -> None:
            other = Channel(self.theirs)
            while (message := other.receive()) is not None:
                got.append(message["buffer"])

        receiver = threading.Thread(target=receive)
        receiver.start()
        senders = [threading.Thread(target=send, args=(500 * i,)) for i in range(8)]
        for t in senders:
            t.start()
        for t in senders:
            t.join()
        self.channel.shutdown()
        receiver.join()
        self.assertEqual(sorted(got), list(range(4000)))

    def test_failures_of_any_form(self) -> None:
        rng = random.Random(2)
        values = [None, "x", 3, -1, [], [{}], {"a": 1}, True, ["x"]]
        fields = ("code", "message", "file", "column", "row_group", "page", "row", "line", "problems")
        codes = ("pipeline", "data", "files", "options", "token", "other_job", "ranks", "version", "ended", "failed", "?")
        for _ in range(2000):
            message = {f: rng.choice(values) for f in fields if rng.random() < 0.7}
            if rng.random() < 0.8:
                message["code"] = rng.choice(codes)
            self.assertTrue(isinstance(failure(message), Exception))

    def test_failures_name_arguments_in_place_of_flags(self) -> None:
        for said, want in (
            ("a.md is text; --exclude a.md leaves it out", "a.md is text; exclude='a.md' leaves it out"),
            (r"; --exclude 'it'\''s \[1].md' leaves it out", r"""; exclude="it's \\[1].md" leaves it out"""),
            ("/d: all are left out by --include and --exclude", "/d: all are left out by include= and exclude="),
            ("it is Parquet: say --input-format parquet", "it is Parquet: say input_format='parquet'"),
            (
                "zcat a | millrace dataset import --input-format criteo-tsv --out DIR -; --exclude a leaves it out",
                "zcat a | millrace dataset import --input-format criteo-tsv --out DIR -; exclude='a' leaves it out",
            ),
            (
                "make one with millrace dataset summarize --pipeline, and name it with --statistics t=FILE",
                "make one with millrace dataset summarize --pipeline, and name it with statistics={'t': FILE}",
            ),
            (
                "build it with millrace vocabulary build and name it with --vocabulary items=FILE",
                "build it with millrace vocabulary build and name it with vocabularies={'items': FILE}",
            ),
        ):
            with self.subTest(said):
                self.assertEqual(str(failure({"code": "files", "message": said})), want)
                self.assertEqual(str(failure({"code": "pipeline", "problems": [{"message": said}]})), want)


if __name__ == "__main__":
    unittest.main()
