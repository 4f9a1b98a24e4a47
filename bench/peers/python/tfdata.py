"""tf.data, and tf.data service, as sides of loaders.py: the mini-batches of a pipeline, computed by TensorFlow's graph.

tf.data has no reader of Parquet, and its service cannot run a generator of Python in another process. So the file is
made into TFRecords first, which does not count: a record is a mini-batch, its columns lie one behind the other as raw
bytes, and a null is NaN or the least integer. What is timed reads less than the other sides do: nothing is compressed,
and no Parquet is decoded. The operators are TensorFlow's, over all columns of a kind at once.

With the service, a dispatcher and a worker are a process of their own, bound to the same cores, and started before the
time begins; mini-batches come over gRPC without compression, which is the fastest on one machine.

    tfdata.py --service CORES    # the process of the service; it ends when its input does
"""

import itertools
import json
import os
import struct
import subprocess
import sys
import warnings

STORED = {"int32": "<i4", "int64": "<i8", "float": "<f4"}  # types of Arrow


def tensorflow(cores):
    """TensorFlow on processors alone, with as many threads as there are cores."""
    os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
    os.environ["CUDA_VISIBLE_DEVICES"] = ""
    import tensorflow as tf

    tf.config.threading.set_intra_op_parallelism_threads(cores)
    tf.config.threading.set_inter_op_parallelism_threads(cores)
    return tf


def number(value, kind):
    """A parameter of the canonical form: an integer, or the hexadecimal digits of a float's bits."""
    if kind == "int64":
        return int(value)
    return struct.unpack(">f" if kind == "float32" else ">d", bytes.fromhex(value))[0]


