package wire

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/nvme"
)

// load keeps a number of commands outstanding on a drive. Its goroutines wait between turns, so that starting them is
// not measured.
type load struct {
	conn   nvme.Conn
	op     Operation
	blocks uint64 // The drive has this number of blocks of the operation's size.
	starts []chan turn
	ended  sync.WaitGroup

	turns sync.WaitGroup // the goroutines of a turn
	next  atomic.Uint64  // sequential operations: the next block
	mu    sync.Mutex
	err   error
	count int64
}

// turn is the task of a goroutine. A timer ends the turn, because reading the clock for each command would add to
// the measurement.
type turn struct {
	ctx  context.Context
	over *atomic.Bool
}

func newLoad(conn nvme.Conn, c cell, drive int64, bufs [][]byte) *load {
	l := &load{conn: conn, op: c.op, blocks: uint64(drive) / uint64(c.op.blockBytes())}
	for i, buf := range bufs {
		start := make(chan turn)
		l.starts = append(l.starts, start)
		l.ended.Add(1)
		go func() {
			defer l.ended.Done()
			w := worker{l: l, buf: buf, seed: uint64(i)}
			for t := range start {
				n, err := w.commands(t)
				l.mu.Lock()
				l.count += n
				l.err = errors.Join(l.err, err)
				l.mu.Unlock()
				l.turns.Done()
			}
		}()
	}
	return l
}

// run issues commands for a while, at least one for each buffer, and returns how many.
func (l *load) run(ctx context.Context, d time.Duration) (int64, error) {
	l.count, l.err = 0, nil
	t := turn{ctx, new(atomic.Bool)}
	defer time.AfterFunc(d, func() { t.over.Store(true) }).Stop()
	l.turns.Add(len(l.starts))
	for _, start := range l.starts {
		start <- t
	}
	l.turns.Wait()
	return l.count, l.err
}

// worker issues one command after another.
type worker struct {
	l    *load
	buf  []byte
	seed uint64
	cmd  nvme.Command // here, as a variable would escape in every turn
}

// commands issues commands until the turn ends, at least one, and returns how many.
func (w *worker) commands(t turn) (n int64, err error) {
	l, per := w.l, uint64(len(w.buf))/csd.LBA4096
	for ok := true; ok; ok = !t.over.Load() {
		switch l.op {
		case RandomRead:
			w.seed = w.seed*6364136223846793005 + 1442695040888963407
			w.cmd = nvme.Read(1, (w.seed>>33)%l.blocks*per, uint32(per), csd.LBA4096)
		case SequentialRead:
			w.cmd = nvme.Read(1, l.next.Add(1)%l.blocks*per, uint32(per), csd.LBA4096)
		case SequentialWrite:
			w.cmd = nvme.Write(1, l.next.Add(1)%l.blocks*per, uint32(per), csd.LBA4096, false)
		}
		if _, err := l.conn.IO(t.ctx, &w.cmd, w.buf); err != nil {
			return n, err
		}
		n++
	}
	return n, nil
}

func (l *load) close() {
	for _, start := range l.starts {
		close(start)
	}
	l.ended.Wait()
}
