package node

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/host/source/s3"
	"github.com/millrace/millrace/host/target"
	"github.com/millrace/millrace/internal/objectserver"
	"github.com/millrace/millrace/sdk/dataset"
)

// storeSources reads S3 and HTTP of a server of objects.
func storeSources(t testing.TB, server *objectserver.Server) host.Sources {
	t.Helper()
	for name, value := range map[string]string{
		"AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "",
		"AWS_PROFILE": "", "HOME": t.TempDir(),
	} {
		t.Setenv(name, value)
	}
	transport := source.NewTransport(nil)
	t.Cleanup(transport.CloseIdleConnections)
	objects, err := s3.New(s3.Options{Endpoint: server.URL, Transport: transport})
	require.NoError(t, err)
	retry := source.Retry{Attempts: 4, First: time.Millisecond, Longest: 2 * time.Millisecond}
	cache, err := source.NewCache(source.Options{Retry: retry})
	require.NoError(t, err)
	return host.Sources{Opener: &source.Stores{Web: source.NewWeb(transport), S3: objects, Retry: retry}, Cache: cache}
}

// startFed starts a node whose only drive is one without flash, served over NVMe/TCP, that the node feeds.
func startFed(t testing.TB, sources host.Sources, members ...string) *fixture {
	t.Helper()
	card, err := target.Start(target.Options{
		Drive: csd.Options{Diskless: true, SLMBytes: 32 << 20}, Listen: "127.0.0.1:0",
	})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, card.Close()) })
	c := DefaultConfig()
	c.Name, c.Listen, c.Measure = "n0", []string{"127.0.0.1:0"}, Duration(time.Millisecond)
	c.Runs.BusyWait = Duration(time.Minute)
	c.Drives = []DriveConfig{{Name: "card", URI: card.URI(), Members: members}}
	return startWith(t, c, Options{Probe: 20 * time.Millisecond, Device: quick, Sources: sources})
}

// TestACardFedFromAStore: a drive without flash of a node makes, of partitions in S3 and behind HTTP, the frames that a
// drive makes which holds them, while the store throttles and breaks off now and then. An object that is written again
// fails its splits with a typed error, and nothing else: the drive stays in order.
func TestACardFedFromAStore(t *testing.T) {
	files := map[string][]byte{"a.parquet": nodetest.Partition(t, 1, 20_000), "b.parquet": nodetest.Partition(t, 2, 400),
		"c.parquet": nodetest.Partition(t, 3, 75)}
	holder := start(t, nil, fill(t, "mem", files))
	want := holder.prepare(dataset.Options{SplitBatches: 16})
	server := objectserver.New(t)
	for name, b := range files {
		server.Put("rows/days/"+name, b)
	}
	var asked atomic.Int64
	hostile := atomic.Bool{}
	server.SetBefore(func(w http.ResponseWriter, r *http.Request) bool {
		if !hostile.Load() || r.Method != http.MethodGet {
			return false
		}
		switch asked.Add(1) % 4 {
		case 1:
			w.Header().Set("Retry-After", "0")
			objectserver.Refuse(w, http.StatusServiceUnavailable, "SlowDown", "Please reduce your request rate.")
			return true
		case 3:
			panic(http.ErrAbortHandler)
		}
		return false
	})
	f := startFed(t, storeSources(t, server), "s3://rows/days/[ab].parquet", server.URL+"/rows/days/c.parquet?token=x")
	hostile.Store(true)
	j := f.prepare(dataset.Options{SplitBatches: 16})
	require.Equal(t, want.Digest, j.Digest)
	for s := range j.Plan.All() {
		until := s.FirstFragment + uint64(s.Fragments)
		for n := s.FirstFragment; n < until; n++ {
			status, expected, _ := holder.get(holder.link(want, "d0", n, until))
			require.Equal(t, http.StatusOK, status)
			status, b, _ := f.get(f.link(j, "card", n, until))
			require.Equal(t, http.StatusOK, status, "%s", b)
			require.Equal(t, expected, b, "mini-batch %d", n)
		}
	}
	assert.Positive(t, asked.Load())

	hostile.Store(false)
	fresh := startFed(t, storeSources(t, server), "s3://rows/days/")
	j = fresh.prepare(dataset.Options{SplitBatches: 16, Seed: 3})
	server.Put("rows/days/a.parquet", nodetest.Partition(t, 9, 20_000))
	changed := 0
	for s := range j.Plan.All() {
		status, b, _ := fresh.get(fresh.link(j, "card", s.FirstFragment, s.FirstFragment+1))
		if status == http.StatusOK { // of another partition, or of bytes that came with the footer
			continue
		}
		require.Zero(t, s.Partition)
		require.Equal(t, http.StatusBadRequest, status, "%s", b)
		assert.Contains(t, string(b), "failed_precondition")
		assert.Contains(t, string(b), "s3://rows/days/a.parquet changed")
		changed++
	}
	assert.Positive(t, changed)
	assert.Empty(t, fresh.unready())
	assert.Equal(t, 1, fresh.drives.Statuses()[0].Opens)
}
