"""The command millrace of the package, which becomes the binary, and how the binary is found on the PATH."""

from __future__ import annotations

import os
import pathlib
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

from millrace import BinaryError, binary

HELD = pathlib.Path(binary.__file__).parent / "_bin" / "millrace"


@unittest.skipIf(HELD.exists(), "this package holds a binary")
class Command(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.first, self.second = (pathlib.Path(folder.name) / name for name in ("first", "second"))
        for place in (self.first, self.second):
            place.mkdir()
        # The script that pip makes of the package's entry point.
        self.command = self.write(
            self.first,
            f"#!{sys.executable}\nimport sys\nfrom millrace.binary import main\nif __name__ == '__main__':\n"
            "    sys.exit(main())\n",
        )
        environment = {k: v for k, v in os.environ.items() if k != "MILLRACE_BIN"}
        source = str(pathlib.Path(binary.__file__).parent.parent)
        self.env = {**environment, "PATH": f"{self.first}:{self.second}:/usr/bin:/bin", "PYTHONPATH": source}

    def write(self, folder: pathlib.Path, text: str) -> str:
        path = folder / "millrace"
        path.write_text(text)
        path.chmod(0o755)
        return str(path)

    def run_command(self, *arguments: str) -> "subprocess.CompletedProcess[str]":
        return subprocess.run(
            [self.command, *arguments], env=self.env, capture_output=True, text=True, timeout=120, check=False
        )

    def test_it_becomes_the_binary(self) -> None:
        self.write(self.second, '#!/bin/sh\necho "$1:$#"\nexit 7\n')
        done = self.run_command("a b", "c")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (7, "a b:2\n", ""))

    def test_it_does_not_call_itself(self) -> None:
        done = self.run_command("version")
        self.assertEqual(done.returncode, 1)
        self.assertIn("millrace: there is no millrace binary", done.stderr)
        with mock.patch.dict(os.environ, self.env, clear=True), self.assertRaises(BinaryError):
            binary.find()

    def test_the_first_program_of_the_path(self) -> None:
        program = self.write(self.second, "#!/bin/sh\n")
        with mock.patch.dict(os.environ, self.env, clear=True):
            self.assertEqual(binary.find(), program)


if __name__ == "__main__":
    unittest.main()
