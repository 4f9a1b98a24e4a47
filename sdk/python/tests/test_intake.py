"""The intake's rules, without threads: a random world of leases, failures and restarts delivers everything once."""

from __future__ import annotations

import random
import unittest
from typing import Any

from millrace import frame
from millrace.intake import Intake, Lease
from millrace.token import Ranges

from .fake import JOB, SCHEMA


def batch(number: int, epoch: int = 0) -> frame.MiniBatch:
    """A mini-batch with a name; its content does not matter here."""
    return frame.MiniBatch(frame.Name(JOB, epoch, number), SCHEMA, 1, (), memoryview(b""), 100)


def lease(id: int, first: int, end: int, node: str = "n", epoch: int = 0) -> Lease:
    return Lease(id, epoch, 0, first, end, node, "d", ())


def intake(order: str = "deterministic", limit: int = 1 << 20, owned: Any = ((0, 20),), done: Any = ()) -> Intake:
    i = Intake(order == "deterministic", limit)
    i.begin(JOB, 0, Ranges(owned), Ranges(done))
    return i


class Rules(unittest.TestCase):
    def test_what_is_not_wanted_is_given_back(self) -> None:
        i = intake(done=[(0, 5)])
        self.assertFalse(i.granted(lease(2, 5, 5)), "empty")
        self.assertFalse(i.granted(lease(3, 5, 9, epoch=1)), "of another epoch")
        self.assertTrue(i.granted(lease(4, 4, 8)))
        self.assertEqual(list(i.leases[4].todo), [5, 6, 7])
        self.assertEqual(list(i.sending()), [(4, 5)], "whoever grants it does not know that it was acknowledged")
        self.assertFalse(i.settled)

    def test_telling_again(self) -> None:
        i = intake(done=[(0, 5), (8, 9)])
        self.assertTrue(i.settled)
        i.retell(Ranges([(3, 9)]))
        self.assertEqual(list(i.sending()), [(3, 5), (8, 9)])
        i.sent(0, Ranges([(3, 5), (8, 9)]))
        self.assertTrue(i.settled)
        i.retell()
        self.assertEqual(list(i.sending()), [(0, 5), (8, 9)])

    def test_the_due_minibatch_is_let_into_a_full_queue(self) -> None:
        i = intake(limit=250)
        i.frame_bytes = 100
        i.granted(lease(1, 4, 8))
        for _ in range(2):
            w = i.next_fetch()
            self.assertTrue(i.fetched(w, batch(w.number)))
        self.assertIsNone(i.next_fetch())
        self.assertTrue(i.full)
        self.assertEqual(i.due, 0)
        i.granted(lease(2, 0, 4))
        self.assertIsNone(i.due)
        w = i.next_fetch()
        self.assertEqual(w.number, 0)
        self.assertTrue(i.fetched(w, batch(0)))
        self.assertEqual(i.take().name.number, 0)

    def test_fastest_with_a_tiny_queue_takes_one_at_a_time(self) -> None:
        i = intake("fastest", limit=1)
        i.frame_bytes = 100
        i.granted(lease(1, 0, 4))
        w = i.next_fetch()
        self.assertIsNone(i.next_fetch())
        i.fetched(w, batch(w.number))
        self.assertIsNone(i.next_fetch())
        i.take()
        self.assertIsNotNone(i.next_fetch())

    def test_splits_share_requests(self) -> None:
        i = intake("fastest")
        i.granted(lease(1, 0, 4))
        i.granted(lease(2, 4, 8))
        self.assertEqual([i.next_fetch().number for _ in range(4)], [0, 4, 1, 5])

    def test_a_node_that_rests(self) -> None:
        i = intake("fastest")
        i.granted(lease(1, 0, 4, "sick"))
        i.granted(lease(2, 4, 8, "well"))
        self.assertEqual([i.next_fetch(lambda x: x.node == "well").number for _ in range(2)], [4, 5])

    def test_duplicates_and_strangers_are_dropped(self) -> None:
        i = intake("fastest")
        i.granted(lease(1, 0, 2))
        w = i.next_fetch()
        i.dropped([1])
        i.granted(lease(2, 0, 2))
        again = i.next_fetch()
        self.assertEqual(again.number, 0)
        self.assertTrue(i.fetched(w, batch(0)))
        self.assertFalse(i.fetched(again, batch(0)))
        other = i.next_fetch()
        self.assertFalse(i.fetched(other, batch(1, epoch=1)))

    def test_only_a_held_lease_is_released(self) -> None:
        i = intake("fastest")
        i.granted(lease(1, 0, 4))
        a, b = i.next_fetch(), i.next_fetch()
        self.assertTrue(i.failed(a))
        self.assertFalse(i.failed(b), "it was released already")
        self.assertEqual(i.leases, {})

    def test_acknowledging(self) -> None:
        i = intake("fastest")
        with self.assertRaises(KeyError):
            i.acknowledge(0)
        i.granted(lease(1, 0, 2))
        for _ in range(2):
            w = i.next_fetch()
            i.fetched(w, batch(w.number))
        i.take(), i.take()
        i.acknowledge(1)
        i.acknowledge(1)
        self.assertFalse(i.settled)
        sent = i.sending()
        self.assertEqual(list(sent), [(1, 2)])
        i.sent(7, sent)
        self.assertFalse(i.settled, "of another epoch")
        i.sent(0, sent)
        self.assertTrue(i.settled)
        self.assertEqual(i.spent(), [])
        i.acknowledge(0)
        i.sent(0, i.sending())
        self.assertEqual(i.spent(), [1])

    def test_a_rank_that_owns_nothing(self) -> None:
        for order in ("deterministic", "fastest"):
            i = intake(order, owned=())
            self.assertTrue(i.delivered)
            self.assertTrue(i.settled)
            self.assertFalse(i.owns(lease(1, 0, 4)))


