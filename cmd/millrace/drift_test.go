package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/summary"
)

func TestDrift(t *testing.T) {
	dir := t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	criteoRows(t, in("monday.tsv"), strings.Split(strings.Repeat("2a 7 2a 9 ", 50)+"7", " ")...)
	criteoRows(t, in("tuesday.tsv"), strings.Split(strings.Repeat("2a 9 2a 7 ", 60)+"7", " ")...)
	criteoRows(t, in("friday.tsv"), strings.Split(strings.Repeat("2a ffff  9 ", 50)+"7", " ")...)
	quiet := []string{"--progress", "none"}
	for _, day := range []string{"monday", "friday"} {
		must(t, append(quiet, "dataset", "summarize", in(day+".tsv"), "--out", in(day))...)
	}
	drift := func(status int, args ...string) driftReport {
		code, out, errs := millrace(t, append(append([]string{"dataset", "drift", "--output", "json"}, quiet...), args...)...)
		require.Equal(t, status, code, errs)
		require.Empty(t, errs)
		return decode[driftReport](t, out)
	}
	none := drift(exitDone, in("monday"), in("tuesday.tsv"))
	assert.Zero(t, none.Drifted)
	assert.Len(t, none.Columns, 40)
	assert.NotEmpty(t, none.Before.Digest)
	assert.Empty(t, none.After.Digest)
	assert.EqualValues(t, 241, none.After.Rows)

	moved := drift(exitFailed, in("monday"), in("friday"))
	assert.Equal(t, 26, moved.Drifted, "the ids moved, and the label and the integers did not")
	cat := moved.Columns[14]
	assert.Equal(t, "cat_0", cat.Name)
	assert.Contains(t, cat.Reasons, summary.NullRateMoved)
	assert.Contains(t, cat.Reasons, summary.ValuesMoved)
	assert.InDelta(t, 50.0/201, *cat.NullRate, 1e-9)
	assert.Zero(t, drift(exitDone, in("monday"), in("friday"), "--columns", "int_*,label").Drifted)
	assert.Len(t, drift(exitFailed, in("monday.tsv"), in("friday"), "--columns", "cat_1..cat_3").Columns, 3)
	lenient := []string{"--null-rate", "1", "--psi", "100", "--mean", "1e9", "--quantiles", "1e9", "--distinct", "9"}
	assert.Zero(t, drift(exitDone, append(lenient, in("monday"), in("friday"))...).Drifted)

	code, out, errs := millrace(t, append(quiet, "dataset", "drift", in("monday"), in("friday"))...)
	require.Equal(t, exitFailed, code)
	require.Empty(t, errs)
	assert.Contains(t, out, "26 of 40 columns")
	assert.Contains(t, out, "null_rate")
	assert.NotContains(t, out, "int_0")

	b, err := os.ReadFile(in("monday"))
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(in("damaged"), append(b[:len(b)-40], b[len(b)-39:]...), 0o600))
	for says, args := range map[string][]string{
		"damaged":      {in("monday"), in("damaged")},
		"cat_77":       {in("monday"), in("friday"), "--columns", "cat_77"},
		"no such file": {in("monday"), in("nothing")},
	} {
		code, out, errs := millrace(t, append(append(quiet, "dataset", "drift"), args...)...)
		assert.Equal(t, exitFailed, code, says)
		assert.Empty(t, out)
		assert.Contains(t, errs, says)
	}
}
