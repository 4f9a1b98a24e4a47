"""MiniBatches against the fake service."""

from __future__ import annotations

import pickle
import random
import struct
import sys
import time
import types
import unittest
import warnings
from typing import Any, Callable, Optional
from unittest import mock

try:
    import torch
    from torch.utils.data import DataLoader
except ImportError as e:
    raise unittest.SkipTest(f"torch is not installed: {e}") from None

try:
    from torchdata.stateful_dataloader import StatefulDataLoader
except ImportError:
    StatefulDataLoader = None

import millrace.torch as mt
from millrace import DataLoaderWarning, FrameError, MillraceError, OptionsError, frame, staging, tensors
from millrace.measure import dummy_frame, fingerprint, untouched
from millrace.schema import Key, Schema
from millrace.tensors import bytes_of, moved

from .fake import SCHEMA, Cluster, content, whole
from .test_frame import SCHEMAS
from .torchrec_class import keyed_jagged_tensor


def numbers(batches: Any) -> list[int]:
    return [b.name.number for b in batches]


class Tensors(unittest.TestCase):
    def test_views_of_the_same_memory(self) -> None:
        memory = bytearray(content(0, 5))
        mb = frame.decode(memory)
        b = mt.batch_of(mb, torchrec=False)
        self.assertEqual(b.rows, 32)
        self.assertEqual(b.dense.shape, (32, 3))
        self.assertEqual(b.dense.tolist(), mb.dense.tolist())
        self.assertEqual(b.label.tolist(), mb.label.tolist())
        self.assertEqual(b.sparse.values.tolist(), mb.values.tolist())
        self.assertEqual(b.sparse.values.dtype, torch.int64)
        self.assertEqual(b.sparse.lengths.view(2, 32).tolist(), mb.lengths.tolist())
        self.assertEqual(b.sparse.keys, ("cat_0", "cat_1"))
        self.assertEqual(b.sparse.stride, 32)
        b.dense[0, 0] = 7.0
        self.assertEqual(mb.dense[0, 0], 7.0)

    def test_offsets_and_features(self) -> None:
        b = mt.batch_of(frame.decode(content(0, 5)), torchrec=False)
        lengths = b.sparse.lengths.tolist()
        want = [0]
        for n in lengths:
            want.append(want[-1] + n)
        self.assertEqual(b.sparse.offsets().tolist(), want)
        for key, f in (("cat_0", 0), (1, 1)):
            values, offsets = b.sparse.feature(key)
            self.assertEqual(values.tolist(), b.sparse.values.tolist()[want[f * 32] : want[f * 32 + 32]])
            self.assertEqual(offsets.tolist(), [o - want[f * 32] for o in want[f * 32 : f * 32 + 32]])

    def test_fixed_lengths_are_ones(self) -> None:
        s = Schema(True, ("x",), (Key("a", 9), Key("b", 9)), "int32")
        b = mt.batch_of(frame.decode(content(0, 1, 5, s)), torchrec=False)
        self.assertTrue(b.sparse.fixed)
        self.assertEqual(b.sparse.lengths.tolist(), [1] * 10)
        self.assertEqual(b.sparse.values.dtype, torch.int32)
        for key in ("c", 2, -1):
            with self.assertRaisesRegex(ValueError, r"feature\(.*\): there is no such key: want one of a, b, or an index"):
                b.sparse.feature(key)
        values, offsets = b.sparse.feature("b")
        self.assertEqual(values.tolist(), b.sparse.values.view(2, 5)[1].tolist())
        self.assertEqual(offsets.tolist(), list(range(5)))

    def test_bfloat16_is_a_view(self) -> None:
        s = Schema(True, ("x", "y", "z"), (Key("a", 9, True),), "int32", dense_type="bfloat16")
        memory = bytearray(content(0, 1, 5, s))
        mb = frame.decode(memory)
        b = mt.batch_of(mb, torchrec=False)
        self.assertEqual((b.dense.dtype, tuple(b.dense.shape)), (torch.bfloat16, (5, 3)))
        wide = [[struct.unpack("<f", struct.pack("<I", bits << 16))[0] for bits in row] for row in mb.dense.tolist()]
        torch.testing.assert_close(b.dense.float(), torch.tensor(wide), rtol=0, atol=0, equal_nan=True)
        b.dense[4, 2] = 1.0
        self.assertEqual(mb.dense[4, 2], 0x3F80, "the memory is shared")

    def test_a_dummy_of_bfloat16(self) -> None:
        s = Schema(dense=("x", "y"), dense_type="bfloat16")
        self.assertEqual(mt.batch_of(dummy_frame(s, 6, {})).dense.dtype, torch.bfloat16)

    def test_every_shape(self) -> None:
        for s in (Schema(label=True), Schema(dense=("x",)), Schema(keys=(Key("a", 3, True),), weights=True), SCHEMA):
            for rows in (0, 1, 7):
                with self.subTest(s, rows=rows):
                    b = mt.batch_of(frame.decode(content(0, 1, rows, s)), torchrec=False)
                    self.assertEqual(b.rows, rows)
                    self.assertEqual(b.label is None, not s.label)
                    self.assertEqual(b.dense is None, not s.dense)
                    self.assertEqual(b.sparse is None, not s.keys)
                    if s.weights:
                        self.assertEqual(b.sparse.weights.numel(), b.sparse.values.numel())

    def test_lengths_that_lie(self) -> None:
        s = Schema(keys=(Key("a", 3, True),))
        for lengths in ((2, 1), (-1, 3)):
            b = bytearray(
                frame.encode(
                    frame.Name("0" * 64, 0, 0), s, 2, {"kjt.values": bytes(16), "kjt.lengths": struct.pack("<2i", 1, 1)}
                )
            )
            b[-8:] = struct.pack("<2i", *lengths)
            mb = frame.decode(b, check=False)
            with self.assertRaises(FrameError):
                mt.batch_of(mb, torchrec=False)
            mt.batch_of(mb, validate=False)

    def test_sets_of_keys(self) -> None:
        for what, s in SCHEMAS.items():
            if not s.sets:
                continue
            for rows in (0, 1, 9):
                with self.subTest(what, rows=rows):
                    mb = frame.decode(bytearray(content(0, 1, rows, s)))
                    b = mt.batch_of(mb, torchrec=False)
                    self.assertEqual((b.rows, b.sparse.strides), (rows, tuple(mb.rows_of_keys)) if rows else (0, (0,) * len(s.keys)))
                    if b.sparse.values.numel():
                        self.assertEqual(b.sparse.values.data_ptr(), bytes_of(mb)[mb.extents[0].offset :].data_ptr())
                    every, want = b.sparse.expanded(), whole(mb)
                    self.assertEqual(every.values.tolist(), want["kjt.values"])
                    self.assertEqual(every.lengths.tolist(), want.get("kjt.lengths", [1] * rows * len(s.keys)))
                    if s.weights:
                        self.assertEqual(every.weights.tolist(), want["kjt.weights"])
                    self.assertIs(every.expanded(), every)
                    for f, key in enumerate(s.key_names if rows else ()):
                        bag = torch.nn.EmbeddingBag(1000, 3, mode="sum")
                        values, offsets = b.sparse.feature(key)
                        plain_values, plain_offsets = every.feature(key)
                        few, all_rows = bag(values, offsets), bag(plain_values, plain_offsets)
                        self.assertEqual(few.shape[0], b.sparse.strides[f])
                        self.assertTrue(torch.equal(few.index_select(0, b.sparse.inverse[f]), all_rows))
                    self.assertEqual(moved(b, torch.device("cpu")).sparse.inverse.tolist(), b.sparse.inverse.tolist())

    def test_an_inverse_that_lies(self) -> None:
        s = Schema(keys=(Key("a", 3, set=1),))
        for row, index in ((0, -1), (3, 2)):
            b = bytearray(content(0, 1, 4, s))
            mb = frame.decode(b, check=False)
            e = next(e for e in mb.extents if e.name == "kjt.inverse")
            struct.pack_into("<i", mb.data, e.offset + 4 * row, index)
            with self.assertRaisesRegex(FrameError, "kjt.inverse of set 1 goes from"):
                mt.batch_of(mb, torchrec=False)

    def test_a_dummy_with_sets(self) -> None:
        s = Schema(True, ("x",), (Key("a", 9, True, 1), Key("b", 9)), "int32")
        b = mt.batch_of(dummy_frame(s, 5, {"a": 2.0}), torchrec=False)
        self.assertEqual(b.sparse.strides, (5, 5))
        self.assertEqual(b.sparse.inverse.tolist(), [[0, 1, 2, 3, 4]] * 2)

    def test_torchrec_takes_the_inverse(self) -> None:
        class KJT:
            def __init__(self, **fields: Any) -> None:
                self.__dict__.update(fields)

        class Older:
            def __init__(self, keys: Any, values: Any, weights: Any = None, lengths: Any = None, stride: Any = None) -> None:
                self.values, self.stride = values, stride

        mb = frame.decode(bytearray(content(0, 1, 9, SCHEMAS["sets"])))
        ours = mt.batch_of(mb, torchrec=False).sparse
        with mock.patch.object(tensors, "_KeyedJaggedTensor", KJT):
            theirs = mt.batch_of(mb).sparse
        self.assertEqual(theirs.stride_per_key_per_rank, [[n] for n in mb.rows_of_keys])
        self.assertEqual(theirs.inverse_indices[0], ["a", "b", "c", "d"])
        self.assertEqual(theirs.inverse_indices[1].dtype, torch.int64)
        self.assertTrue(torch.equal(theirs.inverse_indices[1], ours.inverse))
        self.assertEqual(theirs.lengths.numel(), sum(mb.rows_of_keys))
        with mock.patch.object(tensors, "_KeyedJaggedTensor", Older):
            theirs = mt.batch_of(mb).sparse
        self.assertEqual((theirs.values.tolist(), theirs.stride), (whole(mb)["kjt.values"], 9))

    def test_torchrec_where_it_is(self) -> None:
        class KJT:
            def __init__(self, **fields: Any) -> None:
                self.__dict__.update(fields)

        mb = frame.decode(content(0, 5))
        with mock.patch.object(tensors, "_KeyedJaggedTensor", KJT):
            b = mt.batch_of(mb)
            self.assertIsInstance(b.sparse, KJT)
            self.assertEqual(b.sparse.keys, ["cat_0", "cat_1"])
            self.assertEqual(b.sparse.lengths.numel(), 64)
            self.assertEqual(b.sparse.stride, 32)
            self.assertIsInstance(mt.batch_of(mb, torchrec=False).sparse, mt.Jagged)
        with mock.patch.object(tensors, "_KeyedJaggedTensor", None), self.assertRaises(ImportError):
            mt.batch_of(mb, torchrec=True)

    def test_torchrec_itself(self) -> None:
        with keyed_jagged_tensor() as torchrec_class:
            for s in (
                SCHEMA,
                Schema(True, (), (Key("a", 9), Key("b", 9)), "int32"),
                Schema(keys=(Key("a", 3, True), Key("b")), weights=True),
            ):
                for rows in (1, 7):
                    mb = frame.decode(bytearray(content(0, 5, rows, s)))
                    ours, theirs = mt.batch_of(mb, torchrec=False).sparse, mt.batch_of(mb).sparse
                    self.assertEqual(theirs.keys(), list(ours.keys))
                    self.assertEqual(theirs.stride(), rows)
                    self.assertEqual(theirs.values().data_ptr(), ours.values.data_ptr())
                    self.assertTrue(torch.equal(theirs.offsets().long(), ours.offsets()))
                    for key in ours.keys:
                        values, offsets = ours.feature(key)
                        self.assertTrue(torch.equal(theirs[key].values(), values))
                        self.assertTrue(
                            torch.equal(theirs[key].offsets()[:-1].long() - theirs[key].offsets()[0].long(), offsets)
                        )
                    self.assertIsInstance(theirs, torchrec_class)

    def test_other_devices(self) -> None:
        b = tensors.moved(mt.batch_of(frame.decode(content(0, 5)), torchrec=False), torch.device("meta"))
        self.assertEqual({t.device.type for t in (b.dense, b.label, b.sparse.values, b.sparse.lengths)}, {"meta"})
        self.assertEqual(b.rows, 32)


