"""Keeps the metrics of profiles from one job to the next, by FastFlow's three keys (docs/offload.md, "Metrics").

The file is that of the launchers in Go (trainmgr/metricfile): a table in JSON. A lock lets one process at a time change
it, and each change replaces the file in one step. A file that is damaged or of another version is not used; the next
profile sets it aside, under its name with ``.damaged`` appended.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import struct
import sys
import tempfile
import threading
from dataclasses import dataclass, field
from typing import Any, Callable, Iterable, Mapping, Optional, Sequence

from .bounds import document, real
from .profiling import NO_STALL, available_processors

__all__ = ["KeyParts", "Keys", "KeptProfile", "MetricFile", "default_path"]

log = logging.getLogger("millrace")

_VERSION = 1
_MAX_BYTES = 1 << 20  # of a table
_MAX_ENTRIES = 256  # of each key; the entry that was used longest ago is dropped first
_MAX_CANDIDATES = 3  # one of each cut
_MAX_METRIC = 1e18
_KEY_BYTES = 32
_CUTS = ("transforms", "read_and_transforms", "all")
_WRITING = 5.0  # seconds that closing waits for a profile to be written
_GTHP, _TCYCLE, _CORES = "gthp_rows_per_second", "tcycle_row_cpu_seconds", "cores"
_LTHP, _PCYCLE, _SUPPLY = "lthp_rows_per_second", "pcycle_row_cpu_seconds", "supply_rows_per_second"
_RTHP, _OCYCLE = "rthp_rows_per_second", "ocycle_row_cpu_seconds"
_FIELDS = {"models": (_GTHP, _TCYCLE, _CORES), "pipelines": (_LTHP, _PCYCLE, _SUPPLY)}
_KINDS = ("models", "pipelines", "remotes")  # of entries

Entry = dict[str, Any]


@dataclass(frozen=True)
class Keys:
    """The keys of FastFlow's Table 2, as digests in hexadecimal digits.

    Attributes:
        model: the model with its batch and the trainer's machine: Gthp and Tcycle.
        pipeline: the pipeline and the model: Lthp and Pcycle.
        remote: the pipeline, the model and the workers: Rthp and Ocycle.
    """

    model: str
    pipeline: str
    remote: str


@dataclass(frozen=True)
class KeyParts:
    """The values that the keys are digests of."""

    model: str
    batch: int
    machine: str
    pipeline: bytes
    workers: Sequence[str] = ()

    def keys(self) -> Keys:
        """Hashes the parts."""
        model = _digest([b"model", self.model.encode(), struct.pack("<Q", self.batch), self.machine.encode()])
        pipeline = _digest([b"pipeline", model, self.pipeline])
        remote = _digest([b"remote", pipeline, *sorted(w.encode() for w in self.workers)])
        return Keys(model.hex(), pipeline.hex(), remote.hex())


def _digest(parts: Iterable[bytes]) -> bytes:
    h = hashlib.sha256()
    for part in parts:
        h.update(struct.pack("<Q", len(part)) + part)
    return h.digest()


def default_path(environ: Optional[Mapping[str, str]] = None) -> str:
    """Returns ``millrace/offload-metrics.json`` in the user's cache folder.

    Raises:
        OSError: the environment does not say where that is.
    """
    env = os.environ if environ is None else environ
    cache = env.get("XDG_CACHE_HOME", "")
    if sys.platform == "darwin":
        cache = os.path.join(env["HOME"], "Library", "Caches") if env.get("HOME") else ""
    elif not os.path.isabs(cache):
        cache = os.path.join(env["HOME"], ".cache") if env.get("HOME") else ""
    if not cache:
        raise OSError("neither XDG_CACHE_HOME nor HOME says where the user's cache is")
    return os.path.join(cache, "millrace", "offload-metrics.json")


def _metric(value: Any, name: str) -> float:
    found = real(value, name, _MAX_METRIC)
    if 0 < found < 1 / _MAX_METRIC:
        raise ValueError(f"{name}: {found} is too small for a metric")
    return found


def _fields(value: Any, what: str, known: Iterable[str]) -> Entry:
    if not isinstance(value, dict) or not set(value) <= set(known):
        raise ValueError(f"{what}: {str(value)[:60]!r} where an object of {', '.join(known)} belongs")
    return value


def _candidate(value: Any) -> Entry:
    c = _fields(value, "candidate", ("cut", _RTHP, _OCYCLE, _SUPPLY))
    if c.get("cut") not in _CUTS:
        raise ValueError(f"candidate of cut {str(c.get('cut'))[:40]!r}")
    return {"cut": c["cut"], **{k: _metric(v, k) for k, v in c.items() if k != "cut"}}


def _entry(kind: str, value: Any) -> Entry:
    e = _fields(value, kind, ("key", *_FIELDS.get(kind, ("candidates",))))
    key = e.get("key")
    if not isinstance(key, str) or len(key) != 2 * _KEY_BYTES:
        raise ValueError(f"{kind}: key {str(key)[:80]!r}")
    key = bytes.fromhex(key).hex()
    if len(key) != 2 * _KEY_BYTES:
        raise ValueError(f"{kind}: a key with spaces")
    if kind in _FIELDS:
        return {"key": key, **{k: _metric(e.get(k, 0), k) for k in _FIELDS[kind]}}
    candidates = [] if e.get("candidates") is None else e["candidates"]
    if not isinstance(candidates, list) or len(candidates) > _MAX_CANDIDATES:
        raise ValueError("workers: more candidates than cuts")
    return {"key": key, "candidates": [_candidate(c) for c in candidates]}


class _Table:
    """Entries by kind, each kind in the order of use, the last used last."""

    def __init__(self) -> None:
        self.entries: dict[str, list[Entry]] = {kind: [] for kind in _KINDS}

    @classmethod
    def decode(cls, data: bytes) -> "_Table":
        """Reads a table.

        Raises:
            ValueError: the bytes are damaged, too many, or of another version.
        """
        if len(data) > _MAX_BYTES:
            raise ValueError(f"more than {_MAX_BYTES} bytes")
        form = _fields(document(data), "the table", ("version", *_KINDS))
        if type(form.get("version")) is not int or form["version"] != _VERSION:
            raise ValueError(f"version {str(form.get('version'))[:20]}: this version reads {_VERSION}")
        table = cls()
        for kind in _KINDS:
            listed = [] if form.get(kind) is None else form[kind]
            if not isinstance(listed, list) or len(listed) > _MAX_ENTRIES:
                raise ValueError(f"{kind}: not a list of at most {_MAX_ENTRIES}")
            table.entries[kind] = [_entry(kind, e) for e in listed]
        return table

    def encode(self) -> bytes:
        """Returns the table as bytes."""
        return json.dumps({"version": _VERSION, **self.entries}, indent=1, allow_nan=False).encode()

    def find(self, kind: str, key: str) -> Optional[Entry]:
        """Returns an entry, and marks it as used."""
        found = next((e for e in self.entries[kind] if e["key"] == key), None)
        if found is not None:
            self.put(kind, found)
        return found

    def put(self, kind: str, entry: Entry) -> None:
        """Adds an entry, or replaces that of the same key."""
        kept = [e for e in self.entries[kind] if e["key"] != entry["key"]]
        self.entries[kind] = [*kept, entry][-_MAX_ENTRIES:]


class MetricFile:
    """The store in a file, which need not be there. ``None`` is :func:`default_path`."""

    def __init__(self, path: Optional[str] = None) -> None:
        self.path = default_path() if path is None else path

    def _read(self) -> _Table:
        try:
            with open(self.path, "rb") as f:
                return _Table.decode(f.read(_MAX_BYTES + 1))
        except FileNotFoundError:
            return _Table()
        except RecursionError as e:
            raise ValueError("nested too deeply") from e

    def find(self, keys: Keys) -> dict[str, float]:
        """Returns what the file has of the keys' metrics: of the model ``gthp``, ``tcycle`` and ``cores``, of the
        pipeline ``lthp`` and ``pcycle``, of the workers ``rthp`` and ``ocycle``.

        Raises:
            ValueError: the file is damaged, or of another version.
            OSError: the file cannot be read.
        """
        table = self._read()
        found: dict[str, float] = {}
        if (e := table.find("models", keys.model)) is not None:
            found.update(gthp=e[_GTHP], tcycle=e[_TCYCLE], cores=e[_CORES])
        if (e := table.find("pipelines", keys.pipeline)) is not None:
            found.update(lthp=e[_LTHP], pcycle=e[_PCYCLE])
        if (e := table.find("remotes", keys.remote)) is not None and len(e["candidates"]) == 1:
            c = e["candidates"][0]
            found.update(rthp=c.get(_RTHP, 0.0), ocycle=c.get(_OCYCLE, 0.0))
        return found

    def put(self, keys: Keys, profile: Mapping[str, float]) -> None:
        """Stores a profile, as :class:`millrace.profiling.Profiler` measures it. Without Rthp the entry of the workers
        stays as it is.

        Raises:
            ValueError: a metric is out of range.
            OSError: the file cannot be written.
        """
        m = {name: _metric(value, name) for name, value in profile.items()}
        os.makedirs(os.path.dirname(os.path.abspath(self.path)), mode=0o700, exist_ok=True)
        with open(os.open(self.path + ".lock", os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600), "rb") as lock:
            _lock(lock.fileno())
            try:
                table = self._read()
            except ValueError as e:
                os.replace(self.path, self.path + ".damaged")
                log.warning("%s: %s: the file is %s.damaged now", self.path, e, self.path)
                table = _Table()
            table.put("models", {"key": keys.model, _GTHP: m["gthp"], _TCYCLE: m["tcycle"], _CORES: m["cores"]})
            table.put("pipelines", {"key": keys.pipeline, _LTHP: m["lthp"], _PCYCLE: m["pcycle"], _SUPPLY: 0.0})
            if m.get("rthp"):
                candidate = {"cut": "all", _RTHP: m["rthp"], _OCYCLE: m["ocycle"]}
                table.put("remotes", {"key": keys.remote, "candidates": [candidate]})
            _replace(self.path, table.encode())


def _lock(descriptor: int) -> None:
    """Waits for the lock on an open file, which closing the file releases."""
    try:
        import fcntl
    except ImportError:  # this system has no such lock, and the last process that changes the file wins
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)


def _replace(path: str, data: bytes) -> None:
    """Writes a file so that it is there whole or not at all."""
    folder, name = os.path.split(os.path.abspath(path))
    descriptor, partial = tempfile.mkstemp(".partial", name + ".", folder)  # mode 0600
    try:
        with open(descriptor, "wb") as f:
            f.write(data)
            f.flush()
            os.fsync(f.fileno())
        os.replace(partial, path)
    except BaseException:
        os.unlink(partial)
        raise


@dataclass
class KeptProfile:
    """The profile of one rank in a store.

    Attributes:
        model: the name of the model.
        path: the store's file; None takes :func:`default_path`.
        reads: from where the rank's own worker reads partitions: ``files`` or ``nodes``.
    """

    model: str
    path: Optional[str] = None
    reads: str = "nodes"
    _file: Optional[MetricFile] = field(default=None, init=False)
    _keys: Optional[Keys] = field(default=None, init=False)
    _writing: Optional[threading.Thread] = field(default=None, init=False)

    def find(self, batch: int, pipeline: bytes, own_workers: bytes, other_workers: bytes) -> dict[str, float]:
        """Returns what the store has of the rank's metrics, as :meth:`MetricFile.find` does. A store that cannot be
        read has nothing. Without the control plane's digests of the pipeline and of the workers of both sides, nothing
        is read and nothing is written.
        """
        if not all(len(digest) == _KEY_BYTES for digest in (pipeline, own_workers, other_workers)):
            log.info("the profile is not stored: the control plane does not name the workers of both sides")
            return {}
        machine = (
            f"python, {sys.platform}/{platform.machine()}, {os.cpu_count()} processors, "
            f"{available_processors():.2f} usable; own workers {own_workers.hex()}"
        )
        source = f"{pipeline.hex()}, read from {self.reads}".encode()
        self._keys = KeyParts(self.model, batch, machine, source, [other_workers.hex()]).keys()
        try:
            self._file = MetricFile(self.path)
            return self._file.find(self._keys)
        except (OSError, ValueError) as e:
            log.warning("stored metrics are not used: %s: %s: they are measured again", self.path or "the default", e)
            return {}

    def put(self, profile: Mapping[str, float]) -> None:
        """Stores a profile in the background, so that a slow file system does not hold the trainer up."""
        if self._file is None or self._keys is None:
            return
        file, keys = self._file, self._keys

        def write() -> None:
            try:
                file.put(keys, profile)
            except (OSError, ValueError) as e:
                log.warning("the profile is not stored: %s: %s", file.path, e)

        self._writing = threading.Thread(target=write, name="millrace-profile", daemon=True)
        self._writing.start()

    def wait(self) -> None:
        """Waits until a profile is written, for at most :data:`_WRITING` seconds."""
        if self._writing is not None:
            self._writing.join(_WRITING)


def is_whole(found: Mapping[str, float]) -> bool:
    """Reports whether a policy needs no further metric: if the trainer does not wait for its own CPUs, the other
    workers are not needed (FastFlow, Algorithm 1, lines 3 and 4).
    """
    if "gthp" not in found or "lthp" not in found:
        return False
    return "rthp" in found or found["gthp"] < NO_STALL * found["lthp"]
