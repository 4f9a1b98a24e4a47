package partitions

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"slices"

	"github.com/millrace/millrace/host"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
)

// ErrCopy says that what another node or a client sent is not the partition that it should be, or was damaged on its
// way.
var ErrCopy = errors.New("copy of a partition")

// Source is where a partition is copied from.
type Source struct {
	URL, Drive string            // They name the node and a drive of it.
	Want       dataset.Partition // the partition that it has to be
}

// location returns the URL of the partition.
func (s Source) location() (string, error) {
	base, err := identity.BaseURL(s.URL)
	if err != nil {
		return "", fmt.Errorf("%w: from_url: %w", ErrRequest, err)
	}
	return apiv1.PartitionURL(base, s.Want.Name, s.Drive), nil
}

// Copy fetches a partition from another node and appends it to a drive's volume. The partition is checked as it comes
// in, and committed only if it is the wanted partition. Then it is read back from the drive, and only after that the
// node offers it.
func (s *Store) Copy(ctx context.Context, drive string, src Source) (n int64, sum []byte, err error) {
	d, v, err := s.volume(drive)
	if err != nil {
		return 0, nil, err
	}
	if p := partitionOf(d, src.Want.Name); p != nil {
		if why := difference(p, src.Want); why != "" {
			return 0, nil, fmt.Errorf("%w: drive %s holds another partition of the name: %s", ErrCopy, drive, why)
		}
		sum, err := hashAll(ctx, p, p.Size)
		return p.Size, sum, err
	}
	at, err := src.location()
	if err != nil {
		return 0, nil, err
	}
	resp, err := s.fetch(ctx, at)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	runs, err := partition.ParseRuns(resp.Header.Get(apiv1.DigestRunsHeader), src.Want.Bytes)
	if err != nil {
		return 0, nil, fmt.Errorf("%w: %s: %w", ErrCopy, apiv1.DigestRunsHeader, err)
	}
	in := newCheckedReader(resp.Body, src.Want, runs, func() string { return resp.Trailer.Get(apiv1.DigestHeader) })
	if sum, err = s.store(ctx, d, v, src.Want, in); err != nil {
		return 0, nil, err
	}
	s.o.Log.Info("partition copied", "drive", drive, "partition", src.Want.Name, "bytes", src.Want.Bytes,
		"from", src.URL)
	s.o.Changed()
	return src.Want.Bytes, sum, nil
}

// volume returns an open drive on which partitions can be put, and its volume.
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

// store appends a partition to a drive's volume and reads it back. It returns the SHA-256 of the bytes, which it keeps.
func (s *Store) store(ctx context.Context, d *host.Drive, v *volume.Volume, want dataset.Partition,
	in *checkedReader) ([]byte, error) {
	drive := d.Name()
	appender := s.appender(d)
	appender.Lock()
	err := v.Put(ctx, want.Name, want.Bytes, in)
	appender.Unlock()
	if err != nil {
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
		return nil, fmt.Errorf("%w: drive %s gives other bytes back than were written to it: validate the drive",
			ErrCopy, drive)
	}
	if err := s.rescan(ctx, d); err != nil {
		return nil, err
	}
	p := partitionOf(d, want.Name)
	if p == nil {
		return nil, fmt.Errorf("%w: drive %s does not take %s for a partition: see its members and format in the "+
			"configuration", ErrCopy, drive, want.Name)
	}
	if why := difference(p, want); why != "" {
		return nil, fmt.Errorf("%w: %s: %s", ErrCopy, want.Name, why)
	}
	s.sums.put(d.Identity(), want.Name, sum)
	return sum, nil
}

// difference returns how a partition differs from the wanted one, or "" if it does not.
func difference(p *partition.Partition, want dataset.Partition) string {
	have := p.Describe()
	switch {
	case have.Bytes != want.Bytes || have.Rows != want.Rows || have.Content != want.Content:
		return fmt.Sprintf("it has %s, %s and digest %s; wanted are %d, %d and %s", quantity.Of(have.Bytes, "byte"),
			quantity.Of(have.Rows, "row"), have.Content, want.Bytes, want.Rows, want.Content)
	case len(want.RowGroups) > 0 && !slices.Equal(have.RowGroups, want.RowGroups):
		return "its row groups have other numbers of rows"
	}
	return ""
}

// hashAll returns the SHA-256 of size bytes.
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

// fetch gets a partition from another node.
func (s *Store) fetch(ctx context.Context, at string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, at, nil)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrRequest, err)
	}
	r.Header.Set("Te", "trailers")
	resp, err := s.o.Client.Do(r)
	if err != nil {
		return nil, fmt.Errorf("fetch partition: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		text, _ := io.ReadAll(io.LimitReader(resp.Body, 512))
		return nil, errors.Join(fmt.Errorf("%w: the other node answers %s: %s", ErrCopy, resp.Status, text),
			resp.Body.Close())
	}
	return resp, nil
}

// checkedReader reads a partition and checks it. At the end of a partition that is not the wanted one it returns an
// error, which keeps the volume from committing the partition.
type checkedReader struct {
	body         io.Reader
	sent         func() string // returns the sender's SHA-256 of all bytes, in hex, once they have been read
	size, at     int64
	runs         []partition.Run // The digest covers these runs, which are not read to their end.
	want         dataset.Digest
	all, content hash.Hash
	err          error
}

// newCheckedReader makes a reader of a partition whose digest covers runs of its bytes. It calls sent at the end.
func newCheckedReader(
	body io.Reader, want dataset.Partition, runs []partition.Run, sent func() string,
) *checkedReader {
	return &checkedReader{body: body, sent: sent, size: want.Bytes, runs: runs, want: want.Content, all: sha256.New(),
		content: sha256.New()}
}

// Read implements io.Reader.
func (c *checkedReader) Read(p []byte) (int, error) {
	if c.err != nil {
		return 0, c.err
	}
	n, err := c.body.Read(p)
	c.all.Write(p[:n])
	begin, end := uint64(c.at), uint64(c.at)+uint64(n)
	for len(c.runs) > 0 && c.runs[0].From < end {
		run := c.runs[0]
		c.content.Write(p[max(run.From, begin)-begin : min(run.From+run.Len, end)-begin])
		if run.From+run.Len > end {
			break
		}
		c.runs = c.runs[1:]
	}
	c.at += int64(n)
	if errors.Is(err, io.EOF) {
		err = c.check()
	}
	c.err = err
	return n, err
}

// check compares the whole partition with the wanted one. It returns io.EOF if they are the same.
func (c *checkedReader) check() error {
	if c.at != c.size {
		return io.EOF // the volume says how much was missing, or too much
	}
	if sent := c.sent(); sent != hex.EncodeToString(c.all.Sum(nil)) {
		return fmt.Errorf("%w: its bytes changed on their way: SHA-256 %x here, %q there", ErrCopy, c.all.Sum(nil),
			sent)
	}
	if got := dataset.Digest(c.content.Sum(nil)); got != c.want {
		return fmt.Errorf("%w: its digest is %s, not %s", ErrCopy, got, c.want)
	}
	return io.EOF
}
