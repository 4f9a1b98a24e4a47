"""The counts of a consumer."""

from __future__ import annotations

__all__ = ["Statistics"]


class Statistics:
    """The counts of a consumer so far.

    Attributes:
        minibatches: yielded.
        rows: of these mini-batches.
        nbytes: of their frames.
        stall_seconds: how long the trainer waited for mini-batches, since it asked for the first one.
        first_seconds: of these, until the first mini-batch came.
        failures: fetches that failed and were made up for.
        duplicates: mini-batches that came a second time and were dropped.
    """

    def __init__(self) -> None:
        self.minibatches = 0
        self.rows = 0
        self.nbytes = 0
        self.stall_seconds = 0.0
        self.first_seconds = 0.0
        self.failures = 0
        self.duplicates = 0

    def __repr__(self) -> str:
        return f"Statistics({', '.join(f'{k}={v}' for k, v in vars(self).items())})"
