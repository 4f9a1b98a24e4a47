"""The store of profiles: its form, which launchers in Go share, and files that are damaged, old or contended."""

from __future__ import annotations

import json
import os
import pathlib
import random
import stat
import subprocess
import sys
import tempfile
import unittest
import unittest.mock
from typing import Any

import millrace
from millrace import Job, OptionsError
from millrace.metricfile import KeptProfile, KeyParts, MetricFile, _Table, default_path, is_whole

from .fake import Cluster

GOLDEN = KeyParts("rm1", 8192, "trainer", b'{"name":"rm1"}', ["n0/d0 cpu 1"])  # as in trainmgr/offload/form_test.go
PROFILE = {"gthp": 123456.789, "lthp": 2.5, "pcycle": 1e-7, "rthp": 1 / 3, "ocycle": 1e-9, "tcycle": 0.5, "cores": 2.0}
KEY = "0" * 64


def golden(name: str) -> pathlib.Path:
    repository = pathlib.Path(os.environ.get("MILLRACE_REPOSITORY") or pathlib.Path(__file__).parents[3])
    return repository / "trainmgr" / "offload" / "testdata" / name


class Files(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name
        self.path = os.path.join(self.folder, "metrics.json")

    def write(self, text: str) -> None:
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(text)


class Form(Files):
    def test_tables_of_go_are_read(self) -> None:
        """The keys are the same digests, and the metrics the same numbers. Writing keeps every entry."""
        data = golden("table.v1.json").read_bytes()
        self.write(data.decode())
        file = MetricFile(self.path)
        keys = GOLDEN.keys()
        found = file.find(keys)
        self.assertEqual(
            found, {"gthp": 123456.789, "tcycle": 0.5, "cores": 2.0, "lthp": 2.5, "pcycle": 1e-7}, "three candidates"
        )
        before = json.loads(data)
        self.assertEqual(before["remotes"][0]["key"], keys.remote)
        file.put(KeyParts("other", 1, "m", b"p").keys(), PROFILE)
        with open(self.path, "rb") as f:
            after = json.load(f)
        for kind in ("models", "pipelines", "remotes"):
            self.assertEqual(after[kind][0], before[kind][0], kind)
            self.assertEqual(len(after[kind]), 2)

    def test_tables_of_python_keep_their_form(self) -> None:
        """TestFormOfThePythonTable of trainmgr/offload reads the same bytes."""
        file = MetricFile(self.path)
        file.put(GOLDEN.keys(), PROFILE)
        with open(self.path, "rb") as f:
            written = f.read()
        if os.environ.get("MILLRACE_UPDATE"):
            golden("table.python.v1.json").write_bytes(written)
        self.assertEqual(written, golden("table.python.v1.json").read_bytes())
        self.assertEqual(file.find(GOLDEN.keys()), PROFILE)

    def test_default_path(self) -> None:
        if sys.platform != "linux":
            self.skipTest("the folders are Linux's")
        self.assertEqual(default_path({"XDG_CACHE_HOME": "/c", "HOME": "/h"}), "/c/millrace/offload-metrics.json")
        self.assertEqual(default_path({"XDG_CACHE_HOME": "c", "HOME": "/h"}), "/h/.cache/millrace/offload-metrics.json")
        with self.assertRaises(OSError):
            default_path({})


class Stores(Files):
    def test_each_key_hides_what_depends_on_it(self) -> None:
        file = MetricFile(self.path)
        self.assertEqual(file.find(GOLDEN.keys()), {})
        file.put(GOLDEN.keys(), PROFILE)
        model, own = {"gthp", "tcycle", "cores"}, {"gthp", "tcycle", "cores", "lthp", "pcycle"}
        cases: list[tuple[dict[str, Any], set[str]]] = [
            ({}, set(PROFILE)),
            ({"workers": ["n0/d0 cpu 2"]}, own),
            ({"workers": ["n0/d0 cpu 1"] * 2}, own),
            ({"pipeline": b"{}"}, model),
            ({"batch": 8191}, set()),
            ({"machine": "another"}, set()),
            ({"model": "rm2"}, set()),
        ]
        for change, want in cases:
            parts = {**vars(GOLDEN), **change}
            self.assertEqual(set(file.find(KeyParts(**parts).keys())), want, change)
        # A profile without a stall has no metrics of the others, and leaves those that are there.
        file.put(GOLDEN.keys(), {**PROFILE, "rthp": 0.0, "ocycle": 0.0, "lthp": 3.0})
        self.assertEqual(file.find(GOLDEN.keys())["rthp"], 1 / 3)
        self.assertEqual(file.find(GOLDEN.keys())["lthp"], 3.0)

    def test_the_table_is_bounded(self) -> None:
        """Of 256 entries the one that was written longest ago is dropped for another. A table of 257 is refused."""
        table = _Table()
        for i in range(257):
            table.put("models", {"key": f"{i:064x}", "gthp_rows_per_second": 1.0})
        self.assertEqual(len(table.entries["models"]), 256)
        self.assertIsNone(table.find("models", KEY))
        self.assertIsNotNone(table.find("models", f"{1:064x}"))
        table.put("models", {"key": f"{300:064x}"})
        self.assertIsNotNone(table.find("models", f"{1:064x}"), "it was used")
        self.assertIsNone(table.find("models", f"{2:064x}"))
        self.assertEqual(len(_Table.decode(table.encode()).entries["models"]), 256)
        table.entries["models"].append({"key": KEY})
        with self.assertRaises(ValueError):
            _Table.decode(table.encode())

    def test_damaged_tables_are_refused(self) -> None:
        candidate = '{"cut":"all"},'
        for text in (
            "", "{", "[]", "null", '{"version":2}', '{"version":0}', '{"version":true}', '{"version":1.5}',
            '{"models":[]}',
            '{"version":1,"extra":1}', '{"version":1,"models":{}}', '{"version":1,"models":[1]}',
            '{"version":1,"models":[{"key":"00"}]}', '{"version":1,"models":[{"key":"' + "z" * 64 + '"}]}',
            '{"version":1,"models":[{"key":"' + "0 " * 32 + '"}]}',
            '{"version":1,"models":[{"key":"' + KEY + '","gthp_rows_per_second":-1}]}',
            '{"version":1,"models":[{"key":"' + KEY + '","gthp_rows_per_second":NaN}]}',
            '{"version":1,"models":[{"key":"' + KEY + '","gthp_rows_per_second":true}]}',
            '{"version":1,"models":[{"key":"' + KEY + '","gthp_rows_per_second":1e-19}]}',
            '{"version":1,"pipelines":[{"key":"' + KEY + '","lthp_rows_per_second":1e19}]}',
            '{"version":1,"pipelines":[{"key":"' + KEY + '","gthp_rows_per_second":1}]}',
            '{"version":1,"remotes":[{"key":"' + KEY + '","candidates":[{"cut":"half"}]}]}',
            '{"version":1,"remotes":[{"key":"' + KEY + '","candidates":[{"cut":"none"}]}]}',
            '{"version":1,"remotes":[{"key":"' + KEY + '","candidates":[' + candidate * 3 + '{"cut":"all"}]}]}',
            "[" * 100_000,
        ):  # fmt: skip
            self.write(text)
            with self.assertRaises(ValueError, msg=text[:100]):
                MetricFile(self.path).find(GOLDEN.keys())
        space = b'{"version":1}' + b" " * ((1 << 20) - 13)
        self.assertEqual(_Table.decode(space).entries["models"], [])
        with self.assertRaises(ValueError):
            _Table.decode(space + b" ")
        self.assertEqual(_Table.decode(b'{"version":1,"models":null}').entries["models"], [], "as Go writes no entries")

    def test_changed_bytes(self) -> None:
        """Random changes of a table are read, or refused with a ValueError, and what is read can be written again."""
        data = bytearray(golden("table.v1.json").read_bytes())
        draw = random.Random(1)
        for _ in range(3000):
            b = bytearray(data)
            for _ in range(draw.randint(1, 4)):
                at = draw.randrange(len(b))
                b[at : at + draw.randint(0, 3)] = draw.randbytes(draw.randint(0, 3))
            try:
                table = _Table.decode(bytes(b))
            except ValueError:
                continue
            self.assertEqual(_Table.decode(table.encode()).entries, table.entries)

    def test_a_damaged_file_is_set_aside(self) -> None:
        for text in ("{", '{"version": 9}'):
            self.write(text)
            with self.assertLogs("millrace", "WARNING"):
                MetricFile(self.path).put(GOLDEN.keys(), PROFILE)
            with open(self.path + ".damaged", encoding="utf-8") as f:
                self.assertEqual(f.read(), text)
            self.assertEqual(MetricFile(self.path).find(GOLDEN.keys()), PROFILE)
        self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)
        self.assertEqual(
            sorted(os.listdir(self.folder)), ["metrics.json", "metrics.json.damaged", "metrics.json.lock"]
        )
        with self.assertRaises(ValueError):
            MetricFile(self.path).put(GOLDEN.keys(), {**PROFILE, "gthp": float("nan")})

    def test_writers_at_once_lose_nothing(self) -> None:
        """Processes at once keep each other's entries."""
        script = (
            "import sys\n"
            "from millrace.metricfile import KeyParts, MetricFile\n"
            f"profile = {PROFILE!r}\n"
            "for i in range(10):\n"
            "    MetricFile(sys.argv[1]).put(KeyParts(sys.argv[2], i, 'm', b'p').keys(), profile)\n"
        )
        writers = [subprocess.Popen([sys.executable, "-c", script, self.path, f"w{n}"]) for n in range(4)]
        for w in writers:
            self.assertEqual(w.wait(120), 0)
        file = MetricFile(self.path)
        for n in range(4):
            for i in range(10):
                self.assertEqual(file.find(KeyParts(f"w{n}", i, "m", b"p").keys()), PROFILE, (n, i))


