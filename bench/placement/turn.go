package placement

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/tensor"
)

// count makes every mini-batch once, and counts bytes. Footers, which were read before, and page indexes count too.
func (s *stage) count(ctx context.Context, r *Result) error {
	before, err := s.counters(ctx)
	if err != nil {
		return err
	}
	sum := sha256.New()
	t, err := s.turn(ctx, sum)
	if err != nil {
		return err
	}
	after, err := s.counters(ctx)
	if err != nil {
		return err
	}
	r.Rows, r.MiniBatches, r.TensorBytes = t.rows, t.miniBatches, t.tensorBytes
	r.Digest = hex.EncodeToString(sum.Sum(nil))
	r.Links = Links{FlashToNode: s.flashRead.Load(), NodeToWorker: s.sent(), WorkerToTrainer: t.frameBytes}
	stored := int64(after.HostToDRAMBytes - before.HostToDRAMBytes)
	fetched := int64(after.DRAMToHostBytes - before.DRAMToHostBytes)
	switch s.mode {
	case InStorage:
		r.Links.FlashToDrive = int64(after.FlashToDRAMBytes - before.FlashToDRAMBytes +
			after.FlashLentBytes - before.FlashLentBytes)
		r.Links.DriveToNode = fetched
	case Card:
		r.Links.HostToCard, r.Links.CardToHost = stored, fetched
	}
	r.NetworkBytes = r.Links.NodeToWorker + r.Links.HostToCard + r.Links.CardToHost + r.Links.WorkerToTrainer
	return nil
}

// counters reads the counters of the drive that computes; zeros where none does.
func (s *stage) counters(ctx context.Context) (*api.Counters, error) {
	if dev := s.computer(); dev != nil {
		return host.ReadCounters(ctx, dev)
	}
	return new(api.Counters), nil
}

// sent returns the bytes that the storage node sent over HTTP.
func (s *stage) sent() int64 {
	if s.web == nil {
		return 0
	}
	return s.web.sent.Load()
}

// time makes all mini-batches again until the time has passed.
func (s *stage) time(ctx context.Context, r *Result) error {
	stats, begin, used, engine := s.processor.Stats(), time.Now(), processorTime(), s.engineTime.used.Load()
	var rows int64
	for first := true; first || time.Since(begin) < s.o.Time; first = false {
		t, err := s.turn(ctx, nil)
		if err != nil {
			return err
		}
		rows += t.rows
	}
	elapsed := time.Since(begin).Seconds()
	r.CPUSeconds = (processorTime() - used).Seconds()
	r.EngineSeconds = float64(s.engineTime.used.Load()-engine) / 1e9
	r.RowsPerSecond = float64(rows) / elapsed
	if hosts := r.CPUSeconds - r.EngineSeconds; hosts > 0 {
		r.RowsPerCPUSecond = float64(rows) / hosts
	}
	r.Steps = steps(s.processor.Stats().Sub(stats))
	return nil
}

// steps returns the times of one mini-batch.
func steps(s processor.Stats) Steps {
	each := func(d time.Duration) float64 { return d.Seconds() / float64(max(s.Fragments, 1)) }
	return Steps{Move: each(s.Move), Decode: each(s.Decode), Transform: each(s.Transform), Fetch: each(s.Fetch)}
}

// tally counts the mini-batches that a trainer took in one turn.
type tally struct{ rows, miniBatches, tensorBytes, frameBytes int64 }

// turn has the trainer take every mini-batch once. sum, if not nil, gets the frames of all.
func (s *stage) turn(ctx context.Context, sum hash.Hash) (t tally, err error) {
	var w *way
	if s.mode != Trainer {
		if w, err = newWay(); err != nil {
			return t, err
		}
		defer func() { err = errors.Join(err, w.close()) }()
	}
	for _, p := range s.partitions {
		stream, err := s.processor.Open(ctx, processor.Run{Partition: p, Rows: p.Rows, Batch: s.batch})
		if err != nil {
			return t, err
		}
		if err := errors.Join(s.takeAll(ctx, stream, w, &t, sum), stream.Close()); err != nil {
			return t, err
		}
	}
	return t, nil
}

// takeAll takes the mini-batches of a stream: over the way to the trainer, or in this process if there is no way.
func (s *stage) takeAll(ctx context.Context, stream processor.Stream, w *way, t *tally, sum hash.Hash) error {
	for {
		mb, err := stream.Next(ctx)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		mb.Name.Number = uint64(t.miniBatches)
		t.rows += int64(mb.Rows)
		t.miniBatches++
		t.tensorBytes += mb.Bytes()
		frame, err := s.deliver(ctx, mb, w, sum != nil)
		mb.Release()
		if err != nil {
			return err
		}
		if w != nil {
			t.frameBytes += int64(len(frame))
		}
		if sum != nil {
			_, _ = sum.Write(frame) // a hash takes all
		}
	}
}

// deliver brings a mini-batch to the trainer, and returns its frame, or nil if the trainer made the mini-batch and
// no caller wants the frame.
func (s *stage) deliver(ctx context.Context, mb *tensor.MiniBatch, w *way, wanted bool) ([]byte, error) {
	if w == nil {
		if !wanted {
			return nil, nil
		}
		return tensor.AppendFrame(nil, mb)
	}
	frame, err := w.fetch(ctx, mb)
	if err != nil {
		return nil, err
	}
	got, err := tensor.ReadFrame(frame)
	if err != nil {
		return nil, err
	}
	if got.Name != mb.Name {
		return nil, fmt.Errorf("the trainer asked for mini-batch %v and got %v", mb.Name, got.Name)
	}
	return frame, nil
}
