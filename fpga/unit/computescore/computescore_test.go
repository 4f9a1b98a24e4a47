package computescore_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/unit/computescore"
)

// scoreRow is the lists of one row.
type scoreRow struct {
	ids, matching          []int64
	scores, matchingScores []float32
}

// sides joins rows.
func sides(rows []scoreRow) (input, matching computescore.Side) {
	for _, r := range rows {
		for _, s := range []struct {
			to     *computescore.Side
			ids    []int64
			scores []float32
		}{{&input, r.ids, r.scores}, {&matching, r.matching, r.matchingScores}} {
			s.to.Lengths, s.to.IDs = append(s.to.Lengths, int32(len(s.ids))), append(s.to.IDs, s.ids...)
			s.to.ScoreLengths = append(s.to.ScoreLengths, int32(len(s.scores)))
			s.to.Scores = append(s.to.Scores, s.scores...)
		}
	}
	return input, matching
}

// same wants the same bits; a NaN is 7fc00000h.
func same(t require.TestingT, want, got float32, about string) {
	require.Equal(t, math.Float32bits(want), math.Float32bits(got), "%s: want %v, got %v", about, want, got)
}

// compareRows runs the kernel over rows and the reference over each.
func compareRows(t require.TestingT, scorer *computescore.Scorer, rows []scoreRow, p computescore.Params) {
	input, matching := sides(rows)
	got := make([]float32, len(rows))
	err := scorer.Score(got, input, matching, p)
	for i, r := range rows {
		want, wantErr := computescore.Reference(r.ids, r.scores, r.matching, r.matchingScores, p)
		if wantErr != nil {
			require.ErrorIs(t, err, wantErr)
			return
		}
		if err == nil {
			same(t, want, got[i], "row")
		}
	}
	require.NoError(t, err)
}

var functions = []computescore.Function{computescore.HasIDOverlap, computescore.IDOverlapCount, computescore.MaxCount,
	computescore.JaccardSimilarity, computescore.CosineSimilarity, computescore.ScoreSum, computescore.ScoreMin,
	computescore.ScoreMax}

// scoreGenerator draws scores of which sums cancel, overflow, underflow and are no number.
func scoreGenerator() *rapid.Generator[float32] {
	return rapid.OneOf(
		rapid.SampledFrom([]float32{0, float32(math.Copysign(0, -1)), 1, -1, 2, 0.1, -0.1, 1 << 24, -1 << 24,
			0x1p-149, -0x1p-149, 0x1p127, -0x1p127, math.MaxFloat32}),
		rapid.Float32Range(-10, 10), rapid.Float32(),
		rapid.SampledFrom([]float32{1, float32(math.Inf(1)), float32(math.Inf(-1)), float32(math.NaN()), 1, 1, 1, 1}))
}

func TestKernelEqualsReference(t *testing.T) {
	scorer := new(computescore.Scorer)
	rapid.Check(t, func(t *rapid.T) {
		p := computescore.Params{Function: rapid.SampledFrom(functions).Draw(t, "function"),
			ZeroNorm: rapid.IntRange(0, 3).Draw(t, "zero") > 0}
		id := rapid.OneOf(rapid.Int64Range(0, 6), rapid.Int64())
		list := func(name string) ([]int64, []float32) {
			ids := rapid.SliceOfN(id, 0, 12).Draw(t, name)
			n := len(ids)
			if rapid.IntRange(0, 15).Draw(t, "odd") == 0 {
				n = rapid.IntRange(0, 3).Draw(t, "scores")
			}
			return ids, rapid.SliceOfN(scoreGenerator(), n, n).Draw(t, name+" scores")
		}
		rows := make([]scoreRow, rapid.IntRange(0, 5).Draw(t, "rows"))
		for i := range rows {
			rows[i].ids, rows[i].scores = list("input")
			rows[i].matching, rows[i].matchingScores = list("matching")
		}
		compareRows(t, scorer, rows, p)
	})
}