class Loop(unittest.TestCase):
    def test_epochs(self) -> None:
        with Cluster(total=12, epochs=2) as c, mt.MiniBatches(c.urls, "rm1") as data:
            self.assertEqual(data.schema(), SCHEMA)
            self.assertEqual((data.epoch, data.epochs, len(data)), (0, 2, 12))
            seen = []
            for epoch in range(data.epoch, data.epochs):
                self.assertEqual(data.epoch, epoch)
                for b in data:
                    seen.append((b.name.epoch, b.name.number))
            self.assertEqual(seen, [(e, n) for e in range(2) for n in range(12)])
            self.assertEqual(data.epoch, 2)
            self.assertEqual(numbers(data), [])

    def test_what_takes_whole_minibatches_apart(self) -> None:
        with Cluster(total=10) as c, mt.MiniBatches(c.urls, "rm1") as data:
            with self.assertRaisesRegex(TypeError, r"data\[0\].*have no index: write `for batch in data`"):
                data[0]
            with self.assertRaisesRegex(OptionsError, r"DataLoader\(data, batch_size=None\)"):
                next(iter(DataLoader(data)))

    def test_data_loader(self) -> None:
        with Cluster(total=10) as c, mt.MiniBatches(c.urls, "rm1") as data:
            self.assertEqual(numbers(DataLoader(data, batch_size=None)), list(range(10)))

    def test_data_loader_with_a_process(self) -> None:
        with Cluster(total=10) as c:
            data = mt.MiniBatches(c.urls, "rm1")
            data.schema()  # attaches in this process; the worker process attaches again
            loader = DataLoader(data, batch_size=None, num_workers=1)
            self.assertEqual(numbers(loader), list(range(10)))
            data.close()
            with self.assertRaisesRegex(MillraceError, r"num_workers=2\): use num_workers=0.*one consumer"):
                list(DataLoader(mt.MiniBatches(c.urls, "rm1"), batch_size=None, num_workers=2))

    def test_what_is_said_of_a_loaders_processes(self) -> None:
        with Cluster(total=10) as c, mt.MiniBatches(c.urls, "rm1") as data:
            for count in (0, 1, 2):
                with self.subTest(num_workers=count), warnings.catch_warnings(record=True) as said:
                    warnings.simplefilter("always")
                    info = mock.Mock(num_workers=count) if count else None
                    with mock.patch.object(mt, "get_worker_info", return_value=info):
                        if count == 2:
                            with self.assertRaises(MillraceError):
                                iter(data)
                        else:
                            iter(data)
                    self.assertEqual([w.category for w in said], [DataLoaderWarning] if count == 1 else [])
                    for w in said:
                        self.assertRegex(str(w.message), r"num_workers=1\): use num_workers=0.*only copies")

    def test_a_loop_that_is_left_goes_on(self) -> None:
        with Cluster(total=10) as c, mt.MiniBatches(c.urls, "rm1") as data:
            for b in data:
                if b.name.number == 3:
                    break
            self.assertEqual(numbers(data), list(range(4, 10)))

    def test_resume(self) -> None:
        with Cluster(total=10, epochs=2) as c:
            with mt.MiniBatches(c.urls, "rm1") as data:
                it = iter(data)
                first = [next(it).name.number for _ in range(4)]
                state = pickle.loads(pickle.dumps(data.state_dict()))
                next(it)
            with mt.MiniBatches(c.urls, "rm1", state=state) as data:
                self.assertEqual(first + numbers(data), list(range(10)))
                state = data.state_dict()
            # The end of an epoch is the beginning of the next.
            data = mt.MiniBatches(c.urls, "rm1")
            data.load_state_dict(state)
            self.assertEqual(data.epoch, 1)
            self.assertEqual([(b.name.epoch, b.name.number) for b in data], [(1, n) for n in range(10)])
            data.load_state_dict(state)
            self.assertEqual(len(numbers(data)), 10)
            data.close()

    def test_a_sealed_checkpoint(self) -> None:
        with Cluster(total=10) as c:
            with mt.MiniBatches(c.urls, "rm1") as data:
                it = iter(data)
                next(it), next(it)
                token = data.checkpoint()
            with mt.MiniBatches(c.urls, "rm1", state=token) as data:
                self.assertEqual(numbers(data), list(range(2, 10)))

    def test_pickling_keeps_the_position(self) -> None:
        with Cluster(total=10) as c, mt.MiniBatches(c.urls, "rm1") as data:
            it = iter(data)
            next(it), next(it)
            data.state_dict()
            with pickle.loads(pickle.dumps(data)) as copy:
                self.assertEqual(numbers(copy), list(range(2, 10)))

    def test_arguments(self) -> None:
        with self.assertRaises(TypeError):
            mt.MiniBatches("http://127.0.0.1:9", "x", acknowledge="auto")
        with self.assertRaises(ValueError):
            mt.MiniBatches("http://127.0.0.1:9", "x", prefetch=0)


