package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/fpga/timing"
)

// TestNamedStockImages: each is built, signed, shown with its name and sources, and loaded; and drives run the
// pipelines of its paper with it, and no others.
func TestNamedStockImages(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key, _, _ := keyFiles(t, 7)
	file := func(name string) string { return filepath.Join(dir, name+".mimg") }
	drive := "file:" + filepath.Join(dir, "d0.flash") + "?size=1MiB"
	must(t, "drive", "create", drive)
	for _, name := range stock.Names() {
		must(t, "image", "build", "--stock", name, "--out", file(name), "--key", key)
		info := must(t, "image", "info", file(name))
		for _, want := range []string{"stock image", name, "signed", "by key", "clock_khz", "parquet"} {
			if name != "piper" || want != "parquet" {
				assert.Contains(t, info, want, name)
			}
		}
		assert.Regexp(t, `without self-test +none`, info, name)
		d := decode[imageDescription](t, must(t, "image", "info", file(name), "--output", "json"))
		assert.Equal(t, name, d.Stock)
		assert.NotEmpty(t, d.Parameters)
		must(t, "image", "load", drive, file(name), "--activate")
	}
	data := generate(t, "--rows", "3000")
	preprocess := func(img, pipeline string, more ...string) []string {
		return append([]string{"preprocess", "--progress", "none", "--output", "json", "--engine", "drive", "--image",
			file(img), "--pipeline", pipeline, "--out", filepath.Join(t.TempDir(), "out")}, more...)
	}
	text := must(t, preprocess("presto", "rm1", "--in", data, "--timing", "image", "--dilate", "10000")...)
	r := decode[preprocessResult](t, text)
	assert.EqualValues(t, 3000, r.Rows)
	assert.Equal(t, timing.StageMove, r.Timing.Bound)
	rows := filepath.Join(dir, "rows.tsv")
	require.NoError(t, os.WriteFile(rows, []byte(strings.Repeat("1\t9"+strings.Repeat("\t", 12)+"\tc"+
		strings.Repeat("\t", 25)+"\n", 10)), 0o600))
	must(t, preprocess("piper", "criteo", "--in", rows, "--input-format", "criteo-tsv")...)
	for _, img := range []string{"piper", "minipipe", "passthrough"} {
		code, _, errs := millrace(t, preprocess(img, "rm1", "--in", data)...)
		assert.Equal(t, exitFailed, code, img)
		assert.NotEmpty(t, errs)
	}
	code, _, errs := millrace(t, "image", "build", "--stock", "prest", "--out", file("x"))
	assert.Equal(t, exitUsage, code)
	assert.Contains(t, errs, "want presto, piper, minipipe, passthrough")
}
