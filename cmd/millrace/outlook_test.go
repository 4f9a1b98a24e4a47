package main

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/cmd/cli/clitest"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/trainmgr"
)

// TestOutlookIsWhatJobsThenCount compares what dataset inspect --batch says of an epoch with the reports of jobs on the
// drive engine: mini-batches and rows left out are the same, and bytes are right within 3 %, which is for the ends of
// blocks. Splits that end inside row groups read more than 1.2 times the bytes that are needed here.
func TestOutlookIsWhatJobsThenCount(t *testing.T) {
	for name, flags := range map[string][]string{
		"plain":              {"--page-bytes", "32KiB"},
		"packed, dictionary": {"--codec", "snappy", "--encoding", "dictionary"},
	} {
		data := generate(t, append(flags, "--rows", "31000", "--row-group-rows", "15000")...)
		v := decode[partitionfile.Outlook](t, must(t, "dataset", "inspect", data, "--batch", "800", "--split-batches", "13",
			"--output", "json"))
		assert.EqualValues(t, 31000, v.Rows, name)
		assert.Equal(t, 1, v.Partitions)
		require.Len(t, v.Boundaries, 2)
		assert.Positive(t, v.Boundaries[0].CutGroups)
		assert.Greater(t, float64(v.Boundaries[0].ReadBytes), 1.2*float64(v.Boundaries[0].NeededBytes), name)
		for _, b := range v.Boundaries {
			where := fmt.Sprintf("%s, boundary %v", name, b.Boundary)
			for tail, leftOut := range map[string]int64{"keep": 0, "drop": b.LeftOut} {
				if tail == "drop" && name != "plain" {
					continue
				}
				r := decode[trainmgr.Report](t, must(t, "train", "--pipeline", "rm1", "--in", data, "--engine", "drive",
					"--boundary", b.Boundary.String(), "--tail", tail, "--batch", "800", "--split-batches", "13",
					"--trainer-rows-per-second", "1e9", "--output", "json"))
				assert.Equal(t, leftOut, r.LeftOutRows, where)
				if tail == "drop" {
					assert.Zero(t, r.ShortMiniBatches, where)
					assert.EqualValues(t, b.MiniBatches-b.Short, r.MiniBatches, where)
					continue
				}
				assert.EqualValues(t, b.MiniBatches, r.MiniBatches, where)
				assert.Equal(t, b.Short, r.ShortMiniBatches, where)
				moved, unneeded := r.PerDrive[0].BytesMoved, r.PerDrive[0].BytesUnneeded
				assert.Equal(t, b.NeededBytes, moved-unneeded, where)
				assert.InEpsilon(t, b.ReadBytes, moved, 0.03, where)
			}
		}
	}
}

// TestOutlookTable prints the outlook of a small data set, and of a text.
func TestOutlookTable(t *testing.T) {
	data := generate(t, "--rows", "300", "--partitions", "3", "--row-group-rows", "60")
	clitest.CheckKeys(t, map[string]string{"inspect": must(t, "dataset", "inspect", data, "--batch", "64", "--output",
		"json")})
	out := must(t, "dataset", "inspect", data, "--batch", "64")
	assert.Contains(t, out, "300 rows in 3 partitions, mini-batches of 64 rows, splits of 16 mini-batches")
	assert.Regexp(t, `partition +6 +3 +108 +3 +0 .* 1\.00`, out)
	assert.Regexp(t, `none +5 +1 +44 +3 +0 .* 1\.00`, out)
	text := file(t, "d.tsv", strings.Repeat("1"+strings.Repeat("\t7", 13)+strings.Repeat("\t0000002a", 26)+"\n", 5))
	assert.Regexp(t, `none +1 +1 +5 +1 +0 .* 1\.00`, must(t, "dataset", "inspect", text, "--batch", "64"))
}

// TestOutlookFlags refuses flags that say nothing together.
func TestOutlookFlags(t *testing.T) {
	data := generate(t, "--rows", "10")
	for want, flags := range map[string][]string{
		"--split-batches is for --batch": {"--split-batches", "3"},
		"give one of them":               {"--batch", "3", "--coverage"},
		"--batch 0: want 1":              {"--batch", "0"},
		"--batch -5: want 1 to":          {"--batch", "-5"},
		"--split-batches -1: want 1 to":  {"--batch", "3", "--split-batches", "-1"},
		"--batch 1073741824: want 1 to":  {"--batch", "1073741824"},
		"--split-batches 99999999: want": {"--batch", "3", "--split-batches", "99999999"},
	} {
		code, _, errs := millrace(t, append([]string{"dataset", "inspect", data}, flags...)...)
		assert.Equal(t, 2, code, want)
		assert.Contains(t, errs, want)
	}
}
