package control

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/sdk/dataset"
)

// The longest times of calls to nodes, and the pause before a failed node is called again.
const (
	prepareTime = time.Minute
	measureTime = 2 * time.Minute
	nodeTime    = 5 * time.Second
	retryNode   = 2 * time.Second
)

// maxRate bounds P in rows a second: no worker makes a row in a picosecond, and sums of P stay finite.
const maxRate = 1e12

// nodeCalls makes the calls of a leader to storage nodes. Every call names the leader that makes it: nodes refuse a
// leader that was replaced. Its methods may be used from any goroutine, without the leader's lock.
type nodeCalls struct {
	http     *http.Client     // to nodes
	identity identity.Options // This member has it towards the workers of launchers.
	fence    uint64
	reach    func(node string) reached
}

// reached is where a node is called, and which server may answer there.
type reached struct {
	urls  []string
	owner string // owner registered the node as a worker of its launcher's own CPUs; "": it is a node.
}

// client returns the client for calls of a node, and a function that ends it. The worker of a launcher must show a
// certificate of that launcher's owner, so that no launcher can have the leader call another server in its place. The
// leader seldom calls such a worker, and keeps no connection to it.
func (n *nodeCalls) client(at reached) (*http.Client, func(), error) {
	if at.owner == "" {
		return n.http, func() {}, nil
	}
	c, err := identity.HTTPClientOf(n.identity, identity.AcceptOwned(at.owner))
	if err != nil {
		return nil, nil, err
	}
	return c, c.CloseIdleConnections, nil
}

// prepare gives a node the job's data that the node needs. It returns the places in the manifest of the partitions that
// the node's workers have in files of their own machine.
func (n *nodeCalls) prepare(
	ctx context.Context, node string, req *apiv1.PrepareRequest,
) (ownFiles []uint32, err error) {
	err = n.call(ctx, node, prepareTime, func(ctx context.Context, c apiv1connect.NodeClient) error {
		r, err := c.Prepare(ctx, req)
		ownFiles = r.GetOwnFiles()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("node %s: prepare: %w", node, err)
	}
	return ownFiles, nil
}

// finish makes a node forget a job.
func (n *nodeCalls) finish(ctx context.Context, node string, job dataset.Digest) error {
	return n.call(ctx, node, nodeTime, func(ctx context.Context, c apiv1connect.NodeClient) error {
		_, err := c.Finish(ctx, &apiv1.FinishRequest{Job: job[:]})
		return err
	})
}

// drain asks a node to refuse new splits, or to accept them again.
func (n *nodeCalls) drain(ctx context.Context, node string, drain bool) error {
	return n.call(ctx, node, nodeTime, func(ctx context.Context, c apiv1connect.NodeClient) error {
		_, err := c.Drain(ctx, &apiv1.DrainRequest{Drain: drain})
		return err
	})
}

// measuredP is P of a drive, in rows a second, and how well it is known.
type measuredP struct {
	rows    float64
	spread  float64 // as in api.Measurement; 0: the node is of a version that does not say
	settled bool
	short   bool // the job is too short to measure P: it is that of the first mini-batches
}

// measure asks a node for P of a drive. source is a partition to measure a worker of any reach on, rows how many rows
// the drive makes of the job; 0: not known.
func (n *nodeCalls) measure(ctx context.Context, node, drive string, job dataset.Digest,
	source *apiv1.PartitionSource, rows int64) (p measuredP, err error) {
	err = n.call(ctx, node, measureTime, func(ctx context.Context, c apiv1connect.NodeClient) error {
		r, err := c.Measure(ctx, &apiv1.MeasureRequest{Job: job[:], Drive: drive, Source: source, JobRows: rows})
		if err == nil {
			p = measuredP{rows: r.RowsPerSecond, spread: r.SpreadShare, settled: r.Settled, short: r.Short}
		}
		return err
	})
	switch {
	case err == nil && !(p.rows > 0 && p.rows < maxRate):
		err = fmt.Errorf("it says %v rows/s", p.rows)
	case err == nil && !(p.spread >= 0 && p.spread <= 1):
		err = fmt.Errorf("it says that %v rows/s are known to a share of %v", p.rows, p.spread)
	case connect.CodeOf(err) == connect.CodeNotFound: // the node was restarted, and gets the job after its next heartbeat
		err = connect.NewError(connect.CodeUnavailable, err)
	}
	if err != nil {
		return measuredP{}, fmt.Errorf("node %s: drive %s: measure P: %w", node, drive, err)
	}
	return p, nil
}

// fencing adds the leader's fence to every call.
func (n *nodeCalls) fencing() connect.UnaryInterceptorFunc {
	fence := strconv.FormatUint(n.fence, 10)
	return func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, r connect.AnyRequest) (connect.AnyResponse, error) {
			r.Header().Set(apiv1.FenceHeader, fence)
			return next(ctx, r)
		}
	}
}

// call calls a node at its URLs in turn until one is reached.
func (n *nodeCalls) call(ctx context.Context, node string, most time.Duration, fn func(context.Context,
	apiv1connect.NodeClient) error) error {
	own := ctx
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	at := n.reach(node)
	client, closeClient, err := n.client(at)
	if err != nil {
		return err
	}
	defer closeClient()
	err = fmt.Errorf("node %s: it announces no URL that leads to it from this machine: have it listen on an address of "+
		"its network", node)
	for _, u := range at.urls {
		base, baseErr := identity.BaseURL(u)
		if baseErr != nil {
			err = baseErr
			continue
		}
		err = fn(ctx, apiv1connect.NewNodeClient(client, base, connect.WithReadMaxBytes(maxBeat),
			connect.WithInterceptors(n.fencing())))
		if err == nil || connect.IsWireError(err) || ctx.Err() != nil {
			break
		}
	}
	if own.Err() != nil {
		return err
	}
	return unreached(err)
}

// unreached replaces the code of a connection's error, which is not the node's error, by the code of a call that may
// succeed later. Package connect uses other codes: canceled for a connection that was reset, deadline_exceeded for a
// node that hangs. A node that ends during a call returns canceled too; no caller in this package cancels.
func unreached(err error) error {
	switch code := connect.CodeOf(err); {
	case err == nil:
		return nil
	case code == connect.CodeCanceled,
		!connect.IsWireError(err) && (code == connect.CodeDeadlineExceeded || code == connect.CodeUnknown ||
			code == connect.CodeInternal):
		return connect.NewError(connect.CodeUnavailable, err)
	}
	return err
}
