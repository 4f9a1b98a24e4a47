"""The real control plane and the real nodes, in processes of their own on 127.0.0.1."""

from __future__ import annotations

import ast
import contextlib
import hashlib
import importlib.util
import json
import os
import re
import signal
import ssl
import subprocess
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request
from typing import Any, Optional

import millrace
from millrace import (
    Control,
    FencedError,
    Job,
    MillraceError,
    OtherJobError,
    Pipeline,
    ServiceError,
    TLSError,
    TokenError,
)
from millrace.errors import PipelineError, PrivateProcessError
from millrace.operators import fill_null, normalize
from millrace.own import OwnWorker
from millrace.wire import context as tls_context

from .fake import Serving
from .wasm_module import ADD

_path = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "examples", "service.py")
_spec = importlib.util.spec_from_file_location("service", _path)
assert _spec is not None and _spec.loader is not None
service: Any = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(service)

PIPELINE = """name: rm1
batch: 1000
ids: int32
label: {column: label}
dense:
  - columns: [int_0..int_12]
    ops: [fill_null: 0, clamp: {min: 0}, log: {add: 1}]
sparse:
  - columns: [cat_0..cat_25]
    ops: [fill_null: 0, sigrid_hash: {salt: 0, max: 500000}]
generated:
  - columns: [int_0..int_12]
    as: "bucket_{n}"
    ops: [fill_null: 0, bucketize: {borders: {log_spaced: {from: 1, to: 1.0e6, count: 1024}}}, sigrid_hash: {salt: 0,
        max: 500000}]
"""
ROWS, PARTITIONS, BATCH = 30_000, 3, 1000


def setUpModule() -> None:
    program = service.program()
    if not program:
        raise unittest.SkipTest("MILLRACE_BIN does not name the program")
    if b"--config" not in subprocess.run([program, "node", "run", "--help"], capture_output=True).stdout:
        raise unittest.SkipTest("this program has no node run")


def npy(path: str) -> tuple[tuple[int, ...], bytes]:
    """Returns the shape and the bytes of a .npy file."""
    with open(path, "rb") as f:
        b = f.read()
    n = int.from_bytes(b[8:10], "little")
    header = ast.literal_eval(b[10 : 10 + n].decode())
    assert not header["fortran_order"]
    return header["shape"], b[10 + n :]


