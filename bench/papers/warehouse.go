package papers

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/parquet-go/parquet-go"

	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/sdk/pipeline"
)

// The synthetic warehouse is DPP's RM3, a tenth as wide: Tables IV and V.
const (
	warehouseDense  = 571   // of 5,707 float features
	warehouseSparse = 19    // of 188 sparse features
	readDense       = 50    // of 504 that the model reads
	readSparse      = 4     // of 42
	warehouseLength = 19.64 // ids of a sparse feature
	warehouseShare  = 0.29  // of rows that have a feature
	smallStripe     = 4096  // rows of a row group
	largeStripe     = 16_384
	warehouseCodec  = "zstd"
)

// table is a file of the warehouse in memory.
type table struct {
	bytes []byte
	maps  bool
}

// makeTable writes the warehouse's rows as one file, with a column a feature or with features in maps.
func makeTable(ctx context.Context, o *Options, stripe int, maps bool) (*table, error) {
	model := workload.Model{Name: "warehouse", Dense: warehouseDense, Sparse: warehouseSparse, Lists: true,
		MeanLength: warehouseLength, Tables: warehouseSparse, Embeddings: 500_000}
	data, err := generate(ctx, o, workload.Options{Model: model, Rows: o.whole(largeStripe), RowGroupRows: stripe,
		Codec: warehouseCodec, Maps: maps, Coverage: warehouseShare})
	return &table{bytes: data, maps: maps}, err
}

// features returns every which-th of all features, so that those read lie apart as in DPP before its write path was
// changed, or the first ones, which lie side by side.
func features(all, read int, apart bool) []int {
	var chosen []int
	for i := range read {
		if apart {
			chosen = append(chosen, i*all/read)
			continue
		}
		chosen = append(chosen, i)
	}
	return chosen
}

// listed writes numbers with commas.
func listed(numbers []int, prefix string) string {
	var s []string
	for _, n := range numbers {
		s = append(s, fmt.Sprint(prefix, n))
	}
	return strings.Join(s, ", ")
}

// pipeline reads the model's features, which lie apart.
func (t *table) pipeline() (*pipeline.Spec, error) {
	dense, sparse := features(warehouseDense, readDense, true), features(warehouseSparse, readSparse, true)
	columns := [2]string{listed(dense, "int_"), listed(sparse, "cat_")}
	if t.maps {
		columns = [2]string{fmt.Sprintf("%q", workload.FloatFeatures+"["+listed(dense, "")+"]"),
			fmt.Sprintf("%q", workload.IDListFeatures+"["+listed(sparse, "")+"]")}
	}
	return pipeline.Parse([]byte(fmt.Sprintf("name: warehouse\nbatch: 4096\nlabel: {column: label}\ndense:\n  - columns: "+
		"[%s]\n    ops: [fill_null: 0]\nsparse:\n  - columns: [%s]\n    ops: [sigrid_hash: {salt: 0, max: 500000}]\n",
		columns[0], columns[1])))
}

// measure reads the model's features of a table again and again, with one thread, for some time.
func (t *table) measure(ctx context.Context, least time.Duration) (*pass, error) {
	spec, err := t.pipeline()
	if err != nil {
		return nil, err
	}
	return measurePipeline(ctx, t.bytes, spec, least)
}

// byteRange is a range of a file.
type byteRange struct{ from, to int64 }

func (e byteRange) size() float64 { return float64(e.to - e.from) }

// chunks returns the column chunks that a reader wants, by row groups: those of the features chosen, or of all maps.
func (t *table) chunks(apart bool) (groups [][]byteRange, err error) {
	f, err := parquet.OpenFile(bytes.NewReader(t.bytes), int64(len(t.bytes)))
	if err != nil {
		return nil, err
	}
	wanted := map[string]bool{}
	for _, i := range features(warehouseDense, readDense, apart) {
		wanted[fmt.Sprint("int_", i)] = true
	}
	for _, i := range features(warehouseSparse, readSparse, apart) {
		wanted[fmt.Sprint("cat_", i)] = true
	}
	for _, group := range f.Metadata().RowGroups {
		var chunks []byteRange
		for i := range group.Columns {
			m := &group.Columns[i].MetaData
			if wanted[m.PathInSchema[0]] || t.maps {
				from := m.DataPageOffset
				if m.DictionaryPageOffset > 0 {
					from = min(from, m.DictionaryPageOffset)
				}
				chunks = append(chunks, byteRange{from, from + m.TotalCompressedSize})
			}
		}
		slices.SortFunc(chunks, func(a, b byteRange) int { return cmp.Compare(a.from, b.from) })
		groups = append(groups, chunks)
	}
	return groups, nil
}

// coalesce joins the ranges of each row group into reads of at most a span.
func coalesce(groups [][]byteRange, span int64) (joined [][]byteRange) {
	for _, group := range groups {
		var reads []byteRange
		for _, c := range group {
			if n := len(reads); n > 0 && c.to-reads[n-1].from <= span {
				reads[n-1].to = c.to
				continue
			}
			reads = append(reads, c)
		}
		joined = append(joined, reads)
	}
	return joined
}

// total is the sum of sizes.
func total(groups [][]byteRange) (sum float64) {
	for _, e := range slices.Concat(groups...) {
		sum += e.size()
	}
	return sum
}

// distribution is what Table VI has of sizes.
type distribution struct{ mean, deviation, p5, p25, p50, p75, p95 float64 }

func distributionOf(groups [][]byteRange) (d distribution) {
	ranges := slices.Concat(groups...)
	sizes := make([]float64, len(ranges))
	for i, e := range ranges {
		sizes[i] = e.size()
	}
	slices.Sort(sizes)
	n := float64(len(sizes))
	d.mean = total(groups) / n
	for _, s := range sizes {
		d.deviation += (s - d.mean) * (s - d.mean) / n
	}
	d.deviation = math.Sqrt(d.deviation)
	at := func(percent int) float64 { return sizes[(len(sizes)-1)*percent/100] }
	d.p5, d.p25, d.p50, d.p75, d.p95 = at(5), at(25), at(50), at(75), at(95)
	return d
}
