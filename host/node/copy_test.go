package node

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestPartitionsAreServed checks that a partition is served whole, in ranges, and with its digest behind it.
func TestPartitionsAreServed(t *testing.T) {
	b := nodetest.Partition(t, 1, 900)
	f := start(t, nil, fill(t, "file", map[string][]byte{"day 1/a+b.parquet": b}))
	link := f.base + "/v1/partitions/day%201/" + url.PathEscape("a+b.parquet") + "?drive=d0"
	status, got, h := f.get(link)
	require.Equal(t, http.StatusOK, status, "%s", got)
	assert.True(t, bytes.Equal(b, got))
	assert.NotEmpty(t, h.Get("Etag"))
	status, got, _ = f.get(link, "Range", "bytes=10-99")
	assert.Equal(t, http.StatusPartialContent, status)
	assert.True(t, bytes.Equal(b[10:100], got))
	status, got, _ = f.get(link, "Range", "bytes=-8")
	assert.Equal(t, http.StatusPartialContent, status)
	assert.Equal(t, "PAR1", string(got[4:]))
	status, _, _ = f.get(link, "Range", "bytes=99999999-")
	assert.Equal(t, http.StatusRequestedRangeNotSatisfiable, status)
	r, err := http.NewRequest(http.MethodGet, link, nil)
	require.NoError(t, err)
	r.Header.Set("Te", "trailers")
	resp, err := f.client.Do(r)
	require.NoError(t, err)
	got, err = io.ReadAll(resp.Body)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.True(t, bytes.Equal(b, got))
	sum := sha256.Sum256(b)
	assert.Equal(t, hex.EncodeToString(sum[:]), resp.Trailer.Get(apiv1.DigestHeader))
}

// TestReplication checks that a partition is copied to another node's drive and serves the same bytes there, and that
// copying it again changes nothing.
func TestReplication(t *testing.T) {
	files := content(t)
	from := start(t, nil, fill(t, "file", files))
	to := start(t, func(c *Config) { c.Listen = []string{"unix:" + filepath.Join(t.TempDir(), "n.sock")} },
		fill(t, "file", nil), fill(t, "mem", nil))
	r, err := from.node.Describe(t.Context(), &apiv1.DescribeRequest{})
	require.NoError(t, err)
	for _, p := range r.Status.Partitions {
		for range 2 {
			c, err := to.node.Copy(t.Context(),
				&apiv1.CopyRequest{Drive: "d0", Partition: p, FromUrl: from.URLs()[0], FromDrive: "d0"})
			require.NoError(t, err)
			sum := sha256.Sum256(files[p.Name])
			assert.Equal(t, sum[:], c.Sha256)
			assert.EqualValues(t, len(files[p.Name]), c.Bytes)
		}
	}
	j := to.prepare(dataset.Options{SplitBatches: 4})
	want := truth(t, files, j)
	for i, b := range to.epoch(j, "d0") {
		require.True(t, bytes.Equal(want[i], b), "mini-batch %d", i)
	}
	// From a unix socket, too, and under the running job.
	_, err = from.node.Copy(t.Context(),
		&apiv1.CopyRequest{Drive: "d0", Partition: r.Status.Partitions[0], FromUrl: to.URLs()[0], FromDrive: "d0"})
	require.NoError(t, err)
	_, err = to.node.Copy(t.Context(),
		&apiv1.CopyRequest{Drive: "d1", Partition: r.Status.Partitions[0], FromUrl: to.URLs()[0], FromDrive: "d0"})
	require.NoError(t, err)
	s, err := j.Plan.Split(0)
	require.NoError(t, err)
	for s := range j.Plan.All() {
		if s.Partition == 0 {
			assert.True(t, bytes.Equal(want[s.FirstFragment], to.frame(j, "d1", s.FirstFragment, s.FirstFragment+1)),
				"a replica serves a job that was prepared before")
			break
		}
	}
	_ = s
}

