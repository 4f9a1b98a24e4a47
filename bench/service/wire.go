package service

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"
	"unsafe"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/trainmgr/remote"
)

// rounds is how often the service and the raw connections take turns in a cell.
const rounds = 4

// batches is how many mini-batches a node of the wire cells can give: more than any cell takes.
const batches = 1 << 18

// stage is a control plane, nodes, and a trainer that is attached.
type stage struct {
	dir      string // for sockets, whose paths are short
	member   *member
	nodes    []*node
	client   *remote.Client
	job      *remote.Job
	identity [3]identity.Options // of the control plane, of a node, of the trainer
}

// newStage starts the control plane, the nodes and the job, whose mini-batches have rows rows. A partition has of
// mini-batches.
func (o *Options) newStage(ctx context.Context, t Transport, nodes, rows int, of int64, spec *apiv1.JobSpec,
	queue int) (s *stage, err error) {
	s = &stage{}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if s.dir, err = os.MkdirTemp("", "mr"); err != nil {
		return s, err
	}
	if t == TLS {
		if err := s.issue(); err != nil {
			return s, err
		}
	}
	if s.member, err = o.startMember(ctx, s.identity[0], "--listen", "127.0.0.1:0"); err != nil {
		return s, err
	}
	batch, err := makeBatch(rows)
	if err != nil {
		return s, err
	}
	for i := range nodes {
		name := fmt.Sprintf("n%d", i)
		if t == TLS { // a node has the identity of its certificate
			if s.identity[1], err = s.issueFor(identity.Node, name); err != nil {
				return s, err
			}
		}
		n, err := startNode(ctx, s.dir, name, t, s.identity[1], s.member.url, batch, int64(rows)*of)
		if err != nil {
			return s, err
		}
		s.nodes = append(s.nodes, n)
	}
	if s.client, err = remote.Dial(remote.Options{Control: []string{s.member.url},
		Identity: s.identity[2]}); err != nil {
		return s, err
	}
	if err := awaitNodes(ctx, s.client, nodes); err != nil {
		return s, err
	}
	spec.Pipeline = document(rows)
	st, err := s.client.Submit(ctx, spec)
	if err != nil {
		return s, err
	}
	s.job, err = s.client.Attach(ctx, st.Id, remote.AttachOptions{QueueBytes: int64(queue) * batch.Bytes()})
	return s, err
}

// issue makes an authority, and identities of a member, a node and a trainer.
func (s *stage) issue() (err error) {
	if err := identity.InitAuthority(s.pki(), "bench"); err != nil {
		return err
	}
	for i, role := range []identity.Role{identity.Control, identity.Node, identity.Launcher} {
		if s.identity[i], err = s.issueFor(role, "bench"); err != nil {
			return err
		}
	}
	return nil
}

func (s *stage) pki() string { return filepath.Join(s.dir, "pki") }

// issueFor makes an identity.
func (s *stage) issueFor(role identity.Role, name string) (identity.Options, error) {
	stem := filepath.Join(s.pki(), string(role)+"-"+name)
	o := identity.Options{Cert: stem + ".crt", Key: stem + ".key", CA: filepath.Join(s.pki(), identity.AuthorityCert)}
	r := identity.Request{Identity: identity.Identity{Role: role, Name: name}, Hosts: []string{"127.0.0.1"}}
	return o, identity.Issue(s.pki(), r, o.Cert, o.Key)
}

// awaitNodes waits until want nodes are ready.
func awaitNodes(ctx context.Context, c *remote.Client, want int) error {
	for {
		list, err := c.Nodes(ctx)
		if err != nil {
			return err
		}
		ready := 0
		for _, n := range list {
			if n.State == "ready" {
				ready++
			}
		}
		if ready >= want {
			return nil
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

func (s *stage) close() error {
	var errs []error
	if s.job != nil {
		errs = append(errs, s.job.Close())
	}
	if s.client != nil {
		errs = append(errs, s.client.Close())
	}
	for _, n := range s.nodes {
		errs = append(errs, n.close())
	}
	if s.member != nil {
		errs = append(errs, s.member.close())
	}
	return errors.Join(append(errs, os.RemoveAll(s.dir))...)
}

// sum holds the totals of one side's turns.
type sum struct {
	bytes   int64
	elapsed time.Duration
	cpu     time.Duration
}

func (s *sum) perSecond() float64 { return float64(s.bytes) / s.elapsed.Seconds() }

func (s *sum) cpuPerGB() float64 { return s.cpu.Seconds() / (float64(s.bytes) / 1e9) }

// wire measures a cell.
func (o *Options) wire(ctx context.Context, t Transport, nodes int) (_ *Wire, err error) {
	o.Progress(fmt.Sprintf("%s, %d nodes", t, nodes))
	queue := 8 * nodes // a multiple of nodes
	s, err := o.newStage(ctx, t, nodes, o.Rows, batches, &apiv1.JobSpec{Plan: &apiv1.PlanOptions{}}, queue)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, s.close()) }()
	size := s.nodes[0].batch.Bytes()
	var r *raw
	defer func() {
		if r != nil {
			err = errors.Join(err, r.close())
		}
	}()
	ours, raws, err := s.turns(ctx, o.Time/rounds, func(connections, buffers int) (_ *raw, err error) {
		r, err = newRaw(ctx, s.dir, t, s.identity[1], s.identity[2], connections, int(size), buffers)
		return r, err
	})
	if err != nil {
		return nil, err
	}
	w := &Wire{
		Transport: t, Nodes: nodes, MiniBatchBytes: size, BytesPerSecond: ours.perSecond(),
		CPUSecondsPerGB: ours.cpuPerGB(),
		RawPerSecond:    raws.perSecond(), RawCPUPerGB: raws.cpuPerGB(), Connections: len(r.pairs),
		Buffers: len(r.into),
	}
	w.Ratio = w.BytesPerSecond / w.RawPerSecond
	return w, nil
}

// turns lets the trainer and raw connections take turns. The bytes that the service moved are those that the nodes
// wrote. The raw connections are made after the first turn, which warms up: as many as nodes wrote to at once, into
// as many buffers as the trainer's mini-batches lay in.
func (s *stage) turns(ctx context.Context, each time.Duration,
	newRaw func(connections, buffers int) (*raw, error)) (ours, raws sum, err error) {
	var r *raw
	buffers := map[*int64]bool{}
	written := func() (n int64) {
		for _, node := range s.nodes {
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
			from, bytes, cpu = time.Now(), written(), processorTime()
		}
		elapsed := time.Since(from)
		if elapsed < each {
			continue
		}
		if turn >= 0 {
			ours.bytes += written() - bytes
			ours.elapsed += elapsed
			ours.cpu += processorTime() - cpu
		}
		if err := settle(ctx, written); err != nil {
			return ours, raws, err
		}
		if r == nil {
			connections := 0
			for _, n := range s.nodes {
				connections += n.atOnce()
			}
			if r, err = newRaw(connections, max(connections, len(buffers))); err != nil {
				return ours, raws, err
			}
		}
		from, cpu = time.Now(), processorTime()
		n, err := r.run(each)
		if err != nil {
			return ours, raws, err
		}
		if turn >= 0 {
			raws.bytes += n
			raws.elapsed += time.Since(from)
			raws.cpu += processorTime() - cpu
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
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
