"""Contexts, and the errors of wrong addresses. An error that waits for the client's patience would come after two
minutes, so a test that expects it at once takes that long.
"""

from __future__ import annotations

import json
import os
import pathlib
import socket
import ssl
import tempfile
import threading
import unittest
from typing import Optional
from unittest import mock

import millrace
from millrace import AddressError, ContextError, Control, Job, OptionsError, TLSError, UnreachableError
from millrace.contexts import parse, resolve

from .fake import Cluster, Serving

HOUR = 120.0
FILE = {
    "current": "one",
    "contexts": {
        "one": {"control": ["https://one:1"], "cert": "/1c", "key": "/1k", "ca": "/1a"},
        "two": {"control": ["https://two:1", "https://two:2"], "cert": "2c", "key": "2k", "ca": "2a"},
        "plain": {"control": ["http://plain:1"]},
    },
}


class Contexts(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.home = pathlib.Path(folder.name)
        self.file = self.home / "millrace" / "contexts.yaml"
        self.file.parent.mkdir()
        self.file.write_text(json.dumps(FILE))

    def resolve(self, control: object = None, tls: object = None, **env: str) -> tuple[list[str], object]:
        return resolve(control, tls, {"XDG_CONFIG_HOME": str(self.home), **env})  # type: ignore[arg-type]

    def test_offloading_names_the_context_to_use_before_it_submits(self) -> None:
        def certificate(uri: bytes) -> str:
            path = self.file.parent / (uri.decode().replace("/", "-") + ".pem")
            uri = b"spiffe://millrace/" + uri
            path.write_text(ssl.DER_cert_to_PEM_cert(b"0\x82abc\x86" + bytes([len(uri)]) + uri + b"0\x82zz"))
            return path.name

        def kept(uri: bytes, port: int = 9) -> dict[str, object]:
            return {"control": [f"https://127.0.0.1:{port}"], "cert": certificate(uri), "key": "key", "ca": "ca"}

        contexts = {
            "local": kept(b"operator/ann"),
            "local-launcher": kept(b"launcher/ann.host-0"),
            "elsewhere": kept(b"launcher/ann.host-1", 10),
            "gone": {**kept(b"launcher/ann.host-2"), "cert": "gone.pem"},
        }
        for names, says in (
            (contexts, "use control='local-launcher', or"),
            (["local"], r"issue one \(millrace pki issue --role launcher --name OWNER --host HOST\), or"),
        ):
            self.file.write_text(json.dumps({"current": "local", "contexts": {n: contexts[n] for n in names}}))
            with mock.patch.dict(os.environ, {"XDG_CONFIG_HOME": str(self.home)}):
                for control in ("local", ""):
                    with self.subTest(says), self.assertRaisesRegex(OptionsError, says) as caught:
                        millrace.open("day.parquet", "rm1", control=control or "https://127.0.0.1:9", offload=0.5)
                    self.assertEqual(caught.exception.argument, "control")
                with self.assertRaises(FileNotFoundError):  # of the key: no certificate is asked for to submit
                    millrace.open("day.parquet", "rm1", control="local")

    def test_what_goes_before_what(self) -> None:
        one = ("/1c", "/1k", "/1a")
        folder = str(self.file.parent)
        two = (folder + "/2c", folder + "/2k", folder + "/2a")
        self.assertEqual(self.resolve(), (["https://one:1"], one))
        self.assertEqual(self.resolve("two"), (["https://two:1", "https://two:2"], two))
        self.assertEqual(self.resolve(MILLRACE_CONTEXT="two")[1], two)
        self.assertEqual(
            self.resolve("one", MILLRACE_CONTEXT="two", MILLRACE_CONTROL="http://env:1"), (["https://one:1"], one)
        )
        self.assertEqual(
            self.resolve(MILLRACE_CONTROL="https://env:1, https://env:2", MILLRACE_CONTEXT="two"),
            (["https://env:1", "https://env:2"], two),
        )
        self.assertEqual(self.resolve("https://arg:1/", MILLRACE_CONTROL="http://env:1"), (["https://arg:1"], one))
        self.assertEqual(self.resolve("https://arg:1", ("c", "k", "a")), (["https://arg:1"], ("c", "k", "a")))
        self.assertEqual(self.resolve("plain"), (["http://plain:1"], None))
        self.assertEqual(self.resolve(["http://a:1", "unix:/s"]), (["http://a:1", "unix:/s"], None))
        self.assertEqual(self.resolve(MILLRACE_CERT="ec", MILLRACE_KEY="ek"), (["https://one:1"], ("ec", "ek", "/1a")))
        self.assertEqual(resolve(None, None, {}), (["http://127.0.0.1:7460"], None))

    def test_what_is_not_there(self) -> None:
        with self.assertRaisesRegex(ContextError, "no context 'three'; there are one, plain, two"):
            self.resolve("three")
        with self.assertRaisesRegex(ContextError, "MILLRACE_CONTEXT: no context 'three'"):
            self.resolve(MILLRACE_CONTEXT="three")
        with self.assertRaisesRegex(ValueError, "no URL"):
            self.resolve([])
        self.file.unlink()
        with self.assertRaisesRegex(ContextError, "millrace up makes one"):
            self.resolve("one")
        self.file.write_text("current: one\n")
        with self.assertRaisesRegex(ContextError, "contexts.yaml: .*line 1"):
            self.resolve()
        self.assertEqual(self.resolve("http://a:1"), (["http://a:1"], None), "the file is not wanted")

    def test_strict(self) -> None:
        for text in (
            "",
            "[]",
            '{"curent": ""}',
            '{"current": 1}',
            '{"current": "a"}',
            '{"current": "", "current": ""}',
            '{"contexts": []}',
            '{"contexts": {"a": {}}}',
            '{"contexts": {"a": {"control": "unix:/s"}}}',
            '{"contexts": {"a": {"control": []}}}',
            '{"contexts": {"a": {"control": [1]}}}',
            '{"contexts": {"a": {"control": ["unix:/s"], "url": ""}}}',
            '{"contexts": {"a": {"control": ["unix:/s"], "ca": "x"}}}',
            '{"contexts": {"https://a": {"control": ["unix:/s"]}}}',
            '{"contexts": {"a": {"control": ["unix:/s"]}}} {}',
            '{"contexts": {"a": {"control": ["unix:/s"], "cert": null}}}',
        ):
            with self.subTest(text), self.assertRaises(ValueError):
                parse(text.encode())
        with self.assertRaises(ValueError):
            parse(b'{"current": "\xff"}')
        self.file.write_text("[" * 100_000)
        with self.assertRaises(ContextError):
            self.resolve()

    def test_a_job_of_the_context(self) -> None:
        with Cluster(total=40, split=4) as c, mock.patch.dict(os.environ, {"XDG_CONFIG_HOME": str(self.home)}):
            self.file.write_text(
                json.dumps(
                    {
                        "current": "here",
                        "contexts": {"here": {"control": c.urls}, "away": {"control": ["http://127.0.0.1:9"]}},
                    }
                )
            )
            with Control() as control:
                self.assertEqual(control.urls, c.urls)
                control.jobs()
            with Job(id="rm1") as job:
                self.assertEqual(len(list(job)), 40)
            with Control("away") as control:
                self.assertEqual(control.urls, ["http://127.0.0.1:9"])
        with self.assertRaisesRegex(ValueError, "no job"):
            Job("http://127.0.0.1:9")


def listener(said: Optional[bytes]) -> tuple[str, socket.socket]:
    """Returns the URL and the socket of a server that sends ``said`` on every connection and closes it, or sends
    nothing for None.
    """
    s = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        held = []
        while True:
            try:
                c, _ = s.accept()
            except OSError:
                return
            if said is None:
                held.append(c)
                continue
            with c:
                c.sendall(said)
                c.settimeout(5)
                try:
                    c.recv(1024)
                except OSError:
                    pass

    threading.Thread(target=serve, daemon=True).start()
    return f"http://127.0.0.1:{s.getsockname()[1]}", s


class WrongAddresses(unittest.TestCase):
    def refused(self, url: str, kind: type[Exception], says: str, contact: float = HOUR, timeout: float = 10.0) -> None:
        for call in (lambda c: c.jobs(), lambda c: c.submit({"name": "a", "pipeline": "name: a\n"})):
            with (
                self.subTest(url),
                self.assertRaisesRegex(kind, says),
                Control(url, patience=HOUR, contact=contact, timeout=timeout) as c,
            ):
                call(c)

    def test_nobody_listens(self) -> None:
        with socket.create_server(("127.0.0.1", 0)) as s:
            url = f"http://127.0.0.1:{s.getsockname()[1]}"
        self.refused(url, AddressError, "no member of the control plane answers.*is it started", contact=0.2)

    def test_nobody_knows_the_host(self) -> None:
        unknown = socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        with mock.patch("socket.getaddrinfo", side_effect=unknown):
            self.refused("http://no-such-host.invalid:7460", AddressError, "nobody knows the host no-such-host.invalid")
        later = socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")
        with mock.patch("socket.getaddrinfo", side_effect=later):
            self.refused("http://no-such-host.invalid:7460", AddressError, "Temporary failure", contact=0.2)

    def test_something_else_listens(self) -> None:
        for said, says in (
            (b"SSH-2.0-OpenSSH_9.2\r\n", "does not speak HTTP"),
            (b"\x15\x03\x01\x00\x02\x02\x46", "serves TLS.*write https"),
        ):
            url, s = listener(said)
            with s:
                self.refused(url, AddressError, says)
        url, s = listener(None)
        with s:
            self.refused(url, AddressError, "does not answer", timeout=0.3)
        page = Serving(lambda h: h.answer(404, b"<html>", Content_Type="text/html"))
        self.refused(page.url, AddressError, "not as a control plane does .status 404")
        page.stop()

    def test_https_without_a_certificate(self) -> None:
        with mock.patch.dict(os.environ, {"XDG_CONFIG_HOME": "/nowhere"}):
            self.refused("https://127.0.0.1:9", TLSError, "no certificate to show: give tls=")

    def test_one_of_two_is_right(self) -> None:
        url, s = listener(b"SSH-2.0-OpenSSH_9.2\r\n")
        with s, Cluster() as c, Control([url, *c.urls]) as control:
            control.jobs()

    def test_once_met_it_is_waited_for(self) -> None:
        with Cluster() as c, Control(c.urls, patience=0.5, contact=0.0) as control:
            control.jobs()
            c.leader = -1
            with self.assertRaisesRegex(UnreachableError, "nobody leads") as e:
                control.job("rm1")
            self.assertNotIsInstance(e.exception, AddressError)


if __name__ == "__main__":
    unittest.main()
