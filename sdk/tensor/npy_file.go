package tensor

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// npyReserved is the length of every header that is written here: the header of a shape of one or two dimensions has 68
// to 109 bytes, and the format pads it to a multiple of 64.
const npyReserved = 128

// npyHeader is the content of a .npy file's header.
type npyHeader struct {
	DType string  `json:"dtype"` // <f4, <i4, <i8, <u2
	Shape []int64 `json:"shape"`
}

// npyType returns NumPy's name of a type.
func npyType(d DType) string {
	switch d {
	case Int32:
		return "<i4"
	case Int64:
		return "<i8"
	case BFloat16:
		return "<u2"
	}
	return "<f4"
}

// encodeNpyHeader returns a header of NumPy's format v1.0: magic, version, u16 length, a Python dict in C order, spaces
// and a newline that end it at a multiple of 64.
func encodeNpyHeader(h npyHeader) []byte {
	dims := make([]string, len(h.Shape))
	for i, n := range h.Shape {
		dims[i] = strconv.FormatInt(n, 10)
	}
	shape := strings.Join(dims, ", ")
	if len(dims) == 1 {
		shape += "," // a Python tuple of one
	}
	dict := "{'descr': '" + h.DType + "', 'fortran_order': False, 'shape': (" + shape + "), }"
	const fixed = len("\x93NUMPY") + 2 + 2
	n := (fixed + len(dict) + 1 + 63) / 64 * 64
	dict += strings.Repeat(" ", n-fixed-len(dict)-1) + "\n"
	b := []byte("\x93NUMPY\x01\x00")
	b = append(b, byte(len(dict)), byte(len(dict)>>8))
	return append(b, dict...)
}

// npyFile is a .npy file whose shape is known only at its end.
type npyFile struct{ f *os.File }

func createNpyFile(dir, name string) (*npyFile, error) {
	f, err := os.OpenFile(filepath.Join(dir, name), os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o666)
	if err != nil {
		return nil, fmt.Errorf("create npy file: %w", err)
	}
	if _, err := f.Write(make([]byte, npyReserved)); err != nil {
		return nil, errors.Join(fmt.Errorf("create npy file: %w", err), f.Close())
	}
	return &npyFile{f}, nil
}

func (n *npyFile) write(b []byte) error {
	if _, err := n.f.Write(b); err != nil {
		return fmt.Errorf("write npy file: %w", err)
	}
	return nil
}

// finish writes the header, syncs and closes.
func (n *npyFile) finish(h npyHeader) error {
	b := encodeNpyHeader(h)
	var err error
	if len(b) != npyReserved {
		err = fmt.Errorf("a header of %d bytes does not fit %d", len(b), npyReserved)
	} else {
		_, err = n.f.WriteAt(b, 0)
	}
	if err = errors.Join(err, n.f.Sync(), n.f.Close()); err != nil {
		return fmt.Errorf("finish npy file %s: %w", n.f.Name(), err)
	}
	return nil
}
