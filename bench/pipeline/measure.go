package pipeline

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/internal/steadyrate"
)

// turn is what was measured in one turn of a way.
type turn struct {
	steadyrate.Rate
	bytes                 int64
	trainer, node, member time.Duration // processor time
}

// measure lets every way deliver all mini-batches once, and lets the ways take turns then.
func (s *stage) measure(ctx context.Context) ([]Result, error) {
	var before *line
	for _, l := range s.lines {
		if l.route.pass == nil {
			continue
		}
		s.o.Progress(fmt.Sprintf("%s: %s: every mini-batch once", s.model, l.way))
		if err := s.once(ctx, l); err != nil {
			return nil, fmt.Errorf("%s: %w", l.way, err)
		}
		if before != nil && before.result.Digest != l.result.Digest {
			return nil, fmt.Errorf("%s: %w: %s delivers %s, %s %s", l.way, ErrDiffers, before.way, before.result.Digest,
				l.way, l.result.Digest)
		}
		before = l
	}
	for round := range s.o.Rounds {
		for _, l := range s.lines {
			s.o.Progress(fmt.Sprintf("%s: %s: round %d of %d", s.model, l.way, round+1, s.o.Rounds))
			t, err := s.turn(ctx, l.route)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", l.way, err)
			}
			l.turns = append(l.turns, t)
		}
	}
	return s.results(), nil
}

// sentPatience is how long the nodes' counters may follow the trainer.
const sentPatience = time.Minute

// once has a way deliver every mini-batch once, and checks that it did.
func (s *stage) once(ctx context.Context, l *line) error {
	sent, err := s.sentBytes(ctx, l.route)
	if err != nil {
		return err
	}
	var a account
	if err := l.route.pass(ctx, &a); err != nil {
		return err
	}
	if err := a.check(s.miniBatches(), s.rows); err != nil {
		return err
	}
	r := &l.result
	r.Rows, r.MiniBatches, r.FrameBytes, r.Digest = a.rows, int64(len(a.batches)), a.frameBytes, a.digest()
	for begin := time.Now(); ; {
		now, err := s.sentBytes(ctx, l.route)
		if err != nil {
			return err
		}
		if r.SentBytes = now - sent; r.SentBytes == r.FrameBytes {
			return nil
		}
		if r.SentBytes > r.FrameBytes || time.Since(begin) > sentPatience {
			return fmt.Errorf("%w: the node counted %d bytes of frames, %d came", ErrDiffers, r.SentBytes, r.FrameBytes)
		}
	}
}

// miniBatches returns how many mini-batches the data makes: a partition's last one may have fewer rows than the others.
func (s *stage) miniBatches() (n uint64) {
	for _, f := range s.files {
		n += uint64((f.Rows + int64(s.spec.Batch) - 1) / int64(s.spec.Batch))
	}
	return n
}

// sentBytes returns the bytes of frames that the route's nodes have written so far.
func (s *stage) sentBytes(ctx context.Context, r *route) (sum int64, err error) {
	if r.cluster == nil {
		return 0, nil
	}
	for _, n := range r.cluster.Nodes {
		sent, err := n.SentBytes(ctx)
		if err != nil {
			return 0, err
		}
		sum += sent
	}
	return sum, nil
}

// turn measures a way once. The clock starts with the first mini-batch.
func (s *stage) turn(ctx context.Context, r *route) (t turn, err error) {
	if r.cluster != nil { // the turn before may have left work behind
		if err := r.cluster.AwaitIdle(ctx); err != nil {
			return t, err
		}
	}
	var (
		meter *steadyrate.Sampler
		begin time.Time
		bytes int64
	)
	counters := func() []int64 {
		node, member := time.Duration(0), time.Duration(0)
		if r.cluster != nil {
			node, member = r.cluster.NodeTime(), r.cluster.Member.ProcessorTime()
		}
		return []int64{bytes, int64(r.trainer()), int64(node), int64(member)}
	}
	err = r.flow(ctx, func(rows int, n int64) bool {
		if meter == nil {
			begin = time.Now()
			meter = steadyrate.NewSampler(steadyrate.New(s.o.Time/time.Duration(s.o.Rounds), r.workers), counters)
			return true
		}
		bytes += n
		return meter.Add(time.Since(begin), int64(rows))
	})
	if err != nil {
		return t, err
	}
	if meter == nil || meter.Rate().Count == 0 {
		return t, fmt.Errorf("%w: nothing was delivered", ErrDiffers)
	}
	g := meter.Growth()
	return turn{Rate: meter.Rate(), bytes: g[0], trainer: time.Duration(g[1]), node: time.Duration(g[2]),
		member: time.Duration(g[3])}, nil
}

// results sums the turns of every way.
func (s *stage) results() []Result {
	var drive float64
	list := make([]Result, 0, len(s.lines))
	for _, l := range s.lines {
		r := l.result
		r.setRates(l.turns)
		if l.way == Drive {
			drive = r.RowsPerSecond
		}
		list = append(list, r)
	}
	if drive > 0 {
		for i := range list {
			list[i].DriveShare = list[i].RowsPerSecond / drive
		}
	}
	return list
}

// setRates sets what follows from the turns.
func (r *Result) setRates(turns []turn) {
	var sum turn
	slowest, fastest := turns[0].PerSecond, turns[0].PerSecond
	r.Settled = true
	for _, t := range turns {
		sum.Count += t.Count
		sum.Elapsed += t.Elapsed
		sum.bytes += t.bytes
		sum.trainer += t.trainer
		sum.node += t.node
		sum.member += t.member
		slowest, fastest = min(slowest, t.PerSecond), max(fastest, t.PerSecond)
		r.Settled = r.Settled && t.Settled
	}
	seconds, million := sum.Elapsed.Seconds(), float64(sum.Count)/1e6
	r.RowsPerSecond, r.BytesPerSecond = float64(sum.Count)/seconds, float64(sum.bytes)/seconds
	r.RoundSpread = (fastest - slowest) / 2 / r.RowsPerSecond
	r.TrainerCPU, r.NodeCPU = sum.trainer.Seconds()/million, sum.node.Seconds()/million
	r.ControlCPU = sum.member.Seconds() / million
}
