package endtoend

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	clientv3 "go.etcd.io/etcd/client/v3"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/worker"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/remote"
)

// way is one way to run a job. The mini-batches must not depend on it, but on the boundary.
type way struct {
	drives   int
	kind     string // mem, file, tcp
	order    string
	fault    string
	makers   string // which workers make the mini-batches
	boundary dataset.Boundary
}

func (w way) String() string {
	return fmt.Sprintf("%d %s %s %s %s %v", w.drives, w.kind, w.order, w.fault, w.makers, w.boundary)
}

var (
	allDrives = []int{1, 2, 5}
	allKinds  = []string{"mem", "file", "tcp"}
	allOrders = []string{"fastest", "deterministic"}
	allFaults = []string{"no fault", "worker kill", "leader kill", "cut link", "slow drive", "corrupt page",
		"full disk"}
	// the holders of the partitions, workers that hold none, both, or holders and the rank's own CPUs in equal parts
	allMakers     = []string{"holders", "workers", "both", "own"}
	allBoundaries = []dataset.Boundary{dataset.BoundaryPartition, dataset.BoundaryNone}
)

// ways returns all ways, in an order that is always the same.
func ways() (all []way) {
	for _, d := range allDrives {
		for _, k := range allKinds {
			for _, o := range allOrders {
				for _, f := range allFaults {
					for _, m := range allMakers {
						for _, b := range allBoundaries {
							all = append(all, way{d, k, o, f, m, b})
						}
					}
				}
			}
		}
	}
	rng := rand.New(rand.NewPCG(1, 2))
	rng.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all
}

// pairs returns the pairs of choices that a way has.
func (w way) pairs() []string {
	v := []string{fmt.Sprint(w.drives), w.kind, w.order, w.fault, w.makers, "boundary " + w.boundary.String()}
	var out []string
	for i := range v {
		for j := range i {
			out = append(out, v[j]+"/"+v[i])
		}
	}
	return out
}

// pairwise picks ways, greedily, so that every pair of choices occurs.
func pairwise(all []way) (out []way) {
	open := map[string]bool{}
	for _, w := range all {
		for _, p := range w.pairs() {
			open[p] = true
		}
	}
	for len(open) > 0 {
		best, most := way{}, 0
		for _, w := range all {
			n := 0
			for _, p := range w.pairs() {
				if open[p] {
					n++
				}
			}
			if n > most {
				best, most = w, n
			}
		}
		out = append(out, best)
		for _, p := range best.pairs() {
			delete(open, p)
		}
	}
	return out
}

func TestPairwiseMeetsEveryPair(t *testing.T) {
	all := ways()
	require.Len(t, all, 1008)
	met := map[string]bool{}
	some := pairwise(all)
	for _, w := range some {
		for _, p := range w.pairs() {
			met[p] = true
		}
	}
	assert.Len(t, met, 3*3+3*2+3*7+3*4+3*2+3*7+3*4+2*7+2*4+7*4+2*(3+3+2+7+4))
	assert.Less(t, len(some), 45)
}

// TestOneJobManyWays runs one job with different numbers and kinds of drives, in both orders, with mini-batches made by
// the drives, by workers without data, or by both, and with a fault meanwhile. Every mini-batch comes once, and is that
// of one machine. A page that cannot be read ends the job, and the mini-batches before are right. It takes most of a
// minute, because each way starts processes of its own: a control plane, nodes, workers and trainers.
func TestOneJobManyWays(t *testing.T) {
	list := pairwise(ways())
	if os.Getenv("MILLRACE_METAMORPHIC") == "full" {
		list = ways()
	} else if testing.Short() {
		list = list[:7]
	}
	data := files(t, 700, 1100, 400, 49, 950)
	documents := []string{document, narrowDocument} // in turn
	want := map[dataset.Boundary][]*result{}
	for _, b := range allBoundaries {
		for _, d := range documents {
			spec, err := pipeline.Parse([]byte(d))
			require.NoError(t, err)
			want[b] = append(want[b], jobOnOneMachine(t, trainmgr.Options{Pipeline: spec, Batch: 50, SplitBatches: 4, Seed: 9,
				Epochs: 1, Boundary: b}, data))
		}
	}
	for i, w := range list {
		i %= len(documents)
		t.Run(w.String(), func(t *testing.T) { w.run(t, documents[i], data, want[w.boundary][i]) })
	}
}

// stage holds the parts that a way runs on.
type stage struct {
	t       *testing.T
	way     way
	url     string // of the control plane
	member  *process
	etcd    string // where its etcd takes clients
	configs []node.Config
	options node.Options
	nodes   []*node.Agent
	proxies []*proxy
	hired   []worker.Config
	workers []*node.Agent
	serves  *worker.Rank // the only rank of the workers; nil: every rank
}

