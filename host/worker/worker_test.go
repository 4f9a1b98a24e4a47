package worker

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestAWorkerGivesWhatAHolderGives: the frames are the same byte for byte, with and without mixed rows, whether the
// partitions' places come with the job or from the control plane. The worker announces a drive of reach any that holds
// no partitions; report and metrics count the rows and the bytes.
func TestAWorkerGivesWhatAHolderGives(t *testing.T) {
	holder, _ := startHolder(t, "n0", content(t))
	for _, o := range []dataset.Options{
		{SplitBatches: 5, Seed: 9}, {Shuffle: dataset.ShuffleRows, SplitBatches: 4, Window: 3, Epoch: 0},
	} {
		f := startWorker(t, nil)
		j := describeJob(t, holder, o)
		f.placeAll(j, copyAt("n0", holder.URLs()...))
		if o.Window > 0 {
			j.Sources = nil // the worker asks the control plane
		}
		f.prepare(j)
		f.sameAsHolder(j, holder)
		f.leader.mu.Lock()
		status := f.leader.status
		assert.Equal(t, o.Window > 0, f.leader.located > 0)
		f.leader.mu.Unlock()
		require.Len(t, status.Drives, 1)
		d := status.Drives[0]
		assert.Equal(t, []string{DriveName, "any", "cpu"}, []string{d.Name, d.Reach, d.ComputesOn})
		assert.Empty(t, d.Partitions)
		assert.Empty(t, status.Partitions)
		assert.EqualValues(t, 2, d.Threads)
		assert.False(t, d.Computes)

		m, err := f.node.Measure(t.Context(), &apiv1.MeasureRequest{Job: j.Digest[:], Drive: DriveName})
		require.NoError(t, err)
		assert.Positive(t, m.RowsPerSecond)
		report, err := f.node.Report(t.Context(), &apiv1.ReportRequest{Job: j.Digest[:]})
		require.NoError(t, err)
		var made struct {
			Rows   int64 `json:"rows"`
			Moved  int64 `json:"moved_bytes"`
			Engine string
		}
		require.NoError(t, json.Unmarshal(report.Drives[0], &made))
		assert.EqualValues(t, 1030+400+75, made.Rows, "what was made before P was measured is in the report")
		assert.Positive(t, made.Moved)
		assert.Equal(t, "cpu", made.Engine)
		for _, name := range []string{`millrace_worker_read_bytes_total{source="node"}`,
			"millrace_worker_read_requests_total", "process_cpu_seconds_total", "process_resident_memory_bytes"} {
			assert.Positive(t, f.metric(name), name)
		}
		for _, name := range []string{"millrace_worker_read_unneeded_bytes_total", "millrace_node_buffered_fragments"} {
			assert.GreaterOrEqual(t, f.metric(name), 0.0, name)
		}
		_, err = f.node.Finish(t.Context(), &apiv1.FinishRequest{Job: j.Digest[:]})
		require.NoError(t, err)
	}
}

// flipped is a body with one inverted bit in its first byte.
type flipped struct {
	io.ReadCloser
	done bool
}

func (f *flipped) Read(p []byte) (int, error) {
	n, err := f.ReadCloser.Read(p)
	if n > 0 && !f.done {
		p[0] ^= 1
		f.done = true
	}
	return n, err
}

// TestWhatIsReadIsChecked: bits that flip, answers that end early, answers without a checksum, other ranges than the
// requested ones, and nodes that break off, hang, or answer errors. All mini-batches are the holder's, from another
// copy.
func TestWhatIsReadIsChecked(t *testing.T) {
	holder, _ := startHolder(t, "n0", content(t))
	for name, c := range map[string]struct {
		change func(*http.Response) error
		metric string // the reason under which the failures are counted
	}{
		"a bit flips": {func(r *http.Response) error { r.Body = &flipped{ReadCloser: r.Body}; return nil }, "corrupt"},
		"it is cut": {func(r *http.Response) error {
			r.Body = struct {
				io.Reader
				io.Closer
			}{io.LimitReader(r.Body, 3), r.Body}
			return nil
		}, "truncated"},
		"no checksum": {nil, "other"},
		"another range": {func(r *http.Response) error {
			r.Header.Set("Content-Range", "bytes 0-0/1")
			return nil
		}, "other"},
		"another tag": {func(r *http.Response) error { r.Header.Set("Etag", `"0"`); return nil }, "changed"},
		"it breaks":   {func(*http.Response) error { panic(http.ErrAbortHandler) }, "unreachable"},
		"it hangs": {func(r *http.Response) error {
			<-r.Request.Context().Done()
			return r.Request.Context().Err()
		}, ""},
		"it has no time": {func(r *http.Response) error {
			r.StatusCode, r.Body = http.StatusServiceUnavailable, io.NopCloser(strings.NewReader("{}"))
			return nil
		}, "throttled"},
	} {
		t.Run(name, func(t *testing.T) {
			leaks.Check(t)
			bad, good := newProxy(t, holder), newProxy(t, holder)
			bad.do(c.change, c.change == nil)
			j := describeJob(t, holder, dataset.Options{SplitBatches: 4})
			// A worker begins at a random copy of each partition, so that one worker in eight never asks the bad copy.
			var f *fixture
			for workers := 0; bad.asked() == 0; workers++ {
				require.Less(t, workers, 30, "no worker asks the bad copy")
				f = startWorker(t, func(c *Config) { c.ReadTime = node.Duration(time.Second) })
				f.placeAll(j, copyAt("n1", bad.URL), copyAt("n2", good.URL))
				f.prepare(j)
				f.sameAsHolder(j, holder)
			}
			assert.Positive(t, good.asked())
			if c.metric != "" {
				assert.Positive(t, f.metric(`millrace_worker_read_failures_total{reason="`+c.metric+`"}`))
			}
			if c.metric == "changed" || c.metric == "" {
				return
			}
			// With the bad copy alone, Prepare fails with unavailable, which may be tried again.
			alone := startWorker(t, func(c *Config) { c.ReadTime, c.ReadTries = node.Duration(time.Second), 2 })
			alone.placeAll(j, copyAt("n1", bad.URL))
			_, err := alone.node.Prepare(t.Context(), j.PrepareRequest)
			require.ErrorContains(t, err, "unavailable")
		})
	}
}

