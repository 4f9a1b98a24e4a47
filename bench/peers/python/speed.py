"""Rows per CPU second of whole trees of processes, of ways to read a data set for training in Python.

    make bench-speed SPEED='[--rounds N] [--tables NAME,...] [--scale N] [--results FILE]'

README's table is written from the results that it keeps. MILLRACE_ENGINE names the program of bench/peers.

A side goes over the same files several times, as epochs of a training do, and hands over label, dense features and ids
in memory. Each turn is a process of its own. The processor time of a turn is that of the process, of all of its
threads, and of the processes that it started, from the first call to the end of the last epoch; imports do not count,
and starting Millrace's private process and making the Arrow copy of `datasets` do. The sides take turns, and medians
count. Everybody may use all cores, and takes as many threads as its library takes by itself; pyarrow takes one, which
costs it the least.

Before the timing the first epoch of each side is compared with Millrace's: label, ids and lengths must be equal,
logarithms within the units of the last place in which np.log is off. Of a side whose hash is another, the numbers of
its ids are compared, and the rest as of others. Of sides that hand over the files' columns as they are, the rows are
counted.

Whether a side resumes exactly is tried, too: it loses its process some mini-batches after it kept its state, and the
mini-batches of a later process that begins with the state must be those that the first would have made.

The loops with NumPy take blocks of 32,768 rows, whose columns fit the caches, hash each different text of a row group
or block once, and hand over label, a matrix of dense features and the ids of each key. A trainer cuts mini-batches out
of them. Millrace hands over mini-batches of 8,192 rows. DuckDB's statement hands over columns.
"""

import argparse
import hashlib
import itertools
import json
import math
import os
import statistics
import subprocess
import sys
import tempfile
import time

import millrace
import numpy as np
import pandas  # noqa: F401 (pyarrow imports it when it first makes an array of NumPy)
import pyarrow as pa
import pyarrow.compute  # noqa: F401 (methods of arrays import it when they are first called)
import pyarrow.parquet as pq
from millrace.numpy_peer import Transform
from millrace.text_hashes import hash_text
from peers import filled, log, sigrid_hash
from turn import cpu_seconds, header, in_a_process, program, say

BATCH = 8192  # rows of a mini-batch
BLOCK = 4 * BATCH  # rows that the loops by hand compute at once: more or fewer are slower
ULPS = 4  # NumPy's own bound of float32's log
PACKAGES = ("pyarrow", "numpy", "datasets", "duckdb")

CLICKS = """\
name: clicks
batch: 8192
ids: int32
label: {column: label, null: 0}
dense:
  - columns: [count_0..count_2, real_0..real_2]
    ops: [{fill_null: 0}, {clamp: {min: 0}}, {log: {add: 1}}]
sparse:
  - columns: [user, ad]
    ops: [{fill_null: 0}, {sigrid_hash: {max: 500000}}]
  - columns: [country, site]
    ops: [{hash_bytes: xxh3}, {fill_null: 0}, {sigrid_hash: {max: 500000}}]
  - columns: [recent]
    ops: [{sigrid_hash: {max: 500000}}]
"""


