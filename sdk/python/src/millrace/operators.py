# Made of fpga/operator and sdk/pipeline by "go generate ./sdk/pipeline". Do not edit.
"""The operators of feature pipelines, one function each; see docs/operators.md of the repository.

Each function returns an :class:`~millrace.pipeline.Operator` for the ``ops`` of a group
of :class:`~millrace.pipeline.Pipeline`. An ``int`` is a whole number, exact to 64 bits; a
``float`` is a real number, which columns of integers refuse.
"""

from __future__ import annotations

from typing import Literal, Mapping, Sequence, Union

from .operation import LogSpaced, Operator, given

Number = Union[int, float]
Borders = Union[Sequence[Number], LogSpaced]
Table = Union[Mapping[int, int], Sequence[int]]
TextTable = Mapping[str, int]

__all__ = [
    "box_cox",
    "bucketize",
    "cartesian",
    "cast",
    "clamp",
    "compute_score",
    "decimal",
    "enumerate",
    "fill_median",
    "fill_nan",
    "fill_null",
    "firstx",
    "fixed_length",
    "get_local_hour",
    "hash_bucket",
    "hash_bytes",
    "hash_cross",
    "hex_to_int",
    "id_list_transform",
    "identity",
    "list_length",
    "list_slice",
    "log",
    "logit",
    "map_id",
    "map_text",
    "min_max",
    "ngram",
    "normalize",
    "onehot",
    "positive_modulus",
    "scores",
    "sigrid_hash",
    "split",
    "target_encoding",
    "text_to_int",
    "text_to_seconds",
    "to_days",
    "to_seconds",
    "unpack",
    "unsigned_modulus",
    "vocabulary",
    "wasm",
    "with_scores",
    "zero_extend",
]


def box_cox(lambda1: Number, *, lambda2: Number = 0, mode: Literal["caffe2", "rap"] = "caffe2") -> Operator:
    """The correctly rounded float32 of (t^``lambda1`` - 1) / ``lambda1``, or of ln t where ``lambda1`` is 0. With mode
    ``caffe2``, t is the value plus ``lambda2``, rounded once to float32, but 1e-6 if that is below 1e-6. With mode
    ``rap``, t is the value, and values that are not above 0 stay as they are.

    Takes float32; int64 and float64 become float32 (nearest, ties to even); yields float32. Nulls: stay null.

    Args:
        lambda1: the power; rounded to float32
        lambda2: added first; rounded to float32; 0 with mode ``rap``
        mode: which number is transformed
    """
    return Operator("box_cox", given({"lambda2": 0, "mode": "caffe2"}, lambda1=lambda1, lambda2=lambda2, mode=mode))


def bucketize(borders: Borders, *, side: Literal["left", "right"] = "left", nan: Literal["torcharrow", "first", "last", "error"] = "torcharrow", compare: Literal["float32", "float64", "int64"] = "float32") -> Operator:
    """The number of the bucket that a value falls into, 0 to the number of borders.

    Takes int64, float32, float64, converted to ``compare`` (nearest, ties to even); ``int64`` takes int64 alone; yields
    int64. Nulls: stay null.

    Args:
        borders: a list of numbers that does not decrease, or ``{log_spaced: {from, to, count}}``
        side: bucket of a value on a border: the one below it (left) or above it (right)
        nan: bucket of a NaN; ``torcharrow`` is 0 with one border, else 1; ``error`` fails the split
        compare: type in which value and border are compared
    """
    return Operator("bucketize", given({"side": "left", "nan": "torcharrow", "compare": "float32"}, borders=borders,
    side=side, nan=nan, compare=compare))


