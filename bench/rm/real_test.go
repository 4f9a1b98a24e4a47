package rm

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/workload"
	"github.com/millrace/millrace/internal/shared"
)

// TestRealRows measures rows of Criteo's own as text, packed, as Parquet, and with vocabularies.
func TestRealRows(t *testing.T) {
	const rows = 7000 // more than twice the file
	o := Options{Criteo: shared.Path(t, "data/criteo/td_day_11_first_3k_rows_original.tsv"), Rows: rows,
		Models: []string{RealTSV, RealBinary, RealRM1, "criteo-real-5k", "criteo-real-5k-tsv"}, Time: 1,
		Codec: "snappy", Encoding: "dictionary", Folder: t.TempDir()}
	results, err := Run(t.Context(), o)
	require.NoError(t, err)
	require.Len(t, results, len(o.Models))
	for i, r := range results {
		assert.Equal(t, o.Models[i], r.Model)
		assert.Positive(t, r.RowsPerSecond)
		assert.Zero(t, r.Rows%rows, r.Model)
	}
	assert.InDelta(t, 250, results[0].InputBytesPerSecond/results[0].RowsPerSecond, 3, "bytes of text a row")
	assert.InDelta(t, text.BinaryRow, results[1].InputBytesPerSecond/results[1].RowsPerSecond, 0.1)
	assert.Equal(t, "snappy", results[2].Codec)
	assert.Equal(t, RealTSV, results[0].Encoding)
}

// TestRealRowsArePackedAsTheyAre compares packed rows with the text.
func TestRealRowsArePackedAsTheyAre(t *testing.T) {
	lines, err := os.ReadFile(shared.Path(t, "data/criteo/td_day_11_first_3k_rows_original.tsv"))
	require.NoError(t, err)
	lines = append(lines, lines...) // more than are decoded at a time
	packed, err := pack(lines)
	require.NoError(t, err)
	want, _, _, err := text.Reference(lines, text.Options{})
	require.NoError(t, err)
	got, err := text.ReferenceBinary(packed)
	require.NoError(t, err)
	require.Len(t, got, len(want))
	for r := range want {
		for f := range want[r] {
			require.Equal(t, want[r][f].Value, got[r][f].Value, "row %d, field %d", r, f)
		}
	}
	_, err = pack([]byte("1\t2\n"))
	require.ErrorIs(t, err, text.ErrFieldCount)
}

// TestRealRowsNeedAFile checks the errors without a file, with one that is absent, and with rows that are malformed.
func TestRealRowsNeedAFile(t *testing.T) {
	for _, model := range []string{RealTSV, RealBinary, RealRM1, "criteo-real-5k"} {
		require.NoError(t, Known(model))
		_, err := Run(t.Context(), Options{Models: []string{model}, Folder: t.TempDir()})
		require.ErrorIs(t, err, workload.ErrOptions)
		require.ErrorContains(t, err, "--criteo")
		_, err = Run(t.Context(), Options{Models: []string{model}, Folder: t.TempDir(),
			Criteo: filepath.Join(t.TempDir(), "none")})
		require.ErrorIs(t, err, os.ErrNotExist)
	}
	path := filepath.Join(t.TempDir(), "rows.tsv")
	require.NoError(t, os.WriteFile(path, []byte("1\t2\n"), 0o600))
	for _, model := range []string{RealTSV, RealBinary, RealRM1} {
		_, err := Run(t.Context(), Options{Models: []string{model}, Rows: 10, Time: 1, Criteo: path, Folder: t.TempDir()})
		require.ErrorContains(t, err, "number of fields", model)
	}
}
