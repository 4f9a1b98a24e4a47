package service

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"net/http"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/proto"

	"github.com/millrace/millrace/bench/cluster"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/lowering"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/tensor"
)

// Criteo's columns, which RM1 takes.
const (
	denseColumns  = 13
	sparseColumns = 26
)

// document returns the pipeline of a job with mini-batches of the given number of rows.
func document(rows int) []byte {
	return fmt.Appendf(nil, `name: service-bench
batch: %d
label: {column: label}
dense:
  - columns: [int_0..int_%d]
    ops: [fill_null: 0, clamp: {min: 0}, log: {add: 1}]
sparse:
  - columns: [cat_0..cat_%d]
    ops: [fill_null: 0, sigrid_hash: {salt: 0, max: 500000}]
`, rows, denseColumns-1, sparseColumns-1)
}

// columns are the columns that the nodes report for their partitions.
func columns() []columntypes.Column {
	list := []columntypes.Column{{Name: "label", Kind: program.Int64, Bits: 32}}
	for i := range denseColumns {
		list = append(list, columntypes.Column{Name: fmt.Sprintf("int_%d", i), Kind: program.Int64, Bits: 32})
	}
	for i := range sparseColumns {
		list = append(list, columntypes.Column{Name: fmt.Sprintf("cat_%d", i), Kind: program.Int64})
	}
	return list
}

// schemaOf returns the schema that the pipeline makes from the columns.
func schemaOf(rows int) (*tensor.Schema, error) {
	spec, err := pipeline.Parse(document(rows))
	if err != nil {
		return nil, err
	}
	resolved, err := resolve.Pipeline(spec, columns())
	if err != nil {
		return nil, err
	}
	_, schema, err := lowering.Lower(resolved)
	return schema, err
}

// node is a stand-in for a storage node: it answers as one does, from memory.
type node struct {
	apiv1connect.UnimplementedNodeHandler
	status *apiv1.NodeStatus
	server *http.Server
	served chan error
	cancel context.CancelFunc
	wg     sync.WaitGroup

	batch *tensor.MiniBatch
	bytes atomic.Int64 // bytes counts the frames that were written.

	mu            sync.Mutex
	writing, most int // frames that are being written, and the most at once
}

// startNode starts a node that serves one partition of the given number of rows, and beats.
func startNode(ctx context.Context, dir, name string, t cluster.Transport, id identity.Options, control string,
	batch *tensor.MiniBatch, rows int64) (*node, error) {
	conf, err := id.Server()
	if err != nil {
		return nil, err
	}
	addr := "127.0.0.1:0"
	if t == cluster.Unix {
		addr = "unix:" + filepath.Join(dir, name+".sock")
	}
	l, err := identity.Listen(ctx, addr, conf != nil, "")
	if err != nil {
		return nil, err
	}
	url := addr
	if t != cluster.Unix {
		url = "http://" + l.Addr().String()
		if conf != nil {
			url = "https://" + l.Addr().String()
		}
	}
	cols, err := api.EncodeColumns(columns())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	schema, footer := sha256.Sum256(cols), sha256.Sum256([]byte(name))
	inventory := sha256.Sum256([]byte(name + strconv.FormatInt(rows, 10)))
	part := &apiv1.Partition{
		Name: name + ".parquet", Bytes: 1, Rows: rows, RowGroups: []int64{rows}, ContentSha256: footer[:],
		Schema: schema[:],
	}
	n := &node{
		batch: batch, served: make(chan error, 1),
		status: &apiv1.NodeStatus{
			Name: name, Incarnation: name, Urls: []string{url}, Protocol: apiv1.Protocol, Version: "bench",
			Drives: []*apiv1.Drive{{
				Name: "d0", Computes: true, Threads: 1, Streams: 2, Partitions: []string{part.Name}, State: "ready",
			}},
			Partitions: []*apiv1.Partition{part}, Schemas: []*apiv1.Schema{{Digest: schema[:], Columns: cols}},
			Inventory: inventory[:],
		},
	}
	mux := http.NewServeMux()
	mux.Handle(apiv1connect.NewNodeHandler(n))
	mux.HandleFunc("GET "+apiv1.MiniBatchPath, n.miniBatch)
	n.server = &http.Server{Handler: mux, TLSConfig: conf, ReadHeaderTimeout: time.Minute}
	go func() {
		if conf != nil {
			n.served <- n.server.ServeTLS(l, "", "")
		} else {
			n.served <- n.server.Serve(l)
		}
	}()
	client, err := identity.HTTPClient(id)
	if err == nil {
		control, err = identity.BaseURL(control)
	}
	if err != nil {
		return nil, errors.Join(err, n.close())
	}
	ctx, n.cancel = context.WithCancel(ctx)
	n.wg.Go(func() {
		defer client.CloseIdleConnections()
		n.beat(ctx, apiv1connect.NewControlClient(client, control))
	})
	return n, nil
}

