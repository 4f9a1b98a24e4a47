package pipeline

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/millrace/millrace/bench/cluster"
	"github.com/millrace/millrace/bench/rawsocket"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/remote"
)

// jobSpec describes a new job of the service. Jobs differ in their names alone, so that P is measured once.
func (s *stage) jobSpec(epochs uint64) *apiv1.JobSpec {
	s.jobs++
	return &apiv1.JobSpec{Name: fmt.Sprintf("turn-%d", s.jobs), Pipeline: s.document, Epochs: epochs}
}

// manyEpochs are more than any turn takes.
const manyEpochs = 1 << 20

// launcher is the route over the service to this process.
func (s *stage) launcher(ctx context.Context, t cluster.Transport) (*route, error) {
	c, err := s.clusterOf(ctx, t)
	if err != nil {
		return nil, err
	}
	r := &route{cluster: c, trainer: processors.Time, workers: 1}
	r.pass = func(ctx context.Context, a *account) error {
		return c.Take(ctx, s.jobSpec(1), remote.AttachOptions{}, func(mb *tensor.MiniBatch) (bool, error) {
			return true, a.addBatch(mb, true)
		})
	}
	r.flow = func(ctx context.Context, more func(int, int64) bool) error {
		return c.Take(ctx, s.jobSpec(manyEpochs), remote.AttachOptions{}, func(mb *tensor.MiniBatch) (bool, error) {
			return more(mb.Rows, mb.Bytes()), nil
		})
	}
	return r, nil
}

// Of the raw connections. A launcher has two requests of a split under way, if mini-batches are large.
const (
	rawConnections = 2
	rawBuffers     = 8
	rawSlice       = 50 * time.Millisecond
)

// raw is the route of connections that copy blocks. It knows how large the blocks are when another way has delivered.
func (s *stage) raw(ctx context.Context, t cluster.Transport) (*route, error) {
	c, err := s.clusterOf(ctx, t)
	if err != nil {
		return nil, err
	}
	r := &route{trainer: processors.Time, workers: 1}
	r.flow = func(ctx context.Context, more func(int, int64) bool) (err error) {
		block, rows := s.blockSize()
		connections, err := rawsocket.Connect(ctx, rawsocket.Options{
			Transport: t, Dir: c.Dir, Server: identity.Options{}, Client: identity.Options{},
			Connections: rawConnections, Block: block, Buffers: rawBuffers,
		})
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, connections.Close()) }()
		for {
			n, err := connections.Run(rawSlice)
			if err != nil || ctx.Err() != nil {
				return errors.Join(err, context.Cause(ctx))
			}
			if !more(int(n)/block*rows, n) {
				return nil
			}
		}
	}
	return r, nil
}

// defaultBlock is the size of a block if no way has delivered a frame.
const defaultBlock = 4 << 20

// blockSize returns the bytes and the rows of the mean frame that came. Without frames, a block of the default size
// stands for a mini-batch.
func (s *stage) blockSize() (bytes, rows int) {
	for _, l := range s.lines {
		if r := &l.result; r.FrameBytes > 0 {
			return int(r.FrameBytes / r.MiniBatches), int(r.Rows / r.MiniBatches)
		}
	}
	return defaultBlock, s.spec.Batch
}
