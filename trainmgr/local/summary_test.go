package local_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/internal/shared"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/summary"
	summaries "github.com/millrace/millrace/sdk/summary/reducer"
	"github.com/millrace/millrace/trainmgr/local"
)

// row has a column of every kind that a pass reads.
type row struct {
	ID     int64     `parquet:"id"`
	Age    *int32    `parquet:"age,optional"`
	Price  float32   `parquet:"price"`
	Score  *float64  `parquet:"score,optional"`
	Name   *string   `parquet:"name,optional"`
	Clicks []int64   `parquet:"clicks,list"`
	Words  []string  `parquet:"words,list"`
	Vector []float32 `parquet:"vector,list"`
	Flag   bool      `parquet:"flag"`
}

// drawRows draws rows that depend on a seed alone.
func drawRows(seed uint64, n int) []row {
	rng := rand.New(rand.NewPCG(seed, 5))
	rows := make([]row, n)
	for i := range rows {
		r := &rows[i]
		r.ID, r.Flag = rng.Int64()-rng.Int64(), rng.IntN(3) == 0
		switch r.Price = float32(math.Exp(rng.NormFloat64() * 3)); rng.IntN(40) {
		case 0:
			r.Price = float32(math.NaN())
		case 1:
			r.Price = float32(math.Inf(1))
		case 2:
			r.Price = float32(math.Copysign(0, -1))
		}
		if rng.IntN(4) > 0 {
			age := int32(rng.IntN(90) - 1)
			r.Age = &age
		}
		if rng.IntN(3) > 0 {
			score := rng.NormFloat64()
			r.Score = &score
		}
		if rng.IntN(5) > 0 {
			name := fmt.Sprint("name", rng.IntN(5000))
			r.Name = &name
		}
		for range rng.IntN(5) {
			r.Clicks = append(r.Clicks, rng.Int64N(1<<33))
			r.Words = append(r.Words, fmt.Sprint(rng.IntN(20)))
			r.Vector = append(r.Vector, rng.Float32())
		}
	}
	return rows
}

// writeRows writes a file and returns its path.
func writeRows[T any](t *testing.T, folder, name string, rows []T, group int) string {
	t.Helper()
	var b bytes.Buffer
	w := pq.NewGenericWriter[T](&b, pq.MaxRowsPerRowGroup(int64(group)), pq.PageBufferSize(4096),
		pq.Compression(&pq.Snappy))
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	path := filepath.Join(folder, name)
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o600))
	return path
}

// runPass makes a pass over files.
func runPass(t *testing.T, c local.Config, p summaries.Pass) *summaries.Report {
	t.Helper()
	m, err := local.Open(t.Context(), c)
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	made, err := p.Run(t.Context(), &local.PassSource{Storage: m})
	require.NoError(t, err)
	return made
}

// TestOneSummaryWhoeverMakesIt makes a summary with every engine and command set, on one to five drives, with several
// threads, sizes of mini-batches and orders of the files, and compares the bytes of the files.
func TestOneSummaryWhoeverMakesIt(t *testing.T) {
	folder := t.TempDir()
	var files []string
	for i, n := range []int{1500, 1, 0, 2300, 200} {
		files = append(files, writeRows(t, folder, fmt.Sprintf("p%d.parquet", i), drawRows(uint64(i), n), 900))
	}
	sums := map[[sha256.Size]byte][]string{}
	for i, c := range []local.Config{
		{Files: source.ParseLocations(files...)},
		{Files: source.ParseLocations(files...), DriveOptions: host.DriveOptions{Engine: host.EngineReference}},
		{Files: source.ParseLocations(files...), DriveOptions: host.DriveOptions{Engine: host.EngineCPU, Threads: 3}},
		{Files: source.ParseLocations(files...), DriveOptions: host.DriveOptions{Commands: sdk.Standard, SLM: 48 << 20}},
		{Files: source.ParseLocations(files...), Spread: 2},
		{Files: source.ParseLocations(files...), Spread: 5, DriveOptions: host.DriveOptions{Threads: 2}},
	} {
		for _, batch := range []int{0, 500 + i, 37}[:1+i%3] {
			made := runPass(t, c, summaries.Pass{Batch: batch})
			b, err := made.Encode()
			require.NoError(t, err)
			read, err := summary.Read(b)
			require.NoError(t, err)
			require.EqualValues(t, 4001, read.Rows)
			sum := sha256.Sum256(b)
			sums[sum] = append(sums[sum], fmt.Sprintf("configuration %d, batch %d", i, batch))
		}
	}
	require.Len(t, sums, 1, "%v", sums)
}

