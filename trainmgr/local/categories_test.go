package local

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/hashbytes"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
)

// categoryRow is a row of text as strangers' files hold it.
type categoryRow struct {
	City *string  `parquet:"city,optional,dict"`
	Tags []string `parquet:"tags,list"`
	Page string   `parquet:"page,zstd"`
}

// randomRows draws rows of text: cities that repeat and may be null, tags of any bytes, and pages of any length.
func randomRows(rng *rand.Rand, count int) []categoryRow {
	cities := []string{"", "Zürich", "東京", "New York", "Llanfairpwllgwyngyllgogerychwyrndrobwllllantysiliogogogoch"}
	rows := make([]categoryRow, count)
	for i := range rows {
		if rng.IntN(5) > 0 {
			rows[i].City = &cities[rng.IntN(len(cities))]
		}
		for range rng.IntN(4) {
			tag := make([]byte, rng.IntN(20))
			for j := range tag {
				tag[j] = byte(rng.Uint32())
			}
			rows[i].Tags = append(rows[i].Tags, string(tag))
		}
		rows[i].Page = string(bytes.Repeat([]byte{byte('a' + rng.IntN(26))}, rng.IntN(1<<rng.IntN(12))))
	}
	return rows
}

// TestCategoriesAreTheSameOnEveryEngine draws files of text and pipelines with hash_bytes, and compares the ids with
// the hashes' references.
func TestCategoriesAreTheSameOnEveryEngine(t *testing.T) {
	names := map[string]hashbytes.Function{"xxh3": hashbytes.XXH3, "murmur3_32": hashbytes.Murmur3,
		"farmhash64": hashbytes.FarmHash}
	for name, function := range names {
		t.Run(name, func(t *testing.T) {
			rng := rand.New(rand.NewPCG(uint64(function), 12))
			rows := randomRows(rng, 300)
			var b bytes.Buffer
			w := pq.NewGenericWriter[categoryRow](&b)
			_, err := w.Write(rows)
			require.NoError(t, err)
			require.NoError(t, w.Close())
			path := filepath.Join(t.TempDir(), "text.parquet")
			require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
			modulus, first := 1+rng.Int64N(1<<40), 1+rng.IntN(3)
			spec, err := pipeline.Parse(fmt.Appendf(nil, `sparse:
  - {columns: [city], ops: [hash_bytes: %[1]s]}
  - {columns: [city], as: filled, ops: [hash_bytes: {function: %[1]s}, fill_null: -7, positive_modulus: %[2]d]}
  - {columns: [tags], ops: [hash_bytes: %[1]s, firstx: %[3]d]}
  - {columns: [page], ops: [hash_bytes: %[1]s, positive_modulus: %[2]d]}
`, name, modulus, first))
			require.NoError(t, err)

			var want [4][]int64
			floorModulus := func(id int64) int64 { return ((id % modulus) + modulus) % modulus }
			for _, r := range rows {
				filled := int64(-7)
				if r.City != nil {
					filled = hashbytes.Reference([]byte(*r.City), function)
					want[0] = append(want[0], filled)
				}
				want[1] = append(want[1], floorModulus(filled))
				for _, tag := range r.Tags[:min(first, len(r.Tags))] {
					want[2] = append(want[2], hashbytes.Reference([]byte(tag), function))
				}
				want[3] = append(want[3], floorModulus(hashbytes.Reference([]byte(r.Page), function)))
			}
			onEveryEngine(t, path, program.Parquet, spec, func(t *testing.T, mb *tensor.MiniBatch) {
				require.Equal(t, len(rows), mb.Rows)
				offsets := mb.OffsetPerKey()
				for key := range want {
					assert.Equal(t, want[key], append([]int64{}, mb.Values64[offsets[key]:offsets[key+1]]...), "key %d", key)
				}
			})
		})
	}
}
