package local

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
)

// minipipeRow is a row as MiniPipe stores Criteo's data, with a column that no pipeline here reads.
type minipipeRow struct {
	Label  int32   `parquet:"label"`
	Int0   float32 `parquet:"int_0"`
	Cat0   string  `parquet:"cat_0"`
	Unread string  `parquet:"unread"`
}

// minipipePipeline is MiniPipe's stateless pipeline I with the modulus of its smaller vocabulary, 8K.
const minipipePipeline = `name: minipipe
label: {column: label}
dense:
  - columns: [int_0]
    ops: [clamp: {min: 0}, log: {add: 1}]
sparse:
  - columns: [cat_0]
    ops: [hex_to_int, fill_null: 0, positive_modulus: 8192]
`

// minipipeFile writes rows to an uncompressed Parquet file and returns its path.
func minipipeFile(t *testing.T, rows []minipipeRow) string {
	t.Helper()
	var b bytes.Buffer
	w := pq.NewGenericWriter[minipipeRow](&b, pq.Compression(&pq.Uncompressed))
	_, err := w.Write(rows)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	path := filepath.Join(t.TempDir(), "criteo.parquet")
	require.NoError(t, os.WriteFile(path, b.Bytes(), 0o644))
	return path
}

// TestThePipelineComputesWhatMiniPipeSays takes sentences of MiniPipe, sections 2.3 to 4.1.4, and checks for each what
// becomes of a Parquet file on every engine. VocabGen and VocabMap are in TestTheTwoLoopsOfPiper, and several pipelines
// at once in regions that are switched (3.3) in TestHostsInRegionsAtOnce of package sdk. No rate of the paper is tested
// here.
func TestThePipelineComputesWhatMiniPipeSays(t *testing.T) {
	// 4.1.1: "In this transformation, dense features are represented as floating-point values, and sparse features are
	// represented as hexadecimal strings."
	rows := []minipipeRow{
		{Label: 1, Int0: 7, Cat0: "0000002a"},
		{Label: 0, Int0: -2.5, Cat0: "2000"},
		{Label: 1, Int0: 0.5, Cat0: "FFFFFFFF"},
		{Label: 0, Int0: 0, Cat0: "2001"},
		{Label: 1, Int0: 1e6, Cat0: ""},
	}
	spec, err := pipeline.Parse([]byte(minipipePipeline))
	require.NoError(t, err)

	onEveryEngine(t, minipipeFile(t, rows), program.Parquet, spec, func(t *testing.T, mb *tensor.MiniBatch) {
		require.Equal(t, len(rows), mb.Rows)

		// 3.4.1, Neg2Zero: "This operation clips negative input dense features to zero while retaining positive values
		// in their original form." 4.1.4: "negative values are replaced with zero, followed by the transformation of
		// log(x + 1)"
		assert.Equal(t, []float32{
			float32(math.Log(8)), 0, float32(math.Log(1.5)), 0, float32(math.Log(1e6 + 1)),
		}, mb.Dense)

		// 3.4.2, Hex2Int: "Original categorical features are encoded as hexadecimal strings and converting them to
		// integers is the first step." 3.4.2, Modulus: "The modulus operation is designed to restrict the range of
		// sparse feature values." 2000h is the modulus itself. An empty string is a null and becomes 0.
		assert.Equal(t, []int64{0x2a, 0, 0xffffffff % 8192, 1, 0}, mb.Values64)
	})
}

// TestColumnsGiveAccessToSpecificFeatures takes MiniPipe, section 2.3: "These formats enable optimized access to
// specific features." A drive moves the column chunks that the pipeline reads, and not the column beside them.
func TestColumnsGiveAccessToSpecificFeatures(t *testing.T) {
	rows := make([]minipipeRow, 2000)
	for i := range rows {
		rows[i] = minipipeRow{Int0: float32(i), Cat0: "2a",
			Unread: "a text that is longer than all the other columns together"}
	}
	path := minipipeFile(t, rows)
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	footer, err := format.ReadFooter(bytes.NewReader(file), int64(len(file)))
	require.NoError(t, err)
	chunkBytes := map[string]int64{}
	for _, group := range footer.RowGroups {
		for i, leaf := range footer.Leaves {
			chunkBytes[leaf.Name] += group.Columns[i].Compressed
		}
	}
	spec, err := pipeline.Parse([]byte(minipipePipeline))
	require.NoError(t, err)
	o := trainmgr.Options{Pipeline: spec, Shuffle: dataset.ShuffleNone, SplitBatches: 1000, AllDrives: true}
	report := run(t, Config{Files: source.ParseLocations(path), DriveOptions: host.DriveOptions{Streams: 1}}, o,
		nil).report.PerDrive[0]
	assert.Equal(t, chunkBytes["label"]+chunkBytes["int_0"]+chunkBytes["cat_0"], report.BytesMoved-report.BytesUnneeded)
	assert.Less(t, report.BytesMoved, chunkBytes["unread"])
}
