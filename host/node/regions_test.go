package node

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
)

// fillRegions puts files on a new drive of several regions in a file, and returns a URI of each region.
func fillRegions(t testing.TB, files map[string][]byte, regions int) (uris []string) {
	t.Helper()
	uri := fill(t, "file", files)
	setRegions(t, uri, regions)
	for region := range regions {
		uris = append(uris, fmt.Sprintf("%s?slm=%dMiB&region=%d", uri, 32*regions, region))
	}
	return uris
}

// setRegions changes the number of regions of a drive in a file.
func setRegions(t testing.TB, uri string, regions int) {
	t.Helper()
	dev, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{Regions: regions})
	require.NoError(t, err)
	require.NoError(t, dev.Close())
}

// describe returns the node's status.
func (f *fixture) describe() *apiv1.NodeStatus {
	f.t.Helper()
	r, err := f.node.Describe(f.t.Context(), &apiv1.DescribeRequest{})
	require.NoError(f.t, err)
	return r.Status
}

// TestRegionsAreDrives checks that a node offers each region of a drive as a drive of its own, and that two jobs run at
// once in two regions: of a drive in a file that the node opens, and of one that another process serves.
func TestRegionsAreDrives(t *testing.T) {
	files := content(t)
	for _, kind := range []string{"file", "tcp"} {
		uris := fillRegions(t, files, 3)
		if kind == "tcp" {
			wire := serveDrive(t, strings.Split(uris[0], "?")[0])
			for region := range uris {
				uris[region] = fmt.Sprintf("%s?region=%d", wire.uri(), region)
			}
		}
		f := start(t, nil, uris...)
		list := f.describe().Drives
		require.Len(t, list, 3)
		for region, d := range list {
			assert.Equal(t, list[0].Uuid, d.Uuid, "they belong to one drive")
			assert.EqualValues(t, region, d.Region)
			assert.EqualValues(t, 3, d.Regions)
			assert.Equal(t, slices.Sorted(maps.Keys(files)), d.Partitions, "each holds what the drive holds")
			assert.Equal(t, list[0].FreeBytes, d.FreeBytes)
		}
		jobs := []*nodetest.Job{f.prepare(dataset.Options{SplitBatches: 4}),
			f.prepare(dataset.Options{SplitBatches: 5, Seed: 1})}
		var wg sync.WaitGroup
		for i, j := range jobs {
			want := truth(t, files, j)
			for _, drive := range []string{"d0", "d2"}[i:] {
				wg.Go(func() { assert.Equal(t, want, f.epochAtOnce(j, drive), "%s: job %d in %s", kind, i, drive) })
			}
		}
		wg.Wait()
		require.NoError(t, f.Close())
	}
}

// TestWhatIsPutIsInEveryRegion checks that partitions that are put through several regions at once lie on the drive
// whole, and that every region lists them.
func TestWhatIsPutIsInEveryRegion(t *testing.T) {
	var puts []upload
	for i := range 4 {
		p := putOf(t, fmt.Sprintf("new%d.parquet", i), nodetest.Partition(t, uint64(10+i), 300+i))
		p.drive = fmt.Sprintf("d%d", i%2)
		puts = append(puts, p)
	}
	f := start(t, nil, fillRegions(t, map[string][]byte{"a.parquet": nodetest.Partition(t, 1, 50)}, 2)...)
	free := f.describe().Drives[0].FreeBytes
	var wg sync.WaitGroup
	for _, p := range puts {
		wg.Go(func() {
			status, text := f.put(p)
			assert.Equal(t, http.StatusCreated, status, text)
		})
	}
	wg.Wait()
	for _, d := range f.describe().Drives {
		assert.Len(t, d.Partitions, 5, d.Name)
		assert.Less(t, d.FreeBytes, free)
		for _, p := range puts {
			v, err := f.node.Verify(t.Context(), &apiv1.VerifyRequest{Drive: d.Name, Partition: p.name})
			require.NoError(t, err)
			assert.Equal(t, p.sum, hex.EncodeToString(v.Sha256), "%s in %s", p.name, d.Name)
			assert.Equal(t, p.sum, hex.EncodeToString(v.KeptSha256), "the regions have one record of the drive's contents")
		}
	}
	again := puts[0]
	again.drive = "d1"
	status, text := f.put(again)
	assert.Equal(t, http.StatusOK, status, "through another region it is the same partition: %s", text)
}

