"""Feature pipelines, built in Python.

A pipeline says which columns of a data set become the label, dense features and keys, and through which operators::

    from millrace import Pipeline
    from millrace.operators import bucketize, clamp, fill_null, log, sigrid_hash
    from millrace.pipeline import LogSpaced

    rm1 = (
        Pipeline("rm1", batch=8192, ids="int32")
        .label("label", null=0)
        .dense("int_0..int_12", ops=[fill_null(0), clamp(min=0), log(add=1)])
        .sparse("cat_0..cat_25", ops=[fill_null(0), sigrid_hash(max=500_000)])
        .generated(
            "int_0..int_12",
            name="bucket_{n}",
            ops=[fill_null(0), bucketize(LogSpaced(1, 1e6, 1024)), sigrid_hash(max=500_000)],
        )
    )

It is the same as the YAML document that :meth:`Pipeline.to_yaml` writes, and makes the same job. What operators compute
and accept is decided by the ``millrace`` binary and the control plane, never here: :meth:`Pipeline.check` asks the
binary, and an error names the line of Python where the group was added. docs/pipelines.md of the repository describes
documents, docs/operators.md operators.
"""

from __future__ import annotations

import json
import keyword
import math
import operator
import os
import re
import subprocess
import sys
from dataclasses import dataclass, field, replace
from typing import Any, Callable, Iterable, List, Literal, Mapping, Optional, Sequence, Tuple, Union

from . import arguments, binary, filters, operators
from .errors import PipelineError, PipelineProblem
from .filters import Filter
from .operation import LogSpaced, Operator, Pairs, given

__all__ = [
    "Checked",
    "CheckedKey",
    "Group",
    "Label",
    "LogSpaced",
    "NamedStatistics",
    "NamedValue",
    "Operator",
    "Pipeline",
    "Vocabulary",
]

_Number = Union[int, float]
_Columns = Union[str, Sequence[str]]


