package endtoend

import (
	"bytes"
	"context"
	"fmt"
	"hash/crc32"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/control"
	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/host/worker"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/nvme/tcp/hosttest"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/trainmgr"
	"github.com/millrace/millrace/trainmgr/local"
	"github.com/millrace/millrace/trainmgr/remote"
)

// row is a row of the generated partitions.
type row struct {
	Label int32   `parquet:"label"`
	Int0  *int32  `parquet:"int_0,optional"`
	Cat0  int64   `parquet:"cat_0"`
	List0 []int64 `parquet:"list_0,list"`
}

const document = `name: lists
batch: 50
label: {column: label}
dense:
  - columns: [int_0]
    ops: [fill_null: 0, clamp: {min: 0}, log: {add: 1}]
sparse:
  - columns: [cat_0, list_0]
    ops: [sigrid_hash: {salt: 0, max: 1000}]
`

// narrowDocument is document with the narrow types of tensors, and with keys that are deduplicated.
const narrowDocument = "ids: auto\ndense_type: bfloat16\n" + document + `generated:
  - columns: [list_0]
    as: few
    deduplicate: true
    ops: [positive_modulus: 2]
`

// files returns the partitions by name, which are the same in every execution.
func files(t testing.TB, rows ...int) map[string][]byte {
	t.Helper()
	out := map[string][]byte{}
	for p, n := range rows {
		rng := rand.New(rand.NewPCG(uint64(p), 3))
		all := make([]row, n)
		for i := range all {
			r := &all[i]
			r.Label, r.Cat0 = int32(rng.IntN(2)), rng.Int64N(1<<40)
			if rng.IntN(4) > 0 {
				v := int32(rng.IntN(5000))
				r.Int0 = &v
			}
			for range rng.IntN(5) {
				r.List0 = append(r.List0, rng.Int64N(1<<40))
			}
		}
		var b bytes.Buffer
		w := pq.NewGenericWriter[row](&b, pq.MaxRowsPerRowGroup(400), pq.PageBufferSize(1<<10),
			pq.Compression(&pq.Snappy))
		_, err := w.Write(all)
		require.NoError(t, err)
		require.NoError(t, w.Close())
		out[fmt.Sprintf("part-%05d.parquet", p)] = b.Bytes()
	}
	return out
}

// sum returns one number that depends on all tensors of a mini-batch.
func sum(mb *tensor.MiniBatch) uint32 {
	h := crc32.NewIEEE()
	for _, b := range [][]byte{tensor.Bytes(mb.Values32), tensor.Bytes(mb.Values64), tensor.Bytes(mb.Dense),
		tensor.Bytes(mb.Dense16), tensor.Bytes(mb.Lengths), tensor.Bytes(mb.Unique), tensor.Bytes(mb.Inverse),
		tensor.Bytes(mb.Label)} {
		fmt.Fprint(h, len(b), " ")
		_, _ = h.Write(b)
	}
	return h.Sum32()
}

// result holds the mini-batches that a trainer got: sums by name, and the order in which they came.
type result struct {
	sums  map[tensor.Name]uint32
	order []uint64
}

func newResult() *result { return &result{sums: map[tensor.Name]uint32{}} }

func (r *result) add(t require.TestingT, mb *tensor.MiniBatch) {
	require.NoError(t, mb.Validate())
	require.NotContains(t, r.sums, mb.Name, "it came twice")
	r.sums[mb.Name] = sum(mb)
	r.order = append(r.order, mb.Name.Number)
}

// plan holds the options that shape the jobs of these tests.
func plan() *apiv1.PlanOptions {
	return &apiv1.PlanOptions{Batch: 50, SplitBatches: 4, Seed: 9, Shuffle: "splits"}
}

// onOneMachine runs the job that plan shapes over package local.
func onOneMachine(t testing.TB, files map[string][]byte, epochs int) *result {
	t.Helper()
	return pipelineOnOneMachine(t, document, files, epochs)
}

// pipelineOnOneMachine does what onOneMachine does for another pipeline than document.
func pipelineOnOneMachine(t testing.TB, document string, files map[string][]byte, epochs int) *result {
	t.Helper()
	spec, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	return specOnOneMachine(t, spec, files, epochs)
}

// openHere opens the partitions on this machine.
func openHere(t testing.TB, files map[string][]byte) *host.Manager {
	t.Helper()
	dir := t.TempDir()
	var paths []string
	for _, name := range names(files) {
		paths = append(paths, filepath.Join(dir, name))
		require.NoError(t, os.WriteFile(paths[len(paths)-1], files[name], 0o644))
	}
	m, err := local.Open(t.Context(), local.Config{Files: source.ParseLocations(paths...),
		DriveOptions: host.DriveOptions{Engine: host.EngineCPU}})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, m.Close()) })
	return m
}

