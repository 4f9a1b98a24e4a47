package targetencoding

import (
	"encoding/json"
	"math"
	"math/big"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/sdk/selection"
)

// trainRow is a row of training data.
type trainRow struct {
	key    int64
	hasKey bool
	fold   int
	label  float32
}

// tableOf builds the table of rows.
func tableOf(t require.TestingT, folds int, rows []trainRow) *Table {
	b := NewBuilder(folds)
	for _, r := range rows {
		require.NoError(t, b.Add(r.key, r.hasKey, r.fold, r.label))
	}
	return b.Table()
}

// TestGoldenTargetEncoding runs the golden vector, whose folds are given.
func TestGoldenTargetEncoding(t *testing.T) {
	document, err := os.ReadFile("../../fpga/unit/testdata/golden/stats_ops.json")
	require.NoError(t, err)
	type goldenCase struct {
		Fn        string
		Key       []int64
		Y         []float32
		Fold      []int
		Smoothing float64   `json:"p_smooth"`
		Mean      float64   `json:"global_mean"`
		Train     []float64 `json:"output_train"`
		Serve     []float64 `json:"output_transform_all"`
		Unseen    float64
	}
	var file struct{ Cases []json.RawMessage }
	require.NoError(t, json.Unmarshal(document, &file))
	ran := 0
	for _, raw := range file.Cases {
		var c goldenCase
		if !strings.Contains(string(raw), `"TargetEncoding`) {
			continue
		}
		require.NoError(t, json.Unmarshal(raw, &c))
		ran++
		var rows []trainRow
		for i, key := range c.Key {
			rows = append(rows, trainRow{key, true, c.Fold[i], c.Y[i]})
		}
		table := tableOf(t, 3, rows)
		train, err := NewEncoding(table, 42, c.Smoothing, true)
		require.NoError(t, err)
		for i, key := range c.Key {
			assert.Equal(t, float32(c.Train[i]), train.values[int(train.index[key])*3+c.Fold[i]], "row %d", i)
		}
		serve, err := NewEncoding(table, 42, c.Smoothing, false)
		require.NoError(t, err)
		for key, want := range c.Serve {
			assert.Equal(t, float32(want), serve.Value(int64(key), Partition{}, 0), "key %d", key)
		}
		assert.Equal(t, float32(c.Unseen), serve.Value(99, Partition{}, 0))
		assert.Equal(t, float32(c.Mean), train.Mean())
	}
	assert.Equal(t, 1, ran)
}

// TestEncodingsAreTheNearestFloat32 compares every value with the definition, summed over the rows themselves.
func TestEncodingsAreTheNearestFloat32(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		folds := rapid.IntRange(MinFolds, MaxFolds).Draw(t, "folds")
		rows := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) trainRow {
			return trainRow{key: rapid.Int64Range(-3, 3).Draw(t, "key"), hasKey: rapid.IntRange(0, 5).Draw(t, "null") > 0,
				fold:  rapid.IntRange(0, folds-1).Draw(t, "fold"),
				label: float32(rapid.Int64Range(-MaxTarget, MaxTarget).Draw(t, "label"))}
		}), 1, 60).Draw(t, "rows")
		smoothing := rapid.SampledFrom([]float64{0, 1, 20, 0.3, 1e-9, 1e9}).Draw(t, "smoothing")
		table := tableOf(t, folds, rows)
		mean := func(take func(r trainRow) bool) (sum, n *big.Rat) {
			sum, n = new(big.Rat), new(big.Rat)
			for _, r := range rows {
				if take(r) {
					sum.Add(sum, new(big.Rat).SetFloat64(float64(r.label)))
					n.Add(n, big.NewRat(1, 1))
				}
			}
			return sum, n
		}
		all, n := mean(func(trainRow) bool { return true })
		all.Quo(all, n)
		p := new(big.Rat).SetFloat64(smoothing)
		want := func(take func(r trainRow) bool) float32 {
			sum, n := mean(take)
			if n.Sign() == 0 {
				value, _ := all.Float32()
				return value
			}
			value, _ := sum.Quo(sum.Add(sum, new(big.Rat).Mul(p, all)), n.Add(n, p)).Float32()
			return value
		}
		train, err := NewEncoding(table, 7, smoothing, true)
		require.NoError(t, err)
		serve, err := NewEncoding(table, 7, smoothing, false)
		require.NoError(t, err)
		part, err := NewPartition("day_0")
		require.NoError(t, err)
		for key := int64(-4); key <= 4; key++ {
			row := rapid.Int64Range(0, 1<<40).Draw(t, "row")
			own := Folding{Folds: folds, Seed: 7}.Fold(part, row)
			of := func(r trainRow) bool { return r.hasKey && r.key == key }
			require.Equal(t, want(of), serve.Value(key, part, row))
			require.Equal(t, want(func(r trainRow) bool { return of(r) && r.fold != own }), train.Value(key, part, row))
		}
	})
}