// TestStatisticsOfRows compares a summary with sums over the rows.
func TestStatisticsOfRows(t *testing.T) {
	rows := drawRows(9, 3000)
	file := writeRows(t, t.TempDir(), "p.parquet", rows, 1000)
	made := runPass(t, local.Config{Files: source.ParseLocations(file)}, summaries.Pass{})
	require.Empty(t, made.Skipped)
	place := func(name string) int {
		return slices.IndexFunc(made.Columns, func(c summary.Column) bool { return c.Name == name })
	}
	column := func(name string) *summary.Column {
		i := place(name)
		require.GreaterOrEqual(t, i, 0, name)
		return &made.Columns[i]
	}
	var nullAges, nullScores, nullNames, nans, infinite, clicks, empty, flags int64
	names := map[string]int64{}
	ages, scores, prices := 0.0, 0.0, 0.0
	pricesSeen := map[float32]bool{}
	var scoresSeen []float64
	for _, r := range rows {
		if r.Age == nil {
			nullAges++
		} else {
			ages += float64(*r.Age)
		}
		if r.Score == nil {
			nullScores++
		} else {
			scores += *r.Score
			scoresSeen = append(scoresSeen, *r.Score)
		}
		if r.Name == nil {
			nullNames++
		} else {
			names[*r.Name]++
		}
		switch {
		case r.Price != r.Price:
			nans++
		case math.IsInf(float64(r.Price), 1):
			infinite++
		default:
			prices += float64(r.Price)
			pricesSeen[r.Price+0] = true
		}
		clicks += int64(len(r.Clicks))
		if len(r.Clicks) == 0 {
			empty++
		}
		if r.Flag {
			flags++
		}
	}
	age := column("age")
	assert.Equal(t, nullAges, age.NullRows)
	assert.InEpsilon(t, ages/float64(3000-nullAges), *age.Mean, 1e-12)
	assert.Equal(t, summary.IntegerValue(-1), *age.Least)
	assert.EqualValues(t, 90, age.Distinct)
	score := column("score")
	assert.Equal(t, nullScores, score.NullRows)
	assert.InDelta(t, scores/float64(3000-nullScores), *score.Mean, 1e-12)
	assert.InDelta(t, 1, *score.Deviation, 0.1)
	slices.Sort(scoresSeen)
	assert.Equal(t, []summary.Value{summary.RealValue(scoresSeen[0]), summary.RealValue(scoresSeen[len(scoresSeen)-1])},
		[]summary.Value{*score.Least, *score.Greatest}, "float64, and not the nearest float32")
	name := column("name")
	assert.Equal(t, nullNames, name.NullRows)
	assert.Equal(t, summary.Hashes, name.Kind)
	assert.InEpsilon(t, len(names), name.Distinct, 0.04)
	assert.Nil(t, name.Mean)
	price := column("price")
	assert.Equal(t, []int64{nans, infinite, 0, 0},
		[]int64{price.NaNs, price.PositiveInfinite, price.NegativeInfinite, price.NullRows})
	assert.InEpsilon(t, prices/float64(3000-nans-infinite), *price.Mean, 1e-9)
	assert.InEpsilon(t, len(pricesSeen), price.Distinct, 0.04)
	for _, list := range []string{"clicks", "words", "vector"} {
		c := column(list)
		assert.Equal(t, clicks, c.Values, list)
		assert.Equal(t, empty, c.NullRows, list)
		assert.Equal(t, summary.ListLengths{Least: 0, Mean: float64(clicks) / 3000, Greatest: 4}, *c.ListLengths, list)
	}
	assert.EqualValues(t, 20, column("words").Distinct)
	assert.Equal(t, summary.Lengths, column("vector").Kind)
	assert.Equal(t, float64(flags)/3000, *column("flag").Mean)
	require.Len(t, made.Partitions, 1)
	assert.Equal(t, column("age").Statistics, made.Partitions[0].Columns[place("age")])

	some := runPass(t, local.Config{Files: source.ParseLocations(file)},
		summaries.Pass{Columns: []string{"score", "a*", "age"}, WholeOnly: true})
	require.Len(t, some.Columns, 2)
	assert.Equal(t, *column("score"), some.Columns[0])
	assert.Equal(t, *column("age"), some.Columns[1])
	assert.Empty(t, some.Partitions)

	type unsigned struct {
		ID  uint64   `parquet:"id"`
		IDs []uint64 `parquet:"ids,list"`
	}
	file = writeRows(t, t.TempDir(), "u.parquet", []unsigned{{3, nil}, {1 << 63, []uint64{math.MaxUint64, 1}}}, 10)
	made = runPass(t, local.Config{Files: source.ParseLocations(file)}, summaries.Pass{})
	assert.Equal(t, []summary.Value{summary.IntegerValue(3), summary.UnsignedValue(1 << 63), summary.IntegerValue(1),
		summary.UnsignedValue(math.MaxUint64)}, []summary.Value{*column("id").Least, *column("id").Greatest,
		*column("ids").Least, *column("ids").Greatest})
	assert.Equal(t, []float64{1<<62 + 1.5, 1 << 63}, []float64{*column("id").Mean, *column("ids").Mean})
}

