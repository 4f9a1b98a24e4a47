package partitions

import (
	"cmp"
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
)

// Receive answers PUT /v1/partitions/NAME?drive=D: the body becomes a member of the drive's volume, if it is the
// partition that the headers describe.
func (s *Store) Receive(w http.ResponseWriter, r *http.Request) error {
	name := strings.TrimPrefix(r.URL.Path, apiv1.PartitionPath)
	drive := r.URL.Query().Get("drive")
	description := r.Header.Get(apiv1.PartitionHeader)
	if drive == "" || name == "" || len(description) > apiv1.MaxPartitionHeader {
		return fmt.Errorf("%w: want PUT %sNAME?drive=DRIVE with a description of at most %d bytes", ErrRequest,
			apiv1.PartitionPath, apiv1.MaxPartitionHeader)
	}
	var want dataset.Partition
	if err := json.Unmarshal([]byte(description), &want); err != nil {
		return fmt.Errorf("%w: %s: %w", ErrRequest, apiv1.PartitionHeader, err)
	}
	runs, err := partition.ParseRuns(r.Header.Get(apiv1.DigestRunsHeader), want.Bytes)
	if err != nil {
		return fmt.Errorf("%w: %s: %w", ErrRequest, apiv1.DigestRunsHeader, err)
	}
	sum, err := hex.DecodeString(r.Header.Get(apiv1.DigestHeader))
	if err != nil || len(sum) != len(dataset.Digest{}) {
		return fmt.Errorf("%w: %s: want the SHA-256 of the body in hex", ErrRequest, apiv1.DigestHeader)
	}
	if want.Name != name || r.ContentLength != want.Bytes || want.Bytes <= 0 {
		return fmt.Errorf("%w: the path names %.80q and the body has %d bytes; the description says %.80q and %d",
			ErrRequest, name, r.ContentLength, want.Name, want.Bytes)
	}
	d, v, err := s.volume(drive)
	if err != nil {
		return err
	}
	// The time grows with the partition, but it ends.
	deadline := time.Now().Add(s.o.WriteTime + time.Duration(want.Bytes>>20)*time.Second)
	_ = http.NewResponseController(w).SetReadDeadline(deadline)
	if p := partitionOf(d, want.Name); p != nil {
		if why := difference(p, want); why != "" {
			return fmt.Errorf("%w: drive %s holds another partition of the name: %s", ErrCopy, drive, why)
		}
		// The digest covers samples, so two partitions of the same digest may have different rows.
		have, err := s.Verify(r.Context(), drive, want.Name, true)
		if err != nil {
			return err
		}
		if kept := cmp.Or(string(have.GetKeptSha256()), string(have.GetSha256())); kept != string(sum) {
			return fmt.Errorf("%w: drive %s holds another partition of the name: its bytes have SHA-256 %x, those "+
				"sent %x", ErrCopy, drive, kept, sum)
		}
		w.WriteHeader(http.StatusOK) // it was put before
		return nil
	}
	in := newCheckedReader(r.Body, want, runs, func() string { return hex.EncodeToString(sum) })
	if _, err := s.store(r.Context(), d, v, want, in); err != nil {
		return err
	}
	s.o.Log.Info("partition put", "drive", drive, "partition", want.Name, "bytes", want.Bytes)
	s.o.Changed()
	w.WriteHeader(http.StatusCreated)
	return nil
}

// Verify reads a partition whole, one at a time. It returns the SHA-256 of its bytes, and the SHA-256 that was kept
// when the partition was uploaded. With keptOnly it reads nothing if a checksum was kept.
func (s *Store) Verify(ctx context.Context, drive, partition string, keptOnly bool) (*apiv1.VerifyResponse, error) {
	d, err := s.o.Drive(drive)
	if err != nil {
		return nil, err
	}
	p := partitionOf(d, partition)
	if p == nil {
		return nil, fmt.Errorf("drive %s: partition %.80q: %w", drive, partition, errNoPartition)
	}
	kept := s.sums.get(d.Identity(), partition)
	if keptOnly && kept != nil {
		return &apiv1.VerifyResponse{Bytes: p.Size, KeptSha256: kept}, nil
	}
	select { // one at a time: the drive has other work
	case s.verifying <- struct{}{}:
		defer func() { <-s.verifying }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	sum, err := hashAll(ctx, p, p.Size)
	if err != nil {
		return nil, fmt.Errorf("drive %s: read %s: %w", drive, partition, err)
	}
	if kept == nil {
		s.sums.put(d.Identity(), partition, sum)
	}
	return &apiv1.VerifyResponse{Bytes: p.Size, Sha256: sum, KeptSha256: kept}, nil
}