// specOnOneMachine does what onOneMachine does for a pipeline that may use vocabularies.
func specOnOneMachine(t testing.TB, spec *pipeline.Spec, files map[string][]byte, epochs int) *result {
	t.Helper()
	return jobOnOneMachine(t, trainmgr.Options{Pipeline: spec, Batch: 50, SplitBatches: 4, Seed: 9, Epochs: epochs}, files)
}

// jobOnOneMachine does what onOneMachine does for any options of the job.
func jobOnOneMachine(t testing.TB, o trainmgr.Options, files map[string][]byte) *result {
	t.Helper()
	o.Order, o.AllDrives = dataset.Deterministic, true
	j, err := trainmgr.Submit(t.Context(), openHere(t, files), o)
	require.NoError(t, err)
	defer func() { require.NoError(t, j.Close()) }()
	r := newResult()
	for mb, err := range j.MiniBatches(t.Context()) {
		require.NoError(t, err)
		r.add(t, mb)
	}
	return r
}

func names(files map[string][]byte) []string { return slices.Sorted(maps.Keys(files)) }

// deal puts each partition on one of n drives.
func deal(files map[string][]byte, n int) []map[string][]byte {
	out := make([]map[string][]byte, n)
	for i, name := range names(files) {
		if out[i%n] == nil {
			out[i%n] = map[string][]byte{}
		}
		out[i%n][name] = files[name]
	}
	return out
}

var drives int // makes mem: drives' names unique

// makeDrive makes a drive of a kind that holds files, and returns its URI. The drive lasts as long as the test.
func makeDrive(t testing.TB, kind string, files map[string][]byte) string {
	return makeDriveOf(t, kind, smallDrive, files, nil)
}

// smallDrive are the sizes of drives whose memory has no room for lookup tables.
const smallDrive = "size=8MiB&slm=32MiB"

// makeDriveOf does what makeDrive does, with the sizes of a query and the flash that wrap returns. A drive in a file
// has its own flash again when its node opens it.
func makeDriveOf(t testing.TB, kind, query string, files map[string][]byte,
	wrap func(controller.Flash) controller.Flash) string {
	t.Helper()
	drives++
	uri := "file:" + filepath.Join(t.TempDir(), "d.flash")
	if kind == "mem" {
		uri = fmt.Sprintf("mem:endtoend-%d-%d", os.Getpid(), drives)
	}
	dev, err := sdk.Create(t.Context(), uri+"?"+query, sdk.DeviceOptions{WrapFlash: wrap})
	require.NoError(t, err)
	vol, err := volume.Open(t.Context(), dev)
	require.NoError(t, err)
	for name, b := range files {
		require.NoError(t, vol.Put(t.Context(), name, int64(len(b)), bytes.NewReader(b)))
	}
	if kind == "mem" { // it lives as long as somebody has it open
		t.Cleanup(func() { assert.NoError(t, dev.Close()) })
		return uri
	}
	require.NoError(t, dev.Close())
	if kind == "tcp" {
		return serveDrive(t, uri, wrap)
	}
	return uri
}

const nqn = "nqn.2014-08.org.nvmexpress:uuid:11111111-2222-4333-8444-555555555555"

// serveDrive serves a drive in a file over NVMe/TCP.
func serveDrive(t testing.TB, uri string, wrap func(controller.Flash) controller.Flash) string {
	t.Helper()
	drive, err := csd.Open(csd.Options{Path: strings.TrimPrefix(uri, "file:"), SLMBytes: 32 << 20, NQN: nqn,
		WrapFlash: wrap})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, drive.Close()) })
	return "tcp://" + hosttest.Serve(t, drive.Subsystem(), tcp.TargetOptions{}) + "/" + nqn
}

