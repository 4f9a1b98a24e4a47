"""Connections to the control plane and to nodes: TCP, unix sockets, TLS; HTTP/1.1 of the standard library."""

from __future__ import annotations

import functools
import http.client
import io
import re
import select
import socket
import ssl
import threading
import time
from typing import Any, Optional, Union
from urllib.parse import urlsplit

from .errors import AddressError, TLSError

__all__ = ["BROKEN", "Address", "Connections", "TLS", "context", "diagnose", "owner"]

# The exceptions that a failed connection raises.
BROKEN = (OSError, http.client.HTTPException)

# The identities in certificates of servers, in their only valid form.
_NAME = "[a-z0-9]([a-z0-9.-]{0,61}[a-z0-9])?"
_CONTROL = f"spiffe://millrace/control/{_NAME}"
_NODE = f"spiffe://millrace/node/{_NAME}"

# The identity in the certificate of a launcher, whose own CPUs may be a worker; group 1 is its owner.
_LAUNCHER = r"spiffe://millrace/launcher/([a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?)(\.[a-z0-9.-]{0,61}[a-z0-9])?"

TLS = Union[ssl.SSLContext, tuple[str, str, str], None]


def context(tls: TLS) -> Optional[ssl.SSLContext]:
    """Returns a context for mutual TLS. ``tls`` is an ``ssl.SSLContext``, which is returned as it is, or the PEM files
    (certificate, key, authority), or None, which gives None.

    Raises:
        OSError: a file cannot be read. ``ssl.SSLError``, which is an OSError: it holds no certificate or key.
    """
    if tls is None or isinstance(tls, ssl.SSLContext):
        return tls
    cert, key, ca = tls
    for path in tls:
        with open(path, "rb"):  # the errors of ssl do not name the file
            pass
    made = ssl.create_default_context(ssl.Purpose.SERVER_AUTH, cafile=ca)
    made.minimum_version = ssl.TLSVersion.TLSv1_3
    made.load_cert_chain(cert, key)
    return made


def owner(tls: TLS) -> str:
    """Returns the owner of the launcher whose certificate is shown: its name up to the first dot. Empty if the
    certificate is not a launcher's, or not known because ``tls`` is an ``ssl.SSLContext``.
    """
    if tls is None or isinstance(tls, ssl.SSLContext):
        return ""
    with open(tls[0], encoding="ascii", errors="replace") as f:
        text = f.read(1 << 20)
    end = "-----END CERTIFICATE-----"
    begin = text.find("-----BEGIN CERTIFICATE-----")
    if begin < 0 or end not in text[begin:]:
        return ""
    leaf = ssl.PEM_cert_to_DER_cert(text[begin : text.index(end, begin) + len(end)])
    # A URI of a certificate is the tag 0x86, its length in one byte, and its text.
    owners = set()
    for found in re.finditer(rb"\x86(.)(?=spiffe://millrace/)", leaf, re.DOTALL):
        uri = leaf[found.end() : found.end() + found[1][0]].decode("ascii", "replace")
        launcher = re.fullmatch(_LAUNCHER, uri, re.ASCII)
        owners.add(launcher[1] if launcher else "")
    return owners.pop() if len(owners) == 1 else ""