func TestEncodingsThatCannotBe(t *testing.T) {
	table := tableOf(t, 2, []trainRow{{1, true, 0, 1}})
	for _, smoothing := range []float64{-1, math.NaN(), math.Inf(1)} {
		_, err := NewEncoding(table, 0, smoothing, true)
		require.ErrorContains(t, err, "smoothing")
	}
	_, err := NewEncoding(tableOf(t, 2, nil), 0, 20, true)
	require.ErrorIs(t, err, ErrEmpty)
	_, err = NewEncoding(&Table{}, 0, 20, true)
	require.ErrorIs(t, err, ErrDamaged)
}

// TestEncodingsFitThePartitionsOfTheirTable checks that a training encoding fits no other partition, and a serving
// encoding, which has no folds, every one.
func TestEncodingsFitThePartitionsOfTheirTable(t *testing.T) {
	b := NewBuilder(2)
	require.NoError(t, b.Add(1, true, 0, 1))
	for i, name := range []string{"day=1/a", "day=2/a", "day=3/a", "a"} {
		p, err := NewPartition(name)
		require.NoError(t, err)
		if i < 3 {
			require.NoError(t, b.AddPartition(p))
		}
		for _, train := range []bool{true, false} {
			e, err := NewEncoding(b.Table(), 0, 0, train)
			require.NoError(t, err)
			assert.Equal(t, i < 3 || !train, e.Fits(p), name)
		}
	}
}

// TestFolds checks that folds have about the same number of rows, and depend on the partition, the row and the seed.
func TestFolds(t *testing.T) {
	part, err := NewPartition("part-00000.parquet")
	require.NoError(t, err)
	other, err := NewPartition("part-00001.parquet")
	require.NoError(t, err)
	for _, folds := range []int{MinFolds, 3, MaxFolds} {
		f := Folding{Folds: folds, Seed: 42}
		rows := make([]int, folds)
		same, sameSeed := 0, 0
		const n = 48000
		for row := range int64(n) {
			fold := f.Fold(part, row)
			rows[fold]++
			if f.Fold(other, row) == fold {
				same++
			}
			if (Folding{Folds: folds, Seed: 43}).Fold(part, row) == fold {
				sameSeed++
			}
		}
		for fold := range rows {
			assert.InDelta(t, n/folds, rows[fold], 5*math.Sqrt(n), "fold %d of %d", fold, folds)
		}
		assert.InDelta(t, n/folds, same, 5*math.Sqrt(n))
		assert.InDelta(t, n/folds, sameSeed, 5*math.Sqrt(n))
	}
	// A sampling of rows with the salt of the folds keeps a third of each fold.
	sampling := &selection.Condition{Sampling: &selection.Sampling{Key: -1, Rate: 0.3, Salt: 42}}
	keep, err := sampling.Evaluate(&selection.Block{Partition: "part-00000.parquet", Rows: 48000})
	require.NoError(t, err)
	kept := make([]int, 3)
	for row, keeps := range keep {
		if keeps {
			kept[Folding{Folds: 3, Seed: 42}.Fold(part, int64(row))]++
		}
	}
	for fold, rows := range kept {
		assert.InDelta(t, 4800, rows, 300, "rows of fold %d that a sampling keeps", fold)
	}
	// Values that must stay: mini-batches depend on them.
	var folds []int
	for row := range int64(12) {
		folds = append(folds, Folding{Folds: 3, Seed: 42}.Fold(part, row))
	}
	assert.Equal(t, []int{2, 2, 1, 2, 2, 0, 1, 1, 0, 2, 1, 0}, folds)
}
