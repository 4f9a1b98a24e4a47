"""Finds the control plane to call and the identity to use there, as ``millrace context`` and ``millrace up`` keep them.

``contexts.yaml`` lies in ``~/.config/millrace`` (or in ``millrace`` of ``XDG_CONFIG_HOME``). It is JSON, which YAML
contains, so that the standard library reads it. The order of precedence is that of the commands: the caller's
arguments, then the environment (``MILLRACE_CONTROL``, ``MILLRACE_CERT``, ``MILLRACE_KEY``, ``MILLRACE_CA``), then a
context: the one of ``MILLRACE_CONTEXT``, else the current one.
"""

from __future__ import annotations

import json
import os
import re
from typing import Any, Iterable, Mapping, Optional, Union

from .errors import ContextError
from .wire import TLS, owner

__all__ = ["DEFAULT", "launcher_contexts", "resolve"]

DEFAULT = "http://127.0.0.1:7460"
_NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,61}[a-z0-9])?")
_MAX_FILE = 1 << 20  # bytes


def path(environ: Mapping[str, str]) -> Optional[str]:
    """Returns the path of ``contexts.yaml``, or None if the environment does not say where the user's files are."""
    home = environ.get("XDG_CONFIG_HOME", "")
    if not os.path.isabs(home):
        if not environ.get("HOME"):
            return None
        home = os.path.join(environ["HOME"], ".config")
    return os.path.join(home, "millrace", "contexts.yaml")


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"{key!r} comes twice")
        found[key] = value
    return found


def _object(what: str, value: Any, fields: Iterable[str]) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise ValueError(f"{what}: want an object")
    for key in value:
        if key not in fields:
            raise ValueError(f"{what}: there is no field {key!r}")
    return value


def _text(what: str, value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{what}: want a text")
    return value


def parse(data: bytes) -> tuple[str, dict[str, dict[str, Any]]]:
    """Returns the name of the current context ("" if there is none), and all contexts by name. A context holds
    ``control`` (a list of URLs), ``cert``, ``key`` and ``ca`` (paths as they are written, all three or none).

    Raises:
        ValueError: the bytes are not what ``millrace context`` writes.
    """
    top = _object("the file", json.loads(data.decode(), object_pairs_hook=_once), ("current", "contexts"))
    found: dict[str, dict[str, Any]] = {}
    contexts = top.get("contexts", {})
    for name, raw in _object("contexts", contexts, contexts).items():
        if not _NAME.fullmatch(name):
            raise ValueError(f"context {name!r}: no name of a context")
        c = _object(f"context {name}", raw, ("control", "cert", "key", "ca"))
        control = c.get("control")
        if not isinstance(control, list) or not control or not all(isinstance(u, str) for u in control):
            raise ValueError(f"context {name}: control: want a list of texts, one at least")
        files = {f: _text(f"context {name}: {f}", c.get(f, "")) for f in ("cert", "key", "ca")}
        if len({bool(v) for v in files.values()}) > 1:
            raise ValueError(f"context {name}: cert, key and ca go together")
        found[name] = {"control": control, **files}
    current = _text("current", top.get("current", ""))
    if current and current not in found:
        raise ValueError(f"current: there is no context {current!r}")
    return current, found


def _load(environ: Mapping[str, str]) -> tuple[str, dict[str, dict[str, Any]]]:
    where = path(environ)
    if where is None:
        return "", {}
    try:
        with open(where, "rb") as f:
            data = f.read(_MAX_FILE + 1)
    except FileNotFoundError:
        return "", {}
    except OSError as e:
        raise ContextError(f"{where}: {e.strerror}") from e
    try:
        if len(data) > _MAX_FILE:
            raise ValueError(f"more than {_MAX_FILE} bytes")
        current, found = parse(data)
    except (ValueError, RecursionError) as e:
        raise ContextError(f"{where}: {e}; millrace context writes it") from e
    for c in found.values():
        for name in ("cert", "key", "ca"):
            if c[name]:
                c[name] = os.path.join(os.path.dirname(where), c[name])
    return current, found


def _named(name: str, environ: Mapping[str, str], by: str) -> dict[str, Any]:
    _, found = _load(environ)
    if name not in found:
        there = (
            f"there are {', '.join(sorted(found))}"
            if found
            else "there are none: millrace up makes one, and so does millrace context add"
        )
        raise ContextError(
            f"{by}: no context {name!r}; {there}. A URL is https://HOST:PORT, http://HOST:PORT or unix:PATH"
        )
    return found[name]


def launcher_contexts(urls: Iterable[str], environ: Optional[Mapping[str, str]] = None) -> list[str]:
    """Returns the names of the contexts of these members whose certificate is a launcher's.

    Raises:
        ContextError: the file of contexts cannot be read.
    """
    names = []
    for name, c in sorted(_load(os.environ if environ is None else environ)[1].items()):
        try:
            if {u.rstrip("/") for u in c["control"]} & set(urls) and owner((c["cert"], c["key"], c["ca"])):
                names.append(name)
        except OSError:
            continue  # a certificate that was removed names nobody
    return names


def resolve(
    control: Union[None, str, Iterable[str]], tls: TLS = None, environ: Optional[Mapping[str, str]] = None
) -> tuple[list[str], TLS]:
    """Returns the URLs of the control plane's members, and the TLS to use with them.

    Args:
        control: URLs, separated by commas or as a list; the name of a context; or None for what the environment or the
            current context says.
        tls: returned as it is if not None.
        environ: the environment; None takes this process's.

    Raises:
        ContextError: there is no such context, the file of contexts cannot be read, or only some of certificate, key
            and authority are given.
        ValueError: ``control`` holds no URL, or an empty one.
    """
    env = os.environ if environ is None else environ
    places: list[dict[str, Any]] = []
    if isinstance(control, str) and _NAME.fullmatch(control):
        places.append(_named(control, env, "control"))
    elif control is not None:
        urls = [u.strip().rstrip("/") for u in (control.split(",") if isinstance(control, str) else control)]
        if not urls or not all(urls):
            raise ValueError("no URL of the control plane")
        places.append({"control": urls})
    listed = [u.strip() for u in env.get("MILLRACE_CONTROL", "").split(",") if u.strip()]
    places.append(
        {
            "control": listed,
            "cert": env.get("MILLRACE_CERT"),
            "key": env.get("MILLRACE_KEY"),
            "ca": env.get("MILLRACE_CA"),
        }
    )

    def first(field: str) -> Any:
        return next((p[field] for p in places if p.get(field)), None)

    def whole() -> bool:
        at = first("control")
        return bool(at) and (
            tls is not None or not any(u.startswith("https:") for u in at) or bool(first("cert") and first("ca"))
        )

    if not whole() and not (isinstance(control, str) and _NAME.fullmatch(control)):
        name = env.get("MILLRACE_CONTEXT", "")
        if name:
            places.append(_named(name, env, "MILLRACE_CONTEXT"))
        else:
            current, found = _load(env)
            if current:
                places.append(found[current])
    urls = [u.rstrip("/") for u in first("control") or [DEFAULT]]
    if tls is None and any(u.startswith("https:") for u in urls):
        pair = next((p for p in places if p.get("cert") or p.get("key")), {})
        files = (pair.get("cert") or "", pair.get("key") or "", first("ca") or "")
        if all(files):
            tls = files
        elif any(files):
            raise ContextError(
                "certificate, key and authority go together: "
                "name all of MILLRACE_CERT, MILLRACE_KEY and MILLRACE_CA, or use a context"
            )
    return urls, tls