// TestCopiesThatAreNotWhatTheyShouldBe checks that copies of wrong bytes leave nothing behind.
func TestCopiesThatAreNotWhatTheyShouldBe(t *testing.T) {
	files := map[string][]byte{"a.parquet": nodetest.Partition(t, 1, 300)}
	from := start(t, nil, fill(t, "mem", files))
	to := start(t, nil, fill(t, "mem", map[string][]byte{"other.parquet": nodetest.Partition(t, 5, 20)}))
	r, err := from.node.Describe(t.Context(), &apiv1.DescribeRequest{})
	require.NoError(t, err)
	good := r.Status.Partitions[0]
	broken := bytes.Clone(files["a.parquet"])
	broken[100] ^= 1
	liar := func(body []byte, sum string) string {
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set(apiv1.DigestRunsHeader, fmt.Sprintf("0+%d", len(files["a.parquet"])))
			w.Header().Set("Trailer", apiv1.DigestHeader)
			_, _ = w.Write(body)
			w.Header().Set(apiv1.DigestHeader, sum)
		}))
		t.Cleanup(s.Close)
		return s.URL
	}
	whole := sha256.Sum256(files["a.parquet"])
	for name, c := range map[string]struct {
		change func(*apiv1.CopyRequest)
		code   connect.Code
		says   string
	}{
		"another footer": {func(q *apiv1.CopyRequest) { q.Partition.ContentSha256 = make([]byte, 32) },
			connect.CodeDataLoss, "its digest is"},
		"fewer bytes": {func(q *apiv1.CopyRequest) { q.Partition.Bytes += 5 }, connect.CodeDataLoss, ""},
		"more bytes":  {func(q *apiv1.CopyRequest) { q.Partition.Bytes -= 5 }, connect.CodeDataLoss, ""},
		"no such partition there": {func(q *apiv1.CopyRequest) { q.Partition.Name = "b.parquet" },
			connect.CodeDataLoss, "404"},
		"no such drive there": {func(q *apiv1.CopyRequest) { q.FromDrive = "d7" }, connect.CodeDataLoss, "404"},
		"no such drive here": {func(q *apiv1.CopyRequest) { q.Drive = "d7" }, connect.CodeNotFound,
			"no such drive"},
		"a name that is none": {func(q *apiv1.CopyRequest) { q.Partition.Name = "../x" }, connect.CodeDataLoss,
			""},
		"no name": {func(q *apiv1.CopyRequest) { q.Partition.Name = "" }, connect.CodeInvalidArgument,
			"name"},
		"no digest": {func(q *apiv1.CopyRequest) { q.Partition.ContentSha256 = nil },
			connect.CodeInvalidArgument, "32 bytes"},
		"no URL": {func(q *apiv1.CopyRequest) { q.FromUrl = "x" }, connect.CodeInvalidArgument,
			"from_url"},
		"nobody there": {func(q *apiv1.CopyRequest) { q.FromUrl = "http://127.0.0.1:1" },
			connect.CodeUnavailable, "refused"},
		"a name that is taken": {func(q *apiv1.CopyRequest) { q.Partition.Name = "other.parquet" },
			connect.CodeDataLoss, "another partition of the name"},
		"bytes changed on the way": {func(q *apiv1.CopyRequest) {
			q.FromUrl = liar(broken,
				hex.EncodeToString(whole[:]))
		}, connect.CodeDataLoss, "changed on their way"},
		"no digest sent": {func(q *apiv1.CopyRequest) { q.FromUrl = liar(files["a.parquet"], "") },
			connect.CodeDataLoss, "changed on their way"},
		"cut short": {func(q *apiv1.CopyRequest) { q.FromUrl = liar(files["a.parquet"][:500], "") },
			connect.CodeDataLoss, "early"},
		"too much": {func(q *apiv1.CopyRequest) { q.FromUrl = liar(append(bytes.Clone(files["a.parquet"]), 1), "") },
			connect.CodeDataLoss, "more than"},
	} {
		p := &apiv1.Partition{Name: good.Name, Bytes: good.Bytes, Rows: good.Rows, RowGroups: good.RowGroups,
			ContentSha256: bytes.Clone(good.ContentSha256)}
		q := &apiv1.CopyRequest{Drive: "d0", Partition: p, FromUrl: from.URLs()[0], FromDrive: "d0"}
		c.change(q)
		_, err := to.node.Copy(t.Context(), q)
		require.Error(t, err, name)
		assert.Equal(t, c.code, connect.CodeOf(err), "%s: %v", name, err)
		assert.ErrorContains(t, err, c.says, name)
	}
	list, err := to.manager.Drives()[0].Volume().List(t.Context())
	require.NoError(t, err)
	assert.Len(t, list, 1, "nothing was committed")
}

