#!/usr/bin/env python3
"""Computes the golden vectors of ../shuffle_golden_test.go from the definition in the package comment, independently of
the Go code. Usage: python3 shuffle.py > ../shuffle_golden_test.go && gofmt -w ../shuffle_golden_test.go"""
M = (1 << 64) - 1
G = 0x9E3779B97F4A7C15


def mix(z):
    z ^= z >> 30
    z = z * 0xBF58476D1CE4E5B9 & M
    z ^= z >> 27
    z = z * 0x94D049BB133111EB & M
    return z ^ z >> 31


def key(*parts):
    k = 0
    for x in parts:
        k = mix((k ^ x) + G & M)
    return k


class Stream:
    def __init__(self, state):
        self.state = state

    def next(self):
        self.state = self.state + G & M
        return mix(self.state)

    def below(self, n):
        m = self.next() * n
        while m & M < (1 << 64) % n:
            m = self.next() * n
        return m >> 64


def permute(s, n):
    p = list(range(n))
    for i in range(n - 1, 0, -1):
        j = s.below(i + 1)
        p[i], p[j] = p[j], p[i]
    return p


def main():
    cases = [((0, 0, 1), 1), ((0, 0, 1), 2), ((0, 0, 1), 10), ((1, 0, 1), 10), ((0, 1, 1), 10), ((M, M, 1), 10),
             ((42, 7, 2, 3, 0), 1000), ((42, 7, 2, 3, 1), 1000), ((42, 7, 1), 100000)]
    print("// Made by testdata/shuffle.py; do not edit.\n\npackage dataset\n\nvar goldenShuffles = []struct {")
    print("\tkey []uint64\n\tn int\n\tstate uint64\n\thead []uint32\n}{")
    for k, n in cases:
        p, parts = permute(Stream(key(*k)), n), ", ".join(map(str, k))
        print("\t{[]uint64{%s}, %d, 0x%016x, []uint32{%s}}," % (parts, n, key(*k), ", ".join(map(str, p[:10]))))
    print("}")


if __name__ == "__main__":
    main()
