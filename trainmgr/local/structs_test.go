package local

import (
	"bytes"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/hashbytes"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
)

// visit is an element of a list of groups.
type visit struct {
	Item  int64    `parquet:"item"`
	Price *float64 `parquet:"price,optional"`
	Shop  struct {
		City string `parquet:"city"`
	} `parquet:"shop"`
}

// visitRow is a row with a list of groups, a repeated group, and a map whose keys are text.
type visitRow struct {
	Visits []visit          `parquet:"visits,list"`
	Plain  []visit          `parquet:"plain"`
	Tags   map[string]int32 `parquet:"tags"`
}

// TestFieldsOfListsAreTheSameOnEveryEngine takes fields out of lists of groups, each as a list of its own, and the keys
// and values of a map whose keys are text.
func TestFieldsOfListsAreTheSameOnEveryEngine(t *testing.T) {
	rng := rand.New(rand.NewPCG(93, 112))
	rows := make([]visitRow, 250)
	want := make([][]int64, 6)
	lengths := make([][]int32, 6)
	add := func(key int, ids ...int64) {
		want[key] = append(want[key], ids...)
		lengths[key] = append(lengths[key], int32(len(ids)))
	}
	hash := func(s string) int64 { return hashbytes.Reference([]byte(s), hashbytes.XXH3) }
	visits := func() (list []visit, items, buckets, cities []int64) {
		for range rng.IntN(5) {
			v := visit{Item: rng.Int64()}
			v.Shop.City = strconv.Itoa(rng.IntN(50))
			bucket := int64(0) // of a null, which is filled with 0
			if rng.IntN(4) > 0 {
				price := rng.Float64() * 3
				v.Price = &price
				bucket = int64(price)
			}
			list = append(list, v)
			items, buckets, cities = append(items, v.Item), append(buckets, bucket), append(cities, hash(v.Shop.City))
		}
		return list, items, buckets, cities
	}
	for i := range rows {
		var items, buckets, cities []int64
		rows[i].Visits, items, buckets, cities = visits()
		add(0, items...)
		add(1, buckets...)
		add(2, cities...)
		rows[i].Plain, items, _, _ = visits()
		add(3, items...)
		var keys, values []int64
		if rng.IntN(3) > 0 { // one entry, since the order of a map's entries is the writer's
			rows[i].Tags = map[string]int32{"tag" + strconv.Itoa(i%7): int32(i)}
			keys, values = []int64{hash("tag" + strconv.Itoa(i%7))}, []int64{int64(i)}
		}
		add(4, keys...)
		add(5, values...)
	}
	var b bytes.Buffer
	require.NoError(t, pq.Write(&b, rows, pq.MaxRowsPerRowGroup(90)))
	path := filepath.Join(t.TempDir(), "visits.parquet")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	spec, err := pipeline.Parse([]byte(`sparse:
  - {columns: [visits.item]}
  - {columns: [visits.price], ops: [fill_null: 0, bucketize: {borders: [1, 2], side: right, compare: float64}]}
  - {columns: [visits.shop.city], ops: [hash_bytes: xxh3]}
  - {columns: [plain.item]}
  - {columns: [tags.key_value.key], ops: [hash_bytes: xxh3]}
  - {columns: [tags.key_value.value]}
`))
	require.NoError(t, err)
	onEveryEngine(t, path, program.Parquet, spec, func(t *testing.T, mb *tensor.MiniBatch) {
		require.Equal(t, len(rows), mb.Rows)
		offsets := mb.OffsetPerKey()
		for key := range want {
			assert.Equal(t, want[key], append([]int64{}, mb.Values64[offsets[key]:offsets[key+1]]...), "key %d", key)
			assert.Equal(t, lengths[key], append([]int32{}, mb.Lengths[key*mb.Rows:(key+1)*mb.Rows]...), "key %d", key)
		}
	})
}
