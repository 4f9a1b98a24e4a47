package partitions

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/millrace/millrace/host"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
)

// ErrCopy says that what another node sent is not the partition that was asked for, or did not survive its way.
var ErrCopy = errors.New("copy of a partition")

// Source is where a partition is copied from.
type Source struct {
	URL, Drive string            // of the node
	Want       dataset.Partition // what it has to be
}

// location is the URL of the partition.
func (s Source) location() (string, error) {
	base, err := identity.BaseURL(s.URL)
	if err != nil {
		return "", fmt.Errorf("%w: from_url: %w", ErrRequest, err)
	}
	var path []string
	for part := range strings.SplitSeq(s.Want.Name, "/") {
		path = append(path, url.PathEscape(part))
	}
	return base + apiv1.PartitionPath + strings.Join(path, "/") + "?drive=" + url.QueryEscape(s.Drive), nil
}

// Copy fetches a partition from another node and appends it to a drive's volume: it is checked as it comes in, and is
// committed only when it is what it should be; then it is read back from the drive, and only then part of what the node
// offers.
func (s *Store) Copy(ctx context.Context, drive string, src Source) (n int64, sum []byte, err error) {
	d, v, err := s.volume(drive)
	if err != nil {
		return 0, nil, err
	}
	if p := partitionOf(d, src.Want.Name); p != nil {
		if why := unlike(p, src.Want); why != "" {
			return 0, nil, fmt.Errorf("%w: drive %s holds another partition of the name: %s", ErrCopy, drive, why)
		}
		sum, err := hashAll(ctx, p, p.Size)
		return p.Size, sum, err
	}
	at, err := src.location()
	if err != nil {
		return 0, nil, err
	}
	from, err := s.footerStart(ctx, at, src.Want.Bytes, d.Parquet())
	if err != nil {
		return 0, nil, err
	}
	resp, err := s.fetch(ctx, at, "")
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	in := newCheckedReader(resp.Body, src.Want, from, func() string { return resp.Trailer.Get(apiv1.DigestHeader) })
	if sum, err = s.keep(ctx, d, v, src.Want, in); err != nil {
		return 0, nil, err
	}
	s.o.Log.Info("partition copied", "drive", drive, "partition", src.Want.Name, "bytes", src.Want.Bytes,
		"from", src.URL)
	s.o.Changed()
	return src.Want.Bytes, sum, nil
}

// volume finds an open drive that partitions can be put on.
func (s *Store) volume(drive string) (*host.Drive, *volume.Volume, error) {
	d, err := s.o.Drive(drive)
	if err != nil {
		return nil, nil, err
	}
	if d.Volume() == nil {
		return nil, nil, fmt.Errorf("%w: drive %s has no volume to copy to", ErrRequest, drive)
	}
	return d, d.Volume(), nil
}

// keep appends a partition to a drive's volume and reads it back. It returns the SHA-256 of the bytes, which is kept.
func (s *Store) keep(ctx context.Context, d *host.Drive, v *volume.Volume, want dataset.Partition,
	in *checkedReader) ([]byte, error) {
	drive := d.Name()
	if err := v.Put(ctx, want.Name, want.Bytes, in); err != nil {
		return nil, fmt.Errorf("drive %s: %w", drive, err)
	}
	sum := in.all.Sum(nil)
	r, err := v.Open(ctx, want.Name)
	if err != nil {
		return nil, fmt.Errorf("drive %s: %w", drive, err)
	}
	back, err := hashAll(ctx, r, want.Bytes)
	if err != nil {
		return nil, fmt.Errorf("drive %s: read %s back: %w", drive, want.Name, err)
	}
	if !bytes.Equal(back, sum) {
		return nil, fmt.Errorf("%w: drive %s gives other bytes back than were written to it: validate the drive", ErrCopy, drive)
	}
	if err := d.Rescan(ctx); err != nil {
		return nil, err
	}
	p := partitionOf(d, want.Name)
	if p == nil {
		return nil, fmt.Errorf("%w: drive %s does not take %s for a partition: see its members and format in the configuration", ErrCopy, drive, want.Name)
	}
	if why := unlike(p, want); why != "" {
		return nil, fmt.Errorf("%w: %s: %s", ErrCopy, want.Name, why)
	}
	s.sums.put(d.Identity(), want.Name, sum)
	return sum, nil
}

