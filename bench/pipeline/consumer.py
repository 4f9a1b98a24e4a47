"""Takes the mini-batches of jobs as a trainer in Python does, and prints what came. Package bench/pipeline runs it.

Its argument is the kind of tensors, numpy or torch. It prints one line of JSON when it is ready. Each line of its input
is an order, an object of JSON:

    control   URL of the control plane
    job       id of the job to attach to
    tls       certificate, key and authority, or null
    sums      whether the CRC32 of every mini-batch is wanted

It prints a line "b NUMBER ROWS BYTES CRC32" for each mini-batch, with the bytes of its tensors, and "e BYTES" at the
end, with the bytes of all frames. Any input meanwhile ends the job.
"""

import json
import queue
import sys
import threading
import time
import zlib

import millrace
import numpy

FLUSH_SECONDS = 0.005  # the longest that a line waits in this process

orders: "queue.Queue[str]" = queue.Queue()


def read_orders() -> None:
    for line in sys.stdin:
        orders.put(line)
    orders.put("")


class Printer:
    """Prints mini-batches."""

    def __init__(self, sums: bool) -> None:
        self.sums = sums
        self.flushed = 0.0

    def more(self, number, rows, tensors) -> bool:
        """Prints a mini-batch, whose tensors are arrays in the order of a frame. Reports whether to go on."""
        crc = 0
        if self.sums:
            for t in tensors:
                crc = zlib.crc32(t, crc)
        sys.stdout.write(f"b {number} {rows} {sum(t.nbytes for t in tensors)} {crc}\n")
        now = time.monotonic()
        if now - self.flushed > FLUSH_SECONDS:
            sys.stdout.flush()
            self.flushed = now
        return orders.empty()


def numpy_job(order, printer: Printer) -> int:
    with millrace.Job(order["control"], order["job"], tls=order["tls"]) as job:
        for b in job:
            views = (b.values, b.dense, b.lengths, b.label)
            if not printer.more(b.name.number, b.rows, [numpy.asarray(v) for v in views if v is not None]):
                break
        return job.statistics.nbytes


def torch_job(order, printer: Printer) -> int:
    from millrace.torch import MiniBatches

    data = MiniBatches(order["control"], order["job"], tls=order["tls"], torchrec=False)
    try:
        for _ in range(data.epochs):
            for b in data:
                lengths = None if b.sparse.fixed else b.sparse.lengths
                tensors = [t.numpy() for t in (b.sparse.values, b.dense, lengths, b.label) if t is not None]
                if not printer.more(b.name.number, b.rows, tensors):
                    return data.statistics.nbytes
        return data.statistics.nbytes
    finally:
        data.close()


def main() -> None:
    run = {"numpy": numpy_job, "torch": torch_job}[sys.argv[1]]
    version = numpy.__version__
    if sys.argv[1] == "torch":
        import torch

        version = torch.__version__
    threading.Thread(target=read_orders, daemon=True).start()
    print(json.dumps({"version": version}), flush=True)
    while True:
        line = orders.get()
        if not line:
            return
        if not line.strip():  # the end of a job that was over before
            continue
        order = json.loads(line)
        frames = run(order, Printer(order["sums"]))
        print(f"e {frames}", flush=True)


main()
