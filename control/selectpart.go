package control

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"connectrpc.com/connect"

	"github.com/millrace/millrace/control/fleet"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/selection"
)

// Times of the calls that fetch a part.
const (
	selectTime  = 20 * time.Second // of one call
	selectWait  = 1.0              // seconds that a node waits for the end of its work before it answers
	selectPause = 50 * time.Millisecond
	selectStall = 2 * time.Minute // without a tested row
)

// errPart says that a node sent something else than the part of a selection that it was asked for.
var errPart = errors.New("the node sent no part of the selection")

// selectRows asks a node for a piece of a part.
func (n *nodeCalls) selectRows(
	ctx context.Context, node string, req *apiv1.SelectRowsRequest,
) (resp *apiv1.SelectRowsResponse, err error) {
	err = n.call(ctx, node, selectTime, func(ctx context.Context, c apiv1connect.NodeClient) error {
		resp, err = c.SelectRows(ctx, req)
		return err
	})
	if connect.CodeOf(err) == connect.CodeUnimplemented {
		err = connect.NewError(connect.CodeFailedPrecondition, fmt.Errorf("the node makes no selections: update it: %w",
			err))
	}
	return resp, err
}

// fetchPart has a drive test the rows of a partition, fetches the part, and checks that it is of the partition and of
// the filter. It returns how many rows pass.
func (r *rowSelector) fetchPart(partition int, at fleet.DriveID) (passing int64, err error) {
	entry := r.g.data.Manifest.Partitions[partition]
	path := r.partPath(partition)
	f, err := os.Create(path + ".partial")
	if err != nil {
		return 0, err
	}
	err = r.fetchPieces(f, partition, entry, at)
	if err = errors.Join(err, f.Close()); err != nil {
		return 0, errors.Join(err, os.Remove(f.Name()))
	}
	part, err := selection.Load(f.Name())
	if err == nil {
		err = selection.CheckPart(part, entry, r.filter)
	}
	if err != nil {
		return 0, errors.Join(connect.NewError(connect.CodeDataLoss, fmt.Errorf("%w: %w", errPart, err)),
			os.Remove(f.Name()))
	}
	return part.Passing(), os.Rename(f.Name(), path)
}

// fetchPieces writes the pieces of a part to a file.
func (r *rowSelector) fetchPieces(f *os.File, partition int, entry dataset.Partition, at fleet.DriveID) error {
	most := selection.MostBytes(entry.Rows)
	var have, total, tested int64
	lastNews := time.Now()
	for total == 0 || have < total {
		if r.ended() {
			return context.Canceled
		}
		answer, err := r.c.calls.selectRows(r.c.ctx, at.Node, &apiv1.SelectRowsRequest{Job: r.pass.Digest[:], Drive: at.Drive,
			Partition: entry.Name, Offset: have, WaitSeconds: selectWait})
		if err != nil {
			return err
		}
		size := int64(len(answer.Piece))
		switch {
		case answer.Bytes == 0 && total == 0:
			if now := min(max(answer.Tested, 0), entry.Rows); now > tested {
				tested, lastNews = now, time.Now()
				r.progress.note(partition, tested)
			}
			if time.Since(lastNews) > selectStall {
				return connect.NewError(connect.CodeUnavailable, fmt.Errorf("it has tested no row for %v, after %d of %d",
					selectStall, tested, entry.Rows))
			}
			if wait.Sleep(r.c.ctx, selectPause) != nil {
				return r.c.ctx.Err()
			}
			continue
		case answer.Bytes == 0:
			return connect.NewError(connect.CodeUnavailable, errors.New("the node has dropped the part"))
		case answer.Bytes < 0 || answer.Bytes > most || total != 0 && answer.Bytes != total:
			return connect.NewError(connect.CodeDataLoss, fmt.Errorf("%w: it has %d bytes, and one of %d rows at most %d",
				errPart, answer.Bytes, entry.Rows, most))
		case size == 0 || size > answer.Bytes-have:
			return connect.NewError(connect.CodeDataLoss, fmt.Errorf("%w: a piece of %d bytes at byte %d of %d", errPart,
				size, have, answer.Bytes))
		}
		if _, err := f.Write(answer.Piece); err != nil {
			return err
		}
		total, have = answer.Bytes, have+size
	}
	return nil
}
