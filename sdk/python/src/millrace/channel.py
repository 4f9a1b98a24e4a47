"""Messages to and from the private process (``millrace private``), with descriptors.

A message is its length, four bytes, little-endian, and a JSON object whose ``kind`` names the message; trainmgr/private
documents the kinds. Messages are bounded, and a message's stated length is not trusted.
"""

from __future__ import annotations

import array
import json
import os
import socket
import struct
import threading
import weakref
from collections import deque
from typing import Any, Optional

from .bounds import document
from .errors import PrivateProcessError

__all__ = ["MAX_MESSAGE", "VERSION", "Channel", "ChannelError"]

VERSION = 1
MAX_MESSAGE = 256 << 20  # bytes
_CHUNK = 1 << 18
_MAX_DESCRIPTORS = 16  # in one read


class ChannelError(PrivateProcessError):
    """The private process does not speak the protocol."""


_open: "weakref.WeakSet[Channel]" = weakref.WeakSet()


def _forked() -> None:
    """A forked child must not keep the process alive: it closes its copy of every connection."""
    for channel in list(_open):
        channel.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forked)


class Channel:
    """One end of a connection. One thread receives; any thread sends, and so may a finalizer at any point of a thread.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._pid = os.getpid()
        self._received = bytearray()
        self._descriptors: deque[int] = deque()
        self._sending = threading.Lock()
        self._unsent: deque[bytes] = deque()  # messages that came while another one was being sent
        _open.add(self)

    # --- sending --------------------------------------------------------------------------------------------------

    def send(self, kind: str, **members: Any) -> None:
        """Sends a message. If the other side is gone, the message is lost without an error; :meth:`receive` reports
        that.
        """
        body = json.dumps({"kind": kind, **members}, separators=(",", ":")).encode()
        if len(body) > MAX_MESSAGE:
            raise ValueError(f"a message of {len(body)} bytes, at most {MAX_MESSAGE}")
        self._unsent.append(struct.pack("<I", len(body)) + body)
        # The thread that holds the lock also sends messages that other threads queued. It looks at the queue again
        # after the release, so no message is left there.
        while self._unsent and self._sending.acquire(blocking=False):
            try:
                while self._unsent:
                    message = self._unsent.popleft()
                    if os.getpid() == self._pid:
                        self._sock.sendall(message)
            except IndexError:
                pass  # a finalizer has sent it meanwhile
            except OSError:
                self._unsent.clear()
            finally:
                self._sending.release()

    # --- receiving ------------------------------------------------------------------------------------------------

    def receive(self) -> Optional[dict[str, Any]]:
        """Returns the next message, or None when the other side has closed. Raises :class:`ChannelError` if the bytes
        are not a message.
        """
        head = self._take(4)
        if head is None:
            return None
        (n,) = struct.unpack("<I", head)
        if n > MAX_MESSAGE:
            raise ChannelError(f"the private process sent a message of {n} bytes, at most {MAX_MESSAGE}")
        body = self._take(n)
        if body is None:
            raise ChannelError(f"the private process ended inside a message of {n} bytes")
        try:
            message = document(body)
        except ValueError as e:
            raise ChannelError(f"the private process sent what is not a message: {e}") from None
        if not isinstance(message, dict) or not isinstance(message.get("kind"), str):
            raise ChannelError(f"the private process sent what is not a message: {bytes(body[:60])!r}")
        return message

    def descriptor(self) -> int:
        """Returns the oldest descriptor that has come and was not returned; the caller closes it. Raises
        :class:`ChannelError` if there is none.
        """
        if not self._descriptors:
            raise ChannelError("the private process sent a buffer without its descriptor")
        return self._descriptors.popleft()

    def _take(self, n: int) -> Optional[bytes]:
        """The next n bytes; None if the connection ends before all of them have come."""
        while len(self._received) < n:
            try:
                part, control, flags, _ = self._sock.recvmsg(_CHUNK, socket.CMSG_SPACE(4 * _MAX_DESCRIPTORS))
            except OSError:
                part, control, flags = b"", [], 0
            for level, kind, data in control:
                if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
                    fds = array.array("i")
                    fds.frombytes(data[: len(data) - len(data) % fds.itemsize])
                    for fd in fds:
                        os.set_inheritable(fd, False)
                        self._descriptors.append(fd)
            if flags & socket.MSG_CTRUNC:
                raise ChannelError("the private process sent too many descriptors at once")
            if not part:
                return None
            self._received += part
        taken = bytes(self._received[:n])
        del self._received[:n]
        return taken

    # --- the end --------------------------------------------------------------------------------------------------

    def shutdown(self) -> None:
        """Ends the connection for both sides, and a receive that waits."""
        if os.getpid() == self._pid:
            try:
                self._sock.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass

    def close(self) -> None:
        """Closes the socket, and descriptors that :meth:`descriptor` did not return."""
        _open.discard(self)
        self._sock.close()
        while self._descriptors:
            os.close(self._descriptors.popleft())

    def forget(self) -> None:
        """In a forked child: closes this process's copy of the socket and leaves the connection to the parent."""
        self._sending = threading.Lock()
        self._unsent.clear()
        self._sock.close()

