"""Files that a job of a control plane uses: vocabularies and modules, which it names by their digests, and files of
this machine that it is over.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import subprocess
from typing import Any, Callable, Literal, Mapping, Sequence

from . import binary
from .errors import FilesError

# The most bytes of one piece of a file, as millrace.proto says.
_PIECE = 512 << 10

#: Calls a method of the control plane's leader with a request, and returns the response.
Call = Callable[[str, Mapping[str, Any]], Mapping[str, Any]]


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def describe_files(names: Sequence[str]) -> dict[str, Any]:
    """Returns the OwnFiles message, in protobuf's JSON, of files, folders and patterns of this machine.

    Raises:
        FilesError: a file cannot be described.
        BinaryError: there is no ``millrace`` binary, which describes them.
    """
    done = subprocess.run([binary.find(), "worker", "describe", "--", *names], capture_output=True, check=False)
    if done.returncode != 0:
        raise FilesError(done.stderr.decode("utf-8", "replace").strip().removeprefix("millrace: "))
    return dict(json.loads(done.stdout))


class JobFile:
    """The file of a vocabulary or of a module, and the SHA-256 that names it.

    Args:
        kind: ``vocabulary`` or ``module``.
        name: the name that the pipeline gives it.
        path: where it is.

    Raises:
        FilesError: the file cannot be read.
    """

    def __init__(self, kind: Literal["vocabulary", "module"], name: str, path: str) -> None:
        self.kind = kind
        self.name = name
        self.path = path
        digest = hashlib.sha256()
        self.size = 0
        try:
            with open(path, "rb") as file:
                while piece := file.read(1 << 20):
                    digest.update(piece)
                    self.size += len(piece)
        except OSError as e:
            raise FilesError(f"{kind} {name!r}: {os.fspath(path)}: {e.strerror or e}") from e
        self.sha256 = digest.digest()

    def field(self) -> dict[str, Any]:
        """Returns JobVocabulary, or JobModule, in protobuf's JSON."""
        return {"name": self.name, "sha256": _b64(self.sha256), "bytes": str(self.size)}

    def put(self, call: Call) -> None:
        """Puts the file to the control plane, unless it is there. A repeated call goes on where an earlier one ended.

        Raises:
            FilesError: the file is not what it was when its digest was taken.
        """
        request: dict[str, Any] = {"sha256": _b64(self.sha256), "bytes": str(self.size)}
        if self.kind == "module":
            request["module"] = True
        with open(self.path, "rb") as file:
            while True:
                have = int(call("PutVocabulary", request).get("have", 0))
                if have == self.size:
                    return
                file.seek(have)
                piece = file.read(min(_PIECE, max(self.size - have, 0)))
                if not piece:
                    raise FilesError(f"{self.kind} {self.name!r}: {self.path}: it was cut while it was put")
                request.update(offset=str(have), piece=_b64(piece))