class Graph:
    """The canonical form of a pipeline as operations of TensorFlow on a record.

    Attributes:
        stored: the columns with one value a row, by their type.
        lists: the columns that are lists of ids.
    """

    def __init__(self, tf, document, schema):
        from millrace.numpy_peer import Transform

        self.tf, self.document = tf, document
        self.borders = Transform(document).borders
        self.stored = {name: [] for name in STORED}
        self.lists = []
        for feature in [document["label"], *document["dense"], *document["keys"]]:
            column = feature["column"]
            if feature.get("list"):
                self.lists.append(column)
                continue
            of = self.stored.get(str(schema.field(column).type))
            if of is None:
                raise RuntimeError(f"{column}: a column of {schema.field(column).type} is not compared")
            if column not in of:
                of.append(column)
        self.places = {c: (t, i) for t, columns in self.stored.items() for i, c in enumerate(columns)}
        self.dense = self.groups(document["dense"])
        self.keys = self.groups(document["keys"])
        if self.lists and [bool(g[0].get("list")) for g in self.keys] not in ([True], [True, False]):
            raise RuntimeError("lists of ids come first here, with the same operators: others are not compared")

    @staticmethod
    def groups(features):
        """Neighbours with the same operators, which are computed together."""
        by = itertools.groupby(features, lambda f: (json.dumps(f["ops"]), f["kind"], bool(f.get("list"))))
        return [list(group) for _, group in by]

    def example(self, table):
        """A mini-batch of Arrow as a serialized record."""
        import numpy as np
        import pyarrow.compute as pc

        def filled(column, dtype):
            null = float("nan") if dtype == "<f4" else int(np.iinfo(dtype).min)
            return pc.fill_null(column, null).to_numpy().astype(dtype, copy=False).tobytes()

        parts = {t: b"".join(filled(table.column(c), STORED[t]) for c in columns) for t, columns in self.stored.items()}
        flat = [table.column(c).combine_chunks() for c in self.lists]
        parts["values"] = b"".join(c.flatten().to_numpy().astype("<i8").tobytes() for c in flat)
        parts["lengths"] = b"".join(
            pc.fill_null(pc.list_value_length(c), 0).to_numpy().astype("<i4").tobytes() for c in flat
        )
        train = self.tf.train
        feature = {n: train.Feature(bytes_list=train.BytesList(value=[part])) for n, part in parts.items()}
        return train.Example(features=train.Features(feature=feature)).SerializeToString()

    def run(self, record):
        """Label, dense, ids and lengths of a record."""
        tf = self.tf
        names = [*STORED, "values", "lengths"]
        parts = tf.io.parse_single_example(record, {n: tf.io.FixedLenFeature([], tf.string) for n in names})
        self.matrices = {
            t: tf.reshape(tf.io.decode_raw(parts[t], {"int32": tf.int32, "int64": tf.int64, "float": tf.float32}[t]),
                          [len(columns), -1])
            for t, columns in self.stored.items() if columns
        }  # fmt: skip
        label = tf.cast(self.rows([self.document["label"]])[0], tf.float32)
        dense = tf.transpose(tf.concat([self.operated(g, self.rows(g)) for g in self.dense], 0))
        values, lengths = [], []
        for group in self.keys:
            if group[0].get("list"):
                values.append(self.operated(group, tf.io.decode_raw(parts["values"], tf.int64)))
                lengths.append(tf.reshape(tf.io.decode_raw(parts["lengths"], tf.int32), [len(group), -1]))
                continue
            ids = self.operated(group, self.rows(group))
            values.append(tf.reshape(ids, [-1]))
            lengths.append(tf.ones_like(ids, tf.int32))
        ids = tf.cast(tf.concat(values, 0), tf.int32 if self.document["ids"] == "int32" else tf.int64)
        return label, dense, ids, tf.reshape(tf.concat(lengths, 0), [-1])

    def rows(self, group):
        """The columns of a group, one a row."""
        places = [self.places[f["column"]] for f in group]
        ((kind,),) = [{t for t, _ in places}]
        index = [i for _, i in places]
        if index == list(range(index[0], index[-1] + 1)):
            return self.matrices[kind][index[0] : index[-1] + 1]
        return self.tf.gather(self.matrices[kind], index)

    def operated(self, group, x):
        """A group's operators on its values."""
        kind = group[0]["kind"]
        for op in group[0]["ops"]:
            ((name, parameters),) = op.items()
            x, kind = getattr(self, "_" + name)(x, kind, **parameters)
        return x

    def _fill_null(self, x, kind, value):
        tf = self.tf
        null = tf.math.is_nan(x) if x.dtype.is_floating else tf.equal(x, x.dtype.min)
        return tf.where(null, tf.constant(number(value, kind), x.dtype), x), kind

    def _clamp(self, x, kind, min, max):  # noqa: A002 (the operator's parameters)
        low, high = number(min, kind), number(max, kind)
        least, greatest = x.dtype.min, x.dtype.max
        if low > least:
            x = self.tf.maximum(x, self.tf.constant(low, x.dtype))
        if high < greatest:
            x = self.tf.minimum(x, self.tf.constant(high, x.dtype))
        return x, kind

    def _log(self, x, kind, add):
        # Not x + add: where add is 1, TensorFlow would take log1p(x), which rounds the sum less than the pipeline does.
        return self.tf.math.log(self.tf.cast(x, self.tf.float32) - -number(add, "float32")), "float32"

    def _bucketize(self, x, kind, borders, side, nan, compare):
        import numpy as np

        table = self.borders[borders]
        if compare != "float32" or len(np.unique(table)) != len(table):
            raise RuntimeError("bucketize compares float32 with different borders here: others are not compared")
        flat = self.tf.reshape(self.tf.cast(x, self.tf.float32), [-1])
        bucket = self.tf.searchsorted(self.tf.constant(table), flat, side=side, out_type=self.tf.int64)
        return self.tf.reshape(bucket, self.tf.shape(x)), "int64"

    def _sigrid_hash(self, x, kind, salt, max):  # noqa: A002
        tf = self.tf
        u = lambda v: tf.constant(v, tf.uint64)  # noqa: E731
        shift, xor, right = tf.bitwise.left_shift, tf.bitwise.bitwise_xor, tf.bitwise.right_shift
        k, salted, m = tf.bitcast(tf.cast(x, tf.int64), tf.uint64), u(salt & (1 << 64) - 1), u(0x9DDFEA08EB382D69)
        k = tf.bitwise.invert(k) + shift(k, u(21))
        k = xor(k, right(k, u(24))) * u(265)
        k = xor(k, right(k, u(14))) * u(21)
        k = xor(k, right(k, u(28))) * u(1 + (1 << 31))
        k = xor(k, salted) * m
        k = xor(xor(k, right(k, u(47))), salted) * m
        k = xor(k, right(k, u(47))) * m
        return tf.math.floormod(tf.bitcast(k, tf.int64), tf.constant(max, tf.int64)), "int64"


