"""The peers that make vocabularies of Criteo's rows. bench/peers starts this, once a peer, and talks to it by lines as
to peers.py.

    vocabularies.py PEER CONFIG

PEER is pyarrow, pandas, polars or duckdb. CONFIG names the file, its format (packed, text or parquet) and the modulus.
A turn makes label, dense features (fill, clamp, log(x + 1) as float32) and ids: places in the vocabulary of their
column, by first appearance.

Every turn reads the file. No peer reads packed rows, so NumPy reads and transposes these for all peers, a block of rows
at a time, into columns that are allocated once. With more threads a pool takes columns, and ranges of packed rows: all
of this releases the interpreter's lock.
"""

import json
import os
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np

DENSE, SPARSE = 13, 26
BLOCK = 2048  # packed rows that are transposed at once: 320 KiB, which a second-level cache holds


def parse_hex(offsets, data, valid):
    """Integers of strings that have eight hexadecimal digits, or none: those are 0. Eight digits are taken at once."""
    whole = np.diff(offsets) == 8
    if valid is not None:
        whole &= valid
    x = data[offsets[0] : offsets[-1]].view(np.uint64).byteswap()
    one, low = np.uint64(0x0101010101010101), np.uint64(0x0F0F0F0F0F0F0F0F)
    x = (x & low) + ((x >> np.uint64(6)) & one) * np.uint64(9)
    x = (x | (x >> np.uint64(4))) & np.uint64(0x00FF00FF00FF00FF)
    x = (x | (x >> np.uint64(8))) & np.uint64(0x0000FFFF0000FFFF)
    parsed = (x | (x >> np.uint64(16))).astype(np.uint32)
    if len(parsed) == len(whole):
        return parsed
    out = np.zeros(len(whole), dtype=np.uint32)
    out[whole] = parsed
    return out


