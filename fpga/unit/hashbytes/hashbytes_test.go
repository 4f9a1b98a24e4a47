package hashbytes_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/hashbytes"
	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

var functions = []hashbytes.Function{hashbytes.XXH3, hashbytes.Murmur3, hashbytes.FarmHash}

// kernel hashes one value, which does not begin at the first byte.
func kernel(t require.TestingT, value []byte, f hashbytes.Function) int64 {
	data := append([]byte("pad"), value...)
	dst := make([]int64, 1)
	require.NoError(t, hashbytes.Hash(dst, []uint32{3, uint32(len(data))}, data, nil, f))
	return dst[0]
}

// The vectors that the authors of the functions and their users publish.
func TestPublishedVectors(t *testing.T) {
	type vector struct {
		function hashbytes.Function
		value    string
		want     uint64
	}
	signed := func(x int64) uint64 { return uint64(x) }
	spark := func(x uint32) uint64 { return uint64(int64(int32(x))) }
	for _, v := range []vector{
		// As xxhsum -H3 of the xxHash project prints them.
		{hashbytes.XXH3, "", 0x2d06800538d394c2},
		{hashbytes.XXH3, "a", 0xe6c632b61e964e1f},
		{hashbytes.XXH3, "abc", 0x78af5f94892f3950},
		// DataFusion Comet's tests of Spark's hash, whose values come from Spark.
		{hashbytes.Murmur3, "hello", spark(3286402344)},
		{hashbytes.Murmur3, "bar", spark(2486176763)},
		{hashbytes.Murmur3, "", spark(142593372)},
		{hashbytes.Murmur3, "😁", spark(885025535)},
		{hashbytes.Murmur3, "天地", spark(2395000894)},
		// BigQuery's documentation of FARM_FINGERPRINT.
		{hashbytes.FarmHash, "1footrue", signed(-1541654101129638711)},
		{hashbytes.FarmHash, "2applefalse", signed(2794438866806483259)},
		{hashbytes.FarmHash, "3true", signed(-4880158226897771312)},
		// Guava's tests of farmHashFingerprint64.
		{hashbytes.FarmHash, "test", signed(8581389452482819506)},
		{hashbytes.FarmHash, strings.Repeat("test", 8), signed(-4196240717365766262)},
		{hashbytes.FarmHash, strings.Repeat("test", 64), signed(3500507768004279527)},
	} {
		assert.Equal(t, int64(v.want), kernel(t, []byte(v.value), v.function), "%d of %q", v.function, v.value)
		assert.Equal(t, int64(v.want), hashbytes.Reference([]byte(v.value), v.function), "reference, %d of %q", v.function,
			v.value)
	}
}

// Spark's documentation: hash('Spark', array(123), 2) is -1321691492. Spark hashes the next value with the hash so far
// as its seed, and an integer as four bytes.
func TestSparkDocumentation(t *testing.T) {
	integer := func(seed, x uint32) uint32 {
		rotate := func(x uint32, by int) uint32 { return x<<by | x>>(32-by) }
		h := rotate(seed^rotate(x*0xcc9e2d51, 15)*0x1b873593, 13)*5 + 0xe6546b64
		h ^= 4
		h = (h ^ h>>16) * 0x85ebca6b
		h = (h ^ h>>13) * 0xc2b2ae35
		return h ^ h>>16
	}
	text := uint32(kernel(t, []byte("Spark"), hashbytes.Murmur3))
	assert.Equal(t, int32(-1321691492), int32(integer(integer(text, 123), 2)))
}

// TensorFlow's documentation: string_to_hash_bucket_fast(["Hello", "TensorFlow", "2.x"], 3) is [0, 2, 2].
func TestTensorFlowDocumentation(t *testing.T) {
	for value, bucket := range map[string]uint64{"Hello": 0, "TensorFlow": 2, "2.x": 2} {
		assert.Equal(t, bucket, uint64(kernel(t, []byte(value), hashbytes.FarmHash))%3, value)
	}
}

// patternOf returns the value of a length whose hashes testdata/vectors.json has.
func patternOf(n int) []byte {
	value := make([]byte, n)
	for i := range value {
		value[i] = byte(i*167 + n*59 + i>>3*31)
	}
	return value
}

// The hashes in vectors.json were computed by the Python packages xxhash 4.1.0, pyfarmhash 0.5.1 and mmh3 5.3.1. mmh3
// has the published treatment of the bytes behind the last word, so only lengths that have none are compared.
func TestOtherImplementations(t *testing.T) {
	data, err := os.ReadFile("testdata/vectors.json")
	require.NoError(t, err)
	var vectors []struct {
		Length   int
		XXH3     string
		FarmHash string `json:"farmhash64"`
		Murmur3  string `json:"murmur3_32"`
	}
	require.NoError(t, json.Unmarshal(data, &vectors))
	require.Len(t, vectors, 360)
	words := 0
	for _, v := range vectors {
		value := patternOf(v.Length)
		for f, text := range map[hashbytes.Function]string{hashbytes.XXH3: v.XXH3, hashbytes.FarmHash: v.FarmHash} {
			want, err := strconv.ParseUint(text, 16, 64)
			require.NoError(t, err)
			require.Equal(t, int64(want), kernel(t, value, f), "%d of %d bytes", f, v.Length)
			require.Equal(t, int64(want), hashbytes.Reference(value, f), "reference, %d of %d bytes", f, v.Length)
		}
		if v.Length%4 == 0 {
			words++
			want, err := strconv.ParseUint(v.Murmur3, 16, 32)
			require.NoError(t, err)
			require.Equal(t, int64(int32(want)), kernel(t, value, hashbytes.Murmur3), "%d bytes", v.Length)
		}
	}
	require.Greater(t, words, 76)
}

