package volume

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// Member is one file of a volume: the bytes from Offset to Offset+Size of the device.
type Member struct {
	Name    string    `json:"name"`
	Offset  int64     `json:"offset_bytes"`
	Size    int64     `json:"size_bytes"`
	ModTime time.Time `json:"modified"`
	Sparse  bool      `json:"sparse,omitempty"` // cannot be opened
}

// scanner reads the headers of an archive, one after the other.
type scanner struct {
	r      *headerReader
	size   int64 // The device has this size.
	offset int64 // The next header is at this offset.
}

// next returns the next regular member, and nil for a member of another type. At the end of the archive it returns
// io.EOF, and s.offset is where a new member would begin.
func (s *scanner) next() (*Member, error) {
	p := paxRecords{size: -1}
	start := s.offset // of the member's first header; without its last header the archive ends here
	for range 64 {
		if s.size-s.offset < sector {
			s.offset = start
			return nil, io.EOF
		}
		b, err := s.r.block(s.offset)
		if err != nil {
			return nil, err
		}
		if *b == ([sector]byte{}) {
			s.offset = start
			return nil, io.EOF
		}
		h, err := parseHeader(b)
		if err != nil {
			return nil, s.corrupt(start, err.Error())
		}
		switch h.kind {
		case typePax, typePaxGlobal, typeLongName, typeLongLink:
			if err := s.extension(h, &p); err != nil {
				return nil, err
			}
			continue
		}
		return s.member(h, &p, start)
	}
	return nil, s.corrupt(start, "more than 64 extension headers before one member")
}

// member makes a member of the header at s.offset and of its extensions, and moves on behind the member. It returns nil
// for a member that is not a regular file.
func (s *scanner) member(h *header, p *paxRecords, start int64) (*Member, error) {
	data := s.offset + sector
	for more := h.more; more; data += sector {
		if s.size-data < sector {
			return nil, s.corrupt(start, "sparse header runs behind the end of the device")
		}
		b, err := s.r.block(data)
		if err != nil {
			return nil, err
		}
		more = b[504] != 0
	}
	m := &Member{Name: h.name, Offset: data, Size: h.size, ModTime: h.time, Sparse: h.kind == typeSparse || p.sparse}
	if p.name != "" {
		m.Name = p.name
	}
	if p.sparseName != "" {
		m.Name = p.sparseName
	}
	if p.size >= 0 {
		m.Size = p.size
	}
	switch h.kind {
	case typeRegular, typeOld, typeContiguous, typeSparse:
	case '1', '2', '3', '4', '5', '6':
		// Links, devices, directories and pipes have no data, even if their size field is not 0.
		m.Size = 0
	}
	if m.Size > s.size-data {
		return nil, s.corrupt(start,
			fmt.Sprintf("member %q of %d bytes runs behind the end of the device", m.Name, m.Size))
	}
	s.offset = min(data+roundUp(m.Size, sector), s.size)
	regular := h.kind == typeRegular || h.kind == typeContiguous || h.kind == typeSparse || h.kind == typeOld
	if !regular || strings.HasSuffix(m.Name, "/") {
		return nil, nil
	}
	if m.Name == "" || len(m.Name) > MaxName {
		return nil, s.corrupt(start, fmt.Sprintf("member name of %d bytes", len(m.Name)))
	}
	return m, nil
}

// extension reads the pax header or GNU long name at s.offset, and moves on behind it.
func (s *scanner) extension(h *header, p *paxRecords) error {
	if h.size > maxExtension || h.size > s.size-s.offset-sector {
		return s.corrupt(s.offset, fmt.Sprintf("extension header of %d bytes", h.size))
	}
	b := make([]byte, h.size)
	if err := s.r.read(b, s.offset+sector); err != nil {
		return err
	}
	switch h.kind {
	case typePax:
		if err := p.parse(b); err != nil {
			return s.corrupt(s.offset, err.Error())
		}
	case typeLongName:
		p.name = fieldText(b)
	}
	// Global pax headers (a comment, as git archive writes it) and long link names say nothing about members.
	s.offset += sector + roundUp(h.size, sector)
	return nil
}

// corrupt returns an error about the header at an offset. Bytes whose first header is wrong are no archive.
func (s *scanner) corrupt(at int64, detail string) error {
	why := ErrCorrupt
	if at == 0 {
		why = ErrNotTar
	}
	return fmt.Errorf("header at byte %d: %w: %s", at, why, detail)
}

// headerReader reads headers through a buffer, because headers lie near each other where members are small.
type headerReader struct {
	r      io.ReaderAt
	size   int64
	buf    []byte
	offset int64 // buf lies at this offset of the device.
}

const headerBuffer = 16 << 10

func newHeaderReader(ctx context.Context, dev BlockDevice) *headerReader {
	return &headerReader{r: dev.ReaderAt(ctx), size: dev.Size()}
}

// block returns the 512 bytes at an offset. They are valid until the next call.
func (w *headerReader) block(off int64) (*[sector]byte, error) {
	if off < w.offset || off+sector > w.offset+int64(len(w.buf)) {
		n := min(headerBuffer, w.size-off)
		if w.buf == nil {
			w.buf = make([]byte, headerBuffer)
		}
		w.buf = w.buf[:n]
		if err := readFull(w.r, w.buf, off); err != nil {
			w.buf = w.buf[:0]
			return nil, err
		}
		w.offset = off
	}
	return (*[sector]byte)(w.buf[off-w.offset:]), nil
}

// read reads len(p) bytes at an offset, past the buffer.
func (w *headerReader) read(p []byte, off int64) error { return readFull(w.r, p, off) }

// readFull reads len(p) bytes. An io.EOF that comes with all of them is not an error.
func readFull(r io.ReaderAt, p []byte, off int64) error {
	n, err := r.ReadAt(p, off)
	if n == len(p) {
		return nil
	}
	if err == nil || err == io.EOF {
		err = io.ErrUnexpectedEOF
	}
	return err
}
