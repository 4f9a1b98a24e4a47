package node

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/sdk/dataset"
)

// TestHostileRequests checks that each request is refused with Connect's code and a message, and that the node serves
// on.
func TestHostileRequests(t *testing.T) {
	f := start(t, func(c *Config) { c.Limits.RequestBytes = 4 << 10 }, fill(t, "mem", content(t)))
	j := f.describeJob(nodetest.Document, dataset.Options{})
	status, b, _ := f.get(f.link(j, "d0", 0, 1))
	assert.Equal(t, http.StatusNotFound, status, "a job that was not prepared: %s", b)
	assert.Contains(t, string(b), `"code":"not_found"`)
	j = f.prepare(dataset.Options{})
	n := j.Plan.MiniBatches()
	for link, want := range map[string]struct {
		status int
		says   string
	}{
		"/v1/minibatch":                                  {400, "64 hexadecimal digits"},
		f.link(j, "d9", 0, 1)[len(f.base):]:              {404, "no such drive"},
		f.link(j, "d0", n, n+1)[len(f.base):]:            {400, "invalid_argument"},
		f.link(j, "d0", 1<<62, 1<<62+1)[len(f.base):]:    {400, "invalid_argument"},
		"/v1/partitions/a.parquet":                       {400, "drive=NAME"},
		"/v1/partitions/a.parquet?drive=d0&x=1":          {400, "nothing else"},
		"/v1/partitions/a.parquet?drive=d9":              {404, "no such drive"},
		"/v1/partitions/none?drive=d0":                   {404, "no such partition"},
		"/v1/partitions/..%2f..%2fetc%2fpasswd?drive=d0": {404, "no such partition"},
		"/v1/partitions/?drive=d0":                       {404, "no such partition"},
		"/nothing":                                       {404, ""},
	} {
		status, b, _ := f.get(f.base + link)
		assert.Equal(t, want.status, status, "%.80s: %s", link, b)
		assert.Contains(t, string(b), want.says, "%.80s", link)
	}
	resp, err := f.client.Post(f.link(j, "d0", 0, 1), "text/plain", strings.NewReader("x"))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Equal(t, http.StatusMethodNotAllowed, resp.StatusCode)
	resp, err = f.client.Head(f.link(j, "d0", 0, 1))
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	assert.Positive(t, resp.ContentLength)
	for body, want := range map[string]string{
		`{"job":"AAAA"}`: "invalid_argument", `{"nonsense":1}`: "invalid_argument", `{"job":"` + strings.Repeat("A",
			5000) + `"}`: "resource_exhausted",
	} {
		resp, err := f.client.Post(f.base+"/millrace.v1.Node/Prepare", "application/json", strings.NewReader(body))
		require.NoError(t, err)
		b := make([]byte, 500)
		k, _ := resp.Body.Read(b)
		require.NoError(t, resp.Body.Close())
		assert.Contains(t, string(b[:k]), want, fmt.Sprintf("%.40s", body))
	}
	f.frame(j, "d0", 0, n)
}

// deadlines records whether a handler bounded the time of a body.
type deadlines struct {
	*httptest.ResponseRecorder
	set bool
}

func (d *deadlines) SetReadDeadline(t time.Time) error {
	d.set = d.set || !t.IsZero()
	return nil
}

// TestEveryBodyHasItsTime checks that the time of a body is bounded also where no handler reads it: the server reads it
// before the next request of the connection.
func TestEveryBodyHasItsTime(t *testing.T) {
	f := start(t, nil)
	for _, path := range []string{"/nothing", "/readyz", "/v1/minibatch", "/millrace.v1.Node/Describe"} {
		for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodPut} {
			w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
			f.server.http.Handler.ServeHTTP(w, httptest.NewRequest(method, path, strings.NewReader("x")))
			assert.True(t, w.set, "%s %s", method, path)
		}
	}
}
