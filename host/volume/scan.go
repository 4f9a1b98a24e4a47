package volume

import (
	"context"
	"fmt"
	"io"
	"strings"
	"time"
)

// Member is one file of a volume: bytes [Offset, Offset+Size) of the device.
type Member struct {
	Name    string    `json:"name"`
	Offset  int64     `json:"offset_bytes"`
	Size    int64     `json:"size_bytes"`
	ModTime time.Time `json:"modified"`
	Sparse  bool      `json:"sparse,omitempty"` // cannot be opened
}

// scanner walks the headers of an archive.
type scanner struct {
	r    *window
	size int64 // of the device
	at   int64 // of the next header
}

// next returns the next regular member; io.EOF at the end of the archive, with at where a new member would begin.
func (s *scanner) next() (*Member, error) {
	p := pax{size: -1}
	start := s.at // a member's first header; the archive ends before it when its last one is missing
	for range 64 {
		if s.size-s.at < sector {
			s.at = start
			return nil, io.EOF
		}
		b, err := s.r.block(s.at)
		if err != nil {
			return nil, err
		}
		if *b == ([sector]byte{}) {
			s.at = start
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

// member makes a member of its header h at s.at and what extensions said, and moves on behind it. For what is no
// regular file it returns nil.
func (s *scanner) member(h *header, p *pax, start int64) (*Member, error) {
	data := s.at + sector
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
	if p.real != "" {
		m.Name = p.real
	}
	if p.size >= 0 {
		m.Size = p.size
	}
	switch h.kind {
	case typeRegular, typeOld, typeContiguous, typeSparse:
	case '1', '2', '3', '4', '5', '6':
		// Links, devices, directories and pipes have no data, whatever their size field says.
		m.Size = 0
	}
	if m.Size > s.size-data {
		return nil, s.corrupt(start, fmt.Sprintf("member %q of %d bytes runs behind the end of the device", m.Name, m.Size))
	}
	s.at = min(data+roundUp(m.Size, sector), s.size)
	regular := h.kind == typeRegular || h.kind == typeContiguous || h.kind == typeSparse || h.kind == typeOld
	if !regular || strings.HasSuffix(m.Name, "/") {
		return nil, nil
	}
	if m.Name == "" || len(m.Name) > MaxName {
		return nil, s.corrupt(start, fmt.Sprintf("member name of %d bytes", len(m.Name)))
	}
	return m, nil
}

// extension reads a pax header or GNU long name at s.at and moves behind it.
func (s *scanner) extension(h *header, p *pax) error {
	if h.size > maxExtension || h.size > s.size-s.at-sector {
		return s.corrupt(s.at, fmt.Sprintf("extension header of %d bytes", h.size))
	}
	b := make([]byte, h.size)
	if err := s.r.read(b, s.at+sector); err != nil {
		return err
	}
	switch h.kind {
	case typePax:
		if err := p.parse(b); err != nil {
			return s.corrupt(s.at, err.Error())
		}
	case typeLongName:
		p.name = text(b)
	}
	// Global pax headers (a comment, as git archive writes it) and long link names say nothing about members.
	s.at += sector + roundUp(h.size, sector)
	return nil
}

func (s *scanner) corrupt(at int64, detail string) error {
	why := ErrCorrupt
	if at == 0 {
		why = ErrNotTar
	}
	return fmt.Errorf("header at byte %d: %w: %s", at, why, detail)
}

// window reads small pieces of a device through a buffer, since headers lie near each other where members are small.
type window struct {
	r    io.ReaderAt
	size int64
	buf  []byte
	at   int64 // device offset of buf
}

const windowSize = 16 << 10

func newWindow(ctx context.Context, dev BlockDevice) *window {
	return &window{r: dev.ReaderAt(ctx), size: dev.Size()}
}

// block returns the 512 bytes at off, valid until the next call.
func (w *window) block(off int64) (*[sector]byte, error) {
	if off < w.at || off+sector > w.at+int64(len(w.buf)) {
		n := min(windowSize, w.size-off)
		if w.buf == nil {
			w.buf = make([]byte, windowSize)
		}
		w.buf = w.buf[:n]
		if err := readFull(w.r, w.buf, off); err != nil {
			w.buf = w.buf[:0]
			return nil, err
		}
		w.at = off
	}
	return (*[sector]byte)(w.buf[off-w.at:]), nil
}

func (w *window) read(p []byte, off int64) error { return readFull(w.r, p, off) }

// readFull reads len(p) bytes; an io.EOF with all of them is none.
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
