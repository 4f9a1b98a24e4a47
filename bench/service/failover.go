package service

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"

	"github.com/millrace/millrace/bench/cluster"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/trainmgr/remote"
)

// members of the control plane that loses its leader.
const members = 3

// step is how long the trainer of the failover takes for a mini-batch of few rows.
const step = 2 * time.Millisecond

// failover kills the leader under a trainer.
func (o *Options) failover(ctx context.Context) (_ *Failover, err error) {
	o.Progress(fmt.Sprintf("failover: three members, leader TTL %v", o.LeaderTTL))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	ms, err := o.startMembers(ctx)
	defer func() {
		for _, m := range ms {
			err = errors.Join(err, m.Close())
		}
	}()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "mr")
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	const rows = 64
	batch, err := makeBatch(rows)
	if err != nil {
		return nil, err
	}
	var urls []string
	for _, m := range ms { // the node beats to all members, and the leader takes the beat
		urls = append(urls, m.URL)
	}
	n, err := startNode(ctx, dir, "n0", cluster.TCP, identity.Options{}, urls[0], batch, rows*batches)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, n.close()) }()
	if err := n.beatTo(ctx, urls[1:]); err != nil {
		return nil, err
	}
	c, err := remote.Dial(remote.Options{Control: urls})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := cluster.AwaitNodes(ctx, c, 1); err != nil {
		return nil, err
	}
	st, err := c.Submit(ctx, &apiv1.JobSpec{Pipeline: document(rows), Plan: &apiv1.PlanOptions{SplitBatches: 4096}})
	if err != nil {
		return nil, err
	}
	j, err := c.Attach(ctx, st.Id, remote.AttachOptions{QueueBytes: 64 << 20})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, j.Close()) }()
	return o.underFire(ctx, ms, c, j)
}

// underFire takes mini-batches, kills the leader, and takes more until acknowledgements are durable again.
func (o *Options) underFire(ctx context.Context, ms []*cluster.Member, c *remote.Client,
	j *remote.Job) (*Failover, error) {
	f := &Failover{LeaderTTLSeconds: o.LeaderTTL.Seconds()}
	var killed time.Time
	durable := make(chan error, 1)
	n, last := 0, time.Now()
	for _, err := range j.MiniBatches(ctx) {
		if err != nil {
			return nil, err
		}
		if wait := time.Since(last).Seconds(); !killed.IsZero() {
			f.StallSeconds = max(f.StallSeconds, wait)
			f.MiniBatches++
		}
		time.Sleep(step)
		last = time.Now()
		if n++; n == 200 {
			if err := j.Flush(ctx); err != nil {
				return nil, err
			}
			leader := c.Leader() // before: the client looks for another at once
			for _, m := range ms {
				if base, err := identity.BaseURL(m.URL); err == nil && base == leader {
					m.Kill()
					killed = time.Now()
				}
			}
			if killed.IsZero() {
				return nil, fmt.Errorf("nobody leads at %s", leader)
			}
			last = killed
		}
		if n == 205 { // some are waiting to be made durable
			go func() { durable <- j.Flush(ctx) }()
		}
		select {
		case err := <-durable:
			f.Seconds = time.Since(killed).Seconds()
			return f, err
		default:
		}
	}
	return nil, errors.New("the data ended before the control plane was back")
}

// startMembers starts three members that know each other.
func (o *Options) startMembers(ctx context.Context) (ms []*cluster.Member, err error) {
	var peers string
	var held []net.Listener
	for i := range members {
		l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		held = append(held, l)
		if i > 0 {
			peers += ","
		}
		peers += fmt.Sprintf("m%d=http://%s", i, l.Addr())
	}
	for _, l := range held { // the members take the ports over
		if err := l.Close(); err != nil {
			return nil, err
		}
	}
	type started struct {
		m   *cluster.Member
		err error
	}
	all := make(chan started, members)
	for i := range members {
		go func() {
			m, err := cluster.StartMember(ctx, o.program(), identity.Options{}, "--name", fmt.Sprintf("m%d", i),
				"--peers", peers, "--leader-ttl", o.LeaderTTL.String())
			all <- started{m, err}
		}()
	}
	for range members {
		s := <-all
		if s.err == nil {
			ms = append(ms, s.m)
		}
		err = errors.Join(err, s.err)
	}
	return ms, err
}
