"""Puts the static binary into the wheel of the Python package, and names the platform that the wheel is for.

    repack_wheel.py PURE_WHEEL BINARY FOLDER

The binary is looked at: it must be an ELF program for Linux that no dynamic linker loads. Such a program uses no libc,
so the wheel fits every Linux of its architecture: those of manylinux2014 (kernel 3.10; Go needs 3.2) and of musllinux.
The order, times and modes of the entries do not depend on the machine, so the same inputs give the same bytes.
"""

from __future__ import annotations

import base64
import hashlib
import os
import struct
import sys
import time
import zipfile

# ELF: machine -> what platforms are called.
MACHINES = {62: "x86_64", 183: "aarch64"}
PT_DYNAMIC, PT_INTERP = 2, 3


def architecture(binary: bytes) -> str:
    """The architecture of a static 64-bit ELF program; another file ends this program."""
    if len(binary) < 64 or binary[:6] != b"\x7fELF\x02\x01":
        sys.exit("the binary is no 64-bit little-endian ELF file")
    machine = struct.unpack_from("<H", binary, 18)[0]
    headers, size, count = struct.unpack_from("<Q", binary, 32)[0], *struct.unpack_from("<HH", binary, 54)
    kinds = {struct.unpack_from("<I", binary, headers + i * size)[0] for i in range(count)}
    if kinds & {PT_DYNAMIC, PT_INTERP}:
        sys.exit("the binary is not static: build it with CGO_ENABLED=0")
    if machine not in MACHINES:
        sys.exit(f"the binary is for ELF machine {machine}, want one of {MACHINES}")
    return MACHINES[machine]


def record_line(name: str, content: bytes) -> str:
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
    return f"{name},sha256={digest},{len(content)}\n"


def main(pure: str, program: str, folder: str) -> None:
    with open(program, "rb") as f:
        binary = f.read()
    arch = architecture(binary)
    platforms = [f"manylinux2014_{arch}", f"manylinux_2_17_{arch}", f"musllinux_1_1_{arch}"]
    with zipfile.ZipFile(pure) as z:
        entries = {info.filename: z.read(info) for info in z.infolist() if not info.is_dir()}
    (info_folder,) = {name.split("/")[0] for name in entries if name.split("/")[0].endswith(".dist-info")}
    entries["millrace/_bin/millrace"] = binary
    entries[f"{info_folder}/WHEEL"] = (
        "Wheel-Version: 1.0\nGenerator: millrace (tools/package/wheel)\nRoot-Is-Purelib: false\n"
        + "".join(f"Tag: py3-none-{platform}\n" for platform in platforms)
    ).encode()
    record = f"{info_folder}/RECORD"
    entries.pop(record)
    # The metadata come last, as the specification of wheels recommends.
    names = sorted(entries, key=lambda name: (name.startswith(info_folder), name))
    entries[record] = ("".join(record_line(name, entries[name]) for name in names) + f"{record},,\n").encode()

    stamp = time.gmtime(max(int(os.environ["SOURCE_DATE_EPOCH"]), 315532800))[:6]  # zip begins with 1980
    path = os.path.join(folder, f"{info_folder.removesuffix('.dist-info')}-py3-none-{'.'.join(platforms)}.whl")
    with zipfile.ZipFile(path + ".partial", "w") as z:
        for name in [*names, record]:
            entry = zipfile.ZipInfo(name, stamp)
            entry.create_system = 3  # Unix, whose modes follow
            entry.external_attr = (0o100755 if name == "millrace/_bin/millrace" else 0o100644) << 16
            z.writestr(entry, entries[name], zipfile.ZIP_DEFLATED, 6)
    os.replace(path + ".partial", path)
    print(path)


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
