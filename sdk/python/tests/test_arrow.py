"""Mini-batches as Arrow record batches, and Arrow files that the Go side writes."""

from __future__ import annotations

import os
import subprocess
import tempfile
import unittest

try:
    import pyarrow as pa
except ImportError as e:
    raise unittest.SkipTest(f"pyarrow is not installed: {e}") from None

from millrace import FrameError, frame
from millrace.arrow import flat, open_file, record_batch, schema_of
from millrace.schema import Key, Schema

from .fake import SCHEMA, content, whole
from .test_frame import SCHEMAS


class Arrow(unittest.TestCase):
    def test_a_row_a_minibatch(self) -> None:
        for what, s in SCHEMAS.items():
            for rows in (0, 1, 9):
                with self.subTest(what, rows=rows):
                    mb = frame.decode(content(1, 4, rows, s))
                    b = record_batch(mb)
                    b.validate(full=True)
                    self.assertEqual(b.num_rows, 1)
                    self.assertEqual(b.schema.metadata[b"millrace.name"].decode(), str(mb.name))
                    self.assertEqual(b.schema.metadata[b"millrace.rows"].decode(), str(rows))
                    want = whole(mb)
                    self.assertEqual(set(b.schema.names), set(want))
                    for name, values in want.items():
                        self.assertEqual(b.column(name)[0].as_py(), values)

    def test_memory_is_shared_and_kept(self) -> None:
        memory = bytearray(content(0, 2))
        b = record_batch(frame.decode(memory))
        with self.assertRaises(BufferError):
            memory.append(0)
        frame.decode(memory, check=False).dense[0, 0] = 42.0
        self.assertEqual(b.column("dense")[0].as_py()[0], 42.0)

    def test_a_table_of_many(self) -> None:
        batches = [record_batch(frame.decode(content(0, n)), named=False) for n in range(5)]
        table = pa.Table.from_batches(batches)
        self.assertEqual(table.num_rows, 5)
        self.assertEqual(table.schema.metadata[b"millrace.keys"], b'["cat_0","cat_1"]')

    def test_rows_and_features(self) -> None:
        for what, s in SCHEMAS.items():
            for rows in (0, 1, 9):
                with self.subTest(what, rows=rows):
                    mb = frame.decode(content(1, 4, rows, s))
                    b = flat(mb)
                    b.validate(full=True)
                    self.assertEqual(b.num_rows, rows)
                    self.assertEqual(b.num_columns, s.label + len(s.dense) + len(s.keys))
                    if rows and s.dense:
                        at = int(s.label)
                        self.assertEqual(
                            [b.column(at + i).to_pylist() for i in range(len(s.dense))],
                            [list(c) for c in zip(*mb.dense.tolist())],
                        )
                    if rows and s.keys:
                        ids = []
                        for c in b.columns[-len(s.keys) :]:
                            for v in c.to_pylist():
                                ids.extend(v if isinstance(v, list) else [v])
                        self.assertEqual(ids, whole(mb)["kjt.values"])

    def test_lengths_that_lie(self) -> None:
        s = Schema(keys=(Key("a", 3, True),))
        for lengths in ((5, 1), (-1, 3)):
            b = bytearray(
                frame.encode(frame.Name("0" * 64, 0, 0), s, 2, {"kjt.values": bytes(16), "kjt.lengths": bytes(8)})
            )
            b[-8:] = b"".join(n.to_bytes(4, "little", signed=True) for n in lengths)
            with self.assertRaises(FrameError):
                flat(frame.decode(b, check=False))

    def test_files_that_are_not_ours(self) -> None:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, pa.schema([("x", pa.int32())])) as w:
            w.write_batch(pa.record_batch([pa.array([1], pa.int32())], names=["x"]))
        with self.assertRaises(FrameError):
            list(open_file(sink.getvalue()))
        sink = pa.BufferOutputStream()
        with pa.ipc.new_file(sink, schema_of(SCHEMA)) as w:
            w.write_batch(record_batch(frame.decode(content(0, 2)), named=False))
        with self.assertRaisesRegex(FrameError, "name"):
            list(open_file(sink.getvalue()))

    def test_files_of_preprocess(self) -> None:
        binary = os.environ.get("MILLRACE_BIN")
        if not binary:
            self.skipTest("MILLRACE_BIN does not name the program")
        with tempfile.TemporaryDirectory() as folder:
            run = lambda *a: subprocess.run([binary, *a], check=True, capture_output=True, cwd=folder)  # noqa: E731
            run("dataset", "generate", "--model", "rm1", "--rows", "3000", "--partitions", "1", "--out", "rm1")
            name = next(n for n in sorted(os.listdir(f"{folder}/rm1")) if n.endswith(".parquet"))
            run(
                "preprocess",
                "--pipeline",
                "rm1",
                "--in",
                f"rm1/{name}",
                "--out",
                "o.arrow",
                "--format",
                "arrow",
                "--batch",
                "1024",
            )
            got = list(open_file(f"{folder}/o.arrow"))
            self.assertEqual([rows for _, _, rows, _ in got], [1024, 1024, 952])
            schema = got[0][0]
            self.assertEqual((len(schema.dense), len(schema.keys), schema.ids, schema.label), (13, 39, "int32", True))
            self.assertEqual(len(got[0][3].column("dense")[0]), 1024 * 13)


if __name__ == "__main__":
    unittest.main()
