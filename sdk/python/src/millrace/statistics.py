"""The counts of a consumer."""

from __future__ import annotations

__all__ = ["Statistics"]


class Statistics:
    """The counts of a consumer so far.

    Attributes:
        minibatches: how many mini-batches were yielded.
        rows: how many rows these mini-batches have.
        nbytes: how many bytes their frames have.
        left_out_rows: how many rows of the last mini-batch's epoch no rank gets: those of ``tail="drop"``, and those of
            mini-batches that cannot be shared out equally (``rank_tail="drop"``), which differ between shuffled epochs.
        short_minibatches: how many mini-batches of an epoch, of all ranks, have fewer rows than the batch.
        stall_seconds: how long the trainer waited for mini-batches, the wait for the first one included.
        first_seconds: how long the trainer waited for the first mini-batch.
        failures: how many fetches failed.
        duplicates: how many mini-batches came a second time and were dropped.
        profile_seconds: for how long one side made every mini-batch because its metrics were measured; the training
            went on in this time. Of a job that is too short for a profile: how long it was looked at. With a stored
            profile: how long the store was searched.
        profile_from: ``measured``, or ``stored`` if the profile is that of an earlier job (``offload_model=``); empty:
            there is none yet.
    """

    def __init__(self) -> None:
        self.minibatches = 0
        self.rows = 0
        self.nbytes = 0
        self.left_out_rows = 0
        self.short_minibatches = 0
        self.stall_seconds = 0.0
        self.first_seconds = 0.0
        self.failures = 0
        self.duplicates = 0
        self.profile_seconds = 0.0
        self.profile_from = ""

    def __repr__(self) -> str:
        return f"Statistics({', '.join(f'{k}={v}' for k, v in vars(self).items())})"
