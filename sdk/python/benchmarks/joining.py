"""How long a launcher takes to join the fragments of a mini-batch, and what a copy of the same bytes takes.

    PYTHONPATH=src python3 benchmarks/joining.py [--rows 8192] [--keys 26] [--deduplicated 13] [--ids one|lists]

The keys that are deduplicated are one set, in which each row is there twice on average. With ``--ids one`` every row has
one id of every key, with ``lists`` one on average. It prints the median and the least of the turns, in milliseconds of
processor time.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from array import array
from typing import Callable

from millrace import frame
from millrace.frame import Fragment, MiniBatch, Name
from millrace.join import join
from millrace.schema import Key, Schema


def fragment(schema: Schema, rows: int, place: Fragment, lists: bool, r: random.Random) -> MiniBatch:
    """Makes a fragment of random rows."""
    values, lengths = array("q"), array("i")
    different = [[r.randrange(1 << 40) for _ in schema.keys] for _ in range(rows)]
    chosen = [r.randrange(rows) for _ in range(rows)]  # of the rows of the set, some twice and some never
    for i, k in enumerate(schema.keys):
        for row in chosen if k.set else range(rows):
            n = different[row][i] % 3 if lists else 1
            values.extend([different[row][i]] * n)
            lengths.append(n)
    tensors = {
        "kjt.values": values.tobytes(),
        "dense": bytes(4 * 13 * rows),
        "label": bytes(4 * rows),
    }
    if lists:
        tensors["kjt.lengths"] = lengths.tobytes()
    return frame.decode(frame.encode(Name("0" * 64, 0, 0), schema, rows, tensors, fragment=place))


def milliseconds(turns: int, run: Callable[[], object]) -> str:
    """Times turns of run."""
    took = []
    for _ in range(turns):
        begun = time.process_time()
        run()
        took.append(1e3 * (time.process_time() - begun))
    return f"{statistics.median(took):.1f} ms, at least {min(took):.1f} ms"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=8192)
    parser.add_argument("--keys", type=int, default=26)
    parser.add_argument("--deduplicated", type=int, default=13)
    parser.add_argument("--ids", choices=("one", "lists"), default="one")
    parser.add_argument("--turns", type=int, default=21)
    o = parser.parse_args()
    lists = o.ids == "lists"
    keys = tuple(Key(f"k{i}", 1 << 40, lists, int(i < o.deduplicated)) for i in range(o.keys))
    schema = Schema(label=True, dense=tuple(f"d{i}" for i in range(13)), keys=keys)
    r = random.Random(1)
    parts = [fragment(schema, o.rows // 2, Fragment(i, 2), lists, r) for i in range(2)]
    memory = memoryview(bytearray(sum(p.nbytes for p in parts)))
    print(f"join: {milliseconds(o.turns, lambda: join(parts, lambda n: memory[:n]))}")
    print(f"copy: {milliseconds(o.turns, lambda: b''.join(p.data for p in parts))}")


if __name__ == "__main__":
    main()
