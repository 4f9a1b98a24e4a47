package storagenodetest_test

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/examples/storagenodetest"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/remote"
)

type visit struct {
	Bought int32 `parquet:"bought"`
	Page   int64 `parquet:"page"`
}

const features = `
name: visits
batch: 100
label: {column: bought}
sparse:
  - columns: [page]
    ops: [positive_modulus: 500]
`

func TestJobOnAStorageNode(t *testing.T) {
	var file bytes.Buffer
	require.NoError(t, parquet.Write(&file, make([]visit, 250)))
	service, err := storagenodetest.Start(t.Context(), t.TempDir(),
		storagenodetest.Partition{Name: "day-0.parquet", Bytes: int64(file.Len()), Content: &file})
	require.NoError(t, err)
	defer func() { assert.NoError(t, service.Close()) }()

	var out strings.Builder
	train(t, service.URL(), &out)
	assert.Equal(t, "mini-batch 0: 100 rows\nmini-batch 1: 100 rows\nmini-batch 2: 50 rows\n", out.String())
}

// train does the work of a launcher: it submits a job, attaches to it as its only rank, and takes every mini-batch.
func train(t *testing.T, controlPlane string, out io.Writer) {
	client, err := remote.Dial(remote.Options{Control: []string{controlPlane}})
	require.NoError(t, err)
	defer func() { assert.NoError(t, client.Close()) }()
	status, err := client.Submit(t.Context(), &apiv1.JobSpec{
		Name:     "visits",
		Pipeline: []byte(features),
		Order:    "deterministic",
		Plan:     &apiv1.PlanOptions{Shuffle: "none"},
	})
	require.NoError(t, err)
	job, err := client.Attach(t.Context(), status.Id, remote.AttachOptions{})
	require.NoError(t, err)
	for mb, err := range job.MiniBatches(t.Context()) {
		require.NoError(t, err)
		fmt.Fprintf(out, "mini-batch %d: %d rows\n", mb.Name.Number, mb.Rows)
	}
	_, err = job.Checkpoint(t.Context())
	require.NoError(t, err)
	require.NoError(t, job.Close())
}
