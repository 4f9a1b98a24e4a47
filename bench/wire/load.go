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

// load keeps a number of commands outstanding on a drive. Its goroutines wait between turns, so that starting them is not
// measured.
type load struct {
	conn   nvme.Conn
	op     Operation
	blocks uint64 // of the operation's size, on the drive
	starts []chan turn
	ended  sync.WaitGroup

	turns sync.WaitGroup // who is in a turn
	next  atomic.Uint64  // sequential operations: the next block
	mu    sync.Mutex
	err   error
	count int64
}

// turn is what a goroutine is told to do.
type turn struct {
	ctx   context.Context
	until time.Time
}

func newLoad(conn nvme.Conn, c cell, drive int64, bufs [][]byte) *load {
	l := &load{conn: conn, op: c.op, blocks: uint64(drive) / uint64(c.op.blockBytes())}
	for i, buf := range bufs {
		start := make(chan turn)
		l.starts = append(l.starts, start)
		l.ended.Add(1)
		go func() {
			defer l.ended.Done()
			seed := uint64(i)
			for t := range start {
				n, err := l.commands(t, buf, &seed)
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
	t := turn{ctx, time.Now().Add(d)}
	l.turns.Add(len(l.starts))
	for _, start := range l.starts {
		start <- t
	}
	l.turns.Wait()
	return l.count, l.err
}

// commands issues one command after another.
func (l *load) commands(t turn, buf []byte, seed *uint64) (n int64, err error) {
	per := uint64(len(buf)) / csd.LBA4096
	var cmd nvme.Command // one for all: it escapes
	for ok := true; ok; ok = time.Now().Before(t.until) {
		switch l.op {
		case RandomRead:
			*seed = *seed*6364136223846793005 + 1442695040888963407
			cmd = nvme.Read(1, (*seed>>33)%l.blocks*per, uint32(per), csd.LBA4096)
		case SequentialRead:
			cmd = nvme.Read(1, l.next.Add(1)%l.blocks*per, uint32(per), csd.LBA4096)
		case SequentialWrite:
			cmd = nvme.Write(1, l.next.Add(1)%l.blocks*per, uint32(per), csd.LBA4096, false)
		}
		if _, err := l.conn.IO(t.ctx, &cmd, buf); err != nil {
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
