"""TorchRec's own KeyedJaggedTensor, where TorchRec as a whole does not load."""

from __future__ import annotations

import contextlib
import importlib
import os
import sys
import types
import unittest
from typing import Any, Iterator
from unittest import mock

import torch

from millrace import tensors


@contextlib.contextmanager
def keyed_jagged_tensor() -> Iterator[Any]:
    """Yields the class KeyedJaggedTensor of the TorchRec that is installed, or of the one in the folder
    ``MILLRACE_TORCHREC``.

    From that folder only the module with the class is imported, and not the package around it, which needs a GPU
    library and, for Debian's torch, an older Python. This function defines the one operator of that library that the
    class uses.
    """
    if tensors._KeyedJaggedTensor is not None:
        yield tensors._KeyedJaggedTensor
        return
    folder = os.environ.get("MILLRACE_TORCHREC")
    if not folder:
        raise unittest.SkipTest("torchrec is not installed, and MILLRACE_TORCHREC names none")
    package = types.ModuleType("torchrec")
    package.__path__ = [os.path.join(folder, "torchrec")]
    sparse = types.ModuleType("torchrec.sparse")
    sparse.__path__ = [os.path.join(folder, "torchrec", "sparse")]
    library = torch.library.Library("fbgemm", "DEF")
    library.define("asynchronous_complete_cumsum(Tensor lengths) -> Tensor")
    library.impl(
        "asynchronous_complete_cumsum",
        lambda lengths: torch.cat([lengths.new_zeros(1), torch.cumsum(lengths, 0, dtype=lengths.dtype)]),
        "CPU",
    )
    with mock.patch.dict(sys.modules):  # restores all modules at the end
        sys.modules.update({"torchrec": package, "torchrec.sparse": sparse})
        module = importlib.import_module("torchrec.sparse.jagged_tensor")
        with mock.patch.object(tensors, "_KeyedJaggedTensor", module.KeyedJaggedTensor):
            yield module.KeyedJaggedTensor
    del library
