"""Checks of the arguments of :func:`millrace.open`, before they are sent anywhere."""

from __future__ import annotations

import difflib
import operator
import os
from typing import Any, Iterable, Mapping, Optional, Sequence, Tuple, Union

from .errors import OptionsError, PipelineError, PipelineProblem

__all__ = ["choice", "document", "name", "named_paths", "paths", "patterns", "split", "unknown", "whole"]

Path = Union[str, "os.PathLike[str]"]
#: A part of the rows: ``train`` or ``validation``, the share of ``train``, the seed, and the column whose values are
#: drawn. The last two may be left out.
Split = Union[Tuple[str, float], Tuple[str, float, int], Tuple[str, float, int, Optional[str]]]


def whole(name: str, value: Any, least: int, most: int) -> Optional[int]:
    """Returns a whole number from ``least`` to ``most``, or None for None.

    Raises:
        OptionsError: the value is something else. NumPy's integers are whole numbers, True and 1.0 are not.
    """
    if value is None:
        return None
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or not least <= number <= most:
        raise OptionsError(f"{name}={value!r}: want a whole number from {least} to {most}", name)
    return number


def choice(name: str, value: Any, choices: Sequence[str]) -> Optional[str]:
    """Returns one of the choices, or None for None.

    Raises:
        OptionsError: the value is something else.
    """
    if value is None or value in choices:
        return None if value is None else str(value)
    raise OptionsError(f"{name}={value!r}: want {', '.join(choices[:-1])} or {choices[-1]}", name)


def name(what: str, value: Any) -> Optional[str]:
    """Returns a name, or None for None.

    Raises:
        OptionsError: the value is empty, or no text.
    """
    if value is None or (isinstance(value, str) and value):
        return value
    raise OptionsError(f"{what}={value!r}: want a name", what)


# Names that other loaders have for arguments of :func:`millrace.open`, and what to use in their place.
_ELSEWHERE = {
    "batch_size": "batch= is the rows of a mini-batch",
    "drop_last": 'tail="drop" leaves out short last mini-batches',
    "num_workers": "threads= is how many engine threads there are",
    "pin_memory": "device= stages mini-batches in pinned memory",
    "prefetch_factor": "prefetch= stages mini-batches ahead of the loop",
}


def unknown(name: str, known: Iterable[str]) -> str:
    """Returns what to say of an argument that :func:`millrace.open` does not have."""
    near = difflib.get_close_matches(name, list(known), 1)
    instead = _ELSEWHERE.get(name) or (f"did you mean {near[0]}=?" if near else "help(millrace.open) lists them")
    return f"{name}=: millrace.open has no argument of that name: {instead}"


def paths(files: Union[Path, Iterable[Path]]) -> tuple[str, ...]:
    """Returns the names of files, folders and patterns as text, in the order given.

    Raises:
        OptionsError: ``files`` is empty, holds an empty name, or holds something that is not a path.
    """
    listed: Iterable[Any] = (files,) if isinstance(files, (str, os.PathLike)) else files
    try:
        names = tuple(os.fspath(name) for name in listed)
    except TypeError:
        names = None
    if names is None or not all(isinstance(name, str) and name for name in names):
        raise OptionsError(f"files={files!r}: want a path or a pattern, or a list of them", "files")
    if not names:
        raise OptionsError("files: the list is empty: name at least one file, folder or pattern", "files")
    return names


def patterns(name: str, values: Union[None, str, Iterable[str]]) -> Optional[list[str]]:
    """Returns patterns of names of files, in the order given, or None for none.

    Raises:
        OptionsError: ``values`` is neither a pattern nor a list of patterns.
    """
    if values is None:
        return None
    try:
        listed: Optional[list[str]] = [values] if isinstance(values, str) else list(values)
    except TypeError:
        listed = None
    if listed is None or not all(isinstance(value, str) and value for value in listed):
        raise OptionsError(f"{name}={values!r}: want a pattern of names of files, or a list of them", name)
    return listed or None


def split(value: Any) -> Optional[str]:
    """Returns a part of the rows in the form of the binary's flag ``--split``, or None for None.

    Raises:
        OptionsError: the value is something else than a :data:`Split`, or a member of it is out of range.
    """
    if value is None:
        return None
    if not isinstance(value, (tuple, list)) or not 2 <= len(value) <= 4:
        raise OptionsError(
            f"split={value!r}: want (part, rate), (part, rate, seed) or (part, rate, seed, column), as "
            '("train", 0.9, 7)',
            "split",
        )
    members: list[Any] = [*value, *(0, None)[len(value) - 2 :]]
    part, rate, seed, by = members
    if not isinstance(part, str) or part not in ("train", "validation"):
        raise OptionsError(f'split={value!r}: the part is {part!r}, want "train" or "validation"', "split")
    try:
        share = float("nan") if isinstance(rate, (bool, str, bytes)) else float(rate)
    except (TypeError, ValueError):
        share = float("nan")
    if not 0 < share < 1:
        raise OptionsError(
            f"split={value!r}: the rate is {rate!r}, want a number of more than 0 and less than 1: it is the share of "
            'the rows in the part "train", whichever part is taken',
            "split",
        )
    try:
        seed = whole("seed", seed, 0, (1 << 64) - 1)
    except OptionsError as e:
        raise OptionsError(f"split={value!r}: {e}", "split") from None
    if by is not None and (not isinstance(by, str) or not by):
        raise OptionsError(f"split={value!r}: the column is {by!r}, want a name, or None to draw each row", "split")
    return f"{part}:{share!r}:{seed or 0}" + ("" if by is None else f":{by}")


def named_paths(name: str, files: Optional[Mapping[str, Path]]) -> Optional[dict[str, str]]:
    """Returns the names of files as text, by the names that they are given, or None for None.

    Raises:
        OptionsError: ``files`` is not a mapping of text to paths.
    """
    if files is None:
        return None
    if not isinstance(files, Mapping):
        raise OptionsError(f"{name}={files!r}: want a mapping of names to files", name)
    given = {key: os.fspath(path) if isinstance(path, (str, os.PathLike)) else None for key, path in files.items()}
    if not all(isinstance(key, str) and key and isinstance(path, str) and path for key, path in given.items()):
        raise OptionsError(f"{name}={files!r}: want a mapping of names to files", name)
    return {key: str(path) for key, path in given.items()}


def document(pipeline: Any) -> tuple[str, str]:
    """Returns the pipeline's YAML document, or the name of a built-in pipeline, and where the document comes from: the
    path of the file that was read, or the built-in pipeline's name, or "" for a document in memory.

    Raises:
        PipelineError: the file cannot be read, or is not UTF-8.
        OptionsError: ``pipeline`` is neither text, nor a path, nor a :class:`~millrace.Pipeline`.
    """
    if hasattr(pipeline, "to_yaml"):
        return pipeline.to_yaml(), ""
    if not isinstance(pipeline, (str, os.PathLike)):
        raise OptionsError(
            f"pipeline={pipeline!r}: want a built-in pipeline's name, a YAML file's path, a YAML document, or a "
            "millrace.Pipeline",
            "pipeline",
        )
    name = os.fspath(pipeline)
    if isinstance(pipeline, str) and ("\n" in name or not os.path.isfile(name)):
        if "\n" in name or not name.endswith((".yaml", ".yml")):
            return name, "" if "\n" in name else name
    try:
        with open(name, encoding="utf-8") as f:
            return f.read(), name
    except (OSError, UnicodeDecodeError) as e:
        why = e.strerror if isinstance(e, OSError) and e.strerror else str(e)
        raise PipelineError([PipelineProblem(f"pipeline {name}: {why}")]) from e