class Kept(Files):
    DIGESTS = (b"p" * 32, b"o" * 32, b"w" * 32)

    def test_a_profile_comes_back(self) -> None:
        kept = KeptProfile("dlrm", self.path, "files")
        self.assertEqual(kept.find(32, *self.DIGESTS), {})
        kept.put(PROFILE)
        kept.wait()
        self.assertEqual(KeptProfile("dlrm", self.path, "files").find(32, *self.DIGESTS), PROFILE)
        self.assertEqual(set(KeptProfile("dlrm", self.path).find(32, *self.DIGESTS)), {"gthp", "tcycle", "cores"})
        self.assertEqual(KeptProfile("dlrm", self.path, "files").find(32, b"p" * 32, b"x" * 32, b"w" * 32), {})
        self.assertEqual(KeptProfile("other", self.path, "files").find(32, *self.DIGESTS), {})

    def test_without_digests_nothing_is_kept(self) -> None:
        for digests in ((b"", b"", b""), (b"p" * 32, b"", b"w" * 32), (b"p" * 31, b"o" * 32, b"w" * 32)):
            kept = KeptProfile("dlrm", self.path)
            self.assertEqual(kept.find(32, *digests), {})
            kept.put(PROFILE)
            kept.wait()
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_store_that_fails_costs_a_warning(self) -> None:
        """Neither a file in the place of the folder, nor a folder in the place of the file ends the job."""
        self.write("{}")
        for path in (os.path.join(self.path, "below"), self.folder):
            kept = KeptProfile("dlrm", path)
            with self.assertLogs("millrace", "WARNING"):
                self.assertEqual(kept.find(32, *self.DIGESTS), {})
                kept.put(PROFILE)
                kept.wait()

    def test_whole(self) -> None:
        self.assertFalse(is_whole({}))
        self.assertFalse(is_whole({"gthp": 111.0}))
        self.assertFalse(is_whole({"gthp": 111.0, "lthp": 100.0}))
        self.assertTrue(is_whole({"gthp": 109.0, "lthp": 100.0}), "no stall: the others are not needed")
        self.assertTrue(is_whole({"gthp": 200.0, "lthp": 100.0, "rthp": 1.0}))
        self.assertFalse(is_whole({"lthp": 100.0, "rthp": 1.0}))