class Address:
    """A server's address: ``http://HOST:PORT``, ``https://HOST:PORT`` or ``unix:PATH``. Raises ValueError for a URL of
    another form.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.path = ""  # of a unix socket
        self.host = "localhost"
        self.port: Optional[int] = None
        self.secure = False
        if url.startswith("unix:"):
            self.path = url[len("unix:") :]
            if not self.path:
                raise ValueError(f"{url!r}: want unix:PATH")
            return
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path not in ("", "/"):
            raise ValueError(f"{url!r}: want http://HOST:PORT, https://HOST:PORT or unix:PATH")
        self.secure = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port or (443 if self.secure else 80)


class _Unix(http.client.HTTPConnection):
    def __init__(self, path: str, timeout: float) -> None:
        super().__init__("localhost", timeout=timeout)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        end = time.monotonic() + float(self.timeout or 0)
        while True:
            try:
                self.sock.connect(self._path)
                return
            except BlockingIOError as e:
                # The server's queue of connections is full: unlike TCP, the kernel does not wait for a place in it.
                if time.monotonic() > end:
                    self.sock.close()
                    raise TimeoutError(f"unix:{self._path}: its queue of connections stays full") from e
                time.sleep(0.002)
            except OSError as e:
                self.sock.close()
                raise OSError(e.errno, f"unix:{self._path}: {e.strerror}") from e


class _TCP(http.client.HTTPConnection):
    def connect(self) -> None:
        super().connect()
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)


class _TimedReader(io.RawIOBase):
    """Reads an answer that has to be whole ``limit`` seconds after its request. The socket's own timeout bounds only the
    wait for the next bytes, so that a server which sends one byte before each timeout would never be given up.
    """

    def __init__(self, raw: Any, sock: Any, end: float, limit: float) -> None:
        self._raw = raw
        self._sock = sock
        self._end = end
        self._limit = limit
        self._timeout = limit  # of the socket; it is lowered in steps, since each change is a system call

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> Optional[int]:
        left = self._end - time.monotonic()
        late = f"no whole answer within {self._limit:g} s"
        if left <= 0:
            raise TimeoutError(late)
        if left < 0.9 * self._timeout:
            self._sock.settimeout(left)
            self._timeout = left
        try:
            count: Optional[int] = self._raw.readinto(buffer)
        except TimeoutError as e:
            raise TimeoutError(late) from e
        return count

    def close(self) -> None:
        self._raw.close()
        super().close()


class _TimedResponse(http.client.HTTPResponse):
    """An answer that has to be whole at ``end``, ``limit`` seconds after its request."""

    def __init__(self, sock: Any, *args: Any, end: float, limit: float, **kwargs: Any) -> None:
        super().__init__(sock, *args, **kwargs)
        raw: Any = self.fp
        self.fp = io.BufferedReader(_TimedReader(raw.detach(), sock, end, limit))


class _RoleError(ssl.SSLError):
    """The server's certificate is valid, and is not that of a server that may be called."""


class _Secure(http.client.HTTPSConnection):
    """Also checks that the server's certificate is that of a member of the control plane, or, with ``makers``, that of
    a node, or of a launcher of ``owner`` if that is not empty.
    """

    makers = False
    owner = ""

    def _accepts(self, uri: str) -> bool:
        if not self.makers:
            return re.fullmatch(_CONTROL, uri, re.ASCII) is not None
        launcher = re.fullmatch(_LAUNCHER, uri, re.ASCII)
        return (
            re.fullmatch(_NODE, uri, re.ASCII) is not None or launcher is not None and launcher[1] == self.owner != ""
        )

    def connect(self) -> None:
        super().connect()
        names: Any = (self.sock.getpeercert() or {}).get("subjectAltName", ())
        uris = [v for k, v in names if k == "URI"]
        if sum(self._accepts(u) for u in uris) != 1:
            self.close()
            wanted = "a node's" if self.makers else "the control plane's"
            raise _RoleError(f"{self.host}:{self.port}: its certificate is not {wanted}: {uris}")


_FILES = (
    "tls=(certificate, key, authority), MILLRACE_CERT, MILLRACE_KEY and MILLRACE_CA, "
    "or a context (millrace context show)"
)


