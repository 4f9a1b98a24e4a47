"""Finds the training run that this process belongs to.

A mini-batch that one run acknowledged is not delivered to another. The control plane refuses a run that would
unknowingly continue where another run stopped. So all ranks of a run, and the processes that a rank starts, must give
the same name, and no two runs may give the same name. :func:`default_run` finds such a name, in this order:

1. ``MILLRACE_RUN`` of the environment.
2. The launcher that started the ranks of one machine (torchrun, mpirun): this process's parent. torchrun's
   ``TORCHELASTIC_RUN_ID`` alone does not distinguish two runs: its value is "none", or a text that the user gives to
   the next run, too. A restart by torchrun is another run: its model starts from nothing, or from a checkpoint, which
   brings its state.
3. The process group of ``torch.distributed``: the first rank that asks leaves a name in its store for the others.
4. Otherwise this process and the processes that it starts by ``multiprocessing``, which share a random key.

Ranks that are started one by one on several machines, before there is a process group, share no name, which is an
error.
"""

from __future__ import annotations

import hashlib
import os
import sys
import uuid
from multiprocessing.process import current_process, parent_process
from typing import Any, Mapping, Optional

from .errors import MillraceError

__all__ = ["default_run"]

_found: Optional[str] = None  # the name that this process, or the process that it was forked from, found first


def default_run() -> str:
    """Returns the name of this process's run, the same at every call.

    Raises:
        MillraceError: there are several ranks, and nothing that they share names their run.
    """
    global _found
    named = os.environ.get("MILLRACE_RUN")
    if named:
        return named
    if _found is None:
        _found = _find(os.environ)
    return _found


def _find(env: Mapping[str, str]) -> str:
    world = max(_count(env, "WORLD_SIZE"), _count(env, "OMPI_COMM_WORLD_SIZE"))
    found = _launcher(env) if world > 1 else None
    if found is None:
        found = _process_group()
    if found is None and world > 1:
        raise MillraceError(
            f"this process is one of {world} ranks, and nothing says which run they are: "
            "call torch.distributed.init_process_group first, "
            "or give all ranks of the run the same run= or MILLRACE_RUN, and every run another one"
        )
    return found or _name("process", bytes(current_process().authkey).hex())


def _name(kind: str, *parts: str) -> str:
    return f"{kind}-" + hashlib.sha256("\0".join(("millrace run", *parts)).encode()).hexdigest()[:24]


def _count(env: Mapping[str, str], name: str) -> int:
    value = env.get(name, "")
    return int(value) if value.isascii() and value.isdigit() and len(value) < 10 else 0


def _launcher(env: Mapping[str, str]) -> Optional[str]:
    """Returns a name that the ranks of one launcher on this machine share; None if no launcher started this process, or
    if the run has ranks on other machines.
    """
    if parent_process() is not None:
        return None  # a rank started this process: the parent is that rank, not the launcher
    # The parent of a process with WORLD_SIZE from another source may be a shell, which starts one run after the other.
    launchers = (
        ("TORCHELASTIC_RUN_ID", "WORLD_SIZE", "LOCAL_WORLD_SIZE"),
        ("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE"),
    )
    if not any(
        env.get(mark) and _count(env, size) > 1 and _count(env, size) == _count(env, local)
        for mark, size, local in launchers
    ):
        return None
    parent = os.getppid()
    try:
        with open("/proc/sys/kernel/random/boot_id") as f:
            boot = f.read()
        with open(f"/proc/{parent}/stat") as f:
            # The command's name stands in parentheses and may hold any character. The start time is the 20th field
            # after it.
            started = f.read().rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return None
    return _name("launcher", boot, str(parent), started, env.get("TORCHELASTIC_RESTART_COUNT", ""))


def _process_group() -> Optional[str]:
    """Returns a name that the ranks of the default process group share; None where there is no process group."""
    dist: Any = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized() or dist.get_world_size() < 2:
        return None
    store = dist.distributed_c10d._get_default_store()
    if store.add("millrace/run/asked", 1) == 1:
        store.set("millrace/run/name", uuid.uuid4().hex)
    return _name("group", bytes(store.get("millrace/run/name")).decode())
