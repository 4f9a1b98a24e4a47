//go:build !purego

package text

import (
	"unsafe"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

// vectors returns which vector kernels run.
func vectors() vectorSet {
	switch {
	case simd.VBMI():
		return bytes512
	case simd.Current() >= simd.AVX2:
		return words256
	}
	return noVectors
}

// indexFields notes the place behind each separator of data, counted from data on. It returns the number of
// separators before the block of 64 bytes in which a line with another number of fields ends, or stops when there are
// want of them.
func (s vectorSet) indexFields(data []byte, to *[startsRoom]uint16, fields, want int) (seps int) {
	blocks := min(len(data), vectorBytes) / 64
	if blocks == 0 {
		return 0
	}
	want = min(want, blockRows*fields)
	if s == bytes512 {
		return index512(&data[0], blocks, &to[2], fields, want)
	}
	return index256(&data[0], blocks, &to[2], fields, want)
}

// parseIndexed parses lines that the index holds into rows held, held+1, ... of the block until a line is odd, and
// returns how many lines it parsed.
func (d *Decoder) parseIndexed(window []byte, n, held int) (done int) {
	a, perLine := &d.index, fields-d.firstField
	n = min(n, blockRows-held)
	end := a.windowOffset + int(a.starts[a.nextStart+n*perLine])
	_ = window[end-1+vectorSlack]
	_ = window[a.windowOffset-d.vectors.bytesBefore()]
	var cr uint8
	if window[a.windowOffset+int(a.starts[a.nextStart+perLine])-2] == '\r' {
		cr = 1
	}
	data, starts, cells, plane := &window[a.windowOffset], &a.starts[a.nextStart], &d.cells[held][0], &d.planes[0][held]
	if d.vectors == bytes512 {
		return rows512(data, starts, perLine, n, uint8(1-d.firstField), cr, cells, plane)
	}
	return rows256(data, starts, perLine, n, uint8(1-d.firstField), cr, cells, plane)
}

// columns moves whole eights of the first n rows, 40 cells of 32 bits each, to rows first, first+1, ... of the columns,
// and returns how many rows that are. ahead is how far behind rows the next ones lie, or 0.
func (t *columnTargets) columns(s vectorSet, rows *byte, first, n, ahead int) (done int) {
	n &^= 7
	for g := range groups {
		if n == 0 || !t.wanted[g].values {
			continue
		}
		src, soon := (*byte)(unsafe.Add(unsafe.Pointer(rows), 32*g)), 0
		if ahead > 0 {
			soon = ahead + 32*g*(n-1)
		}
		dst, wide := &t.values[8*g], s == bytes512
		switch signed := signed(g); {
		case wide && signed > 0:
			columns512(dst, src, first, n, soon, 1<<signed-1)
		case wide:
			unsigned512(dst, src, first, n, soon)
		case signed == 8:
			signed256(dst, src, first, n, soon)
		case signed > 0:
			mixed256(dst, src, first, n, soon)
		default:
			unsigned256(dst, src, first, n, soon)
		}
	}
	return n
}

// signed returns the number of fields at the start of a group that hold signed cells.
func signed(group int) int { return max(0, min(1+Dense-8*group, 8)) }

// validity moves the planes' first n rows, and reports whether it did.
func (t *columnTargets) validity(s vectorSet, planes *[groups][blockRows]byte, first, n int) bool {
	if s != bytes512 && n < blockRows {
		return false
	}
	for g := range groups {
		switch {
		case n == 0 || !t.wanted[g].valid:
		case s == bytes512:
			validity512(&t.valid[8*g], &planes[g][0], first, n)
		default:
			validity256(&t.valid[8*g], &planes[g][0], first)
		}
	}
	return true
}