// TestAHolderThatDisappears: the holder's connections end after a split's first mini-batch. The rest comes from the
// copy that the control plane names, and all mini-batches are the holder's.
func TestAHolderThatDisappears(t *testing.T) {
	leaks.Check(t)
	holder, _ := startHolder(t, "n0", content(t))
	first, second := newProxy(t, holder), newProxy(t, holder)
	f := startWorker(t, nil)
	j := describeJob(t, holder, dataset.Options{SplitBatches: 100})
	f.placeAll(j, copyAt("n1", first.URL))
	f.prepare(j)
	status, _ := f.fetch(f.base, j, DriveName, 0, 1)
	require.Equal(t, http.StatusOK, status)
	sources := j.Sources
	f.placeAll(j, copyAt("n2", second.URL))
	j.Sources = sources
	first.CloseClientConnections()
	first.Close()
	f.sameAsHolder(j, holder)
	assert.Positive(t, second.asked())
	f.leader.mu.Lock()
	defer f.leader.mu.Unlock()
	assert.Positive(t, f.leader.located)
}

// TestAPartitionThatChanged: a copy with another footer is passed over while there is another copy, and is an error
// with the code failed_precondition where there is none. If a partition is overwritten while it is read, the request
// for the split's last mini-batch fails.
func TestAPartitionThatChanged(t *testing.T) {
	leaks.Check(t)
	files := content(t)
	holder, dev := startHolder(t, "n0", files)
	other := map[string][]byte{}
	for name := range files {
		other[name] = nodetest.Partition(t, 99, 500)
	}
	impostor, _ := startHolder(t, "n1", other)
	j := describeJob(t, holder, dataset.Options{SplitBatches: 100})

	f := startWorker(t, nil)
	f.placeAll(j, copyAt("n1", impostor.URLs()...), copyAt("n0", holder.URLs()...))
	f.prepare(j)
	f.sameAsHolder(j, holder)

	alone := startWorker(t, nil)
	alone.placeAll(j, copyAt("n1", impostor.URLs()...))
	_, err := alone.node.Prepare(t.Context(), j.PrepareRequest)
	require.ErrorContains(t, err, "failed_precondition")
	require.ErrorContains(t, err, "not the one of the job's manifest")

	// One split is a whole partition. Its last mini-batch comes only after the footer was read again.
	late := startWorker(t, nil)
	late.placeAll(j, copyAt("n0", holder.URLs()...))
	late.prepare(j)
	split, err := j.Plan.Split(0)
	require.NoError(t, err)
	until := split.FirstFragment + uint64(split.Fragments)
	status, b := late.fetch(late.base, j, DriveName, split.FirstFragment, split.FirstFragment+1)
	require.Equal(t, http.StatusOK, status, "%s", b)
	manifest, err := dataset.ReadManifest(j.Manifest)
	require.NoError(t, err)
	name := manifest.Partitions[split.Partition].Name
	overwriteEnd(t, dev, files[name])
	status, b = late.fetch(late.base, j, DriveName, until-1, until)
	require.Equal(t, http.StatusBadRequest, status, "%s", b)
	assert.Contains(t, string(b), "failed_precondition")
	assert.Contains(t, string(b), name)
}

