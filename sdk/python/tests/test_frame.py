"""Frames: the bytes of the Go side, round trips, and bytes that are not a frame."""

from __future__ import annotations

import json
import os
import pathlib
import random
import struct
import tempfile
import unittest

from millrace import crc32c
from millrace.errors import FrameError
from millrace.frame import MAX_HEADER, Name, decode, encode, packed, read
from millrace.schema import Key, Schema

from .fake import JOB, SCHEMA, content

SCHEMAS = {
    "fixed int32": Schema(True, ("x", "y"), (Key("a", 5), Key("<é>")), "int32"),
    "lists int64": Schema(True, ("x",), (Key("a", 5, True), Key("b")), "int64"),
    "lists weighted": Schema(False, (), (Key("a", 5, True), Key("b")), "int32", True),
    "label only": Schema(label=True),
    "dense only": Schema(dense=("x", "y", "z")),
    "bfloat16 lists": Schema(True, ("x", "y", "z"), (Key("a", 5, True), Key("b")), "int32", True, "bfloat16"),
    "bfloat16 fixed": Schema(True, ("x",), (Key("a", 5), Key("b")), "int64", dense_type="bfloat16"),
    "sets": Schema(True, ("x",), (Key("a", 5, True, 1), Key("b", set=1), Key("c", 9, True), Key("d", 0, True, 2))),
    "sets fixed": Schema(True, (), (Key("a", 5), Key("b", 5, set=1)), "int32", dense_type="float32"),
    "sets weighted": Schema(False, ("x",), (Key("a", 5, True, 1),), "int32", True, "bfloat16"),
    "odd names": Schema(dense=('q"\\\n\x1f', "é")),
}


def reframe(b: bytes, old: str, new: str) -> bytes:
    """Changes a frame's JSON and puts it together again; the data stays."""
    (n,) = struct.unpack_from("<Q", b)
    head = b[8 : 8 + n].decode().rstrip(" ")
    changed = head.replace(old, new, 1)
    assert head != changed, f"the case changes nothing: {old}"
    raw = changed.encode("utf-8", "surrogatepass")
    raw += b" " * (-(len(raw) + 8) % 64)
    return struct.pack("<Q", len(raw)) + raw + b[8 + n :]


