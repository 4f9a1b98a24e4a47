"""Jobs against a fake control plane and fake nodes, over real sockets."""

from __future__ import annotations

import base64
import gc
import logging
import os
import pathlib
import re
import tempfile
import threading
import time
import unittest
import weakref
from typing import Any
from unittest import mock

import millrace
from millrace import (
    ClosedError,
    Control,
    DataLossError,
    FencedError,
    Job,
    JobAbandonedError,
    JobEndedError,
    MillraceError,
    OptionsError,
    OtherJobError,
    ServiceError,
    Token,
    TokenError,
    UnreachableError,
    session,
)
from millrace.control import _PLAN, _SPEC
from millrace.nodes import planned_rows
from millrace.token import Ranges

from .fake import JOB, SCHEMA, Cluster, Refusal, content

logging.getLogger("millrace").setLevel(logging.ERROR)


def numbers(batches: Any) -> list[int]:
    return [b.name.number for b in batches]


class Delivery(unittest.TestCase):
    def test_every_minibatch_comes_once_in_order_and_byte_for_byte(self) -> None:
        with Cluster(nodes=2, total=40) as c, Job(c.urls, "rm1") as job:
            self.assertEqual(job.schema, SCHEMA)
            self.assertEqual(job.digest, JOB)
            self.assertEqual(job.batch, 32)
            seen = []
            for b in job:
                seen.append(b.name.number)
                self.assertEqual(bytes(b.data), c.expected(0, b.name.number)[-len(b.data) :])
            self.assertEqual(seen, list(range(40)))
            self.assertEqual(c.ledger.delivered, Ranges([(0, 40)]))
            self.assertEqual(job.statistics.minibatches, 40)
            self.assertEqual(job.statistics.rows, 40 * 32)
            self.assertGreaterEqual(job.statistics.stall_seconds, job.statistics.first_seconds)

    def test_leases_tell_what_has_not_come(self) -> None:
        with Cluster(nodes=2, total=16, split=4) as c, Job(c.urls, "rm1", queue_bytes=1) as job:
            first = next(it := iter(job))
            # One mini-batch is let in at a time, so that the drives that hold the rest are known.
            held = job.leases()
            self.assertIn(held[0][0], [n.name for n in c.nodes])
            missing = [n for _, _, numbers in held for n in numbers]
            self.assertEqual(missing, sorted(missing))
            self.assertNotIn(first.name.number, missing)
            self.assertIn(3, missing)
            for _ in it:
                pass
            self.assertEqual(job.leases(), [])

    def test_fastest_order_yields_what_comes(self) -> None:
        held = threading.Event()
        with Cluster(nodes=2, total=16, split=4, order="fastest") as c:
            # The node that is first asked for number 0 waits until the trainer has got all others.
            c.nodes[0].faults.append(lambda h, e, n: held.wait(20) and None if n == 0 else None)
            c.nodes[1].faults.append(lambda h, e, n: held.wait(20) and None if n == 0 else None)
            with Job(c.urls, "rm1") as job:
                seen = []
                for b in job:
                    seen.append(b.name.number)
                    if len(seen) == 15:
                        held.set()
                self.assertEqual(sorted(seen), list(range(16)))
                self.assertEqual(seen[-1], 0)

    def test_epochs_follow_each_other(self) -> None:
        with Cluster(total=12, epochs=3) as c, Job(c.urls, "rm1") as job:
            self.assertEqual(job.epochs, 3)
            names = [(b.name.epoch, b.name.number) for b in job]
            self.assertEqual(names, [(e, n) for e in range(3) for n in range(12)])

    def test_one_epoch_at_a_time(self) -> None:
        with Cluster(total=6, epochs=2) as c, Job(c.urls, "rm1") as job:
            with self.assertRaisesRegex(MillraceError, "not over"):
                job.next_epoch()
            self.assertEqual(numbers(job.minibatches()), list(range(6)))
            self.assertEqual(numbers(job.minibatches()), [])
            self.assertTrue(job.next_epoch())
            self.assertEqual(job.epoch, 1)
            self.assertEqual(numbers(job.minibatches()), list(range(6)))
            self.assertFalse(job.next_epoch())

    def test_ranks_get_their_own(self) -> None:
        with Cluster(total=20, ranks=2) as c, Job(c.urls, "rm1", rank=0) as a, Job(c.urls, "rm1", rank=1) as b:
            self.assertEqual(b.owned, [(10, 20)])
            self.assertEqual(numbers(a.minibatches()), list(range(10)))
            self.assertEqual(numbers(b.minibatches()), list(range(10, 20)))

    def test_a_rank_that_owns_nothing(self) -> None:
        with Cluster(total=1, ranks=2, order="fastest") as c, Job(c.urls, "rm1", rank=1) as job:
            self.assertEqual(job.owned, [])
            self.assertEqual(numbers(job.minibatches()), [])

    def test_unix_sockets(self) -> None:
        with tempfile.TemporaryDirectory() as folder, Cluster(total=8, unix=folder) as c, Job(c.urls, "rm1") as job:
            self.assertTrue(c.nodes[0].urls[0].startswith("unix:"))
            self.assertEqual(numbers(job), list(range(8)))

    def test_a_unix_socket_is_preferred_and_a_dead_url_passed_over(self) -> None:
        with tempfile.TemporaryDirectory() as folder, Cluster(nodes=1, total=8, unix=folder) as c:
            c.nodes[0].urls = ["http://127.0.0.1:9", *c.nodes[0].urls, "not a url"]
            with Job(c.urls, "rm1") as job:
                self.assertEqual(numbers(job), list(range(8)))
                self.assertEqual(job.statistics.failures, 0)
            c.ledger.delivered = Ranges()
            c.nodes[0].urls = ["http://127.0.0.1:9", "unix:" + folder + "/gone.sock", c.nodes[0].serving.url]
            with Job(c.urls, "rm1") as job:
                self.assertEqual(numbers(job), list(range(8)))

    def test_the_queue_is_bounded_in_bytes(self) -> None:
        size = len(content(0, 0))
        with (
            Cluster(nodes=1, total=60, order="deterministic") as c,
            Job(c.urls, "rm1", queue_bytes=3 * size + size // 2, credits=2) as job,
        ):
            it = job.minibatches()
            next(it)
            for _ in range(50):
                with job._session.cond:
                    self.assertLessEqual(job._session.intake.waiting_bytes, 4 * size)
                    self.assertLessEqual(len(job._session.intake.waiting), 4)
                threading.Event().wait(0.004)
            self.assertLess(len(c.nodes[0].asked), 12, "a trainer that stops stops the nodes")
            self.assertEqual(len(numbers(it)), 59)

    def test_a_queue_smaller_than_a_minibatch_still_moves(self) -> None:
        for order in ("deterministic", "fastest"):
            with self.subTest(order), Cluster(total=10, order=order) as c, Job(c.urls, "rm1", queue_bytes=1) as job:
                self.assertEqual(sorted(numbers(job)), list(range(10)))

    def test_minibatches_outlive_the_next_one(self) -> None:
        with Cluster(total=30) as c:
            with Job(c.urls, "rm1", credits=2) as job:
                kept = [(b.name.number, b.dense) for b in job]
            for n, dense in kept:
                self.assertEqual(
                    dense.tobytes(),
                    c.expected(0, n)[-len(content(0, n)) :][self.dense_at(n) : self.dense_at(n) + len(dense.tobytes())],
                )

    @staticmethod
    def dense_at(n: int) -> int:
        b = millrace.frame.decode(content(0, n))
        return next(len(content(0, n)) - len(b.data) + e.offset for e in b.extents if e.name == "dense")

    def test_memory_is_used_again(self) -> None:
        with Cluster(total=100) as c, Job(c.urls, "rm1", credits=2, queue_bytes=4 * len(content(0, 0))) as job:
            for b in job:
                del b
            self.assertLess(job._session.nodes.pool.made, 20)


class Acknowledgement(unittest.TestCase):
    def test_auto_acknowledges_when_the_next_is_asked_for(self) -> None:
        with Cluster(total=8) as c, Job(c.urls, "rm1") as job:
            it = job.minibatches()
            next(it), next(it), next(it)
            job.flush()
            self.assertEqual(c.ledger.delivered, Ranges([(0, 2)]))
            it.close()
            self.assertEqual(numbers(job.minibatches()), [3, 4, 5, 6, 7])

    def test_manual(self) -> None:
        with Cluster(total=8) as c, Job(c.urls, "rm1", acknowledge="manual") as job:
            batches = list(job.minibatches())
            job.flush()
            self.assertFalse(c.ledger.delivered)
            with self.assertRaisesRegex(MillraceError, "not acknowledged"):
                job.next_epoch()
            for b in batches[1:]:
                job.acknowledge(b.name)
            job.acknowledge(batches[1].name)
            job.flush()
            self.assertEqual(c.ledger.delivered, Ranges([(1, 8)]))
            self.assertEqual(job.token, Token(JOB, 0, 0, ((1, 8),)))
            with self.assertRaises(OtherJobError):
                job.acknowledge(millrace.Name("0" * 64, 0, 0))
            with self.assertRaisesRegex(MillraceError, "not delivered"):
                job.acknowledge(millrace.Name(JOB, 0, 8))
            job.acknowledge(batches[0].name)
            self.assertFalse(job.next_epoch())

    def test_acknowledgements_travel_together(self) -> None:
        with Cluster(total=200, split=16) as c, Job(c.urls, "rm1") as job:
            self.assertEqual(len(numbers(job)), 200)
            self.assertLess(c.calls.count("Acknowledge"), 100)

    def test_a_job_that_nobody_has_any_more_is_closed(self) -> None:
        with Cluster(total=40) as c:
            job = Job(c.urls, "rm1")
            it = job.minibatches()
            first = next(it)
            session = weakref.ref(job._session)
            threads = {t for t in threading.enumerate() if t.name.startswith("millrace")}
            self.assertTrue(threads)
            del job, it
            gc.collect()
            for t in threading.enumerate():
                if t in threads or t.name == "millrace-close":
                    t.join(30)
                    self.assertFalse(t.is_alive(), t.name)
            self.assertEqual(c.ledger.leases, {})
            self.assertEqual(first.label.nbytes, 4 * first.rows)
            gc.collect()
            self.assertIsNone(session())

    def test_close_tells_the_last_and_gives_leases_back(self) -> None:
        with Cluster(total=40) as c:
            with Job(c.urls, "rm1") as job:
                it = job.minibatches()
                next(it), next(it)
                it.close()
                job.state_dict()
            self.assertEqual(c.ledger.delivered, Ranges([(0, 2)]))
            self.assertEqual(c.ledger.leases, {})
            self.assertEqual(c.ledger.released, ["detach"])
            job.close()
            with self.assertRaises(ClosedError):
                next(job.minibatches())
            with self.assertRaises(ClosedError):
                job.flush()


class Checkpoints(unittest.TestCase):
    def test_a_new_process_goes_on(self) -> None:
        for order in ("deterministic", "fastest"):
            with self.subTest(order), Cluster(total=30, order=order) as c:
                with Job(c.urls, "rm1") as job:
                    it = job.minibatches()
                    first = [next(it).name.number for _ in range(11)]
                    state = job.state_dict()
                    next(it)  # trained on, and lost with the process
                    it.close()
                with Job(c.urls, "rm1", token=state) as job:
                    rest = numbers(job)
                self.assertEqual(sorted(first + rest), list(range(30)))
                if order == "deterministic":
                    self.assertEqual(first + rest, list(range(30)))

    def test_the_same_process_goes_back(self) -> None:
        with Cluster(total=12) as c, Job(c.urls, "rm1") as job:
            it = job.minibatches()
            for _ in range(3):
                next(it)
            state = job.state_dict()
            with self.assertRaisesRegex(MillraceError, "inside"):
                job.load_state_dict(state)
            for _ in range(3):
                next(it)
            it.close()
            job.load_state_dict(state)
            self.assertEqual(numbers(job.minibatches()), list(range(3, 12)))

    def test_goes_back_an_epoch(self) -> None:
        with Cluster(total=6, epochs=2) as c, Job(c.urls, "rm1") as job:
            it = iter(job)
            for _ in range(2):
                next(it)
            state = job.state_dict()
            for _ in range(6):
                b = next(it)
            self.assertEqual(b.name.epoch, 1)
            it.close()
            job.load_state_dict(state)
            self.assertEqual(
                [(b.name.epoch, b.name.number) for b in job], [(0, n) for n in range(2, 6)] + [(1, n) for n in range(6)]
            )

    def test_tokens_of_others(self) -> None:
        other = Token("ab" * 32, 0, 3)
        with Cluster() as c:
            with self.assertRaises(OtherJobError):
                Job(c.urls, "rm1", token=b"MRT1" + other.to_bytes() + bytes(range(32)))
            with self.assertRaisesRegex(TokenError, "not sealed"):
                Job(c.urls, "rm1", token=Token(JOB, 0, 3))
            with self.assertRaisesRegex(TokenError, "not sealed"):  # another cluster's
                Job(c.urls, "rm1", token=b"MRT1" + Token(JOB, 0, 3).to_bytes() + bytes(32))
            with self.assertRaises(TokenError):
                Job(c.urls, "rm1", token=b"MRCT nonsense")
            with self.assertRaises(TokenError):
                Job(c.urls, "rm1", token={"version": 7})
            with self.assertRaisesRegex(TokenError, "without its token"):
                Job(c.urls, "rm1", token={"version": 1})
            with self.assertRaisesRegex(TypeError, "not int"):
                Job(c.urls, "rm1", token=5)  # type: ignore[arg-type]
            with Job(c.urls, "rm1") as job:
                state = job.state_dict()
                self.assertEqual(Token.parse(state["token"]), Token(JOB))
                sealed = base64.b64encode(b"MRT1" + other.to_bytes() + bytes(32)).decode()
                with self.assertRaises(OtherJobError):
                    job.load_state_dict({**state, "sealed": sealed})
                for bad in ("!", "AAAA", 7):
                    with self.assertRaises(TokenError):
                        job.load_state_dict({**state, "sealed": bad})

    def test_a_job_that_is_done(self) -> None:
        with Cluster(total=8) as c, Job(c.urls, "rm1") as job:
            for b in job:
                state = job.state_dict()  # of the last step, too
            self.assertEqual(Token.parse(state["token"]), Token(JOB, 0, 8))
            self.assertEqual(job.state_dict(), state)
            with self.assertRaisesRegex(JobEndedError, "nothing is left"):
                Job(c.urls, "rm1", token=state)

    def test_a_sealed_checkpoint(self) -> None:
        with Cluster(total=8) as c, Job(c.urls, "rm1") as job:
            it = job.minibatches()
            next(it), next(it)
            raw = job.checkpoint()
            self.assertEqual(raw[:4], b"MRT1")
            self.assertEqual(Token.from_bytes(raw[4:-32]).mark, 2)
            it.close()
            with Job(c.urls, "rm1", token=raw) as again:
                self.assertEqual(numbers(again), list(range(2, 8)))
            with self.assertRaises(FencedError):
                job.checkpoint()


class Faults(unittest.TestCase):
    def test_a_node_dies(self) -> None:
        for order in ("deterministic", "fastest"):
            with self.subTest(order), Cluster(nodes=3, total=60, order=order) as c, Job(c.urls, "rm1") as job:
                seen = []
                for b in job:
                    seen.append(b.name.number)
                    self.assertEqual(bytes(b.data), c.expected(0, b.name.number)[-len(b.data) :])
                    if len(seen) == 9:
                        c.nodes[0].kill()
                self.assertEqual(sorted(seen), list(range(60)))
                if order == "deterministic":
                    self.assertEqual(seen, list(range(60)))

    def test_a_node_that_answers_nonsense(self) -> None:
        def once(status: int, body: bytes, **headers: str) -> Any:
            left = [1]

            def fault(h: Any, epoch: int, number: int) -> bool:
                if not left:
                    return False
                left.clear()
                h.answer(status, body, **headers)
                return True

            return fault

        good = content(0, 3)
        for name, fault in {
            "another mini-batch": once(200, content(0, 39)),
            "not a frame": once(200, b"hello, this is no frame at all"),
            "a cut frame": once(200, good[:-5]),
            "nothing": once(200, b""),
            "an error without words": once(500, b"<html>"),
            "a job it forgot": once(404, b'{"code":"not_found","message":"no such job"}'),
            "another kind of answer": once(200, content(0, 3), Content_Type="text/html"),
            "closing": once(
                503, b'{"code":"unavailable","message":"the split was closed on the node: ask again"}', Retry_After="1"
            ),
            "busy": once(429, b'{"code":"resource_exhausted","message":"busy"}', Retry_After="0.05"),
            "words that are none": once(500, b"[1,2]"),
        }.items():
            with self.subTest(name), Cluster(nodes=2, total=20) as c:
                c.nodes[0].faults.append(fault)
                with Job(c.urls, "rm1", check=True) as job:
                    self.assertEqual(numbers(job), list(range(20)))
                    self.assertEqual(job.statistics.failures, 0 if name in ("busy", "closing") else 1)
                reasons = [r for r in c.ledger.released if r not in ("stop", "detach")]
                self.assertEqual(len(reasons), 0 if name in ("busy", "closing") else 1)
                self.assertTrue(all(r.startswith("node: ") for r in reasons), reasons)

    def test_a_node_that_drains(self) -> None:
        def draining(h: Any, epoch: int, number: int) -> bool:
            c.nodes[0].draining = True  # the control plane learns of it, too
            h.refuse(503, "unavailable", "draining: no new splits are taken", Retry_After="1")
            return True

        with Cluster(nodes=2, total=20) as c:
            c.nodes[0].faults.append(draining)
            with Job(c.urls, "rm1") as job:
                self.assertEqual(numbers(job), list(range(20)))
            self.assertRegex(" ".join(c.ledger.released), "node: unavailable: draining")

    def test_a_body_that_breaks_off(self) -> None:
        def cut(h: Any, epoch: int, number: int) -> bool:
            if number != 5 or c.nodes[0].faults == []:
                return False
            c.nodes[0].faults.clear()
            h.send_response(200)
            h.send_header("Content-Type", "application/vnd.millrace.minibatch")
            h.send_header("Content-Length", "100000")
            h.end_headers()
            h.wfile.write(content(0, 5)[:700])
            h.close_connection = True
            return True

        with Cluster(nodes=1, total=12) as c:
            c.nodes[0].faults.append(cut)
            with Job(c.urls, "rm1") as job:
                self.assertEqual(numbers(job), list(range(12)))

    def test_a_node_that_drips_is_given_up(self) -> None:
        """A node sends one byte at a time, each before the socket's timeout: three answers are not whole in time, and
        the other node makes the mini-batch. It makes no difference which part of the answer drips.
        """
        good = content(0, 2)
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/vnd.millrace.minibatch\r\n"
        whole = head + f"Content-Length: {len(good)}\r\n\r\n".encode() + good
        refusal = b"HTTP/1.1 503 Gone\r\nContent-Type: application/json\r\nContent-Length: 100000\r\n\r\n"
        for name, text, at_once in (
            ("status line", whole, 0),
            ("headers", whole, len(head)),
            ("body", whole, len(whole) - len(good) + 64),
            ("refusal", refusal + b" " * 100000, len(refusal)),
        ):
            with self.subTest(name), Cluster(nodes=2, total=12) as c:
                sick: list[str] = []  # the node that is asked for mini-batch 2 first, once for each answer that drips

                def drip(h: Any, number: int, node: str) -> bool:
                    if number != 2 or sick and sick[0] != node:
                        return False
                    sick.append(node)
                    h.close_connection = True
                    try:
                        h.wfile.write(text[:at_once])
                        for i in range(at_once, len(text)):
                            h.wfile.write(text[i : i + 1])
                            time.sleep(0.05)
                    except OSError:
                        pass  # the launcher has given the answer up
                    return True

                for n in c.nodes:
                    n.faults.append(lambda h, epoch, number, node=n.name: drip(h, number, node))
                with Job(c.urls, "rm1", timeout=0.7) as job:
                    self.assertEqual(numbers(job), list(range(12)))
                self.assertRegex(" ".join(c.ledger.released), "node: unavailable: .*no whole answer within 0.7 s")
                self.assertGreaterEqual(len(sick), 3)

    def test_a_slow_answer_that_is_whole_in_time(self) -> None:
        """The bytes of an answer come in pieces; the whole takes longer than a tenth of the limit, and less than it."""

        def pieces(h: Any, epoch: int, number: int) -> bool:
            if number != 2:
                return False
            good = content(epoch, number)
            h.send_response(200)
            h.send_header("Content-Type", "application/vnd.millrace.minibatch")
            h.send_header("Content-Length", str(len(good)))
            h.end_headers()
            for i in range(8):
                h.wfile.write(good[i * len(good) // 8 : (i + 1) * len(good) // 8])
                time.sleep(0.5)
            return True

        with Cluster(nodes=1, total=12) as c:
            c.nodes[0].faults.append(pieces)
            with Job(c.urls, "rm1", timeout=30.0) as job:
                self.assertEqual(numbers(job), list(range(12)))
            self.assertEqual(c.nodes[0].asked.count((0, 2)), 1)
            self.assertEqual(c.ledger.released, ["detach"])

    def test_a_flipped_bit_is_noticed(self) -> None:
        bad = bytearray(content(0, 2))
        bad[-3] ^= 1

        def flip(h: Any, epoch: int, number: int) -> bool:
            if number != 2 or not c.nodes[0].faults:
                return False
            c.nodes[0].faults.clear()
            h.answer(200, bytes(bad))
            return True

        with Cluster(nodes=1, total=12) as c:
            c.nodes[0].faults.append(flip)
            with Job(c.urls, "rm1", check=True) as job:
                for b in job:
                    self.assertEqual(bytes(b.data), c.expected(0, b.name.number)[-len(b.data) :])
            self.assertRegex(" ".join(c.ledger.released), "CRC32C")

    def test_rows_that_no_plan_gives_are_noticed(self) -> None:
        """A node leaves rows out of a whole frame, or adds some: another node makes the mini-batch."""
        for rows in (31, 33):

            def lie(h: Any, epoch: int, number: int, rows: int = rows) -> bool:
                if number == 2 and c.nodes[0].faults:
                    c.nodes[0].faults.clear()
                    h.answer(200, content(0, 2, rows))
                    return True
                return False

            with self.subTest(rows), Cluster(nodes=1, total=12) as c:
                c.ledger.manifest = b'{"partitions":[{"rows":320},{"rows":71}]}'
                c.nodes[0].faults.append(lie)
                with Job(c.urls, "rm1") as job:
                    self.assertEqual({b.rows for b in job}, {32})
                self.assertRegex(" ".join(c.ledger.released), f"has {rows} rows, which no plan gives it")

    def test_the_rows_that_a_plan_can_give(self) -> None:
        for manifest, batch, want in (
            (b'{"partitions":[{"rows":320},{"rows":71}]}', 32, {32, 7}),
            (b'{"partitions":[{"rows":"7"}]}', 32, {7}),
            (b'{"partitions":[{"rows":0},{}]}', 32, set()),
            (b'{"partitions":[]}', 32, set()),
            (b"", 32, set()),
            (b'{"partitions":[{"rows":320}]}', 0, set()),
        ):
            self.assertEqual(planned_rows(manifest, batch), want)
        two = b'{"partitions":[{"rows":320},{"rows":71}]}'  # some rows pass a filter
        self.assertEqual(planned_rows(two, 32, [65, 0]), {32, 1})
        self.assertEqual(planned_rows(two, 32, [0, 0]), set())
        for passing in ([65], [65, 72], [65, 0, 0], [-1, 0]):
            with self.assertRaises(ValueError):
                planned_rows(two, 32, passing)
        for wrong in (b'{"partitions":[{"rows":-1}]}', b'{"partitions":[{"rows":"x"}]}', b"x"):
            with self.assertRaises(ValueError):
                planned_rows(wrong, 32)

    def test_what_would_fail_anywhere_ends_the_job(self) -> None:
        for status, code, words in (
            (500, "data_loss", "partition p, column int_3, page 9: the checksum differs"),
            (400, "failed_precondition", "partition p is not what the manifest says"),
        ):

            def lost(h: Any, epoch: int, number: int) -> bool:
                if number == 7:
                    h.refuse(status, code, words)
                return number == 7

            with self.subTest(code), Cluster(nodes=2, total=20) as c, mock.patch("millrace.fetching.REFUSED", 0.2):
                for n in c.nodes:
                    n.faults.append(lost)
                with Job(c.urls, "rm1") as job, self.assertRaisesRegex(DataLossError, words):
                    numbers(job)
                self.assertTrue(
                    any(r.startswith("data: ") and words in r for r in c.ledger.released), c.ledger.released
                )

    def test_what_another_node_can_make_does_not_end_the_job(self) -> None:
        for status, code, reach, reason in (
            (400, "failed_precondition", "held", "node: "),  # the partition was moved: heartbeats tell it soon
            (500, "data_loss", "any", "data: "),  # the worker read the partition elsewhere: the leader decides
        ):
            left = [3]

            def lost(h: Any, epoch: int, number: int) -> bool:
                if number != 7 or not left[0]:
                    return False
                left[0] -= 1
                h.refuse(status, code, "partition p is not here")
                return True

            with self.subTest(code), Cluster(nodes=2, total=20) as c:
                c.ledger.reach = reach
                for n in c.nodes:
                    n.faults.append(lost)
                with Job(c.urls, "rm1") as job:
                    self.assertEqual(sorted(numbers(job)), list(range(20)))
                told = [r for r in c.ledger.released if "partition p is not here" in r]
                self.assertEqual([r[:6] for r in told], [reason] * 3)

    def test_another_consumer_fences_this_one_off(self) -> None:
        with Cluster(total=40) as c, Job(c.urls, "rm1", queue_bytes=1) as old:
            it = old.minibatches()
            next(it)
            with Job(c.urls, "rm1") as new:
                with self.assertRaises(FencedError):
                    for _ in it:
                        pass
                self.assertIn(39, numbers(new))

    def test_a_session_that_nobody_knows(self) -> None:
        with Cluster(total=40) as c, Job(c.urls, "rm1", queue_bytes=1) as job:
            it = job.minibatches()
            seen = [next(it).name.number for _ in range(6)]
            saved = job.state_dict()
            with c.ledger.lock:  # as after a restore from a backup: the last acknowledgements are lost, too
                c.ledger.sessions.clear()
                c.ledger.leases.clear()
                c.ledger.delivered = Ranges([(0, 2)])
            state = saved
            with self.assertRaisesRegex(FencedError, "attach again"):
                for b in it:
                    seen.append(b.name.number)
            seen = seen[: Token.parse(state["token"]).mark]
            with Job(c.urls, "rm1", token=state) as again:
                self.assertEqual(seen + numbers(again), list(range(40)))

    def test_a_revoked_lease(self) -> None:
        with Cluster(total=40) as c, Job(c.urls, "rm1") as job:
            it = job.minibatches()
            seen = [next(it).name.number for _ in range(3)]
            with c.ledger.lock:
                c.ledger.revoke = list(c.ledger.leases)
            seen += numbers(it)
            self.assertEqual(seen, list(range(40)))

    def test_the_job_is_cancelled(self) -> None:
        with Cluster(total=400, split=4) as c, Job(c.urls, "rm1", queue_bytes=1) as job, Control(c.urls) as control:
            it = job.minibatches()
            next(it)
            control.cancel("rm1")
            c.ledger.state = "cancelled"
            with self.assertRaisesRegex(JobEndedError, "cancelled"):
                for _ in it:
                    pass

    def test_words_about_a_session_fence_nobody_off(self) -> None:
        with Cluster() as c, Job(c.urls, "rm1") as job:
            for message, kind in (
                ("job session-ads-1 has ended: cancelled", JobEndedError),
                ("job rm1 has ended: failed: data: the session column is cut off", JobEndedError),
                ("ledger: the session was fenced off: attach again", FencedError),
            ):
                self.assertIs(type(job._session.named(ServiceError("aborted", message, "Lease"))), kind)

    def test_a_job_that_ended_before(self) -> None:
        with Cluster() as c:
            c.ledger.state = "failed"
            with self.assertRaisesRegex(JobEndedError, "has ended .failed.: submit it again"):
                Job(c.urls, "rm1")

    def test_an_abandoned_job(self) -> None:
        with Cluster() as c:
            c.ledger.state = "abandoned: no rank has called since 2026-01-02T03:04:05Z, for more than 24h0m0s"
            with self.assertRaisesRegex(
                JobAbandonedError, "no rank has called since .*: submit it again, with the trainer's token"
            ):
                Job(c.urls, "rm1")

    def test_whoever_ends_says_so(self) -> None:
        """A job that is closed, dropped or left by an exception detaches within 20 seconds, after which the rank holds
        no lease.
        """
        for end in ("close", "forget", "exception"):
            with self.subTest(end), Cluster(total=400, split=4) as c:
                job = Job(c.urls, "rm1")
                next(iter(job.minibatches()))
                if end == "close":
                    job.close()
                elif end == "forget":
                    del job
                    gc.collect()
                else:
                    with self.assertRaises(RuntimeError), job:
                        raise RuntimeError("the step fails")
                until = time.monotonic() + 20
                while "detach" not in c.ledger.released and time.monotonic() < until:
                    time.sleep(0.01)
                self.assertEqual(c.ledger.released[-1], "detach")
                with c.ledger.lock:
                    self.assertEqual(c.ledger.leases, {})

    def test_tickets_are_shown_and_renewed(self) -> None:
        """Every request has a ticket of its lease, which the fake nodes of all tests demand: first that of the grant,
        and the renewed one once it has come.
        """
        with Cluster(total=64, split=64, nodes=1) as c, Job(c.urls, "rm1", queue_bytes=1, credits=1) as job:
            it = job.minibatches()
            seen = [next(it).name.number for _ in range(3)]
            with c.ledger.lock:
                c.ledger.issue = 1
            until = time.monotonic() + 20
            while c.ledger.renewed < 2 and time.monotonic() < until:  # a second call shows that the first was handled
                time.sleep(0.01)
            seen += numbers(it)
            self.assertEqual(sorted(seen), list(range(64)))
            issues = c.nodes[0].issues
            self.assertEqual(set(issues), {0, 1})
            self.assertEqual(issues, sorted(issues))
            self.assertEqual(job.statistics.failures, 0)

    def test_answers_that_make_no_sense(self) -> None:
        for grant in (
            {"lease": "1", "from": "38", "to": "41", "urls": []},
            {"lease": "1", "from": "0", "to": str(1 << 62)},
            {"lease": "x"},
            {"lease": "1", "to": "4", "urls": 7},
            "nothing",
        ):
            with self.subTest(grant), Cluster(total=40) as c:
                c.ledger.lease = lambda m: {"grants": [grant]}  # type: ignore[method-assign]
                with Job(c.urls, "rm1") as job, self.assertRaisesRegex(ServiceError, "makes no sense"):
                    numbers(job)

    def test_no_such_job(self) -> None:
        with Cluster() as c:
            with self.assertRaises(ServiceError) as e:
                Job(c.urls, "other")
            self.assertEqual(e.exception.code, "not_found")

    def test_a_socket_of_another_node_is_not_used(self) -> None:
        with (
            tempfile.TemporaryDirectory() as folder,
            Cluster(nodes=1, total=8, unix=folder) as c,
            Cluster(nodes=1) as other,
        ):
            c.nodes[0].called = "somebody else"
            tcp = other.nodes[0]
            c.nodes[0].urls = [c.nodes[0].serving.url, tcp.serving.url]
            with Job(c.urls, "rm1") as job:
                self.assertEqual(numbers(job), list(range(8)))
            self.assertEqual(c.nodes[0].asked, [])
            self.assertEqual(len(tcp.asked), 8)

    def test_what_the_control_plane_hears(self) -> None:
        with Cluster(total=40) as c, Job(c.urls, "rm1", queue_bytes=3 * len(content(0, 0))) as job:
            job.report_throughput(123.5)
            it = job.minibatches()
            next(it)
            for _ in range(1000):
                with c.ledger.lock:
                    last = c.ledger.reports[-1]
                if last.get("blocked") and last["tRowsPerSecond"] == 123.5 and last["queueBatches"]:
                    break
                threading.Event().wait(0.02)
            self.assertTrue(last["blocked"])
            self.assertEqual(last["tRowsPerSecond"], 123.5)
            self.assertEqual(int(last["queueLimitBytes"]), 3 * len(content(0, 0)))
            self.assertEqual(job.mean_length, {"cat_1": 1.5})
            self.assertEqual(len(numbers(it)), 39)

    def test_arguments(self) -> None:
        for bad in ({"order": "random"}, {"acknowledge": "never"}, {"credits": 0}, {"queue_bytes": 0}, {"splits": 0}):
            with self.assertRaises(ValueError):
                Job("http://127.0.0.1:1", "x", **bad)  # type: ignore[arg-type]


class Failover(unittest.TestCase):
    def test_the_leader_is_found(self) -> None:
        with Cluster(total=12, members=3) as c:
            c.leader = 2
            with Job(c.urls, "rm1") as job:
                self.assertEqual(numbers(job), list(range(12)))

    def test_the_leader_dies_and_another_takes_over(self) -> None:
        with Cluster(total=60, members=3) as c, Job(",".join(c.urls), "rm1") as job:
            it = job.minibatches()
            seen = [next(it).name.number for _ in range(5)]
            c.down, c.leader = {0}, -1
            timer = threading.Timer(0.3, lambda: setattr(c, "leader", 1))
            timer.start()
            seen += numbers(it)
            timer.join()
            self.assertEqual(seen, list(range(60)))

    def test_a_new_leader_is_told_what_is_held(self) -> None:
        with Cluster(total=60) as c, Job(c.urls, "rm1", queue_bytes=1) as job:
            it = job.minibatches()
            next(it)
            lease = c.ledger.lease
            asked = threading.Event()

            def adopting(m: dict[str, Any]) -> dict[str, Any]:
                answer = lease(m)
                if not asked.is_set():
                    asked.set()
                    answer["adopt"] = True
                return answer

            c.ledger.lease = adopting  # type: ignore[method-assign]
            self.assertEqual(len(numbers(it)), 59)
            self.assertTrue(c.ledger.adopted)
            self.assertEqual(set(c.ledger.adopted[0]), {"lease", "epoch", "split", "node", "drive", "from", "to"})

    def test_a_new_leader_forgets_acknowledgements_inside_a_split(self) -> None:
        for order in ("deterministic", "fastest"):
            with (
                self.subTest(order),
                Cluster(total=80, split=8, order=order) as c,
                Job(c.urls, "rm1", queue_bytes=1 << 14) as job,
            ):
                it = job.minibatches()
                seen = []
                for b in it:
                    seen.append(b.name.number)
                    if len(seen) in (11, 30, 53):
                        job.flush()
                        with c.ledger.lock:
                            c.ledger.fail_over()
                        # A checkpoint counts everything, before and after the leader's change is noticed.
                        got = Token.parse(job.state_dict()["token"])
                        self.assertEqual({n for a, b in [(0, got.mark), *got.runs] for n in range(a, b)}, set(seen))
                self.assertEqual(sorted(seen), list(range(80)))
                job.flush()
                self.assertEqual(c.ledger.delivered, Ranges([(0, 80)]))

    def test_the_leader_changes_between_two_epochs(self) -> None:
        with Cluster(total=20, split=8, epochs=2) as c, Job(c.urls, "rm1", acknowledge="manual") as job:
            for b in job.minibatches():
                if b.name.number != 3:
                    job.acknowledge(b.name)
                else:
                    third = b.name
            job.flush()
            with job._session.cond, c.ledger.lock:  # the last acknowledgement goes to another leader than the others
                job._session.intake.acknowledge(third.number)
                job._session.intake.sending()
                job._session.intake.sent(0, Ranges([(3, 4)]))
                c.ledger.delivered = Ranges([(0, 3), (4, 20)])
                c.ledger.fence += 1
            self.assertTrue(job.next_epoch())
            self.assertEqual(len(numbers(job.minibatches())), 20)

    def test_an_answer_of_the_former_leader_comes_last(self) -> None:
        with Cluster(total=20, split=8, epochs=2) as c, Job(c.urls, "rm1") as job:
            self.assertEqual(len(numbers(job.minibatches())), 20)
            job.flush()
            with job._session.cond, c.ledger.lock:
                for fence, again in ((2, True), (1, False), (2, False), (3, True)):
                    job._session._with_answer({"fence": str(fence), "epochDone": True})
                    self.assertEqual(bool(job._session.intake.sending()), again, f"fence {fence}")
                job._session.intake.retell()  # what was taken above was not sent
                c.ledger.fence = 3
            self.assertTrue(job.next_epoch())
            self.assertEqual(len(numbers(job.minibatches())), 20)

    def test_the_next_epoch_begins_in_the_first_answer_of_a_new_leader(self) -> None:
        with Cluster(total=20, split=8, epochs=2) as c, Job(c.urls, "rm1") as job:
            self.assertEqual(len(numbers(job.minibatches())), 20)
            job.flush()
            lease, acknowledge, again = c.ledger.lease, c.ledger.acknowledge, []

            def changing(m: dict[str, Any]) -> dict[str, Any]:
                if m.get("epoch") == "1":
                    c.ledger.lease = lease  # type: ignore[method-assign]
                    c.ledger.fence += 1
                return lease(m)

            def counting(m: dict[str, Any]) -> None:
                again.append(m["epoch"])
                acknowledge(m)

            c.ledger.lease, c.ledger.acknowledge = changing, counting  # type: ignore[method-assign]
            self.assertTrue(job.next_epoch())
            self.assertEqual(again, [], "the epoch has begun, so the ledger has everything of the one before")
            self.assertEqual(len(numbers(job.minibatches())), 20)

    def test_nobody_leads(self) -> None:
        with Cluster(members=2) as c:
            c.leader = -1
            with Control(c.urls, patience=0.2) as control, self.assertRaisesRegex(UnreachableError, "nobody leads"):
                control.job("rm1")
        with Control("http://127.0.0.1:9", patience=0.0) as control, self.assertRaises(UnreachableError):
            control.job("rm1")

    def test_attaching_waits_for_as_long_as_other_jobs_hold_the_room(self) -> None:
        for words, bound, waits in (
            ("waiting: for room held by a-1: partition p: node n", 0.0, True),
            ("preparing: rows are selected: 1 of 2 tested", 0.0, True),
            ("measuring", 600.0, True),
            ("measuring", 0.0, False),
        ):
            with self.subTest(words), Cluster() as c, mock.patch.object(session, "_PREPARATION", bound):
                attach, refusals = c.ledger.attach, [words] * 3

                def refusing(*args: Any, **kwargs: Any) -> Any:
                    if refusals:
                        raise Refusal(503, "unavailable", f"job j is {refusals.pop()}")
                    return attach(*args, **kwargs)

                c.ledger.attach = refusing  # type: ignore[method-assign]
                with self.assertLogs("millrace", "WARNING") as logs:
                    if waits:
                        Job(c.urls, "rm1", patience=0.0).close()
                        self.assertIn(words, logs.output[0])
                    else:
                        logging.getLogger("millrace").warning("of an assertion that needs one")
                        with self.assertRaisesRegex(ServiceError, words):
                            Job(c.urls, "rm1", patience=0.0)

    def test_closing_ends_a_call_that_waits(self) -> None:
        with Cluster() as c:
            c.leader = -1
            control = Control(c.urls, patience=60)
            threading.Timer(0.1, control.close).start()
            with self.assertRaises(ClosedError):
                control.job("rm1")

    def test_submit(self) -> None:
        with Cluster() as c, Control(c.urls) as control:
            status = control.submit({"name": "rm1", "pipeline": "name: rm1\n", "resume": b"MRCT", "ranks": 2})
            self.assertEqual(status["id"], "j1")
            self.assertEqual(c.spec, {"name": "rm1", "pipeline": "bmFtZTogcm0xCg==", "resume": "TVJDVA==", "ranks": 2})
            self.assertEqual(control.jobs()[0]["id"], "j1")

    def test_submit_takes_a_pipeline_by_name_path_or_text(self) -> None:
        with Cluster() as c, Control(c.urls) as control, tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "p.yaml")
            with open(path, "w", encoding="utf-8") as f:
                f.write("name: mine\n")
            for given, sent in (
                ("rm1", b"rm1"),
                (path, b"name: mine\n"),
                (pathlib.Path(path), b"name: mine\n"),
                ("name: text", b"name: text"),
                (b"name: bytes", b"name: bytes"),
            ):
                control.submit({"name": "a", "pipeline": given})
                self.assertEqual(base64.b64decode(c.spec["pipeline"]), sent)
            with self.assertRaisesRegex(
                FileNotFoundError, "no such file; give a path, a YAML document or a pipeline's name"
            ):
                control.submit({"name": "a", "pipeline": "none.yaml"})

    def test_submit_refuses_statistics_of_no_pipeline(self) -> None:
        with Cluster() as c, Control(c.urls) as control:
            for spec, statistics, says in (
                ({"name": "a"}, {"train": "train.summary"}, "no pipeline"),
                ({"name": "a", "pipeline": b"\xff"}, {"train": "train.summary"}, "not UTF-8"),
                ({"name": "a", "pipeline": "rm1"}, ["train.summary"], "want a mapping of names to files"),
                ({"name": "a", "pipeline": "rm1"}, {"train": 7}, "want a mapping of names to files"),
            ):
                with self.subTest(says), self.assertRaisesRegex(OptionsError, says):
                    control.submit(spec, statistics=statistics)  # type: ignore[arg-type]
            self.assertEqual(c.spec, {})

    def test_submit_refuses_what_is_no_field(self) -> None:
        with Cluster() as c, Control(c.urls) as control:
            for spec, says in (
                ({"name": "a", "epoch": 3}, "job: no field 'epoch'; did you mean 'epochs'"),
                ({"rank_tails": "keep"}, "rank_tail"),
                ({"batch": 512}, "no field 'batch'"),
                ({"plan": {"batches": 512}}, "job: plan: no field 'batches'; did you mean 'batch'"),
                ({"plan": {7: 512}}, "no field 7"),
            ):
                with self.subTest(spec), self.assertRaisesRegex(ValueError, says):
                    control.submit(spec)
            for wrong in (None, "rm1", {"plan": "none"}):
                with self.subTest(wrong), self.assertRaisesRegex(TypeError, "want a mapping"):
                    control.submit(wrong)  # type: ignore[arg-type]
            self.assertEqual(c.spec, {})
            control.submit(
                {"rankTail": "keep", "t_rows_per_second": 1.0, "plan": {"splitBatches": "4", "split_batches": 4}}
            )

    def test_fields_are_those_of_the_protocol(self) -> None:
        repository = pathlib.Path(os.environ.get("MILLRACE_REPOSITORY") or pathlib.Path(__file__).parents[3])
        proto = repository / "host" / "api" / "v1" / "millrace.proto"
        for message, known in (("JobSpec", _SPEC), ("PlanOptions", _PLAN)):
            found = re.search(rf"^message {message} {{(.*?)^}}", proto.read_text(), re.M | re.S)
            assert found is not None
            fields = set(re.findall(r"^  (?:repeated )?[\w.]+ (\w+) = \d+;", found[1], re.M))
            self.assertEqual(known, fields)

    def test_tls_files_that_are_not_there_are_named(self) -> None:
        with tempfile.NamedTemporaryFile() as there, self.assertRaises(FileNotFoundError) as e:
            Control("https://127.0.0.1:1", tls=(there.name, "/nowhere/node.key", there.name))
        self.assertEqual(e.exception.filename, "/nowhere/node.key")

    def test_urls(self) -> None:
        for bad in ("ftp://h:1", "http://h:1/path", "unix:", "h:1", []):
            with self.subTest(bad), self.assertRaises(ValueError):
                Control(bad)


if __name__ == "__main__":
    unittest.main()
