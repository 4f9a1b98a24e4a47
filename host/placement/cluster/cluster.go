package cluster

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"connectrpc.com/connect"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/placement"
	"github.com/millrace/millrace/internal/wait"
)

// Cluster is the nodes of a control plane.
type Cluster struct {
	client     *http.Client
	nodes      map[string]*apiv1.NodeStatus
	drives     []placement.Drive               // a drive of several regions once
	whole      map[placement.Ref]placement.Ref // whole has, for each region, the name of its drive in drives.
	regions    map[placement.Ref][]region      // regions has those of each of drives.
	partitions map[string]*apiv1.Partition
	wanted     map[string]*apiv1.PartitionCopies
}

// ErrNoDrive says that no node with a drive answers the control plane now.
var ErrNoDrive = errors.New("no storage node with a drive answers the control plane (millrace nodes list)")

// Open reads the nodes, and how many copies of each partition are wanted, as a control plane lists them. Nodes that
// do not answer the control plane are left out: their partitions are not counted, and nothing is put there. Two nodes
// that hold different partitions of one name are an error.
func Open(records []*apiv1.NodeRecord, wanted []*apiv1.PartitionCopies, o identity.Options) (*Cluster, error) {
	client, err := identity.HTTPClientOf(o, identity.AcceptNode)
	if err != nil {
		return nil, err
	}
	c := &Cluster{client: client, nodes: map[string]*apiv1.NodeStatus{}, partitions: map[string]*apiv1.Partition{},
		wanted: map[string]*apiv1.PartitionCopies{}, whole: map[placement.Ref]placement.Ref{},
		regions: map[placement.Ref][]region{}}
	for _, p := range wanted {
		c.wanted[p.GetPartition()] = p
	}
	for _, r := range records {
		s := r.GetStatus()
		if r.GetState() != "ready" && r.GetState() != "draining" {
			continue
		}
		c.nodes[s.GetName()] = s
		for _, p := range s.GetPartitions() {
			if other, ok := c.partitions[p.GetName()]; ok &&
				(other.GetBytes() != p.GetBytes() || string(other.GetContentSha256()) != string(p.GetContentSha256())) {
				return nil, fmt.Errorf("partition %s: node %s holds another file of the name than other nodes: "+
					"remove one", p.GetName(), s.GetName())
			}
			c.partitions[p.GetName()] = p
		}
		for _, regions := range byFlash(s.GetDrives()) {
			c.drives = append(c.drives, wholeDrive(s, regions))
			whole := c.drives[len(c.drives)-1].Ref
			for _, d := range regions {
				r := placement.Ref{Node: s.GetName(), Drive: d.GetName()}
				c.whole[r] = whole
				c.regions[whole] = append(c.regions[whole], region{r, d.GetState() == "ready", d.GetPartitions()})
			}
		}
	}
	if len(c.drives) == 0 {
		return nil, ErrNoDrive
	}
	return c, nil
}

// mean returns a drive's mean P over all pipelines that it was measured with, or 0 if there are none.
func mean(rates map[string]float64) float64 {
	sum := 0.0
	for _, r := range rates {
		sum += r
	}
	return sum / float64(max(1, len(rates)))
}

// Close ends idle connections.
func (c *Cluster) Close() { c.client.CloseIdleConnections() }

// Drives returns the drives, for package placement. The regions of a drive have its flash in common, and are one drive
// here, which has the name of the first of them.
func (c *Cluster) Drives() []placement.Drive { return c.drives }

// Partitions returns the partitions that lie on some drive and that match, sorted by name. A nil match matches all.
// Copies is the number that is wanted, or 0 if that is not known.
func (c *Cluster) Partitions(match func(name string) bool) []placement.Partition {
	var list []placement.Partition
	for name, p := range c.partitions {
		if match == nil || match(name) {
			list = append(list, placement.Partition{Name: name, Bytes: p.GetBytes(), Rows: p.GetRows(),
				Copies: int(c.wanted[name].GetCopies())})
		}
	}
	return byName(list)
}

// Gone returns the partitions that match, of which copies are wanted, and that lie on no drive of a node that answers.
func (c *Cluster) Gone(match func(name string) bool) []placement.Partition {
	var list []placement.Partition
	for name, p := range c.wanted {
		if c.partitions[name] == nil && (match == nil || match(name)) {
			list = append(list, placement.Partition{Name: name, Bytes: p.GetBytes(), Rows: p.GetRows(),
				Copies: int(p.GetCopies())})
		}
	}
	return byName(list)
}

// byName sorts partitions by name.
func byName(list []placement.Partition) []placement.Partition {
	slices.SortFunc(list, func(a, b placement.Partition) int { return cmp.Compare(a.Name, b.Name) })
	return list
}

// Holders returns the drives that hold a partition.
func (c *Cluster) Holders(name string) []placement.Ref {
	var refs []placement.Ref
	for _, d := range c.drives {
		if slices.Contains(d.Partitions, name) {
			refs = append(refs, d.Ref)
		}
	}
	return refs
}