class Frames(unittest.TestCase):
    # The same bytes as TestFrameGolden in sdk/tensor/frame_test.go: every release reads the frames of each release.
    def test_golden(self) -> None:
        s = Schema(True, ("int_0",), (Key('cat_"0\\', 500000), Key("é\n", 0, True)), "int64")
        name = Name("ab" + "00" * 30 + "cd", 1, 18446744073709551615)
        b = encode(
            name,
            s,
            2,
            {
                "label": struct.pack("<2f", 0, 1),
                "dense": struct.pack("<2f", 0.5, float("-inf")),
                "kjt.values": struct.pack("<3q", 7, 8, -1),
                "kjt.lengths": struct.pack("<4i", 1, 1, 0, 1),
            },
        )
        want = (
            '{"__metadata__":{"format":"millrace.frame/1",'
            '"name":"ab000000000000000000000000000000000000000000000000000000000000cd/1/18446744073709551615",'
            '"shapes":"{\\"rows\\":2,\\"dense\\":1,\\"keys\\":2,\\"values\\":3}",'
            '"dense":"[\\"int_0\\"]","keys":"[\\"cat_\\\\\\"0\\\\\\\\\\",\\"é\\\\u000a\\"]","num_embeddings":"[500000,0]","list":"[false,true]",'
            '"ids":"int64","crc32c":"fbacbb95"},'
            '"kjt.values":{"dtype":"I64","shape":[3],"data_offsets":[0,24]},'
            '"dense":{"dtype":"F32","shape":[2,1],"data_offsets":[24,32]},'
            '"kjt.lengths":{"dtype":"I32","shape":[2,2],"data_offsets":[32,48]},'
            '"label":{"dtype":"F32","shape":[2],"data_offsets":[48,56]}}'
        )
        (n,) = struct.unpack_from("<Q", b)
        self.assertEqual(n, 640 - 8)
        self.assertEqual(b[8 : 8 + n].decode().rstrip(" "), want)
        m = decode(b, check=True)
        self.assertEqual(m.name, name)
        self.assertEqual(m.schema, s)
        self.assertEqual(m.values.tolist(), [7, 8, -1])
        self.assertEqual(m.dense.tolist(), [[0.5], [float("-inf")]])
        self.assertEqual(m.lengths.tolist(), [[1, 1], [0, 1]])
        self.assertEqual(m.label.tolist(), [0, 1])
        self.assertIs(m.validate(), m)

    # The same bytes as sdk/tensor/testdata/frame.v2.hex.
    def test_golden_bfloat16(self) -> None:
        s = Schema(
            True,
            ("int_0", "int_1", "int_2"),
            (Key('cat_"0\\', 500000), Key("é\n", 0, True)),
            "int64",
            dense_type="bfloat16",
        )
        name = Name("ab" + "00" * 30 + "cd", 1, 18446744073709551615)
        bits = [0x3F80, 0xFF80, 0x0001, 0x7FC0, 0x8000, 0x7F7F]
        b = encode(
            name,
            s,
            2,
            {
                "label": struct.pack("<2f", 0, 1),
                "dense": struct.pack("<6H", *bits),
                "kjt.values": struct.pack("<3q", 7, 8, -1),
                "kjt.lengths": struct.pack("<4i", 1, 1, 0, 1),
            },
        )
        repository = pathlib.Path(os.environ.get("MILLRACE_REPOSITORY") or pathlib.Path(__file__).parents[3])
        golden = repository / "sdk" / "tensor" / "testdata" / "frame.v2.hex"
        self.assertEqual(b, bytes.fromhex(golden.read_text()))
        m = decode(b, check=True).validate()
        self.assertEqual(m.schema, s)
        self.assertEqual(m.dense.tolist(), [bits[:3], bits[3:]])
        self.assertIn(b'"format":"millrace.frame/2"', b)

    # The same bytes as sdk/tensor/testdata/frame.v3.hex.
    def test_golden_sets(self) -> None:
        repository = pathlib.Path(os.environ.get("MILLRACE_REPOSITORY") or pathlib.Path(__file__).parents[3])
        b = bytes.fromhex((repository / "sdk" / "tensor" / "testdata" / "frame.v3.hex").read_text())
        m = decode(b, check=True).validate()
        self.assertEqual([k.set for k in m.schema.keys], [1, 1, 0, 2])
        self.assertEqual((m.unique, m.rows_of_keys), ((2, 1), [2, 2, 3, 1]))
        self.assertEqual(m.inverse.tolist(), [[0, 0, 1], [0, 0, 0]])
        tensors = {e.name: m.tensor(e.name).tobytes() for e in m.extents}
        self.assertEqual(encode(m.name, m.schema, m.rows, tensors, m.unique), b)

    def test_sets_that_lie(self) -> None:
        good = content(0, 1, 6, SCHEMAS["sets"])
        for what, (old, new, says) in {
            "an older format": ("frame/3", "frame/1", "want 'millrace.frame/3'"),
            "a set too many": ('"sets":"[1,1,0,2]"', '"sets":"[1,1,0,2,3]"', "4 keys, sets are"),
            "a set out of order": ('"sets":"[1,1,0,2]"', '"sets":"[2,2,0,1]"', "in set 2, want 0 or 1"),
            "a set in two places": ('"sets":"[1,1,0,2]"', '"sets":"[1,1,0,1]"', "in set 1, want 0 or 2"),
            "a set that is true": ('"sets":"[1,1,0,2]"', '"sets":"[true,1,0,2]"', "in set True"),
            "sets that are a number": ('"sets":"[1,1,0,2]"', '"sets":"7"', "sets are 7"),
            "unique of one set": ('"unique":"[3,3]"', '"unique":"[3]"', "different rows of 1 sets"),
            "unique that is null": ('"unique":"[3,3]"', '"unique":"null"', "unique: want a list"),
            "more different than rows": ('"unique":"[3,3]"', '"unique":"[7,3]"', "7 different rows, want 1 to 6"),
            "none different": ('"unique":"[3,3]"', '"unique":"[3,0]"', "0 different rows, want 1 to 6"),
            "unique with a fraction": ('"unique":"[3,3]"', '"unique":"[3,2.5]"', "2.5 different rows"),
            "another number of lengths": ('"unique":"[3,3]"', '"unique":"[4,3]"', "kjt.lengths: shape"),
        }.items():
            with self.subTest(what), self.assertRaises(FrameError) as caught:
                decode(reframe(good, old, new), check=False)
            self.assertIn(says, str(caught.exception))
        place = next(e for e in decode(good).extents if e.name == "kjt.inverse").offset
        for what, (row, index, says) in {
            "an index too large": (5, 3, "kjt.inverse of set 1, row 5 is 3, want 0 to 2"),
            "a negative index": (5, -1, "row 5 is -1, want 0 to 2"),
            "not as they first appear": (0, 1, "row 0 is 1 before a row is 0"),
        }.items():
            with self.subTest(what), self.assertRaises(FrameError) as caught:
                m = decode(bytearray(good), check=False)
                struct.pack_into("<i", m.data, place + 4 * row, index)
                m.validate()
            self.assertIn(says, str(caught.exception))

    def test_round_trips(self) -> None:
        for what, s in SCHEMAS.items():
            for rows in (0, 1, 5, 100):
                with self.subTest(what, rows=rows):
                    b = content(2, 7, rows, s)
                    m = decode(b, check=True).validate()
                    self.assertEqual((m.name, m.rows, m.schema, m.nbytes), (Name(JOB, 2, 7), rows, s, len(b)))
                    tensors = {e.name: m.tensor(e.name).tobytes() for e in m.extents}
                    self.assertEqual(encode(m.name, s, rows, tensors, m.unique), b, "one mini-batch has one frame")
                    self.assertEqual(m.inverse is None, not s.sets)
                    self.assertEqual(m.label is None, not s.label)
                    self.assertEqual(m.dense is None, not s.dense)
                    self.assertEqual(m.lengths is None, s.fixed)
                    self.assertEqual(m.weights is None, not s.weights)
                    if rows and s.dense:
                        self.assertEqual(m.dense.shape, (rows, len(s.dense)))

    def test_nothing_is_copied(self) -> None:
        memory = bytearray(content(0, 0))
        m = decode(memory)
        self.assertFalse(m.dense.readonly)
        m.dense[0, 0] = 42.0
        self.assertEqual(decode(bytes(memory), check=False).dense[0, 0], 42.0)
        with self.assertRaises(BufferError):
            memory.append(0)

    def test_data_starts_aligned(self) -> None:
        for s in SCHEMAS.values():
            b = content(0, 1, 3, s)
            m = decode(b)
            self.assertEqual((len(b) - len(m.data)) % 64, 0)
            for e in m.extents:
                self.assertEqual(e.offset % {"int64": 8, "bfloat16": 2}.get(e.dtype, 4), 0)

    def test_files(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "b.safetensors")
            with open(path, "wb") as f:
                f.write(content(0, 3))
            self.assertEqual(read(path).name.number, 3)

    def test_safetensors_reads_a_frame(self) -> None:
        try:
            from safetensors import deserialize
        except ImportError:
            self.skipTest("safetensors is not installed")
        m = decode(content(0, 3))
        theirs = dict(deserialize(content(0, 3)))
        self.assertEqual(set(theirs), {e.name for e in m.extents})
        for e in m.extents:
            self.assertEqual(bytes(theirs[e.name]["data"]), m.tensor(e.name).tobytes())
            self.assertEqual(tuple(theirs[e.name]["shape"]), e.shape)


