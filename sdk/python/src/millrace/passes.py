"""Passes over data that end in a file: summaries and vocabularies.

The ``millrace`` binary of this machine makes them, by ``millrace dataset summarize`` and ``millrace vocabulary build``.
With ``control`` the data are partitions of a cluster, whose nodes decode and preprocess them; the binary is the
reducer, keeps what it has taken in a work folder beside the file, and goes on there when the same call is made again.
"""

from __future__ import annotations

import json
import os
import ssl
import subprocess
import tempfile
from typing import Any, Iterable, List, Mapping, Optional, Union

from . import arguments, binary
from .contexts import resolve
from .errors import ContextError, OptionsError, PassError
from .pipeline import Pipeline, split_flags
from .wire import TLS

__all__ = ["build_vocabulary", "summarize"]

Paths = Union[arguments.Path, Iterable[arguments.Path]]


def summarize(
    files: Paths,
    *,
    out: Optional[arguments.Path] = None,
    columns: Iterable[str] = (),
    pipeline: Union[None, arguments.Path, Pipeline] = None,
    name: Optional[str] = None,
    statistics: Optional[Mapping[str, arguments.Path]] = None,
    split: Optional[arguments.Split] = None,
    whole: bool = False,
    overwrite: bool = False,
    control: Union[None, str, Iterable[str]] = None,
    placement: Optional[str] = None,
    work: Optional[arguments.Path] = None,
    tls: TLS = None,
) -> Mapping[str, Any]:
    """Makes the summary of a data set: the statistics of its columns, whole and for each partition.

    Args:
        files: one or several names of files and folders, or patterns (``*`` does not cross ``/``).
        out: the file to write, which ``millrace.open(statistics=)`` takes. None writes none.
        columns: patterns of the columns; none takes every column that can be read.
        pipeline: instead of ``columns``: the summary is of the values that its operators take statistics of.
        name: with ``pipeline``: the name of the statistics in it; None takes the only ones.
        statistics: with ``pipeline``: the summaries of its other statistics, by name.
        split: with ``pipeline``: the part of the rows, as in :func:`millrace.open`.
        whole: whether the statistics of the partitions are left out.
        overwrite: whether ``out`` may be there already.
        control: the URLs of a control plane's members, or a context's name. The data are then the partitions whose
            names are those of ``files`` without their folders, on its storage nodes.
        placement: with ``control``: which workers decode the columns, as in ``millrace jobs submit --placement``.
        work: with ``control``: the folder that keeps what was taken; None is ``out`` with ``.work``.
        tls: with ``control``: the PEM files (certificate, key, authority).

    Returns:
        What ``millrace dataset summarize --output json`` prints.

    Raises:
        PassError: the pass failed. What was taken of a cluster's data is kept, and the same call goes on.
        OptionsError: an argument is of another type, or arguments contradict each other.
        PipelineError: the pipeline's file cannot be read.
        ContextError: there is no such context.
        BinaryError: there is no ``millrace`` binary.
    """
    flags = ["--columns=" + column for column in columns]
    flags += [f"--{flag}" for flag, given in (("whole", whole), ("overwrite", overwrite)) if given]
    flags += split_flags(split)
    return _run(["dataset", "summarize"], flags, files, pipeline, name, statistics, out, control, placement, work, tls)