def diagnose(
    a: Address, context: Optional[ssl.SSLContext], timeout: float, error: Optional[Exception] = None
) -> Optional[AddressError]:
    """Returns the error of the address or of TLS: from ``error``, with which a call failed, or else from the answer to
    one request of /readyz. Returns None if neither shows such an error: the server may be away for a moment, or work
    again.

    A server that refuses this side's certificate sends an alert and closes. The alert may be lost when this side is
    still sending, so that one connection shows it and the next one does not.
    """
    if isinstance(error, ssl.SSLError):
        found = _tls(a, error, timeout)
        if found is not None:
            return found
    if a.path:
        return None
    if a.secure and context is None:
        return TLSError(f"{a.url}: it wants TLS, and there is no certificate to show: give {_FILES}")
    end = time.monotonic() + timeout
    try:
        sock = socket.create_connection((a.host, a.port or 0), timeout)  # a.path is empty, so there is a port
    except socket.gaierror as e:
        if e.errno == socket.EAI_AGAIN:
            return None
        return AddressError(
            f"{a.url}: nobody knows the host {a.host} ({e.strerror}): give another URL, or the name of a context"
        )
    except OSError:
        return None
    with sock:
        try:
            if a.secure:
                assert context is not None
                sock = context.wrap_socket(sock, server_hostname=a.host)
            with sock:
                # A server that refuses answers at once and closes, which may cut the request and lose the answer.
                if a.secure:
                    select.select([sock], [], [], 0.1)
                try:
                    sock.sendall(f"GET /readyz HTTP/1.1\r\nHost: {a.host}\r\nConnection: close\r\n\r\n".encode())
                except (BrokenPipeError, ConnectionResetError):
                    pass  # the server's earlier answer may still be read
                said = b""
                while len(said) < 512 and time.monotonic() < end:
                    piece = sock.recv(512)
                    if not piece:
                        break
                    said += piece
        except ssl.SSLError as e:
            return _tls(a, e, timeout)
        except TimeoutError:
            return AddressError(
                f"{a.url}: something listens there and does not answer: give another URL, or the name of a context"
            )
        except OSError:
            return None
    if not a.secure and (b"HTTPS server" in said or b"HTTPS port" in said or said.startswith(b"\x15\x03")):
        return TLSError(f"{a.url}: it serves TLS, and was addressed with http: write https:// and give {_FILES}")
    if said and not said.startswith(b"HTTP/1."):
        return AddressError(
            f"{a.url}: what listens there does not speak HTTP ({said[:40]!r}): "
            "give another URL, or the name of a context"
        )
    return None


# The alerts about this side that the other side sends before it closes, as ssl names them.
_ALERTS = {
    "CERTIFICATE_REQUIRED": "it wants a certificate, and none was shown",
    "UNKNOWN_CA": "it does not know the authority that signed the certificate that was shown",
    "CERTIFICATE_EXPIRED": "the certificate that was shown has expired: have a new one issued (millrace pki issue)",
    "CERTIFICATE": "it refuses the certificate that was shown",
}


def _tls(a: Address, e: ssl.SSLError, timeout: float) -> Optional[AddressError]:
    """Sorts the errors of a TLS connection; None for those that may pass."""
    if isinstance(e, ssl.SSLCertVerificationError):
        if e.verify_code in (9, 10):
            why = (
                "its certificate is not valid now: have a new one issued for it (millrace pki issue), "
                "and look at this machine's clock"
            )
        elif e.verify_code in (62, 64):
            why = (
                "its certificate is for other names than this: call it by one of those, "
                "or issue a certificate for this one (millrace pki issue --host)"
            )
        elif e.verify_code in (18, 19, 20, 21):
            why = f"its certificate is signed by another authority than the one that was given: give {_FILES}"
        else:
            why = f"its certificate cannot be used: give another URL, or {_FILES}"
        return TLSError(f"{a.url}: {why} ({e.verify_message})")
    if isinstance(e, _RoleError):
        return TLSError(
            f"{a.url}: {e.args[0]}: give another URL, or issue the server a certificate (millrace pki issue)"
        )
    reason = str(getattr(e, "reason", None) or "")
    if "ALERT" in reason:
        for part, says in _ALERTS.items():
            if part in reason:
                return TLSError(f"{a.url}: {says}: give {_FILES}")
        return None
    if (
        "WRONG_VERSION_NUMBER" in reason
        or "HTTP_REQUEST" in reason
        or "RECORD_LAYER" in reason
        or "PACKET_LENGTH" in reason
    ):
        plain = Address("http" + a.url[len("https") :])
        other = diagnose(plain, None, timeout)
        if other is None:
            return TLSError(
                f"{a.url}: it serves in clear, and was addressed with https: write http://, or have it serve TLS"
            )
        return AddressError(str(other).replace(plain.url, a.url))
    return None