def cartesian(*, max_length: int = 1024, overflow: Literal["cut", "fail"] = "cut") -> Operator:
    """Takes two inputs and makes an id of every pair of an id of the first and an id of the second, row-major: the hash
    that ``sigrid_hash`` computes before its modulus, of the second id with the first as its salt.

    Takes two inputs of int64, scalars or lists; yields int64: a scalar if both inputs are scalars, else lists; end with
    ``sigrid_hash`` or ``positive_modulus``. Nulls: a null, or a list that holds a null, has no ids, so that the row
    makes none.

    Args:
        max_length: most ids of a row, at most 65536
        overflow: what becomes of a row with more: ``cut`` keeps the first ids, ``fail`` refuses the row
    """
    return Operator("cartesian", given({"max_length": 1024, "overflow": "cut"}, max_length=max_length,
    overflow=overflow))


def cast(to: Literal["int64", "float32", "float64", "float64_bits"], *, overflow: Literal["fail", "as_null"] = "fail") -> Operator:
    """Makes numbers of another type. ``int64`` drops the fraction of a real number, which rounds it towards 0: 2.9 is
    2, and -2.9 is -2. ``float32`` and ``float64`` are the nearest number, ties to even; beyond the largest float32 that
    is an infinity. ``float64_bits`` is the 64 bits of the number as float64, read as an int64, so that equal numbers
    are equal ids: -0 has the bits of 0, and every NaN those of 7ff8000000000000h.

    Takes int64, a uint64 up to 2^64 - 1, float32, float64. A DECIMAL is its value, as ``decimal`` makes it: float32 for
    ``float32``, and float64 for the others. Partitions that differ in the type of a number are float64, too; yields
    ``to``. Nulls: stay null; ``overflow: as_null`` makes new ones.

    Args:
        to: the type
        overflow: what becomes of a NaN, and of a number that is not an int64 without its fraction, for ``int64`` (-2^63
            is one, and 2^63 is not): ``fail`` fails the split, ``as_null`` makes a null of it
    """
    return Operator("cast", given({"overflow": "fail"}, to=to, overflow=overflow))


def clamp(*, min: Union[Number, None] = None, max: Union[Number, None] = None) -> Operator:
    """Bounds values: below ``min`` gives ``min``, above ``max`` gives ``max``. ``clamp: {min: 0}`` is Piper's Neg2Zero.

    Takes int64, float32, float64; yields the same. Nulls: stay null.

    Args:
        min: lower bound; none when left out
        max: upper bound; none when left out
    """
    return Operator("clamp", given(min=min, max=max))


def compute_score(function: Literal["has_id_overlap", "id_overlap_count", "get_max_count", "get_jaccard_similarity", "get_cosine_similarity", "get_score_sum", "get_score_min", "get_score_max"], *, zero_norm: Literal["fail", "zero"] = "fail") -> Operator:
    """Compares two lists of ids, which may have scores, and makes one number a row. The functions are TorchArrow's.
    ``has_id_overlap``: 1 if an id is in both lists, else 0. ``id_overlap_count``: how many ids are in both, each as
    often as in the list that has it less often; ``get_max_count``: as often as in the list that has it more often.
    ``get_jaccard_similarity``: c / (n + m - c) of the overlap count c and the lists' lengths, NaN if both are empty.
    ``get_cosine_similarity``: of the sums of the scores of each id. ``get_score_sum``, ``get_score_min``,
    ``get_score_max``: of the matching scores whose ids are in the first list, 0 without one.

    Takes ids, matching ids; ``get_score_sum``, ``get_score_min`` and ``get_score_max``: ids, matching ids, matching
    scores; ``get_cosine_similarity``: ids, scores, matching ids, matching scores. Ids are int64; scores float32, or
    int64 and float64, which become float32; yields float32: the nearest to the exact value of the whole expression,
    ties to even. No order of ids changes it. Nulls: a null, or a list that holds a null, has no ids or scores; a side
    whose ids or scores are none has neither. The result is never null.

    Args:
        function: what is computed
        zero_norm: what becomes of a row without a cosine, since the scores of a side have the norm 0, as of an empty
            list: ``fail`` fails the split, ``zero`` makes it 0
    """
    return Operator("compute_score", given({"zero_norm": "fail"}, function=function, zero_norm=zero_norm))


