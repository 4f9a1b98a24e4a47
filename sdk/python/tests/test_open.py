"""millrace.open: one line over files of this machine, its private process, and the ends of both."""

from __future__ import annotations

import contextlib
import os
import pathlib
import pydoc
import signal
import subprocess
import sys
import tempfile
import textwrap
import time
import unittest
import unittest.mock
import uuid
from typing import Any, Callable, Iterator

try:
    import pyarrow as pa
    import pyarrow.parquet as pq
    import torch
except ImportError:
    pa = None

import millrace
from millrace.errors import (
    BinaryError,
    ChangedError,
    DataLossError,
    FilesError,
    MillraceError,
    OptionsError,
    OtherJobError,
    PipelineError,
    PrivateProcessError,
    RanksError,
)

from millrace.operators import wasm

from .leaks import Leaks
from .wasm_module import ADD

MILLRACE = os.environ.get("MILLRACE_BIN", "")
PATIENCE = 120.0

PIPELINE = """\
name: mine
batch: 64
label: {column: clicked, null: -1}
dense:
  - columns: [price, row]
    ops: [fill_null: 0]
sparse:
  - columns: [items]
    ops: [sigrid_hash: {salt: 0, max: 1000}]
"""


def wait_for(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"{what}: not within {PATIENCE:.0f} s")
        time.sleep(0.02)


def alive(pid: int) -> bool:
    try:
        state = pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return False
    return state != "Z"  # a zombie has ended, and its parent has not waited for it


def shared_memory(pid: Any = "self") -> int:
    """Returns how many of the mini-batches' buffers a process has open or mapped."""
    found = pathlib.Path(f"/proc/{pid}/maps").read_text().count("millrace-minibatch")
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with contextlib.suppress(OSError):
            found += "millrace-minibatch" in os.readlink(f"/proc/{pid}/fd/{fd}")
    return found


def write(path: pathlib.Path, first: int, rows: int, group: int = 500) -> None:
    numbers = range(first, first + rows)
    table = pa.table(
        {
            "clicked": pa.array([n % 2 for n in numbers], pa.int32()),
            "price": pa.array([n / 8 for n in numbers], pa.float32()),
            "row": pa.array([float(n) for n in numbers], pa.float32()),
            "items": pa.array([[n, n + 1][: n % 3] for n in numbers], pa.list_(pa.int64())),
        }
    )
    pq.write_table(table, path, row_group_size=group)


