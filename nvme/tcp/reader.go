package tcp

import (
	"bufio"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// readBuffer is how much a connection reads at a time. Data that is larger goes straight to where it belongs.
const readBuffer = 64 << 10

// reader takes PDUs from a connection. One goroutine uses it; since is read by others.
type reader struct {
	br    *bufio.Reader
	rules pdu.Rules
	// since is when the PDU that is being received began, or the batch of PDUs that it came with, in nanoseconds of Unix time;
	// 0 while none is expected to come to an end. Whoever watches the connection ends it when this is long ago.
	since atomic.Int64
}

func newReader(r io.Reader, rules pdu.Rules) *reader {
	return &reader{br: bufio.NewReaderSize(r, readBuffer), rules: rules}
}

// waiting says that until the next call no progress is expected of the other side.
func (r *reader) waiting() { r.since.Store(0) }

func (r *reader) progress() {
	if r.since.Load() == 0 {
		r.since.Store(time.Now().UnixNano())
	}
}

// next receives a PDU up to its data. The header is valid until the next call of any method. The error is io.EOF between PDUs,
// a *pdu.Error, of which header holds what is known of the PDU, or the connection's.
func (r *reader) next() (f pdu.Frame, header []byte, err error) {
	if r.br.Buffered() == 0 {
		r.waiting()
		if _, err := r.br.Peek(1); err != nil {
			return f, nil, err
		}
	}
	r.progress()
	b, err := r.br.Peek(pdu.CommonSize)
	if err != nil {
		return f, nil, unexpected(err)
	}
	if f, err = r.rules.Parse((*[pdu.CommonSize]byte)(b)); err != nil {
		return f, b, err
	}
	n := f.Prefix()
	if b, err = r.br.Peek(n); err != nil {
		return f, nil, unexpected(err)
	}
	if f.Flags&pdu.FlagHeaderDigest != 0 {
		if err := pdu.CheckHeader(b[:int(f.Size)+pdu.DigestSize]); err != nil {
			return f, b[:f.Size], err
		}
	}
	_, err = r.br.Discard(n)
	return f, b[:f.Size], err
}

// data receives the data of the PDU that next gave into dst, which has its size, and tells whether its digest is right.
func (r *reader) data(f *pdu.Frame, dst []byte) (intact bool, err error) {
	r.progress()
	if _, err := io.ReadFull(r.br, dst); err != nil {
		return false, unexpected(err)
	}
	if !f.Digest {
		return true, nil
	}
	b, err := r.br.Peek(pdu.DigestSize)
	if err != nil {
		return false, unexpected(err)
	}
	intact = pdu.DigestOf(b) == pdu.Digest(dst)
	_, err = r.br.Discard(pdu.DigestSize)
	return intact, err
}

// skip throws the data of the PDU that next gave away.
func (r *reader) skip(f *pdu.Frame) error {
	n := int(f.Data)
	if f.Digest {
		n += pdu.DigestSize
	}
	if n == 0 {
		return nil
	}
	r.progress()
	_, err := r.br.Discard(n)
	return unexpected(err)
}

// unexpected makes the end of a stream inside a PDU an error that says so.
func unexpected(err error) error {
	if err == io.EOF || err == io.ErrUnexpectedEOF {
		return fmt.Errorf("the connection ended inside a PDU: %w", io.ErrUnexpectedEOF)
	}
	return err
}
