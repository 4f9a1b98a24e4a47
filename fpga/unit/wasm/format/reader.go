package format

import "fmt"

// reader reads a module's bytes. After the first error it reads zeros.
type reader struct {
	b   []byte
	at  int
	end int
	err error
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = &ModuleError{Offset: r.at, Detail: fmt.Sprintf(format, args...)}
	}
}

// more reports whether bytes are left.
func (r *reader) more() bool { return r.err == nil && r.at < r.end }

func (r *reader) byte() byte {
	if r.err != nil {
		return 0
	}
	if r.at >= r.end {
		r.fail("the module ends here, or its section does")
		return 0
	}
	r.at++
	return r.b[r.at-1]
}

// u32 reads an unsigned LEB128 number.
func (r *reader) u32() uint32 {
	var n uint64
	for shift := 0; shift < 35; shift += 7 {
		c := r.byte()
		if n |= uint64(c&0x7f) << shift; c < 0x80 {
			if n > 1<<32-1 {
				r.fail("a number of more than 32 bits")
				return 0
			}
			return uint32(n)
		}
	}
	r.fail("a number of more than five bytes")
	return 0
}

// signed reads a signed LEB128 number of at most the given bytes.
func (r *reader) signed(most int) int64 {
	var n int64
	for i := range most {
		c := r.byte()
		shift := 7 * i
		if n |= int64(c&0x7f) << shift; c < 0x80 {
			if c&0x40 != 0 && shift+7 < 64 {
				n |= -1 << (shift + 7)
			}
			return n
		}
	}
	r.fail("a number of more than %d bytes", most)
	return 0
}

// count reads how many things follow, of which each has at least a byte.
func (r *reader) count(most int, what string) int {
	n := r.u32()
	switch {
	case r.err != nil:
	case uint64(n) > uint64(most):
		r.fail("%d %s, want at most %d", n, what, most)
	case int(n) > r.end-r.at:
		r.fail("%d %s in %d bytes", n, what, r.end-r.at)
	default:
		return int(n)
	}
	return 0
}

// take returns the next n bytes.
func (r *reader) take(n uint32) []byte {
	if r.err == nil && uint64(n) > uint64(r.end-r.at) {
		r.fail("%d bytes are wanted and %d left", n, r.end-r.at)
	}
	if r.err != nil {
		return nil
	}
	r.at += int(n)
	return r.b[r.at-int(n) : r.at]
}

// part returns a reader of the next n bytes.
func (r *reader) part(n uint32) *reader {
	p := &reader{b: r.b, at: r.at}
	r.take(n)
	p.end, p.err = r.at, r.err
	return p
}

// finish fails if the reader has bytes left, and hands its error to the reader that it is part of.
func (r *reader) finish(of *reader, what string) {
	if r.err == nil && r.at != r.end {
		r.fail("%d bytes behind the %s", r.end-r.at, what)
	}
	if of.err == nil {
		of.err = r.err
	}
}
