package endtoend

import (
	"bytes"
	"context"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"path"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
)

// storeOf serves files by their names below /rows/, and counts the requests. While redirect holds a URL, requests are
// redirected there.
func storeOf(
	t *testing.T, data map[string][]byte,
) (base string, asked *atomic.Int64, redirect *atomic.Pointer[string]) {
	t.Helper()
	asked, redirect = &atomic.Int64{}, &atomic.Pointer[string]{}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		if to := redirect.Load(); to != nil {
			http.Redirect(w, r, *to+path.Base(r.URL.Path), http.StatusFound)
			return
		}
		w.Header().Set("Etag", `"1"`)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(data[path.Base(r.URL.Path)]))
	}))
	t.Cleanup(s.Close)
	return s.URL + "/rows/", asked, redirect
}

// crookedHeartbeats is a control plane for a node that announces other sources than its agent does.
type crookedHeartbeats struct {
	apiv1connect.UnimplementedControlHandler
	behind  apiv1connect.ControlClient
	folder  string     // that takes the place of the sources' own
	refused chan error // the last answer of the control plane
}

func (h *crookedHeartbeats) Heartbeat(
	ctx context.Context, r *apiv1.HeartbeatRequest,
) (*apiv1.HeartbeatResponse, error) {
	r = proto.CloneOf(r)
	for _, s := range r.GetStatus().GetSources() {
		s.Url = h.folder + path.Base(s.Url)
	}
	answer, err := h.behind.Heartbeat(ctx, r)
	if connect.CodeOf(err) == connect.CodeFailedPrecondition {
		select {
		case h.refused <- err:
		default:
		}
	}
	return answer, err
}

// crooked serves a control plane through crookedHeartbeats.
func crooked(t *testing.T, to, folder string) (at string, refused chan error) {
	t.Helper()
	target, err := url.Parse(to)
	require.NoError(t, err)
	h := &crookedHeartbeats{behind: apiv1connect.NewControlClient(http.DefaultClient, to), folder: folder,
		refused: make(chan error, 1)}
	_, heartbeats := apiv1connect.NewControlHandler(h)
	others := httputil.NewSingleHostReverseProxy(target)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path.Base(r.URL.Path) == "Heartbeat" {
			heartbeats.ServeHTTP(w, r)
			return
		}
		others.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return s.URL, h.refused
}

// TestAnnouncedSourcesAreNotTrusted: a proxy rewrites the sources in the heartbeats of one of two workers. The leader
// refuses what no honest worker announces. Where the URL is one that an honest worker could announce, and no worker's
// configuration names it, no worker asks for it; nor does a worker follow a redirect to another host.
// When the sources are honest again, the job goes on.
func TestAnnouncedSourcesAreNotTrusted(t *testing.T) {
	data := files(t, 700)
	want := onOneMachine(t, data, 1)
	honest, asked, redirect := storeOf(t, data)
	secret, secretAsked, _ := storeOf(t, data)
	s := startControl(t, controlOptions(t.TempDir()))
	c := dial(t, s.URL())
	announce := func(name, control string) (stop func()) {
		conf := workerConfig(name, []string{control})
		conf.ReadTries = 2
		for _, file := range names(data) {
			conf.Partitions = append(conf.Partitions, honest+file)
		}
		w := startWorker(t, conf)
		return func() { assert.NoError(t, w.Close()) }
	}
	for name, to := range map[string]string{
		"file": "file:///etc/", "link-local": "http://169.254.169.254/", "query": honest + "a?b=/",
		"password": strings.Replace(honest, "://", "://u:p@", 1),
	} {
		at, refused := crooked(t, s.URL(), to)
		stop := announce(name, at)
		select {
		case err := <-refused:
			assert.ErrorContains(t, err, "every worker is told it", to)
		case <-time.After(time.Minute):
			assert.Fail(t, "the leader refuses nothing", to)
		}
		stop()
	}

	reader := workerConfig("reader", []string{s.URL()})
	reader.Stores, reader.ReadTries = []string{honest}, 2
	w := startWorker(t, reader)
	defer func() { assert.NoError(t, w.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	at, _ := crooked(t, s.URL(), secret)
	stop := announce("crooked", at)
	awaitReady(t, c, "crooked", "reader")
	st, err := c.Submit(ctx, &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan()})
	require.NoError(t, err)
	waitsFor := func(text string) {
		t.Helper()
		awaitJob(ctx, t, c, st.Id, text, func(s *apiv1.JobStatus) bool { return strings.Contains(s.WaitsFor, text) })
	}
	waitsFor("may not read it")
	stop()
	assert.Zero(t, secretAsked.Load(), "no worker asks the store that no configuration names")

	stop = announce("announcer", s.URL())
	defer func() { stop() }()
	before := asked.Load()
	redirect.Store(&secret)
	waitsFor("redirects to another host")
	assert.Greater(t, asked.Load(), before)
	redirect.Store(nil)
	check(t, want, takeAll(t, c, st.Id, nil), false)
	assert.Zero(t, secretAsked.Load(), "no worker follows the redirect")
}
