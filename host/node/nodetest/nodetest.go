// Package nodetest makes partitions, and jobs over them, for tests of storage nodes and of workers.
package nodetest

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/resolve"
)

// row is a row of the generated partitions. Other is a column that Document does not read.
type row struct {
	Label int32   `parquet:"label"`
	Int0  *int32  `parquet:"int_0,optional"`
	Other string  `parquet:"other"`
	Cat0  int64   `parquet:"cat_0"`
	List0 []int64 `parquet:"list_0,list"`
}

// Partition makes the bytes of a Parquet file, the same for the same numbers.
func Partition(t testing.TB, seed uint64, rows int) []byte {
	t.Helper()
	rng := rand.New(rand.NewPCG(seed, 3))
	all := make([]row, rows)
	for i := range all {
		r := &all[i]
		r.Label, r.Cat0, r.Other = int32(rng.IntN(2)), rng.Int64N(1<<40), fmt.Sprint(rng.Uint64())
		if rng.IntN(4) > 0 {
			v := int32(rng.IntN(5000))
			r.Int0 = &v
		}
		for range rng.IntN(5) {
			r.List0 = append(r.List0, rng.Int64N(1<<40))
		}
	}
	var b bytes.Buffer
	w := pq.NewGenericWriter[row](&b, pq.MaxRowsPerRowGroup(400), pq.PageBufferSize(1<<10), pq.Compression(&pq.Snappy))
	_, err := w.Write(all)
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// Document is a pipeline over such partitions.
const Document = `name: lists
batch: 50
label: {column: label}
dense:
  - columns: [int_0]
    ops: [fill_null: 0, clamp: {min: 0}, log: {add: 1}]
sparse:
  - columns: [cat_0, list_0]
    ops: [sigrid_hash: {salt: 0, max: 1000}]
`

// Job is a job as a node is given it, and its plan.
type Job struct {
	Digest dataset.Digest
	Plan   *dataset.Plan
	*apiv1.PrepareRequest
}

// NewJob makes a job over partitions with columns. Mini-batches have 50 rows unless the options say otherwise.
func NewJob(t testing.TB, document string, o dataset.Options, list []dataset.Partition, columns []columntypes.Column,
	modules ...pipeline.Module) *Job {
	t.Helper()
	manifest, err := dataset.NewManifest(list)
	require.NoError(t, err)
	spec, err := pipeline.Parse([]byte(document))
	require.NoError(t, err)
	for _, m := range modules {
		spec, err = spec.BindModule(m)
		require.NoError(t, err)
	}
	resolved, err := resolve.Pipeline(spec, columns)
	require.NoError(t, err)
	if o.Batch == 0 {
		o.Batch = 50
	}
	plan, err := dataset.NewPlan(manifest, o)
	require.NoError(t, err)
	o = plan.Options()
	sum, err := manifest.Digest()
	require.NoError(t, err)
	digest, err := dataset.JobDigest(sum, resolved.Canonical(), o)
	require.NoError(t, err)
	text, err := manifest.MarshalJSON()
	require.NoError(t, err)
	return &Job{digest, plan, &apiv1.PrepareRequest{Job: digest[:], Pipeline: []byte(document), Manifest: text,
		Plan: apiv1.WritePlan(o)}}
}