class Connections:
    """Keeps connections alive between requests. Any number of threads may use it.

    Args:
        makers: whether nodes are called, and workers of launchers of this launcher's own owner. Otherwise members of
            the control plane are. No other server is accepted, also at the same host name.
        whole: whether the timeout of :meth:`take` bounds a whole answer, and not only the wait for its next bytes.
    """

    def __init__(self, tls: TLS = None, *, makers: bool = False, whole: bool = False) -> None:
        self._context = context(tls)
        self._whole = whole
        self._makers = makers
        self._owner = owner(tls) if makers else ""
        self._lock = threading.Lock()
        self._free: dict[str, list[http.client.HTTPConnection]] = {}
        self._out: set[http.client.HTTPConnection] = set()
        self._closed = False

    def take(self, url: str, timeout: float) -> tuple[http.client.HTTPConnection, bool]:
        """Returns a connection to a server, and whether it was used before. A connection that was not used before is
        not connected yet.

        Args:
            timeout: seconds without a byte after which a call on the connection fails, also while the connection is
                made. With ``whole``, a call fails if its answer is not whole so many seconds from now, too.

        Raises:
            OSError: :meth:`close` was called, or the URL is https and there is no certificate.
            ValueError: the URL has another form.
        """
        with self._lock:
            if self._closed:
                raise OSError("closed")
            free = self._free.get(url)
            conn = free.pop() if free else None
            used = conn is not None
            if conn is None:
                conn = self._new(Address(url), timeout)
            self._out.add(conn)
        if used and conn.sock is not None:
            conn.timeout = timeout
            conn.sock.settimeout(timeout)
        if self._whole:
            timed: Any = functools.partial(_TimedResponse, end=time.monotonic() + timeout, limit=timeout)
            conn.response_class = timed
        return conn, used

    def _new(self, a: Address, timeout: float) -> http.client.HTTPConnection:
        if a.path:
            return _Unix(a.path, timeout)
        if a.secure:
            if self._context is None:
                raise OSError(f"{a.url} wants TLS: give tls=(certificate, key, authority), or a context")
            secure = _Secure(a.host, a.port, timeout=timeout, context=self._context)
            secure.makers, secure.owner = self._makers, self._owner
            return secure
        return _TCP(a.host, a.port, timeout=timeout)

    def diagnose(self, url: str, timeout: float, error: Optional[Exception] = None) -> Optional[AddressError]:
        """Returns the error of a server's address or of TLS, or None; see :func:`diagnose`."""
        return diagnose(Address(url), self._context, timeout, error)

    def give(self, url: str, conn: http.client.HTTPConnection) -> None:
        """Takes a connection back after its response was read to the end."""
        with self._lock:
            self._out.discard(conn)
            if not self._closed and conn.sock is not None:
                self._free.setdefault(url, []).append(conn)
                return
        conn.close()

    def drop(self, conn: http.client.HTTPConnection) -> None:
        """Ends a connection that does not work."""
        with self._lock:
            self._out.discard(conn)
        conn.close()

    def close(self) -> None:
        """Ends all connections; requests that wait for an answer fail."""
        with self._lock:
            self._closed = True
            free = [c for cs in self._free.values() for c in cs]
            out = list(self._out)
            self._free.clear()
        for c in free:
            c.close()
        for c in out:
            sock = c.sock
            if sock is not None:
                try:
                    sock.shutdown(socket.SHUT_RDWR)
                except OSError:
                    pass
