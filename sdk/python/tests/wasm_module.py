"""A WebAssembly module for tests, which needs no compiler."""

from __future__ import annotations

#: A module whose function ``add`` adds two i64.
ADD = bytes.fromhex(
    "0061736d01000000"  # magic and version
    "01070160027e7e017e"  # types: (i64, i64) -> i64
    "03020100"  # functions: one of type 0
    "07070103616464" "0000"  # exports: add is function 0
    "0a09010700200020017c0b"  # code: local.get 0, local.get 1, i64.add
)
