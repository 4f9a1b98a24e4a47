"""Addresses, connections, the identity in a server's certificate, and the pool."""

from __future__ import annotations

import http.client
import ssl
import tempfile
import threading
import unittest
from typing import Any
from unittest import mock

from millrace.errors import TLSError
from millrace.pool import Pool
from millrace.wire import Address, Connections, _Secure, diagnose
from millrace.wire import owner as owner_of

from .fake import Serving


class Addresses(unittest.TestCase):
    def test_forms(self) -> None:
        for url, want in {
            "http://h:7460": ("", "h", 7460, False),
            "http://h": ("", "h", 80, False),
            "https://h": ("", "h", 443, True),
            "https://[::1]:9/": ("", "::1", 9, True),
            "unix:/run/x.sock": ("/run/x.sock", "localhost", None, False),
        }.items():
            a = Address(url)
            self.assertEqual((a.path, a.host, a.port, a.secure), want)
        for bad in ("h:1", "unix:", "http://", "ftp://h", "http://h/x", "http://h:99999"):
            with self.subTest(bad), self.assertRaises(ValueError):
                Address(bad).port


class Reuse(unittest.TestCase):
    def get(self, c: Connections, url: str) -> tuple[int, bool]:
        conn, used = c.take(url, 5)
        conn.request("GET", "/")
        response = conn.getresponse()
        response.read()
        c.give(url, conn)
        return response.status, used

    def test_connections_live_on(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for path in ("", folder + "/s"):
                server = Serving(lambda h: h.answer(200, b"x"), path)
                c = Connections()
                self.assertEqual(self.get(c, server.url), (200, False))
                self.assertEqual(self.get(c, server.url), (200, True))
                c.close()
                with self.assertRaises(OSError):
                    c.take(server.url, 5)
                server.stop()

    def test_close_ends_a_request_that_waits(self) -> None:
        held = threading.Event()
        server = Serving(lambda h: held.wait(20) and h.answer(200, b"x"))
        c = Connections()
        conn, _ = c.take(server.url, 20)
        conn.request("GET", "/")
        threading.Timer(0.05, c.close).start()
        with self.assertRaises((OSError, http.client.HTTPException)):
            conn.getresponse()
        held.set()
        c.drop(conn)
        server.stop()

    def test_no_socket(self) -> None:
        c = Connections()
        for url in ("unix:/nowhere/at/all.sock", "http://127.0.0.1:9"):
            conn, _ = c.take(url, 1)
            with self.assertRaises(OSError):
                conn.request("GET", "/")
            c.drop(conn)
        with self.assertRaisesRegex(OSError, "wants TLS"):
            c.take("https://127.0.0.1:9", 1)
        c.close()


class Identity(unittest.TestCase):
    def test_only_control_planes_are_control_planes(self) -> None:
        for names, good in (
            ((("URI", "spiffe://millrace/node/n0"),), False),
            ((("DNS", "x"), ("URI", "spiffe://millrace/control/m0")), True),
            ((("URI", "spiffe://millrace/launcher/t"),), False),
            ((("URI", "spiffe://elsewhere/node/n0"),), False),
            ((("DNS", "spiffe://millrace/node/n0"),), False),
            ((), False),
        ):

            def connect(self: Any) -> None:
                self.sock = mock.Mock(**{"getpeercert.return_value": {"subjectAltName": names}})

            with self.subTest(names), mock.patch.object(http.client.HTTPSConnection, "connect", connect):
                conn = _Secure("h", 1, context=ssl.create_default_context())
                if good:
                    conn.connect()
                else:
                    with self.assertRaises(ssl.SSLError) as caught:
                        conn.connect()
                    found = diagnose(Address("https://h:1"), None, 1.0, caught.exception)
                    self.assertIsInstance(found, TLSError)
                    self.assertIn("its certificate is not the control plane's", str(found))

    def test_workers_of_the_same_owner_are_servers(self) -> None:
        """A connection for mini-batches accepts the workers of this launcher's owner, beside nodes, and no other."""
        for uri, owner, good in (
            ("spiffe://millrace/launcher/ads", "ads", True),
            ("spiffe://millrace/launcher/ads.gpu-1", "ads", True),
            ("spiffe://millrace/launcher/ads-2", "ads", False),
            ("spiffe://millrace/launcher/ads-2.ads", "ads", False),
            ("spiffe://millrace/launcher/news", "ads", False),
            ("spiffe://millrace/launcher/.", "", False),
            ("spiffe://millrace/launcher/", "", False),
            ("spiffe://millrace/launcher/ads", "", False),
            ("spiffe://millrace/operator/ads", "ads", False),
            ("spiffe://elsewhere/launcher/ads", "ads", False),
            ("spiffe://millrace/node/n0", "ads", True),
            ("spiffe://millrace/node/n0", "", True),
            ("spiffe://millrace/control/m0", "ads", False),
        ):
            names = (("URI", uri),)

            def connect(self: Any, names: Any = names) -> None:
                self.sock = mock.Mock(**{"getpeercert.return_value": {"subjectAltName": names}})

            with (
                self.subTest(uri, owner=owner),
                mock.patch.object(http.client.HTTPSConnection, "connect", connect),
            ):
                conn = _Secure("h", 1, context=ssl.create_default_context())
                conn.makers, conn.owner = True, owner
                if good:
                    conn.connect()
                else:
                    with self.assertRaises(ssl.SSLError):
                        conn.connect()

    def test_the_owner_in_a_certificate(self) -> None:
        """The owner is read from the first certificate of the file, whatever lies around the URI."""

        def pem(*uris: bytes) -> str:
            names = b"".join(b"\x82\x03gpu" + b"\x86" + bytes([len(u)]) + u for u in uris)
            return "a comment\n" + ssl.DER_cert_to_PEM_cert(b"0\x82abc" + names + b"0\x82zz")

        launcher = b"spiffe://millrace/launcher/"
        for text, want in (
            (pem(launcher + b"ads"), "ads"),
            (pem(launcher + b"ads.gpu-0"), "ads"),
            (pem(b"https://x", launcher + b"ads-2.a.b"), "ads-2"),
            (pem(launcher + b"ads") + pem(launcher + b"news"), "ads"),
            (pem(launcher + b"ads", launcher + b"news"), ""),
            (pem(b"spiffe://millrace/operator/ads"), ""),
            (pem(launcher), ""),
            (pem(launcher + b"Ads"), ""),
            (pem(), ""),
            ("no certificate", ""),
            ("-----BEGIN CERTIFICATE-----\n", ""),
        ):
            with self.subTest(text), tempfile.NamedTemporaryFile("w") as f:
                f.write(text)
                f.flush()
                self.assertEqual(owner_of((f.name, "key", "ca")), want)
        self.assertEqual(owner_of(None), "")
        self.assertEqual(owner_of(ssl.create_default_context()), "")


class Diagnosis(unittest.TestCase):
    def test_the_error_of_the_call_is_enough(self) -> None:
        """An alert that only the failed call has seen is explained, though the server shows it no second time."""
        away = Address("https://127.0.0.1:1")  # nothing listens there
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)

        def alert(reason: str) -> ssl.SSLError:
            e = ssl.SSLError(1, f"[SSL: {reason}]")
            e.reason = reason
            return e

        for reason, says in {
            "TLSV1_ALERT_UNKNOWN_CA": "does not know the authority",
            "SSLV3_ALERT_CERTIFICATE_EXPIRED": "has expired",
            "TLSV13_ALERT_CERTIFICATE_REQUIRED": "wants a certificate",
        }.items():
            found = diagnose(away, context, 5, alert(reason))
            self.assertIsInstance(found, TLSError)
            self.assertIn(says, str(found))
        for passes in (None, BrokenPipeError(), alert("TLSV1_ALERT_INTERNAL_ERROR")):
            self.assertIsNone(diagnose(away, context, 5, passes))