// TestHardCosines takes cosines that float64 does not decide: those beside and between two float32.
func TestHardCosines(t *testing.T) {
	p := computescore.Params{Function: computescore.CosineSimilarity}
	row := func(a, b []float32) scoreRow {
		ids := []int64{1, 2, 3, 4, 5}
		return scoreRow{ids: ids[:len(a)], scores: a, matching: ids[:len(b)], matchingScores: b}
	}
	huge := []float32{math.MaxFloat32, math.MaxFloat32}
	for name, c := range map[string]struct {
		row  scoreRow
		want float32
	}{
		"a list with itself":     {row([]float32{1, 2, 3}, []float32{1, 2, 3}), 1},
		"with its opposite":      {row([]float32{0.1, 2, 3e30}, []float32{-0.1, -2, -3e30}), -1},
		"3, 4 and 4, 3":          {row([]float32{3, 4}, []float32{4, 3}), 0.96},
		"a product that cancels": {row([]float32{1e30, 1, -1e30}, []float32{1, 1, 1}), float32(1 / (1e30 * math.Sqrt(6)))},
		"a product of 0":         {row([]float32{1, 1}, []float32{1, -1}), 0},
		"tiny":                   {row([]float32{0x1p-149, 0}, []float32{0x1p-149, 0x1p-149}), float32(math.Sqrt(0.5))},
		"below all float32":      {row([]float32{math.MaxFloat32, 0x1p-149}, []float32{0, 1}), 0},
		"huge":                   {row(huge, huge), 1},
	} {
		compareRows(t, new(computescore.Scorer), []scoreRow{c.row}, p)
		want, err := computescore.Reference(c.row.ids, c.row.scores, c.row.matching, c.row.matchingScores, p)
		require.NoError(t, err)
		same(t, c.want, want, name)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	for range 2000 {
		n := 1 + rng.IntN(4)
		a, b := make([]float32, n), make([]float32, n)
		for i := range a {
			a[i], b[i] = float32(rng.IntN(1<<rng.IntN(25))-1000), float32(rng.IntN(1<<rng.IntN(25))-1000)
		}
		compareRows(t, new(computescore.Scorer), []scoreRow{row(a, b)}, computescore.Params{
			Function: computescore.CosineSimilarity, ZeroNorm: true})
	}
}

// TestTies takes results exactly between two float32, and just beside.
func TestTies(t *testing.T) {
	sum := computescore.Params{Function: computescore.ScoreSum}
	for name, c := range map[string]struct {
		scores []float32
		want   float32
	}{
		"down to even":      {[]float32{1 << 24, 1}, 1 << 24},
		"up to even":        {[]float32{1<<24 + 2, 1}, 1<<24 + 4},
		"above the middle":  {[]float32{1 << 24, 1, 0x1p-149}, 1<<24 + 2},
		"below the middle":  {[]float32{1<<24 + 2, 1, -0x1p-149}, 1<<24 + 2},
		"cancels to little": {[]float32{1e30, 1, -1e30}, 1},
		"cancels to 0":      {[]float32{1e30, -1, 1, -1e30}, 0},
		"too much":          {[]float32{math.MaxFloat32, math.MaxFloat32}, float32(math.Inf(1))},
		"just not too much": {[]float32{math.MaxFloat32, 0x1p103, -1}, math.MaxFloat32},
		"just too much":     {[]float32{math.MaxFloat32, 0x1p103}, float32(math.Inf(1))},
		"of zeros":          {[]float32{float32(math.Copysign(0, -1))}, 0},
		"of infinities":     {[]float32{float32(math.Inf(1)), float32(math.Inf(-1))}, math.Float32frombits(0x7fc00000)},
		"of an infinity":    {[]float32{1, float32(math.Inf(-1))}, float32(math.Inf(-1))},
	} {
		r := scoreRow{ids: []int64{7}, matching: make([]int64, len(c.scores)), matchingScores: c.scores}
		for i := range r.matching {
			r.matching[i] = 7
		}
		compareRows(t, new(computescore.Scorer), []scoreRow{r}, sum)
		got, err := computescore.Reference(r.ids, nil, r.matching, r.matchingScores, sum)
		require.NoError(t, err)
		same(t, c.want, got, name)
	}
	// The cosine with a list of one id is the id's score over the norm: here 2^24 + 1 over 2^25, half way between two
	// float32.
	const x, y = 1<<24 + 1, 1 << 25
	half := scoreRow{matching: []int64{1}, matchingScores: []float32{1}}
	// 2^50 - (2^24 + 1)^2 is a sum of four squares, so that the norm is 2^25 exactly.
	for _, v := range fourSquares(y*y - x*x) {
		half.ids, half.scores = append(half.ids, int64(2+len(half.ids))), append(half.scores, 0)
		half.scores[len(half.scores)-1] = float32(v &^ 0xff)
		half.ids, half.scores = append(half.ids, half.ids[len(half.ids)-1]), append(half.scores, float32(v&0xff))
	}
	half.ids, half.scores = append(half.ids, 1, 1), append(half.scores, 1<<24, 1)
	for _, off := range []float32{0, 0x1p-100, -0x1p-100} {
		r := half
		r.scores = append(append([]float32(nil), half.scores...), off)
		r.ids = append(append([]int64(nil), half.ids...), 1)
		compareRows(t, new(computescore.Scorer), []scoreRow{r}, computescore.Params{Function: computescore.CosineSimilarity})
		got, err := computescore.Reference(r.ids, r.scores, r.matching, r.matchingScores,
			computescore.Params{Function: computescore.CosineSimilarity})
		require.NoError(t, err)
		want := float32(0.5)
		if off > 0 {
			want = math.Nextafter32(want, 1)
		}
		same(t, want, got, "half way")
	}
}

// fourSquares writes a number as a sum of four squares.
func fourSquares(n int64) []int64 {
	root := func(n int64) int64 {
		r := int64(math.Sqrt(float64(n)))
		for r*r > n {
			r--
		}
		for (r+1)*(r+1) <= n {
			r++
		}
		return r
	}
	for a := root(n); ; a-- {
		left := n - a*a
		for b := root(left); b >= 0 && b > root(left)-200; b-- {
			rest := left - b*b
			for c := root(rest); c >= 0 && c > root(rest)-2000; c-- {
				if d := root(rest - c*c); d*d == rest-c*c {
					return []int64{a, b, c, d}
				}
			}
		}
	}
}

// TestCountsOfRepeatedIDs has ids that the lists hold unequally often, so that the functions that count them differ.
func TestCountsOfRepeatedIDs(t *testing.T) {
	rows := []scoreRow{
		{ids: []int64{7, 7, 7}, matching: []int64{7}},
		{ids: []int64{7}, matching: []int64{7, 7, 7}},
		{ids: []int64{7, 7, 8, 9}, matching: []int64{7, 8, 8, 5}},
	}
	for function, want := range map[computescore.Function][]float32{
		computescore.HasIDOverlap:      {1, 1, 1},
		computescore.IDOverlapCount:    {1, 1, 2},
		computescore.MaxCount:          {3, 3, 4},
		computescore.JaccardSimilarity: {1 / 3.0, 1 / 3.0, 2 / 6.0},
	} {
		p := computescore.Params{Function: function}
		input, matching := sides(rows)
		got := make([]float32, len(rows))
		require.NoError(t, new(computescore.Scorer).Score(got, input, matching, p))
		require.Equal(t, want, got, "function %d", function)
		compareRows(t, new(computescore.Scorer), rows, p)
	}
}

func TestArgumentsThatDoNotFit(t *testing.T) {
	one := computescore.Side{Lengths: []int32{1, 1}, IDs: []int64{1, 2}, ScoreLengths: []int32{1, 1},
		Scores: []float32{1, 1}}
	p := computescore.Params{Function: computescore.CosineSimilarity}
	scorer := new(computescore.Scorer)
	dst := make([]float32, 2)
	require.NoError(t, scorer.Score(dst, one, one, p))
	for name, change := range map[string]func(s *computescore.Side){
		"too few ids":     func(s *computescore.Side) { s.Lengths = []int32{1, 0} },
		"too many ids":    func(s *computescore.Side) { s.Lengths = []int32{1, 2} },
		"a negative":      func(s *computescore.Side) { s.Lengths = []int32{3, -1} },
		"a row":           func(s *computescore.Side) { s.Lengths = []int32{2} },
		"overflow":        func(s *computescore.Side) { s.Lengths = []int32{math.MaxInt32, math.MaxInt32} },
		"too few scores":  func(s *computescore.Side) { s.ScoreLengths = []int32{1, 0} },
		"negative scores": func(s *computescore.Side) { s.ScoreLengths = []int32{3, -1} },
		"no scores":       func(s *computescore.Side) { s.ScoreLengths = nil },
	} {
		bad := one
		change(&bad)
		require.ErrorIs(t, scorer.Score(dst, one, bad, p), computescore.ErrLengths, name)
		require.ErrorIs(t, scorer.Score(dst, bad, one, p), computescore.ErrLengths, name)
	}
	bad := one
	bad.Lengths, bad.IDs = []int32{1, 2}, []int64{1, 2, 3}
	require.ErrorIs(t, scorer.Score(dst, one, bad, p), computescore.ErrScores)
	require.ErrorIs(t, scorer.Score(dst, bad, one, p), computescore.ErrScores)
	require.ErrorContains(t, scorer.Score(dst, bad, one, p), "row 1: ")
	require.NoError(t, scorer.Score(dst, bad, one, computescore.Params{Function: computescore.ScoreSum}),
		"it takes no scores of the input")
	bad.ScoreLengths, bad.Scores = []int32{1, 0}, one.Scores[:1]
	require.ErrorIs(t, scorer.Score(dst, bad, one, p), computescore.ErrZeroNorm, "ids without scores are none")
	require.NoError(t, scorer.Score(dst, bad, one, computescore.Params{Function: p.Function, ZeroNorm: true}))
	require.Equal(t, []float32{1, 0}, dst)
	require.ErrorIs(t, scorer.Score(dst, one, one, computescore.Params{Function: 8}), computescore.ErrFunction)
	_, err := computescore.Reference(nil, nil, nil, nil, computescore.Params{Function: 8})
	require.ErrorIs(t, err, computescore.ErrFunction)
}

func FuzzScore(f *testing.F) {
	f.Add(uint8(4), []byte{2, 1}, []byte{1, 1}, 3, 2)
	f.Fuzz(func(t *testing.T, function uint8, inputs, matchings []byte, ids, scores int) {
		side := func(counts []byte) computescore.Side {
			s := computescore.Side{IDs: make([]int64, ids&0xfff), Scores: make([]float32, scores&0xfff)}
			for i, c := range counts {
				s.Lengths = append(s.Lengths, int32(int8(c)))
				s.ScoreLengths = append(s.ScoreLengths, int32(int8(counts[len(counts)-1-i])))
			}
			for i := range s.IDs {
				s.IDs[i] = int64(i % 5)
			}
			for i := range s.Scores {
				s.Scores[i] = float32(i%7) - 3
			}
			return s
		}
		a, b := side(inputs), side(matchings)
		dst := make([]float32, len(inputs))
		_ = new(computescore.Scorer).Score(dst, a, b, computescore.Params{Function: computescore.Function(function)})
	})
}

func BenchmarkScore(b *testing.B) {
	const rows, mean = 512, 20
	rng := rand.New(rand.NewPCG(1, 2))
	side := func() (s computescore.Side) {
		for range rows {
			s.Lengths, s.ScoreLengths = append(s.Lengths, mean), append(s.ScoreLengths, mean)
		}
		for range rows * mean {
			s.IDs, s.Scores = append(s.IDs, rng.Int64N(100)*1e9), append(s.Scores, rng.Float32())
		}
		return s
	}
	input, matching := side(), side()
	dst := make([]float32, rows)
	for name, f := range map[string]computescore.Function{"overlap": computescore.IDOverlapCount,
		"cosine": computescore.CosineSimilarity, "sum": computescore.ScoreSum} {
		b.Run(name, func(b *testing.B) {
			scorer := new(computescore.Scorer)
			for b.Loop() {
				if err := scorer.Score(dst, input, matching, computescore.Params{Function: f}); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows/mean/2, "ns/id")
		})
	}
}
