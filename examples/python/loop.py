"""Trains on the rows of a Parquet file from Python, with the standard library alone.

    python3 loop.py CONTROL-PLANE

The file lies on a drive of a storage node; the control plane says which. The job's pipeline turns a price into a dense
feature and an item into a sparse one. The loop prints each mini-batch, then the share of rows that were clicked.
"""

from __future__ import annotations

import sys

from millrace import Control, Job

PIPELINE = """
name: clicks
batch: 200
label: {column: clicked}
dense:
  - columns: [price]
    ops: [log: {add: 1}]
sparse:
  - columns: [item]
    ops: [sigrid_hash: {salt: 0, max: 1000}]
"""


def main(control_plane: str) -> None:
    with Control(control_plane) as control:
        control.submit(
            {"name": "clicks", "pipeline": PIPELINE, "order": "deterministic", "plan": {"shuffle": "none"}}
        )
    rows, clicks = 0, 0.0
    with Job(control_plane, id="clicks") as job:
        for batch in job:  # batch.dense, batch.values, batch.lengths and batch.label are memoryviews
            rows += batch.rows
            clicks += sum(batch.label)
            print(f"{batch.rows} rows, dense [{batch.rows}, {len(batch.dense) // batch.rows}]")
    print(f"{rows} rows, {clicks / rows:.2f} clicked")


if __name__ == "__main__":
    main(sys.argv[1])
