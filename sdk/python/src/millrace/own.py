"""A rank's own CPUs as a worker of its job: ``millrace worker run --serves JOB/RANK`` in a process of its own.

The worker joins the control plane, serves this rank alone, and makes the share of its splits that the job's ``offload``
leaves to the trainer's machine. It reads the partitions from files of this machine that are the job's, and otherwise
from the storage nodes. It ends when its standard input ends, so it ends with this process, however this process ends.
"""

from __future__ import annotations

import logging
import os
import ssl
import subprocess
import tempfile
import threading
import time
from typing import Iterable, Optional, Sequence, Union

from . import binary
from .contexts import launcher_contexts, resolve
from .control import Control
from .errors import OptionsError, PrivateProcessError
from .profiling import process_seconds
from .wire import TLS, owner

__all__ = ["OwnWorker", "check_certificate"]

log = logging.getLogger("millrace")

_READY = 10.0  # seconds that a rank waits at most until its own worker takes splits
_SECONDS = 5.0  # that the worker has to end after its input has ended
_SAID = 2000  # bytes of a failed worker's last output that the error holds


def check_certificate(control: Union[None, str, Iterable[str]], tls: TLS) -> None:
    """Checks that a worker of a rank's own CPUs can show the caller's certificate. The control plane refuses the worker
    of an operator, whose jobs have no owner, and would do so after the job is submitted.

    Raises:
        OptionsError: the certificate is not a launcher's. The message names the contexts with one.
        ContextError, ValueError, OSError: as in :class:`millrace.Control`.
    """
    urls, files = resolve(control, tls)
    if not isinstance(files, tuple) or owner(files):
        return
    names = launcher_contexts(urls)
    instead = " or ".join(f"control={name!r}" for name in names)
    raise OptionsError(
        f"offload: the certificate {files[0]} is not a launcher's, and the control plane takes the worker of this "
        "machine's CPUs from launchers only: "
        + (f"use {instead}" if names else "issue one (millrace pki issue --role launcher --name OWNER --host HOST)")
        + ", or name a worker's configuration with a certificate of the role node (own_worker=)",
        "control",
    )


class OwnWorker:
    """A rank's own worker. The constructor starts it and waits until it takes splits, for at most :data:`_READY`
    seconds.

    Args:
        control: a client of the job's control plane.
        job: the job's id.
        rank: the only rank that the worker serves.
        files: files, folders and patterns of this machine that may be partitions of the job.
        config: the path of the worker's configuration (YAML); None takes one core less than there are, and a port of
            this machine. With TLS and without a configuration, the worker shows the launcher's certificate, and is
            called at a host of that certificate.

    Raises:
        ValueError: the control plane's client has an ``ssl.SSLContext``, which a worker cannot use.
        BinaryError: there is no binary.
        PrivateProcessError: the worker does not start, or ends before it takes splits; the message says why.
        ServiceError, UnreachableError: the control plane does not answer about the job.
    """

    def __init__(
        self, control: Control, job: str, rank: int, files: Sequence[str] = (), config: Optional[str] = None
    ) -> None:
        command = [binary.find(), "worker", "run", "--serves", f"{job}/{rank}", "--end-with-input"]
        for url in control.urls:
            command += ["--control", url]
        environment = dict(os.environ)
        if isinstance(control.tls, tuple):  # the worker uses them unless its configuration has others
            environment.update(zip(("MILLRACE_CERT", "MILLRACE_KEY", "MILLRACE_CA"), control.tls))
        if config is not None:
            command += ["--config", config]
        elif isinstance(control.tls, ssl.SSLContext):
            raise ValueError(
                "this rank's own CPUs need the certificate as files: give tls=(certificate, key, authority), "
                "or the worker's configuration (own_worker=)"
            )
        for path in files:
            command += ["--local", path]
        self._pid = os.getpid()
        self._closing = threading.Lock()
        self._said = tempfile.TemporaryFile()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                env=environment,
                start_new_session=True,  # the terminal's interrupt is for the trainer
                close_fds=True,
            )
        except OSError as e:
            self._said.close()
            raise PrivateProcessError(f"{command[0]}: it does not start: {e}") from e
        try:
            self._await(control, job, rank)
        except BaseException:
            self.close()
            raise

    @property
    def pid(self) -> int:
        """The number of the worker's process."""
        return self._process.pid

    def seconds(self) -> float:
        """Returns the CPU seconds of the worker's process, or 0 where they are not known."""
        return process_seconds(self._process.pid)

    def _await(self, control: Control, job: str, rank: int) -> None:
        end = time.monotonic() + _READY
        while time.monotonic() < end:
            status = self._process.poll()
            if status is not None:
                raise PrivateProcessError(
                    f"the worker of this rank's own CPUs ended with status {status}: {self._last_words()}"
                )
            for r in control.job(job).get("ranks") or ():
                if int(r.get("rank") or 0) == rank and int(r.get("ownWorkers") or 0) > 0:
                    return
            time.sleep(0.05)
        log.warning("job %s: this rank's own CPUs take no splits yet: the other workers begin", job)

    def _last_words(self) -> str:
        self._said.seek(0, os.SEEK_END)
        self._said.seek(max(0, self._said.tell() - _SAID))
        return self._said.read().decode(errors="replace").strip()

    def close(self) -> None:
        """Ends the worker. Its leases go back to the control plane. A second call does nothing."""
        if os.getpid() != self._pid:
            return  # in a forked child: the worker belongs to the parent
        with self._closing:
            if self._process.stdin is None or self._process.stdin.closed:
                return
            self._process.stdin.close()
            try:
                self._process.wait(_SECONDS)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
            self._said.close()