@unittest.skipUnless(pa is not None and MILLRACE, "wants torch, pyarrow and MILLRACE_BIN")
class Open(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        write(self.folder / "day_0.parquet", 0, 1500)
        write(self.folder / "day_1.parquet", 1500, 900)
        self.files = str(self.folder / "day_*.parquet")
        self.document = self.folder / "mine.yaml"
        self.document.write_text(PIPELINE)
        self.temporary = self.folder / "temporary"
        self.temporary.mkdir()
        self.addCleanup(self.no_files)

    def no_files(self) -> None:
        """Checks that no file was left in the folder for temporary files, and none but the test's in the data's
        folder.
        """
        self.assertEqual(os.listdir(self.temporary), [])
        made = {"day_0.parquet", "day_1.parquet", "day_2.parquet", "mine.yaml", "temporary", "group"}
        self.assertLessEqual(set(os.listdir(self.folder)), made)

    def open(self, **more: Any) -> Any:
        data = millrace.open(more.pop("files", self.files), pipeline=more.pop("pipeline", self.document), **more)
        self.addCleanup(data.close)
        return data

    def rows(self, batches: Iterator[Any]) -> list[int]:
        return [int(v) for b in batches for v in b.dense[:, 1]]

    def pid(self, data: Any) -> int:
        job = getattr(data, "job", data)
        return int(job._session.pid)

    # --- mini-batches -------------------------------------------------------------------------------------------------

    def test_one_line(self) -> None:
        before = shared_memory()
        rows: list[int] = []
        for batch in millrace.open(self.files, pipeline=str(self.document), batch=100):
            self.assertEqual(batch.dense.shape[1], 2)
            self.assertEqual(batch.rows, len(batch.label))
            rows += [int(v) for v in batch.dense[:, 1]]
        self.assertEqual(sorted(rows), list(range(2400)))
        del batch
        # The loop's object is gone. The process and the memory go soon after it.
        wait_for(lambda: shared_memory() == before, "shared memory is left")

    def test_the_order_and_the_names_of_files(self) -> None:
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            for i, day in enumerate(("day_2", "day_10")):
                write(folder / day, 10 * i, 10)
            two, ten = list(range(10)), list(range(10, 20))
            given = [folder / "day_10", folder / "day_2"]
            for files, sort, want in (
                (folder, None, two + ten),
                (folder / "day_*", None, two + ten),
                (folder, "name", ten + two),
                (given, None, ten + two),
                (given, "natural", two + ten),
            ):
                with self.subTest(files=files, sort=sort):
                    data = self.open(files=files, sort=sort, shuffle="none", order="deterministic", batch=5)
                    self.assertEqual(self.rows(data), want)
            with self.assertRaisesRegex(FilesError, "day_2 is there twice"):
                self.open(files=[folder, folder / "day_2"])
            (folder / "more").mkdir()
            write(folder / "more" / "day_2", 20, 10)
            files = [folder / "day_2", folder / "more" / "day_2"]
            with self.assertRaisesRegex(FilesError, "root="):
                self.open(files=files)
            data = self.open(files=files, root=folder, shuffle="none", order="deterministic", batch=5)
            self.assertEqual(self.rows(data), two + list(range(20, 30)))
            with self.assertRaisesRegex(FilesError, "does not lie below"):
                self.open(files=files, root=folder / "more")

    def test_mini_batches_across_files(self) -> None:
        across = {"boundary": "none", "batch": 700, "order": "deterministic", "tensors": "views"}
        with self.open(shuffle="none", **across) as job:
            batches = [[int(row[1]) for row in batch.dense.tolist()] for batch in job]
        self.assertEqual([len(rows) for rows in batches], [700, 700, 700, 300])
        self.assertEqual(sum(batches, []), list(range(2400)))
        with self.open(boundary="partition", shuffle="none", batch=700, tensors="views") as job:
            self.assertEqual(sorted(batch.rows for batch in job), [100, 200, 700, 700, 700])
        for tail, rows in (("keep", 2400), ("drop", 2100)):
            with self.subTest(tail=tail), self.open(tail=tail, split_batches=1, **across) as job:
                seen, states = [], []
                for batch in job:
                    seen += [int(row[1]) for row in batch.dense.tolist()]
                    states.append(job.state_dict())
                self.assertEqual(len(set(seen)), rows)
            with self.open(tail=tail, split_batches=1, state=states[1], **across) as job:
                rest = [int(row[1]) for batch in job for row in batch.dense.tolist()]
            self.assertIn(len(rest), (rows - 700, rows - 1400))
            self.assertEqual(rest, seen[-len(rest) :])
        with self.assertRaises(OtherJobError):
            self.open(state=states[1], **{**across, "boundary": "partition"})

    def test_a_vocabulary(self) -> None:
        document = PIPELINE.replace("sigrid_hash: {salt: 0, max: 1000}", "vocabulary: items")
        self.document.write_text(document + "vocabularies: {items: {base: 5}}\n")
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "items.vocab"
            command = [MILLRACE, "vocabulary", "build", "--pipeline", self.document, "--in", self.files, "--out", path]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            with self.open(tensors="views", vocabularies={"items": path}, batch=100) as job:
                size = job.schema.keys[0].num_embeddings
                seen = {int(value) for batch in job for value in batch.values}
            self.assertEqual(seen, set(range(5, size)))
            with self.assertRaises(OptionsError):
                self.open(vocabularies={"items": str(path) + ".counts"})
        with self.assertRaises(PipelineError) as caught:
            self.open()
        self.assertIn("vocabularies={'items': FILE}", str(caught.exception))
        for wrong in ("items", {"items": 3}, {"": "x"}, [("items", "x")]):
            with self.assertRaises(OptionsError):
                self.open(vocabularies=wrong)

    def test_a_module(self) -> None:
        call = "wasm: {module: m, function: add, in: [int64, int64], out: int64}"
        document = "sparse: [{inputs: [clicked, clicked], as: twice, ops: [%s]}]\n" % call
        with tempfile.TemporaryDirectory() as folder:
            path = pathlib.Path(folder) / "m.wasm"
            path.write_bytes(ADD)
            with self.open(pipeline=document, tensors="views", modules={"m": path}, batch=100) as job:
                seen = [int(value) for batch in job for value in batch.values]
            self.assertEqual(sorted(seen), 1200 * [0] + 1200 * [2])
            built = millrace.Pipeline().sparse(
                inputs=["clicked", "clicked"], name="twice",
                ops=[wasm("m", function="sub", in_=["int64", "int64"], out="int64")],
            )  # fmt: skip
            with self.assertRaises(PipelineError) as caught:
                self.open(pipeline=built, modules={"m": path})
            self.assertIn('no function "sub" is exported', str(caught.exception))
            self.assertEqual(caught.exception.problems[0].file, __file__, "the line of Python that added the group")
            checked = millrace.Pipeline.from_yaml(document).check(self.files, modules={"m": path})
            self.assertEqual(checked.keys[0].name, "twice")
            with self.assertRaises(OptionsError):
                self.open(pipeline=document, modules={"m": str(path) + "x"})
        with self.assertRaises(PipelineError) as caught:
            self.open(pipeline=document)
        self.assertIn('in Python with modules={"m": FILE}', str(caught.exception))
        with self.assertRaises(OptionsError):
            self.open(pipeline=document, modules="m.wasm")

    def test_files_that_lack_columns(self) -> None:
        newer = {
            "clicked": pa.array([None, 1, 0], pa.int8()),
            "price": pa.array([0.5, 1.5, None], pa.float64()),  # float32 in the older files
            "row": pa.array([2400.0, 2401.0, 2402.0], pa.float32()),
            "city": pa.array(["a", None, "b"]),
        }
        pq.write_table(pa.table(newer), self.folder / "day_2.parquet")
        document = PIPELINE + "  - columns: [city]\n    ops: [hash_bytes: xxh3, fill_null: 7]\n"
        self.document.write_text(document)
        with self.assertRaises(PipelineError) as caught:
            self.open()
        self.assertIn("day_2.parquet: it is absent there; write absent: allow", str(caught.exception))
        self.assertIn("day_0.parquet, day_1.parquet: it is absent there", str(caught.exception))
        for operator in ("sig", "hash"):
            document = document.replace(f"    ops: [{operator}", f"    absent: allow\n    ops: [{operator}")
        self.document.write_text(document)
        labels, prices, items, cities = [], [], 0, []
        with self.open(tensors="views", order="deterministic", shuffle="none") as job:
            for batch in job:
                n = len(batch.label)
                labels += [float(v) for v in batch.label]
                prices += [row[0] for row in batch.dense.tolist()]
                lengths = batch.lengths.tolist()
                items += sum(lengths[0])
                cities += batch.values.tolist()[sum(lengths[0]) :]
                self.assertEqual(lengths[1], [1] * n)
        self.assertEqual(labels, [float(n % 2) for n in range(2400)] + [-1, 1, 0])
        self.assertEqual(prices, [n / 8 for n in range(2400)] + [0.5, 1.5, 0])
        self.assertEqual(items, sum(n % 3 for n in range(2400)))
        self.assertEqual(cities[:2400], [7] * 2400)
        self.assertEqual(cities[2401], 7)
        self.assertEqual(len(set(cities)), 3)

    def test_help_shows_every_parameter(self) -> None:
        shown = " ".join(pydoc.render_doc(millrace.open).split())
        for parameter in ("files: ", "batch: 'Optional[int]' = None", "trainer_cores: 'Optional[int]' = None", "timeout: "):
            self.assertIn(parameter, shown)

    def test_views_without_torch(self) -> None:
        with self.open(tensors="views", order="deterministic", shuffle="none", epochs=2) as job:
            names = [b.name.number for b in job]
        self.assertEqual(names, 2 * list(range(24 + 15)))
        self.assertEqual(job.batch, 64)
        self.assertEqual(job.schema.dense, ("price", "row"))
        self.assertEqual([p["name"] for p in job.manifest["partitions"]], ["day_0.parquet", "day_1.parquet"])

    def test_more_files_than_descriptors(self) -> None:
        """The private process opens files when it reads them: it has fewer descriptors than there are files."""
        data = (self.folder / "day_1.parquet").read_bytes()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        for i in range(200):
            pathlib.Path(folder.name, f"copy_{i:03d}.parquet").write_bytes(data)
        script = (
            "import sys, resource\n"
            "resource.setrlimit(resource.RLIMIT_NOFILE, (100, 100))\n"
            "import millrace\n"
            "job = millrace.open(sys.argv[1], sys.argv[2], batch=1000, tensors='views', queue_bytes=1 << 20)\n"
            "print(sum(b.rows for b in job))\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", script, folder.name, PIPELINE], capture_output=True, text=True, timeout=PATIENCE
        )
        self.assertEqual((done.stdout, done.stderr), ("180000\n", ""))

    def test_the_sequence_is_the_same_every_time(self) -> None:
        first = self.rows(self.open(order="deterministic", seed=3))
        self.assertEqual(first, self.rows(self.open(order="deterministic", seed=3, threads=3)))
        self.assertNotEqual(first, self.rows(self.open(order="deterministic", seed=4)))

    def test_epochs(self) -> None:
        data = self.open(epochs=3)
        seen = []
        for epoch in range(data.epoch, data.epochs):
            seen.append(epoch)
            self.assertEqual(sorted(self.rows(data)), list(range(2400)))
        self.assertEqual(seen, [0, 1, 2])
        with self.assertWarns(millrace.NoMiniBatchWarning):
            self.assertEqual(self.rows(data), [])

    def test_tensors_may_be_kept(self) -> None:
        kept = list(self.open(batch=20, queue_bytes=1))  # four buffers, and the trainer keeps all mini-batches
        self.assertEqual(sorted(self.rows(iter(kept))), list(range(2400)))
        data = self.open(batch=20, queue_bytes=1)
        kept = list(data)
        self.assertGreater(data.job._session._buffers.copied, 100)
        data.close()
        self.assertFalse(alive(self.pid(data)))
        self.assertEqual(sorted(self.rows(iter(kept))), list(range(2400)))

    def test_mini_batches_of_many_sizes_are_kept(self) -> None:
        # Mini-batches of one size that the trainer keeps must leave room for those of another size.
        write(self.folder / "day_2.parquet", 2400, 40)
        table = pq.read_table(self.folder / "day_2.parquet")
        long = pa.array([list(range(20_000))] * 40, pa.list_(pa.int64()))
        pq.write_table(table.set_column(3, "items", long), self.folder / "day_2.parquet")
        for limit in (1, 1 << 20, 10 << 20):
            kept = list(self.open(batch=20, queue_bytes=limit, shuffle="none", order="deterministic", epochs=2))
            self.assertEqual(self.rows(iter(kept)), list(range(2440)))
            del kept

    def test_buffers_come_back(self) -> None:
        data = self.open(batch=20, queue_bytes=1)
        for batch in data:  # a loop drops a batch when it has the next one
            self.assertGreater(batch.rows, 0)
        self.assertEqual(data.job._session._buffers.copied, 0)

    def test_tensors_may_be_changed(self) -> None:
        data = self.open(batch=20, queue_bytes=1, order="deterministic", shuffle="none", epochs=2)
        for _ in range(2):  # the buffers are used many times, after the trainer wrote into all of them
            at = 0
            for batch in data:
                self.assertEqual(self.rows(iter([batch])), list(range(at, at + batch.rows)))
                at += batch.rows
                batch.dense.zero_()
                batch.label.fill_(9)
                del batch

    def test_a_label_of_every_row(self) -> None:
        data = self.open(order="deterministic", shuffle="none")
        labels = torch.cat([b.label for b in data])
        self.assertTrue(torch.equal(labels, (torch.arange(2400) % 2).float()))

    def test_measure_throughput(self) -> None:
        data = self.open()
        model = torch.nn.Linear(2, 1)
        t = data.measure_throughput(lambda b: model(b.dense).sum().backward(), model=model, seconds=0.01)
        self.assertGreater(t.rows_per_second, 0)
        self.assertEqual(sorted(self.rows(data)), list(range(2400)))

    # --- positions ----------------------------------------------------------------------------------------------------

    def test_resume_in_a_new_process(self) -> None:
        for order in ("fastest", "deterministic"):
            with self.subTest(order):
                data = self.open(order=order, epochs=2)
                rows: list[int] = []
                for i, batch in enumerate(data):
                    rows += self.rows(iter([batch]))
                    if i == 9:
                        state = data.state_dict()
                        break
                data.close()
                again = self.open(order=order, epochs=2, state=state)
                self.assertEqual(again.epoch, 0)
                rows += self.rows(again)
                self.assertEqual(sorted(rows), list(range(2400)))
                self.assertEqual(sorted(self.rows(again)), list(range(2400)))

    def test_a_file_that_is_written_again(self) -> None:
        """A file of the same length and footer with other rows is noticed by a state, and by a loop."""
        path = self.folder / "day_0.parquet"

        def make(labels: list[int]) -> bytes:
            fields = [pa.field("row", pa.int64(), False), pa.field("label", pa.int32(), False)]
            table = pa.table({"row": list(range(200)), "label": labels * 50}, schema=pa.schema(fields))
            pq.write_table(table, self.temporary / "p", compression="none")
            made = (self.temporary / "p").read_bytes()
            (self.temporary / "p").unlink()
            return made

        one, other = make([1, 0, 0, 1]), make([0, 1, 1, 0])
        self.assertEqual(len(one), len(other))
        length = int.from_bytes(one[-8:-4], "little") + 8
        self.assertEqual(one[-length:], other[-length:], "one footer")
        self.assertNotEqual(one, other)
        document = "batch: 10\nlabel: {column: label}\ndense: [{columns: [row]}]\n"

        def open_it(**arguments: Any) -> Any:
            job = millrace.open(path, document, tensors="views", shuffle="none", **arguments)
            self.addCleanup(job.close)
            return job

        path.write_bytes(one)
        data = open_it()
        next(iter(data))
        state = data.state_dict()
        data.close()
        path.write_bytes(other)
        with self.assertRaises(OtherJobError):
            open_it(state=state)

        # The digest of a larger file is over samples: the state holds the file's time, too. A copy goes on.
        path.write_bytes(one)
        os.utime(path, ns=(5, 5))
        with self.assertRaises(ChangedError) as changed:
            open_it(state=state)
        self.assertEqual(changed.exception.file, "day_0.parquet")
        self.assertIn(str(path), str(changed.exception))
        self.assertEqual(sum(1 for _ in open_it(state=state["token"])), 19)
        copied = self.temporary / path.name
        copied.write_bytes(one)
        again = millrace.open(copied, document, tensors="views", shuffle="none", state=state)
        self.assertEqual(sum(1 for _ in again), 19)
        again.close()
        copied.unlink()

        def overwrite() -> None:
            with path.open("r+b") as file:
                file.write(other)
            os.utime(path, ns=(7, 7))

        def replace() -> None:
            copied.write_bytes(other)
            copied.rename(path)

        for change in (overwrite, replace):
            with self.subTest(change.__name__), self.assertRaises(ChangedError) as changed:
                path.write_bytes(one)
                os.utime(path, ns=(6, 6))
                for i, _ in enumerate(open_it(epochs=100000)):
                    if i == 0:
                        change()
            self.assertEqual(changed.exception.file, "day_0.parquet")
            self.assertIn(str(path), str(changed.exception))

    def test_load_state_dict(self) -> None:
        data = self.open(order="deterministic", shuffle="none", epochs=2)
        beginning = data.state_dict()
        numbers = []
        for batch in data:
            numbers.append(batch.name.number)
            if len(numbers) == 5:
                middle = data.state_dict()
            if len(numbers) == 12:
                break
        data.load_state_dict(middle)
        self.assertEqual([b.name.number for b in data], list(range(5, 39)))
        data.load_state_dict(beginning)
        self.assertEqual([(b.name.epoch, b.name.number) for b in data], [(0, n) for n in range(39)])
        other = self.open(order="deterministic", batch=50)
        with self.assertRaises(OtherJobError):
            other.load_state_dict(middle)
        self.assertEqual(sorted(self.rows(other)), list(range(2400)))
        with self.assertRaises(OtherJobError):
            self.open(batch=50, state=middle)

    # --- what goes wrong ----------------------------------------------------------------------------------------------

    def test_errors_name_the_place(self) -> None:
        with self.assertRaises(FilesError) as missing:
            self.open(files=str(self.folder / "nothing_*.parquet"))
        self.assertIn("nothing_*.parquet matches no file", str(missing.exception))
        self.assertEqual(missing.exception.filename, str(self.folder / "nothing_*.parquet"))
        for name, content, why in (
            ("none", None, "no such file"),
            ("empty", b"", "0 bytes"),
            ("text", b"a,b\n1,2\n3,4\n5,6\n", "it is text, not Parquet"),
            ("page", b"<!doctype html><title>404</title>", "an HTML page"),
        ):
            path = self.temporary / f"{name}.parquet"
            if content is not None:
                path.write_bytes(content)
            with self.assertRaises(FilesError) as unreadable:
                self.open(files=str(path))
            path.unlink(missing_ok=True)
            self.assertIn(f"{name}.parquet", str(unreadable.exception))
            self.assertIn(why, str(unreadable.exception))
            self.assertIn(f"{name}.parquet", unreadable.exception.filename)
        (self.temporary / "notes.md").write_text("rows of June\n")
        with self.assertRaisesRegex(FilesError, r"notes\.md is text.*; exclude='notes\.md' leaves it out"):
            self.open(files=self.temporary)
        (self.temporary / "notes.md").unlink()
        with self.assertRaises(FilesError) as folder:
            self.open(files=self.temporary)
        self.assertIn("holds no files", str(folder.exception))
        with self.assertRaises(PipelineError) as wrong:
            self.open(pipeline=PIPELINE.replace("sigrid_hash", "sigrid_hush"))
        self.assertEqual(wrong.exception.problems[0].line, 9)
        self.assertEqual(str(wrong.exception).count("line 9"), 1)
        self.document.write_text(PIPELINE.replace("sigrid_hash", "sigrid_hush"))
        with self.assertRaisesRegex(PipelineError, r"mine\.yaml:9: sparse\[0\]"):
            self.open()
        self.document.write_text(PIPELINE)
        built = millrace.Pipeline("built").label("clicked", null=0).dense("prise")
        with self.assertRaisesRegex(PipelineError, r"test_open\.py:\d+: dense\[0\].*prise"):
            self.open(pipeline=built)
        with self.assertRaisesRegex(PipelineError, r'\Apipeline "rm11": no such name; did you mean "rm1"\?'):
            self.open(pipeline="rm11")
        with self.assertRaisesRegex(PipelineError, r"none\.yaml: No such file"):
            self.open(pipeline="none.yaml")
        with self.assertRaises(PipelineError) as absent:
            self.open(pipeline=PIPELINE.replace("price", "prise"))
        self.assertIn("prise", str(absent.exception))
        for argument, value in (
            ("shuffle", "everything"),
            ("tensors", "numpy"),
            ("order", "any"),
            ("boundary", "file"),
            ("boundary", ""),
            ("tail", "short"),
            ("rank_tail", "short"),
            ("input_format", "csv"),
            ("include", [""]),
            ("exclude", 1),
            ("label", "maybe"),
            ("malformed", "ignore"),
            ("batch", 0),
            ("batch", (1 << 24) + 1),
            ("batch", 1.5),
            ("batch", "64"),
            ("batch", True),
            ("epochs", 0),
            ("seed", -1),
            ("seed", 1 << 64),
            ("split_batches", 0),
            ("window", 0),
            ("window", 2),  # nothing is mixed within windows
            ("queue_bytes", 0),
            ("engine_bytes", 0),
            ("engine_bytes", (1 << 38) + 1),
            ("threads", 0),
            ("threads", 257),
            ("trainer_cores", -2),
            ("files", []),
            ("files", None),
            ("files", [b"x"]),
            ("files", ""),
            ("pipeline", None),
        ):
            with self.subTest(argument, value=value), self.assertRaises(OptionsError) as refused:
                self.open(**{argument: value})
            self.assertEqual(refused.exception.argument, argument)
            self.assertIn(argument, str(refused.exception))
        for name, says in (("batch_size", "batch= is the rows"), ("bach", r"did you mean batch=\?"), ("zzz", "help")):
            with self.assertRaisesRegex(TypeError, f"{name}=: millrace.open has no argument of that name: {says}"):
                self.open(**{name: 3})
        with self.assertRaisesRegex(OptionsError, "the tail drop leaves out all"):
            self.open(tail="drop", batch=1 << 20)
        with self.assertRaisesRegex(OptionsError, "label .absent. is for criteo-tsv rows"):
            self.open(label="absent")
        for argument in ({"resume": True}, {"credits": 3}, {"id": "x"}):
            with self.assertRaises(TypeError):
                self.open(**argument)

    def test_a_damaged_page(self) -> None:
        path = self.folder / "day_1.parquet"
        raw = bytearray(path.read_bytes())
        for i in range(100, len(raw) // 3):
            raw[i] ^= 0x5A
        path.write_bytes(raw)
        with self.assertRaises(DataLossError) as damaged:
            self.rows(self.open())
        self.assertEqual(damaged.exception.file, "day_1.parquet")
        self.assertTrue(damaged.exception.column)
        self.assertIsNotNone(damaged.exception.row_group)
        self.assertIn("day_1.parquet", str(damaged.exception))

    def test_an_error_keeps_nothing(self) -> None:
        leaks = Leaks(self)
        self.addCleanup(leaks.check, "a loop that an error ended")
        path = self.folder / "day_1.parquet"
        raw = bytearray(path.read_bytes())
        raw[100 : len(raw) // 3] = bytes(len(raw) // 3 - 100)
        path.write_bytes(raw)

        def loop() -> None:
            for _ in millrace.open(self.files, self.document, tensors="views"):
                pass

        try:  # assertRaises would clear the frames of the traceback, which refer to the job
            loop()
        except DataLossError:
            return
        self.fail("the page is damaged")

    def test_without_the_program(self) -> None:
        with unittest.mock.patch.dict(os.environ, {"MILLRACE_BIN": "/nowhere/millrace"}):
            with self.assertRaises(BinaryError):
                self.open()
        with unittest.mock.patch.dict(os.environ, {"MILLRACE_BIN": "/bin/false"}):
            with self.assertRaises(PrivateProcessError):
                self.open()

    def test_the_process_is_killed(self) -> None:
        leaks = Leaks(self)
        self.addCleanup(leaks.check, "a private process that was killed")
        data = self.open(batch=20, queue_bytes=1)
        kept = None
        with self.assertRaises(PrivateProcessError) as killed:
            for batch in data:
                if kept is None:  # further mini-batches may be under way
                    os.kill(self.pid(data), signal.SIGKILL)
                    kept = batch
        self.assertIn("signal 9, as the system does where memory is short", str(killed.exception))
        self.assertEqual(kept.rows, len(self.rows(iter([kept]))))
        state = data.state_dict()  # this process knows the acknowledgements
        data.close()
        self.assertEqual(state["world_size"], 1)

    def test_data_loader(self) -> None:
        data = self.open()
        loader = torch.utils.data.DataLoader(data, batch_size=None, num_workers=0)
        self.assertEqual(sorted(self.rows(loader)), list(range(2400)))
        for workers in (1, 2):
            loader = torch.utils.data.DataLoader(self.open(), batch_size=None, num_workers=workers)
            with self.assertRaises(MillraceError) as refused:
                list(loader)
            self.assertIn("num_workers=0", str(refused.exception))

    def test_it_says_what_it_is(self) -> None:
        data = self.open()
        self.assertEqual(repr(data), f"<MiniBatches of {self.files}: rank 0, epoch 0 of 1, 0 mini-batches taken>")
        next(iter(data))
        self.assertIn("1 mini-batches taken", repr(data))

    @unittest.skipIf(pa is not None and torch.cuda.is_available(), "there is a GPU")
    def test_a_gpu_that_is_not_there(self) -> None:
        with self.assertRaisesRegex(OptionsError, "cuda.*no GPU"):
            self.open(device="cuda")

    def test_two_processes_over_the_same_files(self) -> None:
        leaks = Leaks(self)
        self.addCleanup(leaks.check, "two processes over the same files")
        both = [iter(self.open()) for _ in range(2)]
        rows: list[list[int]] = [[], []]
        for a, b in zip(*both):
            rows[0] += self.rows(iter([a]))
            rows[1] += self.rows(iter([b]))
        for found in rows:
            self.assertEqual(sorted(found), list(range(2400)))

    # --- lifetime -----------------------------------------------------------------------------------------------------

    def script(self, body: str, *, env: Any = None, wait: bool = True) -> Any:
        """Runs a script that prints the private process's pid first. Returns the script's process and that pid."""
        text = textwrap.dedent(
            f"""\
            import os, signal, sys, time
            signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
            import millrace
            data = millrace.open({self.files!r}, {str(self.document)!r}, batch=20, epochs=50, queue_bytes=1,
                                 tensors="views")
            print(data._session.pid, flush=True)
            """
        ) + textwrap.dedent(body)
        process = subprocess.Popen(
            [sys.executable, "-c", text],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **(env or {}), "TMPDIR": str(self.temporary)},
            start_new_session=True,
        )
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        line = process.stdout.readline()
        if not line.strip():
            self.fail(process.stderr.read())
        return process, int(line)

    def test_every_end_of_the_trainer_ends_the_process(self) -> None:
        forever = "for b in data: pass\nwhile True: time.sleep(1)\n"
        ends = {
            "end of the script": "for i, b in enumerate(data):\n    if i == 5: break\n",
            "sys.exit": "for b in data: sys.exit(3)\n",
            "an exception": "for b in data: raise RuntimeError\n",
            "os._exit": "for b in data: os._exit(4)\n",
            "kill -9": "for b in data: os.kill(os.getpid(), signal.SIGKILL)\n",
            "abort": "for b in data: os.abort()\n",
            "exec": "for b in data: os.execv('/bin/true', ['true'])\n",
            "closed": f"data.close()\nprint('closed', flush=True)\n{forever}",
        }
        for name, body in ends.items():
            with self.subTest(name):
                leaks = Leaks(self)
                process, pid = self.script(body)
                wait_for(lambda pid=pid: not alive(pid), f"the private process after {name}")
                if name == "closed":
                    process.kill()
                process.wait(PATIENCE)
                process.stdout.close()
                process.stderr.close()
                leaks.check(name)

    def test_interrupts(self) -> None:
        # Ctrl-C reaches the terminal's whole process group. The trainer may still write a checkpoint.
        process, pid = self.script(
            """\
            try:
                for i, b in enumerate(data):
                    if i == 3: print("loops", flush=True)
                    time.sleep(0.05)
            except KeyboardInterrupt:
                print(len(data.state_dict()["sealed"]) > 0, next(iter(data.minibatches())).rows, flush=True)
            """
        )
        self.assertEqual(process.stdout.readline(), "loops\n")
        os.kill(pid, signal.SIGINT)
        os.kill(pid, signal.SIGTERM)
        os.killpg(process.pid, signal.SIGINT)  # last, since the private process may end with the trainer at once
        line = process.stdout.readline()
        self.assertEqual(line, "True 20\n", line or process.stderr.read())
        self.assertEqual(process.wait(PATIENCE), 0, process.stderr.read())
        wait_for(lambda: not alive(pid), "the private process after an interrupt")

    def test_forked_children_do_not_keep_it(self) -> None:
        kinds = {
            "os.fork": "child = os.fork()\nif not child: time.sleep(600)\n",
            "libc's fork": "import ctypes\nchild = ctypes.CDLL(None).fork()\nif not child: time.sleep(600)\n",
            "subprocess": "import subprocess\nchild = subprocess.Popen(['sleep', '600'], close_fds=False).pid\n",
            "multiprocessing": "import multiprocessing\nm = multiprocessing.get_context('fork').Process("
            "target=time.sleep, args=(600,))\nm.start()\nchild = m.pid\n",
        }
        for name, fork in kinds.items():
            with self.subTest(name):
                process, pid = self.script(
                    "it = iter(data)\nkept = next(it)\n" + fork + "print(child, flush=True)\n"
                    "print(next(it).rows, flush=True)\nos.kill(os.getpid(), signal.SIGKILL)\n"
                )
                child = int(process.stdout.readline())
                try:
                    self.assertEqual(process.stdout.readline(), "20\n", "the parent goes on")
                    process.wait(PATIENCE)
                    self.assertTrue(alive(child))
                    wait_for(lambda pid=pid: not alive(pid), f"the private process after {name}")
                finally:
                    os.kill(child, signal.SIGKILL)

    def test_a_forked_child_is_told(self) -> None:
        process, pid = self.script(
            """\
            it = iter(data)
            kept = next(it)
            child = os.fork()
            if not child:
                try:
                    next(it)
                except millrace.MillraceError as e:
                    print("fork" in str(e), kept.dense[0, 1] >= 0, flush=True)
                os._exit(0)
            os.waitpid(child, 0)
            print(next(it).rows, flush=True)
            """
        )
        self.assertEqual(process.stdout.read(), "True True\n20\n", process.stderr.read())
        wait_for(lambda: not alive(pid), "the private process")

    # --- ranks --------------------------------------------------------------------------------------------------------

    RANK = """\
        import os, sys
        import millrace
        data = millrace.open(sys.argv[1], sys.argv[2], batch=20, epochs=2, rank_tail="keep", patience=100)
        print(data.job._session.pid)
        for epoch in range(data.epoch, data.epochs):
            print(*(int(v) for b in data for v in b.dense[:, 1]))
        """

    def rank(self, env: dict[str, str], script: str = RANK) -> subprocess.Popen[str]:
        kept = {k: v for k, v in os.environ.items() if "RANK" not in k and "WORLD_SIZE" not in k}
        process = subprocess.Popen(
            [sys.executable, "-c", textwrap.dedent(script), self.files, str(self.document)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**kept, **env},
        )
        self.addCleanup(process.kill)
        return process

    def test_ranks_share_one_process(self) -> None:
        run = uuid.uuid4().hex
        ranks = [self.rank({"RANK": str(r), "WORLD_SIZE": "3", "MILLRACE_RUN": run}) for r in (2, 0, 1)]
        pids, epochs = set(), [[], []]
        for process in ranks:
            out, err = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0, err)
            lines = out.splitlines()
            pids.add(int(lines[0]))
            for rows, line in zip(epochs, lines[1:]):
                rows.extend(map(int, line.split()))
        self.assertEqual(len(pids), 1)
        for rows in epochs:
            self.assertEqual(sorted(rows), list(range(2400)))
        wait_for(lambda: not alive(pids.pop()) if pids else True, "the private process of three ranks")

    def test_statistics_are_of_what_was_delivered(self) -> None:
        """In every epoch, the rows that the ranks get and those that are left out are all rows."""
        script = """\
            import os, sys
            import millrace
            data = millrace.open(sys.argv[1], sys.argv[2], batch=110, tail=os.environ["TAIL"], epochs=2, split_batches=1,
                                 patience=100)
            rows = minibatches = 0
            for epoch in range(data.epoch, data.epochs):
                sizes = [b.rows for b in data]
                rows, minibatches = rows + sum(sizes), minibatches + len(sizes)
                assert (data.statistics.rows, data.statistics.minibatches) == (rows, minibatches), data.statistics
                assert (data.statistics.short_minibatches > 0) == (os.environ["TAIL"] == "keep"), data.statistics
                print(sum(sizes), data.statistics.left_out_rows)
            """
        for size, tail in ((1, "keep"), (1, "drop"), (2, "keep"), (2, "drop")):
            env = {"WORLD_SIZE": str(size), "MILLRACE_RUN": uuid.uuid4().hex, "TAIL": tail}
            ranks = [self.rank({**env, "RANK": str(r)}, script) for r in range(size)]
            delivered, left_out = [0, 0], [set(), set()]
            for process in ranks:
                out, err = process.communicate(timeout=PATIENCE)
                self.assertEqual(process.returncode, 0, err)
                for epoch, line in enumerate(out.splitlines()):
                    rows, left = map(int, line.split())
                    delivered[epoch] += rows
                    left_out[epoch].add(left)
            with self.subTest(size=size, tail=tail):
                self.assertEqual(left_out, [{2400 - rows} for rows in delivered])
                self.assertEqual(len(set(delivered)), 2 if (size, tail) == (2, "keep") else 1, "epochs may differ")

    def test_ranks_of_torch_distributed(self) -> None:
        script = textwrap.dedent(
            """\
            import sys
            import torch.distributed as dist
            import millrace
            rank = int(sys.argv[4])
            dist.init_process_group("gloo", init_method="file://" + sys.argv[3], rank=rank, world_size=2)
            for turn in range(2):
                data = millrace.open(sys.argv[1], sys.argv[2], batch=20, patience=100)
                assert data.job.rank == rank
                print(data.job._session.pid, *(int(v) for b in data for v in b.dense[:, 1]))
                data.close()
            """
        )
        kept = {k: v for k, v in os.environ.items() if "RANK" not in k and "WORLD_SIZE" not in k}
        ranks = []
        for rank in range(2):
            arguments = [self.files, str(self.document), str(self.folder / "group"), str(rank)]
            ranks.append(
                subprocess.Popen(
                    [sys.executable, "-c", script, *arguments],
                    stdout=subprocess.PIPE,
                    stderr=subprocess.PIPE,
                    text=True,
                    env=kept,
                )
            )
            self.addCleanup(ranks[-1].kill)
        said = []
        for process in ranks:
            out, err = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0, err)
            said.append([[int(word) for word in line.split()] for line in out.splitlines()])
        for first, second in zip(*said):
            self.assertEqual(first[0], second[0], "one process for both")
            self.assertEqual(sorted(first[1:] + second[1:]), list(range(2400)))
        self.assertNotEqual(said[0][0][0], said[0][1][0], "the second call starts another")

    def test_wrong_ranks(self) -> None:
        run = uuid.uuid4().hex
        for env, variable in (
            ({"RANK": "0"}, "WORLD_SIZE"),
            ({"WORLD_SIZE": "2"}, "RANK"),
            ({"RANK": "2", "WORLD_SIZE": "2"}, "RANK"),
            ({"RANK": "x", "WORLD_SIZE": "2"}, "RANK"),
            ({"RANK": "0", "WORLD_SIZE": "4", "LOCAL_RANK": "0", "LOCAL_WORLD_SIZE": "2"}, "control plane"),
            ({"RANK": "0", "WORLD_SIZE": "2"}, "MILLRACE_RUN"),
        ):
            with self.subTest(env):
                process = self.rank(env)
                _, err = process.communicate(timeout=PATIENCE)
                self.assertEqual(process.returncode, 1)
                self.assertIn("Error", err.splitlines()[-1])
                self.assertIn(variable, err.splitlines()[-1])
        # Two processes claim rank 0: one of them gets an error, and the other serves the ranks that connect.
        same = {"WORLD_SIZE": "2", "MILLRACE_RUN": run}
        twins = [self.rank({"RANK": "0", **same}) for _ in range(2)]
        wait_for(lambda: any(p.poll() is not None for p in twins), "a twin that fails")
        told = next(p for p in twins if p.poll() is not None)
        self.assertIn("RanksError", told.communicate()[1])
        second = self.rank({"RANK": "1", **same})
        for process in (*(p for p in twins if p is not told), second):
            _, err = process.communicate(timeout=PATIENCE)
            self.assertEqual(process.returncode, 0, err)

    def test_a_state_of_another_number_of_ranks(self) -> None:
        data = self.open()
        state = data.state_dict()
        with self.assertRaises(RanksError) as wrong:
            self.open(state={**state, "world_size": 2})
        self.assertEqual(wrong.exception.variable, "world_size")


if __name__ == "__main__":
    unittest.main()
