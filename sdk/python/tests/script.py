"""A training script that ends as its argument says. tests.test_runs starts it in processes.

Its argument is JSON. It appends a line to ``log`` for each event: ``given EPOCH NUMBER``, ``durable`` (every mini-batch
before the last given one is durable), ``saved`` (the state was saved), ``over`` (the loop ended by itself), ``refused
CLASS``.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from typing import Any, Iterator

from millrace import Control, Job, MillraceError, PartlyConsumedError


class Script:
    def __init__(self, told: dict[str, Any]) -> None:
        self.told = told
        self.seen = 0
        self.loader: Any = None
        self._log = os.open(told["log"], os.O_WRONLY | os.O_CREAT | os.O_APPEND)

    def log(self, line: str) -> None:
        os.write(self._log, line.encode() + b"\n")

    def state(self) -> Any:
        if self.told.get("use_state"):
            with open(self.told["state"]) as f:
                return json.load(f)
        return None

    def open(self) -> Any:
        t = self.told
        arguments = {
            "rank": t.get("rank", 0),
            "resume": t.get("resume", False),
            "queue_bytes": t.get("queue_bytes", 1 << 20),
        }
        if t["kind"] == "job":
            return Job(t["url"], t["job"], token=self.state(), **arguments)
        from millrace.torch import MiniBatches

        return MiniBatches(t["url"], t["job"], state=self.state(), **arguments)

    def batches(self, data: Any) -> Iterator[Any]:
        """Yields every mini-batch that is left, epoch after epoch."""
        t = self.told
        if t["kind"] == "job":
            yield from data
            return
        loader = data if self.loader is None else self.loader  # not "or", since a loader's truth value is its length
        if t["kind"].startswith("loader") and self.loader is None:
            from torch.utils.data import DataLoader

            options: dict[str, Any] = {"num_workers": int(t["kind"][6]), "persistent_workers": t["kind"].endswith("p")}
            if t["kind"].endswith("s"):
                options["multiprocessing_context"] = "spawn"
            if t.get("nameless"):
                options["collate_fn"] = nameless
            loader = self.loader = DataLoader(data, batch_size=None, **options)
        # With workers, the workers attach.
        first, epochs = t.get("epoch", 0), t["epochs"]
        for _ in range(first, epochs):
            yield from loader

    def step(self, batch: Any) -> bool:
        """Trains on a mini-batch. Returns True if the script is to leave the loop."""
        t = self.told
        self.log(f"given {batch.name.epoch} {batch.name.number}" if not isinstance(batch, int) else f"given 0 {batch}")
        self.seen += 1
        if t.get("flush") and self.seen % t["flush"] == 0 and t["kind"] in ("job", "direct"):
            (self.data if t["kind"] == "job" else self.data.job).flush()
            self.log("durable")
        if self.seen == t.get("save"):
            with open(t["state"], "w") as f:
                json.dump(self.data.state_dict(), f)
            self.log("saved")
        if self.seen != t.get("at"):
            return False
        how = t["ending"]
        if how == "sys.exit":
            sys.exit(3)
        if how in ("exception", "with exception"):
            raise RuntimeError("the step failed")
        if how == "os._exit":
            os._exit(4)
        if how in ("SIGTERM", "SIGKILL"):
            os.kill(os.getpid(), getattr(signal, how))
            time.sleep(60)
        return how in ("break", "with", "close", "gc", "again")

    def loop(self) -> None:
        for batch in self.batches(self.data):
            if self.step(batch):
                return
        self.log("over")

    def run(self) -> None:
        how = self.told["ending"]
        try:
            self.data = self.open()
            if how.startswith("with"):
                with self.data:
                    self.loop()
                return
            self.loop()
        except PartlyConsumedError as e:
            self.log(f"refused {type(e).__name__} {e.delivered}")
            raise
        except MillraceError as e:
            self.log(f"refused {type(e).__name__}")
            raise
        if how == "again":
            self.loop()
        elif how == "close":
            self.data.close()
            os._exit(0)
        elif how == "gc":
            del self.data, self.loader
            end = time.monotonic() + 60
            while any(t.name == "millrace-close" for t in threading.enumerate()) and time.monotonic() < end:
                time.sleep(0.01)
            os._exit(0)


def nameless(batch: Any) -> Any:
    """A collate_fn that returns only a mini-batch's number."""
    return batch.name.number


def main() -> None:
    told = json.loads(sys.argv[1])
    group = told.get("group")
    if group:
        import torch.distributed as dist

        dist.init_process_group("gloo", init_method=f"file://{group}", rank=told["rank"], world_size=told["ranks"])
    if told.get("submit"):  # as every rank of a run does
        with Control(told["url"]) as control:
            control.submit(told["submit"])
    Script(told).run()
    if group:
        dist.barrier()


if __name__ == "__main__":
    main()
