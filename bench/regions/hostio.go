package regions

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
)

const (
	hostIODepth = 4       // ordinary commands at a time, half of them reads and half writes
	hostIOBytes = 4 << 10 // of a command
)

// measureHostIO measures ordinary commands alone and beside jobs, and without a limit the jobs alone, too.
func (r *Result) measureHostIO(ctx context.Context, s *stage) (err error) {
	works := make([]*work, min(s.o.Regions, usableProcessors()))
	for i := range works {
		works[i] = s.works[0]
	}
	list, err := s.newJobs(ctx, works...)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, list.closeAll()) }()
	runs := []struct{ jobs, io bool }{{false, true}, {true, true}}
	if s.share == controller.NoHostIOLimit {
		runs = append(runs, struct{ jobs, io bool }{jobs: true})
	}
	for _, run := range runs {
		var running jobs
		if run.jobs {
			running = list
		}
		line, err := s.runJobsAndHost(ctx, running, run.io)
		if err != nil {
			return err
		}
		r.HostIO = append(r.HostIO, line)
	}
	return nil
}

// runJobsAndHost runs jobs, ordinary commands, or both for a time.
func (s *stage) runJobsAndHost(ctx context.Context, list jobs, io bool) (line HostIO, err error) {
	line = HostIO{Share: s.share, Jobs: len(list)}
	s.o.Progress(fmt.Sprintf("%d jobs, host I/O %t, at most %d %% of the time", len(list), io, s.share))
	if !io {
		rates, err := list.measureRates(ctx, s.o.Time)
		line.RowsPerSecond = totalOf(rates)
		return line, err
	}
	line.Depth = hostIODepth
	h, err := s.newOrdinaryHost()
	if err != nil {
		return line, err
	}
	defer func() { err = errors.Join(err, h.conn.Close()) }()
	begin := time.Now()
	stop := h.startCommands(ctx)
	if len(list) == 0 {
		select {
		case <-time.After(s.o.Time):
		case <-ctx.Done():
			err = ctx.Err()
		}
	} else {
		var rates []float64
		rates, err = list.measureRates(ctx, s.o.Time)
		line.RowsPerSecond = totalOf(rates)
	}
	err = errors.Join(err, stop())
	line.IOPS = float64(h.reads.total+h.writes.total) / time.Since(begin).Seconds()
	line.Read, line.Write = h.reads.quantiles(), h.writes.quantiles()
	return line, err
}

// ordinaryHost is a host that reads the partitions and writes behind them.
type ordinaryHost struct {
	stage *stage
	conn  nvme.Conn
	block uint32

	mu            sync.Mutex
	reads, writes histogram
}

func (s *stage) newOrdinaryHost() (*ordinaryHost, error) {
	conn, err := s.connectHost()
	if err != nil {
		return nil, err
	}
	_, block := s.drive.Geometry()
	return &ordinaryHost{stage: s, conn: conn, block: uint32(block)}, nil
}

// startCommands sends commands until stop is called.
func (h *ordinaryHost) startCommands(ctx context.Context) (stop func() error) {
	var stops []func() error
	for n := range hostIODepth {
		stops = append(stops, h.startWorker(ctx, n))
	}
	return func() error {
		var err error
		for _, stop := range stops {
			err = errors.Join(err, stop())
		}
		return err
	}
}

// startWorker sends a command behind the other: reads, if its number is even, else writes. The histogram is merged into
// the host's in the end.
func (h *ordinaryHost) startWorker(ctx context.Context, number int) (stop func() error) {
	random := rand.New(rand.NewPCG(h.stage.o.Seed, uint64(number)))
	data, times := make([]byte, hostIOBytes), new(histogram)
	blocks := hostIOBytes / h.block
	step := func() error {
		cmd := nvme.Read(cs.NamespaceNVM, h.randomBlock(random, 0, h.stage.spare), blocks, h.block)
		if number%2 == 1 {
			cmd = nvme.Write(cs.NamespaceNVM, h.randomBlock(random, h.stage.spare, spareBytes), blocks, h.block, false)
		}
		begin := time.Now()
		_, err := h.conn.IO(ctx, &cmd, data)
		times.countTime(time.Since(begin))
		return err
	}
	end := runInBackground(step)
	return func() error {
		err := end()
		h.mu.Lock()
		defer h.mu.Unlock()
		if number%2 == 1 {
			h.writes.addTimesOf(times)
		} else {
			h.reads.addTimesOf(times)
		}
		return err
	}
}

// randomBlock returns the first block of a random command in some bytes of the flash.
func (h *ordinaryHost) randomBlock(random *rand.Rand, from, n int64) uint64 {
	at := from + random.Int64N(n/hostIOBytes)*hostIOBytes
	return uint64(at) / uint64(h.block)
}
