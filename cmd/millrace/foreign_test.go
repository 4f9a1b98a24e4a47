package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/foreignparquettest"
)

// foreignEngines are the ways to compute in process, by the flags that ask for them.
var foreignEngines = map[string][]string{
	"reference": {"--engine", "reference"}, "cpu": {"--engine", "cpu"},
	"drive, vendor": {"--engine", "drive"}, "drive, standard": {
		"--engine", "drive", "--commands", "standard", "--slm", "1MiB",
	},
}

// TestManyRowGroups: row groups are bounded by memory only. A mini-batch of 5,000 of them, and several, are those of
// the same rows in one.
func TestManyRowGroups(t *testing.T) {
	const n = 5000
	dir := t.TempDir()
	p := filepath.Join(dir, "p.yaml")
	require.NoError(t,
		os.WriteFile(p,
			[]byte("label: {column: label, ops: [fill_null: 0]}\ndense: [{columns: [f], ops: [fill_null: 0]}]\n"+
				"sparse: [{columns: [id]}]"), 0o600))
	many, few := filepath.Join(dir, "many.parquet"), filepath.Join(dir, "few.parquet")
	require.NoError(t, os.WriteFile(many, foreignparquettest.ManyRowGroups(n), 0o600))
	require.NoError(t, os.WriteFile(few, foreignparquettest.FewRowGroups(n), 0o600))
	for _, batch := range []string{"5000", "1024"} {
		var want map[string]string
		for name, flags := range foreignEngines {
			for _, in := range []string{few, many} {
				out := filepath.Join(t.TempDir(), "out")
				must(t, append([]string{"preprocess", "--pipeline", p, "--batch", batch, "--in", in, "--out", out},
					flags...)...)
				if want == nil {
					want = content(t, out)
				}
				require.Equal(t, want, content(t, out), "%s of %s in mini-batches of %s", name, in, batch)
			}
		}
	}
}
