package endtoend

import (
	"bytes"
	"testing"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/remote"
)

// olderRow is a row of partitions that were written before the label's column, lists and wide ids.
type olderRow struct {
	Cat0 int32 `parquet:"cat_0"`
}

const absentDocument = `name: absent
batch: 50
label: {column: label, null: 0}
dense:
  - columns: [int_0]
    absent: allow
    ops: [fill_null: 3, clamp: {min: 0}, log: {add: 1}]
sparse:
  - columns: [cat_0, list_0]
    absent: allow
    ops: [sigrid_hash: {salt: 0, max: 1000}]
`

// TestNodesLackColumns checks a job over two nodes, one of which holds only partitions that lack columns: a node cannot
// tell from its own partitions what the pipeline reads. The mini-batches are those of one machine.
func TestNodesLackColumns(t *testing.T) {
	data := files(t, 300, 260)
	old := make([]olderRow, 230)
	for i := range old {
		old[i].Cat0 = int32(i * i)
	}
	var b bytes.Buffer
	require.NoError(t, pq.Write(&b, old))
	older := map[string][]byte{"part-00000-old.parquet": b.Bytes()}
	all := map[string][]byte{"part-00000-old.parquet": b.Bytes()}
	for name, content := range data {
		all[name] = content
	}
	want := pipelineOnOneMachine(t, absentDocument, all, 1)
	s := startControl(t, controlOptions(t.TempDir()))
	for name, held := range map[string]map[string][]byte{"n0": older, "n1": data} {
		runNode(t, nodeConfig(name, []string{s.URL()}, makeDrive(t, "mem", held)))
	}
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true, "n1": true}, len(all))
	st, err := c.Submit(t.Context(), &apiv1.JobSpec{Pipeline: []byte(absentDocument), Plan: plan(), Epochs: 1,
		Order: "deterministic", Ranks: 1})
	require.NoError(t, err)
	got := newResult()
	j, err := c.Attach(t.Context(), st.Id, remote.AttachOptions{})
	require.NoError(t, err)
	for mb, err := range j.MiniBatches(t.Context()) {
		require.NoError(t, err)
		got.add(t, mb)
	}
	require.NoError(t, j.Close())
	check(t, want, got, true)
	awaitDone(t, c, st.Id)

	_, err = c.Submit(t.Context(), &apiv1.JobSpec{Pipeline: []byte(document), Plan: plan(), Ranks: 1})
	require.ErrorContains(t, err, "part-00000-old.parquet: it is absent there; write absent: allow")
}
