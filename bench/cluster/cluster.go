package cluster

import (
	"context"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"time"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/internal/wait"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr/remote"
)

// Transport is how a trainer reaches nodes.
type Transport string

// The transports.
const (
	Unix Transport = "unix" // sockets of this machine
	TCP  Transport = "tcp"  // loopback, in clear
	TLS  Transport = "tls"  // loopback, mutual TLS 1.3
)

// Transports are all there are, in the order of tables.
func Transports() []Transport { return []Transport{Unix, TCP, TLS} }

// Cluster is a control plane, its nodes, and the client of a launcher. Start makes one.
type Cluster struct {
	Transport Transport
	Member    *Member
	Nodes     []*Node
	Client    *remote.Client
	Dir       string // for sockets, whose paths are short; Close removes it
	Launcher  identity.Options

	program Program
}

// Start starts a control plane and a client of it. There is no node yet.
func Start(ctx context.Context, p Program, t Transport) (c *Cluster, err error) {
	c = &Cluster{Transport: t, program: p}
	defer func() {
		if err != nil {
			err = errors.Join(err, c.Close())
		}
	}()
	if c.Dir, err = os.MkdirTemp("", "mr"); err != nil {
		return c, err
	}
	member, err := c.Identity(identity.Control, "bench")
	if err != nil {
		return c, err
	}
	if c.Launcher, err = c.Identity(identity.Launcher, "bench"); err != nil {
		return c, err
	}
	if c.Member, err = StartMember(ctx, p, member); err != nil {
		return c, err
	}
	c.Client, err = remote.Dial(remote.Options{Control: []string{c.Member.URL}, Identity: c.Launcher})
	return c, err
}

// authority is the folder of the authority that signs the certificates.
func (c *Cluster) authority() string { return filepath.Join(c.Dir, "pki") }

// Identity issues a certificate, the first time after an authority. In clear it returns the zero Options.
func (c *Cluster) Identity(role identity.Role, name string) (identity.Options, error) {
	if c.Transport != TLS {
		return identity.Options{}, nil
	}
	if _, err := os.Stat(c.authority()); errors.Is(err, os.ErrNotExist) {
		if err := identity.InitAuthority(c.authority(), "bench"); err != nil {
			return identity.Options{}, err
		}
	}
	stem := filepath.Join(c.authority(), string(role)+"-"+name)
	o := identity.Options{
		Cert: stem + ".crt", Key: stem + ".key", CA: filepath.Join(c.authority(), identity.AuthorityCert),
	}
	r := identity.Request{Identity: identity.Identity{Role: role, Name: name}, Hosts: []string{"127.0.0.1"}}
	return o, identity.Issue(c.authority(), r, o.Cert, o.Key)
}

// AwaitNodes waits until want nodes are ready.
func (c *Cluster) AwaitNodes(ctx context.Context, want int) error {
	return AwaitNodes(ctx, c.Client, want)
}

// AwaitNodes waits until want nodes of a control plane are ready.
func AwaitNodes(ctx context.Context, client *remote.Client, want int) error {
	for {
		list, err := client.Nodes(ctx)
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
		if err := wait.Sleep(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// Take runs a job and hands its mini-batches to take, one after the other, until take reports false or the job is over.
// The job is cancelled then. A mini-batch is valid until take returns.
func (c *Cluster) Take(ctx context.Context, spec *apiv1.JobSpec, o remote.AttachOptions,
	take func(*tensor.MiniBatch) (more bool, err error)) (err error) {
	status, err := c.Client.Submit(ctx, spec)
	if err != nil {
		return err
	}
	job, err := c.Client.Attach(ctx, status.Id, o)
	if err != nil {
		return errors.Join(err, c.Client.Cancel(ctx, status.Id))
	}
	more := true
	err = Each(job.MiniBatches(ctx), func(mb *tensor.MiniBatch) (_ bool, err error) {
		more, err = take(mb)
		return more, err
	})
	if err = errors.Join(err, job.Close()); err != nil || !more {
		err = errors.Join(err, c.Client.Cancel(context.WithoutCancel(ctx), status.Id))
	}
	return err
}

// Each hands the mini-batches of a job's iterator to take until take reports false.
func Each(batches iter.Seq2[*tensor.MiniBatch, error], take func(*tensor.MiniBatch) (more bool, err error)) error {
	for mb, err := range batches {
		if err != nil {
			return err
		}
		if more, err := take(mb); err != nil || !more {
			return err
		}
	}
	return nil
}

// AwaitIdle waits until no node has work; see Process.AwaitIdle.
func (c *Cluster) AwaitIdle(ctx context.Context) error {
	for _, n := range c.Nodes {
		if err := n.AwaitIdle(ctx); err != nil {
			return err
		}
	}
	return nil
}

// NodeTime returns the processor time of all nodes.
func (c *Cluster) NodeTime() (sum time.Duration) {
	for _, n := range c.Nodes {
		sum += n.ProcessorTime()
	}
	return sum
}

// Close ends the client and every process.
func (c *Cluster) Close() error {
	var errs []error
	if c.Client != nil {
		errs = append(errs, c.Client.Close())
	}
	for _, n := range c.Nodes {
		n.Kill()
	}
	if c.Member != nil {
		errs = append(errs, c.Member.Close())
	}
	if c.Dir != "" {
		errs = append(errs, os.RemoveAll(c.Dir))
	}
	return errors.Join(errs...)
}
