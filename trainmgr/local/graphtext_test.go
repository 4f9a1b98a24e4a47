package local

import (
	"fmt"
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
	"github.com/millrace/millrace/trainmgr"
)

// TestGraphsOverRowsOfText checks that columns of text that meet in a step make the mini-batches of the reference on
// every engine: one task of a slice reads all columns.
func TestGraphsOverRowsOfText(t *testing.T) {
	var lines strings.Builder
	for i := range 500 {
		lines.WriteString(criteoLine(fmt.Sprint(i%2), fmt.Sprint(i%11), fmt.Sprintf("%08x", i)))
	}
	path := filepath.Join(t.TempDir(), "a.tsv")
	require.NoError(t, os.WriteFile(path, []byte(lines.String()), 0o644))
	spec, err := pipeline.Parse([]byte(`batch: 32
label: {column: label, null: 0}
dense: [{columns: [int_0..int_12], ops: [fill_null: 0]}]
sparse:
  - {columns: [cat_0..cat_25], ops: [fill_null: 0]}
  - {inputs: [cat_0, cat_5], as: crossed, ops: [cartesian: {max_length: 4}, sigrid_hash: {max: 1000}]}
  - {columns: [cat_1], as: place, ops: [enumerate, positive_modulus: 7]}
  - {inputs: [cat_0, int_0], as: weighted, ops: [with_scores]}
`))
	require.NoError(t, err)
	made := make(map[host.Engine][]uint32)
	for _, engine := range paperEngines {
		m, err := Open(t.Context(), Config{Files: source.ParseLocations(path), DriveOptions: host.DriveOptions{Engine: engine,
			Source: program.CriteoTSV, SLM: 64 << 20}})
		require.NoError(t, err)
		runOn(t, m, trainmgr.Options{Pipeline: spec, Shuffle: dataset.ShuffleNone, Order: dataset.Deterministic,
			AllDrives: true}, func(mb *tensor.MiniBatch) {
			require.Len(t, mb.Weights, mb.Values())
			made[engine] = append(made[engine], sum(mb))
		})
		require.NoError(t, m.Close())
		require.Len(t, made[engine], (500+31)/32)
	}
	for engine, sums := range made {
		assert.Equal(t, made[host.EngineReference], sums, "engine %q", engine)
	}
}
