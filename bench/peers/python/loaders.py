"""Millrace beside the ways in which PyTorch is fed from Parquet: rows a second of whole mini-batches as tensors.

    loaders.py [--rows N,N,N] [--cores N] [--turns N] [--models rm1,rm5,criteo] [--criteo FILE] [--output table|json]
               [--results FILE]

Each side hands the training process the same mini-batches: label, dense and ids of a pipeline as tensors of torch. A
turn is a process of its own, bound to the same cores as the turns of the other sides; imports do not count, and the
time of a turn is that of the whole call: opening the file, starting threads and processes, every mini-batch. The sides
take turns, so that what else the machine does harms all of them alike. The first turn of a side is compared with
Millrace's mini-batches: label, ids and lengths to the bit, dense to the units of the last place in which np.log is off.

Each peer is written as somebody would who knows it: whole columns, no loop over rows in Python, memory-mapped files,
pyarrow's own threads where processes do not take their place. Row groups hold whole mini-batches, so that the peers
need not cut across them. A peer that does not import is listed with the reason.

Criteo's rows come from a file of yours, as Parquet or as text separated by tabs. Its rows are repeated to the number
asked for. The sides read the rows as Parquet; if the file is text, Millrace reads the text, too, as a side of its own.
"""

import argparse
import hashlib
import json
import os
import platform
import shlex
import sys
import tempfile
import time

from turn import cpu_seconds, header, in_a_process, program, say

BATCH = 8192
PACKAGES = ("pyarrow", "numpy", "torch", "torchdata", "nvtabular", "pandas", "tensorflow-cpu")
ULPS = 4  # NumPy's own bound of float32's log


def millrace_open(job, cores):
    """millrace.open: the private process has as many engine threads as there are cores."""
    import millrace

    def turn():
        data = millrace.open(job["file"], job["pipeline"], batch=BATCH, shuffle="none", order="deterministic",
                             threads=cores, torchrec=False)  # fmt: skip
        for b in data:
            lengths = None if b.sparse.fixed else b.sparse.lengths
            yield b.label, b.dense, b.sparse.values, lengths
        data.close()

    return turn


def millrace_text(job, cores):
    """millrace.open of Criteo's rows as text; the peers have no reader for them that gives the same columns."""
    return millrace_open({**job, "file": job["text"]}, cores)


def tensors_of(t):
    """NumPy's arrays as tensors of torch, the same memory."""
    import torch

    return tuple(None if a is None else torch.from_numpy(a).flatten() if i == 3 else torch.from_numpy(a)
                 for i, a in enumerate((t.label, t.dense, t.values, t.lengths)))  # fmt: skip


def pyarrow_numpy(job, cores):
    """pyarrow decodes with its threads, NumPy computes whole columns in a pool of threads."""
    import torch  # noqa: F401 (imports do not count)
    from millrace import numpy_peer

    def turn():
        for t in numpy_peer.minibatches(job["file"], job["canonical"], BATCH, cores):
            yield tensors_of(t)

    return turn


def torchdata_nodes(job, cores):
    """torchdata.nodes: pyarrow decodes in the source, a ParallelMapper of threads computes, a Prefetcher is ahead."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from millrace.numpy_peer import Transform, tables
    from torchdata.nodes import IterableWrapper, Loader, ParallelMapper, Prefetcher

    def turn():
        pa.set_cpu_count(cores)
        transform = Transform(json.loads(job["canonical"]))
        with pa.memory_map(job["file"]) as source:
            node = IterableWrapper(tables(pq.ParquetFile(source), transform.columns, BATCH, cores))
            node = ParallelMapper(node, lambda table: tensors_of(transform.run(table)), cores, method="thread")
            yield from Loader(Prefetcher(node, prefetch_factor=2))

    return turn


def torch_dataloader(job, cores):
    """torch's DataLoader with a process a core: each reads every n-th row group, tensors come in shared memory."""
    import pyarrow as pa
    import pyarrow.parquet as pq
    from millrace.numpy_peer import Transform
    from torch.utils.data import DataLoader, IterableDataset, get_worker_info

    class RowGroups(IterableDataset):
        def __iter__(self):
            pa.set_cpu_count(1)
            info = get_worker_info()
            transform = Transform(json.loads(job["canonical"]))
            with pa.memory_map(job["file"]) as source:
                file = pq.ParquetFile(source)
                mine = list(range(info.id, file.num_row_groups, info.num_workers))
                for part in file.iter_batches(BATCH, mine, transform.columns, use_threads=False):
                    yield tensors_of(transform.run(pa.Table.from_batches([part])))

    def turn():
        yield from DataLoader(RowGroups(), batch_size=None, num_workers=cores, prefetch_factor=2)

    return turn