class Reader:
    """Reads with pyarrow, computes with NumPy; ids are what the peer makes of the keys."""

    def __init__(self, config):
        import pyarrow as pa

        self.config, self.pa = config, pa
        self.threads = config["threads"]
        pa.set_cpu_count(self.threads)
        pa.set_io_thread_count(1)
        self.pool = ThreadPoolExecutor(self.threads) if self.threads > 1 else None
        self.columns_at_once = self.pool  # None: one column after the other, since the peer divides the work itself
        self.version = "pyarrow %s, NumPy %s" % (pa.__version__, np.__version__)
        self.columns = None
        if config["format"] == "packed":
            rows = os.path.getsize(config["path"]) // (4 * (1 + DENSE + SPARSE))
            self.columns = np.empty((1 + DENSE + SPARSE, rows), dtype="<i4")

    @staticmethod
    def each(pool, function, items):
        return list(pool.map(function, items)) if pool else [function(i) for i in items]

    def turn(self):
        columns = self.packed() if self.config["format"] == "packed" else self.read()
        out = self.each(self.columns_at_once, lambda i: self.column(i, columns), range(1 + DENSE + SPARSE))
        yield out[0], out[1 : 1 + DENSE], out[1 + DENSE :], [None] * SPARSE

    def packed(self):
        """All rows as columns, in the memory of the turn before."""
        share = -(-self.columns.shape[1] // self.threads)
        self.each(self.pool, lambda i: self.transpose(i * share, (i + 1) * share), range(self.threads))
        return self.columns

    def transpose(self, first, end):
        end = min(end, self.columns.shape[1])
        block = np.empty((BLOCK, len(self.columns)), dtype="<i4")
        with open(self.config["path"], "rb", buffering=0) as f:
            f.seek(first * block[0].nbytes)
            for at in range(first, end, BLOCK):
                rows = min(BLOCK, end - at)
                if f.readinto(block[:rows]) != block[:rows].nbytes:
                    raise EOFError("%s ended before row %d" % (f.name, at + rows))
                self.columns[:, at : at + rows] = block[:rows].T

    def read(self):
        path = self.config["path"]
        names = ["label"] + ["int_%d" % i for i in range(DENSE)] + ["cat_%d" % i for i in range(SPARSE)]
        if self.config["format"] == "parquet":
            import pyarrow.parquet as pq

            table = pq.read_table(path, columns=names, use_threads=self.threads > 1)
        else:
            import pyarrow.csv as csv

            kinds = [self.pa.int32()] * (1 + DENSE) + [self.pa.string()] * SPARSE
            table = csv.read_csv(
                path,
                read_options=csv.ReadOptions(column_names=names, use_threads=self.threads > 1),
                parse_options=csv.ParseOptions(delimiter="\t", quote_char=False),
                convert_options=csv.ConvertOptions(column_types=dict(zip(names, kinds))),
            )
        return [table[n] for n in names]

    def column(self, i, columns):
        column = columns[i]
        if i == 0:
            return self.numbers(column).astype(np.float32)
        if i <= DENSE:
            y = np.maximum(self.numbers(column), 0).astype(np.float32)
            y += np.float32(1)
            return np.log(y, out=y)
        keys = column.view(np.uint32) if isinstance(column, np.ndarray) else self.parse(column)
        if self.config["modulus"]:
            keys = keys % np.uint32(self.config["modulus"])
        return self.indices(keys.view(np.int32)) if self.config["indices"] else keys.view(np.int32)

    def numbers(self, column):
        if isinstance(column, np.ndarray):
            return column
        return (column.fill_null(0) if column.null_count else column).to_numpy()

    def parse(self, column):
        """NumPy parses what pyarrow has no function for."""
        parts = []
        for chunk in column.chunks:
            wide = self.pa.types.is_large_string(chunk.type) or self.pa.types.is_large_binary(chunk.type)
            _, offsets, data = chunk.buffers()
            offsets = np.frombuffer(offsets, dtype=np.int64 if wide else np.int32)
            offsets = offsets[chunk.offset : chunk.offset + len(chunk) + 1]
            valid = np.asarray(chunk.is_valid()) if chunk.null_count else None
            parts.append(parse_hex(offsets, np.frombuffer(data, dtype=np.uint8), valid))
        return parts[0] if len(parts) == 1 else np.concatenate(parts)


class Arrow(Reader):
    def indices(self, keys):
        return self.pa.array(keys).dictionary_encode().indices.to_numpy()


class Pandas(Reader):
    def __init__(self, config):
        super().__init__(config)
        import pandas as pd

        self.pd = pd
        self.version += ", pandas %s" % pd.__version__

    def indices(self, keys):
        return self.pd.factorize(keys)[0]


class Duck(Reader):
    def __init__(self, config):
        super().__init__(config)
        import duckdb

        self.connection = duckdb.connect(":memory:")
        self.connection.execute("SET threads = %d" % self.threads)
        self.version += ", DuckDB %s" % duckdb.__version__
        self.columns_at_once = None

    def indices(self, keys):
        rows = self.pa.table({"k": keys, "i": np.arange(len(keys), dtype=np.int32)})
        self.connection.register("column_rows", rows)
        found = self.connection.execute(
            "WITH firsts AS (SELECT k, CAST(row_number() OVER (ORDER BY min(i)) - 1 AS INTEGER) AS id "
            "FROM column_rows GROUP BY k) SELECT id FROM column_rows JOIN firsts USING (k) ORDER BY i"
        ).fetchnumpy()["id"]
        return np.asarray(found)


class Polars(Reader):
    """Everything by Polars, but for the transposition of packed rows."""

    def __init__(self, config):
        super().__init__(config)
        import polars as pl

        self.pl = pl
        self.version = "Polars %s" % pl.__version__
        names = ["label"] + ["int_%d" % i for i in range(DENSE)] + ["cat_%d" % i for i in range(SPARSE)]
        self.names = names

    def turn(self):
        pl, c = self.pl, self.config
        if c["format"] == "packed":
            columns = self.packed()
            signed, unsigned = columns[: 1 + DENSE], columns[1 + DENSE :].view(np.uint32)
            frame = pl.from_arrow(self.pa.table([*signed, *unsigned], self.names))
        elif c["format"] == "parquet":
            frame = pl.read_parquet(c["path"], columns=self.names)
        elif c["format"] == "text":
            kinds = [pl.Int32] * (1 + DENSE) + [pl.String] * SPARSE
            frame = pl.read_csv(
                c["path"],
                separator="\t",
                has_header=False,
                quote_char=None,
                new_columns=self.names,
                schema_overrides=kinds,
            )
        dense = [
            (pl.col(n).fill_null(0).clip(lower_bound=0).cast(pl.Float32) + pl.lit(1, dtype=pl.Float32)).log()
            for n in self.names[1 : 1 + DENSE]
        ]
        keys = [self.key(n) for n in self.names[1 + DENSE :]]
        made = frame.select(pl.col("label").cast(pl.Float32), *dense, *keys)
        columns = made.get_columns()
        ids = columns[1 + DENSE :]
        if c["indices"]:
            ids = [self.indices(s) for s in ids]
        yield columns[0], columns[1 : 1 + DENSE], ids, [None] * SPARSE

    def key(self, name):
        pl, c = self.pl, self.config
        key = pl.col(name)
        if c["format"] != "packed":
            text = key.cast(pl.String)
            key = text.replace("", None).str.to_integer(base=16, dtype=pl.Int64).fill_null(0).cast(pl.UInt32)
        return key % c["modulus"] if c["modulus"] else key

    def indices(self, keys):
        firsts = keys.unique(maintain_order=True).to_frame("k").with_row_index("id")
        return keys.to_frame("k").join(firsts, on="k", how="left", maintain_order="left")["id"]


def gather(peer, folder):
    """Writes label, dense, lengths and values, a feature after the other, as little-endian files."""
    (label, dense, values, _) = next(iter(peer.turn()))
    rows = len(label)
    whole = lambda parts: np.concatenate([np.asarray(p) for p in parts])
    write = lambda name, parts, dtype: whole(parts).astype(dtype).tofile(os.path.join(folder, name))
    write("label", [label], "<f4")
    write("dense", dense, "<f4")
    write("lengths", [np.ones(rows * len(values))], "<i4")
    write("values", values, "<i4")
    return {"rows": rows, "counts": [len(v) for v in values]}


def measure(peer, seconds):
    rows, wall, cpu = 0, time.perf_counter(), time.process_time()
    while rows == 0 or time.perf_counter() - wall < seconds:
        for label, *_ in peer.turn():
            rows += len(label)
    return {"rows": rows, "wall": time.perf_counter() - wall, "cpu": time.process_time() - cpu}


def main():
    kind, config = sys.argv[1:]
    with open(config) as f:
        peer = {"pyarrow": Arrow, "pandas": Pandas, "polars": Polars, "duckdb": Duck}[kind](json.load(f))
    print(json.dumps({"version": peer.version}), flush=True)
    for line in sys.stdin:
        what, argument = json.loads(line)
        answer = gather(peer, argument) if what == "gather" else measure(peer, argument)
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
