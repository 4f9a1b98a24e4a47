package unit_test

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/hashbytes"
	"github.com/millrace/millrace/fpga/unit/hashcross"
	"github.com/millrace/millrace/fpga/unit/unsignedmodulus"
)

// hashes runs a case of pandas' and NVTabular's hashes. A unit gives remainders only; those of two moduli that have no
// divisor in common, of which one is near 2^63, leave one hash.
func hashes(t *testing.T, c goldenCase) {
	switch fn := c.text("fn"); {
	case strings.HasPrefix(fn, "pandas.util.hash_pandas_object"):
		indexedHashes(t, c)
	case strings.HasPrefix(fn, "NVTabular CPU HashBucket"):
		indexedBuckets(t, c)
	case strings.HasPrefix(fn, "proposed HashedCross"):
		crossBuckets(t, c)
	case c.has("num_buckets"):
		var v struct {
			Buckets int64 `json:"num_buckets"`
			Input   []whole
			Output  []int64
		}
		c.into(t, &v)
		require.Equal(t, v.Output, bucketsOf(t, wholes(v.Input), v.Buckets))
	default:
		var v struct {
			Input   []whole
			Output  []unsigned
			Hundred []int64 `json:"mod_100"`
		}
		c.into(t, &v)
		input := wholes(v.Input)
		if strings.Contains(c.text("fn"), "int32") {
			for i := range input {
				input[i] &= math.MaxUint32
			}
		}
		for i, hash := range hashesOf(t, input) {
			require.Equal(t, uint64(v.Output[i]), hash, "of %d", input[i])
		}
		if v.Hundred != nil {
			require.Equal(t, v.Hundred, bucketsOf(t, input, 100))
		}
	}
}

// bucketsOf runs the kernel and, beside it, the reference.
func bucketsOf(t *testing.T, ids []int64, buckets int64) []int64 {
	t.Helper()
	hasher, err := hashcross.New(buckets)
	require.NoError(t, err)
	got := make([]int64, len(ids))
	hasher.Buckets(got, ids)
	for i, id := range ids {
		require.Equal(t, hashcross.Reference([]int64{id}, buckets), got[i], "reference, id %d", id)
	}
	return got
}

// hashesOf returns the whole hashes of ids: 2^63 - 1 and 4 have no common divisor, and a number below 2^64 is
// determined by both remainders.
func hashesOf(t *testing.T, ids []int64) []uint64 {
	t.Helper()
	large, small := bucketsOf(t, ids, math.MaxInt64), bucketsOf(t, ids, 4)
	hashes := make([]uint64, len(ids))
	for i := range ids {
		hashes[i] = uint64(large[i])
		for hashes[i]%4 != uint64(small[i]) {
			require.LessOrEqual(t, hashes[i], uint64(math.MaxUint64-math.MaxInt64), "no hash has both remainders")
			hashes[i] += math.MaxInt64
		}
	}
	return hashes
}

// indexedHash combines the hashes of a value and its row's index as pandas combines those of a tuple.
func indexedHash(t *testing.T, id, index int64) uint64 {
	sum, multiplier := uint64(0x345678), uint64(1000003)
	for i, hash := range hashesOf(t, []int64{id, index}) {
		sum = (sum ^ hash) * multiplier
		multiplier += 82520 + 2*uint64(2-i)
	}
	return sum + 97531
}

func indexedHashes(t *testing.T, c goldenCase) {
	var v struct {
		Input  []whole
		Output []unsigned
	}
	c.into(t, &v)
	for i, id := range v.Input {
		require.Equal(t, uint64(v.Output[i]), indexedHash(t, int64(id), int64(i)))
	}
}

// indexedBuckets is what NVTabular does on CPUs: one id has other buckets in other rows. The unit gives one id one
// bucket.
func indexedBuckets(t *testing.T, c goldenCase) {
	var v struct {
		Input   []whole
		Index   []int64
		Buckets int64 `json:"num_buckets"`
		Output  []int64
	}
	c.into(t, &v)
	for i, id := range v.Input {
		require.Equal(t, v.Output[i], int64(indexedHash(t, int64(id), v.Index[i])%uint64(v.Buckets)))
	}
	ours := bucketsOf(t, wholes(v.Input), v.Buckets)
	for i := range ours {
		require.Equal(t, ours[0], ours[i])
	}
}

func crossBuckets(t *testing.T, c goldenCase) {
	var v struct {
		Inputs  []json.RawMessage
		Buckets int64 `json:"num_buckets"`
		Output  []int64
	}
	c.into(t, &v)
	hasher, err := hashcross.New(v.Buckets)
	require.NoError(t, err)
	for i, raw := range v.Inputs {
		var ids []whole
		require.NoError(t, json.Unmarshal(raw, &ids))
		columns := make([][]int64, len(ids))
		for k, id := range ids {
			columns[k] = []int64{int64(id)}
		}
		got := []int64{0}
		hasher.Cross(got, columns)
		require.Equal(t, v.Output[i], got[0])
		require.Equal(t, v.Output[i], hashcross.Reference(wholes(ids), v.Buckets), "reference")
	}
}

// tensorFlowBuckets runs a case of TensorFlow's to_hash_bucket_fast: the unsigned remainder of FarmHash's
// Fingerprint64.
func tensorFlowBuckets(t *testing.T, c goldenCase) {
	var v struct {
		Input       []string
		Fingerprint []unsigned `json:"fingerprint64"`
		Buckets     int64      `json:"num_buckets"`
		Output      []int64
	}
	c.into(t, &v)
	offsets, data := []uint32{0}, []byte{}
	for _, text := range v.Input {
		data = append(data, text...)
		offsets = append(offsets, uint32(len(data)))
	}
	hashes := make([]int64, len(v.Input))
	require.NoError(t, hashbytes.Hash(hashes, offsets, data, nil, hashbytes.FarmHash))
	for i := range v.Fingerprint {
		require.Equal(t, uint64(v.Fingerprint[i]), uint64(hashes[i]))
	}
	modulus, err := unsignedmodulus.New(v.Buckets)
	require.NoError(t, err)
	got := make([]int64, len(hashes))
	modulus.Mod(got, hashes)
	require.Equal(t, v.Output, got)
	for i, hash := range hashes {
		require.Equal(t, v.Output[i], unsignedmodulus.Reference(hash, v.Buckets), "reference")
	}
}