class RandomWorlds(unittest.TestCase):
    def test_everything_comes_once(self) -> None:
        for seed in range(300):
            with self.subTest(seed=seed):
                self.world(random.Random(seed))

    def world(self, r: random.Random) -> None:
        total = r.randrange(1, 40)
        first = r.randrange(0, 10)
        done = Ranges([(a, a + r.randrange(3)) for a in range(first, first + total, 7)])
        owned = Ranges([(first, first + total)])
        deterministic = r.random() < 0.5
        i = Intake(deterministic, r.choice([1, 250, 1000, 1 << 20]))
        i.begin(JOB, 0, owned, Ranges([(a, b) for a, b in done]).minus(Ranges([(first + total, 99)])))
        owed = {n for a, b in owned.minus(done) for n in range(a, b)}
        yielded: list[int] = []
        flying: list[Any] = []
        unacked: list[int] = []
        ids = iter(range(1, 1_000_000))
        for step in range(20_000):
            if i.delivered:
                break
            what = r.random()
            if what < 0.2:  # a grant of something that nobody holds and the ledger does not know delivered
                out = Ranges([(x.first, x.end) for x in i.leases.values()])
                left = list(owned.minus(i.durable).minus(out))
                if left:
                    a, b = left[0] if deterministic else r.choice(left)
                    i.granted(lease(next(ids), a, min(b, a + r.randrange(1, 6))))
            elif what < 0.5:
                w = i.next_fetch()
                if w is not None:
                    flying.append(w)
            elif what < 0.75 and flying:
                w = flying.pop(r.randrange(len(flying)))
                if r.random() < 0.15:
                    i.failed(w)
                else:
                    i.fetched(w, batch(w.number))
            elif what < 0.9:
                mb = i.take()
                if mb is not None:
                    yielded.append(mb.name.number)
                    unacked.append(mb.name.number)
            elif what < 0.95 and unacked:
                i.acknowledge(unacked.pop(r.randrange(len(unacked))))
                if r.random() < 0.7:
                    i.sent(0, i.sending())
                    i.spent()
            elif what < 0.97 and i.leases:
                i.dropped([r.choice(list(i.leases))])
            elif deterministic and i.due is not None and i.leases:
                i.dropped([max(i.leases)])
        self.assertTrue(i.delivered, "it ends")
        self.assertEqual(len(yielded), len(set(yielded)))
        self.assertEqual(set(yielded), owed)
        if deterministic:
            self.assertEqual(yielded, sorted(yielded))


if __name__ == "__main__":
    unittest.main()