class Sessions(Files):
    def test_the_second_job_measures_nothing(self) -> None:
        """The first job stores its profile. The next one, of any length, reports that profile at once. After a change
        of the other workers only these are measured.
        """
        names = ("pipeline", "ownWorkers", "otherWorkers")
        keys = {name: millrace.control.b64(digest) for name, digest in zip(names, Kept.DIGESTS)}

        def run(total: int = 5000, **changed: str) -> tuple[list[str], list[dict[str, Any]]]:
            # On a fast machine the job is too short for a profile.
            with unittest.mock.patch("millrace.profiling._SHORT_JOB", 0), Cluster(
                nodes=2, total=total, split=4, rows=4, order="fastest"
            ) as c:
                c.nodes[0].own = True
                c.ledger.offload = "extended"
                c.ledger.profile_keys = {**keys, **changed}
                with Job(c.urls, "rm1", splits=2) as job:
                    job._session.begin_profile(lambda: 0.0, KeptProfile("dlrm", self.path), job.batch)
                    self.assertEqual(sorted(b.name.number for b in job), list(range(total)))
                    self.assertGreater(job.statistics.profile_seconds, 0)
                sides = [r["profiling"] for r in c.ledger.reports if r.get("profiling")]
                return sorted(set(sides)), [r for r in c.ledger.reports if "profile" in r]

        sides, reports = run()
        self.assertEqual(sides, ["others", "own"])
        self.assertEqual({r["profileFrom"] for r in reports}, {"measured"})
        first = reports[-1]
        self.assertGreater(first["trainingSeconds"], first["profileSeconds"])
        self.assertGreater(first["profileSeconds"], 0)
        for total in (5000, 40):
            sides, reports = run(total)
            self.assertEqual(sides, [])
            self.assertTrue(reports)
            self.assertEqual({r["profileFrom"] for r in reports}, {"stored"})
            self.assertEqual(reports[0]["profile"], first["profile"])
        sides, reports = run(otherWorkers=millrace.control.b64(b"x" * 32))
        self.assertEqual(sides, ["others"])
        self.assertEqual({r["profileFrom"] for r in reports}, {"measured"})
        self.assertEqual(reports[-1]["profile"]["lthp"], first["profile"]["lthp"])

    def test_ocycle_without_pcycle_is_not_sent(self) -> None:
        """The entries may be of different times, and the control plane refuses Ocycle without Pcycle."""
        kept = KeptProfile("dlrm", self.path)
        kept.find(32, *Kept.DIGESTS)
        kept.put(PROFILE)
        kept.wait()
        kept.put({**PROFILE, "pcycle": 0.0, "rthp": 0.0, "ocycle": 0.0})
        kept.wait()
        with Cluster(nodes=1, total=40, split=4, rows=4) as c:
            c.ledger.offload = "extended"
            names = ("pipeline", "ownWorkers", "otherWorkers")
            c.ledger.profile_keys = {name: millrace.control.b64(digest) for name, digest in zip(names, Kept.DIGESTS)}
            with Job(c.urls, "rm1") as job:
                job._session.begin_profile(float, KeptProfile("dlrm", self.path), 32)
                list(job)
            profiles = [r["profile"] for r in c.ledger.reports if "profile" in r]
        self.assertTrue(profiles)
        self.assertEqual((profiles[0]["pcycle"], profiles[0]["ocycle"]), (0.0, 0.0))
        self.assertEqual(profiles[0]["rthp"], 1 / 3)


class Arguments(unittest.TestCase):
    def test_what_goes_together(self) -> None:
        for arguments, what in (
            ({"offload_model": "m"}, "only with control="),
            ({"offload_metrics": "f"}, "only with control="),
            ({"control": "http://127.0.0.1:1", "offload_model": "m"}, "only with offload="),
            ({"control": "http://127.0.0.1:1", "offload": 0.5, "offload_metrics": "f"}, "only with offload_model="),
        ):
            with self.assertRaisesRegex(TypeError, what):
                millrace.open("x.parquet", "rm1", **arguments)
        for name in ("", 7):
            with self.assertRaises(OptionsError):
                millrace.open("x.parquet", "rm1", control="http://127.0.0.1:1", offload=0.5, offload_model=name)


if __name__ == "__main__":
    unittest.main()