// slow is flash that delays every read.
type slow struct{ controller.Flash }

func (s slow) ReadAt(p []byte, off int64) (int, error) {
	time.Sleep(time.Millisecond)
	return s.Flash.ReadAt(p, off)
}

func (w way) run(t *testing.T, document string, data map[string][]byte, want *result) {
	s := &stage{t: t, way: w}
	s.startMember()
	if w.fault == "corrupt page" {
		bad := map[string][]byte{}
		for name, b := range data {
			bad[name] = b
		}
		b := append([]byte(nil), data["part-00001.parquet"]...)
		for i := 4; i < 60; i++ { // the first column's first page header
			b[i] = 0xff
		}
		bad["part-00001.parquet"], data = b, bad
	}
	s.startNodes(data)
	c := dial(t, s.url)
	awaitPartitions(t, c, map[string]bool{"n0": true, "n1": true}, len(data))
	spec := &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan(), Order: w.order}
	spec.Plan.Boundary = w.boundary.String()
	switch w.makers {
	case "holders":
	case "own":
		spec.Offload = "0.5"
	default:
		s.startWorkers(nil)
		awaitReady(t, c, "w0", "w1")
		spec.TRowsPerSecond = 1e12 // more than holders can make
	}
	if w.makers == "workers" {
		spec.Placement = "pool"
	}
	st, err := c.Submit(t.Context(), spec)
	require.NoError(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if w.makers == "own" {
		s.startWorkers(&worker.Rank{Job: st.Id})
		awaitOwn(ctx, t, c, st.Id, 2)
	}
	j, err := c.Attach(ctx, st.Id, remote.AttachOptions{QueueBytes: 60_000, Deadline: 2 * time.Second})
	if w.fault == "corrupt page" && err != nil { // measuring P met it
		require.ErrorIs(t, err, remote.ErrEnded)
		return
	}
	require.NoError(t, err)
	got := newResult()
	var faulting sync.WaitGroup
	defer faulting.Wait()
	for mb, err := range j.MiniBatches(ctx) {
		if err != nil && w.fault == "corrupt page" {
			if w.makers == "holders" || !errors.Is(err, remote.ErrEnded) { // of workers the leader decides
				require.ErrorIs(t, err, remote.ErrData)
			}
			assert.ErrorContains(t, err, "part-00001.parquet")
			whole := map[uint64]uint32{} // by number, since damaged files are another data set and so another job
			for name, sum := range want.sums {
				whole[name.Number] = sum
			}
			for name, sum := range got.sums {
				require.Equal(t, whole[name.Number], sum)
			}
			_ = j.Close() // the job has failed, and says so
			return
		}
		require.NoError(t, err)
		got.add(t, mb)
		if len(got.sums) == 12 {
			faulting.Go(s.goWrong)
		}
	}
	require.NotEqual(t, "corrupt page", w.fault, "nobody noticed")
	require.NoError(t, j.Close())
	check(t, want, got, w.order == "deterministic")
	st, err = c.Get(ctx, st.Id)
	require.NoError(t, err)
	switch w.makers {
	case "workers":
		assert.Zero(t, st.SplitsHeld, "workers made it all")
	case "own":
		if w.fault != "leader kill" { // the splits are those of the present leader's term
			assert.Positive(t, st.SplitsHeld)
		}
		if w.fault == "no fault" {
			assert.InDelta(t, st.SplitsHeld, st.SplitsOwn, 1, "equal parts")
		}
	}
}

// startWorkers starts two workers without data; serves is the only rank that they serve, nil: every rank.
func (s *stage) startWorkers(serves *worker.Rank) {
	s.serves = serves
	for _, name := range []string{"w0", "w1"} {
		c := workerConfig(name, []string{s.url})
		s.hired = append(s.hired, c)
		s.workers = append(s.workers, startWorkerOf(s.t, c, serves))
	}
	s.t.Cleanup(func() {
		for _, w := range s.workers {
			assert.NoError(s.t, w.Close())
		}
	})
}

// startMember starts a control plane of one member, in a process of its own if the way kills the member.
func (s *stage) startMember() {
	o := controlOptions(s.t.TempDir())
	if s.way.fault == "leader kill" {
		o.Logger, o.Listen, o.DeadAfter = nil, freePorts(s.t, 1)[0], 2*time.Second
		s.member = start(s.t, role{Member: &o})
		s.url = s.member.said[0]
		return
	}
	if s.way.fault == "full disk" {
		dir, err := os.MkdirTemp("", "mr") // a socket's path is short
		require.NoError(s.t, err)
		s.t.Cleanup(func() { assert.NoError(s.t, os.RemoveAll(dir)) })
		s.etcd = "unix://" + filepath.Join(dir, "etcd")
		o.EtcdClient, o.EtcdQuota = s.etcd, 4<<20
	}
	s.url = startControl(s.t, o).URL()
}

