package node

import (
	"testing"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/api"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/node/nodetest"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
	"github.com/millrace/millrace/sdk/selection"
)

// describePass makes the pass of a filter over what the node holds, as the control plane does.
func (f *fixture) describePass(text string) (*nodetest.Job, *resolve.Resolved, dataset.Partition) {
	f.t.Helper()
	r, err := f.node.Describe(f.t.Context(), &apiv1.DescribeRequest{})
	require.NoError(f.t, err)
	columns, err := api.DecodeColumns(r.Status.Schemas[0].Columns)
	require.NoError(f.t, err)
	spec, err := pipeline.Parse([]byte(text))
	require.NoError(f.t, err)
	resolved, err := resolve.Pipeline(spec, columns)
	require.NoError(f.t, err)
	pass, err := resolve.Pipeline(resolved.Filter.Spec, columns)
	require.NoError(f.t, err)
	p := r.Status.Partitions[0]
	entry := dataset.Partition{Name: p.Name, Bytes: p.Bytes, Rows: p.Rows, RowGroups: p.RowGroups,
		Content: dataset.Digest(p.ContentSha256)}
	j := nodetest.NewJob(f.t, text, dataset.Options{Shuffle: dataset.ShuffleNone}, []dataset.Partition{entry}, columns)
	m, err := selection.PartManifest(entry)
	require.NoError(f.t, err)
	digest, err := m.Digest()
	require.NoError(f.t, err)
	j.Digest, err = dataset.JobDigest(digest, pass.Canonical(), j.Plan.Options())
	require.NoError(f.t, err)
	filter := resolved.FilterDigest()
	j.Job, j.Columns, j.FilterPass = j.Digest[:], r.Status.Schemas[0].Columns, &apiv1.FilterPass{Filter: filter[:]}
	return j, resolved, entry
}

// TestSelectRows: a node tests the rows of a partition by the filter of a pass, and keeps the part when the pass is
// finished. Requests that make no sense are refused.
func TestSelectRows(t *testing.T) {
	f := start(t, nil, fill(t, "mem", map[string][]byte{"a.parquet": nodetest.Partition(t, 1, 700)}))
	const text = "sparse: [{columns: [cat_0]}]\nfilter: {column: label, eq: 1}\n"
	j, resolved, entry := f.describePass(text)
	ask := func(change func(*apiv1.SelectRowsRequest)) (*apiv1.SelectRowsResponse, error) {
		r := &apiv1.SelectRowsRequest{Job: j.Digest[:], Drive: "d0", Partition: "a.parquet", WaitSeconds: 10}
		if change != nil {
			change(r)
		}
		return f.node.SelectRows(t.Context(), r)
	}
	_, err := ask(nil)
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err), "%v", err)

	filter := j.FilterPass.Filter
	for name, c := range map[string]struct {
		filter []byte
		code   connect.Code
	}{
		"another filter": {make([]byte, 32), connect.CodeFailedPrecondition}, "no digest": {filter[:5],
			connect.CodeInvalidArgument},
	} {
		j.FilterPass.Filter = c.filter
		_, err := f.node.Prepare(t.Context(), j.PrepareRequest)
		assert.Equal(t, c.code, connect.CodeOf(err), "%s: %v", name, err)
	}
	j.FilterPass.Filter = filter
	_, err = f.node.Prepare(t.Context(), j.PrepareRequest)
	require.NoError(t, err)

	var answer *apiv1.SelectRowsResponse
	f.wait("the part", func() bool {
		answer, err = ask(nil)
		require.NoError(t, err)
		return answer.Bytes > 0
	})
	require.Len(t, answer.Piece, int(answer.Bytes))
	assert.Equal(t, int64(700), answer.Tested)
	part, err := selection.Decode(answer.Piece)
	require.NoError(t, err)
	require.NoError(t, selection.CheckPart(part, entry, resolved.FilterDigest()))
	assert.Positive(t, part.Passing())
	assert.Less(t, part.Passing(), int64(700))
	tail, err := ask(func(r *apiv1.SelectRowsRequest) { r.Offset = answer.Bytes - 3 })
	require.NoError(t, err)
	assert.Equal(t, answer.Piece[answer.Bytes-3:], tail.Piece)

	for name, change := range map[string]func(*apiv1.SelectRowsRequest){
		"partition": func(r *apiv1.SelectRowsRequest) { r.Partition = "b.parquet" },
		"job":       func(r *apiv1.SelectRowsRequest) { r.Job = r.Job[:3] },
	} {
		_, err := ask(change)
		assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err), "%s: %v", name, err)
	}
	_, err = ask(func(r *apiv1.SelectRowsRequest) { r.Drive = "d7" })
	assert.Equal(t, connect.CodeNotFound, connect.CodeOf(err), "%v", err)
	_, err = ask(func(r *apiv1.SelectRowsRequest) { r.Offset = 1 << 40 })
	require.ErrorContains(t, err, "of a part of")

	_, err = f.node.Finish(t.Context(), &apiv1.FinishRequest{Job: j.Digest[:]})
	require.NoError(t, err)
	_, err = ask(nil)
	require.Equal(t, connect.CodeNotFound, connect.CodeOf(err), "%v", err)
	here, err := f.selections.parts.Has(entry, resolved.FilterDigest())
	require.NoError(t, err)
	assert.True(t, here, "another job with the filter finds it")
}