// Carry makes copies: for each drive one after another, for several drives at once. A copy without a source is a file
// of the caller, which open describes and opens. Carry calls done for each copy, one call at a time.
func (c *Cluster) Carry(ctx context.Context, copies []placement.Copy, open func(partition string) (*File, error),
	done func(placement.Copy, error)) error {
	byDrive := map[placement.Ref][]placement.Copy{}
	for _, k := range copies {
		byDrive[k.To] = append(byDrive[k.To], k)
	}
	var (
		wg   sync.WaitGroup
		mu   sync.Mutex
		errs []error
	)
	for _, list := range byDrive {
		wg.Go(func() {
			for _, k := range list {
				var err error
				if ctx.Err() != nil {
					err = context.Cause(ctx)
				} else {
					err = c.carryOne(ctx, k, open)
				}
				mu.Lock()
				if err != nil {
					err = fmt.Errorf("partition %s to %s: %w", k.Partition.Name, k.To, err)
					errs = append(errs, err)
				}
				if done != nil {
					done(k, err)
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}

// carryOne makes one copy.
func (c *Cluster) carryOne(ctx context.Context, k placement.Copy, open func(partition string) (*File, error)) error {
	if k.From == (placement.Ref{}) {
		f, err := open(k.Partition.Name)
		if err != nil {
			return err
		}
		return errors.Join(c.put(ctx, c.via(k.To, f.Name), f), f.Close())
	}
	from, to := c.nodes[k.From.Node], c.nodes[k.To.Node]
	p := c.partitions[k.Partition.Name]
	if from == nil || to == nil || p == nil {
		return fmt.Errorf("copy from %s: no such node or partition", k.From)
	}
	return c.ask(ctx, k.To.Node, func(n apiv1connect.NodeClient) error {
		_, err := n.Copy(ctx,
			&apiv1.CopyRequest{Drive: c.via(k.To, p.Name).Drive, Partition: p, FromUrl: reachableURL(from.GetUrls()),
				FromDrive: c.via(k.From, p.Name).Drive})
		return err
	})
}

// reachableURL returns the URL at which another node reaches a node: not a unix socket, if there is another.
func reachableURL(urls []string) string {
	for _, u := range urls {
		if !strings.HasPrefix(u, "unix:") {
			return u
		}
	}
	if len(urls) == 0 {
		return ""
	}
	return urls[0]
}

// maxAnswer bounds a node's answer in bytes: the description of a node with a million partitions.
const maxAnswer = 256 << 20

// ask calls a node at the first of its URLs that answers.
func (c *Cluster) ask(ctx context.Context, node string, call func(apiv1connect.NodeClient) error) error {
	return c.atEachURL(ctx, node, func(base string) error {
		err := call(apiv1connect.NewNodeClient(c.client, base, connect.WithReadMaxBytes(maxAnswer)))
		var e *connect.Error
		if errors.As(err, &e) && e.Code() != connect.CodeUnavailable {
			return finalError{err}
		}
		return err
	})
}

// finalError is an answer of a node, which another URL would not change.
type finalError struct{ error }

// Unwrap returns the answer's error.
func (f finalError) Unwrap() error { return f.error }

// atEachURL calls f with a node's base URLs in turn until one answers.
func (c *Cluster) atEachURL(ctx context.Context, node string, f func(base string) error) error {
	s := c.nodes[node]
	if s == nil {
		return fmt.Errorf("node %s does not answer the control plane", node)
	}
	err := fmt.Errorf("node %s names no URL", node)
	for _, u := range s.GetUrls() {
		base, berr := identity.BaseURL(u)
		if berr != nil {
			err = berr
			continue
		}
		err = f(base)
		var stop finalError
		if errors.As(err, &stop) {
			return stop.error
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		err = fmt.Errorf("node %s at %s: %w", node, u, err)
	}
	return err
}

// Sum is the checksums of a partition on a drive: of its bytes as they are read, and as they were put.
type Sum struct {
	Bytes        int64
	SHA256, Kept []byte // Kept is empty where nothing was kept before
}

// Verify makes a node read a partition whole.
func (c *Cluster) Verify(ctx context.Context, r placement.Ref, partition string) (Sum, error) {
	return c.sum(ctx, r, &apiv1.VerifyRequest{Drive: r.Drive, Partition: partition})
}

// sum asks a node for a partition's checksums.
func (c *Cluster) sum(ctx context.Context, r placement.Ref, q *apiv1.VerifyRequest) (Sum, error) {
	var s Sum
	q.Drive = c.via(r, q.Partition).Drive
	err := c.ask(ctx, r.Node, func(n apiv1connect.NodeClient) error {
		v, err := n.Verify(ctx, q)
		if err == nil {
			s = Sum{Bytes: v.GetBytes(), SHA256: v.GetSha256(), Kept: v.GetKeptSha256()}
		}
		return err
	})
	if err != nil {
		return s, fmt.Errorf("partition %s on %s: %w", q.GetPartition(), r, err)
	}
	return s, nil
}

// Drain makes a drive, or a region of one, refuse new splits, or take them again, and returns how many are open.
func (c *Cluster) Drain(ctx context.Context, r placement.Ref, drain bool) (running int, err error) {
	err = c.ask(ctx, r.Node, func(n apiv1connect.NodeClient) error {
		v, err := n.Drain(ctx, &apiv1.DrainRequest{Drive: r.Drive, Drain: drain})
		running = int(v.GetRunning())
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("drain %s: %w", r, err)
	}
	return running, nil
}

// Settle drains all regions of a drive and waits until no split is open on any, or ctx ends.
func (c *Cluster) Settle(ctx context.Context, r placement.Ref) error {
	for {
		n := 0
		for _, region := range c.Regions(r) {
			running, err := c.Drain(ctx, region, true)
			if err != nil {
				return err
			}
			n += running
		}
		if n == 0 {
			return nil
		}
		if err := wait.Sleep(ctx, 200*time.Millisecond); err != nil {
			return fmt.Errorf("drain %s: %d splits still run: %w", r, n, err)
		}
	}
}

// answerText reads the beginning of an answer.
func answerText(r io.Reader) string {
	b, _ := io.ReadAll(io.LimitReader(r, 1<<10))
	return strings.TrimSpace(string(b))
}
