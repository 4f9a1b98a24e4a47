package partitions

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/millrace/millrace/host"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/internal/crc32c"
	"github.com/millrace/millrace/sdk/partition"
)

// rangePiece is how much of a range is read, summed and written at a time: it stays in the second-level cache.
const rangePiece = 256 << 10

// serveRange answers with a range of a partition, text of the header Range, and the CRC32C of the range as a trailer.
// The checksum is of the bytes as they were read from the drive, so that the client notices every change that
// happens to them behind this function.
func (s *Store) serveRange(w http.ResponseWriter, d *host.Drive, p *partition.Partition, text string) error {
	first, last, err := parseRange(text, p.Size)
	if err != nil {
		return err
	}
	h := w.Header()
	h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", first, last, p.Size))
	h.Set("Trailer", apiv1.ChecksumHeader)
	w.WriteHeader(http.StatusPartialContent)
	sum := uint32(0)
	buf := make([]byte, min(rangePiece, last-first+1))
	for at := first; at <= last; {
		piece := buf[:min(int64(len(buf)), last-at+1)]
		n, err := p.ReadAt(piece, at)
		if n < len(piece) && (err != nil && !errors.Is(err, io.EOF) || n == 0) {
			s.o.Log.Warn("partition not read", "drive", d.Name(), "partition", p.Name, "error", err)
			panic(http.ErrAbortHandler) // cuts the connection, so that the client does not accept a part of the range
		}
		sum = crc32c.Update(sum, piece[:n])
		if _, err := w.Write(piece[:n]); err != nil {
			return nil // the client is gone
		}
		at += int64(n)
	}
	h.Set(apiv1.ChecksumHeader, fmt.Sprintf("%08x", sum))
	return nil
}

// parseRange reads "bytes=FIRST-LAST" of a partition of size bytes. A last byte behind the partition's end is the
// partition's last byte, as RFC 9110 has it.
func parseRange(text string, size int64) (first, last int64, err error) {
	from, to, ok := strings.Cut(strings.TrimPrefix(text, "bytes="), "-")
	if ok && strings.HasPrefix(text, "bytes=") {
		a, aerr := strconv.ParseUint(from, 10, 63)
		b, berr := strconv.ParseUint(to, 10, 63)
		if first, last = int64(a), min(int64(b), size-1); aerr == nil && berr == nil && first <= last &&
			last-first < apiv1.MaxPartitionRange {
			return first, last, nil
		}
	}
	return 0, 0, fmt.Errorf("%w: Range %.60q of %d bytes: want bytes=FIRST-LAST inside the partition, at most %d bytes",
		ErrRequest, text, size, apiv1.MaxPartitionRange)
}
