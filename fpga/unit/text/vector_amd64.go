//go:build !purego

package text

import (
	"unsafe"

	"github.com/millrace/millrace/fpga/unit/internal/simd"
)

// vectors tells whether the vector kernels run.
func vectors() bool { return simd.VBMI() }

// index notes where what is behind each separator of data begins, counted from data on, and returns how many there are before the block
// of 64 bytes in which a line ends that has another number of fields, or once there are want of them.
func index(data []byte, to *[startsRoom]uint16, fields, want int) (seps int) {
	if len(data) < 64 {
		return 0
	}
	return index512(&data[0], min(len(data), vectorBytes)/64, &to[2], fields, min(want, block*fields))
}

// parse parses lines that the index knows into rows held, held+1, ... of the block until one is odd, and returns how many it did.
func (d *Decoder) parse(window []byte, n, held int) (done int) {
	a, perLine := &d.ahead, fields-d.first
	n = min(n, block-held)
	end := a.data + int(a.starts[a.next+n*perLine])
	_ = window[end-1+vectorSlack]
	var cr uint8
	if window[a.data+int(a.starts[a.next+perLine])-2] == '\r' {
		cr = 1
	}
	return rows512(&window[a.data], &a.starts[a.next], perLine, n, uint8(1-d.first), cr, &d.cells[held][0], &d.planes[0][held])
}

// columns moves whole eights of the first n rows, 40 cells of 32 bits each, to rows first, first+1, ... of the columns, and returns how
// many rows that are. ahead is how far behind rows the next ones lie, or 0.
func (t *targets) columns(rows *byte, first, n, ahead int) (done int) {
	n &^= 7
	for g := range groups {
		if n == 0 || !t.wanted[g].values {
			continue
		}
		src, soon := (*byte)(unsafe.Add(unsafe.Pointer(rows), 32*g)), 0
		if ahead > 0 {
			soon = ahead + 32*g*(n-1)
		}
		if s := signed(g); s != 0 {
			columns512(&t.values[8*g], src, first, n, soon, s)
		} else {
			unsigned512(&t.values[8*g], src, first, n, soon)
		}
	}
	return n
}

// validity moves the planes' first n rows.
func (t *targets) validity(planes *[groups][block]byte, first, n int) {
	for g := range groups {
		if n > 0 && t.wanted[g].valid {
			validity512(&t.valid[8*g], &planes[g][0], first, n)
		}
	}
}
