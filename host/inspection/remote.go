package inspection

import (
	"context"
	"errors"
	"fmt"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
)

// askTime bounds a question to one URL of a node, and maxAnswer its answer, of which the list of files is the longest.
const (
	askTime   = 10 * time.Second
	maxAnswer = 256 << 20
)

// Ask asks a storage node about a drive that the node has open, at the first of the node's URLs that answers. drive is
// the drive's name on the node.
func Ask(ctx context.Context, o identity.Options, urls []string, drive string, kind Kind) (any, error) {
	if len(urls) == 0 {
		return nil, errors.New("the node has no address")
	}
	client, err := identity.HTTPClientOf(o, identity.AcceptNode)
	if err != nil {
		return nil, err
	}
	defer client.CloseIdleConnections()
	var failed error
	for _, raw := range urls {
		base, err := identity.BaseURL(raw)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		bound, cancel := context.WithTimeout(ctx, askTime)
		r, err := apiv1connect.NewNodeClient(client, base, connect.WithReadMaxBytes(maxAnswer)).Inspect(bound,
			&apiv1.InspectRequest{Drive: drive, Kind: string(kind)})
		cancel()
		if err == nil {
			return Decode(kind, r.GetAnswer())
		}
		err = fmt.Errorf("ask %s about drive %s: %w", raw, drive, err)
		if code := connect.CodeOf(err); connect.IsWireError(err) && code != connect.CodeUnavailable {
			return nil, err // it answered
		}
		failed = errors.Join(failed, err)
	}
	return nil, failed
}
