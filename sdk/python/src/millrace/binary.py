"""Where the ``millrace`` binary of this machine is."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from .errors import BinaryError


def find() -> str:
    """The path of the ``millrace`` binary: the one that ``MILLRACE_BIN`` names, else the one that this package's wheel
    holds, else the one on the ``PATH``.

    Raises:
        BinaryError: there is none.
    """
    named = os.environ.get("MILLRACE_BIN")
    if named:
        if not os.access(named, os.X_OK):
            raise BinaryError(f"MILLRACE_BIN is {named}, which is no program")
        return named
    held = Path(__file__).parent / "_bin" / "millrace"
    if os.access(held, os.X_OK):
        return str(held)
    found = shutil.which("millrace")
    if found is None:
        raise BinaryError(
            "there is no millrace binary: this package was installed without one (its wheels hold one: make wheel), "
            "none is on the PATH, and MILLRACE_BIN names none"
        )
    return found