class Foreign(unittest.TestCase):
    def setUp(self) -> None:
        # rows 4, values 6: kjt.values [0,48], dense [48,64], kjt.lengths [64,96], label [96,112]
        s = SCHEMAS["lists int64"]
        self.frame = encode(
            Name(JOB, 3, 7),
            s,
            4,
            {
                "kjt.values": struct.pack("<6q", *range(6)),
                "dense": bytes(16),
                "kjt.lengths": struct.pack("<8i", 1, 0, 0, 1, 1, 1, 1, 1),
                "label": bytes(16),
            },
        )
        decode(self.frame, check=True).validate()

    def test_headers(self) -> None:
        for what, (old, new, says) in {
            "an unknown dtype": ('"I64"', '"U64"', "dtype"),
            "the wrong dtype": ('"I32"', '"F32"', "dtype"),
            "overlapping tensors": ('"data_offsets":[48,64]', '"data_offsets":[40,56]', "data_offsets"),
            "a gap": ('"data_offsets":[48,64]', '"data_offsets":[52,68]', "data_offsets"),
            "a negative offset": ('"data_offsets":[0,48]', '"data_offsets":[-8,48]', "data_offsets"),
            "a huge offset": ('"data_offsets":[0,48]', '"data_offsets":[0,9e99]', "data_offsets"),
            "three offsets": ('"data_offsets":[0,48]', '"data_offsets":[0,48,49]', "data_offsets"),
            "fractions": ('"data_offsets":[0,48]', '"data_offsets":[0.0,48]', "canonical"),
            "the wrong shape": ('"shape":[6]', '"shape":[7]', "shape"),
            "another rank": ('"shape":[6]', '"shape":[6,1]', "shape"),
            "a missing tensor": (',"dense":{"dtype":"F32","shape":[4,1],"data_offsets":[48,64]}', "", "missing"),
            "an unknown tensor": ('"label":{', '"other":{', "other"),
            "unasked weights": ('"label":{', '"kjt.weights":{', "kjt.weights"),
            "a tensor twice": ('"label":{', '"dense":{', "twice"),
            "another format": ("millrace.frame/1", "millrace.frame/9", "this version reads"),
            "a format of other types": ("millrace.frame/1", "millrace.frame/2", "want 'millrace.frame/1'"),
            "dense of bfloat16": ('"dense":{"dtype":"F32"', '"dense":{"dtype":"BF16"', "want 'millrace.frame/2'"),
            "no name": (f'"name":"{JOB}', '"name":"', "name"),
            "a name not hex": (f'"name":"{JOB[:2]}', '"name":"zz', "name"),
            "a number not canonical": ("/3/7", "/3/07", "name"),
            "a number too large": ("/3/7", "/3/18446744073709551616", "name"),
            "rows that differ": ('\\"rows\\":4', '\\"rows\\":5', ""),
            "rows below zero": ('\\"rows\\":4', '\\"rows\\":-4', "shapes"),
            "rows beyond all": ('\\"rows\\":4', '\\"rows\\":4000000000000000000', "shapes"),
            "rows of text": ('\\"rows\\":4', '\\"rows\\":\\"4\\"', "shapes"),
            "values that differ": ('\\"values\\":6', '\\"values\\":7', ""),
            "shapes that are none": ('{\\"rows\\":4,\\"dense\\":1,\\"keys\\":2,\\"values\\":6}', "[]", "shapes"),
            "dense that differs": ('\\"dense\\":1', '\\"dense\\":2', "canonical"),
            "keys that are no list": ('"keys":"[', '"keys":"{', "metadata"),
            "a key that is a number": ('[\\"a\\",', "[7,", "text"),
            "a key without a name": ('[\\"a\\",', '[\\"\\",', "empty"),
            "a key twice": ('[\\"a\\",', '[\\"b\\",', "twice"),
            "half a surrogate": ('[\\"a\\",', '[\\"\\ud800\\",', ""),
            "half a surrogate, escaped": ('[\\"a\\",', '[\\"\\\\ud800\\",', "surrogate"),
            "embeddings below zero": ("[5,0]", "[-5,0]", "num_embeddings"),
            "too few embeddings": ("[5,0]", "[5]", "num_embeddings"),
            "lists of numbers": ("[true,false]", "[1,0]", "list"),
            "no list at all": ("[true,false]", "[false,false]", ""),
            "unknown ids": ('"ids":"int64"', '"ids":"int8"', "ids"),
            "lengths said to be ones": ('"ids":"int64"', '"ids":"int64","lengths":"ones"', "canonical"),
            "unknown metadata": ('"ids":"int64"', '"ids":"int64","x":"y"', "canonical"),
            "metadata of numbers": ('"ids":"int64"', '"ids":64', "metadata"),
            "a crc not hex": ('"crc32c":"', '"crc32c":"zz', "crc32c"),
            "a space": ('{"__metadata__"', '{ "__metadata__"', "canonical"),
            "not JSON": ('{"__metadata__"', '{{"__metadata__"', "header"),
            "deep JSON": ('"I64"', "[" * 100_000 + "]" * 100_000, ""),
            "a long number": ('"shape":[6]', '"shape":[' + "9" * 5000 + "]", ""),
        }.items():
            with self.subTest(what):
                with self.assertRaises(FrameError) as e:
                    decode(reframe(self.frame, old, new))
                self.assertIn(says, str(e.exception))

    def test_lengths_and_ends(self) -> None:
        b = self.frame
        for what, bad in {
            "nothing": b"",
            "seven bytes": b[:7],
            "a header longer than all": struct.pack("<Q", 1 << 40) + b[8:],
            "a header longer than the frame": struct.pack("<Q", len(b)) + b[8:],
            "a header at the limit": struct.pack("<Q", MAX_HEADER) + b[8:],
            "a header of 2^64-1": b"\xff" * 8 + b[8:],
            "a header that is not aligned": struct.pack("<Q", 100) + b[8:],
            "an empty header": struct.pack("<Q", 56) + b" " * 56,
            "a byte too few": b[:-1],
            "a byte too many": b + b"\0",
            "not UTF-8": b[:10] + b"\xff" + b[11:],
        }.items():
            with self.subTest(what), self.assertRaises(FrameError):
                decode(bad)

    def test_lengths_are_looked_at_on_demand(self) -> None:
        for what, lengths in {
            "below zero": (-1, 1, 1, 1, 1, 1, 1, 1),
            "two where one belongs": (0, 1, 0, 0, 2, 1, 1, 1),
            "too many": (1, 1, 0, 1, 1, 1, 1, 1),
        }.items():
            with self.subTest(what):
                (n,) = struct.unpack_from("<Q", self.frame)
                bad = bytearray(self.frame)
                bad[8 + n + 64 : 8 + n + 96] = struct.pack("<8i", *lengths)
                m = decode(bad, check=False)
                with self.assertRaisesRegex(FrameError, "length"):
                    m.validate()

    # Names, of the mini-batch and of features, are not protected: the client compares them with what it asked for.
    def test_every_flipped_bit_of_tensors_is_noticed(self) -> None:
        b = bytearray(self.frame)
        r = random.Random(1)
        start = b.index(b'"crc32c"')
        for at in [*range(8), *range(start, len(b))]:
            bit = 1 << r.randrange(8)
            b[at] ^= bit
            with self.assertRaises(FrameError, msg=f"byte {at}, bit {bit}"):
                decode(bytes(b), check=True)
            b[at] ^= bit

    def test_nonsense_never_raises_anything_else(self) -> None:
        r = random.Random(2)
        pieces = [
            b'"',
            b"[",
            b"]",
            b"{",
            b"}",
            b",",
            b":",
            b"9",
            b"-",
            b"\\",
            b"null",
            b"1e9",
            b"\x00",
            b"\xc3",
            b"true",
        ]
        for _ in range(3000):
            b = bytearray(self.frame)
            for _ in range(r.randrange(1, 4)):
                at = r.randrange(len(b))
                if r.random() < 0.5:
                    b[at : at + r.randrange(4)] = r.choice(pieces)
                else:
                    b[at] = r.randrange(256)
            try:
                decode(bytes(b), check=True)
            except FrameError:
                pass

    def test_encode_refuses(self) -> None:
        s = SCHEMAS["dense only"]
        for what, (rows, tensors) in {
            "a missing tensor": (1, {}),
            "another tensor": (1, {"dense": bytes(12), "label": bytes(4)}),
            "too few bytes": (1, {"dense": bytes(11)}),
            "rows below zero": (-1, {"dense": b""}),
        }.items():
            with self.subTest(what), self.assertRaises(FrameError):
                encode(Name(JOB, 0, 0), s, rows, tensors)
        with self.assertRaises(FrameError):
            packed(SCHEMAS["fixed int32"], 3, 7)


