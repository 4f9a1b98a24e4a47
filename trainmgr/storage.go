package trainmgr

import (
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"strings"
	"sync"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// storageSource is the Source over the drives of an api.Storage. An allocation.Schedule decides which drive makes which
// split.
type storageSource struct {
	storage      api.Storage
	options      Options
	data         *api.Dataset
	digest       dataset.Digest
	canonical    []byte  // form of the pipeline
	passing      []int64 // how many rows of each partition pass the pipeline's filter; nil: all
	schema       *tensor.Schema
	allocated    allocation.Allocation
	firstEpoch   *Epoch        // the epoch that the first call of Epoch returns; nil after it
	epoch        uint64        // number of the epoch that Epoch returned last
	splitSharing *splitSharing // with the trainer's own CPUs; nil if the drives make every split
	scaling      *scaling      // scaling changes the number of drives; nil means that the number is fixed.
	short        bool          // P of a drive is that of its first mini-batches: the job is too short to measure it
	// takenByOthers are the drives that others had when their P was to be measured.
	takenByOthers []string
}

// Epoch implements Source.
func (s *storageSource) Epoch(context.Context) (*Epoch, error) {
	if e := s.firstEpoch; e != nil {
		s.firstEpoch, s.epoch = nil, e.Number
		return e, nil
	}
	if s.epoch+1 >= uint64(s.options.Epochs) {
		return nil, io.EOF
	}
	plan, err := s.planOf(s.epoch + 1)
	if err != nil {
		return nil, err
	}
	leftOut, err := s.options.Share.LeftOut(plan)
	if err != nil {
		return nil, err
	}
	s.epoch++
	return &Epoch{Number: s.epoch, Plan: plan, Owned: s.options.ownedNumbers(plan), LeftOutRows: leftOut,
		Progress: dataset.NewProgress(s.digest, s.epoch, plan.MiniBatches())}, nil
}

// Acknowledged implements Source. It does nothing, because the job's token alone keeps the acknowledged numbers.
func (s *storageSource) Acknowledged(_, _ uint64) error { return nil }

// Allocation implements Source.
func (s *storageSource) Allocation() allocation.Allocation { return s.allocated }

// Report implements Source. It adds a note if the drives have more threads than the machine has cores.
func (s *storageSource) Report(ctx context.Context) ([]api.DriveReport, []string, error) {
	reports, err := s.storage.Report(ctx, s.digest)
	threads := 0
	for _, drive := range s.data.Drives {
		threads = max(threads, drive.Threads)
	}
	var notes []string
	if n := s.allocated.Drives * threads; n > runtime.NumCPU() {
		notes = append(notes, fmt.Sprintf(
			"%d drives x %d threads on %d cores: software drives share them, and P does not add up",
			s.allocated.Drives, threads, runtime.NumCPU()))
	}
	return reports, notes, err
}

// Close implements Source. The storage side forgets the job and frees its resources.
func (s *storageSource) Close() error { return s.storage.Finish(context.Background(), s.digest) }

// Begin implements Source. It makes a schedule of the splits that the epoch still owes.
func (s *storageSource) Begin(ctx context.Context, epoch *Epoch, delivery Delivery) (Pieces, error) {
	streams := make([]int, len(s.data.Drives))
	holders := make([][]int, len(s.data.Manifest.Partitions))
	for i, drive := range s.data.Drives {
		streams[i] = drive.Streams
		for _, p := range drive.Partitions {
			holders[p] = append(holders[p], i)
		}
	}
	planOrder := s.options.Order == dataset.Deterministic
	pieces := &storagePieces{source: s}
	if s.splitSharing != nil {
		pieces.schedule = s.splitSharing.newSchedule(planOrder, s.data.Drives)
	} else {
		pieces.schedule = allocation.NewSchedule(planOrder, s.allocated.Drives, streams)
	}
	pieces.schedule.LimitRuns(s.maxRuns())
	for split := range epoch.Plan.All() {
		end := split.End()
		from, ok := delivery.Pending(split.FirstFragment)
		if !ok || from >= end {
			continue
		}
		if len(epoch.Owned) > 0 {
			end = min(end, epoch.Plan.FragmentsOf(epoch.Owned[0]).To)
		}
		pieces.schedule.Add(split.Rows, holders[split.Partition])
		pieces.requests = append(pieces.requests, api.SplitRequest{
			Job: s.digest, Epoch: epoch.Number, Split: split, From: int(from - split.FirstFragment),
		})
		pieces.ends = append(pieces.ends, end)
	}
	if s.splitSharing != nil {
		return s.splitSharing.begin(ctx, pieces, delivery), nil
	}
	if s.scaling != nil {
		return s.scaling.begin(pieces, delivery), nil
	}
	return pieces, nil
}

// streamRuns is how many runs of started splits there may be for each stream of the drives, if mini-batches are joined
// from several splits: fragments at the ends of a run wait for their partners. With four, a drive whose splits come
// anywhere in the sequence seldom waits for its turn.
const streamRuns = 4

// maxRuns returns how many runs of started splits there may be; 0: any number, since no mini-batch is joined.
func (s *storageSource) maxRuns() (runs int) {
	if s.options.Boundary == dataset.BoundaryPartition {
		return 0
	}
	for _, drive := range s.data.Drives {
		runs += streamRuns * max(drive.Streams, 1)
	}
	return runs
}

// storagePieces hands out the splits that the schedule starts.
type storagePieces struct {
	source   *storageSource
	requests []api.SplitRequest // by the schedule's index of the split, without the drive
	ends     []uint64           // by the same index: the fragment at which the rank's part of the split ends

	mu       sync.Mutex
	schedule *allocation.Schedule
	changed  wait.Broadcast // It wakes Next when a piece ends.
}

// Next implements Pieces. It waits until the schedule starts a split.
func (s *storagePieces) Next(ctx context.Context) (Piece, error) {
	for {
		s.mu.Lock()
		split, drive, ok := s.schedule.Start()
		pending, changed := s.schedule.Pending(), s.changed.Changed()
		s.mu.Unlock()
		if ok {
			return s.newPiece(split, s.source.data.Drives[drive].Name), nil
		}
		if pending == 0 {
			return nil, io.EOF
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// newPiece returns the piece of a split on a drive.
func (s *storagePieces) newPiece(split int, drive string) *storagePiece {
	request := s.requests[split]
	request.Drive = drive
	return &storagePiece{pieces: s, split: split, request: request, end: s.ends[split]}
}

// Close implements Pieces.
func (s *storagePieces) Close() error { return nil }

// storagePiece is a split, or the rest of one, on a drive.
type storagePiece struct {
	pieces  *storagePieces
	split   int // the schedule's index of the split
	request api.SplitRequest
	end     uint64 // the fragment at which the piece ends: the split's end, or that of the rank's share inside it
}

// Numbers implements Piece.
func (p *storagePiece) Numbers() dataset.Range {
	split := p.request.Split
	return dataset.Range{From: split.FirstFragment + uint64(p.request.From), To: p.end}
}

// Drive implements Piece.
func (p *storagePiece) Drive() string { return p.request.Drive }

// Open implements Piece.
func (p *storagePiece) Open(ctx context.Context) (api.Stream, error) { return p.openShared(ctx, nil) }

// openShared opens the stream of a piece of a job that divides its splits between two sides; shared is nil in others.
func (p *storagePiece) openShared(ctx context.Context, shared *sharedPiece) (api.Stream, error) {
	stream, err := p.pieces.source.storage.Open(ctx, p.request)
	if err != nil {
		return nil, err
	}
	s := &pieceStream{Stream: stream, shared: shared, left: math.MaxUint64}
	if split := p.request.Split; p.end < split.FirstFragment+uint64(split.Fragments) {
		s.left = p.end - p.Numbers().From
	}
	return s, nil
}

// End implements Piece. Every error ends the job, since no other drive of this process could do better.
func (p *storagePiece) End(err error) error {
	p.pieces.mu.Lock()
	defer p.pieces.mu.Unlock()
	p.pieces.schedule.End(p.split)
	p.pieces.changed.Broadcast()
	return err
}

// String implements Piece.
func (p *storagePiece) String() string {
	split := p.request.Split
	return fmt.Sprintf("drive %s: split %d (partition %s, rows %d to %d)",
		p.request.Drive, split.Position, p.partition(), split.First, split.First+split.Rows-1)
}

func (p *storagePiece) partition() string {
	return p.pieces.source.data.Manifest.Partitions[p.request.Split.Partition].Name
}

// Wrap implements Piece. Most errors name their partition already. If the drive is made of files of this machine, drive
// and split mean nothing to the user, and Wrap leaves them out.
func (p *storagePiece) Wrap(err error) error {
	named := strings.Contains(err.Error(), p.partition())
	switch files := p.request.Drive == api.FilesDrive; {
	case files && named:
		return err
	case files:
		return fmt.Errorf("%s: %w", p.partition(), err)
	case named:
		return fmt.Errorf("drive %s: split %d: %w", p.request.Drive, p.request.Split.Position, err)
	}
	return fmt.Errorf("%v: %w", p, err)
}
