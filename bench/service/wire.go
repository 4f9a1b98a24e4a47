package service

import (
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/millrace/millrace/bench/cluster"
	"github.com/millrace/millrace/bench/rawsocket"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/processors"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/remote"
)

// rounds is how often the service and the raw connections take turns in a cell.
const rounds = 4

// batches is how many mini-batches a node of the wire cells can give: more than any cell takes.
const batches = 1 << 18

// stage is a cluster whose nodes are stand-ins, and a trainer that is attached.
type stage struct {
	*cluster.Cluster
	node    identity.Options // Each node has this identity.
	standIn []*node
	batch   *tensor.MiniBatch // Every stand-in sends it.
	job     *remote.Job
}

// newStage starts the control plane, the stand-ins and the job, whose mini-batches have rows rows. A partition has of
// mini-batches.
func (o *Options) newStage(ctx context.Context, t cluster.Transport, nodes, rows int, of int64, spec *apiv1.JobSpec,
	queue int) (s *stage, err error) {
	c, err := cluster.Start(ctx, o.program(), t)
	if err != nil {
		return nil, err
	}
	s = &stage{Cluster: c}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.batch, err = makeBatch(rows); err != nil {
		return s, err
	}
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		if s.node, err = c.Identity(identity.Node, name); err != nil { // a node has the identity of its certificate
			return s, err
		}
		n, err := startNode(ctx, c.Dir, name, t, s.node, c.Member.URL, s.batch, int64(rows)*of)
		if err != nil {
			return s, err
		}
		s.standIn = append(s.standIn, n)
	}
	if err := c.AwaitNodes(ctx, nodes); err != nil {
		return s, err
	}
	spec.Pipeline = document(rows)
	st, err := c.Client.Submit(ctx, spec)
	if err != nil {
		return s, err
	}
	s.job, err = c.Client.Attach(ctx, st.Id, remote.AttachOptions{QueueBytes: int64(queue) * s.batch.Bytes()})
	return s, err
}

func (s *stage) close() error {
	var errs []error
	if s.job != nil {
		errs = append(errs, s.job.Close())
	}
	for _, n := range s.standIn {
		errs = append(errs, n.close())
	}
	return errors.Join(append(errs, s.Cluster.Close())...)
}

// sum holds the totals of one side's turns.
type sum struct {
	bytes   int64
	elapsed time.Duration
	cpu     time.Duration
}

func (s *sum) perSecond() float64 { return float64(s.bytes) / s.elapsed.Seconds() }

func (s *sum) cpuPerGB() float64 { return s.cpu.Seconds() / (float64(s.bytes) / 1e9) }

// wire measures a cell with stand-ins: the ceiling of the same cell with real nodes.
func (o *Options) wire(ctx context.Context, t cluster.Transport, nodes int) (_ *Wire, err error) {
	o.Progress(fmt.Sprintf("%s, %d stand-ins", t, nodes))
	queue := 8 * nodes // a multiple of nodes
	s, err := o.newStage(ctx, t, nodes, o.Rows, batches, &apiv1.JobSpec{Plan: &apiv1.PlanOptions{}}, queue)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	w := &Wire{Transport: t, Nodes: nodes, Kind: StandIn, MiniBatchBytes: s.batch.Bytes(), Settled: true}
	var r *rawsocket.Connections
	defer func() {
		if r != nil {
			err = errors.Join(err, r.Close())
		}
	}()
	ours, raws, err := s.turns(ctx, o.Time/rounds, func(connections, buffers int) (_ *rawsocket.Connections, err error) {
		w.Connections, w.Buffers = connections, buffers
		r, err = rawsocket.Connect(ctx, rawsocket.Options{
			Transport: t, Dir: s.Dir, Server: s.node, Client: s.Launcher, Connections: connections,
			Block: int(w.MiniBatchBytes), Buffers: buffers,
		})
		return r, err
	})
	if err != nil {
		return nil, err
	}
	w.BytesPerSecond, w.CPUSecondsPerGB = ours.perSecond(), ours.cpuPerGB()
	w.RawPerSecond, w.RawCPUPerGB = raws.perSecond(), raws.cpuPerGB()
	w.Ratio = w.BytesPerSecond / w.RawPerSecond
	return w, nil
}

// turns lets the trainer and raw connections take turns. The bytes that the service moved are those that the nodes
// wrote. The raw connections are made after the first turn, which warms up: as many as nodes wrote to at once, into
// as many buffers as the trainer's mini-batches lay in.
func (s *stage) turns(ctx context.Context, each time.Duration,
	newRaw func(connections, buffers int) (*rawsocket.Connections, error)) (ours, raws sum, err error) {
	var r *rawsocket.Connections
	buffers := map[*int64]bool{}
	written := func() (n int64) {
		for _, node := range s.standIn {
			n += node.bytes.Load()
		}
		return n
	}
	turn, from, bytes, cpu := -1, time.Time{}, int64(0), time.Duration(0) // the first warms up
	for mb, err := range s.job.MiniBatches(ctx) {
		if err != nil {
			return ours, raws, err
		}
		if r == nil {
			buffers[unsafe.SliceData(mb.Values64)] = true
		}
		if from.IsZero() {
			from, bytes, cpu = time.Now(), written(), processors.Time()
		}
		elapsed := time.Since(from)
		if elapsed < each {
			continue
		}
		if turn >= 0 {
			ours.bytes += written() - bytes
			ours.elapsed += elapsed
			ours.cpu += processors.Time() - cpu
		}
		if err := settle(ctx, written); err != nil {
			return ours, raws, err
		}
		if r == nil {
			connections := 0
			for _, n := range s.standIn {
				connections += n.atOnce()
			}
			if r, err = newRaw(connections, max(connections, len(buffers))); err != nil {
				return ours, raws, err
			}
		}
		from, cpu = time.Now(), processors.Time()
		n, err := r.Run(each)
		if err != nil {
			return ours, raws, err
		}
		if turn >= 0 {
			raws.bytes += n
			raws.elapsed += time.Since(from)
			raws.cpu += processors.Time() - cpu
		}
		if turn++; turn == rounds {
			break
		}
		from = time.Time{}
	}
	if raws.bytes == 0 || ours.bytes == 0 {
		return ours, raws, errors.New("too short a time: nothing was moved")
	}
	return ours, raws, nil
}

// settle waits until the input queue is full, so that nodes write no more.
func settle(ctx context.Context, written func() int64) error {
	for last := int64(-1); ; {
		now := written()
		if now == last {
			return nil
		}
		last = now
		if err := wait.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}