def nvtabular_cpu(job, cores):
    """NVTabular's Workflow on pandas: its own FillMissing, Clip and LogOp; ids in a LambdaOp of NumPy, since NVTabular
    has another hash.
    """
    import dask
    import numpy as np
    import nvtabular as nvt
    import pandas as pd
    import pyarrow as pa
    import torch
    from millrace.numpy_peer import Transform

    document = json.loads(job["canonical"])
    if not document["fixed"]:
        raise RuntimeError("NVTabular on CPU has lists of Python objects for lists of ids: not compared")
    transform = Transform(document)
    dense = [f["column"] for f in document["dense"]]

    def ids(feature):
        def run(column):
            table = pa.table({feature["column"]: pa.array(column, from_pandas=True)})
            return pd.Series(transform.key_ids(table, feature)[0], index=column.index)

        return run

    def turn():
        with dask.config.set(scheduler="threads", num_workers=cores):
            graph = dense >> nvt.ops.FillMissing(fill_val=0) >> nvt.ops.Clip(min_value=0) >> nvt.ops.LogOp()
            for i, feature in enumerate(document["keys"]):
                filled = [feature["column"]] >> nvt.ops.FillMissing(fill_val=0) >> nvt.ops.LambdaOp(ids(feature))
                graph = graph + (filled >> nvt.ops.Rename(name=f"key_{i}"))
            graph = graph + [document["label"]["column"]]
            data = nvt.Dataset(job["file"], engine="parquet", cpu=True, part_size="64MB")
            for frame in nvt.Workflow(graph).fit_transform(data).to_iter():
                for at in range(0, len(frame), BATCH):
                    part = frame.iloc[at : at + BATCH]
                    keys = [part[f"key_{i}"].to_numpy(np.int32) for i in range(len(document["keys"]))]
                    yield (torch.from_numpy(part[document["label"]["column"]].to_numpy(np.float32)),
                           torch.from_numpy(part[dense].to_numpy(np.float32)),
                           torch.from_numpy(np.concatenate(keys)), None)  # fmt: skip

    return turn


def tf_data(job, cores):
    """tf.data over TFRecords that were made of the file, operators in TensorFlow's graph: see tfdata.py."""
    import tfdata

    return tfdata.turn(job, cores, BATCH, service=False)


def tf_data_service(job, cores):
    """The same with tf.data service: a dispatcher and a worker in a process of their own, on the same cores."""
    import tfdata

    return tfdata.turn(job, cores, BATCH, service=True)


SIDES = {
    "Millrace": millrace_open,
    "pyarrow + NumPy": pyarrow_numpy,
    "torchdata nodes + pyarrow": torchdata_nodes,
    "DataLoader processes + pyarrow": torch_dataloader,
    "NVTabular on CPU": nvtabular_cpu,
    "tf.data over TFRecords": tf_data,
    "tf.data service over TFRecords": tf_data_service,
}


# Sides of models whose rows are there as text.
TEXT_SIDES = {"Millrace, from TSV": millrace_text}


def sides_of(job):
    """The sides that can be compared on a job's file."""
    return {**SIDES, **(TEXT_SIDES if "text" in job else {})}


def digest(batch):
    """What names a mini-batch among others: its label, ids and lengths, which must be equal to the bit."""
    h = hashlib.sha256()
    for tensor in (batch[0], batch[2], batch[3]):
        h.update(b"-" if tensor is None else bytes(memoryview(tensor.contiguous().numpy()).cast("B")))
    return h.hexdigest()


