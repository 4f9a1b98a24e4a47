package node

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/internal/crc32c"
	"github.com/millrace/millrace/sdk"
)

// askRange sends a request for a partition with headers, and returns the answer with its body.
func (f *fixture) askRange(method, link string, headers ...string) (*http.Response, []byte) {
	f.t.Helper()
	r, err := http.NewRequest(method, link, nil)
	require.NoError(f.t, err)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := f.client.Do(r)
	require.NoError(f.t, err)
	body, err := io.ReadAll(resp.Body)
	require.NoError(f.t, err)
	require.NoError(f.t, resp.Body.Close())
	return resp, body
}

// TestRangesComeWithTheirChecksum checks the CRC32C behind ranges of every length, and that ranges outside the
// partition or longer than the bound are refused, from both sides of the bound.
func TestRangesComeWithTheirChecksum(t *testing.T) {
	b := nodetest.Partition(t, 1, 900)
	f := start(t, nil, fill(t, "file", map[string][]byte{"day 1/a+b.parquet": b}))
	link := apiv1.PartitionURL(f.base, "day 1/a+b.parquet", "d0")
	n := len(b)
	for _, c := range []struct{ first, last, length int }{
		{0, 0, 1}, {10, 99, 90}, {0, n - 1, n}, {n - 1, n - 1, 1}, {n - 5, n + 100, 5},
		{0, apiv1.MaxPartitionRange - 1, n},
	} {
		resp, got := f.askRange(http.MethodGet, link, "Te", "trailers", "Range",
			fmt.Sprintf("bytes=%d-%d", c.first, c.last))
		require.Equal(t, http.StatusPartialContent, resp.StatusCode, "%s", got)
		assert.True(t, bytes.Equal(b[c.first:c.first+c.length], got))
		assert.Equal(t, fmt.Sprintf("%08x", crc32c.Checksum(got)), resp.Trailer.Get(apiv1.ChecksumHeader))
		assert.Equal(t, fmt.Sprintf("bytes %d-%d/%d", c.first, c.first+c.length-1, n), resp.Header.Get("Content-Range"))
		assert.Empty(t, resp.Trailer.Get(apiv1.DigestHeader))
	}
	for _, text := range []string{"bytes=-8", "bytes=5-", "bytes=9-8", "bytes=0-0,2-2", "octets=0-1", "bytes=+0-1",
		fmt.Sprintf("bytes=%d-%d", n, n), "bytes=0-99999999999999999999", "bytes= 0-1"} {
		resp, got := f.askRange(http.MethodGet, link, "Te", "trailers", "Range", text)
		assert.Equal(t, http.StatusBadRequest, resp.StatusCode, text)
		assert.Contains(t, string(got), "want bytes=FIRST-LAST", text)
	}
}

// TestAPartitionThatChangedIsNoticed checks that If-Match refuses another footer, and that HEAD reads the partition's
// end again.
func TestAPartitionThatChangedIsNoticed(t *testing.T) {
	b := nodetest.Partition(t, 1, 900)
	uri := fill(t, "mem", map[string][]byte{"a.parquet": b})
	f := start(t, nil, uri)
	link := apiv1.PartitionURL(f.base, "a.parquet", "d0")
	resp, _ := f.askRange(http.MethodHead, link)
	tag := resp.Header.Get("Etag")
	for _, method := range []string{http.MethodHead, http.MethodGet} {
		resp, _ = f.askRange(method, link, "If-Match", tag, "Range", "bytes=0-9", "Te", "trailers")
		assert.Equal(t, http.StatusPartialContent, resp.StatusCode)
		resp, got := f.askRange(method, link, "If-Match", `"0123"`, "Range", "bytes=0-9", "Te", "trailers")
		assert.Equal(t, http.StatusBadRequest, resp.StatusCode)
		if method == http.MethodGet {
			assert.Contains(t, string(got), "failed_precondition")
			assert.Contains(t, string(got), "not the one of the job's manifest")
		}
	}
	dev, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{})
	require.NoError(t, err)
	defer func() { assert.NoError(t, dev.Close()) }()
	d, err := f.drives.Drive("d0")
	require.NoError(t, err)
	end := d.Partitions()[0].Extents[0].Device + int64(len(b)) - 12
	_, err = dev.WriteAt([]byte{'?'}, end)
	require.NoError(t, err)
	resp, _ = f.askRange(http.MethodHead, link, "If-Match", tag)
	assert.Equal(t, http.StatusBadRequest, resp.StatusCode, "its footer reads differently now")
}