@dataclass(frozen=True)
class Place:
    """A line of a Python file, or of a document.

    Attributes:
        file: the file's path.
        line: the line's number, from 1.
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True)
class Label:
    """The column that the model is to predict.

    Attributes:
        column: its name.
        ops: the operators from the column to the tensor.
        place: the line of Python that added it; None for a label of a document.
    """

    column: str
    ops: Tuple[Operator, ...] = ()
    place: Optional[Place] = field(default=None, compare=False)


@dataclass(frozen=True)
class Group:
    """Columns that share a chain of operators; the attributes are the arguments of :meth:`Pipeline.sparse`.

    Attributes:
        place: the line of Python that added the group; None for a group of a document.
    """

    columns: Tuple[str, ...]
    ops: Tuple[Operator, ...] = ()
    name: str = ""
    scores: Literal["keep", "drop"] = "keep"
    place: Optional[Place] = field(default=None, compare=False)
    deduplicate: bool = False
    inputs: Tuple[str, ...] = ()
    absent: Literal["fail", "allow"] = "fail"
    nan: Literal["fail", "keep"] = "fail"


@dataclass(frozen=True)
class NamedValue:
    """An intermediate value; the attributes are the arguments of :meth:`Pipeline.value`.

    Attributes:
        place: the line of Python that added the value; None for a value of a document.
    """

    name: str
    column: str = ""
    inputs: Tuple[str, ...] = ()
    ops: Tuple[Operator, ...] = ()
    place: Optional[Place] = field(default=None, compare=False)
    absent: Literal["fail", "allow"] = "fail"


@dataclass(frozen=True)
class Vocabulary:
    """A vocabulary that operators name; the attributes are the arguments of :meth:`Pipeline.vocabulary`.

    Attributes:
        place: the line of Python that added the vocabulary; None for a vocabulary of a document.
    """

    name: str
    rules: Tuple[Tuple[str, Union[int, str, bool]], ...] = ()
    place: Optional[Place] = field(default=None, compare=False)


@dataclass(frozen=True)
class NamedStatistics:
    """Statistics that operators name; the attributes are the arguments of :meth:`Pipeline.statistics`.

    Attributes:
        values: the numbers of each value, by their keys; None where a summary is to give them.
        summary: the SHA-256 of the summary that they come from, in hex digits; empty if they come from none.
        place: the line of Python that added the statistics; None for those of a document.
    """

    name: str
    values: Optional[Tuple[Tuple[str, Tuple[Tuple[str, _Number], ...]], ...]] = None
    summary: str = ""
    place: Optional[Place] = field(default=None, compare=False)


@dataclass(frozen=True)
class CheckedKey:
    """A key of the mini-batches that a pipeline makes of files.

    Attributes:
        name: the key.
        num_embeddings: rows of its embedding table; 0 if the operators do not bound its ids.
        list: whether a row may have no id, or several.
    """

    name: str
    num_embeddings: int
    list: bool


@dataclass(frozen=True)
class Checked:
    """What :meth:`Pipeline.check` found. Without files only ``name`` is known.

    Attributes:
        name: the pipeline's name.
        label: whether mini-batches have a label.
        dense: the names of the dense features, in the order of the dense tensor's columns.
        keys: the keys, in their order.
        canonical: the canonical form, in JSON: the pipeline's part of a job's identity.
        digest: the SHA-256 of the canonical form, in 64 hex digits.
        notes: remarks about parts that are allowed and may be mistakes.
    """

    name: str
    label: bool = False
    dense: Tuple[str, ...] = ()
    keys: Tuple[CheckedKey, ...] = ()
    canonical: str = ""
    digest: str = ""
    notes: Tuple[str, ...] = ()


class Pipeline:
    """A feature pipeline. Each method that adds something returns the pipeline itself.

    Args:
        name: for people; not part of a job's identity.
        batch: rows of a mini-batch.
        ids: the type of sparse values: ``"int64"``; ``"int32"``, which is refused unless every id provably fits; or
            ``"auto"``, which is ``"int32"`` where every id provably fits.
        dense_type: the type of dense features: ``"float32"``, or ``"bfloat16"``, to which the float32 is rounded.
    """

    def __init__(
        self,
        name: str = "",
        *,
        batch: int = 8192,
        ids: Literal["int64", "int32", "auto"] = "int64",
        dense_type: Literal["float32", "bfloat16"] = "float32",
    ) -> None:
        self.name = name
        self.batch = batch
        self.ids = ids
        self.dense_type = dense_type
        self.label_column: Optional[Label] = None
        self.values: List[NamedValue] = []
        self.dense_groups: List[Group] = []
        self.sparse_groups: List[Group] = []
        self.generated_groups: List[Group] = []
        self.vocabularies: List[Vocabulary] = []
        self.named_statistics: List[NamedStatistics] = []
        self._filters: List[Tuple[Filter, Optional[Place]]] = []

    def label(
        self,
        column: str,
        *,
        null: Optional[_Number] = None,
        nan: Optional[_Number] = None,
        ops: Iterable[Operator] = (),
    ) -> "Pipeline":
        """Sets the column that becomes the label, float32 [B].

        Args:
            column: the column's name.
            null: the value that replaces a null label; None refuses a column that may hold one.
            nan: the value that replaces a NaN; None refuses rows that hold one. An infinity is refused, too, unless
                ``clamp`` bounds it.
            ops: operators, from the column to the tensor.

        Raises:
            TypeError: an argument is of another type.
        """
        chain = _operators(ops)
        if nan is not None:
            chain = (Operator("fill_nan", given(value=nan)), *chain)
        if null is not None:
            chain = (Operator("fill_null", given(value=null)), *chain)
        self.label_column = Label(_text(column, "column"), chain, _caller())
        return self

    def value(
        self,
        name: str,
        column: str = "",
        *,
        inputs: Sequence[str] = (),
        ops: Iterable[Operator] = (),
        absent: Literal["fail", "allow"] = "fail",
    ) -> "Pipeline":
        """Adds an intermediate value, which groups and other values name as they name columns.

        Args:
            name: the value's name, which no column may have.
            column: the column or value that it is made of.
            inputs: instead, several columns and values, which the first operator takes together, such as
                :func:`~millrace.operators.cartesian`.
            ops: operators, from the column or inputs to the value.
            absent: ``"allow"`` makes a column that a file lacks a null column there; ``"fail"`` refuses such files.

        Raises:
            TypeError: an argument is of another type.
        """
        names = _names(inputs, "inputs")
        self.values.append(
            NamedValue(
                _text(name, "name"), _text(column, "column"), names, _operators(ops), _caller(), _absent(absent)
            )
        )
        return self

    def dense(
        self,
        columns: _Columns = (),
        *,
        ops: Iterable[Operator] = (),
        name: str = "",
        inputs: Sequence[str] = (),
        absent: Literal["fail", "allow"] = "fail",
        nan: Literal["fail", "keep"] = "fail",
    ) -> "Pipeline":
        """Adds columns that become columns of the dense tensor [B, D], of the pipeline's ``dense_type``.

        Args:
            columns: a name or a pattern (``"int_0..int_12"``, ``"int_*"``, ``"features[1..40]"``), or several.
            ops: operators, from the column to the tensor.
            name: names the features: ``{column}``, ``{n}`` (the number at the end of the column's name, or the key in a
                map), ``{i}`` (the index in the group); the column's name if empty.
            inputs: instead of ``columns``, several columns and values of which one feature is made, called ``name``:
                the first operator takes them together.
            absent: ``"allow"`` makes a column that a file lacks a null column there, for which ``fill_null`` must have
                a value; ``"fail"`` refuses such files.
            nan: ``"keep"`` lets a NaN into the tensor; ``"fail"`` refuses rows with one. The operator ``fill_nan``
                replaces a NaN.

        Raises:
            TypeError: an argument is of another type.
        """
        group = _group(columns, ops, name, "keep", _caller(), inputs=inputs, absent=absent)
        self.dense_groups.append(replace(group, nan=_nan(nan)))
        return self

    def sparse(
        self,
        columns: _Columns = (),
        *,
        ops: Iterable[Operator] = (),
        name: str = "",
        scores: Literal["keep", "drop"] = "keep",
        deduplicate: bool = False,
        inputs: Sequence[str] = (),
        absent: Literal["fail", "allow"] = "fail",
    ) -> "Pipeline":
        """Adds columns that become keys. The arguments are those of :meth:`dense`, and:

        Args:
            scores: ``"keep"`` makes the scores of scored lists weights; ``"drop"`` leaves them out.
            deduplicate: whether mini-batches hold each different row of these keys, taken together, once.

        Raises:
            TypeError: an argument is of another type.
        """
        self.sparse_groups.append(_group(columns, ops, name, scores, _caller(), deduplicate, inputs, absent))
        return self

    def generated(
        self,
        columns: _Columns = (),
        *,
        ops: Iterable[Operator] = (),
        name: str = "",
        scores: Literal["keep", "drop"] = "keep",
        deduplicate: bool = False,
        inputs: Sequence[str] = (),
        absent: Literal["fail", "allow"] = "fail",
    ) -> "Pipeline":
        """Adds keys that operators such as :func:`~millrace.operators.bucketize` make from columns of other kinds.
        These keys come after those of :meth:`sparse`. Arguments and errors are those of :meth:`sparse`.
        """
        self.generated_groups.append(_group(columns, ops, name, scores, _caller(), deduplicate, inputs, absent))
        return self

    def vocabulary(
        self,
        name: str,
        *,
        order: Literal["first_seen", "count", "count_text"] = "first_seen",
        joint: bool = False,
        base: int = 0,
        null_id: Optional[int] = None,
        rare_id: Optional[int] = None,
        oov_buckets: int = 0,
        min_count: int = 1,
        max_size: Optional[int] = None,
        unknown: Optional[Literal["error", "id", "bucket", "drop"]] = None,
    ) -> "Pipeline":
        """Adds a vocabulary, which the operator :func:`~millrace.operators.vocabulary` names. ``millrace vocabulary
        build`` makes its file, and ``millrace.open(vocabularies=)`` takes the file.

        Args:
            name: the name of the vocabulary.
            order: ``"first_seen"``: ids by first appearance; ``"count"``: the most frequent first, ties by the lesser
                value; ``"count_text"``: ties by the greater decimal text, as TensorFlow Transform has it.
            joint: whether all columns share one table of ids.
            base: the id of the first place.
            null_id: the id of a row without a value, in a column that has one value a row; None gives such a row no id.
            rare_id: the id of values that the vocabulary lacks.
            oov_buckets: how many ids just below ``base`` values that the vocabulary lacks are hashed to.
            min_count: how often a value occurs that gets a place.
            max_size: the most places of a table; None does not bound them.
            unknown: what becomes of a value that the vocabulary lacks: ``"error"`` fails the split, ``"id"`` gives
                ``rare_id``, ``"bucket"`` one of ``oov_buckets``, ``"drop"`` leaves it out. None: ``"bucket"`` if there
                are buckets, else ``"id"`` if there is a ``rare_id``, else ``"error"``.

        Raises:
            TypeError: an argument is of another type.
        """
        if not isinstance(joint, bool):
            raise TypeError(f"joint is {joint!r}, want True or False")
        rules: List[Tuple[str, Union[int, str, bool]]] = []
        for key, default, value in (
            ("order", "first_seen", _text(order, "order")),
            ("joint", False, joint),
            ("base", 0, _whole(base, "base")),
            ("null_id", None, None if null_id is None else _whole(null_id, "null_id")),
            ("rare_id", None, None if rare_id is None else _whole(rare_id, "rare_id")),
            ("oov_buckets", 0, _whole(oov_buckets, "oov_buckets")),
            ("min_count", 1, _whole(min_count, "min_count")),
            ("max_size", None, None if max_size is None else _whole(max_size, "max_size")),
            ("unknown", None, None if unknown is None else _text(unknown, "unknown")),
        ):
            if value is not None and value != default:
                rules.append((key, value))
        self.vocabularies.append(Vocabulary(_text(name, "name"), tuple(rules), _caller()))
        return self

    def statistics(
        self, name: str, values: Optional[Mapping[str, Mapping[str, _Number]]] = None, *, summary: str = ""
    ) -> "Pipeline":
        """Adds statistics, which the operators :func:`~millrace.operators.normalize`,
        :func:`~millrace.operators.min_max`, :func:`~millrace.operators.fill_median` and
        :func:`~millrace.operators.target_encoding` name. ``millrace dataset summarize`` makes their summary, and
        ``millrace.open(statistics=)`` takes it.

        Args:
            name: the name of the statistics.
            values: the numbers themselves, by column, as ``{"age": {"mean": 41.5, "deviation": 9.25, "min": 0}}``; the
                others are ``max`` and ``median``. None where a summary is to give them.
            summary: the SHA-256 of the summary that ``values`` come from, in hex digits.

        Raises:
            TypeError: an argument is of another type.
        """
        numbers = None
        if values is not None:
            numbers = tuple((_text(column, "a column"), tuple(of.items())) for column, of in values.items())
        name, summary = _text(name, "name"), _text(summary, "summary")
        self.named_statistics.append(NamedStatistics(name, numbers, summary, _caller()))
        return self

    @property
    def row_filter(self) -> Optional[Filter]:
        """The filter that keeps rows: the filters of all calls of :meth:`filter` together; None keeps all rows."""
        chosen = [one for one, _ in self._filters]
        return filters.all_of(*chosen) if len(chosen) > 1 else next(iter(chosen), None)

    def filter(self, chosen: Filter) -> "Pipeline":
        """Keeps the rows that pass a filter, and the filters of earlier calls. Without a filter there are all rows.

        Args:
            chosen: the filter, as the functions of :mod:`millrace.filters` make one.

        Raises:
            TypeError: ``chosen`` is not a filter.
        """
        if not isinstance(chosen, Filter):
            raise TypeError(f"{chosen!r} is not a filter, as millrace.filters.column('age', ge=18) makes one")
        self._filters.append((chosen, _caller()))
        return self

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Pipeline):
            return NotImplemented
        return self.to_yaml() == other.to_yaml()

    __hash__ = None  # type: ignore[assignment]  # a pipeline can be changed

    def __repr__(self) -> str:
        return f"<Pipeline {self.name!r}: {len(self._groups())} groups>"

    def _groups(self) -> List[Tuple[str, int, Group]]:
        """Every group with the list that it stands in and its index there, in the document's order."""
        return [
            (kind, i, group)
            for kind, groups in (
                ("dense", self.dense_groups),
                ("sparse", self.sparse_groups),
                ("generated", self.generated_groups),
            )
            for i, group in enumerate(groups)
        ]

    def to_yaml(self) -> str:
        """Returns the pipeline as a YAML document, which ``--pipeline``, :meth:`from_yaml` and ``Control.submit`` read.
        Raises TypeError if a parameter of an operator is of another type than a number, text or borders.
        """
        lines = []
        if self.name:
            lines.append(f"name: {_yaml_text(_text(self.name, 'name'))}")
        lines.append(f"batch: {_yaml(self.batch)}")
        if self.ids != "int64":
            lines.append(f"ids: {_yaml_text(_text(self.ids, 'ids'))}")
        if self.dense_type != "float32":
            lines.append(f"dense_type: {_yaml_text(_text(self.dense_type, 'dense_type'))}")
        if self.label_column is not None:
            ops = f", ops: {_yaml_ops(self.label_column.ops)}" if self.label_column.ops else ""
            lines.append(f"label: {{column: {_yaml_text(self.label_column.column)}{ops}}}")
        for i, value in enumerate(self.values):
            if i == 0:
                lines.append("values:")
            lines.append(f"  - as: {_yaml_text(value.name)}")
            if value.inputs:
                lines.append(f"    inputs: [{', '.join(map(_yaml_text, value.inputs))}]")
            if value.column:
                lines.append(f"    from: {_yaml_text(value.column)}")
            if value.absent != "fail":
                lines.append(f"    absent: {_yaml_text(value.absent)}")
            if value.ops:
                lines.append(f"    ops: {_yaml_ops(value.ops)}")
        for kind, i, group in self._groups():
            if i == 0:
                lines.append(f"{kind}:")
            key = "  - "
            if group.columns or not group.inputs:
                lines.append(f"  - columns: [{', '.join(map(_yaml_text, group.columns))}]")
                key = "    "
            if group.inputs:
                lines.append(f"{key}inputs: [{', '.join(map(_yaml_text, group.inputs))}]")
            if group.name:
                lines.append(f"    as: {_yaml_text(group.name)}")
            if group.scores != "keep":
                lines.append(f"    scores: {_yaml_text(group.scores)}")
            if group.deduplicate:
                lines.append("    deduplicate: true")
            if group.absent != "fail":
                lines.append(f"    absent: {_yaml_text(group.absent)}")
            if group.nan != "fail":
                lines.append(f"    nan: {_yaml_text(group.nan)}")
            if group.ops:
                lines.append(f"    ops: {_yaml_ops(group.ops)}")
        for i, vocabulary in enumerate(self.vocabularies):
            if i == 0:
                lines.append("vocabularies:")
            rules = ", ".join(f"{key}: {_yaml_rule(value)}" for key, value in vocabulary.rules)
            lines.append(f"  {_yaml_text(vocabulary.name)}: {{{rules}}}")
        if self.named_statistics:
            lines.append(f"statistics: {{{', '.join(map(_yaml_statistics, self.named_statistics))}}}")
        if self.row_filter is not None:
            lines.append(f"filter: {_yaml_filter(self.row_filter)}")
        return "\n".join(lines) + "\n"

    @classmethod
    def from_yaml(cls, document: Union[str, "os.PathLike[str]"]) -> "Pipeline":
        """Reads a document, with the ``millrace`` binary.

        Args:
            document: a file's path, the text of a document, or the name of a pipeline that ships with Millrace, as
                ``"rm1"``. An argument that is not a file's path is text if it holds a colon or a line end.

        Raises:
            PipelineError: the document has errors, or cannot be read.
            BinaryError: there is no ``millrace`` binary.
        """
        name = os.fspath(document)
        if isinstance(document, os.PathLike) or os.path.isfile(name):
            answer, place = _ask([name], ""), name
        elif "\n" in name or ":" in name:
            answer, place = _ask(["-"], name), ""
        else:
            answer, place = _ask([name], ""), ""
        _raise_problems(answer, lambda path: None, place)
        return cls._from_document(json.loads(answer["document"]))

    @classmethod
    def _from_document(cls, document: Mapping[str, Any]) -> "Pipeline":
        """Reads the JSON form of a document that was checked."""
        p = cls(
            document.get("name", ""),
            batch=document["batch"],
            ids=document.get("ids", "int64"),
            dense_type=document.get("dense_type", "float32"),
        )
        label = document.get("label")
        if label is not None:
            p.label_column = Label(label["column"], _read_ops(label))
        for v in document.get("values", ()):
            inputs = tuple(v.get("inputs", ()))
            absent = v.get("absent", "fail")
            p.values.append(NamedValue(v["as"], v.get("from", ""), inputs, _read_ops(v), absent=absent))
        for kind, groups in (
            ("dense", p.dense_groups),
            ("sparse", p.sparse_groups),
            ("generated", p.generated_groups),
        ):
            for g in document.get(kind, ()):
                groups.append(
                    Group(
                        tuple(g.get("columns", ())),
                        _read_ops(g),
                        g.get("as", ""),
                        g.get("scores", "keep"),
                        deduplicate=g.get("deduplicate", False),
                        inputs=tuple(g.get("inputs", ())),
                        absent=g.get("absent", "fail"),
                        nan=g.get("nan", "fail"),
                    )
                )
        for name, rules in (document.get("vocabularies") or {}).items():
            p.vocabularies.append(Vocabulary(name, tuple((rules or {}).items())))
        for name, of in (document.get("statistics") or {}).items():
            values = (of or {}).get("values")
            numbers = None if values is None else tuple((value, tuple(n.items())) for value, n in values.items())
            p.named_statistics.append(NamedStatistics(name, numbers, (of or {}).get("summary", "")))
        if document.get("filter") is not None:
            p._filters.append((filters.read(document["filter"]), None))
        return p

    def check(
        self,
        *files: Union[str, "os.PathLike[str]"],
        vocabularies: Optional[Mapping[str, arguments.Path]] = None,
        statistics: Optional[Mapping[str, arguments.Path]] = None,
        modules: Optional[Mapping[str, arguments.Path]] = None,
        split: Optional[arguments.Split] = None,
    ) -> Checked:
        """Checks the pipeline with the ``millrace`` binary: by itself, or against files.

        Args:
            files: files, folders or patterns of one data set; none checks the pipeline by itself.
            vocabularies: the files of the pipeline's vocabularies, by name. A check against files needs all of them.
            statistics: the summaries of the pipeline's statistics, by name. A check against files needs all of them.
            modules: the WebAssembly modules that operators name, by name. A check against files needs all of them.
            split: the part of the rows, as in :func:`millrace.open`.

        Raises:
            PipelineError: the pipeline has errors, each with the line of Python that added the group; or the files
                cannot be read.
            OptionsError: ``vocabularies``, ``statistics`` or ``modules`` is not a mapping of names to files, or
                ``split`` is not a part.
            BinaryError: there is no ``millrace`` binary.
        """
        named = ["--in=" + _csv(os.fspath(f)) for f in files]
        named += _flags("vocabulary", arguments.named_paths("vocabularies", vocabularies))
        named += _flags("statistics", arguments.named_paths("statistics", statistics))
        named += _flags("wasm", arguments.named_paths("modules", modules))
        named += split_flags(split)
        answer = _ask(["-", *named], self.to_yaml())
        _raise_problems(answer, self.locate)
        return Checked(
            name=answer["name"],
            label=answer["label"],
            dense=tuple(answer.get("dense") or ()),
            keys=tuple(CheckedKey(**key) for key in answer.get("keys") or ()),
            canonical=answer.get("canonical", ""),
            digest=answer.get("pipeline_sha256", ""),
            notes=tuple(answer.get("notes") or ()),
        )

    def locate(self, path: str) -> Optional[Place]:
        """Returns the line of Python that added the part at a path of the document, such as ``dense[0].ops[1]``; None
        if that line is not known.
        """
        if re.match(r"label\b", path) and self.label_column is not None:
            return self.label_column.place
        found = re.match(r"(values|dense|sparse|generated)\[(\d+)\]", path)
        for vocabulary in sorted(self.vocabularies, key=lambda v: -len(v.name)):  # a name may hold a dot
            if (path + ".").startswith(f"vocabularies.{vocabulary.name}."):
                return vocabulary.place
        for one in sorted(self.named_statistics, key=lambda s: -len(s.name)):
            if (path + ".").startswith(f"statistics.{one.name}."):
                return one.place
        part = re.match(r"filter\b(?:\.all\[(\d+)\])?", path)
        if part and self._filters:
            several = len(self._filters) > 1 and part[1] is not None
            return self._filters[int(part[1]) if several else -1][1]
        if found and found[1] == "values" and int(found[2]) < len(self.values):
            return self.values[int(found[2])].place
        for kind, i, group in self._groups():
            if found and (kind, i) == (found[1], int(found[2])):
                return group.place
        return None

    def explain(self, message: str, filters: bool = True) -> str:
        """Returns a control plane's error message about the pipeline's document with the lines of Python that added the
        groups in the message, and with those of the filters if ``filters``.
        """

        def with_place(found: "re.Match[str]") -> str:
            place = self.locate(found[1])
            return f"{place}: {found[1]}" if place else found[0]

        names = "".join(rf"|vocabularies\.{re.escape(v.name)}(?![\w-])" for v in self.vocabularies)
        names += "".join(rf"|statistics\.{re.escape(s.name)}(?![\w-])" for s in self.named_statistics)
        if filters and self.row_filter is not None:
            names += r"|filter\b(?=[.:\[])"
        path = rf"(?:line \d+:\d+: )?\b((?:label\b|(?:values|dense|sparse|generated)\[\d+\]{names})[\w\[\].]*)"
        return re.sub(path, with_place, message)


