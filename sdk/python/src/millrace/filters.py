"""Filters of feature pipelines: which rows there are.

:meth:`millrace.Pipeline.filter` takes a :class:`Filter`, and the functions of this module make one::

    from millrace import Pipeline
    from millrace.filters import column, sampling

    quarter = Pipeline().sparse("cat_*").filter(column("country", one_of=[1, 4]) & sampling("row", rate=0.25, salt=7))

``a & b`` lets a row pass if both filters do, ``a | b`` if one of them does, and ``~a`` if ``a`` does not. The functions
check nothing that the ``millrace`` binary checks; docs/pipelines.md of the repository describes filters.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, List, Mapping, Optional, Sequence, Tuple, Union

__all__ = ["Filter", "all_of", "any_of", "column", "sampling"]

Number = Union[int, float]


@dataclass(frozen=True)
class Filter:
    """A filter, or a part of one.

    Attributes:
        members: the members of the filter's mapping in a document, as (key, value) in their order. A value is a number,
            text, a truth value, a tuple of numbers or filters, a filter, or the members of a sampling.
    """

    members: Tuple[Tuple[str, Any], ...]

    def __and__(self, other: "Filter") -> "Filter":
        return all_of(self, other)

    def __or__(self, other: "Filter") -> "Filter":
        return any_of(self, other)

    def __invert__(self) -> "Filter":
        return Filter((("not", self),))

    def __bool__(self) -> bool:
        raise TypeError("a filter is neither true nor false: join filters with &, | and ~ instead of and, or and not")


def all_of(*filters: Filter) -> Filter:
    """Returns the filter that lets a row pass if every one of ``filters`` does.

    Raises:
        TypeError: an argument is not a filter.
    """
    return Filter((("all", _filters(filters)),))


def any_of(*filters: Filter) -> Filter:
    """Returns the filter that lets a row pass if at least one of ``filters`` does.

    Raises:
        TypeError: an argument is not a filter.
    """
    return Filter((("any", _filters(filters)),))


def column(
    name: str,
    *,
    eq: Optional[Number] = None,
    ne: Optional[Number] = None,
    lt: Optional[Number] = None,
    le: Optional[Number] = None,
    gt: Optional[Number] = None,
    ge: Optional[Number] = None,
    one_of: Optional[Sequence[Number]] = None,
    null: Optional[bool] = None,
) -> Filter:
    """Returns the filter of the values of a column or of a named value; every comparison that is given must hold. A row
    without a value passes only ``null=True``.

    Args:
        name: the column or value.
        eq, ne, lt, le, gt, ge: the value is equal, unequal, less, less or equal, greater, greater or equal.
        one_of: the value is one of these.
        null: whether the row has no value.

    Raises:
        TypeError: ``name`` is not text, ``one_of`` is not a list of numbers, or ``null`` neither True nor False.
    """
    if not isinstance(name, str):
        raise TypeError(f"name is {name!r}, want text")
    if null is not None and not isinstance(null, bool):
        raise TypeError(f"null is {null!r}, want True or False")
    if isinstance(one_of, (str, bytes)):
        raise TypeError(f"one_of is {one_of!r}, want numbers, as [1, 4]")
    given = {"eq": eq, "ne": ne, "lt": lt, "le": le, "gt": gt, "ge": ge}
    members: List[Tuple[str, Any]] = [("column", name)]
    members += [(key, value) for key, value in given.items() if value is not None]
    if one_of is not None:
        members.append(("in", tuple(one_of)))
    if null is not None:
        members.append(("null", null))
    return Filter(tuple(members))


def sampling(key: str, *, rate: float, salt: int = 0) -> Filter:
    """Returns the filter that keeps a share of the rows, the same rows in every run.

    Args:
        key: the column or value whose values decide, so that rows of one value stay together; ``"row"`` decides each
            row for itself.
        rate: the share of the rows to keep, 0 to 1.
        salt: another number keeps other rows.

    Raises:
        TypeError: ``key`` is not text.
    """
    if not isinstance(key, str):
        raise TypeError(f"key is {key!r}, want text")
    return Filter((("sampling", (("key", key), ("rate", float(rate)), ("salt", salt))),))


def read(document: Mapping[str, Any]) -> Filter:
    """Returns the filter of a mapping in the JSON form of a document."""
    members = []
    for key, value in document.items():
        if key in ("all", "any"):
            value = tuple(map(read, value))
        elif key == "not":
            value = read(value)
        elif key == "sampling":
            value = tuple(value.items())
        elif key == "in":
            value = tuple(value)
        members.append((key, value))
    return Filter(tuple(members))


def _filters(filters: Sequence[Filter]) -> Tuple[Filter, ...]:
    for one in filters:
        if not isinstance(one, Filter):
            raise TypeError(f"{one!r} is not a filter, as millrace.filters.column('age', ge=18) makes one")
    return tuple(filters)
