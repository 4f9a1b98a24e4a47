"""Jobs whose mini-batches are of several splits, against a fake control plane and fake nodes."""

from __future__ import annotations

import logging
import random
import unittest
from typing import Any, Optional

from millrace import Control, Job, ServiceError, frame
from millrace.intake import Intake, Lease, Work
from millrace.nodes import planned_rows
from millrace.token import Ranges

from .fake import JOB, SCHEMA, Cluster, Sequence, content, part

# Rows of splits: shorter and longer than a mini-batch, and ending with one.
SPLITS = (50, 20, 7, 3, 100, 32, 64, 1, 1, 42, 96, 160, 5, 5, 5)


logging.getLogger("millrace").setLevel(logging.ERROR)


class Delivery(unittest.TestCase):
    def check(self, c: Cluster, batches: Any, epoch: int = 0) -> list[int]:
        seen = []
        for b in batches:
            self.assertIsNone(b.fragment)
            self.assertEqual(b.name.epoch, epoch)
            self.assertEqual(bytes(b.data), c.expected(epoch, b.name.number)[-len(b.data) :])
            seen.append(b.name.number)
        return seen

    def test_every_minibatch_comes_whole_in_both_orders(self) -> None:
        for order in ("deterministic", "fastest"):
            for queue_bytes in (1, 1 << 14, 256 << 20):
                with self.subTest(order=order, queue_bytes=queue_bytes):
                    with Cluster(nodes=3, splits=SPLITS, order=order) as c:
                        with Job(c.urls, "rm1", queue_bytes=queue_bytes, credits=3, splits=2) as job:
                            seen = self.check(c, job)
                        self.assertEqual(sorted(seen), list(range(c.total)))
                        if order == "deterministic":
                            self.assertEqual(seen, sorted(seen))
                        self.assertEqual(c.ledger.delivered, Ranges([(0, c.total)]))
                        self.assertEqual(c.ledger.leases, {}, "a lease ends with its mini-batches")
                        self.assertEqual(job.statistics.rows, sum(SPLITS))
                        self.assertEqual(job.statistics.duplicates, 0)

    def test_a_minibatch_of_many_splits(self) -> None:
        with Cluster(nodes=2, splits=(1,) * 70) as c, Job(c.urls, "rm1", queue_bytes=1, splits=1) as job:
            self.assertEqual(self.check(c, job), [0, 1, 2])

    def test_a_whole_minibatch_is_a_view_of_its_frame(self) -> None:
        with Cluster(nodes=1, splits=(64, 20, 44)) as c, Job(c.urls, "rm1") as job:
            sizes = [(b.nbytes, len(b.data)) for b in job]
        self.assertTrue(all(n > data for n, data in sizes[:2]), "a frame has a header")
        self.assertEqual(sizes[2][0], sizes[2][1], "it was joined")

    def test_ranks_count_minibatches(self) -> None:
        with Cluster(nodes=2, splits=SPLITS, ranks=2, order="fastest") as c:
            half = c.total // 2
            for rank in (0, 1):
                with Job(c.urls, "rm1", rank=rank) as job:
                    self.assertEqual(job.owned, [(rank * half, (rank + 1) * half)])
                    self.assertEqual(sorted(self.check(c, job.minibatches())), list(range(*job.owned[0])))

    def test_leases_tell_minibatches(self) -> None:
        with Cluster(nodes=2, splits=(50, 46, 32, 64)) as c, Job(c.urls, "rm1", queue_bytes=1, splits=2) as job:
            first = next(iter(job))
            missing = [n for _, _, numbers in job.leases() for n in numbers]
            self.assertEqual(first.name.number, 0)
            self.assertLessEqual(set(missing), set(range(1, 6)))

    def test_epochs_and_a_token_in_the_middle(self) -> None:
        with Cluster(nodes=2, splits=SPLITS, epochs=2) as c:
            with Job(c.urls, "rm1") as job:
                it = iter(job)
                seen = [next(it).name.number for _ in range(7)]
                state = job.state_dict()
            with Job(c.urls, "rm1", token=state) as job:
                rest = [(b.name.epoch, b.name.number) for b in job]
        self.assertEqual(seen, list(range(7)))
        want = [(0, n) for n in range(7, c.total)] + [(1, n) for n in range(c.total)]
        self.assertEqual(rest, want)

    def test_a_node_dies_and_a_leader_follows(self) -> None:
        with Cluster(nodes=3, splits=SPLITS, order="fastest") as c, Job(c.urls, "rm1", queue_bytes=1 << 14) as job:
            seen = []
            for b in job:
                seen.append(b.name.number)
                self.assertEqual(bytes(b.data), c.expected(0, b.name.number)[-len(b.data) :])
                if len(seen) == 4:
                    c.nodes[0].kill()
                if len(seen) == 9:
                    with c.ledger.lock:
                        c.ledger.fail_over()
            self.assertEqual(sorted(seen), list(range(c.total)))

    def wrong(self, make: Any) -> list[int]:
        """Runs a job whose first node answers once what ``make`` returns for a fragment; None: the right one."""
        given = set()
        with Cluster(nodes=2, splits=SPLITS) as c:
            c.ledger.manifest = b'{"partitions":[{"rows":%d}]}' % sum(SPLITS)

            def fault(h: Any, epoch: int, number: int) -> Optional[bool]:
                bad = make(c, epoch, number)
                if bad is None or number in given:
                    return None
                given.add(number)
                h.answer(200, bad)
                return True

            c.nodes[0].faults.append(fault)
            with Job(c.urls, "rm1") as job:
                seen = self.check(c, job)
                self.assertGreater(job.statistics.failures, 0)
        return seen

    def test_wrong_fragments_are_made_by_another_node(self) -> None:
        def other_count(c: Cluster, epoch: int, number: int) -> Optional[bytes]:
            minibatch, first, rows = c.sequence.fragments[number]
            place = c.sequence.place(number)
            if place is None or place.position == 0:
                return None  # the right node's, so that there is another fragment that it does not fit
            raw = content(epoch, minibatch, c.sequence.rows[minibatch])
            return part(raw, first, rows, frame.Fragment(place.position, place.of + 1))

        def fewer_rows(c: Cluster, epoch: int, number: int) -> Optional[bytes]:
            minibatch, first, rows = c.sequence.fragments[number]
            place = c.sequence.place(number)
            if place is None or rows == 1:
                return None
            return part(content(epoch, minibatch, c.sequence.rows[minibatch]), first, rows - 1, place)

        def whole(c: Cluster, epoch: int, number: int) -> Optional[bytes]:
            minibatch, _, _ = c.sequence.fragments[number]
            place = c.sequence.place(number)
            return content(epoch, minibatch + 1, 32) if place is not None else None

        def lengths(c: Cluster, epoch: int, number: int) -> Optional[bytes]:
            minibatch, first, rows = c.sequence.fragments[number]
            place = c.sequence.place(number)
            if place is None:
                return None
            mb = frame.decode(part(content(epoch, minibatch, c.sequence.rows[minibatch]), first, rows, place))
            tensors = {e.name: bytes(mb.content(e.name)) for e in mb.extents}
            tensors["kjt.lengths"] = b"\xff" * len(tensors["kjt.lengths"])
            return frame.encode(mb.name, mb.schema, rows, tensors, fragment=place)

        for make in (other_count, fewer_rows, whole, lengths):
            with self.subTest(make.__name__):
                self.assertEqual(self.wrong(make), list(range(-(-sum(SPLITS) // 32))))


class Submission(unittest.TestCase):
    def test_a_leader_that_ignores_the_boundary(self) -> None:
        spec = {"name": "rm1", "pipeline": "name: rm1\n", "plan": {"boundary": "none"}}
        with Cluster(splits=SPLITS) as c, Control(c.urls) as control:
            self.assertEqual(control.submit(spec)["id"], "j1")
        with Cluster() as c, Control(c.urls) as control:
            with self.assertRaisesRegex(ServiceError, "job j1 has the boundary partition.*upgrade"):
                control.submit(spec)
            control.submit({**spec, "plan": {"boundary": "partition"}})

    def test_a_leader_that_ignores_follow_once(self) -> None:
        spec = {"name": "rm1", "pipeline": "name: rm1\n", "follow": True}
        for field in ("follow_once", "followOnce"):
            with Cluster() as c, Control(c.urls) as control:
                with self.assertRaisesRegex(ServiceError, "job j1 delivers later partitions as often.*upgrade"):
                    control.submit({**spec, field: True})
                control.submit({**spec, field: False})
            with Cluster() as c, Control(c.urls) as control:
                c.ledger.follow_once = True
                self.assertEqual(control.submit({**spec, field: True})["id"], "j1")


class Rules(unittest.TestCase):
    def test_a_lease_names_its_first_minibatch(self) -> None:
        lease = Lease.of({"lease": "1", "from": "7", "to": "10", "urls": ["http://n"], "miniBatch": "0"})
        self.assertEqual((lease.excess, lease.minibatches), (7, (0, 3)))
        self.assertEqual(Work(lease, 9).minibatch, 2)
        self.assertEqual(Lease.of({"lease": "1", "from": "7", "to": "10", "urls": ["http://n"]}).minibatches, (7, 10))
        self.assertEqual(Lease.of({"from": "7", "to": "10", "urls": ["http://n"], "miniBatch": "7"}).excess, 0)
        with self.assertRaises(ValueError):
            Lease.of({"lease": "1", "from": "7", "to": "10", "urls": ["http://n"], "miniBatch": "8"})

    def test_rows_of_the_sequence(self) -> None:
        manifest = b'{"partitions":[{"rows":65},{"rows":40}]}'
        self.assertEqual(planned_rows(manifest, 32, (), "none"), {32, 9})
        self.assertEqual(planned_rows(manifest, 32, [0, 20], "none"), {20})
        self.assertEqual(planned_rows(manifest, 35, (), "none"), {35})


def fragment(sequence: Sequence, number: int) -> frame.MiniBatch:
    """A fragment with a name and a place; its content does not matter here."""
    name = frame.Name(JOB, 0, sequence.fragments[number][0])
    return frame.MiniBatch(name, SCHEMA, 1, (), memoryview(b""), 100, (), sequence.place(number))


class Bounds(unittest.TestCase):
    """A mini-batch has 4 rows; the splits end inside mini-batches 0, 1 and 3."""

    def setUp(self) -> None:
        self.sequence = Sequence(0, 1, 4, (3, 3, 8, 6))  # fragments of mini-batches 0, 0 1, 1 2 3, 3 4

    def intake(self, order: str, limit: int) -> Intake:
        i = Intake(order == "deterministic", limit)
        i.frame_bytes = 100
        i.begin(JOB, 0, Ranges([(0, self.sequence.total)]), Ranges())
        return i

    def grant(self, i: Intake, split: int) -> None:
        first, end = ([0, *self.sequence.ends])[split : split + 2]
        excess = first - self.sequence.fragments[first][0]
        self.assertTrue(i.granted(Lease(split + 1, 0, split, first, end, "n", "d", (), excess=excess)))

    def fetch(self, i: Intake) -> Optional[int]:
        """Fetches and takes in the next fragment, and returns its number; None if there is none."""
        w = i.next_fetch()
        if w is not None:
            self.assertTrue(i.fetched(w, fragment(self.sequence, w.number)))
            return w.number
        return None

    def test_fragments_that_wait_fill_the_queue(self) -> None:
        i = self.intake("deterministic", 250)
        self.grant(i, 2)
        self.assertEqual([self.fetch(i), self.fetch(i), self.fetch(i)], [3, 4, None])
        self.assertEqual((i.waiting_bytes, i.full, i.due), (200, True, 0))
        self.grant(i, 0)
        self.assertIsNone(i.due, "a fragment of it is leased")
        self.assertEqual([self.fetch(i), self.fetch(i)], [0, None])
        self.assertEqual(i.due, 0, "the rest of it is neither leased nor here")
        self.grant(i, 1)
        self.assertEqual([self.fetch(i), self.fetch(i)], [1, None])
        parts = i.complete(Work(i.leases[2], 1))
        self.assertEqual([p.fragment for p in parts], [(0, 2), (1, 2)])
        self.assertIsNone(i.due, "it is being joined")
        self.assertIsNone(i.take())
        i.joined(frame.MiniBatch(parts[0].name, SCHEMA, 2, (), memoryview(b""), 150))
        self.assertEqual(i.waiting_bytes, 350)
        batch = i.take()
        assert batch is not None
        self.assertEqual(batch.name.number, 0)
        self.assertEqual((i.waiting_bytes, self.fetch(i)), (200, 2))

    def test_fastest_with_a_tiny_queue_completes_what_it_began(self) -> None:
        i = self.intake("fastest", 1)
        self.grant(i, 3)
        self.grant(i, 1)
        self.grant(i, 2)
        self.assertEqual(self.fetch(i), 1)
        self.assertEqual(self.fetch(i), 2, "no other lease has a fragment of mini-batch 0")
        self.assertEqual(self.fetch(i), 3, "of mini-batch 1, as is number 2")
        parts = i.complete(Work(i.leases[3], 3))
        i.joined(frame.MiniBatch(parts[0].name, SCHEMA, 2, (), memoryview(b""), 200))
        self.assertIsNone(self.fetch(i), "a whole mini-batch waits")
        self.assertIsNotNone(i.take())
        self.assertEqual(self.fetch(i), 4)

    def test_another_position_forgets_fragments(self) -> None:
        i = self.intake("deterministic", 1 << 20)
        self.grant(i, 1)
        self.assertEqual(self.fetch(i), 1)
        self.grant(i, 0)
        self.assertEqual(self.fetch(i), 0)
        parts = i.complete(Work(i.leases[1], 0))
        i.begin(JOB, 0, Ranges([(0, self.sequence.total)]), Ranges())
        i.joined(frame.MiniBatch(parts[0].name, SCHEMA, 2, (), memoryview(b""), 200))
        self.assertEqual((i.waiting, i.waiting_bytes), ({}, 0))
        self.assertTrue(i.idle)

    def test_a_lease_is_spent_with_the_minibatches_of_its_fragments(self) -> None:
        i = self.intake("fastest", 1 << 20)
        for split in range(4):
            self.grant(i, split)
        i.durable.add(0, 2)
        self.assertEqual(i.spent(), [1, 2])
        i.durable.add(2, 4)
        self.assertEqual(i.spent(), [3])


class RandomWorlds(unittest.TestCase):
    def test_everything_comes_once(self) -> None:
        for seed in range(300):
            with self.subTest(seed=seed):
                self.world(random.Random(seed))

    def world(self, r: random.Random) -> None:
        sequence = Sequence(0, 1, 4, tuple(r.randrange(1, 14) for _ in range(r.randrange(1, 14))))
        owned = Ranges([(0, sequence.total)])
        i = Intake(r.random() < 0.5, r.choice([1, 250, 1000, 1 << 20]))
        i.begin(JOB, 0, owned, Ranges())
        yielded: list[int] = []
        flying: list[Work] = []
        joining: list[list[frame.MiniBatch]] = []
        unacked: list[int] = []
        ids = iter(range(1, 1_000_000))
        for _ in range(20_000):
            if i.delivered:
                break
            what = r.random()
            if what < 0.2 and (i.lacking(4) or i.due is not None):
                out = Ranges([(x.first, x.end) for x in i.leases.values()])
                left = list(sequence.of(owned.minus(i.durable)).minus(out))
                if left:
                    a, b = left[0] if i.deterministic else r.choice(left)
                    split_end = next(e for e in sequence.ends if e > a)
                    end = min(b, split_end, a + r.randrange(1, 6))
                    excess = a - sequence.fragments[a][0]
                    i.granted(Lease(next(ids), 0, 0, a, end, "n", "d", (), excess=excess))
            elif what < 0.5:
                w = i.next_fetch()
                if w is not None:
                    self.assertEqual(w.minibatch, sequence.fragments[w.number][0])
                    flying.append(w)
            elif what < 0.7 and flying:
                w = flying.pop(r.randrange(len(flying)))
                if r.random() < 0.15:
                    i.failed(w)
                elif i.fetched(w, fragment(sequence, w.number)):
                    joining.append(i.complete(w))
            elif what < 0.8 and joining:
                parts = joining.pop(r.randrange(len(joining)))
                if parts:
                    self.assertEqual([p.fragment.position for p in parts if p.fragment], list(range(len(parts))))
                    mb = parts[0]
                    i.joined(frame.MiniBatch(mb.name, SCHEMA, 1, (), memoryview(b""), 100 * len(parts)))
            elif what < 0.9:
                batch = i.take()
                if batch is not None:
                    yielded.append(batch.name.number)
                    unacked.append(batch.name.number)
            elif what < 0.95 and unacked:
                i.acknowledge(unacked.pop(r.randrange(len(unacked))))
                if r.random() < 0.7:
                    i.sent(0, i.sending())
                    i.spent()
            elif what < 0.97 and i.leases:
                i.dropped([r.choice(list(i.leases))])
            elif i.deterministic and i.due is not None and i.leases:
                i.dropped([max(i.leases)])
        self.assertTrue(i.delivered, "it ends")
        self.assertEqual(sorted(yielded), list(range(sequence.total)))
        if i.deterministic:
            self.assertEqual(yielded, sorted(yielded))
        self.assertEqual(i.waiting_bytes, 0)