@unittest.skipIf(StatefulDataLoader is None, "torchdata is not installed")
class Stateful(unittest.TestCase):
    """torchdata's StatefulDataLoader saves and restores the position by itself."""

    def test_state_comes_and_goes_with_the_loader(self) -> None:
        for workers in (0, 1):
            with self.subTest(workers=workers), Cluster(total=12) as c:
                data = mt.MiniBatches(c.urls, "rm1")
                loader = StatefulDataLoader(data, batch_size=None, num_workers=workers)
                it = iter(loader)
                first = [next(it).name.number for _ in range(5)]
                state = pickle.loads(pickle.dumps(loader.state_dict()))
                next(it)
                del it, loader
                data.close()
                data = mt.MiniBatches(c.urls, "rm1")
                loader = StatefulDataLoader(data, batch_size=None, num_workers=workers)
                loader.load_state_dict(state)
                self.assertEqual(first + numbers(loader), list(range(12)))
                data.close()


class _Copies:
    """Replaces the pinned ring where there is no GPU. It copies, and counts the calls."""

    def __init__(self) -> None:
        self.copied, self.used = 0, 0

    def copy(self, data: torch.Tensor) -> tuple[torch.Tensor, None]:
        self.copied += 1
        return data.clone(), None

    def use(self, staged: Any) -> None:
        self.used += 1


