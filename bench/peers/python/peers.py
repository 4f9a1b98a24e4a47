"""The peers that live in Python: pyarrow with NumPy, and Polars. bench/peers starts this, once a peer, and talks to it by lines.

    peers.py PEER CONFIG

PEER is pyarrow or polars, CONFIG a JSON file that names the Parquet file and the operators' parameters. Each line on standard input is a
JSON list, each answer one line of JSON:

    ["gather", DIR]        one turn over the file, its columns written to DIR   {"rows", "counts"}
    ["measure", SECONDS]   whole turns, at least so long                        {"rows", "wall", "cpu"}

One thread each: the caller has tied the process to one core, and sets POLARS_MAX_THREADS and OMP_NUM_THREADS.
"""

import json
import os
import sys
import time

import numpy as np


class Config:
    def __init__(self, path):
        with open(path) as f:
            c = json.load(f)
        self.path = c["path"]
        self.batch = c["batch"]
        self.lists = c["lists"]
        self.max = c["max"]
        self.borders = np.array(c["borders"], dtype=np.uint32).view(np.float32)
        self.generated = c["generated"]
        self.dense = ["int_%d" % i for i in range(c["dense"])]
        self.sparse = ["cat_%d" % i for i in range(c["sparse"])]


def filled(column):
    """A column of pyarrow as an array, with 0 for its nulls."""
    if column.null_count:
        column = column.fill_null(0)
    return column.to_numpy()


def log(x):
    """The logarithm of a number from 0 on, and 1."""
    y = np.maximum(x, 0).astype(np.float32, copy=False)
    y += np.float32(1)
    return np.log(y, out=y)


def sigrid_hash(ids, divisor):
    """SigridHash with salt 0, in two arrays. The remainder is made of a quotient, since NumPy divides by one divisor
    with vectors, and takes remainders one by one."""
    k = ids.astype(np.int64, copy=False).view(np.uint64)
    t = k << np.uint64(21)
    k = ~k
    k += t

    def fold(bits):
        np.right_shift(k, np.uint64(bits), out=t)
        np.bitwise_xor(k, t, out=k)

    fold(24)
    k *= np.uint64(265)
    fold(14)
    k *= np.uint64(21)
    fold(28)
    k *= np.uint64(1 + (1 << 31))
    m = np.uint64(0x9DDFEA08EB382D69)
    for _ in range(2):
        k *= m
        fold(47)
    k *= m
    signed, quotient = k.view(np.int64), t.view(np.int64)
    np.floor_divide(signed, np.int64(divisor), out=quotient)
    quotient *= np.int64(divisor)
    signed -= quotient
    return signed.astype(np.int32)


class Arrow:
    """pyarrow decodes batches of rows, NumPy computes a column at a time. np.log is float32's, within 4 ulp by its own account."""

    def __init__(self, config):
        import pyarrow as pa
        import pyarrow.parquet as pq

        pa.set_cpu_count(1)
        pa.set_io_thread_count(1)
        self.c = config
        self.file = pq.ParquetFile(pa.memory_map(config.path))
        self.version = "pyarrow %s, NumPy %s" % (pa.__version__, np.__version__)

    def turn(self):
        """Yields (label, dense, values, lengths) for each block; lengths are None where every row has one id."""
        for batch in self.file.iter_batches(batch_size=self.c.batch, use_threads=False):
            yield self.block(batch)

    def block(self, batch):
        c = self.c
        columns = dict(zip(batch.schema.names, batch.columns))
        hashed = lambda ids: sigrid_hash(ids, c.max)
        dense, values, lengths, buckets = [], [], [], []
        for i, name in enumerate(c.dense):
            x = filled(columns[name])
            dense.append(log(x))
            if i < c.generated:
                buckets.append(hashed(np.searchsorted(c.borders, x.astype(np.float32, copy=False), side="left")))
        for name in c.sparse:
            if c.lists:
                column = columns[name]
                lengths.append(filled(column.value_lengths()))
                values.append(hashed(column.flatten().to_numpy()))
            else:
                lengths.append(None)
                values.append(hashed(filled(columns[name])))
        lengths += [None] * len(buckets)
        return filled(columns["label"]).astype(np.float32), dense, values + buckets, lengths