// TestRegionsGetTheirImage checks that an image is rolled out region by region while a job runs in them, and that the
// job's clients get every mini-batch byte for byte. The image is loaded into the drive once.
func TestRegionsGetTheirImage(t *testing.T) {
	files := content(t)
	m := anImage(t)
	uris := fillRegions(t, files, 2)
	f := start(t, nil, uris...)
	j := f.prepare(dataset.Options{SplitBatches: 4})
	want := truth(t, files, j)
	require.NoError(t, f.Close())

	f = rollOut(t, m, j, want, uris)
	d, err := f.drives.Drive("d0")
	require.NoError(t, err)
	images, err := d.Device().ImageLog(t.Context())
	require.NoError(t, err)
	holding := 0
	for _, s := range images.Slots {
		if s.Image == m.ID {
			holding++
		}
	}
	assert.Equal(t, 1, holding, "the slots are a library for all regions")
	require.NoError(t, f.Close())
	f = start(t, nil, uris...)
	assert.Equal(t, []string{m.ID.String(), m.ID.String()}, f.imagesOf(), "each region keeps it")
}

// stuckRegion is a compute device that makes no progress in one region while stuck is set.
type stuckRegion struct {
	controller.Compute
	region int
	stuck  *atomic.Bool
	waits  chan struct{} // capacity 1: an execution is stuck
}

// Execute implements controller.Compute.
func (s *stuckRegion) Execute(ctx context.Context, x controller.Execution) (uint64, nvme.Status) {
	for x.Region == s.region && s.stuck.Load() {
		select {
		case s.waits <- struct{}{}:
		default:
		}
		select {
		case <-ctx.Done():
			return 0, nvme.CommandAborted
		case <-time.After(time.Millisecond):
		}
	}
	return s.Compute.Execute(ctx, x)
}

// TestARegionThatSpins checks that the jobs in a drive's other regions go on while one region makes no progress, that
// draining a region concerns the region alone, and that the region's split ends when it makes progress again.
func TestARegionThatSpins(t *testing.T) {
	files := content(t)
	var stuck atomic.Bool
	waits := make(chan struct{}, 1)
	c := DefaultConfig()
	c.Name, c.Listen, c.Measure = "n0", []string{"127.0.0.1:0"}, Duration(time.Millisecond)
	c.Runs.BusyWait = Duration(time.Minute)
	for region, uri := range fillRegions(t, files, 2) {
		c.Drives = append(c.Drives, DriveConfig{Name: fmt.Sprintf("d%d", region), URI: uri})
	}
	f := startWith(t, c, Options{Probe: 20 * time.Millisecond, Device: func(_ string, o *sdk.DeviceOptions) {
		o.WrapCompute = func(c controller.Compute) controller.Compute { return &stuckRegion{c, 0, &stuck, waits} }
	}})
	defer stuck.Store(false) // before the node is closed, which waits for the execution
	first, second := f.prepare(dataset.Options{SplitBatches: 4}), f.prepare(dataset.Options{SplitBatches: 5, Seed: 1})
	want := [][][]byte{truth(t, files, first), truth(t, files, second)}
	stuck.Store(true)
	late := make(chan []byte, 1)
	go func() {
		_, b, _, err := f.try(t.Context(), f.link(first, "d0", 0, 4))
		assert.NoError(t, err)
		late <- b
	}()
	<-waits
	assert.Equal(t, want[1], f.epoch(second, "d1"))
	assert.Equal(t, want[0], f.epoch(first, "d1"), "of the stuck job, too")
	assert.Equal(t, "ready", f.state("d1"))

	_, err := f.node.Drain(t.Context(), &apiv1.DrainRequest{Drive: "d0", Drain: true})
	require.NoError(t, err)
	status, _, _ := f.get(f.link(second, "d0", 0, 5))
	assert.Equal(t, http.StatusServiceUnavailable, status)
	assert.True(t, bytes.Equal(want[1][0], f.frame(second, "d1", 0, 5)))
	stuck.Store(false)
	assert.True(t, bytes.Equal(want[0][0], <-late), "a drained region ends the splits that run")
	_, err = f.node.Drain(t.Context(), &apiv1.DrainRequest{Drive: "d0"})
	require.NoError(t, err)
	assert.Equal(t, want[1], f.epoch(second, "d0"))
}