class _Event:
    """An event of :class:`_Delayed`."""

    def __init__(self, copy: Callable[[], Any], waited: list[str]) -> None:
        self._copy: Optional[Callable[[], Any]] = copy
        self._waited = waited

    def synchronize(self, by: str = "host") -> None:
        if self._copy is not None:
            self._copy()
            self._copy = None
            self._waited.append(by)


class _Delayed:
    """Replaces CUDA. A copy takes place as late as possible: when a caller waits for its event. So a pinned buffer
    that is written too early, and a tensor that is used too early, fail the test.
    """

    def __init__(self) -> None:
        self.sizes: list[int] = []  # the sizes of the pinned buffers that were allocated
        self.waited: list[str] = []  # for each copy, the name of the caller that waited for it
        self.used: list[int] = []  # bytes of the tensors that the trainer's stream holds

    def pinned(self, size: int) -> torch.Tensor:
        self.sizes.append(size)
        return torch.full((size,), 255, dtype=torch.uint8)

    def start(self, source: torch.Tensor) -> tuple[torch.Tensor, _Event]:
        there = torch.full_like(source, 254)
        return there, _Event(lambda: there.copy_(source), self.waited)

    def wait(self, there: torch.Tensor, done: _Event) -> None:
        done.synchronize("trainer")
        self.used.append(there.numel())


