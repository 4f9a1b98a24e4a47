package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/sdk/pipeline"
)

// TestTheEngineMakesEveryRowOfAllEpochs gives the engine alone a job, as python/speed.py does.
func TestTheEngineMakesEveryRowOfAllEpochs(t *testing.T) {
	d, _ := smallData(t, "rm1", layouts[1], 2)
	document, err := pipeline.Document("rm1")
	require.NoError(t, err)
	job := engineJob{Pipeline: string(document), Batch: 1000, Epochs: 3}
	for _, f := range d.files() {
		job.Files = append(job.Files, f.Path)
	}
	b, err := json.Marshal(job)
	require.NoError(t, err)
	var out bytes.Buffer
	require.NoError(t, runEngine(t.Context(), bytes.NewReader(b), &out))
	var s sample
	require.NoError(t, json.Unmarshal(out.Bytes(), &s))
	assert.Equal(t, 3*d.Rows, s.Rows)
	assert.Positive(t, s.CPU)
	assert.Positive(t, s.Wall)
}

func TestTheEngineRefusesJobsThatItCannotRun(t *testing.T) {
	for job, want := range map[string]string{
		`[]`: "read the job of -engine",
		`{"files": ["a.parquet"], "batch": 0, "epochs": 1}`:                             "a batch and epochs from 1",
		`{"batch": 1, "epochs": 1}`:                                                     "wants files",
		`{"files": ["a.parquet"], "batch": 1, "epochs": 1, "pipeline": "name: ["}`:      "",
		`{"files": ["/no"], "batch": 1, "epochs": 1, "pipeline": "label: {column: l}"}`: "no such file",
	} {
		assert.ErrorContains(t, runEngine(t.Context(), strings.NewReader(job), &bytes.Buffer{}), want, job)
	}
}