// TestARegionThatIsGone checks that a drive that comes back with fewer regions fails the region that it lacks and
// nothing else, and that the region is a drive again when the drive has it.
func TestARegionThatIsGone(t *testing.T) {
	files := content(t)
	uris := fillRegions(t, files, 3)
	path := strings.Split(uris[0], "?")[0]
	setRegions(t, path, 2)
	f := start(t, nil, uris...)
	f.wait("the region to be missed", func() bool { return strings.HasPrefix(f.state("d2"), "failed: ") })
	assert.Contains(t, f.state("d2"), "no such region")
	j := f.prepare(dataset.Options{SplitBatches: 4})
	want := truth(t, files, j)
	assert.Equal(t, want, f.epoch(j, "d1"))
	for _, d := range f.describe().Drives[:2] {
		assert.EqualValues(t, 2, d.Regions)
	}
	require.NoError(t, f.Close())
	setRegions(t, path, 3)
	f = start(t, nil, uris...)
	_, err := f.node.Prepare(t.Context(), j.PrepareRequest)
	require.NoError(t, err)
	assert.Equal(t, want, f.epoch(j, "d2"))
}

// TestARegionThatAnotherHostOwns checks that a job waits for a region that another host owns, as it waits for memory,
// and that the region is not taken for one that has failed.
func TestARegionThatAnotherHostOwns(t *testing.T) {
	files := content(t)
	uris := fillRegions(t, files, 2)
	wire := serveDrive(t, strings.Split(uris[0], "?")[0])
	f := start(t, nil, wire.uri()+"?region=0", wire.uri()+"?region=1")
	j := f.describeJob(nodetest.Document, dataset.Options{SplitBatches: 4})
	want := truth(t, files, j)
	other, err := sdk.Open(t.Context(), wire.uri()+"?region=1", sdk.DeviceOptions{})
	require.NoError(t, err)
	_, err = other.ReserveSLM(t.Context(), 4096)
	require.NoError(t, err)
	_, err = f.node.Prepare(t.Context(), j.PrepareRequest)
	require.Equal(t, connect.CodeResourceExhausted, connect.CodeOf(err), "%v", err)
	require.ErrorContains(t, err, "another host owns the region")
	require.NoError(t, other.Close())
	_, err = f.node.Prepare(t.Context(), j.PrepareRequest)
	require.NoError(t, err)
	assert.Equal(t, want, f.epoch(j, "d1"))
	_, b, _ := f.get(f.base + "/metrics")
	assert.Contains(t, string(b), `millrace_device_opens_total{drive="d1"} 1`)
}