class PinnedRing(unittest.TestCase):
    def test_buffers_are_reused_when_their_copy_is_done(self) -> None:
        calls = _Delayed()
        pinned = staging.Pinned(torch.device("cpu"), 3, calls)  # type: ignore[arg-type]
        data = [torch.full((n,), i, dtype=torch.uint8) for i, n in enumerate([100, 80, 90, 100, 125, 126, 1, 0])]
        staged = [pinned.copy(d) for d in data]
        self.assertEqual(calls.waited, ["host"] * (len(data) - 3), "a buffer is written when its last copy is done")
        # A buffer has a quarter more than was needed, and a larger one takes its place where that is too small.
        self.assertEqual(calls.sizes, [125, 100, 112, 156, 157])
        for (there, done), want in zip(staged, data):
            pinned.use(staging.Staged(mock.Mock(), there, done))
            self.assertTrue(torch.equal(there, want))
        self.assertEqual(calls.used, [d.numel() for d in data])

    def test_two_buffers_at_least(self) -> None:
        calls = _Delayed()
        pinned = staging.Pinned(torch.device("cpu"), 1, calls)  # type: ignore[arg-type]
        for i in range(3):
            pinned.copy(torch.full((8,), i, dtype=torch.uint8))
        self.assertEqual(len(calls.sizes), 2)

    def test_a_loop_gets_what_the_job_has(self) -> None:
        with Cluster(total=20) as c, mt.MiniBatches(c.urls, "rm1", torchrec=False) as data:
            data.schema()
            calls = _Delayed()
            data._pinned = staging.Pinned(torch.device("cpu"), data._prefetch + 1, calls)  # type: ignore[arg-type]
            for n, b in enumerate(data):
                want = mt.batch_of(frame.decode(content(0, n)), torchrec=False)
                self.assertTrue(torch.equal(b.dense, want.dense))
                self.assertTrue(torch.equal(b.sparse.values, want.sparse.values))
                self.assertTrue(torch.equal(b.label, want.label))
            self.assertEqual(n, 19)
            self.assertEqual(len(calls.used), 20)

    def test_the_calls_of_cuda(self) -> None:
        """Checks the order of the calls with torch.cuda replaced, since there is no GPU."""
        calls = mock.MagicMock()
        source = mock.Mock()
        with mock.patch.multiple(
            torch.cuda, Stream=calls.Stream, Event=calls.Event, stream=calls.stream, current_stream=calls.current
        ):
            cuda = staging.CUDA(torch.device("cuda", 0))
            there, done = cuda.start(source)
            cuda.wait(there, done)
        side, main = calls.Stream.return_value, calls.current.return_value
        calls.stream.assert_called_once_with(side)
        source.to.assert_called_once_with(torch.device("cuda", 0), non_blocking=True)
        done.record.assert_called_once_with(side)
        main.wait_event.assert_called_once_with(done)
        there.record_stream.assert_called_once_with(main)