def decimal(to: Literal["float32", "float64", "int64"]) -> Operator:
    """Reads a DECIMAL: its unscaled integer divided by ten to the power of its scale, rounded once to ``float32`` or
    ``float64``, or the unscaled integer itself as ``int64``.

    Takes DECIMAL of at most 76 digits, kept as INT32, INT64, BYTE_ARRAY or FIXED_LEN_BYTE_ARRAY; yields float32 or
    float64, the nearest, ties to even; beyond the largest float32 an infinity. int64: the unscaled integer, exactly.
    Nulls: stay null; for decimals kept as integers ``fill_null`` may come first, with an unscaled integer.

    Args:
        to: kind of the number
    """
    return Operator("decimal", given(to=to))


def enumerate() -> Operator:
    """Gives each id of a list its position as its score: 0, 1, 2 and so on. The scores become the weights of the ids
    (``kjt.weights``), or numbers by ``scores``.

    Takes int64; yields the same ids, with scores: float32, the position rounded to the nearest, ties to even. Nulls: a
    null, or a list that holds a null, becomes a list without ids.
    """
    return Operator("enumerate", given())


def fill_median(statistics: str) -> Operator:
    """Replaces a null by the median of the other values: the value of rank floor((n - 1) / 2), counted from 0, if a
    column of a partition, and the whole, have at most 2,048 distinct values; otherwise a value of the column whose rank
    differs from that by less than 1 % of n, and by less than 0.1 % as a rule. It becomes ``fill_null`` with that
    constant.

    Takes int64, float32, float64; yields the same. Nulls: become the median; from here on there are none.

    Args:
        statistics: one of the document's ``statistics``: the quantile 0.5 of the value that the operator takes
    """
    return Operator("fill_median", given(statistics=statistics))


def fill_nan(value: Number) -> Operator:
    """Replaces a NaN by a constant, whatever its sign and payload. A NaN is a value and not a null, as in Polars and
    Spark: pandas and NVTabular, which count it as a null, need ``fill_null`` and ``fill_nan`` here. A NaN that ends in
    a dense feature or in the label is refused: put ``fill_nan`` behind what makes it, or write ``nan: keep`` in the
    group.

    Takes int64, float32, float64; int64 has no NaN, and passes as it is; yields the same. Nulls: stay null.

    Args:
        value: what a NaN becomes; for float32 columns rounded to float32
    """
    return Operator("fill_nan", given(value=value))


def fill_null(value: Number) -> Operator:
    """Replaces a null by a constant.

    Takes int64, float32, float64; yields the same. Nulls: become ``value``; from here on there are none.

    Args:
        value: what a null becomes; for float32 columns rounded to float32
    """
    return Operator("fill_null", given(value=value))


def firstx(n: int) -> Operator:
    """Keeps the first ``n`` elements of a list.

    Takes lists of int64, float32, float64; yields the same. Nulls: a null list stays null.

    Args:
        n: elements to keep; 0 keeps none
    """
    return Operator("firstx", given(n=n))


def fixed_length(length: int, *, pad: Union[Number, None] = None) -> Operator:
    """Makes ``length`` neighbouring dense columns of a list of ``length`` numbers, as embeddings are kept. The columns
    of a feature ``x`` are named ``x.0``, ``x.1`` and so on. It ends the operators of a dense list.

    Takes lists of float32; of int64 and float64, which become float32 (nearest, ties to even); yields float32,
    ``length`` for every row. Nulls: a null list, and a list that holds a null (fill it first), have no values.

    Args:
        length: values of every list
        pad: fills up shorter lists, and null lists; rounded to float32. When left out, every list must have ``length``
            values
    """
    return Operator("fixed_length", given(length=length, pad=pad))