def _caller() -> Optional[Place]:
    """Returns the line outside this module that called into it."""
    frame = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename == __file__:
        frame = frame.f_back  # type: ignore[assignment]
    return None if frame is None else Place(frame.f_code.co_filename, frame.f_lineno)


def _text(value: Any, what: str) -> str:
    if not isinstance(value, str):
        raise TypeError(f"{what} is {value!r}, want text")
    return value


def _whole(value: Any, what: str) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise TypeError(f"{what} is {value!r}, want a whole number")
    return operator.index(value)


def _operators(ops: Iterable[Operator]) -> Tuple[Operator, ...]:
    chain = (ops,) if isinstance(ops, Operator) else tuple(ops)
    for op in chain:
        if not isinstance(op, Operator):
            raise TypeError(f"ops holds {op!r}, want operators, as millrace.operators.fill_null(0) makes one")
    return chain


def _group(
    columns: _Columns,
    ops: Iterable[Operator],
    name: str,
    scores: Any,
    place: Optional[Place],
    deduplicate: bool = False,
    inputs: Sequence[str] = (),
    absent: Any = "fail",
) -> Group:
    if not isinstance(deduplicate, bool):
        raise TypeError(f"deduplicate is {deduplicate!r}, want True or False")
    names = (columns,) if isinstance(columns, str) else tuple(columns)
    for column in names:
        _text(column, "a column")
    scores = _text(scores, "scores")
    together = _names(inputs, "inputs")
    return Group(names, _operators(ops), _text(name, "name"), scores, place, deduplicate, together, _absent(absent))