class CRC32C(unittest.TestCase):
    def test_check_value(self) -> None:
        for f in (crc32c.fold, crc32c.checksum, lambda d: crc32c.table(d) ^ 0xFFFFFFFF):
            self.assertEqual(f(b"123456789"), 0xE3069283)
            self.assertEqual(f(b""), 0)

    def test_folding_equals_the_table(self) -> None:
        r = random.Random(3)
        for n in (1, 7, 2047, 2048, 2049, 3000, 11371, 65536, (256 << 10) - 1, (256 << 10) + 1, (512 << 10) + 2047):
            d = r.randbytes(n)
            self.assertEqual(crc32c.fold(d), crc32c.table(d) ^ 0xFFFFFFFF, n)
            self.assertEqual(crc32c.checksum(memoryview(bytearray(d))), crc32c.fold(d), n)

    # x^5685 + x^1362 + x^426 + 1 modulo 1EDC6F41h, which is why bits may be folded.
    def test_the_sparse_multiple(self) -> None:
        def power(n: int) -> int:
            v = 1
            for _ in range(n):
                v <<= 1
                v ^= 0x11EDC6F41 if v >> 32 else 0
            return v

        self.assertEqual(power(crc32c._A) ^ power(crc32c._B) ^ power(crc32c._C) ^ 1, 0)


