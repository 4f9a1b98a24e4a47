package main

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/trainmgr"
)

// TestPreprocessAcrossFiles: with --boundary none the rows are those of --boundary partition, in fewer mini-batches, on
// every engine. The format npy does not show where mini-batches end, and Arrow has a batch for each.
func TestPreprocessAcrossFiles(t *testing.T) {
	data := generate(t, "--rows", "607", "--partitions", "3", "--row-group-rows", "90")
	uris := drives(t, data, 2, 512)
	preprocess := func(t *testing.T, format string, flags ...string) (preprocessResult, map[string]string) {
		out := filepath.Join(t.TempDir(), "out")
		r := decode[preprocessResult](t, must(t, append([]string{"preprocess", "--pipeline", "rm1", "--batch", "48",
			"--split-batches", "2", "--format", format, "--out", out, "--output", "json"}, flags...)...))
		return r, content(t, out)
	}
	whole, want := preprocess(t, "npy", "--in", data)
	require.EqualValues(t, 607, whole.Rows)
	require.EqualValues(t, 5+5+5, whole.MiniBatches)
	var arrow map[string]string
	for name, flags := range map[string][]string{
		"files, drive": {"--in", data, "--engine", "drive"},
		"files, cpu":   {"--in", data, "--engine", "cpu", "--threads", "2"},
		"small queue":  {"--in", data, "--queue", "1B"},
		"drives":       {"--drive", uris[0], "--drive", uris[1]},
	} {
		t.Run(name, func(t *testing.T) {
			flags = append(flags, "--boundary", "none")
			r, got := preprocess(t, "npy", flags...)
			assert.EqualValues(t, 607, r.Rows)
			assert.EqualValues(t, 13, r.MiniBatches)
			assert.Equal(t, want, got)
			r, got = preprocess(t, "arrow", flags...)
			assert.EqualValues(t, 13, r.MiniBatches)
			if arrow == nil {
				arrow = got
			}
			assert.True(t, arrow["out"] == got["out"], "the files differ")
			r, _ = preprocess(t, "npy", append(flags, "--tail", "drop")...)
			assert.EqualValues(t, 12, r.MiniBatches)
			assert.EqualValues(t, 12*48, r.Rows)
		})
	}
}

// TestTrainAcrossFiles stops and resumes jobs whose mini-batches go on across files, in both orders.
func TestTrainAcrossFiles(t *testing.T) {
	data := generate(t, "--rows", "1007", "--partitions", "7", "--row-group-rows", "50")
	for _, order := range []string{"fastest", "deterministic"} {
		for _, engine := range []string{"drive", "cpu"} {
			t.Run(order+" "+engine, func(t *testing.T) {
				flags := []string{"train", "--pipeline", "rm1", "--in", data, "--engine", engine, "--spread", "3",
					"--batch", "100", "--split-batches", "2", "--boundary", "none", "--order", order, "--epochs", "2",
					"--trainer-rows-per-second", "1e7", "--measure", "1ms", "--queue", "1B", "--output", "json",
					"--progress", "none", "--checkpoint", filepath.Join(t.TempDir(), "job.token")}
				var rows, batches int64
				for _, stop := range []string{"1", "4", "9", ""} {
					stops := flags
					if stop != "" {
						stops = append(slices.Clone(flags), "--stop-after", stop)
					}
					r := decode[trainmgr.Report](t, must(t, stops...))
					rows, batches = rows+r.Rows, batches+r.MiniBatches
				}
				assert.EqualValues(t, 2*1007, rows)
				assert.EqualValues(t, 2*11, batches)
			})
		}
	}
}

// TestBoundariesThatNoPlanHas names the boundaries that there are, before anything is opened.
func TestBoundariesThatNoPlanHas(t *testing.T) {
	for _, args := range [][]string{
		{"preprocess", "--pipeline", "rm1", "--in", "nowhere", "--out", filepath.Join(t.TempDir(), "out")},
		{"train", "--pipeline", "rm1", "--in", "nowhere"},
		{"jobs", "submit", "--pipeline", "rm1", "--control", "http://127.0.0.1:1"},
	} {
		code, _, errs := millrace(t, append(args, "--boundary", "file")...)
		assert.Equal(t, 2, code)
		assert.Contains(t, errs, `boundary "file", want one of [partition none]`)
	}
}
