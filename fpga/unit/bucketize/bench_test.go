package bucketize_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"sort"
	"testing"

	"github.com/millrace/millrace/fpga/unit/bucketize"
	"github.com/millrace/millrace/fpga/unit/internal/proving"
)

func BenchmarkTable(b *testing.B) {
	rng := rand.New(rand.NewPCG(1, 2))
	for _, n := range []int{1024, 4096} {
		for _, shape := range []string{"linear", "log", "uniform", "duplicates"} {
			wide := shapes(n)[shape]
			borders := make([]float32, n)
			whole := make([]int64, n)
			for i, v := range wide {
				borders[i] = float32(v)
				whole[i] = int64(v)
			}
			narrow := make([]float32, 2048)
			ids := make([]int64, len(narrow))
			for i := range narrow {
				lo, hi := wide[0], wide[n-1]
				if shape == "log" {
					narrow[i] = float32(math.Exp(rng.Float64() * math.Log(hi)))
				} else {
					narrow[i] = float32(lo + float64(rng.Float64()*(hi-lo)))
				}
				ids[i] = int64(narrow[i])
			}
			dst := make([]int64, len(narrow))
			run := func(name string, f func() error) {
				b.Run(fmt.Sprintf("%s/%s/%d", name, shape, n), func(b *testing.B) {
					proving.BenchmarkEachLevel(b, len(narrow), func() {
						if err := f(); err != nil {
							b.Fatal(err)
						}
					})
				})
			}
			t := table(b, bucketize.Params{Borders: borders})
			run("float32", func() error { return t.Float32(dst, narrow) })
			run("integers as float32", func() error { return t.Int64(dst, ids) })
			t64 := table(b, bucketize.Params{Borders64: wide, Compare: bucketize.CompareFloat64})
			run("float32 as float64", func() error { return t64.Float32(dst, narrow) })
			ti := table(b, bucketize.Params{BordersI64: whole, Compare: bucketize.CompareInt64})
			run("int64", func() error { return ti.Int64(dst, ids) })
			run("plain binary search", func() error {
				for i, v := range narrow {
					dst[i] = int64(sort.Search(n, func(k int) bool { return borders[k] >= v }))
				}
				return nil
			})
		}
	}
}