def one_turn(name, job, cores, keep):
    """One turn of a side, in a process of its own. ``keep`` is a folder for dense features to compare, or empty."""
    import numpy as np
    import torch

    os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:cores])
    torch.set_num_threads(cores)
    turn = sides_of(job)[name](job, cores)
    first, rows, found = None, 0, []
    elsewhere = getattr(turn, "elsewhere", lambda: 0)  # processor time of a process that does not end with the turn
    before, begun = cpu_seconds() + elsewhere(), time.perf_counter()
    for batch in turn():
        if first is None:
            first = time.perf_counter() - begun
        rows += len(batch[0])
        if keep:
            found.append(digest(batch))
            np.save(f"{keep}/{found[-1]}.npy", batch[1].numpy())
    seconds = time.perf_counter() - begun
    cpu = cpu_seconds() + elsewhere() - before
    getattr(turn, "end", lambda: None)()
    return {"rows": rows, "seconds": seconds, "first_seconds": first, "cpu_seconds": cpu, "digests": found}


def difference(ours, theirs, one, other):
    """The greatest distance of dense features, in units of the last place; raises ValueError where more differs."""
    import numpy as np

    if sorted(ours["digests"]) != sorted(theirs["digests"]):
        missing = len(set(ours["digests"]) - set(theirs["digests"]))
        raise ValueError(f"{missing} of {len(ours['digests'])} mini-batches differ in label, ids or lengths")
    greatest = 0
    for name in set(ours["digests"]):
        x, y = (np.load(f"{folder}/{name}.npy").view(np.int32).astype(np.int64) for folder in (one, other))
        greatest = max(greatest, int(np.abs(x - y).max()))
    if greatest > ULPS:
        raise ValueError(f"dense features differ by {greatest} units of the last place")
    return greatest