def records(tf, job, batch):
    """Makes the TFRecords beside the job's file, unless they are there. Returns their path and the graph."""
    import pyarrow.parquet as pq
    from millrace.numpy_peer import tables

    document = json.loads(job["canonical"])
    file = pq.ParquetFile(job["file"], memory_map=True)
    graph = Graph(tf, document, file.schema_arrow)
    path = job["file"] + ".tfrecord"
    if not os.path.exists(path):
        columns = [c for of in graph.stored.values() for c in of] + graph.lists
        with tf.io.TFRecordWriter(path + ".part") as writer:
            for table in tables(file, columns, batch, 1):
                writer.write(graph.example(table))
        os.rename(path + ".part", path)
    return path, graph


def turn(job, cores, batch, service):
    """A turn of loaders.py: tf.data in this process, or with everything but the last step in the service's."""
    import torch

    tf = tensorflow(cores)
    path, graph = records(tf, job, batch)
    helper = start(cores) if service else None
    warnings.filterwarnings("ignore", "The given NumPy array is not writ")  # torch only reads them

    def batches():
        data = tf.data.TFRecordDataset(path).map(graph.run, num_parallel_calls=tf.data.AUTOTUNE, deterministic=True)
        if helper:
            data = data.apply(tf.data.experimental.service.distribute(
                processing_mode=tf.data.experimental.service.ShardingPolicy.OFF, service=helper.address,
                compression=None))  # fmt: skip
        for label, dense, ids, lengths in data.prefetch(tf.data.AUTOTUNE).as_numpy_iterator():
            yield (torch.from_numpy(label), torch.from_numpy(dense), torch.from_numpy(ids),
                   None if graph.document["fixed"] else torch.from_numpy(lengths))  # fmt: skip

    if helper:
        batches.elsewhere = helper.cpu_seconds
        batches.end = helper.end
    return batches


class Helper:
    """The service's process."""

    def __init__(self, process):
        self.process, self.address = process, process.stdout.readline().strip()
        if not self.address:
            raise RuntimeError("tf.data service did not start")

    def cpu_seconds(self):
        """The processor time that the process has used so far."""
        with open(f"/proc/{self.process.pid}/stat") as f:
            user, system = f.read().rsplit(")", 1)[1].split()[11:13]
        return (int(user) + int(system)) / os.sysconf("SC_CLK_TCK")

    def end(self):
        """Ends the process."""
        self.process.stdin.close()
        self.process.wait()


def start(cores):
    """Starts the service; its process has this one's cores."""
    command = [sys.executable, os.path.abspath(__file__), "--service", str(cores)]
    return Helper(subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True))


def serve(cores):
    """Runs a dispatcher and a worker until the input ends."""
    service = tensorflow(cores).data.experimental.service
    dispatcher = service.DispatchServer()
    worker = service.WorkerServer(service.WorkerConfig(dispatcher_address=dispatcher.target.split("://")[1]))
    print(dispatcher.target, flush=True)
    sys.stdin.read()
    del worker
    dispatcher._stop()


if __name__ == "__main__":
    serve(int(sys.argv[2]))