def _absent(absent: Any) -> Any:
    """Returns whether partitions may lack columns."""
    return _text(absent, "absent")


def _nan(nan: Any) -> Any:
    """Returns what a group does with a NaN."""
    return _text(nan, "nan")


def _names(names: Sequence[str], what: str) -> Tuple[str, ...]:
    """Returns names as a tuple."""
    if isinstance(names, str):
        raise TypeError(f"{what} is {names!r}, want several names, as ['a', 'b']")
    return tuple(_text(name, "an input") for name in names)


_PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_.]*")
_WORDS = {"y", "n", "yes", "no", "on", "off", "true", "false", "null"}


def _yaml_text(text: str) -> str:
    """Returns text as YAML: plain if every YAML reader reads it as text, and in double quotes otherwise."""
    if _PLAIN.fullmatch(text) and text.lower() not in _WORDS:
        return text
    quoted = []
    for c in text:
        if c in '"\\':
            quoted.append("\\" + c)
        elif not c.isprintable() or 0xD800 <= ord(c) <= 0xDFFF:
            quoted.append(f"\\U{ord(c):08x}")
        else:
            quoted.append(c)
    return '"' + "".join(quoted) + '"'


def _yaml(value: Any) -> str:
    """Returns a parameter's value as YAML."""
    if isinstance(value, str):
        return _yaml_text(value)
    if isinstance(value, LogSpaced):
        start, stop = _yaml(float(value.start)), _yaml(float(value.stop))
        return f"{{log_spaced: {{from: {start}, to: {stop}, count: {_yaml(value.count)}}}}}"
    if isinstance(value, Pairs):
        return "{" + ", ".join(f"{_yaml(key)}: {_yaml(of)}" for key, of in value.items) + "}"
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_yaml, value)) + "]"
    if isinstance(value, bool):
        raise TypeError(f"{value!r} as a parameter: want a number, text, borders or a table")
    if isinstance(value, int) or hasattr(value, "__index__"):
        return str(int(value))
    if isinstance(value, float) or hasattr(value, "__float__"):
        return _yaml_real(float(value))
    raise TypeError(f"{value!r} as a parameter: want a number, text, borders or a table")