def repeated(path, rows, to):
    """Writes the lines of a text so often that there are at least ``rows`` of them; each line ends."""
    with open(path, "rb") as f:
        text = f.read()
    text += b"" if text.endswith(b"\n") else b"\n"
    with open(to, "wb") as f:
        for _ in range(max(1, -(-rows // text.count(b"\n")))):
            f.write(text)


def make(model, rows, folder, criteo):
    """Makes a model's file; its row groups hold whole mini-batches. Rows of Criteo's are repeated: nothing larger is at
    hand. If they are text, the repeated text is the job's, too.
    """
    import millrace
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, text = f"{folder}/{model}.parquet", ""
    if model == "criteo" and criteo.endswith(".parquet"):
        table = pq.read_table(criteo)
        table = pa.concat_tables([table] * max(1, -(-rows // table.num_rows)))
    else:
        if model == "criteo":
            text = f"{folder}/criteo.tsv"
            repeated(criteo, rows, text)
            program("dataset", "import", text, "--input-format", "criteo-tsv", "--out", f"{folder}/{model}")
        else:
            program("dataset", "generate", "--model", model, "--rows", str(rows), "--partitions", "1",
                    "--out", f"{folder}/{model}")  # fmt: skip
        parts = sorted(name for name in os.listdir(f"{folder}/{model}") if name.endswith(".parquet"))
        table = pa.concat_tables([pq.read_table(f"{folder}/{model}/{name}") for name in parts])
    fields = [f.with_nullable(f.nullable and f.name != "label") for f in table.schema]
    table = table.replace_schema_metadata().cast(pa.schema(fields))
    group = BATCH * max(1, min(8, rows // BATCH // 8))  # several for each process, however short the file
    pq.write_table(table, path, row_group_size=group, compression="snappy")
    checked = millrace.Pipeline.from_yaml(model).check(path)
    job = {"file": path, "pipeline": model, "canonical": checked.canonical, **({"text": text} if text else {})}
    return job, table.num_rows, os.path.getsize(path)


def compare(model, rows, cores, turns, criteo, without):
    """All sides on one model but those to leave out. Returns the row of each side, and why the others are not there."""
    found, skipped = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        job, rows, size = make(model, rows, folder, criteo)
        say(f"{model}: {rows:,} rows, {size / 1e6:,.0f} MB")
        ours, ulps = None, {}
        for i, name in enumerate(sides_of(job)):
            if name in without:
                skipped[name] = "left out (--without)"
                continue
            keep = f"{folder}/{i}"
            os.mkdir(keep)
            answer, error = in_a_process(__file__, [name, job, cores, keep])
            if answer is None:
                skipped[name] = error
                continue
            ours = ours or answer
            ulps[name] = difference(ours, answer, f"{folder}/0", keep)
        measured = {name: [] for name in ulps}
        for _ in range(turns):
            for name in measured:
                answer, error = in_a_process(__file__, [name, job, cores, ""])
                if answer is None:
                    raise RuntimeError(f"{name}: {error}")
                measured[name].append(answer)
                say(f"{model}: {name}: {rows / answer['seconds']:,.0f} rows/s, {answer['cpu_seconds']:.2f} CPU-s")
        for name, of in measured.items():
            best = min(of, key=lambda a: a["seconds"])
            found[name] = {
                "model": model,
                "rows": rows,
                "cores": cores,
                "side": name,
                "rows_per_second": rows / best["seconds"],
                "least_rows_per_second": rows / max(a["seconds"] for a in of),
                "first_seconds": min(a["first_seconds"] for a in of),
                "cpu_seconds_per_million_rows": 1e6 * min(a["cpu_seconds"] for a in of) / rows,
                "ulps": ulps[name],
            }
    return list(found.values()), skipped


def table(results, skipped, turns):
    """The results as a table of Markdown."""
    import numpy as np
    import pyarrow as pa
    import torch

    lines = [
        f"Python {platform.python_version()}, torch {torch.__version__}, pyarrow {pa.__version__}, NumPy "
        f"{np.__version__}; {os.cpu_count()} cores; the best of {turns} turns, taken alternately; load average "
        f"{os.getloadavg()[0]:.1f} at the end; {platform.processor() or platform.machine()}",
        "",
        "| model | cores | | rows/s | slowest turn | first mini-batch, s | CPU-s a million rows | dense differs by |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for r in results:
        lines.append(
            f"| {r['model']} | {r['cores']} | {r['side']} | {r['rows_per_second']:,.0f} | "
            f"{r['least_rows_per_second']:,.0f} | {r['first_seconds']:.2f} | "
            f"{r['cpu_seconds_per_million_rows']:.2f} | {r['ulps']} ulp |"
        )
    lines += ["", *(f"Not compared: {name}: {why}" for name, why in skipped.items())]
    return "\n".join(lines)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--models", default="rm1,rm5,criteo", help="of millrace dataset generate, and criteo")
    p.add_argument("--rows", default="1000000,50000,1000000", help="of each model")
    p.add_argument("--cores", default=str(os.cpu_count()), help="for each side; several separated by commas")
    p.add_argument("--turns", type=int, default=3)
    p.add_argument("--criteo", default=os.environ.get("MILLRACE_CRITEO", ""), help="rows of Criteo's: Parquet, or text (TSV)")
    p.add_argument("--without", action="append", default=[], choices=list(SIDES)[1:], help="a side to leave out")
    p.add_argument("--output", choices=("table", "json"), default="table")
    p.add_argument("--results", help="a file to write the results to, with the machine and the versions, as JSON")
    p.add_argument("--turn", action="store_true", help=argparse.SUPPRESS)
    a = p.parse_args()
    if a.turn:
        print(json.dumps(one_turn(*json.load(sys.stdin))))
        return
    load, results, skipped = os.getloadavg(), [], {}
    for model, rows in zip(a.models.split(","), a.rows.split(",")):
        if model == "criteo" and not a.criteo:
            skipped["criteo"] = "no file of Criteo's rows: --criteo FILE"
            continue
        for cores in a.cores.split(","):
            found, missing = compare(model, int(rows), int(cores), a.turns, a.criteo, a.without)
            results += found
            skipped.update({f"{name} ({model})": why for name, why in missing.items()})
    if a.results:
        with open(a.results, "w") as f:
            json.dump({"header": header(shlex.join(["loaders.py", *sys.argv[1:]]), PACKAGES, load, turns=a.turns), "results": results, "skipped": skipped}, f, indent=1)
            f.write("\n")
    if a.output == "json":
        print(json.dumps({"results": results, "skipped": skipped}, indent=2))
    else:
        print(table(results, skipped, a.turns))


if __name__ == "__main__":
    main()