def get_local_hour(*, zone: Union[str, None] = None, offset: Union[str, None] = None, changes: Union[Table, None] = None) -> Operator:
    """The hour of the day, 0 to 23, of a time in seconds since 1970-01-01 00:00:00 UTC, at a place: floorMod(t +
    offset, 86400) / 3600. ``zone`` is a name of the IANA database, whose rules for the years 1900 to 2100 become a
    table in the program and so a part of the job's identity; the first offset of the table holds before, and the last
    behind.

    Takes int64: seconds; yields int64 in [0, 24). Nulls: stay null.

    Args:
        zone: name of a time zone, as ``Europe/Berlin``
        offset: instead of ``zone``, clocks that never change: hours and minutes ahead of UTC, as ``+02:00``
        changes: seconds since 1970 to offsets in seconds, from -2^63 on: the table of ``zone``. A control plane writes
            it into the pipeline of a job, so that all machines use the same
    """
    return Operator("get_local_hour", given(zone=zone, offset=offset, changes=changes))


def hash_bucket(buckets: int) -> Operator:
    """Hashes an id into [0, ``buckets``): SplitMix64's finaliser of the id's 64 bits, and the remainder of that
    unsigned number.

    Takes int64; yields int64 in [0, ``buckets``). Nulls: stay null.

    Args:
        buckets: number of ids that come out: the rows of the embedding table
    """
    return Operator("hash_bucket", given(buckets=buckets))


def hash_bytes(function: Literal["xxh3", "murmur3_32", "farmhash64"]) -> Operator:
    """Hashes the bytes of a value to an id, so that text can serve as a category. ``xxh3`` is XXH3 of 64 bits with the
    seed 0. ``murmur3_32`` is Spark's ``hash`` of a string, sign-extended. ``farmhash64`` is FarmHash's Fingerprint64,
    which TensorFlow's ``string_to_hash_bucket_fast`` and BigQuery's ``FARM_FINGERPRINT`` use.

    Takes bytes: text, enumerations, JSON, BSON, UUID; yields int64, also negative: unsigned hashes are read as int64;
    for ``murmur3_32`` an int32. End with ``unsigned_modulus``, ``positive_modulus`` or ``sigrid_hash``. Nulls: stay
    null; an empty string has a hash.

    Args:
        function: hash function
    """
    return Operator("hash_bytes", given(function=function))


def hash_cross(buckets: int) -> Operator:
    """Takes several inputs and hashes an id of each together into [0, ``buckets``): the exclusive or of their hashes,
    each SplitMix64's finaliser of the id's 64 bits, and the remainder of that unsigned number. The order of the inputs
    does not count, and equal ids cancel: ``cartesian`` has neither property.

    Takes 2 to 8 inputs of int64, one value a row; yields int64 in [0, ``buckets``). Nulls: null if one of the inputs
    is.

    Args:
        buckets: number of ids that come out: the rows of the embedding table
    """
    return Operator("hash_cross", given(buckets=buckets))


def hex_to_int() -> Operator:
    """Reads 1 to 8 hexadecimal digits as an unsigned 32-bit number.

    Takes bytes; yields int64 in [0, 2^32). Nulls: stay null; an empty string becomes null.
    """
    return Operator("hex_to_int", given())


def id_list_transform() -> Operator:
    """Takes two inputs and keeps the ids of the first that are in the second, each once, in the order in which they
    first occur: the intersection of two lists.

    Takes two inputs of int64, scalars or lists; yields lists of int64. Nulls: a null, or a list that holds a null, has
    no ids, so that the row keeps none.
    """
    return Operator("id_list_transform", given())


def identity() -> Operator:
    """Changes nothing; it says on purpose that a column goes as it is.

    Takes anything; yields the same. Nulls: stay null.
    """
    return Operator("identity", given())


def list_length() -> Operator:
    """Counts the elements of a list, so that the length of a history or the number of tags is a feature.

    Takes lists of anything: int64, float32, float64, bytes, ids with scores; yields int64, one value a row, at least 0;
    dense features convert it to float32 (nearest, ties to even). Ids are not bounded: end keys with ``clamp``,
    ``bucketize``, ``positive_modulus`` or a hash. Nulls: a null list has the length 0, and so has a list that holds a
    null, which is an empty list to every operator; put ``fill_null`` first to count the nulls of a list of numbers. The
    result is never null.
    """
    return Operator("list_length", given())