class Schemas(unittest.TestCase):
    def test_round_trip_of_go_json(self) -> None:
        text = '{"Label":true,"Dense":["int_0"],"Keys":[{"Name":"cat_0","NumEmbeddings":500000,"List":false}],"IDs":2,"Weights":false}'
        s = Schema.from_json(text)
        self.assertEqual(s, Schema(True, ("int_0",), (Key("cat_0", 500000),), "int32"))
        self.assertEqual(json.loads(s.to_json()), json.loads(text))
        self.assertEqual(s.embeddings, {"cat_0": 500000})
        self.assertTrue(s.fixed)
        self.assertEqual(Schema.from_json(SCHEMA.to_json()), SCHEMA)
        self.assertEqual(Schema.from_json('{"Label":true,"Dense":null,"Keys":null,"IDs":0}'), Schema(label=True))

    def test_the_type_of_dense(self) -> None:
        text = '{"Label":false,"Dense":["x"],"Keys":[],"IDs":0,"Weights":false,"DenseType":4}'
        s = Schema.from_json(text)
        self.assertEqual(s, Schema(dense=("x",), dense_type="bfloat16"))
        self.assertEqual(json.loads(s.to_json()), json.loads(text))

    def test_refusals(self) -> None:
        from millrace.errors import SchemaError

        for text in (
            "",
            "[]",
            "{}",
            '{"Keys":[{}]}',
            '{"Keys":[{"Name":"a","NumEmbeddings":-1}]}',
            '{"Keys":[{"Name":"a"}],"IDs":1}',
            '{"Dense":["a","a"]}',
            '{"Dense":7}',
            '{"Dense":["a"],"DenseType":2}',
            '{"Dense":["a"],"DenseType":5}',
            '{"Dense":["a"],"DenseType":[1]}',
        ):
            with self.subTest(text), self.assertRaises(SchemaError):
                Schema.from_json(text)


if __name__ == "__main__":
    unittest.main()