class Polars:
    """Polars: dense features as expressions of one query; SigridHash as steps over series, which a query would not share between
    the two places where a step uses the one before. Lists are taken apart into values and lengths first."""

    def __init__(self, config):
        import polars as pl

        self.c, self.pl = config, pl
        self.version = "Polars %s" % pl.__version__
        self.borders = pl.Series("borders", config.borders)
        one = pl.lit(1, dtype=pl.Float32)
        self.dense = [(pl.col(n).fill_null(0).clip(lower_bound=0).cast(pl.Float32) + one).log().alias(n) for n in config.dense]

    def turn(self):
        """Yields one block, the whole file."""
        c, pl = self.c, self.pl
        frame = pl.read_parquet(c.path)
        dense = frame.select(self.dense)
        values, lengths = [], []
        for name in c.sparse:
            s = frame[name]
            if c.lists:
                lengths.append(s.list.len().fill_null(0).cast(pl.Int32))
                values.append(self.hash(s.explode(empty_as_null=False, keep_nulls=False)))
            else:
                lengths.append(None)
                values.append(self.hash(s.fill_null(0)))
        for name in c.dense[: c.generated]:
            bucket = self.borders.search_sorted(frame[name].fill_null(0).cast(pl.Float32), side="left")
            lengths.append(None)
            values.append(self.hash(bucket.cast(pl.Int64)))
        yield frame["label"].cast(pl.Float32), dense.get_columns(), values, lengths

    def hash(self, ids):
        """SigridHash with salt 0. Division by a power of two is how a shift is spelt, and arithmetic wraps."""
        fold = lambda k, n: k ^ (k // (1 << n))
        k = ids.reinterpret(signed=False)
        k = ~k + k * (1 << 21)
        k = fold(k, 24) * 265
        k = fold(k, 14) * 21
        k = fold(k, 28) * (1 + (1 << 31))
        m = 0x9DDFEA08EB382D69
        k = fold(fold(k * m, 47) * m, 47) * m
        return (k.reinterpret(signed=True) % self.c.max).cast(self.pl.Int32)


def gather(peer, folder):
    """Writes label, dense (a feature after the other), lengths and values (a key after the other) as little-endian files."""
    blocks = list(peer.turn())
    join = lambda parts, dtype: np.ascontiguousarray(np.concatenate(parts), dtype=dtype)
    label = join([b[0] for b in blocks], "<f4")
    keys = range(len(blocks[0][2]))
    counts = []
    with open(os.path.join(folder, "label"), "wb") as f:
        f.write(label.tobytes())
    with open(os.path.join(folder, "dense"), "wb") as f:
        for i in range(len(blocks[0][1])):
            f.write(join([b[1][i] for b in blocks], "<f4").tobytes())
    with open(os.path.join(folder, "lengths"), "wb") as f:
        for i in keys:
            ones = lambda b: np.ones(len(b[0]), dtype="<i4") if b[3][i] is None else b[3][i]
            f.write(join([ones(b) for b in blocks], "<i4").tobytes())
    with open(os.path.join(folder, "values"), "wb") as f:
        for i in keys:
            v = join([b[2][i] for b in blocks], "<i4")
            counts.append(len(v))
            f.write(v.tobytes())
    return {"rows": len(label), "counts": counts}


def measure(peer, seconds):
    rows, wall, cpu = 0, time.perf_counter(), time.process_time()
    while rows == 0 or time.perf_counter() - wall < seconds:
        for block in peer.turn():
            rows += len(block[0])
    return {"rows": rows, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def main():
    kind, config = sys.argv[1:]
    peer = {"pyarrow": Arrow, "polars": Polars}[kind](Config(config))
    print(json.dumps({"version": peer.version}), flush=True)
    for line in sys.stdin:
        what, argument = json.loads(line)
        answer = gather(peer, argument) if what == "gather" else measure(peer, argument)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
