"""Writes runs.json: DH-HMAC-CHAP transactions, message by message. Standard library only; see README.md."""
import base64
import hashlib
import hmac
import json
import struct
import zlib

HASHES = {1: hashlib.sha256, 2: hashlib.sha384, 3: hashlib.sha512}
OFFSETS = {2048: 560316, 3072: 2625351, 4096: 5736041, 6144: 15705020, 8192: 10965728}
GROUPS = {0: None, 1: 2048, 2: 3072, 3: 4096, 4: 6144, 5: 8192}
EXPONENT_BYTES = {1: 40, 2: 48, 3: 56, 4: 56, 5: 64}


def e_times_two_to(bits):
    guard = 256
    total, term, n = 0, 1 << (bits + guard), 0
    while term:
        total += term
        n += 1
        term //= n
    return total >> guard


def prime(bits):
    return 2**bits - 2 ** (bits - 64) + (e_times_two_to(bits - 130) + OFFSETS[bits]) * 2**64 - 1


PRIMES = {bits: prime(bits) for bits in OFFSETS}


def draw(label, n):
    return hashlib.shake_256(label.encode()).digest(n)


def key_text(hh, secret):
    return "DHHC-1:%02d:%s:" % (hh, base64.b64encode(secret + struct.pack("<I", zlib.crc32(secret))).decode())


def transformed(hh, secret, nqn):
    if hh == 0:
        return secret
    return hmac.new(secret, nqn + b"NVMe-over-Fabrics", HASHES[hh]).digest()


def header(kind, ident, tid):
    return struct.pack("<BBHH", kind, ident, 0, tid)


def run(hash_id, group_id, bidirectional, host_hh, ctrl_hh):
    name = "hash %d group %d %s keys %d/%d" % (hash_id, group_id, "both" if bidirectional else "host", host_hh, ctrl_hh)
    h = HASHES[hash_id]
    hl = h().digest_size
    host_nqn = b"nqn.2014-08.org.nvmexpress:uuid:6f1c1a7e-9d4b-4a43-8a1e-0d5a3a3b7c11"
    subsys_nqn = b"nqn.2025-01.example.millrace:drive%d" % group_id
    lengths = {0: 48, 1: 32, 2: 48, 3: 64}
    host_secret, ctrl_secret = draw(name + " host key", lengths[host_hh]), draw(name + " controller key", lengths[ctrl_hh])
    tid = struct.unpack("<H", draw(name + " tid", 2))[0]
    s1, s2 = (struct.unpack("<I", draw(name + s, 4))[0] | 1 for s in (" s1", " s2"))
    c1, c2 = draw(name + " c1", hl), draw(name + " c2", hl)

    ctrl_random, host_random = c1, b""
    gx = gy = shared = b""
    if group_id:
        bits, n = GROUPS[group_id], EXPONENT_BYTES[group_id]
        p = PRIMES[bits]
        xb, yb = draw(name + " x", n), draw(name + " y", n)
        ctrl_random, host_random = c1 + xb, yb
        x, y = (int.from_bytes(bytes([b[0] | 0x80]) + b[1:], "big") for b in (xb, yb))
        gx, gy = pow(2, x, p).to_bytes(bits // 8, "big"), pow(2, y, p).to_bytes(bits // 8, "big")
        shared = pow(int.from_bytes(gy, "big"), x, p).to_bytes(bits // 8, "big")
        assert shared == pow(int.from_bytes(gx, "big"), y, p).to_bytes(bits // 8, "big")
    if bidirectional:
        host_random += c2

    def augmented(c):
        return hmac.new(h(shared).digest(), c, h).digest() if group_id else c

    r1 = hmac.new(
        transformed(host_hh, host_secret, host_nqn),
        augmented(c1) + struct.pack("<IHB", s1, tid, 0) + b"HostHost" + host_nqn + b"\0" + subsys_nqn, h).digest()
    r2 = hmac.new(
        transformed(ctrl_hh, ctrl_secret, subsys_nqn),
        augmented(c2) + struct.pack("<IHB", s2, tid, 0) + b"Controller" + subsys_nqn + b"\0" + host_nqn, h).digest()

    descriptor = struct.pack("<BBBB", 1, 0, 1, 1) + bytes([hash_id]).ljust(30, b"\0") + bytes([group_id]).ljust(30, b"\0")
    negotiate = header(0, 0x00, tid) + struct.pack("<BB", 0, 1) + descriptor
    challenge = header(1, 0x01, tid) + struct.pack("<BBBBHI", hl, 0, hash_id, group_id, len(gx), s1) + c1 + gx
    reply = header(1, 0x02, tid) + struct.pack("<BBBBHI", hl, 0, int(bidirectional), 0, len(gy), s2 if bidirectional else 0)
    reply += r1 + (c2 if bidirectional else bytes(hl)) + gy
    success1 = header(1, 0x03, tid) + struct.pack("<BBB7x", hl, 0, int(bidirectional)) + (r2 if bidirectional else bytes(hl))
    success2 = header(1, 0x04, tid) + bytes(10) if bidirectional else b""
    return {
        "name": name, "hash": hash_id, "group": group_id, "host_nqn": host_nqn.decode(), "subsystem_nqn": subsys_nqn.decode(),
        "host_key": key_text(host_hh, host_secret), "controller_key": key_text(ctrl_hh, ctrl_secret) if bidirectional else "",
        "transaction": tid, "s1": s1, "s2": s2, "controller_random": ctrl_random.hex(), "host_random": host_random.hex(),
        "negotiate": negotiate.hex(), "challenge": challenge.hex(), "reply": reply.hex(), "success1": success1.hex(),
        "success2": success2.hex(),
    }


runs = [run(h, g, True, (h + g) % 4, g % 4) for h in HASHES for g in GROUPS]
runs += [run(h, g, False, g, 0) for h in HASHES for g in (0, 1)]
print("[\n" + ",\n".join(json.dumps(r) for r in runs) + "\n]")
