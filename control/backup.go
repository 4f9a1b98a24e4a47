package control

import (
	"context"
	"errors"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/guard"
	"github.com/millrace/millrace/control/store"
	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// backupTime bounds a backup: while it is read, etcd cannot use the room of records that were deleted since its
// start.
const backupTime = 10 * time.Minute

// backupPiece is the size of a message of a backup.
const backupPiece = 1 << 20

// Backup implements the service. Another backup is refused while a backup is being sent.
func (s *Server) Backup(ctx context.Context, _ *apiv1.BackupRequest,
	stream *connect.ServerStream[apiv1.BackupResponse]) error {
	select {
	case s.backingUp <- struct{}{}:
		defer func() { <-s.backingUp }()
	default:
		return connect.NewError(connect.CodeResourceExhausted,
			errors.New("a backup is being taken already: try again when it has ended"))
	}
	ctx, cancel := context.WithTimeout(ctx, backupTime)
	defer cancel()
	pieces := &pieceWriter{stream: stream}
	err := s.store.Snapshot(ctx, pieces)
	if err == nil {
		err = pieces.flush()
	}
	who := guard.Peer(ctx).String()
	if err != nil {
		s.logger.Warn("a backup was not sent whole", "bytes", pieces.sent, "by", who, "error", err)
		if errors.Is(err, store.ErrAway) {
			return connect.NewError(connect.CodeUnavailable, err)
		}
		return err
	}
	s.logger.Info("a backup was sent", "bytes", pieces.sent, "by", who)
	return nil
}

// pieceWriter sends the written bytes in pieces of one size.
type pieceWriter struct {
	stream *connect.ServerStream[apiv1.BackupResponse]
	held   []byte
	sent   int64
}

func (w *pieceWriter) Write(b []byte) (int, error) {
	for rest := b; len(rest) > 0; {
		n := min(len(rest), backupPiece-len(w.held))
		w.held = append(w.held, rest[:n]...)
		rest = rest[n:]
		if len(w.held) == backupPiece {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
	}
	return len(b), nil
}

// flush sends the bytes that are still buffered.
func (w *pieceWriter) flush() error {
	if len(w.held) == 0 {
		return nil
	}
	err := w.stream.Send(&apiv1.BackupResponse{Piece: w.held})
	w.sent += int64(len(w.held))
	w.held = w.held[:0]
	return err
}
