package wire

import (
	"context"
	"errors"
	"fmt"
	"net"
	"runtime"
	"time"

	"github.com/millrace/millrace/bench/rawsocket"
	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/tcp"
)

const nqn = "nqn.2024-01.io.millrace:bench"

// rounds is how often the drive and raw TCP take turns in a cell.
const rounds = 10

// stage holds the parts that all cells are measured on: a drive, its target, and the bytes that raw TCP sends.
type stage struct {
	o      *Options
	drive  *csd.Drive
	target *tcp.Target
	serve  chan error
	at     string
	raw    []byte   // as large as the drive
	bufs   [][]byte // The initiator has one for each command outstanding.
}

func newStage(o *Options) (s *stage, err error) {
	s = &stage{o: o, serve: make(chan error, 1)}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	s.raw = make([]byte, o.DriveBytes)
	rawsocket.FillIncompressible(s.raw)
	if s.drive, err = csd.Open(csd.Options{Plain: true, Size: o.DriveBytes, LBA: csd.LBA4096, NQN: nqn,
		WrapFlash: func(f controller.Flash) controller.Flash {
			_, err = f.WriteAt(s.raw, 0)
			return f
		}}); err != nil {
		return s, err
	}
	if s.target, err = tcp.NewTarget(tcp.TargetOptions{}); err != nil {
		return s, err
	}
	if err = s.target.Add(s.drive.Subsystem()); err != nil {
		return s, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return s, err
	}
	s.at = l.Addr().String()
	go func() { s.serve <- s.target.Serve(l) }()
	return s, nil
}

func (s *stage) close() error {
	var errs []error
	if s.target != nil {
		errs = append(errs, s.target.Close())
		if s.at != "" {
			if err := <-s.serve; !errors.Is(err, tcp.ErrTargetClosed) {
				errs = append(errs, err)
			}
		}
	}
	if s.drive != nil {
		errs = append(errs, s.drive.Close())
	}
	return errors.Join(errs...)
}

// buffers returns n buffers of the given size.
func (s *stage) buffers(n, size int) [][]byte {
	for len(s.bufs) < n {
		s.bufs = append(s.bufs, nil)
	}
	list := make([][]byte, n)
	for i := range list {
		if len(s.bufs[i]) < size {
			s.bufs[i] = make([]byte, size)
			rawsocket.FillIncompressible(s.bufs[i])
		}
		list[i] = s.bufs[i][:size]
	}
	return list
}

// sum holds the totals of one side's turns.
type sum struct {
	blocks  int64
	elapsed time.Duration
	cpu     time.Duration
	allocs  uint64
}

// turn measures f, which returns how many blocks it moved.
func (s *sum) turn(f func() (int64, error)) error {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	cpu, begin := processorTime(), time.Now()
	n, err := f()
	s.elapsed += time.Since(begin)
	s.cpu += processorTime() - cpu
	runtime.ReadMemStats(&after)
	s.allocs += after.Mallocs - before.Mallocs
	s.blocks += n
	return err
}

func (s *sum) bytesPerSecond(block int) float64 {
	return float64(s.blocks) * float64(block) / s.elapsed.Seconds()
}

func (s *sum) cpuPerGB(block int) float64 {
	return s.cpu.Seconds() / (float64(s.blocks) * float64(block) / 1e9)
}

// measure lets the drive and raw TCP take turns at a cell.
func (s *stage) measure(ctx context.Context, c cell) (r Result, err error) {
	block := c.op.blockBytes()
	bufs := s.buffers(c.outstanding(), block)
	host, err := tcp.Dial(ctx, tcp.DialOptions{
		Address: s.at, Subsystem: nqn, Queues: c.connections, Depth: max(c.depth, 2), HeaderDigest: c.digests,
		DataDigest: c.digests, NoFlowControl: s.o.NoFlowControl,
	})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, host.Close()) }()
	load := newLoad(host, c, s.o.DriveBytes, bufs)
	defer load.close()
	raw, err := newRaw(c, s.raw, bufs)
	if err != nil {
		return r, fmt.Errorf("raw TCP: %w", err)
	}
	defer func() { err = errors.Join(err, raw.close()) }()

	// The first two turns fill the pools and grow the buffers before anything counts.
	slice := s.o.Time / rounds
	for range 2 {
		if _, err := load.run(ctx, slice); err != nil {
			return r, err
		}
	}
	var wire, plain sum
	for range rounds {
		if err := plain.turn(func() (int64, error) { return raw.run(ctx, slice) }); err != nil {
			return r, fmt.Errorf("raw TCP: %w", err)
		}
		if err := wire.turn(func() (int64, error) { return load.run(ctx, slice) }); err != nil {
			return r, err
		}
	}
	r = Result{
		Operation: c.op, BlockBytes: block, Depth: c.depth, Connections: c.connections, Digests: c.digests,
		Commands: wire.blocks, ElapsedSeconds: wire.elapsed.Seconds(),
		IOPS:           float64(wire.blocks) / wire.elapsed.Seconds(),
		BytesPerSecond: wire.bytesPerSecond(block), RawTCPBytesPerSecond: plain.bytesPerSecond(block),
		CPUSecondsPerGB: wire.cpuPerGB(block), RawTCPCPUSecondsPerGB: plain.cpuPerGB(block),
		CPUSecondsPerCommand: wire.cpu.Seconds() / float64(wire.blocks),
		AllocsPerCommand:     float64(wire.allocs) / float64(wire.blocks),
	}
	r.Ratio = r.BytesPerSecond / r.RawTCPBytesPerSecond
	return r, nil
}
