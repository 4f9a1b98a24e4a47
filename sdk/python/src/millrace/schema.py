"""The form of a job's mini-batches, known before the first one comes, so that a model's tables can be built."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from typing import Any

from .bounds import document
from .errors import SchemaError

__all__ = ["Key", "Schema"]

# The numbers of the types are those of the Go side (sdk/tensor: DType).
_DTYPES = {1: "float32", 2: "int32", 3: "int64", 4: "bfloat16"}


@dataclass(frozen=True)
class Key:
    """One sparse feature.

    Attributes:
        name: unique among the keys.
        num_embeddings: ids are in [0, num_embeddings); 0 when the pipeline does not bound them.
        is_list: whether a row may hold no id or several.
        set: the number, from 1, of the set of keys that are deduplicated together; 0 when the key is not deduplicated.
    """

    name: str
    num_embeddings: int = 0
    is_list: bool = False
    set: int = 0


@dataclass(frozen=True)
class Schema:
    """The tensors of every mini-batch of a job. B is the number of rows, which may be smaller in the last mini-batch of
    a partition or, with the boundary ``none``, of an epoch.

    Attributes:
        label: whether there is a label tensor, float32 [B].
        dense: names of the D dense features, in the column order of the dense tensor, [B, D] of ``dense_type``.
        keys: the sparse features, in the order of ``kjt.values``.
        ids: ``int32`` or ``int64``, the type of ``kjt.values``; unused without keys.
        weights: whether every id has a float32 weight.
        dense_type: ``float32`` or ``bfloat16``, the type of ``dense``; unused without dense features.
    """

    label: bool = False
    dense: tuple[str, ...] = ()
    keys: tuple[Key, ...] = ()
    ids: str = "int64"
    weights: bool = False
    dense_type: str = "float32"

    @property
    def fixed(self) -> bool:
        """Reports whether every row holds exactly one id of every key, so that there is no lengths tensor."""
        return not any(k.is_list for k in self.keys)

    @property
    def sets(self) -> int:
        """How many sets of keys are deduplicated."""
        return max((k.set for k in self.keys), default=0)

    def without_sets(self) -> "Schema":
        """Returns the schema of the same tensors before they are deduplicated."""
        return replace(self, keys=tuple(replace(k, set=0) for k in self.keys)) if self.sets else self

    @property
    def key_names(self) -> tuple[str, ...]:
        """The keys' names in order."""
        return tuple(k.name for k in self.keys)

    @property
    def embeddings(self) -> dict[str, int]:
        """Rows that each key's embedding table needs; 0 where the pipeline does not bound its ids."""
        return {k.name: k.num_embeddings for k in self.keys}

    def validate(self) -> "Schema":
        """Returns itself, or raises :class:`SchemaError` if the fields contradict each other or are out of range."""
        if not (self.label or self.dense or self.keys):
            raise SchemaError("no label, no dense feature and no key: nothing to train on")
        if self.keys and self.ids not in ("int32", "int64"):
            raise SchemaError(f"ids are {self.ids!r}, want int32 or int64")
        if self.dense and self.dense_type not in ("float32", "bfloat16"):
            raise SchemaError(f"dense is {self.dense_type!r}, want float32 or bfloat16")
        if self.weights and not self.keys:
            raise SchemaError("weights without keys")
        for what, names in (("dense feature", self.dense), ("key", self.key_names)):
            seen = set()
            for name in names:
                if not isinstance(name, str) or not name:
                    raise SchemaError(f"{what} {name!r}: the name is empty")
                if name in seen:
                    raise SchemaError(f"{what} {name!r} is named twice")
                seen.add(name)
        for k in self.keys:
            if type(k.num_embeddings) is not int or not 0 <= k.num_embeddings < 1 << 63:
                raise SchemaError(f"key {k.name!r} has {k.num_embeddings!r} embeddings")
        last = before = 0
        for k in self.keys:
            if type(k.set) is not int or k.set not in (0, before, last + 1):
                raise SchemaError(f"key {k.name!r} is in set {k.set!r}, want 0 or {last + 1}")
            last, before = max(last, k.set), k.set
        return self

    @classmethod
    def from_json(cls, text: str | bytes) -> "Schema":
        """Reads the control plane's form, the JSON of Go's tensor.Schema. Raises :class:`SchemaError`."""
        try:
            doc: Any = document(text)
            ids, dense_type = doc.get("IDs", 0), doc.get("DenseType", 0)
            return cls(
                label=bool(doc.get("Label", False)),
                dense=tuple(doc.get("Dense") or ()),
                keys=tuple(
                    Key(k["Name"], k.get("NumEmbeddings", 0), bool(k.get("List", False)), k.get("Set", 0))
                    for k in doc.get("Keys") or ()
                ),
                ids=_DTYPES.get(ids, ids) if ids else "int64",
                weights=bool(doc.get("Weights", False)),
                dense_type=_DTYPES.get(dense_type, dense_type) if dense_type else "float32",
            ).validate()
        except SchemaError:
            raise
        except (ValueError, TypeError, KeyError, AttributeError) as e:
            raise SchemaError(f"not the JSON of a schema: {e!r}") from e

    def to_json(self) -> str:
        """Returns the control plane's form, the JSON of Go's tensor.Schema."""
        numbers = {v: k for k, v in _DTYPES.items()}
        document = {
            "Label": self.label,
            "Dense": list(self.dense),
            "Keys": [
                {"Name": k.name, "NumEmbeddings": k.num_embeddings, "List": k.is_list, **({"Set": k.set} if k.set else {})}
                for k in self.keys
            ],
            "IDs": numbers[self.ids] if self.keys else 0,
            "Weights": self.weights,
        }
        if self.dense and self.dense_type != "float32":
            document["DenseType"] = numbers[self.dense_type]
        return json.dumps(document)