class EndToEnd(unittest.TestCase):
    @classmethod
    def setUpClass(cls) -> None:
        cls.service = service.Service(3, rows=ROWS, partitions=PARTITIONS, copies=2, unix=True, jobs=8)
        cls.addClassCleanup(cls.service.close)
        cls.jobs = 0

    def setUp(self) -> None:
        self.submitted: list[str] = []

    def tearDown(self) -> None:
        with Control(self.service.url) as c:
            for id in self.submitted:
                if c.job(id).get("state") == "running":
                    c.cancel(id)  # a drive holds a bounded number of jobs

    def submit(self, **spec: Any) -> str:
        """Submits a job and returns its id. It is unshuffled unless ``spec`` has another plan. Every job has another
        seed, and so another digest.
        """
        type(self).jobs += 1
        with Control(self.service.url) as c:
            plan = {"splitBatches": "4", "shuffle": "none", "seed": str(self.jobs), **spec.pop("plan", {})}
            id = c.submit(
                {"name": f"job-{self.jobs}", "pipeline": PIPELINE, "order": "deterministic", "plan": plan, **spec}
            )["id"]
            self.submitted.append(id)
            return id

    def undisturbed(self, **spec: Any) -> list[tuple[int, int, str]]:
        """Returns epoch, number and hash of every mini-batch of a job without faults."""
        with Job(self.service.url, self.submit(**spec), check=True) as job:
            return [digest(b) for b in job]

    def test_workers_without_data_give_the_same(self) -> None:
        """A worker without data serves Python as a drive does, also when it is killed and another takes its place."""
        want = self.undisturbed(plan={"seed": "77"})
        s = self.service
        workers = [self.worker(f"w{i}") for i in range(2)]
        s.wait_nodes(5)
        try:
            got = []
            # The seed is that of the first job, and so are the mini-batches' names, of which the placement is not a
            # part.
            with Job(s.url, self.submit(plan={"seed": "77"}, placement="pool"), check=True) as job:
                for b in job:
                    got.append(digest(b))
                    if len(got) == 7:
                        workers[0].kill()
            self.assertEqual(got, want)
            with Control(s.url) as c:
                status = c.job(self.submitted[-1])
            self.assertEqual(int(status.get("splitsHeld", 0)), 0, status)
            self.assertGreater(int(status.get("splitsAny", 0)), 0, status)
        finally:
            for w in workers:
                w.stop()

    def test_vocabularies(self) -> None:
        """Nodes fetch the vocabularies that the script names, and make the mini-batches of this machine."""
        s = self.service
        files = os.path.join(s.data, "*.parquet")
        document = re.sub("sigrid_hash: {[^}]*}", "positive_modulus: 97, vocabulary: ids", PIPELINE, count=1)
        document += "vocabularies: {ids: {joint: true, base: 5}}\n"
        with tempfile.TemporaryDirectory() as folder:
            pipeline, built = os.path.join(folder, "p.yaml"), os.path.join(folder, "ids.vocab")
            with open(pipeline, "w") as f:
                f.write(document)
            command = [service.program(), "vocabulary", "build", "--pipeline", pipeline, "--in", files, "--out", built]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            more: dict[str, Any] = {"vocabularies": {"ids": built}, "tensors": "views", "order": "deterministic"}
            with millrace.open(files, document, **more) as job:
                want = [digest(b) for b in job]
            for _ in range(2):  # the second time the control plane has the file
                with millrace.open(files, document, control=s.url, seed=0, **more) as job:
                    self.submitted.append(str(job.status()["id"]))
                    self.assertEqual([digest(b) for b in job], want)
            with self.assertRaisesRegex(ServiceError, "ids=FILE"):
                millrace.open(files, document, control=s.url, tensors="views")
            with self.assertRaises(millrace.FilesError):
                millrace.open(files, document, control=s.url, vocabularies={"ids": built + "x"})

    def test_modules(self) -> None:
        """A worker whose configuration allows it runs the module that the script names, and makes the mini-batches of
        this machine. The drives, whose images lack the module, refuse it.
        """
        s = self.service
        files = os.path.join(s.data, "*.parquet")
        call = "wasm: {module: m, function: add, in: [int64, int64], out: int64}"
        document = "batch: 1000\nvalues: [{as: a, from: int_0, ops: [fill_null: 0]}]\n"
        document += "sparse: [{inputs: [a, a], as: twice, ops: [%s]}]\n" % call
        with tempfile.TemporaryDirectory() as folder:
            module = os.path.join(folder, "m.wasm")
            with open(module, "wb") as f:
                f.write(ADD)
            modules = {"m": module}
            more: dict[str, Any] = {"tensors": "views", "order": "deterministic", "shuffle": "none"}
            with millrace.open(files, document, modules=modules, **more) as job:
                want = [digest(b) for b in job]
            worker = self.worker("w9", "modules: {submitted: true}\n")
            s.wait_nodes(4)
            try:
                spec = {"name": "modules", "pipeline": document, "placement": "pool", "order": "deterministic"}
                with Control(s.url) as c:
                    submitted = c.submit({**spec, "plan": {"shuffle": "none"}}, modules=modules)
                self.submitted.append(submitted["id"])
                with Job(s.url, submitted["id"], check=True) as job:
                    self.assertEqual([digest(b) for b in job], want)
            finally:
                worker.stop()
            with self.assertRaisesRegex(millrace.MillraceError, "is in no image of the drive"):
                with millrace.open(files, document, control=s.url, modules=modules, **more) as job:
                    list(job)
            with self.assertRaisesRegex(ServiceError, r"modules=\{"):
                millrace.open(files, document, control=s.url, tensors="views")
            with self.assertRaises(millrace.FilesError):
                millrace.open(files, document, control=s.url, modules={"m": module + "x"})

    def test_statistics(self) -> None:
        """The numbers of a summary become part of the pipeline that is submitted."""
        s = self.service
        files = os.path.join(s.data, "*.parquet")
        pipeline = Pipeline(batch=1000).dense("int_0", ops=[fill_null(0), normalize(statistics="train")])
        pipeline.statistics("train")
        with tempfile.TemporaryDirectory() as folder:
            path, summary = os.path.join(folder, "p.yaml"), os.path.join(folder, "train.summary")
            with open(path, "w") as f:
                f.write(pipeline.to_yaml())
            command = [service.program(), "dataset", "summarize", "--pipeline", path, "--in", files, "--out", summary]
            subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            more: dict[str, Any] = {"shuffle": "none", "order": "deterministic", "tensors": "views"}
            with millrace.open(files, pipeline, statistics={"train": summary}, **more) as job:
                want = [digest(b) for b in job]
            with Control(s.url) as c:
                for i, given in enumerate((pipeline, path, pipeline.to_yaml().encode())):
                    spec = {"name": f"statistics-{i}", "pipeline": given, "order": "deterministic"}
                    spec["plan"] = {"shuffle": "none", "seed": str(i)}
                    self.submitted.append(c.submit(spec, statistics={"train": summary})["id"])
                    with Job(s.url, self.submitted[-1]) as job:
                        self.assertEqual([digest(b) for b in job], want)
                with self.assertRaisesRegex(PipelineError, 'no statistics "trial"'):
                    c.submit(spec, statistics={"trial": summary})
                with self.assertRaisesRegex(ServiceError, "the summary .* is not given"):
                    c.submit(spec)

    def test_own_cpus_make_a_share(self) -> None:
        """This rank's own CPUs make all, half or none of its splits, or are killed in the middle: the sequence and the
        bytes are the same. The worker ends with the job.
        """
        s = self.service

        def run(seed: int, kill: bool = False, **more: Any) -> tuple[list[tuple[int, int, str]], dict[str, Any]]:
            got = []
            with millrace.open(
                os.path.join(s.data, "*.parquet"), PIPELINE, control=s.url, seed=seed, order="deterministic",
                split_batches=1, tensors="views", check=True, **more,
            ) as job:  # fmt: skip
                self.submitted.append(str(job.status()["id"]))
                for b in job:
                    got.append(digest(b))
                    if kill and len(got) == 7:
                        assert job._own is not None
                        os.kill(job._own.pid, signal.SIGKILL)
                status, own = job.status(), job._own
            if own is not None:
                self.assertIsNotNone(own._process.poll(), "it ended with the job")
            return got, status

        want, _ = run(901)
        self.assertEqual(len(want), ROWS // BATCH)
        for share in (0, 0.5, 1):
            got, status = run(901, offload=share)
            self.assertEqual(got, want, share)
            made = int(status.get("splitsOwn") or 0)
            self.assertEqual(made > 0, share < 1, status)
        got, _ = run(901, kill=True, offload=0.25)
        self.assertEqual(got, want)
        with self.assertRaisesRegex(ServiceError, "from 0 to 1"):
            run(901, offload="half")
        with self.assertRaisesRegex(TypeError, "offload: only with control="):
            millrace.open(os.path.join(s.data, "*.parquet"), PIPELINE, offload=0.5)

    def test_own_cpus_make_all_without_a_node(self) -> None:
        """A job goes on when its only node is killed, and a job begins although there never was a node: this rank's own
        CPUs make every split of their files, and the bytes are the same.
        """

        def run(data: str, node: Any = None, **more: Any) -> list[tuple[int, int, str]]:
            got = []
            with millrace.open(
                os.path.join(data, "*.parquet"), PIPELINE, seed=902, order="deterministic", split_batches=1,
                tensors="views", check=True, **more,
            ) as job:  # fmt: skip
                for b in job:
                    got.append(digest(b))
                    if node is not None and len(got) == 5:
                        node.kill()
            return got

        def alone(nodes: int) -> Any:
            return contextlib.closing(service.Service(nodes, rows=ROWS, partitions=PARTITIONS, copies=1))

        with alone(1) as s:
            want = run(s.data)
            self.assertEqual(len(want), ROWS // BATCH)
            self.assertEqual(run(s.data, s.nodes[0], control=s.url, offload=0.5), want)
        with alone(0) as s:
            self.assertEqual(run(s.data, control=s.url, offload=0.5), want)
            with self.assertRaisesRegex(ServiceError, "no live node holds one that matches"):
                millrace.open("other-*.parquet", PIPELINE, control=s.url, offload=0.5)

    def test_the_share_is_tuned(self) -> None:
        """The trainer takes mini-batches as fast as they come, so that the control plane's tuner looks for a better
        share by what this rank reports of both sides. It goes on over epochs, each of which is a session.
        """
        s = self.service
        with millrace.open(
            os.path.join(s.data, "*.parquet"), PIPELINE, control=s.url, seed=902, batch=250, split_batches=2,
            epochs=100_000, tensors="views", offload="extended", run="tuned",
        ) as job:  # fmt: skip
            self.submitted.append(str(job.status()["id"]))
            seen: list[tuple[float, str]] = []
            end, look = time.monotonic() + 300, 0.0
            for _ in job:
                if (now := time.monotonic()) < look:
                    continue
                look = now + 0.1
                rank = job.status()["ranks"][0]
                decision = (float(rank.get("shareElsewhere") or 0), str(rank.get("offload") or ""))
                if decision not in seen:
                    seen.append(decision)
                tuned = [x for x in seen if "which it tries" in x[1]]
                if tuned or now > end:
                    break
            self.assertTrue(tuned, seen)
            before = [x for x in seen if x not in tuned]
            self.assertTrue(before, "the decision before the search")
            self.assertNotEqual(tuned[0][0], before[-1][0], seen)

    def test_a_profile_is_measured(self) -> None:
        """At the beginning each side makes every split for a while. A policy then decides by what was measured."""
        s = self.service
        with millrace.open(
            os.path.join(s.data, "*.parquet"), PIPELINE, control=s.url, seed=903, batch=100, split_batches=2,
            epochs=100_000, tensors="views", offload="paper", run="profiled",
        ) as job:  # fmt: skip
            self.submitted.append(str(job.status()["id"]))
            profiler = job._session._profiler
            reasons: list[str] = []
            end, look = time.monotonic() + 300, 0.0
            for _ in job:
                if (now := time.monotonic()) < look:
                    continue
                look = now + 0.1
                why = str(job.status()["ranks"][0].get("offload") or "")
                if not reasons or why != reasons[-1]:
                    reasons.append(why)
                if (not profiler.side and "measures" not in why) or now > end:
                    break
            measured = [x for x in reasons if "the launcher measures" in x]
            self.assertEqual(
                measured, ["the launcher measures the rank's own CPUs", "the launcher measures the other workers"]
            )
            self.assertNotIn("the launcher measures", reasons[-1])
            self.assertIsNotNone(profiler.profile)
            for name in ("gthp", "lthp", "pcycle", "rthp", "ocycle", "tcycle"):
                self.assertGreater(profiler.profile[name], 0, name)
            self.assertGreater(job.statistics.profile_seconds, 0)

    def test_a_profile_is_kept(self) -> None:
        """The first job measures its profile and keeps it. The next one, of the same model, pipeline and workers,
        measures nothing: it takes the profile of the first, and so does a job that is too short for one.
        """
        s = self.service
        metrics = os.path.join(s.folder, "metrics.json")

        def run(name: str, epochs: int) -> tuple[str, Optional[dict[str, float]], dict[str, Any]]:
            with millrace.open(
                os.path.join(s.data, "*.parquet"), PIPELINE, control=s.url, seed=904, batch=100, split_batches=2,
                epochs=epochs, tensors="views", offload="extended", id=name, run=name, offload_model="dlrm",
                offload_metrics=metrics,
            ) as job:  # fmt: skip
                self.submitted.append(str(job.status()["id"]))
                session, end = job._session, time.monotonic() + 300
                for _ in job:
                    rank = {}
                    if session._profiler is None or not session._profiler.side or time.monotonic() > end:
                        rank = job.status()["ranks"][0]
                    if rank.get("profileFrom"):
                        break
                profile = session._stored if session._profiler is None else session._profiler.profile
                return job.statistics.profile_from, profile, rank

        origin, first, rank = run("keeps", 100_000)
        self.assertEqual((origin, rank.get("profileFrom")), ("measured", "measured"))
        self.assertGreater(rank["profileSeconds"], 0)
        self.assertGreater(rank["profileShare"], 0)
        self.assertLessEqual(rank["profileShare"], 1)
        for name, epochs in (("finds", 100_000), ("short", 4)):
            origin, profile, rank = run(name, epochs)
            self.assertEqual((origin, rank.get("profileFrom")), ("stored", "stored"))
            self.assertEqual(profile, first)

    def test_own_cpus_that_do_not_start(self) -> None:
        """The error holds the worker's output."""
        with Control(self.service.url) as c:
            id = self.submit(offload="0.5")
            with self.assertRaisesRegex(PrivateProcessError, "no-such.yaml"):
                OwnWorker(c, id, 0, config="no-such.yaml")

    def worker(self, name: str, configuration: str = "") -> Any:
        """Starts a worker without data."""
        path = os.path.join(self.service.folder, name + ".yaml")
        with open(path, "w") as f:
            f.write(configuration or "{}\n")
        command = [service.program(), "worker", "run", "--config", path, "--control", self.service.url]
        command += ["--name", name, "--listen"]
        process = service.Process(
            os.path.join(self.service.folder, name + ".log"),
            [*command, "127.0.0.1:0", "--threads", "1", "--memory", "512MiB", "--output", "json"],
        )
        self.addCleanup(process.stop)
        process.wait_ready()
        return process

    def test_bytes_are_those_of_preprocess(self) -> None:
        s = self.service
        got: list[dict[str, bytes]] = []
        with Job(s.url, self.submit(), check=True) as job:
            self.assertEqual(job.batch, BATCH)
            self.assertEqual([p["name"] for p in job.manifest["partitions"]], s.partitions)
            self.assertEqual(
                (len(job.schema.dense), len(job.schema.keys), job.schema.ids, job.schema.fixed), (13, 39, "int32", True)
            )
            for b in job:
                b.validate()
                got.append(
                    {name: bytes(b.data[e.offset : e.offset + e.nbytes]) for e in b.extents for name in [e.name]}
                    | {"rows": b.rows}
                )
        with tempfile.TemporaryDirectory() as folder:
            pipeline = os.path.join(folder, "p.yaml")
            with open(pipeline, "w") as f:
                f.write(PIPELINE)
            at = 0
            for name in s.partitions:
                out = os.path.join(folder, name + ".npy")
                s.run(
                    "preprocess",
                    "--pipeline",
                    pipeline,
                    "--in",
                    os.path.join(s.data, name),
                    "--out",
                    out,
                    "--format",
                    "npy",
                )
                (rows, _), dense = npy(f"{out}/dense.npy")
                _, labels = npy(f"{out}/labels.npy")
                _, values = npy(f"{out}/values.npy")
                with open(f"{out}/keys.json") as f:
                    self.assertIn("cat_0", json.dumps(json.load(f)))
                mine, n = [], 0
                while n < rows:
                    mine.append(got[at])
                    n += got[at]["rows"]
                    at += 1
                self.assertEqual(n, rows)
                self.assertEqual(b"".join(m["dense"] for m in mine), dense)
                self.assertEqual(b"".join(m["label"] for m in mine), labels)
                # values.npy is feature-major over all rows of the run, a frame over its own.
                by_key = b"".join(
                    m["kjt.values"][k * m["rows"] * 4 : (k + 1) * m["rows"] * 4] for k in range(39) for m in mine
                )
                self.assertEqual(by_key, values)
            self.assertEqual(at, len(got))

    def test_minibatches_across_files(self) -> None:
        """With the boundary none a mini-batch may have fragments of several nodes, and is that of this machine."""
        s = self.service
        files, seed = os.path.join(s.data, "*.parquet"), 4712
        plan = {"batch": "900", "boundary": "none", "shuffle": "splits", "seed": str(seed)}
        own: dict[str, Any] = {"batch": 900, "boundary": "none", "shuffle": "splits", "seed": seed, "split_batches": 4}
        with millrace.open(files, PIPELINE, epochs=2, tensors="views", order="deterministic", **own) as job:
            want = [digest(b) for b in job]
        self.assertEqual(len(want), 2 * -(-ROWS // 900))
        for order, queue_bytes in (("deterministic", 1), ("fastest", 1), ("fastest", 64 << 20)):
            with self.subTest(order=order, queue_bytes=queue_bytes):
                id = self.submit(epochs="2", plan=plan, order=order)
                with Job(s.url, id, queue_bytes=queue_bytes, check=True) as job:
                    got = [digest(b) for b in job]
                self.assertEqual(got if order == "deterministic" else sorted(got), want)
        id = self.submit(epochs="2", plan=plan, ranks=2, rankTail="keep", order="fastest")
        got = []
        for rank in range(2):
            with Job(s.url, id, rank=rank, check=True) as job:
                got += [digest(b) for b in job.minibatches()]
        self.assertEqual(sorted(got), want[: len(want) // 2])

    def test_deduplicated_minibatches_across_files(self) -> None:
        """Equal rows of two nodes stand once in a mini-batch, also when a node is killed."""
        s = self.service
        document = "batch: 900\nlabel: {column: label}\nsparse:\n"
        document += "  - {columns: [cat_0, cat_1], ops: [fill_null: 0, positive_modulus: 3], deduplicate: true}\n"
        document += "  - {columns: [cat_2], ops: [fill_null: 0]}\n"
        own: dict[str, Any] = {"boundary": "none", "split_batches": 2, "seed": 4713}
        with millrace.open(
            os.path.join(s.data, "*.parquet"), document, tensors="views", order="deterministic", **own
        ) as job:
            want = [digest(b.validate()) for b in job]
        plan = {"boundary": "none", "splitBatches": "2", "shuffle": "splits", "seed": "4713"}
        with Job(s.url, self.submit(plan=plan, pipeline=document), queue_bytes=1 << 16, check=True) as job:
            self.assertEqual(job.schema.sets, 1)
            got = []
            for b in job:
                self.assertEqual((b.unique, b.fragment), ((9,), None))
                got.append(digest(b.validate()))
                if len(got) == 5:
                    self.service.kill_node(1)
        self.service.start_node(1)
        self.service.wait_nodes(3)
        self.assertEqual(got, want)

    def test_epochs_are_shuffled_and_whole(self) -> None:
        plan = {"shuffle": "splits", "seed": "4711"}
        seen = self.undisturbed(epochs="2", plan=plan)
        first, second = ([d for e, _, d in seen if e == epoch] for epoch in (0, 1))
        self.assertEqual([n for e, n, _ in seen if e == 1], list(range(30)))
        self.assertEqual(len(set(first)), 30)
        self.assertEqual(sorted(first), sorted(second))
        self.assertNotEqual(first, second)
        # The same seed gives the same order. No partition has a tail here.
        self.assertEqual(self.undisturbed(epochs="2", plan={**plan, "tail": "drop"}), seen)

    def test_fastest_order_gives_the_same_minibatches(self) -> None:
        self.assertEqual(sorted(self.undisturbed(order="fastest")), self.undisturbed())

    def test_ranks(self) -> None:
        want = self.undisturbed(epochs="2")
        id = self.submit(ranks=2, rankTail="keep", epochs="2")
        got: list[list[Any]] = [[], []]

        def consume(rank: int) -> None:
            with Job(self.service.url, id, rank=rank) as job:
                got[rank] = [digest(b) for b in job]

        threads = [threading.Thread(target=consume, args=(r,)) for r in range(2)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(sorted(got[0] + got[1]), want)
        for rank, (first, end) in enumerate(((0, 15), (15, 30))):
            self.assertEqual([(e, n) for e, n, _ in got[rank]], [(e, n) for e in range(2) for n in range(first, end)])

    def test_a_node_is_killed(self) -> None:
        want = self.undisturbed(epochs="2")
        with Job(self.service.url, self.submit(epochs="2"), queue_bytes=1 << 20, check=True) as job:
            got = []
            for b in job:
                got.append(digest(b))
                if len(got) == 5:
                    self.service.kill_node(1)
            self.assertEqual(got, want)
        self.service.start_node(1)
        self.service.wait_nodes(3)

    def test_a_trainer_is_killed_and_goes_on(self) -> None:
        want = self.undisturbed(epochs="2")
        for stop_at in (1, 17, 30, 41):
            with self.subTest(stop_at):
                id = self.submit(epochs="2")
                job = Job(self.service.url, id)
                it = iter(job)
                got = [digest(next(it)) for _ in range(stop_at)]
                state = json.loads(json.dumps(job.state_dict()))
                for _ in range(3):
                    next(it)  # trained on, acknowledged, and lost with the process
                job.flush()
                with Job(self.service.url, id, token=state) as again:
                    rest = iter(again)
                    got.append(digest(next(rest)))
                    # The first session still runs. It may yield the mini-batches that it has; then it learns of the
                    # fence.
                    with self.assertRaises(FencedError):
                        for _ in it:
                            pass
                    job.close()
                    got += [digest(b) for b in rest]
                self.assertEqual(got, want)

    def test_tokens(self) -> None:
        with Job(self.service.url, self.submit(plan={"seed": "1000"})) as job:
            it = iter(job)
            next(it), next(it)
            sealed = job.checkpoint()
            bare = job.token
        other = self.submit()
        with self.assertRaises(OtherJobError):
            Job(self.service.url, other, token=sealed)
        with self.assertRaises(TokenError):
            Job(self.service.url, other, token=bare)
        with self.assertRaises(TokenError):
            Job(self.service.url, other, token=sealed[:-1] + bytes([sealed[-1] ^ 1]))
        with self.assertRaises(OtherJobError):
            self.submit(resume=sealed)
        # A new job may begin with either.
        for token in (sealed, bare.to_bytes()):
            with Job(self.service.url, self.submit(resume=token, plan={"seed": "1000"})) as job:
                self.assertEqual([b.name.number for b in job], list(range(2, 30)))

    def test_arrow_from_a_node(self) -> None:
        try:
            from millrace.arrow import open_file, record_batch
        except ImportError as e:
            self.skipTest(f"pyarrow is not installed: {e}")
        with Job(self.service.url, self.submit()) as job, Control(self.service.url) as c:
            mb = next(iter(job))
            with job._cond:
                lease = next(x for x in job._session.intake.leases.values() if x.first <= mb.name.number < x.end)
            answers = 0
            for n in c.call("ListNodes", {})["nodes"]:
                if any(d.get("reach") == "any" for d in n["status"]["drives"]):
                    continue  # the ended own worker of another test
                url = next(u for u in n["status"]["urls"] if u.startswith("http://"))
                query = f"{url}/v1/minibatch?job={job.digest}&epoch=0&drive=d0&number={mb.name.number}"
                headers = {"Accept": "application/vnd.apache.arrow.file", "Millrace-Ticket": lease.ticket}
                request = urllib.request.Request(query, headers=headers)
                try:
                    with urllib.request.urlopen(request, timeout=20) as response:
                        self.assertEqual(response.headers["Content-Type"], "application/vnd.apache.arrow.file")
                        got = list(open_file(response.read()))
                except urllib.error.HTTPError as e:
                    e.close()  # the lease is on the other node
                    self.assertEqual(e.code, 403)
                    continue
                self.assertEqual(n["status"]["name"], lease.node)
                answers += 1
                ((schema, name, rows, batch),) = got
                self.assertEqual((schema, name, rows), (job.schema, str(mb.name), mb.rows))
                self.assertEqual(batch.to_pydict(), record_batch(mb, named=False).to_pydict())
            self.assertEqual(answers, 1)

    def test_tcp_alone(self) -> None:
        want = self.undisturbed()
        nodes = [n for n in self.service.nodes]
        self.assertTrue(all(nodes))
        id = self.submit()
        hidden = {"path": os.path.join(self.service.folder, "elsewhere")}
        os.makedirs(hidden["path"], exist_ok=True)
        for i in range(3):  # as if the trainer were on another machine
            os.rename(f"{self.service.folder}/n{i}.sock", f"{hidden['path']}/n{i}.sock")
        try:
            with Job(self.service.url, id) as job:
                self.assertEqual([digest(b) for b in job], want)
        finally:
            for i in range(3):
                os.rename(f"{hidden['path']}/n{i}.sock", f"{self.service.folder}/n{i}.sock")


class Failover(unittest.TestCase):
    def test_the_leader_is_killed(self) -> None:
        self.lose_leader({"shuffle": "none"}, 30)

    def test_the_leader_is_killed_while_fragments_wait(self) -> None:
        self.lose_leader({"shuffle": "none", "batch": "700", "boundary": "none", "splitBatches": "2"}, 43)

    def lose_leader(self, plan: dict[str, str], minibatches: int) -> None:
        with service.Service(2, rows=ROWS, partitions=PARTITIONS, copies=2, members=3) as s:
            with Control(s.url) as c:
                spec = {
                    "name": "a",
                    "pipeline": PIPELINE,
                    "order": "deterministic",
                    "epochs": "2",
                    "plan": plan,
                }
                id = c.submit(spec)["id"]
            with Job(s.url, id, queue_bytes=1 << 20, check=True) as job:
                got = []
                for b in job:
                    got.append(digest(b))
                    if len(got) == 10:
                        s.kill_leader()
                    if len(got) == 20:
                        job.state_dict()  # waits for the next leader
            self.assertEqual([(e, n) for e, n, _ in got], [(e, n) for e in range(2) for n in range(minibatches)])
            self.assertEqual([d for e, _, d in got if e == 0], [d for e, _, d in got if e == 1])


class Secure(unittest.TestCase):
    def test_mutual_tls(self) -> None:
        with service.Service(2, rows=ROWS, partitions=PARTITIONS, copies=2, secure=True) as s:
            self.assertTrue(s.url.startswith("https://"))
            with Control(s.url, tls=s.tls) as c:
                id = c.submit({"name": "a", "pipeline": PIPELINE, "order": "deterministic"})["id"]
            with Job(s.url, id, tls=s.tls) as job:
                self.assertEqual([b.name.number for b in job], list(range(30)))
            self.theirs(s)
            # Calls without an identity, with the identity of another authority, and with a role that may not call.
            with self.assertRaises(MillraceError), Control(s.url, patience=0.0) as c:
                c.jobs()
            # Each error comes at once; an error that waits for the client's patience would come after two minutes.
            with service.Service(1, rows=ROWS, partitions=1, copies=1, secure=True) as other:
                _, _, stranger = other.tls
                for url, tls, says in (
                    (s.url.replace("https:", "http:"), None, "serves TLS, and was addressed with http"),
                    (s.url, None, "no certificate to show"),
                    (s.url, (s.tls[0], s.tls[1], stranger), "another authority"),
                    (s.url, (other.tls[0], other.tls[1], s.tls[2]), "does not know the authority"),
                    (s.url.replace("127.0.0.1", "localhost"), s.tls, "other names"),
                ):
                    with (
                        self.subTest(says),
                        self.assertRaisesRegex(TLSError, says),
                        Control(url, tls=tls, patience=120, contact=120) as c,
                    ):
                        c.jobs()
            clear = Serving(lambda h: h.answer(200, b"{}"))
            with (
                self.assertRaisesRegex(TLSError, "serves in clear"),
                Control(clear.url.replace("http:", "https:"), tls=s.tls, patience=120, contact=120) as c,
            ):
                c.jobs()
            clear.stop()
            node = s._identity("node", "stranger")
            with self.assertRaises(ServiceError) as e, Control(s.url, tls=node, patience=0.0) as c:
                c.jobs()
            self.assertEqual(e.exception.code, "permission_denied")
            # A server with a node's certificate for this host name is refused in the control plane's place, and one
            # with a launcher's, also with that of this launcher's owner.
            for role, name in (("node", "rogue-node"), ("launcher", "rogue"), ("launcher", "trainer.host-1")):
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(*s._identity(role, name)[:2])
                rogue = Serving(lambda h: h.answer(200, b"{}"), ssl_context=context)
                try:
                    with (
                        self.assertRaisesRegex(MillraceError, "its certificate is not the control plane's"),
                        Control(rogue.url, tls=s.tls, patience=0.0) as c,
                    ):
                        c.jobs()
                finally:
                    rogue.stop()
            self.own_cpus(s)

    def own_cpus(self, s: Any) -> None:
        """A launcher's certificate is enough for the worker of a rank's own CPUs, in a job of its owner and in no
        other.
        """

        def run(**more: Any) -> tuple[list[tuple[int, int, str]], dict[str, Any]]:
            with millrace.open(
                os.path.join(s.data, "*.parquet"), PIPELINE, control=s.url, tls=s.tls, seed=77, order="deterministic",
                split_batches=1, tensors="views", check=True, **more,
            ) as job:  # fmt: skip
                got = [digest(b) for b in job]
                return got, job.status()

        want, _ = run()
        got, status = run(offload=0.5)
        self.assertEqual(got, want)
        self.assertGreater(int(status.get("splitsOwn") or 0), 0, status)
        self.assertGreater(int(status.get("splitsHeld") or 0), 0, status)
        self.assertEqual(status.get("owner"), "trainer")
        with Control(s.url, tls=s._identity("launcher", "hostile")) as c:
            theirs = c.submit({"name": "theirs", "pipeline": PIPELINE, "offload": "0.5"})["id"]
            c.cancel(theirs)
        with Control(s.url, tls=s.tls) as c:
            with self.assertRaisesRegex(ServiceError, "belongs to another launcher"):
                OwnWorker(c, theirs, 0, files=[s.data])
            c.job = lambda id: {}  # type: ignore[method-assign]  # a launcher that does not look at the job first
            with self.assertRaisesRegex(PrivateProcessError, "own worker refused: .*trainer has no job"):
                OwnWorker(c, theirs, 0, files=[s.data])
        with Control(s.url, tls=tls_context(s.tls)) as c, self.assertRaisesRegex(ValueError, "as files"):
            OwnWorker(c, theirs, 0)

    def theirs(self, s: Any) -> None:
        """Only a job's launchers get its mini-batches: the control plane and the nodes refuse another launcher."""
        stranger = s._identity("launcher", "news")
        operator = s._identity("operator", "ann")
        with Control(s.url, tls=operator) as c:
            open_to_all = c.submit({"name": "open", "pipeline": PIPELINE, "epochs": 2})["id"]
            given = c.submit({"name": "given", "pipeline": PIPELINE, "epochs": 3}, owner="trainer")["id"]
        with Control(s.url, tls=stranger) as c:
            self.assertEqual(c.job(open_to_all)["id"], open_to_all)
            for refused in (
                lambda: c.cancel(open_to_all),
                lambda: c.job(given),
                lambda: c.cancel(given),
                lambda: Job(s.url, given, tls=stranger),
            ):
                with self.assertRaises(ServiceError) as e:
                    refused()
                self.assertEqual(e.exception.code, "permission_denied")
            self.assertEqual([j["id"] for j in c.jobs() if j["id"] == given], [])
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=stranger[2])
        context.load_cert_chain(*stranger[:2])
        with Job(s.url, given, tls=s.tls) as job, Control(s.url, tls=operator) as c:
            number = next(iter(job)).name.number
            with job._cond:
                lease = next(x for x in job._session.intake.leases.values() if x.first <= number < x.end)
            url = next(u for u in lease.urls if u.startswith("https://"))
            query = f"{url}/v1/minibatch?job={job.digest}&epoch=0&drive={lease.drive}&number={number}&until={lease.end}"
            for headers, status in (
                ({}, 401),
                ({"Millrace-Ticket": lease.ticket}, 403),
                ({"Millrace-Ticket": "AAAA"}, 401),
            ):
                with self.assertRaises(urllib.error.HTTPError) as refusal:
                    urllib.request.urlopen(urllib.request.Request(query, headers=headers), timeout=20, context=context)
                refusal.exception.close()
                self.assertEqual(refusal.exception.code, status)
            c.cancel(open_to_all)
        with Control(s.url, tls=s.tls) as c:
            c.cancel(given)  # its launcher may


def digest(b: Any) -> tuple[int, int, str]:
    return b.name.epoch, b.name.number, hashlib.sha256(b.data).hexdigest()


if __name__ == "__main__":
    unittest.main()