def list_slice(*, start: int = 0, end: Union[int, None] = None, pad: Union[Number, None] = None) -> Operator:
    """Keeps a part of a list, which is Python's ``list[start:end]``: numbers below 0 count from the list's end. With
    ``pad``, lists whose part is shorter are filled up at their end, so that all lists have one length.

    Takes lists of int64, float32, float64; yields the same. Nulls: a null list stays null; with ``pad`` it counts as an
    empty one, and so does a list with a null element.

    Args:
        start: first element of the part
        end: the element behind the part; the list's end when left out
        pad: what fills lists up, to at most 1024 elements; nothing does when left out
    """
    return Operator("list_slice", given({"start": 0}, start=start, end=end, pad=pad))


def log(*, add: Number = 0) -> Operator:
    """The correctly rounded float32 of ln(x + ``add``), where x + ``add`` is rounded once in float32.

    Takes float32; int64 and float64 become float32 (nearest, ties to even); yields float32. Nulls: stay null.

    Args:
        add: added first; rounded to float32
    """
    return Operator("log", given({"add": 0}, add=add))


def logit(*, eps: Number = 1.0e-06) -> Operator:
    """The correctly rounded float32 of ln(t / (1 - t)), where t is the value clamped to [``eps``, 1 - ``eps``].

    Takes float32; int64 and float64 become float32 (nearest, ties to even); yields float32. Nulls: stay null.

    Args:
        eps: rounded to float32, and so is 1 - ``eps``; at most 0.5. Below 0: nothing is clamped
    """
    return Operator("logit", given({"eps": 1.0e-06}, eps=eps))


def map_id(table: Table, *, default: int = 0) -> Operator:
    """Replaces an id by the value of its key in a table, and by ``default`` if the table lacks the id. A list is a
    table whose keys are 0, 1, 2 and so on.

    Takes int64; yields int64: the values and ``default``. Nulls: stay null.

    Args:
        table: ``{key: value}`` or a list of values, at most 1048576
        default: what an id becomes that the table lacks
    """
    return Operator("map_id", given({"default": 0}, table=table, default=default))


def map_text(table: TextTable, *, default: Union[int, None] = None, unknown: Literal["fail", "as_null"] = "fail") -> Operator:
    """Replaces a text by the value of its key in a table, as labels and small categories are kept. Texts are compared
    byte for byte: nothing is trimmed, folded or normalised.

    Takes bytes: text; yields int64: the values and ``default``. Nulls: stay null; an empty text is a text, which may be
    a key.

    Args:
        table: ``{text: value}``, at most 65536 texts of at most 4096 bytes of UTF-8; texts that YAML reads as something
            else, as ``1`` or ``true``, in quotes
        default: what a text becomes that the table lacks
        unknown: what a text that the table lacks does without a ``default``: ``fail`` the split, or become a null,
            ``as_null``
    """
    return Operator("map_text", given({"unknown": "fail"}, table=table, default=default, unknown=unknown))


def min_max(*, min: Union[Number, None] = None, max: Union[Number, None] = None, statistics: Union[str, None] = None) -> Operator:
    """The correctly rounded float32 of (x - ``min``) / (``max`` - ``min``), or of x / 2x where both are one number. x
    is a float32, ``min`` and ``max`` are float64, and nothing is rounded between. Nothing is clamped.

    Takes float32; int64 and float64 become float32 (nearest, ties to even); yields float32. Nulls: stay null.

    Args:
        min: becomes 0
        max: becomes 1; at least ``min``
        statistics: instead of both, one of the document's ``statistics``: the least and the greatest of the values that
            the operator takes
    """
    return Operator("min_max", given(min=min, max=max, statistics=statistics))


def ngram(n: int, *, mode: Literal["fold", "rap"] = "fold") -> Operator:
    """Replaces a list by one id for every window of ``n`` consecutive ids. A window's ids are folded by the hash of
    ``sigrid_hash`` before its modulus: the first id with the salt 0, each further one with the hash so far as its salt.

    Takes lists of int64; yields lists of int64; end with ``sigrid_hash`` or ``positive_modulus``. Nulls: a null list
    stays null.

    Args:
        n: ids of a window, at most 16
        mode: ``rap`` lists the ids of all windows instead, one window behind the other
    """
    return Operator("ngram", given({"mode": "fold"}, n=n, mode=mode))