def clicks(folder, scale):
    """Writes four files as pyarrow writes them: Snappy, dictionaries where they are short, every column nullable."""
    rng = np.random.default_rng(7)
    rows = max(1, 61 // scale) * BATCH  # whole mini-batches: Millrace cuts them at the ends of files

    def skewed(count, below):
        return np.exp(rng.random(count) * np.log(below)).astype(np.int64)

    def with_nulls(values, share, kind):
        return pa.array(values, kind, mask=rng.random(len(values)) < share)

    countries = np.array([f"{a}{b}" for a in "abcdefgh" for b in "abcdefghijklmnopqrstuvwxyz"], object)
    sites = np.array([f"{i:x}.example/{i * 2654435761 % 100003}" for i in range(50_000)], object)
    for part in range(4):
        columns = {
            "label": pa.array(rng.random(rows) < 0.03),
            "user": with_nulls(skewed(rows, 1 << 31) * 2654435761 % (1 << 40), 0.05, pa.int64()),
            "ad": with_nulls(skewed(rows, 1 << 20), 0.02, pa.int64()),
            **{f"count_{i}": with_nulls(skewed(rows, 1000), 0.1, pa.int32()) for i in range(3)},
            **{f"real_{i}": with_nulls(rng.lognormal(size=rows), 0.1, pa.float32()) for i in range(3)},
            "country": with_nulls(countries[skewed(rows, len(countries))], 0.01, pa.string()),
            "site": with_nulls(sites[skewed(rows, len(sites))], 0.03, pa.string()),
            "recent": pa.ListArray.from_arrays(np.arange(0, 4 * rows + 1, 4, np.int32), skewed(4 * rows, 1 << 20)),
        }
        pq.write_table(pa.table(columns), f"{folder}/part-{part}.parquet", row_group_size=100_000)
    return CLICKS


def rm1(codec, encoding):
    """Returns what writes one file of RM1 with every feature present."""

    def write(folder, scale):
        program("dataset", "generate", "--model", "rm1", "--rows", str(64 // min(scale, 64) * BATCH), "--coverage", "1",
                "--codec", codec, "--encoding", encoding, "--out", folder, "--overwrite")  # fmt: skip
        return millrace.Pipeline.from_yaml("rm1").to_yaml()

    return write


TABLES = {  # of each the title, what writes the files and returns the pipeline, and the epochs of a turn
    "rm1-plain": ("RM1, PLAIN, uncompressed", rm1("none", "plain"), 2),
    "rm1-snappy": ("RM1, dictionaries, Snappy", rm1("snappy", "dictionary"), 2),
    "clicks": ("nullable, with text and lists, Snappy", clicks, 2),
}
MODELLED = "rm1-plain"  # the table whose work the model of a drive has stages for


class ByHand:
    """The loop with NumPy over record batches, whoever read them: it fills nulls, takes logarithms and hashes."""

    def __init__(self, job):
        transform = Transform(json.loads(job["canonical"]))
        self.label = transform.label["column"]
        self.dense = [f["column"] for f in transform.dense]
        self.keys = []  # of each key its column, and the method that makes ids of it
        for feature in transform.keys:
            ops = [next(iter(op)) for op in feature["ops"]]
            make = (self.list_ids if feature["list"] else self.text_ids if "hash_bytes" in ops
                    else self.buckets if "bucketize" in ops else self.ids)  # fmt: skip
            self.keys.append((feature["column"], make))
        self.texts = [column for column, make in self.keys if make == self.text_ids]
        self.columns = transform.columns
        self.borders = transform.borders[0] if transform.borders else None
        self.tables = {}  # of each column of texts its last dictionary, and the ids of that
        self.max = int(transform.keys[0]["ops"][-1]["sigrid_hash"]["max"])

    def block(self, batch):
        """Returns a record batch's label and matrix of dense features, and each key's ids and lengths of lists."""
        column = dict(zip(batch.schema.names, batch.columns))
        label = filled(column[self.label].cast("float32"))
        dense = np.empty((len(label), len(self.dense)), np.float32)
        for i, name in enumerate(self.dense):
            dense[:, i] = log(filled(column[name]))
        made = [make(column[name], name) for name, make in self.keys]
        return label, dense, [ids for ids, _ in made], [lengths for _, lengths in made]

    def ids(self, column, name):
        return sigrid_hash(filled(column), self.max), None

    def buckets(self, column, name):
        values = filled(column).astype(np.float32, copy=False)
        return sigrid_hash(np.searchsorted(self.borders, values, side="left"), self.max), None

    def text_ids(self, column, name):
        if not hasattr(column, "dictionary"):
            column = column.dictionary_encode()
        texts, table = self.tables.get(name, (None, None))
        if texts is None or not column.dictionary.equals(texts):  # pyarrow's dictionary is that of a row group
            table = sigrid_hash(np.append(hash_text(column.dictionary, "xxh3"), 0), self.max)  # a null is the id 0
            self.tables[name] = column.dictionary, table
        at = column.indices
        return table[(at.fill_null(len(table) - 1) if at.null_count else at).to_numpy()], None

    def list_ids(self, column, name):
        return sigrid_hash(column.flatten().to_numpy(), self.max), filled(column.value_lengths())


# The sides. Each is a function of a job, which imports what it needs, and returns a function of the number of epochs.
# That yields label, dense, ids and lengths of some rows, or the number of rows whose columns are there.


def millrace_open(job):
    """`millrace.open(..., tensors="views")`, whose private process preprocesses"""
    def turn(epochs):
        with open_millrace(job, epochs, shuffle="none") as data:
            for mb in data:
                lengths = None if mb.lengths is None else np.asarray(mb.lengths)
                yield np.asarray(mb.label), np.asarray(mb.dense), np.asarray(mb.values), lengths

    return turn


def open_millrace(job, epochs, **more):
    """Mini-batches of the files as a user has them, in an order that is the same each time."""
    return millrace.open(job["files"], job["pipeline"], batch=BATCH, epochs=epochs, order="deterministic",
                         tensors="views", **more)  # fmt: skip


def pyarrow_by_hand(job):
    """pyarrow decodes, NumPy computes: the loop that one writes without a library for it"""
    hand = ByHand(job)
    pa.set_cpu_count(1)

    def turn(epochs):
        for _ in range(epochs):
            for path in job["files"]:
                file = pq.ParquetFile(path, memory_map=True, read_dictionary=hand.texts)
                for batch in file.iter_batches(BLOCK, columns=hand.columns, use_threads=False):
                    yield hand.block(batch)

    return turn


def load(job, **more):
    """The files as Hugging Face's datasets load them; their Arrow copy lies in the turn's folder."""
    import datasets

    datasets.disable_progress_bars()
    return datasets.load_dataset("parquet", data_files=job["files"], split="train", cache_dir=job["folder"], **more)


def datasets_by_hand(job):
    """`datasets` in arrow form: its Arrow copy of the files, which the turn makes, in memory maps; NumPy computes"""
    import datasets  # noqa: F401 (imports do not count)

    hand = ByHand(job)

    def turn(epochs):
        data = load(job).with_format("arrow")
        for _ in range(epochs):
            for table in data.iter(BLOCK):
                for batch in table.to_batches():
                    yield hand.block(batch)

    return turn


def datasets_arrow(job):
    """`datasets` in arrow form: columns as they are, in its Arrow copy of the files, which the turn makes"""
    import datasets  # noqa: F401 (imports do not count)

    def turn(epochs):
        data = load(job).with_format("arrow")
        for _ in range(epochs):
            for table in data.iter(BATCH):
                yield table.num_rows

    return turn


def datasets_numpy(job):
    """`datasets` in numpy form: columns as they are, but a column of ids that has nulls is float32; without a copy"""
    import datasets  # noqa: F401 (imports do not count)

    def turn(epochs):
        data = load(job, streaming=True).with_format("numpy")
        for _ in range(epochs):
            for columns in data.iter(BATCH):
                yield len(columns["label"])

    return turn


def duckdb_by_hand(job):
    """DuckDB reads the columns, NumPy computes"""
    import duckdb

    hand = ByHand(job)

    def turn(epochs):
        query = f"SELECT {', '.join(hand.columns)} FROM read_parquet(?)"
        with duckdb.connect() as db:
            for _ in range(epochs):
                for batch in db.execute(query, [job["files"]]).to_arrow_reader(BLOCK):
                    yield hand.block(batch)

    return turn


def duckdb_sql(job):
    """DuckDB in one statement, with its own `hash`"""
    import duckdb
    hand = ByHand(job)
    query = f"SELECT {', '.join(sql(hand))} FROM read_parquet(?)"

    def turn(epochs):
        with duckdb.connect() as db:
            for _ in range(epochs):
                for batch in db.execute(query, [job["files"]]).to_arrow_reader(BLOCK):
                    found = [taken_apart(column) for column in batch.columns]
                    numbers, lengths = zip(*found)
                    keys = 1 + len(hand.dense)
                    yield numbers[0], list(numbers[1:keys]), list(numbers[keys:]), lengths[keys:]

    return turn


def taken_apart(column):
    """The numbers of a column, and the lengths of its lists if it has lists."""
    if not pa.types.is_list(column.type):
        return column.to_numpy(), None
    return column.flatten().to_numpy(), filled(column.value_lengths())


def sql(hand):
    """The columns of the statement. Texts and ids that are null hash as the empty text and 0."""
    top = hand.max
    yield f"coalesce({hand.label}, 0)::FLOAT"
    for name in hand.dense:
        yield f"ln((CASE WHEN {name} > 0 THEN {name} ELSE 0 END::FLOAT + 1::FLOAT)::DOUBLE)::FLOAT"
    for name, make in hand.keys:
        if make == hand.list_ids:
            yield f"list_transform({name}, lambda k: (hash(k) % {top})::INTEGER)"
        elif make == hand.buckets:
            yield f"(hash({bucket(name, hand.borders)}) % {top})::INTEGER"
        else:
            yield f"(hash(coalesce({name}, {repr('') if make == hand.text_ids else 0})) % {top})::INTEGER"


def bucket(name, borders):
    """The number of borders below a value. Borders are log-spaced; a comparison settles on which side a value is."""
    first, last = float(borders[0]), float(borders[-1])
    low = math.log(first)
    step = (math.log(last) - low) / (len(borders) - 1)
    value = f"coalesce({name}, 0)::FLOAT"
    inside = f"(CASE WHEN {value} >= {last} THEN {last} WHEN {value} > {first} THEN {value} ELSE {first} END)::DOUBLE"
    nearest = f"floor((ln({inside}) - {low}) / {step} + 0.5)"
    return f"({nearest} + (exp({low} + {nearest} * {step})::FLOAT < {value})::INTEGER)::BIGINT"


def engine(job):
    """The cpu engine alone with one thread, in a Go program, over files in memory"""

    def turn(epochs):
        asked = {"files": job["files"], "pipeline": job["pipeline"], "batch": BATCH, "epochs": epochs}
        command = [os.environ["MILLRACE_ENGINE"], "-engine"]
        done = subprocess.run(command, input=json.dumps(asked), capture_output=True, text=True)
        if done.returncode:
            raise RuntimeError(done.stderr.strip())
        return json.loads(done.stdout)

    turn.measures_itself = True
    return turn


class Way:
    """A side of the comparison. ``work`` is ``all``, ``own hash`` or ``columns``. The turns of a slow one go over the
    first file once: it keeps nothing from epoch to epoch.
    """

    def __init__(self, function, work="all", resume=None, slow=False):
        self.function, self.work, self.resume, self.slow = function, work, resume, slow
        self.what = function.__doc__


def digests(tables):
    """A digest of each mini-batch."""
    joined = (b"".join(bytes(memoryview(part).cast("B")) for part in parts) for parts in tables)
    return [hashlib.sha256(b).hexdigest() for b in joined]


def resume_millrace(job, shuffle):
    """Opens the files, at a state if there is one, and returns what yields mini-batches and what gives the state."""
    how = {"shuffle": "rows", "seed": 1} if shuffle else {"shuffle": "none"}
    data = open_millrace(job, 1, state=job["state"], **how)
    return ((mb.label, mb.dense, mb.values) for mb in data), data.state_dict


def resume_datasets(job, shuffle):
    """The same of datasets, without its Arrow copy."""
    data = load(job, streaming=True)
    data = (data.shuffle(seed=1, buffer_size=10_000) if shuffle else data).batch(BATCH)
    if job["state"]:
        data.load_state_dict(job["state"])
    names = json.loads(job["canonical"])["dense"]
    return ((json.dumps([row[f["column"]] for f in names]).encode(),) for row in data), data.state_dict


WAYS = {
    "Millrace": Way(millrace_open, resume=resume_millrace),
    "Millrace's engine alone": Way(engine),
    "pyarrow + NumPy": Way(pyarrow_by_hand),
    "datasets, arrow form + NumPy": Way(datasets_by_hand, resume=resume_datasets),
    "DuckDB + NumPy": Way(duckdb_by_hand),
    "DuckDB in SQL": Way(duckdb_sql, work="own hash"),
    "datasets, arrow form": Way(datasets_arrow, work="columns", resume=resume_datasets),
    "datasets, numpy form": Way(datasets_numpy, work="columns", resume=resume_datasets, slow=True),
}
BASE = "Millrace"
# Mini-batches before the state is kept, those that are lost with the process, and those that are compared.
KEPT, AFTER, COMPARED = 3, 2, 20


def measured(name, job, epochs):
    """One turn of a side, in this process."""
    if WAYS[name].slow:
        job["files"], epochs = job["files"][:1], 1
    turn = WAYS[name].function(job)
    if hasattr(turn, "measures_itself"):
        return turn(epochs)
    before, begun, rows, first = cpu_seconds(), time.perf_counter(), 0, None
    for item in turn(epochs):
        rows += item if isinstance(item, int) else len(item[0])
        first = first or cpu_seconds() - before
    seconds, cpu = time.perf_counter() - begun, cpu_seconds() - before
    try:
        os.waitpid(-1, os.WNOHANG)
        raise RuntimeError(f"{name} left a process behind, whose processor time is not counted")
    except ChildProcessError:
        return {"rows": rows, "wall_seconds": seconds, "cpu_seconds": cpu, "first_cpu_seconds": first}


def gathered(name, job, folder):
    """Keeps the columns of one epoch of a side as files, in the order of the rows."""
    way, columns, rows = WAYS[name], {}, 0
    turn = way.function(job)
    if hasattr(turn, "measures_itself"):
        return {"rows": turn(1)["rows"]}
    for item in turn(1):
        if isinstance(item, int):
            rows += item
            continue
        label, dense, values, lengths = item
        rows += len(label)
        if not isinstance(values, list):
            values, lengths = by_key(values, lengths, len(label))
        columns_of_dense = dense if isinstance(dense, list) else dense.reshape(len(label), -1).T
        found = {"label": label, **{f"dense_{i}": x for i, x in enumerate(columns_of_dense)}}
        for i, (ids, n) in enumerate(zip(values, lengths)):
            found[f"ids_{i}"] = ids
            found[f"lengths_{i}"] = np.ones(len(label), np.int32) if n is None else n
        for key, x in found.items():
            columns.setdefault(key, []).append(np.array(x))
    np.savez(f"{folder}/columns.npz", **{key: np.concatenate(of) for key, of in columns.items()})
    return {"rows": rows}


def by_key(values, lengths, rows):
    """The ids and the lengths of each key of Millrace's tensors."""
    keys = len(values) // rows if lengths is None else lengths.size // rows
    counts = [None] * keys if lengths is None else list(lengths.reshape(keys, rows))
    ends = np.cumsum([rows if n is None else n.sum() for n in counts])
    return np.split(values, ends[:-1]), counts


def difference(ours, theirs, work):
    """How a side's columns differ from Millrace's, in words; raises ValueError where they should not."""
    if work == "columns":
        return "the files' columns, nothing computed"
    one, other = np.load(f"{ours}/columns.npz"), np.load(f"{theirs}/columns.npz")
    if sorted(one) != sorted(other):
        raise ValueError(f"other columns: {sorted(one)} and {sorted(other)}")
    greatest = unequal = of = 0
    for key in one:
        x, y = one[key], other[key]
        if x.shape != y.shape:
            raise ValueError(f"{key}: shapes {x.shape} and {y.shape}")
        if key.startswith("dense"):
            far = np.abs(x.view(np.int32).astype(np.int64) - y.view(np.int32))
            greatest, unequal, of = max(greatest, int(far.max())), unequal + int((far > 0).sum()), of + len(far)
        elif not (key.startswith("ids") and work == "own hash") and not np.array_equal(x, y):
            raise ValueError(f"{key}: {int((x != y).sum())} of {len(x)} differ")
    if greatest > ULPS:
        raise ValueError(f"dense features differ by {greatest} units of the last place")
    hashed = ", but for the ids, whose hash is its own" if work == "own hash" else ""
    return f"equal{hashed}" + (f"; {unequal} of {of} logarithms by {greatest} ulp at most" if unequal else "")


def resumed(name, job, shuffle, state, phase):
    """A part of the trial of resuming: ``whole`` is not disturbed, ``dies`` ends without a word, ``rest`` goes on."""
    if phase == "rest":
        with open(state) as f:
            job["state"] = json.load(f)
    batches, position = WAYS[name].resume(job, shuffle)
    if phase != "dies":
        return digests(itertools.islice(batches, COMPARED - (KEPT if phase == "rest" else 0)))
    found = digests(itertools.islice(batches, KEPT))
    with open(state, "w") as f:
        json.dump(position(), f)
    digests(itertools.islice(batches, AFTER))
    print(json.dumps(found), flush=True)
    os._exit(0)


def resumes(name, job, folder):
    """Whether a side resumes exactly, in the files' order and shuffled."""
    found = {}
    for order, shuffle in (("plain", False), ("shuffled", True)):
        parts = {}
        for phase in ("whole", "dies", "rest"):
            state = f"{folder}/state.json"
            parts[phase], error = in_a_process(__file__, ["resumed", name, job, shuffle, state, phase])
            if parts[phase] is None:
                raise RuntimeError(f"{name}: resume, {phase}: {error}")
        found[order] = parts["dies"] + parts["rest"] == parts["whole"]
    return found


def spread(values):
    return {"median": statistics.median(values), "min": min(values), "max": max(values)}


def compare(table, a):
    """All sides on one table's files."""
    title, write, epochs = TABLES[table]
    with tempfile.TemporaryDirectory(dir=a.scratch) as folder:
        os.mkdir(f"{folder}/data")
        pipeline = write(f"{folder}/data", a.scale)
        files = sorted(f"{folder}/data/{name}" for name in os.listdir(f"{folder}/data") if name.endswith(".parquet"))
        checked = millrace.Pipeline.from_yaml(pipeline).check(*files)
        job = {"files": files, "pipeline": pipeline, "canonical": checked.canonical, "state": None}
        found = {"name": table, "title": title, "epochs": epochs, "file_bytes": sum(map(os.path.getsize, files))}
        lines, samples = [], {}

        def turn(kind, name, *more):
            with tempfile.TemporaryDirectory(dir=folder) as own:
                answer, error = in_a_process(__file__, [kind, name, {**job, "folder": own}, *more])
            if answer is None:
                raise RuntimeError(f"{table}: {name}: {error}")
            return answer

        for i, name in enumerate(WAYS):
            say(f"{table}: compare {name}")
            way, kept = WAYS[name], f"{folder}/{i}"
            os.mkdir(kept)
            rows = turn("gathered", name, kept)["rows"]
            if rows != found.setdefault("rows", rows):
                raise ValueError(f"{table}: {name}: {rows} rows instead of {found['rows']}")
            if name == BASE:
                output = "what the others are held to"
            elif hasattr(way.function(job), "measures_itself"):
                output = "the same program's, compared by the tests"
            else:
                output = difference(f"{folder}/0", kept, way.work)
            lines.append({"side": name, "what": way.what, "work": way.work, "output": output})
        for _ in range(a.rounds):
            for name in WAYS:
                s = turn("measured", name, epochs)
                samples.setdefault(name, []).append(s)
                say(f"{table}: {name}: {s['rows'] / s['cpu_seconds']:,.0f} rows a CPU second")
        for line in lines:
            of = samples[line["side"]]
            line["rows_per_cpu_second"] = spread([s["rows"] / s["cpu_seconds"] for s in of])
            line["rows_per_second"] = spread([s["rows"] / s["wall_seconds"] for s in of])
            line["samples"] = of
        found["lines"] = lines
        if table == MODELLED:
            plan = json.loads(program("plan", "--pipeline", "rm1", "--in", *files, "--t", "1e6", "--output", "json"))
            found["modelled"] = {"rows_per_second": plan["drive_rows_per_second"], "source": plan["p_source"],
                                 "command": "millrace plan --pipeline rm1 --in FILES --t 1e6"}  # fmt: skip
        if table == "clicks":
            say("clicks: resume")
            for name in WAYS:
                if WAYS[name].resume:
                    found.setdefault("resumes", {})[name] = resumes(name, {**job, "folder": folder}, folder)
    return found


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--rounds", type=int, default=3, help="turns of each side")
    p.add_argument("--tables", default=",".join(TABLES))
    p.add_argument("--scale", type=int, default=1, help="make files so many times smaller")
    p.add_argument("--scratch", default="/dev/shm" if os.path.isdir("/dev/shm") else None, help="folder for the files")
    p.add_argument("--results", default="capacity/results/speed.json", help="a file to write the results to, as JSON")
    p.add_argument("--turn", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.turn:
        kind, *arguments = json.load(sys.stdin)
        print(json.dumps({"measured": measured, "gathered": gathered, "resumed": resumed}[kind](*arguments)))
        return
    before = os.getloadavg()
    tables = [compare(table, a) for table in a.tables.split(",")]
    command = "make bench-speed" + (f" SPEED='{' '.join(sys.argv[1:])}'" if sys.argv[1:] else "")
    after = " ".join(f"{x:.2f}" for x in os.getloadavg())
    report = {"header": header(command, PACKAGES, before, rounds=a.rounds, load_after=after), "tables": tables}
    with open(a.results, "w") as f:
        f.write(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
