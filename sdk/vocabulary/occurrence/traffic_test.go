package occurrence

import (
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"
)

// BenchmarkRunsOfASplit measures what a node would send to a reducer if it folded a split's keys first: the bytes of a
// sorted run of keys, first rows and counts, as varints of distances, beside the 8 bytes a row that the keys take in
// mini-batches; and the time a row that folding takes, beside the time that a reducer takes for the entries. See
// docs/rationale.md.
func BenchmarkRunsOfASplit(b *testing.B) {
	for _, keys := range []int64{5000, 512 << 10, 1 << 20, 1 << 31} {
		for _, rows := range []int{8192, 131072, 1 << 20} {
			b.Run(fmt.Sprintf("keys=%d/rows=%d", keys, rows), func(b *testing.B) {
				rng := rand.New(rand.NewPCG(1, 2))
				zipf := rand.NewZipf(rng, 1.05, 1, 1<<31-1)
				column := make([]int64, rows)
				for i := range column {
					column[i] = int64(zipf.Uint64()*0x9e3779b97f4a7c15>>33) % keys
				}
				var sent, entries int
				var folding, taking time.Duration
				reducer := Table{mostDense: 1 << 20}
				for b.Loop() {
					begin := time.Now()
					table := Table{mostDense: 1 << 20}
					table.AddColumn(column, 0)
					run := table.TakeAll()
					sent, entries = len(appendRun(nil, run)), len(run)
					folding += time.Since(begin)
					begin = time.Now()
					reducer.AddColumn(column, 0)
					taking += time.Since(begin)
				}
				all := float64(b.N) * float64(rows)
				b.ReportMetric(float64(sent)/float64(rows), "run-B/row")
				b.ReportMetric(float64(entries)/float64(rows), "entries/row")
				b.ReportMetric(float64(folding.Nanoseconds())/all, "fold-ns/row")
				b.ReportMetric(float64(taking.Nanoseconds())/all, "take-ns/row")
			})
		}
	}
}

// appendRun appends a sorted run of one split as varints.
func appendRun(b []byte, run []Entry) []byte {
	before := int64(0)
	for _, e := range run {
		b = binary.AppendUvarint(b, uint64(e.Key)-uint64(before))
		b = binary.AppendUvarint(binary.AppendUvarint(b, e.Position>>PlaceBits), e.Count)
		before = e.Key
	}
	return b
}
