package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/foreignparquet"
)

// foreignPipeline reads all columns of foreignparquet's files, the ids by their name.
func foreignPipeline(t *testing.T, id string) string {
	path := filepath.Join(t.TempDir(), "p.yaml")
	text := fmt.Sprintf(`batch: 100
label: {column: label, ops: [fill_null: 0]}
dense: [{columns: [f], ops: [fill_null: 0, log: {add: 1}]}]
sparse:
  - {columns: [%q], as: id, ops: [sigrid_hash: {max: 500000}]}
  - {columns: [ids], ops: [sigrid_hash: {max: 500000}]}
`, id)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// foreignEngines are the ways to compute in process, by the flags that ask for them.
var foreignEngines = map[string][]string{
	"reference": {"--engine", "reference"}, "cpu": {"--engine", "cpu"},
	"drive, vendor": {"--engine", "drive"}, "drive, standard": {
		"--engine", "drive", "--commands", "standard", "--slm", "1MiB",
	},
}

// TestForeignFiles preprocesses files of other writers, faults included, on every engine: tensors are those of the same
// file without faults.
func TestForeignFiles(t *testing.T) {
	dir := t.TempDir()
	write := func(name string, b []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, b, 0o600))
		return path
	}
	preprocess := func(t *testing.T, file, id string, flags ...string) map[string]string {
		out := filepath.Join(t.TempDir(), "out")
		must(t, append([]string{"preprocess", "--pipeline", foreignPipeline(t, id), "--in", file, "--out", out},
			flags...)...)
		return content(t, out)
	}
	want := preprocess(t, write("twin.parquet", foreignparquet.Twin()), "id", "--engine", "reference")
	for i, f := range foreignparquet.Files() {
		path := write(fmt.Sprintf("%d.parquet", i), f.Bytes)
		for name, flags := range foreignEngines {
			t.Run(f.Name+"/"+name, func(t *testing.T) {
				require.Equal(t, want, preprocess(t, path, f.ID, flags...))
			})
		}
		if f.Refused != "" { // only if it is asked for
			p := filepath.Join(dir, "refused.yaml")
			require.NoError(t, os.WriteFile(p, fmt.Appendf(nil, "sparse: [{columns: [%q]}]", f.Refused), 0o600))
			code, _, errs := millrace(t, "preprocess", "--pipeline", p, "--in", path, "--out",
				filepath.Join(t.TempDir(), "out"))
			require.Equal(t, 1, code)
			require.Contains(t, errs, "nesting of more than 63 levels is not supported")
		}
	}
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
	require.NoError(t, os.WriteFile(many, foreignparquet.ManyRowGroups(n), 0o600))
	require.NoError(t, os.WriteFile(few, foreignparquet.FewRowGroups(n), 0o600))
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
