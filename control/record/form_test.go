package record

import (
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/trainmgr/allocation"
)

// TestFormOfASealedToken holds the token that the service hands out.
func TestFormOfASealedToken(t *testing.T) {
	goldenfile.Bytes(t, "testdata/token.v2.hex", WrapToken(testKey, bareToken(t)))
	token, sealed, err := UnwrapToken(testKey, goldenfile.Read(t, "testdata/token.v2.hex"))
	require.NoError(t, err)
	assert.True(t, sealed)
	assert.EqualValues(t, 3, token.Epoch)
}

// TestFormOfRecords holds the JSON of a job's records, and reads what earlier builds wrote.
func TestFormOfRecords(t *testing.T) {
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	submission := Submission{ID: "job-1", Owner: "ann", Submitted: at, Spec: []byte{10, 3, 'a', 'd', 's'}}
	state := State{
		Phase: Waiting, Why: "no trainer", Taken: 2, P: map[string]float64{"n0/d0": 1.5e6}, T: 3e6,
		Editions:   []Edition{{Number: 1, First: 4, Digest: dataset.Digest{1, 31: 2}, Pieces: 1}},
		Allocation: allocation.Allocation{}, Redelivered: 5, Stays: "10?", Runs: []byte{1, 2, 3, 4, 5, 6, 7, 8},
		Unattended: at, Token: []byte{9}, Ended: at, Final: []byte{8},
	}
	keep := func(path string, v any) []byte {
		b, err := json.MarshalIndent(v, "", "  ")
		require.NoError(t, err)
		goldenfile.Text(t, path, string(b)+"\n")
		kept, err := os.ReadFile(path)
		require.NoError(t, err)
		return kept
	}
	gotSubmission, _, err := ReadSubmission(keep("testdata/submission.v1.json", submission))
	require.NoError(t, err)
	assert.Equal(t, submission, gotSubmission)
	var gotState State
	require.NoError(t, json.Unmarshal(keep("testdata/state.v1.json", state), &gotState))
	assert.Equal(t, state, gotState)
	pooled := PooledWorker{Started: true, Until: at, Jobs: []string{"job-1"}}
	var gotPooled PooledWorker
	require.NoError(t, json.Unmarshal(keep("testdata/pooled.v1.json", pooled), &gotPooled))
	assert.Equal(t, pooled, gotPooled)
	assert.Equal(t, "job/job-1/spec", Key("job-1", "spec"))
	assert.Equal(t, "job/job-1/data/2/0011", DataKey("job-1", 2, 11))
}

// TestFormOfAnEdition reads the pieces that an earlier build packed. The bytes of what Pack writes follow from the Go
// version's compressor, so they are not compared.
func TestFormOfAnEdition(t *testing.T) {
	const path = "testdata/edition.v2.hex"
	if goldenfile.Updating() {
		pieces, err := Pack(selection(t, 2))
		require.NoError(t, err)
		require.Len(t, pieces, 1)
		goldenfile.Bytes(t, path, pieces[0])
	}
	got, err := Unpack([][]byte{goldenfile.Read(t, path)})
	require.NoError(t, err)
	want := selection(t, 2)
	wantDigest, err := want.Manifest.Digest()
	require.NoError(t, err)
	gotDigest, err := got.Manifest.Digest()
	require.NoError(t, err)
	assert.Equal(t, wantDigest, gotDigest)
	want.Manifest, got.Manifest = nil, nil
	assert.Equal(t, want, got)
}