// overwriteEnd changes a byte of a partition's footer on a drive.
func overwriteEnd(t *testing.T, dev interface {
	ReadAt(p []byte, off int64) (int, error)
	WriteAt(p []byte, off int64) (int, error)
}, partition []byte) {
	t.Helper()
	all := make([]byte, 8<<20)
	_, err := dev.ReadAt(all, 0)
	require.NoError(t, err)
	at := bytes.Index(all, partition)
	require.NotEqual(t, -1, at)
	_, err = dev.WriteAt([]byte{'?'}, int64(at+len(partition)-12))
	require.NoError(t, err)
}

// TestAPartitionInAStore checks that a partition that no node holds is read from its URL, with its identity pinned.
func TestAPartitionInAStore(t *testing.T) {
	leaks.Check(t)
	files := content(t)
	holder, _ := startHolder(t, "n0", files)
	tag := "1"
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Etag", `"`+tag+`"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(files[strings.TrimPrefix(r.URL.Path, "/")]))
	}))
	defer store.Close()
	reads := func(c *Config) { c.Stores = []string{store.URL + "/"} }
	f := startWorker(t, reads)
	j := describeJob(t, holder, dataset.Options{SplitBatches: 4})
	manifest, err := dataset.ReadManifest(j.Manifest)
	require.NoError(t, err)
	for _, p := range manifest.Partitions {
		s := &apiv1.PartitionSource{Partition: p.Name, Url: store.URL + "/" + strings.ReplaceAll(p.Name, " ", "%20")}
		f.leader.place(s)
		j.Sources = append(j.Sources, s)
	}
	f.prepare(j)
	f.sameAsHolder(j, holder)

	tag = "2"
	changed := startWorker(t, reads)
	for _, s := range j.Sources {
		s.Identity = `etag:10:"1"`
		changed.leader.place(s)
	}
	_, err = changed.node.Prepare(t.Context(), j.PrepareRequest)
	require.ErrorContains(t, err, "failed_precondition")
}

// TestSourcesThatAWorkerDoesNotOpen: a worker opens no source that an honest worker would not announce, nor one outside
// of what its configuration names, whatever the control plane says.
func TestSourcesThatAWorkerDoesNotOpen(t *testing.T) {
	file := nodetest.Partition(t, 1, 1030)
	path := filepath.Join(t.TempDir(), "a.parquet")
	require.NoError(t, os.WriteFile(path, file, 0o600))
	holder, _ := startHolder(t, "n0", map[string][]byte{"a.parquet": file})
	var asked atomic.Int64
	store := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		w.Header().Set("Etag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(file))
	}))
	defer store.Close()
	f := startWorker(t, func(c *Config) {
		c.Stores, c.Partitions, c.ReadTries = []string{store.URL + "/rows/", "s3://rows/"}, nil, 2
	})
	j := describeJob(t, holder, dataset.Options{SplitBatches: 4})
	for uri, want := range map[string]string{
		"file://" + path:                 "not the URL of a store",
		path:                             "not the URL of a store",
		store.URL + "/other/a.parquet":   "may not read it",
		store.URL + "/rows/../a.parquet": "a segment . or ..",
		store.URL + "/rows/a.parquet?x":  "a query",
		strings.Replace(store.URL, "://", "://u:p@", 1) + "/rows/a.parquet": "a user name",
		"http://169.254.169.254/rows/a.parquet":                             "a link-local address",
		"s3://secrets/a.parquet":                                            "may not read it",
	} {
		s := &apiv1.PartitionSource{Partition: "a.parquet", Url: uri}
		f.leader.place(s)
		j.Sources = []*apiv1.PartitionSource{s}
		_, err := f.node.Prepare(t.Context(), j.PrepareRequest)
		assert.ErrorContains(t, err, want, uri)
	}
	assert.Zero(t, asked.Load())
	s := &apiv1.PartitionSource{Partition: "a.parquet", Url: store.URL + "/rows/a.parquet"}
	f.leader.place(s)
	j.Sources = []*apiv1.PartitionSource{s}
	f.prepare(j)
	f.sameAsHolder(j, holder)
	assert.Positive(t, asked.Load())
}

// TestJobsAreBounded: a worker takes as many jobs as its configuration allows; after a job is finished, it takes
// another.
func TestJobsAreBounded(t *testing.T) {
	holder, _ := startHolder(t, "n0", content(t))
	f := startWorker(t, func(c *Config) { c.Jobs = 1 })
	one := describeJob(t, holder, dataset.Options{SplitBatches: 4, Seed: 1})
	two := describeJob(t, holder, dataset.Options{SplitBatches: 4, Seed: 2})
	f.placeAll(one, copyAt("n0", holder.URLs()...))
	two.Sources = one.Sources
	f.prepare(one)
	_, err := f.node.Prepare(t.Context(), two.PrepareRequest)
	require.ErrorContains(t, err, "resource_exhausted")
	_, err = f.node.Finish(t.Context(), &apiv1.FinishRequest{Job: one.Digest[:]})
	require.NoError(t, err)
	f.prepare(two)
	f.sameAsHolder(two, holder)
}