// A tail's bytes are rounds of their own, and a byte above 127 is negative.
func TestTailsOfMurmur3(t *testing.T) {
	for n := range 40 {
		for _, c := range []byte{0, 1, 127, 128, 255} {
			value := append(patternOf(n), c)
			require.Equal(t, hashbytes.Reference(value, hashbytes.Murmur3), kernel(t, value, hashbytes.Murmur3))
		}
	}
}

func TestHashesColumns(t *testing.T) {
	data, offsets := []byte("--aabc"), []uint32{2, 3, 3, 3, 6}
	for _, f := range functions {
		dst := []int64{-1, -1, -1, -1}
		valid := []byte{1, 1, 0, 1}
		require.NoError(t, hashbytes.Hash(dst, offsets, data, valid, f))
		empty := hashbytes.Reference(nil, f)
		require.NotZero(t, empty)
		require.Equal(t, []int64{hashbytes.Reference([]byte("a"), f), empty, 0, hashbytes.Reference([]byte("abc"), f)}, dst,
			"the empty value has a hash, and a null has none")
		require.Equal(t, []byte{1, 1, 0, 1}, valid)
		require.NoError(t, hashbytes.Hash(nil, []uint32{0}, nil, nil, f))
	}
}

func TestArgumentsThatDoNotFit(t *testing.T) {
	for name, c := range proving.MalformedColumns() {
		for _, f := range functions {
			err := hashbytes.Hash(make([]int64, 2), c.Offsets, []byte("1234"), c.Valid, f)
			require.ErrorIs(t, err, hashbytes.ErrOffsets, name)
		}
	}
	err := hashbytes.Hash(make([]int64, 2), []uint32{0, 2, 4}, []byte("1234"), nil, 3)
	require.ErrorIs(t, err, hashbytes.ErrFunction)
}

func TestKernelEqualsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := rapid.SampledFrom(functions).Draw(t, "function")
		values := rapid.SliceOf(rapid.SliceOfN(rapid.Byte(), 0, 300)).Draw(t, "values")
		var data []byte
		offsets := []uint32{0}
		for _, v := range values {
			data = append(data, v...)
			offsets = append(offsets, uint32(len(data)))
		}
		dst := make([]int64, len(values))
		require.NoError(t, hashbytes.Hash(dst, offsets, data, nil, f))
		for i, v := range values {
			require.Equal(t, hashbytes.Reference(v, f), dst[i])
		}
	})
}

// Long values, whose lengths lie on both sides of blocks' and stripes' ends.
func TestLongValuesEqualReference(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1023, 1024, 1025, 1088, 1089, 2048, 2049, 4096, 4097, 65536, 65537} {
		value := make([]byte, n)
		for i := range value {
			value[i] = byte(rng.Uint32())
		}
		for _, f := range functions {
			require.Equal(t, hashbytes.Reference(value, f), kernel(t, value, f), "%d of %d bytes", f, n)
		}
	}
}

// FuzzHash takes any bytes for a value, and for a column's offsets: an error, or the reference's ids.
func FuzzHash(f *testing.F) {
	f.Add([]byte(""), []byte{0, 0}, uint8(0))
	f.Add([]byte("Hello"), []byte{0, 2, 5}, uint8(1))
	f.Add([]byte("1footrue"), []byte{9, 4}, uint8(2))
	f.Add(patternOf(255), []byte{0, 3, 20, 100, 255}, uint8(0))
	f.Fuzz(func(t *testing.T, data, ends []byte, function uint8) {
		offsets := make([]uint32, len(ends))
		for i, e := range ends {
			offsets[i] = uint32(e)
		}
		dst := make([]int64, max(len(ends)-1, 0))
		f := hashbytes.Function(function)
		if hashbytes.Hash(dst, offsets, data, nil, f) == nil {
			for i, id := range dst {
				if want := hashbytes.Reference(data[offsets[i]:offsets[i+1]], f); id != want {
					t.Fatalf("row %d is %d, want %d", i, id, want)
				}
			}
		}
		for _, f := range functions {
			if got, want := kernel(t, data, f), hashbytes.Reference(data, f); got != want {
				t.Fatalf("function %d of %d bytes is %d, want %d", f, len(data), got, want)
			}
		}
	})
}

func BenchmarkHash(b *testing.B) {
	const rows = 2048
	for _, n := range []int{8, 24, 100, 1000} {
		data, offsets := make([]byte, rows*n), make([]uint32, rows+1)
		for i := range data {
			data[i] = byte(i * 167)
		}
		for i := range offsets {
			offsets[i] = uint32(i * n)
		}
		dst := make([]int64, rows)
		for f, name := range map[hashbytes.Function]string{hashbytes.XXH3: "xxh3", hashbytes.Murmur3: "murmur3_32",
			hashbytes.FarmHash: "farmhash64"} {
			b.Run(fmt.Sprintf("%s/%d bytes", name, n), func(b *testing.B) {
				for b.Loop() {
					if err := hashbytes.Hash(dst, offsets, data, nil, f); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/value")
			})
		}
	}
}
