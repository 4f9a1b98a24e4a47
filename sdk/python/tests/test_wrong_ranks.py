"""Ranks that do not fit together: each gets an error of a known class, and neither a process nor a socket is left."""

from __future__ import annotations

import hashlib
import os
import pathlib
import subprocess
import sys
import tempfile
import time
import unittest
import uuid

from millrace import errors
from millrace.ranks import machine

from .leaks import Leaks

MILLRACE = os.environ.get("MILLRACE_BIN", "")
PATIENCE = 120.0  # seconds that these tests wait at most

RANK = """\
import logging, os, sys
import millrace, millrace.private
logging.basicConfig(format="%(message)s")
millrace.private.SAID_AFTER = float(os.environ.get("SAID_AFTER", "60"))
try:
    job = millrace.open(sys.argv[1], sys.argv[2], batch=int(sys.argv[3]), patience=float(sys.argv[4]), tensors="views")
    print("rows", sum(b.rows for b in job))
except millrace.MillraceError as e:
    print(type(e).__name__, getattr(e, "variable", ""), e)
"""

# Listens at abstract sockets as another user, and never accepts a connection.
SQUATTER = """\
import os, socket, sys
os.setuid(65534)
sockets = []
for name in sys.argv[1:]:
    s = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    s.bind("\\0" + name)
    s.listen()
    sockets.append(s)
print("listening", flush=True)
sys.stdin.read()
"""

PIPELINE = """\
batch: 10
label: {column: label}
dense: [{columns: [int_0], ops: [fill_null: 0]}]
"""


def meeting(run: str) -> str:
    """Returns what the names of the sockets of a run begin with."""
    text = "\0".join((machine(), str(os.getuid()), run, "0"))
    return "millrace-" + hashlib.sha256(text.encode()).hexdigest()[:32]


def left(run: str) -> list[str]:
    """Returns the processes that were started with MILLRACE_RUN=run and are alive, and the socket at which its ranks
    meet.
    """
    found = []
    for process in pathlib.Path("/proc").iterdir():
        try:
            if process.name.isdigit() and f"MILLRACE_RUN={run}".encode() in (process / "environ").read_bytes():
                found.append((process / "cmdline").read_bytes().replace(b"\0", b" ").decode())
        except OSError:
            pass  # the process has ended, or belongs to another user
    if f"@{meeting(run)}-" in pathlib.Path("/proc/net/unix").read_text():
        found.append("a socket")
    return found