class Memory(unittest.TestCase):
    def test_used_again_when_nobody_looks(self) -> None:
        p = Pool(4)
        a = p.take(1000)
        part = a[10:20].cast("H")
        del a
        b = p.take(1000)
        self.assertEqual(p.made, 2, "a part of it is still looked at")
        part.release()
        del part
        c = p.take(1000)
        self.assertEqual(p.made, 2)
        self.assertEqual((len(b), len(c)), (1000, 1000))

    def test_sizes(self) -> None:
        p = Pool(4)
        for n in (0, 1, 63, 64, 65, 5 << 20):
            self.assertEqual(len(p.take(n)), n)
        large = p.take(40 << 20)
        del large
        small = p.take(10)
        self.assertLess(len(small.obj), 8 << 20, "a large buffer is not given for little")

    def test_aligned(self) -> None:
        import ctypes

        p = Pool()
        held = [p.take(n) for n in (100, 5000, 3 << 20)]
        for v in held:
            self.assertEqual(ctypes.addressof(ctypes.c_char.from_buffer(v)) % 64, 0)

    def test_no_more_is_kept_than_said(self) -> None:
        p = Pool(3)
        held = [p.take(100) for _ in range(10)]
        self.assertEqual(len(p._all), 3)
        self.assertEqual(len({id(v.obj) for v in held}), 10)


if __name__ == "__main__":
    unittest.main()
