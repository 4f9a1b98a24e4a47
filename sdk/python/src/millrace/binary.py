"""Where the ``millrace`` binary of this machine is."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Optional

from .errors import BinaryError


def find() -> str:
    """Returns the path of the ``millrace`` binary: the one that ``MILLRACE_BIN`` names, else the one that this
    package's wheel holds, else the one on the ``PATH``.

    Raises:
        BinaryError: there is none, or the one that ``MILLRACE_BIN`` names is not a program.
    """
    named = os.environ.get("MILLRACE_BIN")
    if named:
        if not os.access(named, os.X_OK):
            raise BinaryError(f"MILLRACE_BIN is {named}, which is not a program")
        return named
    held = Path(__file__).parent / "_bin" / "millrace"
    if os.access(held, os.X_OK):
        return str(held)
    found = _on_path()
    if found is None:
        raise BinaryError(
            "there is no millrace binary: this package was installed without one (its wheels hold one: make wheel), "
            "none is on the PATH, and MILLRACE_BIN names none"
        )
    return found


_COMMAND = b"millrace.binary"  # stands in the command that pip makes of main


def _on_path() -> Optional[str]:
    """Returns the first ``millrace`` on the PATH that is a program and not this package's own command, since that
    command calls this module.
    """
    for folder in os.get_exec_path():
        candidate = os.path.join(folder or ".", "millrace")
        if not os.path.isfile(candidate) or not os.access(candidate, os.X_OK):
            continue
        with open(candidate, "rb") as f:
            if _COMMAND not in f.read(4096):
                return candidate
    return None


def main() -> int:
    """The command ``millrace`` of this package: replaces this process by the binary, with the same arguments. Returns
    the exit status 1 if there is no binary, and otherwise does not return.
    """
    try:
        program = find()
    except BinaryError as e:
        print(f"millrace: {e}", file=sys.stderr)
        return 1
    os.execv(program, ["millrace", *sys.argv[1:]])
