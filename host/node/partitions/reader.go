package partitions

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/millrace/millrace/host"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/partition"
)

// readAhead is how much of a partition is read from the drive at once.
const readAhead = 1 << 20

// Serve answers GET /v1/partitions/NAME?drive=D with the partition's bytes, or a Range of them. A request with "TE:
// trailers" is answered in chunks and its checksum follows: without a Range the SHA-256 of the partition, with a Range
// the CRC32C of the range. With If-Match the partition must have that digest (the Etag of every answer); otherwise the
// error is a *host.ChangedError. HEAD with If-Match also reads the end of the partition's bytes again, and so notices
// that they were changed on the drive.
func (s *Store) Serve(w http.ResponseWriter, r *http.Request) error {
	name := strings.TrimPrefix(r.URL.Path, apiv1.PartitionPath)
	values, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return fmt.Errorf("%w: query: %w", ErrRequest, err)
	}
	if len(values) != 1 || len(values["drive"]) != 1 {
		return fmt.Errorf("%w: want ?drive=NAME and nothing else", ErrRequest)
	}
	d, err := s.o.Drive(values.Get("drive"))
	if err != nil {
		return err
	}
	p := partitionOf(d, name)
	if p == nil {
		return fmt.Errorf("drive %s: partition %.80q: %w", d.Name(), name, errNoPartition)
	}
	if err := checkMatch(d, p, r); err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Type", "application/octet-stream")
	h.Set("Etag", entityTag(p))
	// The time grows with the partition, but it ends.
	deadline := time.Now().Add(s.o.WriteTime + time.Duration(p.Size>>24)*time.Second)
	_ = http.NewResponseController(w).SetWriteDeadline(deadline)
	trailers := r.Method == http.MethodGet && strings.Contains(r.Header.Get("Te"), "trailers")
	if text := r.Header.Get("Range"); trailers && text != "" {
		return s.serveRange(w, d, p, text)
	}
	h.Set(apiv1.DigestRunsHeader, partition.FormatRuns(p.DigestRuns()))
	if trailers {
		h.Set("Trailer", apiv1.DigestHeader)
		sum := sha256.New()
		buf := make([]byte, readAhead)
		for at := int64(0); at < p.Size; {
			n, err := p.ReadAt(buf[:min(int64(len(buf)), p.Size-at)], at)
			if n > 0 {
				sum.Write(buf[:n])
				if _, err := w.Write(buf[:n]); err != nil {
					return nil // the client is gone
				}
			}
			at += int64(n)
			if err != nil && !errors.Is(err, io.EOF) || n == 0 {
				s.o.Log.Warn("partition not read", "drive", d.Name(), "partition", name, "error", err)
				panic(http.ErrAbortHandler) // cuts the connection, so that the client does not accept a part of the partition
			}
		}
		h.Set(apiv1.DigestHeader, hex.EncodeToString(sum.Sum(nil)))
		return nil
	}
	http.ServeContent(w, r, "", time.Time{}, &aheadReader{r: p, size: p.Size})
	return nil
}

// entityTag returns the Etag of a partition, which is its digest.
func entityTag(p *partition.Partition) string { return `"` + p.Describe().Content.String() + `"` }

// checkMatch returns a *host.ChangedError if a request asks for a partition of another digest.
func checkMatch(d *host.Drive, p *partition.Partition, r *http.Request) error {
	want := r.Header.Get("If-Match")
	if want == "" {
		return nil
	}
	if tag := entityTag(p); want != tag {
		return &host.ChangedError{Drive: d.Name(), Partition: p.Name,
			Why: fmt.Sprintf("its digest is %s, not %.80s", tag, want)}
	}
	if r.Method == http.MethodHead {
		return d.CheckUnchanged(p)
	}
	return nil
}

var errNoPartition = fmt.Errorf("no such partition: %w", fs.ErrNotExist)

// partitionOf returns a drive's partition by name, or nil.
func partitionOf(d *host.Drive, name string) *partition.Partition {
	for _, p := range d.Partitions() {
		if p.Name == name {
			return p
		}
	}
	return nil
}

// aheadReader reads a partition in large pieces, because http.ServeContent asks for small ones.
type aheadReader struct {
	r    io.ReaderAt
	size int64
	at   int64
	buf  []byte // bytes [from, from+len(buf))
	from int64
}

// Read implements io.Reader.
func (s *aheadReader) Read(p []byte) (int, error) {
	if s.at >= s.size {
		return 0, io.EOF
	}
	if s.at < s.from || s.at >= s.from+int64(len(s.buf)) {
		if s.buf == nil {
			s.buf = make([]byte, 0, readAhead)
		}
		s.buf = s.buf[:min(int64(cap(s.buf)), s.size-s.at)]
		n, err := s.r.ReadAt(s.buf, s.at)
		s.buf, s.from = s.buf[:n], s.at
		if n == 0 {
			return 0, err
		}
	}
	n := copy(p, s.buf[s.at-s.from:])
	s.at += int64(n)
	return n, nil
}

// Seek implements io.Seeker.
func (s *aheadReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += s.at
	case io.SeekEnd:
		offset += s.size
	}
	if offset < 0 {
		return 0, fmt.Errorf("seek to %d", offset)
	}
	s.at = offset
	return offset, nil
}