// TestRegionsOfAConfiguration checks which drives may be listed once for each region.
func TestRegionsOfAConfiguration(t *testing.T) {
	const twice, notIn = "drives[1].uri: it is the drive that a is, too", "what computes for "
	for _, c := range []struct{ a, b, want string }{
		{"'file:x?region=0'", "'file:./x?region=6'", ""},
		{"'file:x'", "'file:x?region=1'", ""},
		{"'file:x?regions=2&region=1'", "'file:x?regions=2&region=0'", ""},
		{"'file:x?slm=1GiB', jobs: 1", "'file:x?slm=1GiB&region=1', jobs: 3", ""},
		{"'tcp://h:1/n?region=1'", "'tcp://h:1/n?region=2&commands=standard'", ""},
		{"'tcp://h:1/n?region=1'", "'tcp://h:2/n?region=1'", ""}, // two drives
		{"'nvme:/dev/nvme0?region=1'", "'nvme:/dev/nvme0?region=2', engine: drive", ""},
		{"'mem:x?region=1'", "'mem:x?region=2'", ""},
		{"'mem:?region=1'", "'mem:?region=1'", ""}, // two drives
		{"'mem:x'", "'mem:x', engine: cpu", ""},
		{"'file:x?region=1'", "'file:./x?region=1'", twice},
		{"'nvme:/dev/nvme0'", "'nvme:/dev/../dev/nvme0?region=0'", twice},
		{"'file:x'", "'file:x?region=7'", "drives[1].uri"},
		{"'file:x?regions=2&region=2'", "'file:y'", "drives[0].uri: region=2: regions=2 has 0 to 1"},
		{"'file:x', engine: cpu", "'file:x?region=1'", notIn + "a"},
		{"'tcp://h:1/n'", "'tcp://h:1/n?region=1', engine: reference", notIn + "b"},
		{"'tcp://h:1/n'", "'tcp://h:1/n?region=1', accelerator: 'mem:card?size=0'", notIn + "b"},
		{"'file:x?slm=1GiB'", "'file:x?slm=2GiB&region=1'", "drives[1]: a and b are regions of one drive in a file"},
		{"'file:x?regions=2'", "'file:x?region=1'", "say the same size, lba, slm, threads and regions"},
		{"'file:x', threads: 2", "'file:x?region=1'", "say the same threads"},
		{"'file:x', jobs: 1", "'file:x?region=1'", "say the same jobs, streams and slm"},
		{"'file:x', slm: 64MiB", "'file:x?region=1', slm: 65MiB", "say the same jobs, streams and slm"},
		{"'file:x', streams: 1", "'file:x?region=1', streams: 2", "say the same jobs, streams and slm"},
	} {
		doc := fmt.Sprintf("drives: [{name: a, uri: %s}, {name: b, uri: %s}]\n", c.a, c.b)
		_, err := ParseConfig([]byte(doc))
		if c.want == "" {
			assert.NoError(t, err, doc)
			continue
		}
		assert.ErrorContains(t, err, c.want, doc)
	}
}

// TestRegionsDivideThreadsAndMemory checks the engine threads and the memory that regions of a drive in a file get, and
// that the memory of a drive is counted once.
func TestRegionsDivideThreadsAndMemory(t *testing.T) {
	regions := []DriveConfig{{Name: "a", URI: "file:x"}, {Name: "b", URI: "file:x?region=1"}}
	c := &Config{Drives: append(regions, DriveConfig{Name: "c", URI: "file:y"})}
	assert.Equal(t, []int{3, 3, 3}, c.divideCores(9), "a region has threads of its own")
	var counts []int
	for _, d := range c.driveConfigs(3) {
		counts = append(counts, d.Host.Regions)
	}
	assert.Equal(t, []int{2, 2, 1}, counts)

	x := &examination{c: &Config{Drives: regions}}
	x.examineEngines(2, 2*csd.DefaultSLM)
	fine := fmt.Sprintf("1 engine threads, %s of memory for 2 jobs", quantity.Text(csd.DefaultSLM))
	assert.Equal(t, []Finding{{"drives[0] a", Fine, fine}, {"drives[1] b", Fine, fine}}, x.findings)
	x = &examination{c: &Config{Drives: regions}}
	x.examineEngines(2, 2*csd.DefaultSLM-1)
	require.Len(t, x.findings, 3)
	assert.Contains(t, x.findings[2].Says, fmt.Sprintf("their memory may grow to %d bytes", 2*csd.DefaultSLM))

	u := sdk.URI{Scheme: "file"}
	for _, k := range []struct {
		threads, regions int
		memory           int64
	}{
		{1, 0, 0}, {1, 1, 0}, {1, 7, 7 * csd.DefaultSLM}, {4, 1, 2 * int64(host.MemoryOfStreams(5))},
		{4, 3, 6 * int64(host.MemoryOfStreams(5))},
	} {
		o := host.DriveOptions{Threads: k.threads, Jobs: 2, Regions: k.regions}
		threads, memory := o.FileDriveEngine(u)
		assert.Equal(t, k.threads, threads)
		assert.Equal(t, k.memory, memory, "%d threads, %d regions", k.threads, k.regions)
	}
	o := host.DriveOptions{Threads: 2, Jobs: 1 << 40, Regions: 7}
	_, memory := o.FileDriveEngine(u)
	assert.EqualValues(t, csd.MaxSLM, memory)
	o = host.DriveOptions{Threads: 2, Jobs: 900, Regions: 7}
	_, memory = o.FileDriveEngine(u)
	assert.EqualValues(t, csd.MaxSLM, memory, "all regions together")
}