// TestSummaryOfRealRows summarises Criteo's rows in text, and compares with the text itself.
func TestSummaryOfRealRows(t *testing.T) {
	file := shared.Path(t, "data/criteo/td_day_11_first_3k_rows_original.tsv")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	made := runPass(t, local.Config{Files: source.ParseLocations(file),
		DriveOptions: host.DriveOptions{Source: program.CriteoTSV}},
		summaries.Pass{})
	require.EqualValues(t, 3000, made.Rows)
	require.Len(t, made.Columns, 40)
	for i := range made.Columns {
		nulls, distinct := int64(0), map[string]int64{}
		for line := range strings.Lines(string(text)) {
			cell := strings.Split(strings.TrimSuffix(line, "\n"), "\t")[i]
			if cell == "" {
				nulls++
				continue
			}
			distinct[cell]++
		}
		c := &made.Columns[i]
		assert.Equal(t, nulls, c.NullRows, c.Name)
		if c.Exact {
			assert.EqualValues(t, len(distinct), c.Distinct, c.Name)
		} else if len(distinct) > 0 {
			assert.InEpsilon(t, len(distinct), c.Distinct, 0.04, c.Name)
		}
		most := int64(0)
		for _, n := range distinct {
			most = max(most, n)
		}
		if most > 0 {
			assert.LessOrEqual(t, c.TopValues[0].Count, most, c.Name)
			assert.GreaterOrEqual(t, c.TopValues[0].Count+c.MissedCount, most, c.Name)
		}
	}
}

func TestPassesThatCannotBe(t *testing.T) {
	file := writeRows(t, t.TempDir(), "p.parquet", drawRows(1, 10), 10)
	m, err := local.Open(t.Context(), local.Config{Files: source.ParseLocations(file)})
	require.NoError(t, err)
	defer func() { require.NoError(t, m.Close()) }()
	for _, pattern := range []string{"agee", "int_*", "age[3]", "a_1..b_2"} {
		_, err := (&summaries.Pass{Columns: []string{pattern}}).Run(t.Context(), &local.PassSource{Storage: m})
		var wrong problem.Errors
		require.ErrorAs(t, err, &wrong, pattern)
	}
}