def normalize(*, mean: Union[Number, None] = None, deviation: Union[Number, None] = None, statistics: Union[str, None] = None) -> Operator:
    """The correctly rounded float32 of (x - ``mean``) / ``deviation``, or of x - ``mean`` where ``deviation`` is 0. x
    is a float32, ``mean`` and ``deviation`` are float64, and nothing is rounded between.

    Takes float32; int64 and float64 become float32 (nearest, ties to even); yields float32. Nulls: stay null.

    Args:
        mean: subtracted
        deviation: divides; at least 0
        statistics: instead of both, one of the document's ``statistics``: the mean and the deviation of the value that
            the operator takes
    """
    return Operator("normalize", given(mean=mean, deviation=deviation, statistics=statistics))


def onehot(classes: int, *, lower: Union[Number, None] = None, upper: Union[Number, None] = None) -> Operator:
    """Makes ``classes`` neighbouring dense columns of a value: 1 for its class, and 0 for the others. The columns of a
    feature ``x`` are named ``x.0``, ``x.1`` and so on. The class of an id is its number, and an id that is not a class
    has none. With ``lower`` and ``upper`` the value is a real number, and its class the part that holds it of
    ``classes`` equal parts of that range: trunc((x - ``lower``) / ((``upper`` - ``lower``) / ``classes``)), each
    operation rounded to float32; ``upper`` itself is of the last class, and what lies outside is of class 0. It ends
    the operators of a dense feature.

    Takes int64; with ``lower`` and ``upper`` float32, and int64 and float64, which become float32 (nearest, ties to
    even); yields float32, ``classes`` for every row. Nulls: are of no class.

    Args:
        classes: number of columns, at most 4096
        lower: where the range of class 0 begins; rounded to float32. When left out, values are ids
        upper: where the range of the last class ends; rounded to float32
    """
    return Operator("onehot", given(classes=classes, lower=lower, upper=upper))


def positive_modulus(modulus: int) -> Operator:
    """The modulus that is never negative, in [0, ``modulus``).

    Takes int64; yields int64 in [0, ``modulus``). Nulls: stay null.

    Args:
        modulus: number of ids that come out
    """
    return Operator("positive_modulus", given(modulus=modulus))


def scores() -> Operator:
    """Takes the scores of ids as numbers, for ``compute_score``, ``with_scores`` or the operators of lists of numbers.
    Operators that take ids take ids with scores too, and leave the scores behind.

    Takes ids with scores, as ``enumerate``, ``with_scores`` and maps make them; yields lists of float32, as long as
    those of the ids. Nulls: there are none.
    """
    return Operator("scores", given())


def sigrid_hash(*, salt: int = 0, max: int) -> Operator:
    """Hashes an id into [0, ``max``).

    Takes int64; yields int64 in [0, ``max``). Nulls: stay null.

    Args:
        salt: changes the hash
        max: number of ids that come out: the rows of the embedding table
    """
    return Operator("sigrid_hash", given({"salt": 0}, salt=salt, max=max))


def split(*, separator: str = "|", empty: Literal["drop", "keep"] = "drop") -> Operator:
    """Makes a list of texts of one text with several values, as ``Action|Comedy``: it cuts the text at every
    ``separator``, from the left. The operators behind it take the parts one by one: ``hash_bytes`` makes ids of
    categories, ``text_to_int`` and ``hex_to_int`` read numbers.

    Takes text, one value a row; yields lists of text; ``list_length`` counts the parts. Nulls: a null becomes an empty
    list.

    Args:
        separator: text between two values, at most 16 bytes of UTF-8
        empty: what becomes of a part without bytes, as in ``a||b`` or behind the last separator: ``drop`` leaves it
            out, ``keep`` makes it an empty text
    """
    return Operator("split", given({"separator": "|", "empty": "drop"}, separator=separator, empty=empty))


