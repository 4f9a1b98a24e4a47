"""The launcher plays incidents that the launcher in Go plays, too.

trainmgr/remote/protocol/testdata/recordings/README.md says what the steps mean.
"""

from __future__ import annotations

import base64
import json
import logging
import os
import pathlib
import threading
import unittest
from typing import Any, Callable, Optional
from unittest import mock
from urllib.parse import parse_qs, urlsplit

from millrace import FencedError, Job, TokenError, UnreachableError, session
from millrace.token import Progress, Ranges

from .fake import JOB, SCHEMA, Refusal, Sequence, Serving, b64, content, entitles, part, ticket

logging.getLogger("millrace").setLevel(logging.ERROR)

RECORDINGS = pathlib.Path(os.environ.get("MILLRACE_REPOSITORY", pathlib.Path(__file__).parents[3])) / (
    "trainmgr/remote/protocol/testdata/recordings"
)
_PATIENCE = 60.0  # seconds for a call that must come
_BATCHES, _ROWS = 8, 10


def _ranges(pairs: Any) -> Ranges:
    return Ranges([(a, b) for a, b in pairs or ()])


class _Call:
    """A call of the launcher that waits for its answer."""

    def __init__(self, method: str, message: dict[str, Any], member: int) -> None:
        self.method, self.message, self.member = method, message, member
        self.answer: Optional[dict[str, Any]] = None
        self.refusal: Optional[Refusal] = None
        self.lost = False

    @property
    def over(self) -> bool:
        return self.answer is not None or self.refusal is not None or self.lost

    @property
    def numbers(self) -> Ranges:
        return Ranges([(int(r.get("from", 0)), int(r.get("to", 0))) for r in self.message.get("numbers", ())])


