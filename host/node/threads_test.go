package node

import (
	"fmt"
	"net/http"
	"runtime"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestDrivesInFilesDivideTheCores checks how many engine threads every drive of a configuration gets, on machines of
// several sizes.
func TestDrivesInFilesDivideTheCores(t *testing.T) {
	file := func(n int) DriveConfig { return DriveConfig{URI: fmt.Sprintf("file:d%d", n)} }
	for name, c := range map[string]struct {
		cores  int
		drives []DriveConfig
		want   []int
	}{
		"one drive has all cores":       {8, []DriveConfig{file(0)}, []int{8}},
		"several have equal parts":      {8, []DriveConfig{file(0), file(1), file(2)}, []int{2, 2, 2}},
		"each has one at least":         {2, []DriveConfig{file(0), file(1), file(2)}, []int{1, 1, 1}},
		"at most what a drive may have": {1000, []DriveConfig{file(0)}, []int{sdk.MaxThreads}},
		"a configured number is taken":  {8, []DriveConfig{{URI: "file:a", Threads: 5}, file(1)}, []int{5, 3}},
		"that of a URI is its own":      {8, []DriveConfig{{URI: "file:a?threads=2"}, file(1)}, []int{0, 6}},
		"a drive in memory has one":     {8, []DriveConfig{{URI: "mem:"}, file(1)}, []int{0, 7}},
		"or as many as its URI says":    {8, []DriveConfig{{URI: "mem:?threads=3"}, file(1)}, []int{0, 5}},
		"one without flash has one":     {8, []DriveConfig{{URI: "file:c?size=0"}, file(1)}, []int{0, 7}},
		"a drive elsewhere takes none": {8, []DriveConfig{{URI: "tcp://h:1/n"}, {URI: "nvme:/x"}, file(1)},
			[]int{0, 0, 8}},
		"the CPU beside it has one":       {8, []DriveConfig{{URI: "tcp://h:1/n", Engine: "cpu"}, file(1)}, []int{0, 7}},
		"or as many as it is given":       {8, []DriveConfig{{URI: "mem:", Engine: "cpu", Threads: 3}, file(1)}, []int{3, 5}},
		"the CPU beside a file shares":    {8, []DriveConfig{{URI: "file:a", Engine: "cpu"}, file(1)}, []int{4, 4}},
		"the reference engine is not for": {8, []DriveConfig{{URI: "file:a", Engine: "reference"}, file(1)}, []int{0, 8}},
		"an accelerator computes": {8, []DriveConfig{{URI: "file:a", Accelerator: "tcp://h:1/n"}, file(1)},
			[]int{0, 8}},
		"more configured than there are": {4, []DriveConfig{{URI: "file:a", Threads: 9}, file(1)}, []int{9, 1}},
	} {
		assert.Equal(t, c.want, (&Config{Drives: c.drives}).divideCores(c.cores), name)
	}
}

// TestThreadsMakeTheSameMiniBatches checks that a drive in a file makes the same bytes with one engine thread and with
// several, whose splits are fetched at once, and that the node tells its threads and the streams that follow from them.
func TestThreadsMakeTheSameMiniBatches(t *testing.T) {
	files := map[string][]byte{"a.parquet": nodetest.Partition(t, 1, 1500), "b.parquet": nodetest.Partition(t, 2, 900)}
	for _, c := range []struct{ configured, threads, streams int }{
		{1, 1, 2}, {2, 2, 3}, {5, 5, 6}, {0, runtime.GOMAXPROCS(0), 0},
	} {
		f := start(t, func(conf *Config) { conf.Drives[0].Threads = c.configured }, fill(t, "file", files))
		j := f.prepare(dataset.Options{SplitBatches: 3})
		r, err := f.node.Describe(t.Context(), &apiv1.DescribeRequest{})
		require.NoError(t, err)
		assert.EqualValues(t, min(c.threads, sdk.MaxThreads), r.Status.Drives[0].Threads)
		if c.configured > 0 {
			assert.EqualValues(t, c.streams, r.Status.Drives[0].Streams, "%d threads", c.threads)
		}
		assert.Equal(t, truth(t, files, j), f.epochAtOnce(j, "d0"), "%d threads", c.threads)
	}
}

// epochAtOnce fetches every mini-batch of the plan from one drive, all splits at once.
func (f *fixture) epochAtOnce(j *nodetest.Job, drive string) [][]byte {
	f.t.Helper()
	frames := make([][]byte, j.Plan.MiniBatches())
	var running sync.WaitGroup
	for s := range j.Plan.All() {
		running.Add(1)
		go func() {
			defer running.Done()
			for i := range uint64(s.Fragments) {
				n := s.FirstFragment + i
				link := f.link(j, drive, n, s.FirstFragment+uint64(s.Fragments))
				status, b, _, err := f.try(f.t.Context(), link)
				if !assert.NoError(f.t, err) || !assert.Equal(f.t, http.StatusOK, status, "%s", b) {
					return
				}
				frames[n] = b
			}
		}()
	}
	running.Wait()
	return frames
}

// TestConfiguredThreads checks the limits of threads, and that a number beside another in the URI is refused.
func TestConfiguredThreads(t *testing.T) {
	for doc, want := range map[string]string{
		"{name: a, uri: 'file:x', threads: -1}":                           "drives[0]: threads",
		"{name: a, uri: 'file:x', threads: 0}":                            "",
		"{name: a, uri: 'file:x', threads: 256}":                          "",
		"{name: a, uri: 'file:x', threads: 257}":                          "drives[0]: threads (at most 256)",
		"{name: a, uri: 'file:x?threads=3', threads: 3}":                  "",
		"{name: a, uri: 'file:x?threads=2', threads: 3}":                  "drives[0].threads: 3, and the uri says 2",
		"{name: a, uri: 'file:x?threads=2', threads: 3, engine: cpu}":     "",
		"{name: a, uri: 'file:x?threads=2', threads: 3, engine: drive}":   "drives[0].threads: 3, and the uri says 2",
		"{name: a, uri: 'tcp://h:1/n', threads: 3, engine: cpu}":          "",
		"{name: a, uri: 'file:x', threads: 2, jobs: 9223372036854775807}": "", // its memory is bounded
	} {
		_, err := ParseConfig([]byte("drives: [" + doc + "]\n"))
		if want == "" {
			assert.NoError(t, err, doc)
			continue
		}
		assert.ErrorContains(t, err, want, doc)
	}
}

// TestExaminedEngines checks what config check prints about threads and memory.
func TestExaminedEngines(t *testing.T) {
	memory := 2 * host.MemoryOfStreams(5) // of two jobs with four threads
	for name, c := range map[string]struct {
		drives []DriveConfig
		cores  int
		memory uint64
		want   []Finding
	}{
		"one thread": {[]DriveConfig{{Name: "a", URI: "file:x"}}, 1, csd.DefaultSLM,
			[]Finding{{"drives[0] a", Fine, "1 engine threads, 1GiB of memory for 2 jobs"}}},
		"four, and memory for their streams": {[]DriveConfig{{Name: "a", URI: "file:x"}}, 4, memory,
			[]Finding{{"drives[0] a", Fine, "4 engine threads, 1312MiB of memory for 2 jobs"}}},
		"a byte less than they may take": {[]DriveConfig{{Name: "a", URI: "file:x"}}, 4, memory - 1,
			[]Finding{{"drives[0] a", Fine, "4 engine threads, 1312MiB of memory for 2 jobs"},
				{"drives", Warning, "their memory may grow to 1375731712 bytes, of 1375731711 that this machine has: " +
					"give fewer threads or jobs, or say slm= in their uris"}}},
		"memory of the URI": {[]DriveConfig{{Name: "a", URI: "file:x?slm=64MiB"}}, 4, 64 << 20,
			[]Finding{{"drives[0] a", Fine, "4 engine threads, 64MiB of memory for 2 jobs"}}},
		"more threads than cores": {[]DriveConfig{{Name: "a", URI: "file:x?slm=64MiB", Threads: 5}}, 4, 0,
			[]Finding{{"drives[0] a", Fine, "5 engine threads, 64MiB of memory for 2 jobs"},
				{"drives", Warning, "they have 5 engine threads on 4 cores: they share the cores, and P does not add up"}}},
		"threads of a drive in memory": {[]DriveConfig{{Name: "a", URI: "mem:", Threads: 2}}, 4, 0,
			[]Finding{{"drives[0] a", Warning, "threads: 2 has no effect: what computes for this drive has threads of " +
				"its own; say threads=2 in its uri, where it lies in this process"}}},
		"threads beside a computing drive elsewhere": {
			[]DriveConfig{{Name: "a", URI: "tcp://h:1/n", Threads: 2, Engine: "drive"}}, 4, 0,
			[]Finding{{"drives[0] a", Warning, "threads: 2 has no effect: what computes for this drive has threads of " +
				"its own; say threads=2 in its uri, where it lies in this process"}}},
		"threads beside a drive that may be plain": {
			[]DriveConfig{{Name: "a", URI: "tcp://h:1/n", Threads: 2}}, 4, 0, nil},
	} {
		x := &examination{c: &Config{Drives: c.drives}}
		x.examineEngines(c.cores, c.memory)
		assert.Equal(t, c.want, x.findings, name)
	}
}