func logger() *slog.Logger {
	if os.Getenv("MILLRACE_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// controlOptions returns the options of a member that notices deaths within a second.
func controlOptions(data string) control.Options {
	return control.Options{
		Data: data, Listen: "127.0.0.1:0", LeaderTTL: time.Second, Tick: 20 * time.Millisecond,
		Election: 200 * time.Millisecond,
		Beat:     100 * time.Millisecond, DeadAfter: 700 * time.Millisecond, ScaleEvery: 50 * time.Millisecond,
		Logger: logger(),
	}
}

// startControl starts a member in this process.
func startControl(t testing.TB, o control.Options) *control.Server {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	s, err := control.Start(ctx, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	require.NoError(t, s.WaitReady(ctx))
	return s
}

// nodeConfig returns the configuration of a node over drives called d0, d1, ...
func nodeConfig(name string, members []string, uris ...string) node.Config {
	c := node.DefaultConfig()
	c.Name, c.Listen, c.Measure, c.Control = name, []string{"127.0.0.1:0"}, node.Duration(time.Millisecond), members
	c.Runs.Abandoned, c.Runs.BusyWait = node.Duration(500*time.Millisecond), node.Duration(200*time.Millisecond)
	for i, uri := range uris {
		c.Drives = append(c.Drives, node.DriveConfig{Name: fmt.Sprintf("d%d", i), URI: uri})
	}
	return c
}

func startNode(t testing.TB, c node.Config, o node.Options) *node.Agent {
	t.Helper()
	o.Logger, o.Probe = logger(), 20*time.Millisecond
	a, err := node.Start(t.Context(), c, o)
	require.NoError(t, err)
	return a
}

// runNode starts a node that runs until the test ends.
func runNode(t testing.TB, c node.Config) {
	t.Helper()
	a := startNode(t, c, node.Options{})
	t.Cleanup(func() { assert.NoError(t, a.Close()) })
}

// oneNode starts a control plane and a node, n0, that holds partitions, and returns a client.
func oneNode(t testing.TB, data map[string][]byte) (*control.Server, *remote.Client) {
	t.Helper()
	s := startControl(t, controlOptions(t.TempDir()))
	runNode(t, nodeConfig("n0", []string{s.URL()}, makeDrive(t, "mem", data)))
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	return s, c
}

// someNodes starts a control plane and n nodes that hold partitions, with replicas on the next node.
func someNodes(t testing.TB, n int, data map[string][]byte) (*control.Server, map[string]bool, *remote.Client) {
	t.Helper()
	s := startControl(t, controlOptions(t.TempDir()))
	nodes := startNodes(t, s.URL(), n, data)
	c := dial(t, s.URL())
	awaitPartitions(t, c, nodes, len(data))
	return s, nodes, c
}

// workerConfig is the configuration of a worker without data.
func workerConfig(name string, members []string) worker.Config {
	c := worker.DefaultConfig()
	c.Name, c.Listen, c.Control, c.Measure = name, []string{"127.0.0.1:0"}, members, node.Duration(time.Millisecond)
	c.Threads, c.Memory, c.Jobs, c.ReadTime = 1, 128<<20, 4, node.Duration(2*time.Second)
	c.Runs.Abandoned, c.Runs.BusyWait = node.Duration(500*time.Millisecond), node.Duration(200*time.Millisecond)
	return c
}

func startWorker(t testing.TB, c worker.Config) *node.Agent {
	t.Helper()
	return startWorkerOf(t, c, nil)
}

// startWorkerOf does what startWorker does, for a worker that serves one rank alone unless serves is nil.
func startWorkerOf(t testing.TB, c worker.Config, serves *worker.Rank) *node.Agent {
	t.Helper()
	a, err := worker.Start(t.Context(), c, worker.Options{Logger: logger(), Serves: serves})
	require.NoError(t, err)
	return a
}

// awaitReady waits until nodes of these names take splits.
func awaitReady(t testing.TB, c *remote.Client, names ...string) {
	t.Helper()
	var list []*apiv1.NodeRecord
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var err error
		list, err = c.Nodes(t.Context())
		require.NoError(t, err)
		ready := 0
		for _, n := range list {
			if drives := n.GetStatus().GetDrives(); slices.Contains(names, n.GetStatus().GetName()) && n.State == "ready" &&
				len(drives) > 0 && drives[0].State == "ready" {
				ready++
			}
		}
		if ready == len(names) {
			return
		}
	}
	require.FailNow(t, "they do not get ready", "%v: %v", names, list)
}

// dial returns a client of members.
func dial(t testing.TB, members ...string) *remote.Client {
	t.Helper()
	c, err := remote.Dial(remote.Options{Control: members, Patience: time.Minute, Logger: logger()})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

// awaitPartitions waits until the ready nodes hold the given number of partitions. Its failure reports the
// partitions that they hold instead.
func awaitPartitions(t testing.TB, c *remote.Client, nodes map[string]bool, want int) {
	t.Helper()
	var list []*apiv1.NodeRecord
	for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		var err error
		list, err = c.Nodes(t.Context())
		require.NoError(t, err)
		seen := map[string]bool{}
		for _, n := range list {
			if n.State == "ready" && nodes[n.Status.Name] {
				for _, d := range n.Status.Drives {
					for _, p := range d.Partitions {
						seen[p] = true
					}
				}
			}
		}
		if len(seen) == want {
			return
		}
	}
	require.FailNow(t, "the nodes do not hold what they should", "%d partitions wanted: %v", want, list)
}

// check compares the mini-batches of a trainer with those that one machine makes.
func check(t require.TestingT, want, got *result, ordered bool) {
	var missing []string
	for name := range want.sums {
		if _, ok := got.sums[name]; !ok {
			missing = append(missing, fmt.Sprintf("%d/%d", name.Epoch, name.Number))
		}
	}
	require.Empty(t, missing, "never came, of %d", len(want.sums))
	require.Equal(t, want.sums, got.sums)
	if ordered {
		require.Equal(t, want.order, got.order)
	}
}
