"""An operator with its parameters, as the functions of :mod:`millrace.operators` make it."""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Mapping, Tuple, Union

__all__ = ["LogSpaced", "Operator", "Pairs", "given"]

Value = Union[int, float, str, "LogSpaced", "Pairs", Tuple[Any, ...]]


@dataclass(frozen=True)
class LogSpaced:
    """Borders of buckets, evenly spaced on a logarithmic scale: ``count`` borders from ``start`` to ``stop``, both ends
    included.
    """

    start: float
    stop: float
    count: int


@dataclass(frozen=True)
class Pairs:
    """A table of whole numbers, ordered by its keys."""

    items: Tuple[Tuple[int, int], ...]


@dataclass(frozen=True)
class Operator:
    """An operator with its parameters. The functions of :mod:`millrace.operators` make them."""

    name: str
    parameters: Tuple[Tuple[str, Value], ...] = ()


def given(
    defaults: Mapping[str, Value] = MappingProxyType({}), /, **parameters: Any
) -> Tuple[Tuple[str, Value], ...]:
    """Returns the parameters that are neither None nor their defaults, as (name, value) in their order; lists become
    tuples, and mappings Pairs.
    """
    kept = []
    for name, value in parameters.items():
        default = defaults.get(name)
        if value is None or value == default and type(value) is type(default):
            continue
        if isinstance(value, (list, tuple)):
            value = tuple(value)
        elif isinstance(value, Mapping):
            value = Pairs(tuple(sorted(value.items())))
        kept.append((name, value))
    return tuple(kept)
