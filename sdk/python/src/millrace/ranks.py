"""Which of the training run's ranks this process is, and which ranks share its machine."""

from __future__ import annotations

import os
import socket
import sys
from typing import Any, Mapping, NamedTuple, Optional

from .errors import RanksError

__all__ = ["Ranks", "find_ranks"]

# Variables of torchrun, and those of Open MPI with the same meaning.
_RANK = ("RANK", "OMPI_COMM_WORLD_RANK")
_WORLD = ("WORLD_SIZE", "OMPI_COMM_WORLD_SIZE")
_LOCAL_RANK = ("LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_RANK")
_LOCAL_WORLD = ("LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE")
_MOST = 1 << 16  # ranks


class Ranks(NamedTuple):
    """This process's place among the ranks.

    Attributes:
        rank: this process's number among all ranks, from 0.
        world_size: how many ranks there are.
        local_rank: this process's number among the ranks of this machine, from 0.
        local_size: how many ranks this machine has.
    """

    rank: int = 0
    world_size: int = 1
    local_rank: int = 0
    local_size: int = 1


def find_ranks(
    rank: Optional[int] = None, world_size: Optional[int] = None, env: Optional[Mapping[str, str]] = None
) -> Ranks:
    """Returns this process's place among the ranks. It comes from the arguments, else from the process group of
    ``torch.distributed``, else from the variables that torchrun or mpirun set; else this process is the only rank.

    Raises:
        RanksError: the arguments or variables contradict each other; the error names the variable.
    """
    env = os.environ if env is None else env
    if rank is not None or world_size is not None:
        return _given(rank, world_size, env)
    group = _process_group()
    if group is not None:
        return _with_local(group[0], group[1], env, "torch.distributed")
    return _from_environment(env)


def _given(rank: Optional[int], world_size: Optional[int], env: Mapping[str, str]) -> Ranks:
    if rank is None or world_size is None:
        missing = "rank" if rank is None else "world_size"
        raise RanksError(f"rank= and world_size= go together: {missing}= is missing", missing)
    for name, value in (("rank", rank), ("world_size", world_size)):
        if isinstance(value, bool) or not isinstance(value, int):
            raise RanksError(f"{name}={value!r} is not a whole number", name)
    if not 1 <= world_size <= _MOST:
        raise RanksError(f"world_size={world_size}: want 1 to {_MOST}", "world_size")
    if not 0 <= rank < world_size:
        raise RanksError(f"rank={rank} of world_size={world_size}: ranks count from 0", "rank")
    return _with_local(rank, world_size, env, "rank=")


def _process_group() -> Optional[tuple[int, int]]:
    dist: Any = sys.modules.get("torch.distributed")
    if dist is None or not dist.is_available() or not dist.is_initialized():
        return None
    return int(dist.get_rank()), int(dist.get_world_size())


def _from_environment(env: Mapping[str, str]) -> Ranks:
    rank, world = _variable(env, _RANK), _variable(env, _WORLD)
    if rank is None and world is None:
        return Ranks()
    if rank is None:
        name, value = world  # type: ignore[misc]
        if value == 1:
            return Ranks()
        raise RanksError(f"{name}={value}, and RANK does not say which of them this process is", "RANK")
    if world is None:
        raise RanksError(f"{rank[0]}={rank[1]}, and WORLD_SIZE does not say of how many", "WORLD_SIZE")
    if not 1 <= world[1] <= _MOST:
        raise RanksError(f"{world[0]}={world[1]}: want 1 to {_MOST}", world[0])
    if rank[1] >= world[1]:
        raise RanksError(f"{rank[0]}={rank[1]}, and {world[0]}={world[1]}: ranks count from 0", rank[0])
    return _with_local(rank[1], world[1], env, rank[0])


def _with_local(rank: int, world: int, env: Mapping[str, str], said_by: str) -> Ranks:
    """Adds the place among the ranks of this machine. If no variable gives the number of ranks on this machine, all
    ranks are on this machine.
    """
    local_rank, local_size = _variable(env, _LOCAL_RANK), _variable(env, _LOCAL_WORLD)
    if world == 1:
        return Ranks(rank, world)
    if local_size is None:
        if local_rank is not None and local_rank[1] != rank:
            raise RanksError(
                f"{local_rank[0]}={local_rank[1]} of rank {rank}, and LOCAL_WORLD_SIZE does not say how many ranks "
                "this machine has",
                "LOCAL_WORLD_SIZE",
            )
        return Ranks(rank, world, rank, world)
    if not 1 <= local_size[1] <= world:
        raise RanksError(f"{local_size[0]}={local_size[1]} of {world} ranks ({said_by})", local_size[0])
    if local_rank is None:
        if local_size[1] == world:
            return Ranks(rank, world, rank, world)
        raise RanksError(f"{local_size[0]}={local_size[1]}, and LOCAL_RANK is not set", "LOCAL_RANK")
    if local_rank[1] >= local_size[1]:
        raise RanksError(
            f"{local_rank[0]}={local_rank[1]}, and {local_size[0]}={local_size[1]}: ranks count from 0", local_rank[0]
        )
    return Ranks(rank, world, local_rank[1], local_size[1])


def _variable(env: Mapping[str, str], names: tuple[str, ...]) -> Optional[tuple[str, int]]:
    """Returns the first of the variables that is set, and its value; None if none is set."""
    for name in names:
        value = env.get(name)
        if value is None or value == "":
            continue
        if not (value.isascii() and value.isdigit() and len(value) < 10):
            raise RanksError(f"{name}={value[:40]!r} is not a whole number from 0", name)
        return name, int(value)
    return None


def machine() -> str:
    """Returns a name of this machine, by which ranks find out whether they are on the same machine."""
    try:
        with open("/proc/sys/kernel/random/boot_id") as f:
            return f.read().strip()
    except OSError:
        return socket.gethostname()


def check_one_machine(ranks: Ranks) -> None:
    """Raises :class:`RanksError` where the ranks are known to be on several machines."""
    if ranks.local_size < ranks.world_size:
        raise RanksError(
            f"{ranks.world_size} ranks, of which this machine has {ranks.local_size}: several machines need a control "
            'plane: millrace.open(..., control="https://...")',
            "LOCAL_WORLD_SIZE",
        )
    dist: Any = sys.modules.get("torch.distributed")
    if ranks.world_size < 2 or dist is None or not dist.is_available() or not dist.is_initialized():
        return
    if dist.get_world_size() != ranks.world_size:
        return
    store = dist.distributed_c10d._get_default_store()
    mine = machine()
    if ranks.rank == 0:
        store.set("millrace/machine", mine)
    first = bytes(store.get("millrace/machine")).decode()
    if first != mine:
        raise RanksError(
            f"rank {ranks.rank} is on another machine than rank 0: several machines need a control plane: "
            'millrace.open(..., control="https://...")',
            "RANK",
        )