// unlike says how a partition differs from what it should be.
func unlike(p *partition.Partition, want dataset.Partition) string {
	have := p.Describe()
	switch {
	case have.Bytes != want.Bytes || have.Rows != want.Rows || have.Footer != want.Footer:
		return fmt.Sprintf("it has %d bytes, %d rows and footer %s; wanted are %d, %d and %s", have.Bytes, have.Rows,
			have.Footer, want.Bytes, want.Rows, want.Footer)
	case len(want.RowGroups) > 0 && !slices.Equal(have.RowGroups, want.RowGroups):
		return "its row groups have other numbers of rows"
	}
	return ""
}

// hashAll is the SHA-256 of size bytes.
func hashAll(ctx context.Context, r io.ReaderAt, size int64) ([]byte, error) {
	sum, buf := sha256.New(), make([]byte, readAhead)
	for at := int64(0); at < size; {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		n, err := r.ReadAt(buf[:min(int64(len(buf)), size-at)], at)
		sum.Write(buf[:n])
		if at += int64(n); err != nil && !(err == io.EOF && at == size) || n == 0 {
			return nil, errors.Join(io.ErrUnexpectedEOF, err)
		}
	}
	return sum.Sum(nil), nil
}

// trailerBytes is the length of a Parquet footer, and the magic behind it.
const trailerBytes = 8

// footerStart asks where the footer begins, whose digest names the partition; of other formats that is the whole file.
func (s *Store) footerStart(ctx context.Context, at string, size int64, parquet bool) (int64, error) {
	if !parquet || size < trailerBytes {
		return 0, nil
	}
	resp, err := s.fetch(ctx, at, fmt.Sprintf("bytes=%d-%d", size-trailerBytes, size-1))
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	var end [trailerBytes]byte
	if _, err := io.ReadFull(resp.Body, end[:]); err != nil {
		return 0, fmt.Errorf("%w: read its last bytes: %w", ErrCopy, err)
	}
	length := int64(binary.LittleEndian.Uint32(end[:])) + trailerBytes
	if length > size {
		return 0, fmt.Errorf("%w: its end is not that of a Parquet file", ErrCopy)
	}
	return size - length, nil
}

// fetch gets a partition, or a range of it.
func (s *Store) fetch(ctx context.Context, at, bytes string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	want := http.StatusOK
	if bytes != "" {
		r.Header.Set("Range", bytes)
		want = http.StatusPartialContent
	} else {
		r.Header.Set("Te", "trailers")
	}
	resp, err := s.o.Client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("fetch partition: %w", err)
	}
	if resp.StatusCode != want {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
		return nil, errors.Join(fmt.Errorf("%w: the other node answers %s: %s", ErrCopy, resp.Status, text), resp.Body.Close())
	}
	return resp, nil
}

// checkedReader reads a partition and ends well only if it is the one that is wanted: an error at its end keeps the
// volume from committing it.
type checkedReader struct {
	body        io.Reader
	sent        func() string // SHA-256 of the whole, in hex, as the sender says once its bytes have been read
	size, at    int64
	footerAt    int64
	want        dataset.Digest
	all, footer hash.Hash
	err         error
}

func newCheckedReader(body io.Reader, want dataset.Partition, footerAt int64, sent func() string) *checkedReader {
	return &checkedReader{body: body, sent: sent, size: want.Bytes, footerAt: footerAt, want: want.Footer,
		all: sha256.New(), footer: sha256.New()}
}

func (c *checkedReader) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.body.Read(p)
	c.all.Write(p[:n])
	if end := c.at + int64(n); end > c.footerAt {
		c.footer.Write(p[max(0, c.footerAt-c.at):n])
	}
	c.at += int64(n)
	if err == io.EOF {
		err = c.check()
	}
	c.err = err
	return n, err
}

// check looks at the whole, once its end was read.
func (c *checkedReader) check() error {
	if c.at != c.size {
		return io.EOF // the volume says how much was missing, or too much
	}
	if sent := c.sent(); sent != hex.EncodeToString(c.all.Sum(nil)) {
		return fmt.Errorf("%w: its bytes changed on their way: SHA-256 %x here, %q there", ErrCopy, c.all.Sum(nil),
			sent)
	}
	if got := dataset.Digest(c.footer.Sum(nil)); got != c.want {
		return fmt.Errorf("%w: its footer's SHA-256 is %s, not %s", ErrCopy, got, c.want)
	}
	return io.EOF
}
