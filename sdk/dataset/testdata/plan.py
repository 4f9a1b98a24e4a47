#!/usr/bin/env python3
"""Computes the golden plans of plans.v1.jsonl from the definition in the package comment, independently of the Go code.
Usage: python3 plan.py > plans.v1.jsonl"""
import json
from shuffle import Stream, key, permute


def split_rows(groups, passing, o):
    """Returns the rows [first, end) of a partition's splits."""
    size, half, rows = o["split_batches"] * o["batch"], o["split_batches"] * o["batch"] // 2, sum(groups)
    if o["boundary"] == "partition" or passing is not None:
        rows = rows if passing is None else passing
        if o["boundary"] == "partition" and o["tail"] == "drop":
            rows -= rows % o["batch"]
        return [(a, min(a + size, rows)) for a in range(0, rows, size)]
    longest = max(size, min(1 << 22, ((1 << 21) - 1) * o["batch"]))
    ends = [sum(groups[: i + 1]) for i, n in enumerate(groups) if n]
    large = [(sum(groups[:i]), sum(groups[: i + 1])) for i, n in enumerate(groups) if n > size + half]
    splits, a = [], 0
    while a < rows:
        inside = [end for begin, end in large if begin <= a < end]
        if inside:
            e = min(inside[0], a + longest)
        else:
            near = [g for g in ends if a + size - half <= g <= a + size + half]
            e = min(near, key=lambda g: (abs(g - a - size), g)) if near else min(a + size, rows)
            e = min([e] + [begin for begin, _ in large if a < begin])
        splits.append((a, e))
        a = e
    return splits


def plan(partitions, o, passing=None):
    """Returns what is left out, the fragments and the windows of a plan."""
    splits, batch = [], o["batch"]
    for i, groups in enumerate(partitions):
        splits += [(i, a, e) for a, e in split_rows(groups, passing and passing[i], o)]
    order = list(range(len(splits)))
    if o["shuffle"] != "none":
        order = permute(Stream(key(o["seed"], o["epoch"], 1)), len(splits))
    all_rows = sum(passing) if passing else sum(map(sum, partitions))
    rows = sum(e - a for _, a, e in splits)
    if o["boundary"] == "none" and o["tail"] == "drop":
        rows -= rows % batch
    fragments, windows, at, number = [], [], 0, -1
    for position, split in enumerate(order):
        partition, a, e = splits[split]
        e, count = min(e, a + rows - at), 0
        while a < e:
            offset = at % batch if o["boundary"] == "none" else 0
            n, number = min(batch - offset, e - a), number + (offset == 0)
            if count % o["window"] == 0:
                windows.append([len(fragments), 0, 0, [split, count // o["window"]]])
            windows[-1][1:3] = windows[-1][1] + 1, windows[-1][2] + n
            fragments.append([number, offset, partition, a, n, position, split])
            at, a, count = at + n, a + n, count + 1
    windows = windows if o["shuffle"] == "rows" else []
    for w in windows:
        w[3] = permute(Stream(key(o["seed"], o["epoch"], 2, *w[3])), w[2])
    return all_rows - at, fragments, windows


CASES = [  # row groups of the partitions; options that are not those below; passing rows
    ([[10]], {}), ([[3], [4], [5]], {}), ([[1]] * 20, {}), ([[1] * 30], {}), ([[], [0, 7, 0], [0], [9]], {}), ([], {}),
    ([[9] * 5, [9] * 4], {"split_batches": 4}), ([[9] * 5, [9] * 4], {"split_batches": 4, "tail": "drop"}),
    ([[5, 40, 5, 70, 3]], {}), ([[4, 13, 2, 12, 1, 60, 5, 5, 7]], {"shuffle": "splits", "seed": 3}),
    ([[6, 4, 6, 4, 8]], {"batch": 5, "split_batches": 1}), ([[1, 2, 1, 2, 2]], {"batch": 1, "split_batches": 1}),
    ([[3, 15, 3, 16]], {"batch": 5, "split_batches": 2}), ([[2, 6]], {"batch": 5, "split_batches": 1}),
    ([[7, 9, 8, 8]], {"split_batches": 2}), ([[2, 4, 1, 9, 16]], {"split_batches": 2, "batch": 2}),
    ([[11] * 9, [4], [30]], {"shuffle": "splits", "seed": 1, "epoch": 2}), ([[3]], {"tail": "drop"}),
    ([[11] * 9, [4], [30]], {"shuffle": "splits", "seed": 1, "epoch": 3, "tail": "drop"}),
    ([[11] * 5, [4], [30]], {"shuffle": "rows", "seed": 7, "window": 2}),
    ([[17] * 4, [2, 2]], {"shuffle": "rows", "seed": 2**64 - 1, "epoch": 2**64 - 1, "window": 3, "tail": "drop"}),
    ([[20, 20], [9], [12]], {}, [25, 0, 12]), ([[20, 20], [9]], {"shuffle": "rows", "seed": 5}, [31, 8]),
    ([[(1 << 22) + 5, 7]], {"batch": 1 << 20, "split_batches": 2}),
    ([[9] * 5, [9] * 4], {"boundary": "partition", "shuffle": "splits", "seed": 1}),
    ([[11] * 5, [4], [30]], {"boundary": "partition", "shuffle": "rows", "window": 2, "tail": "drop"}),
]


def main():
    for case in CASES:
        o = {"batch": 4, "boundary": "none", "tail": "keep", "shuffle": "none", "seed": 0, "epoch": 0}
        o.update({"split_batches": 3, "window": 1, **case[1]})
        left_out, fragments, windows = plan(case[0], o, *case[2:])
        print(json.dumps({"groups": case[0], "passing": (*case[2:], None)[0], "options": o, "left_out": left_out,
                          "fragments": fragments, "windows": windows}))


if __name__ == "__main__":
    main()