@unittest.skipUnless(MILLRACE, "wants MILLRACE_BIN")
class WrongRanks(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        command = [MILLRACE, "dataset", "generate", "--rows", "100", "--partitions", "1", "--out", folder.name]
        subprocess.run([*command, "--progress", "none"], check=True, stdout=subprocess.DEVNULL)
        cls.file = f"{folder.name}/part-00000.parquet"

    def setUp(self) -> None:
        self.run_name = uuid.uuid4().hex
        self.addCleanup(Leaks(self).check)
        self.addCleanup(self.nothing_is_left)

    def nothing_is_left(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while left(self.run_name):
            self.assertLess(time.monotonic(), deadline, left(self.run_name))
            time.sleep(0.05)

    def start(
        self, rank: int, world: int, *, patience: float = 60, batch: int = 10, **more: str
    ) -> "subprocess.Popen[str]":
        kept = {k: v for k, v in os.environ.items() if "RANK" not in k and "WORLD_SIZE" not in k}
        env = {**kept, "RANK": str(rank), "WORLD_SIZE": str(world), "MILLRACE_RUN": self.run_name, **more}
        process = subprocess.Popen(
            [sys.executable, "-c", RANK, self.file, PIPELINE, str(batch), str(patience)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env=env,
        )
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        return process

    def says(self, process: "subprocess.Popen[str]", error: type[Exception], *words: str) -> str:
        out, said = process.communicate(timeout=PATIENCE)
        self.assertEqual(out.split(" ")[0], error.__name__, out + said)
        for word in words:
            self.assertIn(word, out)
        return said

    def listening(self, process: "subprocess.Popen[str]") -> None:
        """Waits until the first rank's private process listens."""
        deadline = time.monotonic() + PATIENCE
        while "a socket" not in left(self.run_name):
            self.assertIsNone(process.poll())
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)

    def test_fewer_ranks_come_than_world_size_says(self) -> None:
        ranks = [self.start(rank, 3, patience=3) for rank in (0, 1)]
        for process in ranks:
            self.says(process, errors.RanksError, "of 3 local ranks came")

    def test_the_first_rank_does_not_come(self) -> None:
        said = self.says(
            self.start(1, 2, patience=2, SAID_AFTER="0.2"), errors.RanksError, "LOCAL_RANK", "rank 1", "2 s"
        )
        self.assertIn("rank 1 waits for the other ranks of this machine, of which there are 2", said)

    def test_two_ranks_have_the_same_number(self) -> None:
        first = self.start(0, 3, patience=60)
        self.listening(first)
        same = [self.start(1, 3), self.start(1, 3)]
        deadline = time.monotonic() + PATIENCE
        while all(p.poll() is None for p in same) and time.monotonic() < deadline:
            time.sleep(0.02)
        refused, accepted = sorted(same, key=lambda p: p.poll() is None)
        self.says(refused, errors.RanksError, "two processes of this machine say they are rank 1")
        # The others are not harmed: the missing rank comes, and all get their part.
        third = self.start(2, 3)
        rows = [p.communicate(timeout=PATIENCE)[0].split() for p in (first, accepted, third)]
        self.assertEqual([r[0] for r in rows], ["rows"] * 3)
        self.assertEqual(sum(int(r[1]) for r in rows), 90, "ten mini-batches by three ranks, the rest is dropped")

    def test_ranks_that_ask_for_different_things(self) -> None:
        first = self.start(0, 2, patience=5)
        self.listening(first)
        self.says(self.start(1, 2, batch=20), errors.RanksError, "rank 1 opens something else than rank 0")
        self.says(first, errors.RanksError, "1 of 2 local ranks came")

    def test_another_world_size(self) -> None:
        first = self.start(0, 2, patience=5)
        self.listening(first)
        self.says(self.start(1, 3), errors.RanksError, "rank 1 opens something else than rank 0")
        self.says(first, errors.RanksError, "1 of 2 local ranks came")

    def test_several_machines(self) -> None:
        process = self.start(0, 4, LOCAL_RANK="0", LOCAL_WORLD_SIZE="2")
        self.says(process, errors.RanksError, "LOCAL_WORLD_SIZE", "control=")

    def test_half_of_the_variables(self) -> None:
        for missing, there in (("RANK", "WORLD_SIZE"), ("WORLD_SIZE", "RANK")):
            with self.subTest(missing):
                process = self.start(0, 2, **{missing: ""})
                self.says(process, errors.RanksError, missing, there)

    def test_two_ranks_are_the_first(self) -> None:
        first = self.start(0, 2, patience=60)
        self.listening(first)
        self.says(self.start(0, 2), errors.RanksError, "another process of this user", "LOCAL_RANK")
        ranks = [first, self.start(1, 2)]
        self.assertEqual([p.communicate(timeout=PATIENCE)[0] for p in ranks], ["rows 50\n"] * 2)

    @unittest.skipUnless(os.getuid() == 0, "only root can be another user")
    def test_another_user_takes_the_names_that_can_be_guessed(self) -> None:
        name = meeting(self.run_name)
        other = subprocess.Popen(
            [sys.executable, "-c", SQUATTER, name, f"{name}-{'0' * 32}"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.addCleanup(other.communicate)
        self.addCleanup(other.kill)
        assert other.stdout is not None
        self.assertEqual(other.stdout.readline(), "listening\n")
        self.says(self.start(1, 2, patience=1), errors.RanksError, "LOCAL_RANK", f"@{name}-{'0' * 32} is of user 65534")
        ranks = [self.start(rank, 2) for rank in range(2)]
        self.assertEqual([p.communicate(timeout=PATIENCE)[0] for p in ranks], ["rows 50\n"] * 2)
        other.kill()
        other.wait()

    def test_the_first_rank_is_killed_while_it_waits(self) -> None:
        first = self.start(0, 3, patience=60)
        self.listening(first)
        second = self.start(1, 3, patience=60)
        self.connected(2)
        first.kill()
        first.wait()
        self.says(second, errors.PrivateProcessError, "has ended")

    def connected(self, ends: int) -> None:
        """Waits until a rank is connected: its end has the socket's name, beside the listening one."""
        name = f"@{meeting(self.run_name)}-"
        deadline = time.monotonic() + PATIENCE
        while pathlib.Path("/proc/net/unix").read_text().count(name) < ends:
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.02)


if __name__ == "__main__":
    unittest.main()
