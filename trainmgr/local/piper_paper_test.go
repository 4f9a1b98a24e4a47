package local

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary/reducer"
	"github.com/millrace/millrace/trainmgr"
)

// paperEngines are the engines over which the sentences of the papers about preprocessing are tested. A software drive
// computes on the first.
var paperEngines = []host.Engine{host.EngineAuto, host.EngineCPU, host.EngineReference}

// onEveryEngine preprocesses one file on each engine and checks all its mini-batches.
func onEveryEngine(t *testing.T, path string, format program.Source, spec *pipeline.Spec,
	check func(t *testing.T, mb *tensor.MiniBatch)) {
	t.Helper()
	for _, engine := range paperEngines {
		t.Run(fmt.Sprintf("engine %q", engine), func(t *testing.T) {
			c := Config{Files: source.ParseLocations(path), DriveOptions: host.DriveOptions{Engine: engine, Source: format,
				SLM: 64 << 20}}
			o := trainmgr.Options{Pipeline: spec, Shuffle: dataset.ShuffleNone, Order: dataset.Deterministic,
				AllDrives: true}
			batches := 0
			run(t, c, o, func(mb *tensor.MiniBatch) {
				batches++
				check(t, mb)
			})
			require.Equal(t, 1, batches)
		})
	}
}

// criteoLine is a row of Criteo's text: the label, the same decimal number 13 times and the same hexadecimal one 26
// times.
func criteoLine(label, decimal, hexadecimal string) string {
	return label + strings.Repeat("\t"+decimal, 13) + strings.Repeat("\t"+hexadecimal, 26) + "\n"
}

// TestThePipelineComputesWhatPiperSays takes sentences of Piper, sections 2.3 to 3.2, and checks for each what becomes
// of Criteo's text rows in the named pipeline criteo-5k, on every engine. The paper's processing elements are not
// modelled: its initiation intervals, its four bytes a cycle and its rates are not tested here. GenVocab and ApplyVocab
// are in TestTheTwoLoopsOfPiper.
func TestThePipelineComputesWhatPiperSays(t *testing.T) {
	rows := []struct{ label, decimal, hexadecimal string }{
		{"1", "7", "0000002a"},
		{"0", "0", "0"},
		{"1", "-3", "1388"},
		{"0", "123456", "ffffffff"},
		{"1", "", ""},
	}
	var text strings.Builder
	for _, row := range rows {
		text.WriteString(criteoLine(row.label, row.decimal, row.hexadecimal))
	}
	path := filepath.Join(t.TempDir(), "day_0.tsv")
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o644))
	spec, err := pipeline.Named("criteo-5k")
	require.NoError(t, err)

	onEveryEngine(t, path, program.CriteoTSV, spec, func(t *testing.T, mb *tensor.MiniBatch) {
		require.Equal(t, len(rows), mb.Rows)
		assert.Equal(t, []float32{1, 0, 1, 0, 1}, mb.Label)
		dense := func(row int) float32 { return mb.Dense[row*13+12] }
		sparse := func(row int) int32 { return mb.Values32[25*len(rows)+row] }

		// 3.2, Decode: "For dense features (decimal values), it multiplies with ten and add the current input."
		// Table 1, Logarithm: "Do log(x+1) operation (dense)"
		assert.Equal(t, float32(math.Log(8)), dense(0))
		assert.Equal(t, float32(math.Log(123457)), dense(3))
		assert.Zero(t, dense(1))

		// 3.2, Neg2Zero: "It sets the negative input dense feature to 0, otherwise it keeps the original value as
		// output."
		assert.Zero(t, dense(2))

		// 3.2, Decode: "For sparse features (hexadecimal values), it shifts the cached register 4 bits left every cycle
		// and add the current input."
		assert.EqualValues(t, 0x2a, sparse(0))

		// 3.2, Decode: "Sparse features are always positive, and it omits negative_flag for them." Read as a signed
		// number, ffffffffh would be -1 and its positive modulus 4,999.
		assert.EqualValues(t, 0xffffffff%5000, sparse(3))

		// Table 1, Modulus: "Compute positive modulus (sparse)"; 1388h is the modulus itself.
		assert.Zero(t, sparse(2))
		for _, id := range mb.Values32 {
			assert.True(t, id >= 0 && id < 5000, "%d", id)
		}

		// 2.3, Generate Vocabulary: "with default value 0 for empty entries, irrespective of whether the feature is
		// sparse or dense"
		assert.Zero(t, dense(4))
		assert.Zero(t, sparse(4))
	})
}

// TestTheTwoLoopsOfPiper takes the sentences of Piper about vocabularies, over text rows on every engine.
func TestTheTwoLoopsOfPiper(t *testing.T) {
	ids := []string{"2a", "7", "2a", "", "1388", "ffffffff", "7"}
	var text strings.Builder
	for _, id := range ids {
		text.WriteString(criteoLine("1", "7", id))
	}
	path := filepath.Join(t.TempDir(), "day_0.tsv")
	require.NoError(t, os.WriteFile(path, []byte(text.String()), 0o644))
	spec := criteoVocabulary(t, 100, "fill_null: 0, positive_modulus: 5000, ", "")

	// 3.1: "In the first loop, Piper reads the whole dataset and generates the corresponding vocabulary table."
	out := filepath.Join(t.TempDir(), "piper.vocab")
	buildVocabulary(t, Config{Files: source.ParseLocations(path),
		DriveOptions: host.DriveOptions{Source: program.CriteoTSV}},
		reducer.Pass{Pipeline: spec, Name: "v", Path: out})
	bound, err := BindVocabularies(spec, map[string]string{"v": out})
	require.NoError(t, err)
	keys := bound.Vocabularies[0].File.Tables[25]
	assert.Equal(t, []int64{0x2a, 7, 0, 0xffffffff % 5000}, keys, "an empty cell and 1388h are both 0 behind the modulus")

	// 3.1: the second loop maps every sparse feature by its vocabulary; the indices are those of first appearance.
	onEveryEngine(t, path, program.CriteoTSV, bound, func(t *testing.T, mb *tensor.MiniBatch) {
		assert.Equal(t, []int64{0, 1, 0, 2, 2, 3, 1}, mb.Values64[25*len(ids):])
		assert.EqualValues(t, len(keys), mb.Schema.Keys[25].NumEmbeddings)
	})
}
