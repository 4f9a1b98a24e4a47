package crc32c

import (
	"hash/crc32"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// bytes are n bytes that repeat nothing.
func bytes(n int) []byte {
	b := make([]byte, n)
	rng := rand.NewChaCha8([32]byte{1})
	_, _ = rng.Read(b)
	return b
}

// oracle is the definition, a bit at a time. It shares no code with hash/crc32, on which Update rests.
func oracle(b []byte) uint32 {
	crc := ^uint32(0)
	for _, x := range b {
		crc ^= uint32(x)
		for range 8 {
			carry := crc & 1
			crc >>= 1
			if carry == 1 {
				crc ^= 0x82f63b78
			}
		}
	}
	return ^crc
}

// RFC 3720, B.4, and the check value that every catalogue has.
func TestKnownAnswers(t *testing.T) {
	up := make([]byte, 32)
	for i := range up {
		up[i] = byte(i)
	}
	assert.EqualValues(t, 0x8a9136aa, Checksum(make([]byte, 32)))
	assert.EqualValues(t, 0x46dd794e, Checksum(up))
	assert.EqualValues(t, 0xe3069283, Checksum([]byte("123456789")))
	assert.Zero(t, Checksum(nil))
}

func TestEveryLength(t *testing.T) {
	b := bytes(6000)
	for n := range 5000 {
		at := n % 61
		require.Equal(t, crc32.Checksum(b[at:at+n], table), Checksum(b[at:at+n]), "%d bytes at %d", n, at)
	}
	require.Equal(t, oracle(b), Checksum(b))
}

// However a message is cut, its checksum is the same.
func TestPieces(t *testing.T) {
	b := bytes(1 << 20)
	want := Checksum(b)
	require.Equal(t, oracle(b), want)
	rng := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		crc := uint32(0)
		for at := 0; at < len(b); {
			n := min(1+rng.IntN(1<<rng.IntN(20)), len(b)-at)
			crc = Update(crc, b[at:at+n])
			at += n
		}
		require.Equal(t, want, crc)
	}
}

// A bit that is flipped anywhere changes the checksum.
func TestEveryBitCounts(t *testing.T) {
	b := bytes(2048 + 77)
	want := Checksum(b)
	for i := range 8 * len(b) {
		b[i/8] ^= 1 << (i % 8)
		require.NotEqual(t, want, Checksum(b), "bit %d", i)
		b[i/8] ^= 1 << (i % 8)
	}
}

func TestNothingIsAllocated(t *testing.T) {
	b := bytes(1 << 16)
	assert.Zero(t, testing.AllocsPerRun(10, func() { Checksum(b) }))
}

func FuzzUpdate(f *testing.F) {
	f.Add(uint32(0), bytes(3000), uint16(100))
	f.Add(uint32(1), []byte{}, uint16(0))
	f.Fuzz(func(t *testing.T, crc uint32, b []byte, times uint16) {
		for range times % 64 { // fuzzers like short inputs
			if len(b) > 0 && len(b) < 1<<14 {
				b = append(b, b[:min(len(b), 129)]...)
			}
		}
		require.Equal(t, crc32.Update(crc, table, b), Update(crc, b))
	})
}

func BenchmarkChecksum(b *testing.B) {
	for _, size := range []struct {
		name string
		n    int
	}{{"4KiB", 4 << 10}, {"256KiB", 256 << 10}, {"4MiB", 4 << 20}} {
		data := bytes(size.n)
		b.Run(size.name+"/ours", func(b *testing.B) {
			b.SetBytes(int64(size.n))
			for b.Loop() {
				Checksum(data)
			}
		})
		b.Run(size.name+"/standard", func(b *testing.B) {
			b.SetBytes(int64(size.n))
			for b.Loop() {
				crc32.Checksum(data, table)
			}
		})
	}
}
