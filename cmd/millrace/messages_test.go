package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
	"github.com/millrace/millrace/internal/foreignparquettest"
)

const compare = ": damaged or truncated: compare with the writer's copy"

// TestMessages holds the errors of commands for files that cannot be read: the file once, the place in it once and
// the same on every engine, what is wrong, and what to do.
func TestMessages(t *testing.T) {
	data := generate(t, "--rows", "450", "--row-group-rows", "150", "--codec", "snappy", "--page-bytes", "500")
	deep := filepath.Join(t.TempDir(), "damaged.parquet")
	for _, f := range foreignparquettest.Files() {
		if f.Refused != "" {
			require.NoError(t, os.WriteFile(deep, f.Bytes, 0o600))
		}
	}
	good := file(t, "p.yaml", goodPipeline)
	var first int64 // byte of the file at which cat_7's chunk of row group 1 begins
	for name, c := range map[string]struct {
		change   func(b []byte, f *format.File) []byte
		pipeline string
		want     string // a regular expression of the whole message, where FIRST is that byte
		engine   string // that says it; "" for all of them, in the same words
	}{
		"a flip under a page's checksum": {change: func(b []byte, f *format.File) []byte {
			k := chunk(t, f, 1, "cat_7")
			first = k.Offset
			_, n, err := format.ParsePageHeader(b[k.Offset:])
			require.NoError(t, err)
			b[k.Offset+int64(n)+3] ^= 0x10
			return b
		}, want: `row group 1: column "cat_7": page 0 at byte FIRST of the file: ` +
			`page checksum mismatch: header says [0-9a-f]{8}, page has [0-9a-f]{8}` + compare},
		"a page header that lies": {change: func(b []byte, f *format.File) []byte {
			k := chunk(t, f, 1, "cat_7")
			first = k.Offset
			copy(b[k.Offset:], strings.Repeat("\xff", 12))
			return b
		}, want: `row group 1: column "cat_7": page 0 at byte FIRST of the file: ` +
			`page header: unknown field type at byte 1 of the structure` + compare},
		"a footer that is cut": {change: func(b []byte, _ *format.File) []byte { return b[:len(b)-1] },
			want: `partition cannot be read: footer: file does not end in PAR1` + compare},
		"a column that is nested too deep": {pipeline: fmt.Sprintf("sparse: [{columns: [%q]}]",
			strings.Repeat("g.", 80)+"x"),
			want: `line 1:10: sparse\[0\]: column "g\.[^"]*": column cannot be read: damaged.parquet: ` +
				`nesting of more than 63 levels is not supported`},
	} {
		t.Run(name, func(t *testing.T) {
			path, p := deep, good
			if c.change != nil {
				path = damaged(t, data, c.change)
			}
			if c.pipeline != "" {
				p = file(t, "p.yaml", c.pipeline)
			}
			want := strings.ReplaceAll(c.want, "FIRST", fmt.Sprint(first))
			if c.pipeline == "" {
				want = "damaged.parquet: " + want
			} else {
				want = regexp.QuoteMeta(p) + ": " + want
			}
			for engine, flags := range foreignEngines {
				code, _, errs := millrace(t,
					append([]string{
						"preprocess", "--progress", "none", "--out", filepath.Join(t.TempDir(), "out"), "--pipeline", p,
						"--in", path,
					}, flags...)...)
				assert.Equal(t, exitFailed, code)
				assert.Regexp(t, "^millrace: "+want+"\n$", errs, engine)
				assert.Equal(t, 1, strings.Count(errs, "damaged.parquet"), errs)
			}
		})
	}
}