def _yaml_filter(of: Filter) -> str:
    """Returns a filter as YAML."""
    return "{" + ", ".join(f"{_yaml_text(key)}: {_yaml_of_filter(value)}" for key, value in of.members) + "}"


def _yaml_of_filter(value: Any) -> str:
    """Returns the value of a member of a filter as YAML."""
    if isinstance(value, Filter):
        return _yaml_filter(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple) and value and isinstance(value[0], Filter):
        return "[" + ", ".join(map(_yaml_filter, value)) + "]"
    if isinstance(value, tuple) and value and isinstance(value[0], tuple):
        return "{" + ", ".join(f"{key}: {_yaml(of)}" for key, of in value) + "}"
    return _yaml(value)


def _yaml_statistics(of: NamedStatistics) -> str:
    """Returns statistics as a member of a YAML mapping."""
    members = []
    if of.summary:
        members.append(f"summary: {_yaml_text(of.summary)}")
    if of.values is not None:
        values = []
        for value, numbers in of.values:
            written = ", ".join(f"{_yaml_text(key)}: {_yaml(number)}" for key, number in numbers)
            values.append(f"{_yaml_text(value)}: {{{written}}}")
        members.append(f"values: {{{', '.join(values)}}}")
    return f"{_yaml_text(of.name)}: {{{', '.join(members)}}}"


