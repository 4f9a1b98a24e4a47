package trainmgr

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"
	"sync"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// drives is the Source over a storage side in this process: every drive's splits, by the schedule.
type drives struct {
	storage api.Storage
	o       Options
	data    *api.Dataset
	digest  dataset.Digest
	alloc   allocation.Allocation
	first   *Epoch // what Epoch returns first
	epoch   uint64 // what it returned last
}

// Epoch returns the next epoch's plan.
func (s *drives) Epoch(context.Context) (*Epoch, error) {
	if e := s.first; e != nil {
		s.first, s.epoch = nil, e.Number
		return e, nil
	}
	if s.epoch+1 >= uint64(s.o.Epochs) {
		return nil, io.EOF
	}
	plan, err := dataset.NewPlan(s.data.Manifest, s.o.plan(s.epoch+1))
	if err != nil {
		return nil, err
	}
	s.epoch++
	return &Epoch{Number: s.epoch, Plan: plan, Progress: dataset.NewProgress(s.digest, s.epoch, plan.MiniBatches())}, nil
}

// Acknowledged has nobody to tell: the token is all there is.
func (s *drives) Acknowledged(_, _ uint64) error { return nil }

func (s *drives) Allocation() allocation.Allocation { return s.alloc }

// Report tells what the drives did, and when they are more than the machine has cores for.
func (s *drives) Report(ctx context.Context) ([]api.DriveReport, []string, error) {
	list, err := s.storage.Report(ctx, s.digest)
	threads := 0
	for _, d := range s.data.Drives {
		threads = max(threads, d.Threads)
	}
	var notes []string
	if n := s.alloc.Drives * threads; n > runtime.NumCPU() {
		notes = append(notes, fmt.Sprintf("%d drives x %d threads on %d cores: software drives share them, and P does not add up", s.alloc.Drives, threads, runtime.NumCPU()))
	}
	return list, notes, err
}

// Close forgets the job on the storage side and frees what it held there.
func (s *drives) Close() error { return s.storage.Finish(context.Background(), s.digest) }

// Begin makes a schedule of what the epoch still owes.
func (s *drives) Begin(_ context.Context, d *Delivery) (Pieces, error) {
	streams := make([]int, len(s.data.Drives))
	holders := make([][]int, len(s.data.Manifest.Partitions))
	for i, drive := range s.data.Drives {
		streams[i] = drive.Streams
		for _, p := range drive.Partitions {
			holders[p] = append(holders[p], i)
		}
	}
	epoch := d.Epoch()
	h := &scheduled{source: s, changed: make(chan struct{}), schedule: allocation.NewSchedule(s.o.Order == dataset.Deterministic, s.alloc.Drives, streams)}
	for split := range epoch.Plan.All() {
		end := split.FirstNumber + uint64(split.MiniBatches)
		from, ok := d.before.Pending(split.FirstNumber)
		if !ok || from >= end {
			continue
		}
		h.schedule.Add(split.Rows, holders[split.Partition])
		h.orders = append(h.orders, api.SplitRequest{Job: s.digest, Epoch: epoch.Number, Split: split, From: int(from - split.FirstNumber)})
	}
	return h, nil
}

// scheduled hands out what the schedule says.
type scheduled struct {
	source *drives
	orders []api.SplitRequest // by the schedule's index

	mu       sync.Mutex
	schedule *allocation.Schedule
	changed  chan struct{} // closed and renewed when a piece ends
}

// Next waits until the schedule starts a split.
func (h *scheduled) Next(ctx context.Context) (Piece, error) {
	for {
		h.mu.Lock()
		split, drive, ok := h.schedule.Start()
		left, wait := h.schedule.Pending() > 0, h.changed
		h.mu.Unlock()
		if ok {
			order := h.orders[split]
			order.Drive = h.source.data.Drives[drive].Name
			return &drivePiece{scheduled: h, split: split, order: order}, nil
		}
		if !left {
			return nil, io.EOF
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

func (h *scheduled) Close() error { return nil }

// drivePiece is a split, or the rest of one, on a drive of this process.
type drivePiece struct {
	*scheduled
	split int // the schedule's
	order api.SplitRequest
}

func (p *drivePiece) Numbers() dataset.Run {
	s := p.order.Split
	return dataset.Run{From: s.FirstNumber + uint64(p.order.From), To: s.FirstNumber + uint64(s.MiniBatches)}
}

func (p *drivePiece) Drive() string { return p.order.Drive }

func (p *drivePiece) Open(ctx context.Context) (api.Stream, error) {
	return p.source.storage.Open(ctx, p.order)
}

// End tells the schedule. Here whatever fails ends the job: nobody else could do better.
func (p *drivePiece) End(err error) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.schedule.End(p.split)
	close(p.changed)
	p.changed = make(chan struct{})
	return err
}

func (p *drivePiece) String() string {
	s := p.order.Split
	return fmt.Sprintf("drive %s: split %d (partition %s, rows %d to %d)", p.order.Drive, s.Place, p.partition(), s.First, s.First+s.Rows-1)
}

func (p *drivePiece) partition() string {
	return p.source.data.Manifest.Partitions[p.order.Split.Partition].Name
}

// Wrap says where an error came about, as far as it does not say so itself: most name their partition and the place in
// it. Where the drive is files of this machine, drive and split tell a user nothing.
func (p *drivePiece) Wrap(err error) error {
	named := strings.Contains(err.Error(), p.partition())
	switch files := p.order.Drive == api.FilesDrive; {
	case files && named:
		return err
	case files:
		return fmt.Errorf("%s: %w", p.partition(), err)
	case named:
		return fmt.Errorf("drive %s: split %d: %w", p.order.Drive, p.order.Split.Place, err)
	}
	return fmt.Errorf("%v: %w", p, err)
}
