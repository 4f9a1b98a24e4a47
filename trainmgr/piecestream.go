package trainmgr

import (
	"context"
	"io"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/offload"
)

// pieceStream is the stream of a piece. It ends before the end of the split if another rank owns the rest. If the job
// divides its splits between two sides, the stream counts the rows and the time of its side, and waits for room in the
// input queue for each fragment; the wait ends when the piece is revoked.
type pieceStream struct {
	api.Stream
	left    uint64       // fragments of the split that the rank still owns
	shared  *sharedPiece // nil: the drives make every split
	release func()       // gives up the room of the fragment that Next returned last; nil if Next reserved none
}

// Next implements api.Stream. The mini-batch that Next returned before is in the input queue.
func (s *pieceStream) Next(ctx context.Context) (mb *tensor.MiniBatch, err error) {
	s.releaseRoom()
	switch {
	case s.left == 0:
		return nil, io.EOF
	case s.shared == nil:
		mb, err = s.Stream.Next(ctx)
	default:
		mb, err = s.makeMetered(ctx)
	}
	if err != nil {
		return nil, err
	}
	s.left--
	if s.shared == nil {
		return mb, nil
	}
	split := s.shared.request.Split
	delivery, number := s.shared.shared.delivery, split.FirstFragment+(mb.Name.Number-split.FirstBatch)
	if due, ok := delivery.Pending(number); !ok || due != number {
		return mb, nil // another stream has brought the fragment already
	}
	if s.release, err = delivery.Reserve(s.shared.ctx, number, mb.Bytes()); err != nil {
		mb.Release()
		return nil, err
	}
	return mb, nil
}

// makeMetered makes the next mini-batch and counts it. On the local side the pacer limits the CPU time.
func (s *pieceStream) makeMetered(ctx context.Context) (mb *tensor.MiniBatch, err error) {
	sharing := s.shared.shared.splitSharing
	next := func() error {
		meter := &sharing.meters[s.shared.side]
		meter.Enter()
		mb, err = s.Stream.Next(ctx)
		rows := 0
		if mb != nil {
			rows = mb.Rows
		}
		meter.Leave(rows)
		return err
	}
	if s.shared.side == offload.Remote {
		err = next()
		return mb, err
	}
	err = sharing.pacer.Run(ctx, sharing.cpuOfMiniBatch, next)
	return mb, err
}

// Close implements api.Stream.
func (s *pieceStream) Close() error {
	s.releaseRoom()
	return s.Stream.Close()
}

func (s *pieceStream) releaseRoom() {
	if s.release != nil {
		s.release()
		s.release = nil
	}
}