class Staging(unittest.TestCase):
    def test_ahead_but_not_far(self) -> None:
        with Cluster(total=30) as c, mt.MiniBatches(c.urls, "rm1", prefetch=3) as data:
            data.schema()
            data._pinned = copies = _Copies()  # type: ignore[assignment]
            it = iter(data)
            first = next(it)
            until = time.monotonic() + 20
            while copies.copied < 4 and time.monotonic() < until:
                time.sleep(0.005)
            self.assertEqual(copies.copied, 4)
            self.assertEqual(data.job._session.intake.durable.first_missing(0), 0, "staged is not acknowledged")
            state = data.state_dict()
            self.assertEqual([first.name.number] + numbers(it), list(range(30)))
            self.assertEqual(copies.used, 30)
            data.load_state_dict(state)
            self.assertEqual(numbers(data), list(range(1, 30)))

    def test_what_was_staged_stays_for_the_next_loop(self) -> None:
        with Cluster(total=12) as c, mt.MiniBatches(c.urls, "rm1", prefetch=4) as data:
            data.schema()
            data._pinned = _Copies()  # type: ignore[assignment]
            seen = []
            for b in data:
                seen.append(b.name.number)
                if len(seen) == 5:
                    break
            seen += numbers(data)
            self.assertEqual(seen, list(range(12)))
            self.assertEqual(data.statistics.minibatches, 12)

    def test_an_error_comes_through(self) -> None:
        with Cluster(total=12) as c, mt.MiniBatches(c.urls, "rm1") as data:
            data.schema()
            pinned = data._pinned = _Copies()  # type: ignore[assignment]
            pinned.copy = mock.Mock(side_effect=RuntimeError("out of memory"))  # type: ignore[method-assign]
            with self.assertRaisesRegex(RuntimeError, "out of memory"):
                numbers(data)

    @unittest.skipUnless(torch.cuda.is_available(), "there is no GPU")
    def test_on_a_gpu(self) -> None:
        with Cluster(total=20) as c, mt.MiniBatches(c.urls, "rm1", device="cuda", torchrec=False) as data:
            for n, b in enumerate(data):
                want = mt.batch_of(frame.decode(content(0, n)), torchrec=False)
                self.assertEqual(b.dense.device.type, "cuda")
                self.assertTrue(torch.equal(b.dense.cpu(), want.dense))
                self.assertTrue(torch.equal(b.sparse.values.cpu(), want.sparse.values))


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.bottom = torch.nn.Sequential(
            torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 1)
        )
        self.bags = torch.nn.ModuleList(
            [torch.nn.EmbeddingBag(n, 1, mode="sum", sparse=True) for n in SCHEMA.embeddings.values()]
        )
        self.register_buffer("hidden", torch.zeros(1), persistent=False)

    def forward(self, b: mt.Batch) -> torch.Tensor:
        x = self.bottom(b.dense)
        for i, bag in enumerate(self.bags):
            x = x + bag(*b.sparse.feature(i))
        self.hidden += 1
        return x.squeeze(1)


