package text

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// wellFormed are lines that the fast path must take, short of what only the careful path would notice.
var wellFormed = []string{
	"0" + strings.Repeat("\t1", Dense) + strings.Repeat("\t05db9164", Sparse) + "\n",
	"1" + strings.Repeat("\t", Dense+Sparse) + "\n",
	"1" + strings.Repeat("\t", Dense+Sparse) + "\r\n",
	"-2147483648" + strings.Repeat("\t-2147483648", Dense) + strings.Repeat("\tFFFFFFFF", Sparse) + "\r\n",
	"2147483647" + strings.Repeat("\t2147483647", Dense) + strings.Repeat("\t0", Sparse) + "\n",
	"0000000001" + strings.Repeat("\t-0000000001", Dense) + strings.Repeat("\tabcdefA", Sparse) + "\n",
	"12" + strings.Repeat("\t\t345", 6) + "\t" + strings.Repeat("\t\t9a\tdeadbeef\tfade", 6) + "\tcafe\t1234567\n",
}

// fast runs fastLine over a line and what follows it.
func fast(line string, first int, row *[fields]uint32) (used int, valid uint64) {
	var b [fastRow]byte
	copy(b[:], line+strings.Repeat("0\t", fastRow))
	return parseFastLine(&b, first, row)
}

func TestFastPathTakesWellFormedLines(t *testing.T) {
	for _, line := range wellFormed {
		for first := range 2 {
			if first == 1 {
				_, line, _ = strings.Cut(line, "\t")
			}
			var row, want [fields]uint32
			used, valid := fast(line, first, &row)
			require.Equal(t, len(line), used, "%q", line)
			wantValid, _, bad := parseLine(bytes.TrimRight([]byte(line), "\r\n"), first, &want)
			require.NoError(t, bad)
			require.Equal(t, wantValid, valid)
			require.Equal(t, want, row)
		}
	}
}

// Every byte in place of every byte: the fast path takes the line only if the careful path does, with the same cells.
func TestFastPathTakesNothingElse(t *testing.T) {
	for _, line := range wellFormed {
		edited := []byte(line)
		for at := range edited {
			for c := range 256 {
				edited[at] = byte(c)
				var row, want [fields]uint32
				used, valid := fast(string(edited), 0, &row)
				if used == 0 {
					continue
				}
				rest, next, ok := cutLine(append(bytes.Clone(edited), strings.Repeat("0\t", fastRow)...), false)
				wantValid, _, bad := parseLine(rest, 0, &want)
				if !ok || bad != nil || next != used || wantValid != valid || row != want {
					t.Fatalf("%q: used %d of %d, %v", edited, used, next, bad)
				}
			}
			edited[at] = line[at]
		}
	}
}