// TestRolesUnderTLS checks which role may make which request.
func TestRolesUnderTLS(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, identity.InitAuthority(dir, "test"))
	options := func(role identity.Role) identity.Options {
		o := identity.Options{Cert: filepath.Join(dir, string(role)+".pem"),
			Key: filepath.Join(dir, string(role)+".key"), CA: filepath.Join(dir, identity.AuthorityCert)}
		require.NoError(t, identity.Issue(dir,
			identity.Request{Identity: identity.Identity{Role: role, Name: "x"},
				Hosts: []string{"127.0.0.1"}}, o.Cert, o.Key))
		return o
	}
	nodeTLS := options(identity.Node)
	files := content(t)
	c := DefaultConfig()
	c.Name, c.Listen = "n0", []string{"127.0.0.1:0"}
	c.TLS = TLSConfig{nodeTLS.Cert, nodeTLS.Key, nodeTLS.CA}
	c.Drives = []DriveConfig{{Name: "d0", URI: fill(t, "mem", files)}}
	f := startWith(t, c, Options{})
	assert.Contains(t, f.base, "https://")
	clients := map[identity.Role]*http.Client{identity.Node: nil}
	for _, role := range []identity.Role{identity.Control, identity.Launcher, identity.Operator} {
		clients[role] = nil
		h, err := identity.HTTPClient(options(role))
		require.NoError(t, err)
		t.Cleanup(h.CloseIdleConnections)
		clients[role] = h
	}
	h, err := identity.HTTPClient(nodeTLS)
	require.NoError(t, err)
	t.Cleanup(h.CloseIdleConnections)
	clients[identity.Node] = h
	f.node = apiv1connectNode(clients[identity.Control], f.base)
	j := f.prepare(dataset.Options{})
	for role, may := range map[identity.Role]struct{ prepare, train, fetch bool }{
		identity.Control: {true, false, true}, identity.Operator: {true, true, true}, identity.Launcher: {false, true,
			false}, identity.Node: {false, false, true},
	} {
		f.client = clients[role]
		n := apiv1connectNode(clients[role], f.base)
		_, err := n.Describe(t.Context(), &apiv1.DescribeRequest{})
		require.NoError(t, err, role)
		_, err = n.Prepare(t.Context(), j.PrepareRequest)
		assert.Equal(t, may.prepare, err == nil, "%s: %v", role, err)
		if err != nil {
			assert.Equal(t, connect.CodePermissionDenied, connect.CodeOf(err))
		}
		status, b, _ := f.get(f.link(j, "d0", 0, 1))
		assert.Equal(t, may.train, status == http.StatusOK, "%s: %d", role, status)
		if !may.train {
			assert.Contains(t, string(b), "permission_denied")
		}
		status, _, _ = f.get(f.base + "/v1/partitions/a.parquet?drive=d0")
		assert.Equal(t, may.fetch, status == http.StatusOK, role)
		methods := apiv1.File_millrace_proto.Services().ByName("Node").Methods()
		for i := 0; i < methods.Len() && !may.prepare; i++ {
			m := methods.Get(i)
			require.False(t, m.IsStreamingClient() || m.IsStreamingServer(), "%s: the roles of streams are unchecked",
				m.Name())
			r, err := clients[role].Post(f.base+"/millrace.v1.Node/"+string(m.Name()), "application/json",
				strings.NewReader("{}"))
			require.NoError(t, err)
			require.NoError(t, r.Body.Close())
			assert.Equal(t, m.Name() == "Describe", r.StatusCode != http.StatusForbidden, "%s: %s: %s", role,
				m.Name(), r.Status)
		}
	}
	_, err = f.beat(f.base)
	require.ErrorIs(t, err, identity.ErrPeer, "a node does not pass as the control plane, which has its host name")
	plain, err := identity.HTTPClient(identity.Options{})
	require.NoError(t, err)
	f.client = plain
	_, _, _, err = f.try(t.Context(), f.base+"/readyz")
	require.Error(t, err, "nobody without a certificate")
	plain.CloseIdleConnections()
}