class Throughput(unittest.TestCase):
    def test_measuring_harms_nothing(self) -> None:
        torch.manual_seed(0)
        model = Model().eval()
        dense = torch.optim.Adam(model.bottom.parameters(), lr=0.1)
        sparse = torch.optim.SparseAdam(list(model.bags.parameters()))
        scheduler = torch.optim.lr_scheduler.StepLR(dense, 1)
        model.bottom[0].weight.grad = torch.ones(8, 3)

        def step(b: mt.Batch) -> None:
            model.train()
            torch.rand(1), random.random()
            loss = torch.nn.functional.binary_cross_entropy_with_logits(model(b), b.label)
            for o in (dense, sparse):
                o.zero_grad()
            loss.backward()
            for o in (dense, sparse):
                o.step()
            scheduler.step()

        def everything(data: mt.MiniBatches) -> str:
            grads = [p.grad for p in model.parameters()]
            rng = (torch.get_rng_state(), random.getstate())
            modes = [m.training for m in model.modules()]
            return fingerprint(
                model,
                dense,
                sparse,
                scheduler,
                model.hidden,
                grads,
                rng,
                modes,
                data.state_dict(),
                [p.data_ptr() for p in model.parameters()],
            )

        with Cluster(total=10) as c, mt.MiniBatches(c.urls, "rm1", torchrec=False) as data:
            it = iter(data)
            for trained in (False, True):
                with self.subTest(trained=trained):
                    if trained:
                        step(next(it))
                    before = everything(data)
                    t = data.measure_throughput(
                        step, model=model, optimizer=[dense, sparse], others=[scheduler], seconds=0.05
                    )
                    self.assertEqual(everything(data), before)
                    self.assertGreater(t.rows_per_second, 0)
                    self.assertGreater(t.steps, 0)
            step(next(it))
            self.assertNotEqual(everything(data), before, "the fingerprint sees a step")
            self.assertEqual(data.job._session.throughput, t.rows_per_second)

    def test_a_step_that_fails_harms_nothing(self) -> None:
        model = torch.nn.Linear(2, 2)
        before = fingerprint(model, torch.get_rng_state())
        with self.assertRaises(ZeroDivisionError), untouched([model], []):
            with torch.no_grad():
                model.weight += torch.rand(2, 2)
            1 / 0
        self.assertEqual(fingerprint(model, torch.get_rng_state()), before)

    def test_dummies(self) -> None:
        state = torch.get_rng_state()
        for s in (
            SCHEMA,
            Schema(label=True),
            Schema(keys=(Key("a", 3),), ids="int32"),
            Schema(keys=(Key("a", 0, True),), weights=True),
        ):
            for rows in (0, 1, 100):
                mb = dummy_frame(s, rows, {"cat_1": 2.5, "a": 0.5}).validate()
                self.assertEqual((mb.rows, mb.schema), (rows, s))
        mb = dummy_frame(SCHEMA, 100, {"cat_1": 2.5})
        self.assertEqual(sum(mb.lengths.tolist()[1]), 250)
        self.assertLess(max(mb.values.tolist()[:100]), 1000)
        self.assertEqual(bytes(dummy_frame(SCHEMA, 9, {}, 1).data), bytes(dummy_frame(SCHEMA, 9, {}, 1).data))
        self.assertTrue(torch.equal(state, torch.get_rng_state()))

    def test_numpy_is_kept_too(self) -> None:
        numpy = sys.modules.get("numpy")
        if not isinstance(numpy, types.ModuleType):
            self.skipTest("numpy is not loaded")
        before = numpy.random.get_state()[1].tolist()
        with untouched([], []):
            numpy.random.rand(3)
        self.assertEqual(numpy.random.get_state()[1].tolist(), before)


if __name__ == "__main__":
    unittest.main()