// beat sends the node's heartbeats to the control plane. It finds the leader through the member that it was given.
func (n *node) beat(ctx context.Context, c apiv1connect.ControlClient) {
	for ctx.Err() == nil {
		st := proto.CloneOf(n.status)
		st.ClockSeconds = float64(time.Now().UnixNano()) / 1e9
		one, cancel := context.WithTimeout(ctx, time.Second)
		_, _ = c.Heartbeat(one, &apiv1.HeartbeatRequest{Status: st}) // the next one comes soon
		cancel()
		_ = wait.Sleep(ctx, 500*time.Millisecond) // the loop ends with ctx
	}
}

// beatTo beats to more members.
func (n *node) beatTo(ctx context.Context, urls []string) error {
	client, err := identity.HTTPClient(identity.Options{})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancel(ctx)
	first := n.cancel
	n.cancel = func() { first(); cancel() }
	for _, raw := range urls {
		base, err := identity.BaseURL(raw)
		if err != nil {
			return err
		}
		n.wg.Go(func() { n.beat(ctx, apiv1connect.NewControlClient(client, base)) })
	}
	return nil
}

func (n *node) close() error {
	if n.cancel != nil {
		n.cancel()
	}
	n.wg.Wait()
	err := n.server.Close()
	if serr := <-n.served; !errors.Is(serr, http.ErrServerClosed) && !errors.Is(serr, net.ErrClosed) {
		err = errors.Join(err, serr)
	}
	return err
}

func (n *node) Describe(context.Context, *apiv1.DescribeRequest) (*apiv1.DescribeResponse, error) {
	return &apiv1.DescribeResponse{Status: n.status}, nil
}

func (n *node) Prepare(context.Context, *apiv1.PrepareRequest) (*apiv1.PrepareResponse, error) {
	return &apiv1.PrepareResponse{}, nil
}

func (n *node) Measure(context.Context, *apiv1.MeasureRequest) (*apiv1.MeasureResponse, error) {
	return &apiv1.MeasureResponse{RowsPerSecond: 1e7, Rows: 1e7, ElapsedSeconds: 1}, nil
}

func (n *node) Finish(context.Context, *apiv1.FinishRequest) (*apiv1.FinishResponse, error) {
	return &apiv1.FinishResponse{}, nil
}

func (n *node) Report(context.Context, *apiv1.ReportRequest) (*apiv1.ReportResponse, error) {
	return nil, connect.NewError(connect.CodeUnimplemented, errors.New("no drive is there"))
}

// miniBatch answers every request with the node's only mini-batch, under the requested name.
func (n *node) miniBatch(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	epoch, eerr := strconv.ParseUint(q.Get("epoch"), 10, 64)
	number, nerr := strconv.ParseUint(q.Get("number"), 10, 64)
	name, perr := tensor.ParseName(fmt.Sprintf("%s/%d/%d", q.Get("job"), epoch, number))
	if err := errors.Join(eerr, nerr, perr); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	b := n.batch
	mb := tensor.New(b.Schema, b.Rows, nil)
	mb.Name, mb.Label, mb.Dense, mb.Values64 = name, b.Label, b.Dense, b.Values64
	frame, err := tensor.EncodeFrame(mb)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", apiv1.FrameType)
	w.Header().Set("Content-Length", strconv.FormatInt(frame.Len(), 10))
	n.writes(1)
	defer n.writes(-1)
	written, _ := frame.WriteTo(w) // a trainer that closes the connection has all that it needs
	n.bytes.Add(written)
}

// writes counts frames that are being written.
func (n *node) writes(more int) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.writing += more
	n.most = max(n.most, n.writing)
}

// atOnce is the most frames that were written at once: a connection each.
func (n *node) atOnce() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.most
}

// makeBatch makes a mini-batch that neither compresses nor repeats.
func makeBatch(rows int) (*tensor.MiniBatch, error) {
	schema, err := schemaOf(rows)
	if err != nil {
		return nil, err
	}
	mb, err := tensor.Make(schema, rows, rows*sparseColumns)
	if err != nil {
		return nil, err
	}
	x := uint64(88172645463325252)
	next := func() uint64 {
		x ^= x << 13
		x ^= x >> 7
		x ^= x << 17
		return x
	}
	for i := range mb.Values64 {
		mb.Values64[i] = int64(next() % 500_000)
	}
	for i := range mb.Dense {
		mb.Dense[i] = float32(next()%1000) / 1000
	}
	return mb, nil
}