def target_encoding(statistics: str, *, mode: Literal["train", "serve"] = "train", folds: int = 3, p_smooth: Number = 20, seed: int = 42) -> Operator:
    """Replaces a key by the mean of the label over the rows that have the key, smoothed towards the mean of all rows:
    the float32 nearest to (sum + ``p_smooth`` * mean) / (rows + ``p_smooth``). With ``mode: train``, sum and rows are
    those of the other folds than the row's, so that no row's feature holds its own label; with ``mode: serve``, those
    of all rows. The host looks keys up, behind the drive, on every engine. The fold of a row is the integer part of
    ``folds`` * ``h(h(key, 3), seed)`` / 2^64, where ``h`` is the hash of ``sigrid_hash`` before its modulus and the key
    is ``h(number of the row in its partition, xxh3(name of the partition))``, as a sampling of rows has it.

    Takes int64, one value a row; the last operator of a dense feature; yields float32. Nulls: become the mean of all
    rows, and so do keys that no row of the statistics had.

    Args:
        statistics: one of the document's ``statistics``: the labels of the keys by folds, which ``millrace dataset
            summarize --pipeline`` makes
        mode: whose labels count: ``train``, those of the other folds; ``serve``, all
        folds: how many folds the rows are divided into; at most 16
        p_smooth: weight of the mean of all rows; at least 0
        seed: draws other folds
    """
    return Operator("target_encoding", given({"mode": "train", "folds": 3, "p_smooth": 20, "seed": 42},
    statistics=statistics, mode=mode, folds=folds, p_smooth=p_smooth, seed=seed))


def text_to_int() -> Operator:
    """Reads decimal text as an integer: an optional sign, + or -, and digits of ASCII, as ``-123`` and ``+5``.

    Takes bytes: text; yields int64. Nulls: stay null; an empty text becomes null.
    """
    return Operator("text_to_int", given())


def text_to_seconds(*, offset: Union[str, None] = None) -> Operator:
    """Reads the text of a time as the seconds since 1970-01-01 00:00:00 UTC: ``2021-05-21 02:11:51-07:00`` is
    1621588311. The forms are those of RFC 3339 and ISO 8601: a date, which alone is midnight; behind ``T`` or a space
    hours, minutes and seconds; a fraction of up to 9 digits, which is rounded towards minus infinity; and the offset,
    ``Z``, ``-07:00``, ``-0700`` or ``-07``.

    Takes bytes: text; yields int64, of the years 0000 to 9999. Nulls: stay null; an empty text becomes null.

    Args:
        offset: the offset from UTC of texts that name none, dates alone too, as ``+00:00``; without it such a text is
            an error
    """
    return Operator("text_to_seconds", given(offset=offset))


def to_days(*, unit: Literal["file", "seconds", "millis", "micros", "nanos", "days"] = "file") -> Operator:
    """Counts a time in days, rounded towards minus infinity: TIMESTAMP, DATE and INT96 since 1970-01-01, TIME since
    midnight. Nothing is shifted by a time zone.

    Takes int64: TIMESTAMP, DATE, TIME, or any integers whose ``unit`` is given; INT96; yields int64. A float32 has 24
    bits, which hold days but not the seconds of today: end with ``bucketize``, or hash. Nulls: stay null; a constant of
    ``fill_null`` before it counts what the file counts.

    Args:
        unit: what the integers of the column count; ``file``: what the file's annotation says
    """
    return Operator("to_days", given({"unit": "file"}, unit=unit))


def to_seconds(*, unit: Literal["file", "seconds", "millis", "micros", "nanos", "days"] = "file") -> Operator:
    """Counts a time in seconds, rounded towards minus infinity: TIMESTAMP, DATE and INT96 since 1970-01-01, TIME since
    midnight. Nothing is shifted by a time zone.

    Takes int64: TIMESTAMP, DATE, TIME, or any integers whose ``unit`` is given; INT96; yields int64. A float32 has 24
    bits, which hold days but not the seconds of today: end with ``bucketize``, or hash. Nulls: stay null; a constant of
    ``fill_null`` before it counts what the file counts.

    Args:
        unit: what the integers of the column count; ``file``: what the file's annotation says
    """
    return Operator("to_seconds", given({"unit": "file"}, unit=unit))


