//go:build !purego

package text

import (
	"bytes"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

// lead is what the lines of a window come behind, for kernels that look at what is before them.
const lead = "\n-1f\xff\t9\n"

// kernels are the sets of kernels that this machine has.
func kernels(t *testing.T) []vectorSet {
	t.Cleanup(simd.Force(simd.Detected()))
	switch vectors() {
	case bytes512:
		return []vectorSet{words256, bytes512}
	case words256:
		return []vectorSet{words256}
	}
	t.Skipf("this machine offers %v", simd.Detected())
	return nil
}

// kernel parses the lines behind lead, of which it indexes n, and returns how many it did.
func kernel(s vectorSet, d *Decoder, data []byte, n int) (done int) {
	d.vectors, d.index.lines, d.index.indexLines = s, 0, blockRows
	if !d.index.fillIndex(s, data, len(lead), fields-d.firstField, n) {
		return 0
	}
	return d.parseIndexed(data, d.index.lines, 0)
}

func TestKernelTakesWellFormedLines(t *testing.T) {
	for _, set := range kernels(t) {
		for _, labelAbsent := range []bool{false, true} {
			for _, end := range []string{"\n", "\r\n"} {
				rng := rand.New(rand.NewPCG(2, 2))
				data := []byte(lead)
				for range blockRows {
					data = append(data, decimalLine(rng, labelAbsent, end)...)
				}
				data = append(data, strings.Repeat("0", 2*vectorSlack)...)
				d, err := NewDecoder(Options{LabelAbsent: labelAbsent})
				require.NoError(t, err)
				require.Equal(t, blockRows, kernel(set, d, data, blockRows))
			}
		}
	}
}

// Every byte in place of every byte: the kernels take the line only if the careful path does, with the same cells.
func TestKernelTakesNothingElse(t *testing.T) {
	lines := []string{
		"0" + strings.Repeat("\t1", Dense) + strings.Repeat("\t05db9164", Sparse) + "\n",
		"1" + strings.Repeat("\t", Dense+Sparse) + "\n",
		"-1234567" + strings.Repeat("\t-9999999", Dense) + strings.Repeat("\tFFFFFFFF", Sparse) + "\r\n",
		"12" + strings.Repeat("\t\t345", 6) + "\t" + strings.Repeat("\t\t9a\tdeadbeef\tfade", 6) + "\tcafe\t1234567\n",
		"-1\t-1" + strings.Repeat("\t", Dense+Sparse-2) + "a\tb\r\n",
	}
	for _, set := range kernels(t) {
		for first := range 2 {
			d, err := NewDecoder(Options{LabelAbsent: first == 1})
			require.NoError(t, err)
			behind := strings.Repeat("1"+strings.Repeat("\t", fields-first-1)+"\n", 8)
			taken := 0
			for _, line := range lines {
				if first == 1 {
					_, line, _ = strings.Cut(line, "\t")
				}
				data := []byte(lead + line + behind)
				require.Equal(t, 1, kernel(set, d, data, 1), "%q", line)
				for at := range line {
					edited := &data[len(lead)+at]
					for c := range 256 {
						*edited = byte(c)
						if kernel(set, d, data, 1) > 0 {
							taken++
							sameAsCareful(t, d, data[len(lead):])
						}
					}
					*edited = line[at]
				}
			}
			require.Greater(t, taken, 10_000, "most digits may be others")
		}
	}
}

// sameAsCareful wants the block's first row to be what the careful path makes of the line.
func sameAsCareful(t *testing.T, d *Decoder, data []byte) {
	var want [fields]uint32
	line, next, ok := cutLine(data, false)
	valid, _, bad := parseLine(line, d.firstField, &want)
	var got uint64
	for g := range d.planes {
		got |= uint64(d.planes[g][0]) << (8 * g)
	}
	if !ok || bad != nil || int(d.index.starts[1+fields-d.firstField]) != next || got != valid || d.cells[0] != want {
		t.Fatalf("%q: %v, fields %x, want %x, cells %v, want %v", data[:next], bad, got, valid, d.cells[0], want)
	}
}

// The index finds each separator, however many there are in 64 bytes, and stops before the 64 bytes in which a line is
// odd.
func TestKernelIndexes(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 6))
	for _, set := range kernels(t) {
		for _, perLine := range []int{fields, fields - 1} {
			for widest := range 12 {
				var data []byte
				var want []uint16
				for len(want) < perLine*40 {
					data = append(data, strings.Repeat("7", rng.IntN(widest+1))...)
					sep := byte('\t')
					if len(want)%perLine == perLine-1 {
						sep = '\n'
					}
					data = append(data, sep)
					want = append(want, uint16(len(data)))
				}
				end := len(data)
				data = append(data, bytes.Repeat([]byte{'0'}, 128)...)
				var starts [startsRoom]uint16
				seps := set.indexFields(data, &starts, perLine, len(want))
				require.Equal(t, len(want), seps)
				require.Equal(t, want, starts[2:2+seps])

				// One separator is another: nothing from its 64 bytes on.
				k := rng.IntN(len(want))
				at := int(want[k]) - 1
				data[at] ^= '\t' ^ '\n'
				seps = set.indexFields(data, &starts, perLine, len(want))
				before := 0
				for before < len(want) && int(want[before])-1 < at&^63 {
					before++
				}
				require.Equal(t, before, seps, "separator %d of %d bytes", k, end)
				require.Equal(t, want[:seps], starts[2:2+seps])
			}
		}
	}
}

// An index that ends at a line with another number of fields goes for one line next, then for more again.
func TestKernelReach(t *testing.T) {
	good := strings.Repeat("\t", 39) + "\n"
	data := []byte(lead + strings.Repeat(good, 10) + "\n" + strings.Repeat(good, 200))
	for _, set := range kernels(t) {
		a, pos := lineIndex{indexLines: blockRows}, len(lead)
		var rows []int
		for a.fillIndex(set, data, pos, fields, blockRows) {
			rows = append(rows, a.lines)
			pos = a.takeLines(a.lines, fields)
			if len(rows) == 1 {
				require.Equal(t, len(lead)+9*len(good), pos, "the last line before the odd one shares its 64 bytes")
				pos = len(lead) + 10*len(good) + 1
			}
		}
		require.Equal(t, []int{9, 1, 2, 4, 8, 16, 32, 64}, rows[:8])
		require.Less(t, len(data)-pos, vectorSlack+64+len(good), "what is left is too near to the end")
	}
}
