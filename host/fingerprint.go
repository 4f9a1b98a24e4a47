package host

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
)

// ErrChanged says that a partition differs from the job's manifest. The error is a *ChangedError.
var ErrChanged = errors.New("the partition is not the one of the job's manifest")

// ErrNotHeld says that a drive does not hold a partition.
var ErrNotHeld = errors.New("the drive does not hold the partition")

// ChangedError names the partition that changed, and how.
type ChangedError struct {
	Drive, Partition string
	Why              string
}

func (e *ChangedError) Error() string {
	return fmt.Sprintf("drive %s: partition %s: %v: %s", e.Drive, e.Partition, ErrChanged, e.Why)
}

// Unwrap returns ErrChanged.
func (e *ChangedError) Unwrap() error { return ErrChanged }

// differs returns how a partition differs from a manifest's entry, or "" if it does not.
func differs(have, want dataset.Partition) string {
	switch {
	case have.Bytes != want.Bytes:
		return fmt.Sprintf("it has %s, not %d", quantity.Of(have.Bytes, "byte"), want.Bytes)
	case have.Rows != want.Rows:
		return fmt.Sprintf("it has %s, not %d", quantity.Of(have.Rows, "row"), want.Rows)
	case have.Content != want.Content:
		return fmt.Sprintf("its footer, or samples of its rows, have the SHA-256 %s, not %s", have.Content,
			want.Content)
	}
	return ""
}

// fingerprint is a checksum of a partition's end, by which a change of its bytes is noticed: of a Parquet file the
// footer, which is small and names everything else; of a format without a footer, the first and the last bytes.
type fingerprint [sha256.Size]byte

// edge is how many bytes at each end of a partition without a footer are in its fingerprint.
const edge = 4096

// parquetTrailer is the length of a footer's length and the magic behind it.
const parquetTrailer = 8

// takeFingerprint reads a partition's fingerprint through its reader. It allocates nothing of a size that the
// partition's bytes name.
func takeFingerprint(p *partition.Partition) (fingerprint, error) {
	sum := sha256.New()
	hash := func(from int64) error {
		_, err := io.Copy(sum, io.NewSectionReader(p, from, p.Size-from))
		return err
	}
	var err error
	switch {
	case p.Source == program.Parquet:
		var end [parquetTrailer]byte
		if _, err = p.ReadAt(end[:], p.Size-parquetTrailer); err != nil && !errors.Is(err, io.EOF) {
			break
		}
		// If this is not a footer's length any more, the trailer alone differs already.
		length := int64(binary.LittleEndian.Uint32(end[:])) + parquetTrailer
		if length > p.Size {
			length = parquetTrailer
		}
		err = hash(p.Size - length)
	case p.Size <= 2*edge:
		err = hash(0)
	default:
		if _, err = io.Copy(sum, io.NewSectionReader(p, 0, edge)); err == nil {
			err = hash(p.Size - edge)
		}
	}
	if err != nil {
		return fingerprint{}, fmt.Errorf("%s: read its end again: %w", p.Name, err)
	}
	return fingerprint(sum.Sum(nil)), nil
}

// explainFailure returns why a read of a partition failed: the partition changed, or the error that the read had.
func (d *Drive) explainFailure(ctx context.Context, p *partition.Partition, err error) error {
	if ctx.Err() != nil {
		return err
	}
	if changed := d.CheckUnchanged(p); errors.Is(changed, ErrChanged) {
		return changed
	}
	return err
}

// CheckUnchanged checks the place of a partition, its fingerprint, and whether its file was written or replaced.
// A file of a mounted file system that was moved is an error that wraps extents.ErrMoved; every other change is a
// *ChangedError.
//
// Every read of a partition that lies elsewhere demands the identity that was pinned when the partition was opened, so
// that only a read that failed for that reason is looked for.
func (d *Drive) CheckUnchanged(p *partition.Partition) error {
	if r := d.far[p]; r != nil {
		return r.Failed()
	}
	if f := d.files[p]; f != nil {
		why, err := change(f)
		if err != nil {
			return fmt.Errorf("drive %s: partition %s: %w", d.name, p.Name, err)
		}
		if why != "" {
			return &ChangedError{Drive: d.name, Partition: p.Name, Why: why}
		}
	}
	if m := d.maps[p]; m != nil {
		if err := m.Check(); err != nil {
			return err
		}
	}
	d.mu.Lock()
	want, ok := d.fingerprints[p]
	d.mu.Unlock()
	if !ok {
		return &ChangedError{Drive: d.name, Partition: p.Name, Why: "the volume holds another member of the name now"}
	}
	got, err := takeFingerprint(p)
	if err != nil {
		return fmt.Errorf("drive %s: %w", d.name, err)
	}
	if got != want {
		return &ChangedError{Drive: d.name, Partition: p.Name, Why: "its end reads differently from when it was opened"}
	}
	return nil
}