def unpack(element: Literal["float32"]) -> Operator:
    """Makes a list of numbers of the bytes of an array, as embeddings are kept by ``ndarray.tobytes``: little-endian
    numbers one behind the other. Put ``fixed_length`` behind it to make dense columns of them.

    Takes bytes, one value a row; yields lists of float32, a quarter as long as the bytes. Nulls: become empty lists, as
    null lists are elsewhere.

    Args:
        element: type of the packed numbers
    """
    return Operator("unpack", given(element=element))


def unsigned_modulus(modulus: int) -> Operator:
    """The remainder of an id's 64 bits, read as an unsigned number, in [0, ``modulus``): the id -1 is
    18446744073709551615. Behind ``hash_bytes: farmhash64`` it is the bucket of TensorFlow's
    ``tf.strings.to_hash_bucket_fast`` with as many buckets, and behind ``xxh3`` the remainder of the hash as xxHash
    defines it. ``to_hash_bucket_strong`` and the deprecated ``to_hash_bucket`` hash otherwise, and nothing here is
    equal to them.

    Takes int64; yields int64 in [0, ``modulus``). Nulls: stay null.

    Args:
        modulus: number of ids that come out
    """
    return Operator("unsigned_modulus", given(modulus=modulus))


def vocabulary(name: str) -> Operator:
    """Replaces an id by its place in a vocabulary that ``millrace vocabulary build`` made of the data: Piper's
    ApplyVocab. The drive looks ids up if its memory holds the table; else the host does, behind the drive.

    Takes int64; the last operator of a sparse feature; yields int64 from the vocabulary's ``base`` on, or one of its
    special ids. Nulls: become ``null_id`` if the vocabulary has one and the column has one value a row, and stay null
    otherwise.

    Args:
        name: one of the document's ``vocabularies``
    """
    return Operator("vocabulary", given(name=name))


def wasm(module: str, *, function: str, in_: Sequence[Literal["int64", "float32", "float64"]], out: Literal["int64", "float32", "float64"]) -> Operator:
    """Calls an exported function of a WebAssembly module for each row. What it yields depends on the row's inputs only:
    memory and globals of the module are as at first before each row. A NaN that arithmetic makes is the canonical one
    (7fc00000h, 7ff8000000000000h), so the bits are the same everywhere.

    Takes 1 to 8 inputs, one value a row; int64 becomes float32 or float64, and float32 and float64 each other, where
    ``in`` says so (nearest, ties to even); yields ``out``; ids are not bounded, so end keys with ``positive_modulus``,
    ``clamp`` or a hash. Nulls: null if one of the inputs is, and the function is not called.

    Args:
        module: name of the module, whose file ``--wasm NAME=FILE`` gives, or in Python ``modules={NAME: FILE}``
        function: name of the exported function
        in_: kinds of its parameters, one an input: int64 is i64, float32 f32 and float64 f64
        out: kind of its result
    """
    return Operator("wasm", given(module=module, function=function, out=out, **{"in": in_}))


def with_scores() -> Operator:
    """Takes two inputs, ids and their scores, and puts them together. The scores are as many as the ids of their row,
    or one for all of them, as ``compute_score`` makes one. They become the weights of the ids (``kjt.weights``), or
    numbers by ``scores``.

    Takes ids, scores. Ids are int64; scores float32, or int64 and float64, which become float32; yields the ids, with
    scores. Nulls: a null, or a list that holds a null, has no ids or scores; a row without ids or without scores
    becomes a list without ids.
    """
    return Operator("with_scores", given())


def zero_extend() -> Operator:
    """Re-reads an id as its low 32 bits, unsigned: for files that hold unsigned ids in an int32 column.

    Takes int64; yields int64 in [0, 2^32). Nulls: stay null.
    """
    return Operator("zero_extend", given())
