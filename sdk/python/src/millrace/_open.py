"""Opens files as mini-batches in one call: :func:`open`.

::

    import millrace

    for batch in millrace.open("day_*.parquet", pipeline="rm1", batch=8192):
        step(batch)

The files are of this machine, and a private process preprocesses them (:mod:`millrace.private`). With ``control=`` the
files' names are names of partitions, which the storage nodes of a control plane preprocess.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import itertools
import os
from multiprocessing.process import parent_process
from typing import TYPE_CHECKING, Any, Callable, Iterable, Literal, Mapping, Optional, Protocol, Union, overload

from . import arguments
from .client import Job
from .control import Control
from .errors import OptionsError, RanksError
from .jobfile import JobFile
from .opening import Opening, names_of_this_machine
from .own import check_certificate
from .pipeline import Pipeline, bound
from .private import Rendezvous
from .ranks import Ranks, check_one_machine, find_ranks, machine
from .run import default_run
from .wire import TLS

if TYPE_CHECKING:
    from typing_extensions import ParamSpec

    from .torch import MiniBatches

__all__ = ["open"]

_MAX_BATCH = 1 << 24  # rows
_MAX_EPOCHS = 1 << 32
_MAX_INT32 = (1 << 31) - 1
_MAX_QUEUE = 1 << 40  # bytes
_MAX_ENGINE = 1 << 38  # bytes
_MAX_THREADS = 256

_opened = itertools.count()  # numbers this process's calls, since each call of the ranks has its own rendezvous


if TYPE_CHECKING:
    _P = ParamSpec("_P")

    class _Open(Protocol[_P]):
        """The two forms of :func:`open`: ``tensors="views"`` gives a Job, everything else MiniBatches of torch. Without
        torch it is a Job, too. The second form has the parameters of the function below, where they are written.
        """

        # The second form accepts tensors="views", too, and type checkers take the first form that fits.
        @overload
        def __call__(  # type: ignore[overload-overlap]
            self,
            files: Union[arguments.Path, Iterable[arguments.Path]],
            pipeline: Union[arguments.Path, Pipeline],
            *,
            tensors: Literal["views"],
            **more: Any,
        ) -> Job: ...
        @overload
        def __call__(self, *args: _P.args, **more: _P.kwargs) -> MiniBatches: ...


def _with_forms(function: Callable[_P, Any]) -> _Open[_P]:
    """Gives a function the forms of _Open, and its own error for an argument that it does not have."""

    @functools.wraps(function)
    def checked(*args: Any, **given: Any) -> Any:
        code = function.__code__
        known = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
        for name in given:
            if name not in known:
                raise TypeError(arguments.unknown(name, known))
        return function(*args, **given)

    return checked


@_with_forms
def open(  # noqa: A001 (the public name)
    files: Union[arguments.Path, Iterable[arguments.Path]],
    pipeline: Union[arguments.Path, Pipeline],
    *,
    split: Optional[arguments.Split] = None,
    batch: Optional[int] = None,
    epochs: int = 1,
    shuffle: Optional[Literal["none", "splits", "rows"]] = None,
    seed: int = 0,
    order: Optional[Literal["fastest", "deterministic"]] = None,
    boundary: Optional[Literal["partition", "none"]] = None,
    tail: Optional[Literal["keep", "drop"]] = None,
    split_batches: Optional[int] = None,
    window: Optional[int] = None,
    rank: Optional[int] = None,
    world_size: Optional[int] = None,
    rank_tail: Optional[Literal["drop", "keep"]] = None,
    state: Any = None,
    control: Union[None, str, Iterable[str]] = None,
    offload: Union[None, str, float] = None,
    own_worker: Union[None, str, "os.PathLike[str]"] = None,
    offload_model: Optional[str] = None,
    offload_metrics: Union[None, str, "os.PathLike[str]"] = None,
    id: Optional[str] = None,
    run: Optional[str] = None,
    resume: bool = False,
    include: Union[None, str, Iterable[str]] = None,
    exclude: Union[None, str, Iterable[str]] = None,
    input_format: Optional[Literal["parquet", "criteo-tsv", "criteo-bin"]] = None,
    label: Optional[Literal["present", "absent"]] = None,
    malformed: Optional[Literal["fail", "drop", "null"]] = None,
    sort: Optional[Literal["given", "natural", "name"]] = None,
    root: Optional[arguments.Path] = None,
    vocabularies: Optional[Mapping[str, arguments.Path]] = None,
    statistics: Optional[Mapping[str, arguments.Path]] = None,
    modules: Optional[Mapping[str, arguments.Path]] = None,
    queue_bytes: Optional[int] = None,
    engine_bytes: Optional[int] = None,
    threads: Optional[int] = None,
    trainer_cores: Optional[int] = None,
    patience: float = 300.0,
    check: Optional[bool] = None,
    tensors: Optional[Literal["torch", "views"]] = None,
    device: Any = None,
    prefetch: Optional[int] = None,
    torchrec: Optional[bool] = None,
    validate: Optional[bool] = None,
    tls: TLS = None,
    credits: Optional[int] = None,
    splits: Optional[int] = None,
    timeout: Optional[float] = None,
) -> Any:
    """Opens files as mini-batches.

    Args:
        files: one or several names of files and folders, or patterns (``*`` does not cross ``/``).
        pipeline: the name of a built-in pipeline ("rm1"), a YAML file's path, a YAML document, or a
            :class:`millrace.Pipeline`.
        split: the part of the rows: ``("train", 0.9, seed)`` and ``("validation", 0.9, seed)`` share no row and leave
            none out. 0.9 is the share of ``train``, in both; ``seed`` is from 0 to 2^64 - 1, and 0 if it is left out. A
            row belongs to its part by the name of its partition and its number. With a column,
            ``("train", 0.9, seed, "user_id")``, it belongs there by the column's value, and rows without a value
            belong to ``train``.
        batch: rows of a mini-batch; None takes the pipeline's.
        epochs: how many epochs there are. With torch, one ``for`` is one epoch.
        shuffle: ``none``, ``splits`` (the default) or ``rows``.
        seed: seeds the shuffle, from 0 to 2^64 - 1.
        order: ``fastest`` (the default) or ``deterministic``, which gives the same sequence every time.
        boundary: ``partition`` (the default): a mini-batch ends where a file does; ``none``: it goes on in the next
            file, so that only the epoch's last mini-batch has fewer rows.
        tail: what becomes of the last mini-batch of a file, or with ``boundary="none"`` of the epoch, if it has fewer
            rows: ``keep`` (the default) or ``drop``.
        split_batches: how many mini-batches a split has.
        window: how many mini-batches of a split ``shuffle="rows"`` mixes with each other.
        rank, world_size: this process's place among the ranks. None takes torch.distributed's, else torchrun's or
            mpirun's. All ranks call ``open``, and each gets its part.
        rank_tail: what becomes of the mini-batches that are left where the ranks cannot have equally many: ``drop``
            (the default), or ``keep``, which gives them to the first ranks.
        state: where to go on: a result of ``state_dict()``, or a token.
        control: the URLs of a control plane's members, or a context's name. Its storage nodes preprocess the partitions
            whose names are those of ``files`` without their folders.
        offload: with ``control``: this machine's CPUs make a share of this rank's splits, from ``files`` where these
            are the job's and else from the nodes. ``extended``, ``paper`` or ``fastflow-code`` decides the share; a
            number from 0 to 1 is the share of all other workers. No mini-batch changes. Without a live node that holds
            any of ``files``, the job is over the files of this machine, and its CPUs make every split.
        own_worker: the path of the configuration (YAML) of the worker that these CPUs are. It is needed where the
            control plane is on another machine without TLS, or where ``tls`` is an ``ssl.SSLContext`` or names a
            certificate without a host.
        id: the job's name in the control plane; None makes a name of the arguments.
        run, resume: as in :class:`millrace.client.Job`. Ranks that were started one by one need the same ``run``.
        include, exclude: patterns of names of files, without their folders, one or several: only files that an
            ``include`` matches are taken, and none that an ``exclude`` matches.
        input_format: ``parquet``, ``criteo-tsv`` or ``criteo-bin``; None finds it by the files' contents.
        label, malformed: for files of text, as the flags of the command ``preprocess``.
        sort: the order of the files: ``given`` (the default: a list as it is, folders and patterns in natural order,
            day_2 before day_10), ``natural`` or ``name``.
        root: the folder in which the data set begins: partitions are named by their paths from it. None takes the
            folder that is named, or that before a pattern's first wildcard, without ``day=1`` and the like at its end.
        vocabularies: the files of the pipeline's vocabularies, by name; ``millrace vocabulary build`` makes them. With
            ``control`` those that the control plane lacks are put there, and its nodes fetch them.
        statistics: the summaries of the pipeline's statistics, by name; ``millrace dataset summarize`` makes them. With
            ``control`` their numbers become part of the job's pipeline.
        modules: the WebAssembly modules that the pipeline's operators ``wasm`` name, by name. With ``control`` those
            that the control plane lacks are put there; its drives run modules of their images, and its other machines
            those that their configurations allow.
        queue_bytes: the most bytes of mini-batches that wait.
        engine_bytes: the most bytes of memory that the engine uses (192 MiB). More of them let more engine threads work
            at once, and faster.
        threads: how many engine threads there are. None takes the cores of this machine less ``trainer_cores``.
        trainer_cores: how many cores are left to the trainer; None leaves one for each rank.
        patience: seconds that the ranks of this machine wait for each other, or that a control plane may be away.
        check: whether every frame's CRC32C is checked.
        tensors: ``torch`` yields :class:`millrace.torch.Batch`, ``views`` yields :class:`millrace.MiniBatch` of
            memoryviews. None is ``torch`` where it is installed.
        device, prefetch, torchrec, validate: with torch, as in :class:`millrace.torch.MiniBatches`.
        tls, credits, splits, timeout: with ``control``, as in :class:`millrace.client.Job`.

    Returns:
        :class:`millrace.torch.MiniBatches` with ``torch``, :class:`millrace.Job` with ``views``.

    Raises:
        FilesError: a file is missing, or is not a readable partition.
        PipelineError: the pipeline has errors, or the files lack its columns.
        OptionsError: an argument is of another type or out of range, or ``device`` is a GPU that torch cannot use.
        TypeError: an argument is only for ``control``, only for files of this machine, or only for torch, or there is
            none of that name.
        ImportError: ``torchrec`` is True, and TorchRec is not installed.
        RanksError: the ranks do not fit together.
        OtherJobError, TokenError: ``state`` is of another job, or damaged.
        BinaryError, PrivateProcessError: the private process, or the worker of this machine's CPUs, does not start.
        ChangedError: a file was written or replaced since ``state`` was kept, or while iterating.
        DataLossError: while iterating: a page or a row is damaged.

    With ``control``, the errors of :meth:`millrace.Control.submit` and of :class:`millrace.Job` are raised, too.
    """
    arguments.choice("tensors", tensors, ("torch", "views"))
    arguments.choice("order", order, ("fastest", "deterministic"))
    arguments.choice("shuffle", shuffle, ("none", "splits", "rows"))
    arguments.choice("boundary", boundary, ("partition", "none"))
    arguments.choice("tail", tail, ("keep", "drop"))
    arguments.choice("rank_tail", rank_tail, ("drop", "keep"))
    arguments.choice("input_format", input_format, ("parquet", "criteo-tsv", "criteo-bin"))
    arguments.choice("label", label, ("present", "absent"))
    arguments.choice("malformed", malformed, ("fail", "drop", "null"))
    arguments.choice("sort", sort, ("given", "natural", "name"))
    batch = arguments.whole("batch", batch, 1, _MAX_BATCH)
    epochs = arguments.whole("epochs", epochs, 1, _MAX_EPOCHS) or 1
    seed = arguments.whole("seed", seed, 0, (1 << 64) - 1) or 0
    split_batches = arguments.whole("split_batches", split_batches, 1, _MAX_INT32)
    window = arguments.whole("window", window, 1, _MAX_INT32)
    if window is not None and shuffle != "rows":
        raise OptionsError(f"window={window}: only with shuffle='rows', which mixes the rows of a window", "window")
    if seed and shuffle == "none":
        raise OptionsError(f"seed={seed}: only with a shuffle: leave out seed=, or shuffle='none'", "seed")
    queue_bytes = arguments.whole("queue_bytes", queue_bytes, 1, _MAX_QUEUE)
    engine_bytes = arguments.whole("engine_bytes", engine_bytes, 1, _MAX_ENGINE)
    threads = arguments.whole("threads", threads, 1, _MAX_THREADS)
    trainer_cores = arguments.whole("trainer_cores", trainer_cores, -1, _MAX_INT32)
    offload_model = arguments.name("offload_model", offload_model)
    paths = arguments.paths(files)
    text, pipeline_file = arguments.document(pipeline)
    built = pipeline if isinstance(pipeline, Pipeline) else None
    place = find_ranks(rank, world_size)
    part = arguments.split(split)
    plan = _given(
        batch=batch,
        boundary=boundary,
        tail=tail,
        shuffle=shuffle,
        seed=seed or None,
        split_batches=split_batches,
        window=window,
    )
    of_files = _given(
        include=arguments.patterns("include", include),
        exclude=arguments.patterns("exclude", exclude),
        input_format=input_format,
        label=label,
        malformed=malformed,
        sort=sort,
        root=None if root is None else os.fspath(root),
        vocabularies=arguments.named_paths("vocabularies", vocabularies),
        statistics=arguments.named_paths("statistics", statistics),
        modules=arguments.named_paths("modules", modules),
        engine_bytes=engine_bytes,
        threads=threads,
        trainer_cores=trainer_cores,
    )
    of_torch = _given(device=device, prefetch=prefetch, torchrec=torchrec, validate=validate)
    of_control = _given(tls=tls, credits=credits, splits=splits, timeout=timeout)
    common = _given(epochs=epochs, order=order, rank_tail=rank_tail)
    if control is None:
        only = [*of_control, *_given(offload=offload, own_worker=own_worker, offload_model=offload_model)]
        only += _given(offload_metrics=offload_metrics)
        if only or resume or id:
            wrong = sorted([*only, *(["resume"] if resume else []), *(["id"] if id else [])])
            raise TypeError(f"{', '.join(wrong)}: only with control=; on this machine state= says where to go on")
        check_one_machine(place)
        opening = Opening(
            paths,
            text,
            plan,
            {**common, **of_files, **_given(queue_bytes=queue_bytes, split=part)},
            place,
            meeting=_meeting(place, run, patience),
            check=check,
            pipeline_file=pipeline_file,
            built=built,
        )
    else:
        looked_up = of_files.pop("vocabularies", None)
        summaries = of_files.pop("statistics", None)
        called = of_files.pop("modules", None)
        if summaries or split is not None:
            text, built = bound(text, built, summaries, split), None
        if of_files:
            raise TypeError(f"{', '.join(sorted(of_files))}: not with control=, where storage nodes read the files")
        if offload_model is not None and offload is None:
            raise TypeError("offload_model: only with offload=, whose profile it names")
        if offload_metrics is not None and offload_model is None:
            raise TypeError("offload_metrics: only with offload_model=: a profile is kept under the model's name")
        if offload is not None and own_worker is None:
            check_certificate(control, tls)
        shared = _given(offload=None if offload is None else str(offload))
        spec = {
            "pipeline": text,
            "partitions": [os.path.basename(path) for path in paths],
            "plan": plan,
            "ranks": place.world_size,
            **common,
            **shared,
        }
        named_by = sorted(spec.items())
        if looked_up:
            named_by += [(name, JobFile("vocabulary", name, path).sha256) for name, path in sorted(looked_up.items())]
        if called:
            named_by += [
                ("module " + name, JobFile("module", name, path).sha256) for name, path in sorted(called.items())
            ]
        name = id or "open-" + hashlib.sha256(repr(named_by).encode()).hexdigest()[:24]
        with Control(control, tls=tls, patience=patience) as client:
            document = {"name": name, **spec, "pipeline": built if built is not None else text}
            own = names_of_this_machine(paths) if shared else ()
            submitted = client.submit(document, vocabularies=looked_up, modules=called, files=own)
        more: dict[str, Any] = {"id": str(submitted.get("id") or name), "run": run, "resume": resume}
        more["patience"] = patience
        more.update(_given(queue_bytes=queue_bytes, check=check))
        opening = Opening(
            paths,
            text,
            plan,
            common,
            place,
            control,
            {**more, **of_control},
            shares=bool(shared),
            own_worker=None if own_worker is None else os.fspath(own_worker),
            offload_model=offload_model,
            offload_metrics=None if offload_metrics is None else os.fspath(offload_metrics),
        )
    return _attached(opening, state, tensors, of_torch)


def _attached(opening: Opening, state: Any, tensors: Optional[str], of_torch: dict[str, Any]) -> Any:
    if tensors is None:
        tensors = "torch" if of_torch or importlib.util.find_spec("torch") is not None else "views"
    if tensors == "views":
        if of_torch:
            raise TypeError(f"{', '.join(sorted(of_torch))}: only with tensors='torch'")
        return opening.job(state, "auto")
    from .torch import MiniBatches

    data = MiniBatches(opening=opening, state=state, **of_torch)
    data.check_device()
    data.job  # errors are raised here, and the ranks meet here
    return data


def _given(**values: Any) -> dict[str, Any]:
    """Returns the arguments that are not None, by name."""
    return {name: value for name, value in values.items() if value is not None}


def _meeting(place: Ranks, run: Optional[str], patience: float) -> Optional[Rendezvous]:
    """Returns where the ranks of this machine meet: a name that these ranks share and no other run has. Returns None
    for the only rank of this machine.
    """
    if place.local_size < 2:
        return None
    name = run or default_run()
    if name.startswith("process-") and parent_process() is None:
        raise RanksError(
            f"rank {place.rank} of {place.world_size}, and nothing says which processes belong together: start them "
            "with torchrun, call torch.distributed.init_process_group first, or give all ranks of the run the same "
            "run= or MILLRACE_RUN",
            "MILLRACE_RUN",
        )
    text = "\0".join((machine(), str(os.getuid()), name, str(next(_opened))))
    return Rendezvous("millrace-" + hashlib.sha256(text.encode()).hexdigest()[:32], patience)
