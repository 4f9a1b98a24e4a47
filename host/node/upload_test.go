package node

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/sdk/dataset"
)

// upload is a request to take a partition.
type upload struct {
	name, drive string
	want        dataset.Partition
	runs        string
	sum         string
	body        []byte
}

// putOf describes a partition as the client of an upload does.
func putOf(t *testing.T, name string, body []byte) upload {
	t.Helper()
	f := start(t, nil, fill(t, "mem", map[string][]byte{name: body}))
	inv, err := f.manager.Inventory()
	require.NoError(t, err)
	require.Len(t, inv.Partitions, 1)
	sum := sha256.Sum256(body)
	return upload{name: name, drive: "d0", want: inv.Partitions[0].Partition, runs: fmt.Sprintf("0+%d", len(body)),
		sum: hex.EncodeToString(sum[:]), body: body}
}

func (f *fixture) put(p upload) (status int, text string) {
	f.t.Helper()
	description, err := json.Marshal(p.want)
	require.NoError(f.t, err)
	r, err := http.NewRequestWithContext(f.t.Context(), http.MethodPut,
		f.base+apiv1.PartitionPath+p.name+"?drive="+p.drive, bytes.NewReader(p.body))
	require.NoError(f.t, err)
	r.Header.Set(apiv1.PartitionHeader, string(description))
	r.Header.Set(apiv1.DigestRunsHeader, p.runs)
	r.Header.Set(apiv1.DigestHeader, p.sum)
	resp, err := f.client.Do(r)
	require.NoError(f.t, err)
	b, err := io.ReadAll(resp.Body)
	require.NoError(f.t, err)
	require.NoError(f.t, resp.Body.Close())
	return resp.StatusCode, string(b)
}

// TestAPartitionIsPut checks that a partition that was put is part of the inventory, gives its bytes back, and is
// verified against its checksum; that putting it again changes nothing; and that another partition of the name is
// refused.
func TestAPartitionIsPut(t *testing.T) {
	p := putOf(t, "new.parquet", nodetest.Partition(t, 3, 200))
	other := putOf(t, "new.parquet", nodetest.Partition(t, 4, 210))
	state := t.TempDir()
	uri := fill(t, "file", map[string][]byte{"a.parquet": nodetest.Partition(t, 1, 50)})
	begin := func() *fixture { return start(t, func(c *Config) { c.StateDir = state }, uri) }
	f := begin()
	status, text := f.put(p)
	require.Equal(t, http.StatusCreated, status, text)
	status, text = f.put(p)
	require.Equal(t, http.StatusOK, status, text)
	status, text = f.put(other)
	assert.Equal(t, http.StatusInternalServerError, status)
	assert.Contains(t, text, "another partition of the name")
	status, b, _ := f.get(f.base + "/v1/partitions/new.parquet?drive=d0")
	require.Equal(t, http.StatusOK, status)
	assert.True(t, bytes.Equal(p.body, b))
	require.NoError(t, f.Close())

	f = begin()
	v, err := f.node.Verify(t.Context(), &apiv1.VerifyRequest{Drive: "d0", Partition: "new.parquet"})
	require.NoError(t, err)
	assert.Equal(t, p.sum, hex.EncodeToString(v.Sha256))
	assert.Equal(t, v.Sha256, v.KeptSha256, "over a restart")
	assert.EqualValues(t, len(p.body), v.Bytes)
	v, err = f.node.Verify(t.Context(), &apiv1.VerifyRequest{Drive: "d0", Partition: "a.parquet"})
	require.NoError(t, err)
	assert.Empty(t, v.KeptSha256, "nobody put it through the node")
	v, err = f.node.Verify(t.Context(), &apiv1.VerifyRequest{Drive: "d0", Partition: "a.parquet"})
	require.NoError(t, err)
	assert.Equal(t, v.Sha256, v.KeptSha256, "as it was the first time")
	_, err = f.node.Verify(t.Context(), &apiv1.VerifyRequest{Drive: "d0", Partition: "b.parquet"})
	assert.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
	_, err = f.node.Verify(t.Context(), &apiv1.VerifyRequest{Drive: "d9", Partition: "a.parquet"})
	assert.Equal(t, connect.CodeNotFound, connect.CodeOf(err))
}

// TestPutsThatAreRefused checks that a refused partition leaves nothing behind.
func TestPutsThatAreRefused(t *testing.T) {
	good := putOf(t, "new.parquet", nodetest.Partition(t, 3, 200))
	f := start(t, nil, fill(t, "mem", map[string][]byte{"a.parquet": nodetest.Partition(t, 1, 50)}))
	for name, c := range map[string]struct {
		change func(*upload)
		status int
		says   string
	}{
		"no drive":      {func(p *upload) { p.drive = "" }, http.StatusBadRequest, "?drive=DRIVE"},
		"no such drive": {func(p *upload) { p.drive = "d9" }, http.StatusNotFound, "no such drive"},
		"runs behind the end": {func(p *upload) { p.runs = "999999999+1" }, http.StatusBadRequest,
			"want runs as FROM+LENGTH"},
		"no runs": {func(p *upload) { p.runs = "" }, http.StatusBadRequest, "want runs as FROM+LENGTH"},
		"runs of other bytes": {func(p *upload) { p.runs = "0+9" }, http.StatusInternalServerError,
			"its digest is"},
		"no sum": {func(p *upload) { p.sum = "" }, http.StatusBadRequest, "SHA-256"},
		"another sum": {func(p *upload) { p.sum = strings.Repeat("ab", 32) },
			http.StatusInternalServerError, "changed on their way"},
		"another footer": {func(p *upload) { p.want.Content = dataset.Digest{1} },
			http.StatusInternalServerError, "its digest is"},
		"another name": {func(p *upload) { p.want.Name = "x.parquet" }, http.StatusBadRequest,
			"the path names"},
		"fewer bytes": {func(p *upload) { p.body = p.body[:len(p.body)-1] }, http.StatusBadRequest,
			"the body has"},
		"nothing": {func(p *upload) { p.body, p.want.Bytes, p.runs = nil, 0, "0+0" },
			http.StatusBadRequest, "the body has 0 bytes"},
		"a changed byte": {func(p *upload) { p.body = bytes.Clone(p.body); p.body[77] ^= 1 },
			http.StatusInternalServerError, "changed on their way"},
		"a long description": {func(p *upload) {
			p.want.RowGroups = make([]int64, apiv1.MaxPartitionHeader/2) // a digit and a comma each
		}, http.StatusBadRequest, "a description of at most 32768 bytes"},
	} {
		p := good
		c.change(&p)
		status, text := f.put(p)
		assert.Equal(t, c.status, status, "%s: %s", name, text)
		assert.Contains(t, text, c.says, name)
	}
	list, err := f.manager.Drives()[0].Volume().List(t.Context())
	require.NoError(t, err)
	assert.Len(t, list, 1, "nothing was committed")
	good.want.RowGroups = nil // as of a partition that has very many
	status, text := f.put(good)
	assert.Equal(t, http.StatusCreated, status, text)
}