class Player:
    """A control plane of three members, nodes, and a trainer, which do what a recording says."""

    def __init__(self, steps: list[dict[str, Any]]) -> None:
        self.steps = steps
        self.across = steps[0].get("boundary") == "none"
        self.sequence = Sequence(_BATCHES, 2, _ROWS, (25, 25, 25, 5) if self.across else ())
        self.cond = threading.Condition()
        self.problems: list[str] = []
        self.calls: list[_Call] = []  # all of them, in their order
        self.mark = 0  # the calls that came since the step before begin here
        self.scripted: Optional[dict[str, Any]] = None  # the answer to the next Lease call
        self.leased: dict[str, Any] = {}  # the step of this answer
        self.redirect: Optional[int] = None  # the member that the next Lease call is sent to
        self.lose_lease = self.lose_all = False
        self.session, self.epoch, self.fence = "", 0, 1
        self.former, self.under_way = "", 0  # the session before, and how many of its Lease calls may come late
        self.adopts = self.adopted = False  # the leader asks for the leases, and has asked for them
        self.granted: dict[int, dict[str, Any]] = {}
        self.gone: dict[int, int] = {}  # leases that have ended, and how many calls that name them may come late
        self.trained, self.owned, self.told = Ranges(), Ranges(), Ranges()
        self.given: set[tuple[int, int]] = set()  # fragments that the nodes give
        self.failing: set[tuple[int, int]] = set()  # fragments that the nodes do not give
        self.turning = self.fenced = self.silent = False
        self.released: dict[int, str] = {}
        self.taken: dict[tuple[int, int], Any] = {}
        self.job: Optional[Job] = None
        self.results: dict[str, Any] = {}  # of the trainer's calls, by name
        self.trainer: Optional[threading.Thread] = None
        self.members = [Serving(lambda h, i=i: self._handle(i, h)) for i in range(3)]  # type: ignore[misc]
        self.node = Serving(self._give)

    def stop(self) -> None:
        with self.cond:
            self.lose_all = True
            self.cond.notify_all()
        if self.job is not None:
            self.job._session.leave()
        for s in (*self.members, self.node):
            s.stop()

    # --- servers ----------------------------------------------------------------------------------------------------

    def _handle(self, member: int, h: Any) -> None:
        message = json.loads(h.rfile.read(int(h.headers["Content-Length"])))
        call = _Call(h.path.rpartition("/")[2], message, member)
        with self.cond:
            # One call of each other method is under way at a time: the launcher gave an earlier one up.
            former = self._open_call(call.method)
            if former is not None and call.method != "Lease":
                former.lost = True
            self.calls.append(call)
            self._check(call)
            self._answer(call)
            self.cond.notify_all()
            self.cond.wait_for(lambda: call.over or self.lose_all, 2 * _PATIENCE)
        if call.answer is not None:
            h.answer(200, json.dumps(call.answer).encode(), Content_Type="application/json")
        elif call.refusal is not None:
            h.refuse(call.refusal.status, call.refusal.code, str(call.refusal), call.refusal.details)
        else:
            h.close_connection = True
            h.connection.close()

    def _check(self, call: _Call) -> None:
        """Checks what is forbidden at every call."""
        m = call.message
        if self.silent and call.method != "Acknowledge":
            self.problems.append(f"{call.method} after the session was fenced off")
        if call.method in ("Attach", "GetJob"):
            return
        called = base64.b64decode(m["session"]).decode()
        if call.method == "Lease" and called == self.former and self.under_way > 0:
            self.under_way -= 1
            return
        if called != self.session:
            self.problems.append(f"{call.method} of session {m['session']}, not {self.session}")
        if call.method == "Acknowledge":
            if int(m.get("epoch", 0)) != self.epoch:
                self.problems.append(f"acknowledges epoch {m.get('epoch')} in epoch {self.epoch}")
            wrong = call.numbers.minus(self.trained)
            if wrong:
                self.problems.append(f"acknowledges {list(wrong)}, which were not trained")
        if call.method == "Release":
            unknown = {int(x) for x in m.get("leases", ())} - self.granted.keys()
            if unknown:
                self.problems.append(f"gives back leases {unknown}, which were not granted")
        if call.method == "Lease":
            held, fetched = {int(x) for x in m.get("held", ())}, {int(x) for x in m.get("fetched", ())}
            if held - self.granted.keys() or any(self.gone.get(x) == 0 for x in held):
                self.problems.append(f"holds {held} of {self.granted.keys()}, of which {self.gone.keys()} have ended")
            for x in held & self.gone.keys():
                self.gone[x] -= 1
            if fetched - held:
                self.problems.append(f"has fetched {fetched}, and holds {held}")
            if m.get("adopt") and not self.adopted:
                self.problems.append("sends its leases to a leader that did not ask")
            if int(m.get("epoch", 0)) not in (self.epoch, self.epoch + self.turning):
                self.problems.append(f"asks for leases of epoch {m.get('epoch')} in epoch {self.epoch}")

    def _answer(self, call: _Call) -> None:
        """Answers what no step answers."""
        if call.method == "Release":
            for x in call.message.get("leases", ()):
                self.released[int(x)] = call.message["reason"]
                self.gone.setdefault(int(x), 2)
            call.answer = {}
        elif call.method == "GetJob":
            call.answer = {"job": self._status()}
        elif call.method != "Lease":
            return
        elif self.lose_lease:
            call.lost, self.lose_lease = True, False
        elif self.redirect is not None:
            url = self.members[self.redirect].url.encode()
            detail = ("millrace.v1.NotLeader", b"\x0a" + bytes([len(url)]) + url)
            call.refusal = Refusal(400, "failed_precondition", "not the leader", [detail])
            self.redirect = None
        elif self.scripted is not None and int(call.message.get("epoch", 0)) == self.leased["epoch"]:
            call.answer, self.scripted = self.scripted, None
            self._apply(self.leased)  # before the launcher has the answer and calls again
        else:
            self.adopts = self.adopts and not call.message.get("adopt")
            call.answer = {"fence": str(self.fence), **({"adopt": True} if self.adopts else {})}

    def _give(self, h: Any) -> None:
        q = {k: v[0] for k, v in parse_qs(urlsplit(h.path).query).items()}
        epoch, number = int(q["epoch"]), int(q["number"])
        key = (epoch, number)
        with self.cond:
            if entitles(h.headers.get("Millrace-Ticket", ""), "n", number) is None:
                self.problems.append(f"asks for fragment {number} without a ticket for it")
            minibatch, first, rows = self.sequence.fragments[number]
            if minibatch in self.trained and epoch == self.epoch:
                self.problems.append(f"asks for fragment {number} of mini-batch {minibatch}, which was trained")
            self.cond.wait_for(lambda: key in self.given or key in self.failing or self.lose_all, 2 * _PATIENCE)
            given = key in self.given
        if given:
            raw, place = content(epoch, minibatch, _ROWS), self.sequence.place(number)
            h.answer(200, raw if place is None else part(raw, first, rows, place))
        else:
            h.close_connection = True
            h.connection.close()

    def _status(self) -> dict[str, Any]:
        order = "deterministic" if self.ordered else "fastest"
        plan = {"batch": str(_ROWS), **({"boundary": "none"} if self.across else {})}
        return {
            "id": "j1",
            "spec": {"name": "rm1", "epochs": "3", "ranks": 1, "order": order, "plan": plan},
            "digest": b64(bytes.fromhex(JOB)),
            "state": "running",
        }

    # --- steps --------------------------------------------------------------------------------------------------------

    @property
    def ordered(self) -> bool:
        return any(s.get("ordered") for s in self.steps)

    def play(self) -> None:
        for i, step in enumerate(self.steps):
            try:
                getattr(self, "_" + step["step"])(step)
            except AssertionError as e:
                seen = [(c.method, c.message) for c in self.calls[-3:]]
                raise AssertionError(f"step {i + 1}, {step}: {e}; the last calls: {seen}") from e
            with self.cond:
                self.mark = len(self.calls) if step["step"] in ("trained", "acknowledged") else self.mark
                if self.problems:
                    raise AssertionError(f"at step {i + 1}, {step}: {self.problems[0]}")

    def _wait(self, reached: Callable[[], Any], what: str) -> Any:
        with self.cond:
            if not self.cond.wait_for(lambda: reached() or self.problems, _PATIENCE):
                raise AssertionError(f"{what}: it does not come")
            return reached()

    def _wait_turnover(self, reached: Callable[[], Any], what: str) -> Any:
        """Waits for something that the launcher does after its acknowledgements, and answers these meanwhile."""

        def answering() -> Any:
            result = reached()
            if not result:
                self._answer_acknowledgement()
            return result

        return self._wait(answering, what)

    def _open_call(self, method: str) -> Optional[_Call]:
        return next((c for c in self.calls if c.method == method and not c.over), None)

    def _attached(self, step: dict[str, Any]) -> None:
        acknowledged, owned = _ranges(step.get("numbers")), _ranges(step["owned"])
        if self.job is None and self.trainer is None:
            self.trainer = threading.Thread(target=self._train, daemon=True)
            self.trainer.start()
        call = self._wait_turnover(lambda: self._open_call("Attach"), "Attach")
        with self.cond:
            if step["epoch"] != self.epoch:
                self.trained, self.told, self.turning = Ranges(), Ranges(), False
            self.former, self.under_way = self.session, 2
            self.session, self.epoch, self.owned = step["session"], step["epoch"], owned
            self.gone.update({x: 2 for x in self.granted if x not in self.gone})
            for a, b in acknowledged:
                self.trained.add(a, b)
                self.told.add(a, b)
            for open_call in self.calls:
                if open_call.method == "Acknowledge" and not open_call.over:
                    open_call.lost = True  # it is of the former session
            call.answer = {
                "job": self._status(),
                "session": b64(step["session"].encode()),
                "tensorSchema": b64(SCHEMA.to_json().encode()),
                "manifest": b64(b'{"partitions":[{"rows":80}]}'),
                "epoch": str(step["epoch"]),
                "token": b64(Progress(JOB, step["epoch"], acknowledged).token().to_bytes()),
                "owned": [{"from": str(a), "to": str(b)} for a, b in owned],
            }
            self.cond.notify_all()

    def _leased(self, step: dict[str, Any]) -> None:
        grants = [
            {
                **{k: str(g[k]) for k in ("lease", "epoch", "from", "to")},
                "split": g["split"],
                "node": g["node"],
                "drive": g["drive"],
                "urls": [self.node.url],
                "ticket": ticket("n", g["from"], g["to"], 0),
                **({"miniBatch": str(self.sequence.fragments[g["from"]][0])} if self.across else {}),
            }
            for g in step.get("grants", ())
        ]
        with self.cond:
            for g in step.get("grants", ()):
                self.failing -= {(g["epoch"], n) for n in range(g["from"], g["to"])}
            self.leased = step
            self.scripted = {
                "fence": str(step["fence"]),
                "grants": grants,
                "revoked": [str(x) for x in step.get("revoked", ())],
                **{word: True for word in step.get("says", ())},
            }
        wait = self._wait_turnover if step["epoch"] > self.epoch else self._wait
        wait(lambda: self.scripted is None, "a Lease call")

    def _apply(self, step: dict[str, Any]) -> None:
        """Changes what the launcher may say, because a Lease call gets the answer of this step."""
        self.mark = len(self.calls)
        if step["fence"] < self.fence:
            return
        if step["fence"] > self.fence:
            self.fence, self.told = step["fence"], Ranges()
        self.adopts = "adopt" in step.get("says", ())
        self.adopted = self.adopted or self.adopts
        self.fenced = "unknownSession" in step.get("says", ())
        for g in step.get("grants", ()):
            self.granted.setdefault(g["lease"], g)
        self.gone.update({x: 2 for x in step.get("revoked", ()) if x not in self.gone})

    def _lease(self, step: dict[str, Any]) -> None:
        def left(leases: Any) -> set[int]:
            """Returns the leases that the ledger does not know as delivered."""
            known = {i for i, g in self.granted.items() if not self._minibatches(g).minus(self.told)}
            return {int(x) for x in leases} - known

        def said(c: _Call) -> bool:
            m = c.message
            adopt = [
                {k: v if k in ("node", "drive") else int(v) for k, v in x.items()} for x in m.get("adopt", ())
            ]
            return (
                c.method == "Lease"
                and left(m.get("held", ())) == left(step.get("leases", ()))
                and left(m.get("fetched", ())) == left(step.get("fetched", ()))
                and (not step.get("adopt") or sorted(adopt, key=lambda x: x["lease"]) == step["adopt"])
            )

        if not self.fenced and self.owned.minus(self.trained):
            self._wait(lambda: any(said(c) for c in self.calls[self.mark :]), "a Lease call that says this")

    def _brings(self, step: dict[str, Any]) -> None:
        g = self.granted[step["lease"]]
        with self.cond:
            self.failing = {k for k in self.failing if not (k[0] == g["epoch"] and g["from"] <= k[1] < g["to"])}
        for number in range(g["from"], g["to"]):
            with self.cond:
                self.given.add((g["epoch"], number))
                self.cond.notify_all()
            minibatch = self.sequence.fragments[number][0]
            parts = range(*self.sequence.begins[minibatch : minibatch + 2])
            if all((g["epoch"], n) in self.given for n in parts):
                self._taken(g["epoch"], minibatch)

    def _minibatches(self, grant: dict[str, Any]) -> Ranges:
        """Returns the mini-batches that have fragments in a lease."""
        first, last = (self.sequence.fragments[n][0] for n in (grant["from"], grant["to"] - 1))
        return Ranges([(first, last + 1)])

    def _taken(self, epoch: int, number: int) -> Any:
        return self._wait(lambda: self.taken.get((epoch, number)), f"mini-batch {number}")

    def _fails(self, step: dict[str, Any]) -> None:
        g = self.granted[step["lease"]]
        with self.cond:
            self.failing |= {(g["epoch"], n) for n in range(g["from"], g["to"])}
            self.cond.notify_all()

    def _trained(self, step: dict[str, Any]) -> None:
        assert self.job is not None
        for first, end in step["numbers"]:
            for number in range(first, end):
                name = self._taken(self.epoch, number)
                with self.cond:
                    self.trained.add(number, number + 1)
                self.job.acknowledge(name)

    def _acknowledge(self, step: dict[str, Any]) -> None:
        if self.fenced:
            return

        def reached() -> bool:
            said = self.told.copy()
            for c in self.calls:
                if c.method == "Acknowledge" and not c.over:
                    for a, b in c.numbers:
                        said.add(a, b)
            if not _ranges(step["numbers"]).minus(said):
                return True
            self._answer_acknowledgement()
            return False

        self._wait(reached, "acknowledgements")

    def _answer_acknowledgement(self) -> None:
        call = self._open_call("Acknowledge")
        if call is not None:
            for a, b in call.numbers:
                self.told.add(a, b)
            call.answer = {"fence": str(self.fence)}
            self.cond.notify_all()

    def _acknowledged(self, step: dict[str, Any]) -> None:
        with self.cond:
            self._answer_acknowledgement()

    def _release(self, step: dict[str, Any]) -> None:
        leases = step.get("leases", ())
        self._wait(
            lambda: all(self.released.get(x, "").partition(":")[0] == step["reason"] for x in leases), "Release"
        )

    def _lost(self, step: dict[str, Any]) -> None:
        if step["call"] == "Lease":
            with self.cond:
                self.lose_lease = True
            self._wait(lambda: not self.lose_lease, "a Lease call")
            return
        call = self._wait(lambda: self._open_call(step["call"]), step["call"])
        with self.cond:
            call.lost = True
            self.cond.notify_all()

    def _redirected(self, step: dict[str, Any]) -> None:
        to = int(step["leader"].rpartition("-")[2])
        with self.cond:
            self.redirect = to
        self._wait(lambda: self.redirect is None, "a Lease call")
        with self.cond:
            begun = len(self.calls)

        def reached() -> bool:
            return any(c.method == "Lease" and c.member == to for c in self.calls[begun:])

        self._wait(reached, f"a Lease call of member {to}")

    def _refused(self, step: dict[str, Any]) -> None:
        with self.cond:
            call = self._open_call(step["call"])
            if call is not None:
                call.refusal = Refusal(409, "aborted", "ledger: the session was fenced off: attach again")
                self.cond.notify_all()

    def _checkpoint(self, step: dict[str, Any]) -> None:
        self._begin("checkpoint", lambda job: job.checkpoint())

    def _token(self, step: dict[str, Any]) -> None:
        call = self._wait(lambda: self._open_call("Checkpoint"), "Checkpoint")
        counted = _ranges(step.get("numbers"))
        token = Progress(JOB, step["epoch"], counted).token().to_bytes()
        with self.cond:
            self.told = self.told.minus(self.told.minus(counted))
            call.answer = {"token": b64(b"MRT1" + token + bytes(32))}
            self.cond.notify_all()

    def _sealed(self, step: dict[str, Any]) -> None:
        result = self._result("checkpoint")
        assert isinstance(result, bytes), repr(result)

    def _unsealed(self, step: dict[str, Any]) -> None:
        result = self._result("checkpoint")
        assert isinstance(result, TokenError), repr(result)

    def _next(self, step: dict[str, Any]) -> None:
        with self.cond:
            self.turning = True
        self._begin("next", lambda job: job.next_epoch())

    def _entered(self, step: dict[str, Any]) -> None:
        result = self._result("next")
        assert result is True, repr(result)
        assert self.job is not None and self.job.epoch == step["epoch"]

    def _through(self, step: dict[str, Any]) -> None:
        result = self._result("next")
        assert result is False, repr(result)

    def _deliver(self, step: dict[str, Any]) -> None:
        pass  # the trainer takes what comes

    def _end(self, step: dict[str, Any]) -> None:
        pass  # a loop that ends early does nothing

    def _leave(self, step: dict[str, Any]) -> None:
        with self.cond:
            self.silent = self.silent or self.fenced
        self._begin("leave", lambda job: job.close())

    def _left(self, step: dict[str, Any]) -> None:
        with self.cond:
            self.lose_all = True
            self.cond.notify_all()
        result = self._result("leave")
        if step.get("lost") and not self.fenced:
            assert isinstance(result, UnreachableError), repr(result)
        else:
            assert result is None, repr(result)

    def _fenced(self, step: dict[str, Any]) -> None:
        error = self._wait(lambda: self.results.get("loop"), "the end of the loop")
        assert isinstance(error, FencedError), repr(error)
        self.silent = True

    # --- the trainer ------------------------------------------------------------------------------------------------

    def _begin(self, name: str, do: Callable[[Job], Any]) -> None:
        """Begins a call of the trainer."""
        self._wait(lambda: self.job, "the job")
        self.results.pop(name, None)

        def run() -> None:
            assert self.job is not None
            try:
                result = do(self.job)
            except Exception as e:
                result = e
            with self.cond:
                self.results[name] = result
                self.cond.notify_all()

        threading.Thread(target=run, daemon=True).start()

    def _result(self, name: str) -> Any:
        self._wait(lambda: name in self.results, name)
        return self.results[name]

    def _train(self) -> None:
        """Takes every mini-batch that comes, until the job is closed."""
        try:
            job = Job([m.url for m in self.members], "rm1", acknowledge="manual", splits=2, credits=16)
            with self.cond:
                self.job = job
                self.cond.notify_all()
            while True:
                batch = job.take()
                with self.cond:
                    if batch is not None:
                        self.taken[batch.name.epoch, batch.name.number] = batch.name
                    else:
                        self.cond.wait_for(lambda: not self.turning and job.epoch == self.epoch, 0.05)
                    self.cond.notify_all()
        except Exception as e:
            with self.cond:
                self.results["loop"] = e
                self.cond.notify_all()


class Recordings(unittest.TestCase):
    def play(self, name: str) -> None:
        with open(RECORDINGS / f"{name}.jsonl") as f:
            player = Player([json.loads(line) for line in f])
        self.addCleanup(player.stop)
        with mock.patch.object(session, "_FAREWELL", 3.0):
            player.play()


def _add(name: str) -> None:
    setattr(Recordings, f"test_{name}", lambda self: self.play(name))


for _recording in sorted(RECORDINGS.glob("*.jsonl")):
    _add(_recording.stem)