def _flags(flag: str, files: Optional[Mapping[str, str]]) -> List[str]:
    """Returns the flags of files with names."""
    return [f"--{flag}={name}={path}" for name, path in (files or {}).items()]


def _yaml_rule(value: Union[int, str, bool]) -> str:
    """Returns the value of a vocabulary's rule as YAML."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return _yaml(value)


def _yaml_real(x: float) -> str:
    if math.isnan(x):
        return ".nan"
    if math.isinf(x):
        return ".inf" if x > 0 else "-.inf"
    mantissa, e, exponent = repr(x).partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return mantissa + e + exponent


def _yaml_ops(ops: Sequence[Operator]) -> str:
    items = []
    for op in ops:
        parameters = ", ".join(f"{_yaml_text(name)}: {_yaml(value)}" for name, value in op.parameters)
        items.append(f"{_yaml_text(op.name)}: {{{parameters}}}")
    return "[" + ", ".join(items) + "]"


def _read_ops(of: Mapping[str, Any]) -> Tuple[Operator, ...]:
    """Returns the operators of the JSON form of a label or a group."""
    chain = []
    for op in of.get("ops", ()):
        ((name, parameters),) = op.items()
        types = getattr(operators, name).__annotations__ if name in operators.__all__ else {}
        read = {key: _read_value(value, types.get(key) == "TextTable") for key, value in parameters.items()}
        # A newer binary may know more operators than this package.
        if name not in operators.__all__:
            chain.append(Operator(name, given(**read)))
            continue
        # A parameter whose name is a word of Python has an underscore behind it.
        named = {key + "_" if keyword.iskeyword(key) else key: value for key, value in read.items()}
        chain.append(getattr(operators, name)(**named))
    return tuple(chain)


def _read_value(value: Any, texts: bool) -> Any:
    """Returns a parameter of the JSON form. The keys of a mapping are numbers, unless it is a table of texts."""
    if texts:
        return value
    if isinstance(value, dict) and "log_spaced" not in value:
        return {int(key): of for key, of in value.items()}
    if isinstance(value, dict):
        spaced = value["log_spaced"]
        return LogSpaced(spaced["from"], spaced["to"], spaced["count"])
    return value


def _csv(path: str) -> str:
    """Returns a path in the form of the flag --in, which takes several paths separated by commas."""
    if any(c in path for c in ',"\n\r'):
        return '"' + path.replace('"', '""') + '"'
    return path


def _ask(arguments: List[str], document: str) -> Mapping[str, Any]:
    """Runs ``millrace pipeline check`` and returns its answer.

    Raises:
        PipelineError: the command failed for another reason than errors of the pipeline.
    """
    done = subprocess.run(
        [binary.find(), "pipeline", "check", "--output", "json", *arguments],
        input=document.encode("utf-8", "replace"),
        capture_output=True,
        check=False,
    )
    if done.stdout.strip():
        answer = json.loads(done.stdout)
        if done.returncode == 0 or answer.get("errors"):
            return dict(answer)
    message = done.stderr.decode("utf-8", "replace").strip()
    raise PipelineError([PipelineProblem(message.removeprefix("millrace: "))])


def split_flags(split: Optional[arguments.Split]) -> List[str]:
    """Returns the flag of a part of the rows; none for all rows.

    Raises:
        OptionsError: ``split`` is not a part.
    """
    part = arguments.split(split)
    return [] if part is None else [f"--split={part}"]


def bound(
    text: str,
    built: Optional[Pipeline],
    summaries: Optional[Mapping[str, str]] = None,
    split: Optional[arguments.Split] = None,
) -> str:
    """Returns a pipeline's document with the numbers of summaries for its statistics, and of a part of the rows.

    Args:
        text: a document, or the name of a pipeline that ships with Millrace.
        built: the pipeline that the document was made of, if it was.
        summaries: the paths of the summaries, by the name of the statistics.
        split: the part; None takes all rows.

    Raises:
        OptionsError: ``split`` is not a part.
        PipelineError: the pipeline has errors, or no statistics of a name; or a summary cannot be read.
        BinaryError: there is no ``millrace`` binary.
    """
    name = "-" if "\n" in text or ":" in text else text
    answer = _ask([name, *_flags("statistics", summaries), *split_flags(split)], text)
    _raise_problems(answer, built.locate if built is not None else lambda path: None)
    return str(answer["document"])


def _raise_problems(answer: Mapping[str, Any], locate: Callable[[str], Optional[Place]], document: str = "") -> None:
    """Raises the errors of an answer, each with the line of Python or the line of the document that was read."""
    problems = []
    for error in answer.get("errors") or ():
        place = locate(error["path"])
        if place is None and document:
            place = Place(document, error["line"])
        problems.append(
            PipelineProblem(
                message=error["message"],
                path=error["path"],
                file=place.file if place else "",
                line=place.line if place else error["line"] or None,
            )
        )
    if problems:
        raise PipelineError(problems)