def build_vocabulary(
    files: Paths,
    pipeline: Union[arguments.Path, Pipeline],
    *,
    out: arguments.Path,
    name: Optional[str] = None,
    statistics: Optional[Mapping[str, arguments.Path]] = None,
    split: Optional[arguments.Split] = None,
    overwrite: bool = False,
    memory: Optional[int] = None,
    control: Union[None, str, Iterable[str]] = None,
    placement: Optional[str] = None,
    work: Optional[arguments.Path] = None,
    tls: TLS = None,
) -> Mapping[str, Any]:
    """Builds a vocabulary of a data set, for the operator ``vocabulary`` of a pipeline.

    Args:
        files: as in :func:`summarize`.
        pipeline: the pipeline that declares the vocabulary.
        out: the file to write, which ``millrace.open(vocabularies=)`` takes; the file with ``.counts`` beside it holds
            the counts of all keys.
        name: the name of the vocabulary in the pipeline; None takes the only one.
        statistics: the summaries of the pipeline's statistics, by name.
        split: the part of the rows, as in :func:`millrace.open`.
        overwrite: whether ``out`` may be there already.
        memory: the most bytes of keys in memory.
        control, placement, work, tls: as in :func:`summarize`.

    Returns:
        What ``millrace vocabulary build --output json`` prints.

    Raises:
        PassError, OptionsError, PipelineError, ContextError, BinaryError: as in :func:`summarize`.
    """
    memory = arguments.whole("memory", memory, 1, (1 << 63) - 1)
    flags = ["--overwrite"] if overwrite else []
    if memory is not None:
        flags.append(f"--memory={memory}")
    flags += split_flags(split)
    return _run(["vocabulary", "build"], flags, files, pipeline, name, statistics, out, control, placement, work, tls)


def _run(
    command: List[str],
    flags: List[str],
    files: Paths,
    pipeline: Union[None, arguments.Path, Pipeline],
    name: Optional[str],
    statistics: Optional[Mapping[str, arguments.Path]],
    out: Optional[arguments.Path],
    control: Union[None, str, Iterable[str]],
    placement: Optional[str],
    work: Optional[arguments.Path],
    tls: TLS,
) -> Mapping[str, Any]:
    """Runs a command and returns its answer."""
    paths = arguments.paths(files)
    call = [binary.find(), *command, "--output=json", "--progress=none", *flags]
    for flag, value in (("out", out), ("name", arguments.name("name", name))):
        if value is not None:
            call.append(f"--{flag}={os.fspath(value)}")
    summaries = arguments.named_paths("statistics", statistics) or {}
    call += [f"--statistics={key}={path}" for key, path in summaries.items()]
    if control is None:
        if placement is not None or work is not None or tls is not None:
            raise OptionsError("placement, work and tls are for the data of a cluster: give control, too", "control")
        call += [f"--in={path}" for path in paths]
    else:
        call += _cluster_flags(paths, control, placement, work, tls)
    with tempfile.TemporaryDirectory(prefix="millrace-") as folder:
        if pipeline is not None:
            document, _ = arguments.document(pipeline)
            if "\n" in document or ":" in document:
                held = os.path.join(folder, "pipeline.yaml")
                with open(held, "w", encoding="utf-8") as f:
                    f.write(document)
                document = held
            call.append(f"--pipeline={document}")
        done = subprocess.run(call, stdin=subprocess.DEVNULL, capture_output=True, check=False)
    if done.returncode == 0:
        return dict(json.loads(done.stdout))
    message = done.stderr.decode("utf-8", "replace").strip().removeprefix("millrace: ")
    if done.returncode == 2:
        raise OptionsError(message, "")
    raise PassError(message or f"{' '.join(command)} ended with the status {done.returncode}")


def _cluster_flags(
    paths: Iterable[str],
    control: Union[str, Iterable[str]],
    placement: Optional[str],
    work: Optional[arguments.Path],
    tls: TLS,
) -> List[str]:
    """Returns the flags of a pass over the data of a cluster."""
    try:
        urls, tls = resolve(control, tls)
    except ContextError:
        raise
    except ValueError as e:
        raise OptionsError(f"control={control!r}: {e}", "control") from e
    if isinstance(tls, ssl.SSLContext):
        raise OptionsError("tls: the binary needs the certificate as files: give (certificate, key, authority)", "tls")
    flags = [f"--control={url}" for url in urls] + [f"--partitions={os.path.basename(path)}" for path in paths]
    for flag, value in (("placement", placement), ("work", work), *zip(("cert", "key", "ca"), tls or ())):
        if value is not None:
            flags.append(f"--{flag}={os.fspath(value)}")
    return flags
