package worker

import (
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/host/source/s3"
	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/internal/objectserver"
)

// announced returns the URLs and identities of the last heartbeat's sources.
func (l *leader) announced() map[string]string {
	l.mu.Lock()
	defer l.mu.Unlock()
	list := map[string]string{}
	for _, s := range l.status.GetSources() {
		list[s.Url] = s.Identity
	}
	return list
}

// TestPartitionsOfAStoreAreLookedAtAgain: the worker announces an object that is added, and the new identity of an
// object that is written again. While the store refuses all requests, the announced objects stay. Objects that do not
// change are not read again.
func TestPartitionsOfAStoreAreLookedAtAgain(t *testing.T) {
	leaks.Check(t)
	t.Setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "secret")
	server := objectserver.New(t)
	var broken atomic.Bool
	var refused, ranges atomic.Int64
	server.SetBefore(func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("Range") != "" {
			ranges.Add(1)
		}
		if broken.Load() {
			refused.Add(1)
			objectserver.Refuse(w, http.StatusForbidden, "AccessDenied", "no")
			return true
		}
		return false
	})
	server.Put("rows/a.parquet", nodetest.Partition(t, 1, 100))
	transport := source.NewTransport(nil)
	t.Cleanup(transport.CloseIdleConnections)
	objects, err := s3.New(s3.Options{Endpoint: server.URL, Transport: transport})
	require.NoError(t, err)
	stores := &source.Stores{S3: objects, Retry: source.Retry{Attempts: 1}}
	f := startWorkerOf(t, stores, func(c *Config) {
		c.Partitions, c.Rescan = []string{"s3://rows/*.parquet"}, node.Duration(10*time.Millisecond)
	})
	await(t, "the first partition", func() bool { return len(f.leader.announced()) == 1 })
	first := f.leader.announced()["s3://rows/a.parquet"]
	require.NotEmpty(t, first)

	before := ranges.Load()
	seen, _ := server.Requests()
	await(t, "ten looks", func() bool { n, _ := server.Requests(); return n > seen+20 })
	assert.Equal(t, before, ranges.Load(), "nothing is read of objects that stay as they are")

	server.Put("rows/b.parquet", nodetest.Partition(t, 2, 50))
	await(t, "the second partition", func() bool { return len(f.leader.announced()) == 2 })
	server.Put("rows/a.parquet", nodetest.Partition(t, 3, 70))
	await(t, "another identity", func() bool { return f.leader.announced()["s3://rows/a.parquet"] != first })

	broken.Store(true)
	await(t, "looks in vain", func() bool { return refused.Load() > 3 })
	server.Put("rows/c.parquet", nodetest.Partition(t, 4, 20))
	assert.Len(t, f.leader.announced(), 2)
	broken.Store(false)
	await(t, "the third partition", func() bool { return len(f.leader.announced()) == 3 })
}