// startNodes starts one node, or two, over the drives.
func (s *stage) startNodes(data map[string][]byte) {
	wrap := func(f controller.Flash) controller.Flash { return f }
	if s.way.fault == "slow drive" {
		wrap = func(f controller.Flash) controller.Flash { return slow{f} }
	}
	held := deal(data, s.way.drives)
	uris := make([][]string, min(2, s.way.drives))
	for i := range held {
		w := wrap
		if i > 0 { // one of them is slow
			w = nil
		}
		uris[i%len(uris)] = append(uris[i%len(uris)], makeDriveOf(s.t, s.way.kind, smallDrive, held[i], w))
	}
	if s.way.kind == "file" {
		s.options.Device = func(drive string, o *sdk.DeviceOptions) { o.WrapFlash = wrap }
	}
	for i := range uris {
		c := nodeConfig(fmt.Sprintf("n%d", i), []string{s.url}, uris[i]...)
		if s.way.fault == "cut link" {
			p := newProxy(s.t)
			s.proxies = append(s.proxies, p)
			c.Listen, c.Advertise = []string{freePorts(s.t, 1)[0]}, []string{"http://" + p.l.Addr().String()}
			p.to = c.Listen[0]
		}
		s.configs = append(s.configs, c)
		s.nodes = append(s.nodes, startNode(s.t, c, s.options))
	}
	if len(uris) == 1 { // somebody to wait for
		s.configs = append(s.configs, nodeConfig("n1", []string{s.url}))
	}
	s.t.Cleanup(func() {
		for _, n := range s.nodes {
			assert.NoError(s.t, n.Close())
		}
	})
}

// goWrong causes the fault of the way, and repairs it.
func (s *stage) goWrong() {
	switch s.way.fault {
	case "worker kill":
		if len(s.workers) > 0 {
			assert.NoError(s.t, s.workers[0].Close())
			s.workers[0] = startWorkerOf(s.t, s.hired[0], s.serves)
		}
		assert.NoError(s.t, s.nodes[0].Close())
		s.nodes[0] = startNode(s.t, s.configs[0], s.options)
	case "leader kill":
		s.member.kill()
		s.member = start(s.t, s.member.role)
	case "cut link":
		for _, p := range s.proxies[:1] {
			p.cut()
			time.Sleep(1500 * time.Millisecond)
			p.mend()
		}
	case "full disk":
		fillEtcd(s.t, s.etcd)
	}
}

// fillEtcd writes until there is no space, leaves it so for a second, and makes room as docs/operations.md says.
func fillEtcd(t *testing.T, at string) {
	c, err := clientv3.New(clientv3.Config{Endpoints: []string{at}, DialTimeout: 10 * time.Second})
	if !assert.NoError(t, err) {
		return
	}
	defer func() { assert.NoError(t, c.Close()) }()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	junk := string(make([]byte, 256<<10))
	for i := 0; err == nil; i++ {
		_, err = c.Put(ctx, fmt.Sprintf("junk/%d", i), junk)
	}
	assert.ErrorContains(t, err, "space")
	time.Sleep(time.Second)
	del, err := c.Delete(ctx, "junk/", clientv3.WithPrefix())
	if !assert.NoError(t, err) {
		return
	}
	_, err = c.Compact(ctx, del.Header.Revision, clientv3.WithCompactPhysical())
	assert.NoError(t, err)
	_, err = c.Defragment(ctx, at)
	assert.NoError(t, err)
	_, err = c.AlarmDisarm(ctx, &clientv3.AlarmMember{})
	assert.NoError(t, err)
}

// proxy is a link that can be cut.
type proxy struct {
	l  net.Listener
	to string

	mu    sync.Mutex
	down  bool
	conns []net.Conn
}

func newProxy(t *testing.T) *proxy {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	p := &proxy{l: l}
	t.Cleanup(func() {
		assert.NoError(t, l.Close())
		p.cut()
	})
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.carry(c)
		}
	}()
	return p
}

func (p *proxy) carry(c net.Conn) {
	defer func() { _ = c.Close() }()
	p.mu.Lock()
	if p.down {
		p.mu.Unlock()
		return
	}
	p.conns = append(p.conns, c)
	p.mu.Unlock()
	far, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer func() { _ = far.Close() }()
	go func() {
		_, _ = io.Copy(far, c)
		_ = far.Close()
	}()
	_, _ = io.Copy(c, far)
}

func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = true
	for _, c := range p.conns {
		_ = c.Close()
	}
	p.conns = nil
}

func (p *proxy) mend() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.down = false
}
