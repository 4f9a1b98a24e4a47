package remote

import (
	"context"
	"errors"
	"fmt"
	"io"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
)

// backupStream is the pieces of a backup.
type backupStream = connect.ServerStreamForClient[apiv1.BackupResponse]

// Backup writes everything that the control plane keeps to w, in etcd's snapshot format. The format ends with a SHA-256
// of the rest, which the caller compares. Backup returns how many bytes came. After an error these bytes are no backup.
func (c *Client) Backup(ctx context.Context, w io.Writer) (bytes int64, err error) {
	stream, err := call(ctx, c, 0, func(ctx context.Context, m controlClient) (*backupStream, error) {
		s, err := m.Backup(ctx, &apiv1.BackupRequest{})
		if err != nil {
			return nil, err
		}
		if !s.Receive() { // an error of the call shows with the first message
			return nil, errors.Join(s.Err(), s.Close())
		}
		return s, nil
	})
	if err != nil {
		return 0, fmt.Errorf("backup: %w", err)
	}
	if stream == nil {
		return 0, errors.New("backup: the control plane sent nothing: try again")
	}
	defer func() { err = errors.Join(err, stream.Close()) }()
	for more := true; more; more = stream.Receive() {
		n, err := w.Write(stream.Msg().GetPiece())
		bytes += int64(n)
		if err != nil {
			return bytes, fmt.Errorf("backup: %w", err)
		}
	}
	if err := stream.Err(); err != nil {
		return bytes, fmt.Errorf("backup: %w", withSentinel(err))
	}
	return bytes, nil
}
