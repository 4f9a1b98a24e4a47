package stream

import (
	"bufio"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/nvme/tcp/pdu"
)

// readBuffer is the most bytes that a connection reads at a time. Larger data is read directly into its buffer.
const readBuffer = 64 << 10

// Reader takes PDUs from a connection. One goroutine uses it.
type Reader struct {
	br    *bufio.Reader
	Rules pdu.Rules
	// Awaits runs while the rest of a PDU is awaited. The target watches it, and ends a connection that waits for too
	// long.
	Awaits Stopwatch
}

// NewReader makes a reader of a connection whose PDUs keep to rules.
func NewReader(r io.Reader, rules pdu.Rules) *Reader {
	x := &Reader{br: bufio.NewReaderSize(r, readBuffer), Rules: rules}
	x.Awaits.Init()
	return x
}

// ExpectNoProgress says that until the next call no progress is expected of the other side.
func (r *Reader) ExpectNoProgress() { r.Awaits.Stop() }

// expectBytes says that n more bytes of the PDU are wanted.
func (r *Reader) expectBytes(n int) {
	if r.br.Buffered() < n && !r.Awaits.Running() {
		r.Awaits.Start()
	}
}

// NextPDU receives a PDU up to its data. The header is valid until the next call of any method. The error is io.EOF
// between PDUs; a *pdu.Error, and then header holds the part of the PDU that was received; or the connection's.
func (r *Reader) NextPDU() (f pdu.Frame, header []byte, err error) {
	r.ExpectNoProgress()
	if r.br.Buffered() == 0 {
		if _, err := r.br.Peek(1); err != nil {
			return f, nil, err
		}
	}
	r.expectBytes(pdu.CommonSize)
	b, err := r.br.Peek(pdu.CommonSize)
	if err != nil {
		return f, nil, asUnexpectedEOF(err)
	}
	if f, err = r.Rules.Parse((*[pdu.CommonSize]byte)(b)); err != nil {
		return f, b, err
	}
	n := f.Prefix()
	r.expectBytes(n)
	if b, err = r.br.Peek(n); err != nil {
		return f, nil, asUnexpectedEOF(err)
	}
	if f.Flags&pdu.FlagHeaderDigest != 0 {
		if err := pdu.CheckHeader(b[:int(f.Size)+pdu.DigestSize]); err != nil {
			return f, b[:f.Size], err
		}
	}
	_, err = r.br.Discard(n)
	return f, b[:f.Size], err
}

// digestChunk is the most data that is received before its digest goes on: little enough to be in the nearer caches
// still.
const digestChunk = 256 << 10

// ReadData receives the data of the PDU that NextPDU gave into dst, which has its size, and reports whether its digest
// is right.
func (r *Reader) ReadData(f *pdu.Frame, dst []byte) (intact bool, err error) {
	r.expectBytes(len(dst))
	if !f.Digest {
		_, err = io.ReadFull(r.br, dst)
		return err == nil, asUnexpectedEOF(err)
	}
	var digest uint32
	for rest := dst; len(rest) > 0; {
		n, err := r.br.Read(rest[:min(len(rest), digestChunk)])
		if n == 0 && err != nil {
			return false, asUnexpectedEOF(err)
		}
		digest = pdu.UpdateDigest(digest, rest[:n])
		rest = rest[n:]
	}
	b, err := r.br.Peek(pdu.DigestSize)
	if err != nil {
		return false, asUnexpectedEOF(err)
	}
	intact = pdu.DigestOf(b) == digest
	_, err = r.br.Discard(pdu.DigestSize)
	return intact, err
}

// SkipData throws the data of the PDU that NextPDU gave away.
func (r *Reader) SkipData(f *pdu.Frame) error {
	n := int(f.Data)
	if f.Digest {
		n += pdu.DigestSize
	}
	if n == 0 {
		return nil
	}
	r.expectBytes(n)
	_, err := r.br.Discard(n)
	return asUnexpectedEOF(err)
}

// asUnexpectedEOF makes the end of a stream inside a PDU an error that says so.
func asUnexpectedEOF(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("the connection ended inside a PDU: %w", io.ErrUnexpectedEOF)
	}
	return err
}
