package private

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/sdk/tensor"
	"github.com/millrace/millrace/sdk/vocabulary/reducer"
	"github.com/millrace/millrace/trainmgr/local"
)

const lookedUp = `batch: 20
sparse: [{columns: [items], ops: [vocabulary: items]}]
vocabularies: {items: {base: 3}}
`

// TestVocabulariesOfATrainer opens files with a vocabulary of a part of them: its size is in the schema, and an id that
// it lacks fails with the file, the column and the row.
func TestVocabulariesOfATrainer(t *testing.T) {
	files := writeFiles(t, 60, 40)
	first := filepath.Join(filepath.Dir(files), "day_0.parquet")
	spec, err := pipeline.Parse([]byte(lookedUp))
	require.NoError(t, err)
	m, err := local.Open(t.Context(), local.Config{Files: source.ParseLocations(first)})
	require.NoError(t, err)
	pass := reducer.Pass{Pipeline: spec, Name: "items", Path: filepath.Join(t.TempDir(), "v")}
	made, err := pass.Run(t.Context(), &local.PassSource{Storage: m})
	require.NoError(t, err)
	require.NoError(t, m.Close())

	tr, ended := start(t, Options{})
	tr.send(&Open{Version: Version, Plan: Plan{Order: "deterministic", Shuffle: "none"}, Source: Source{
		Files: []string{files}, Pipeline: lookedUp, Vocabularies: map[string]string{"items": pass.Path}}})
	opened := must[*Opened](tr)
	var schema tensor.Schema
	require.NoError(t, json.Unmarshal(opened.Schema, &schema))
	assert.Equal(t, 3+made.Tables[0].Keys, schema.Keys[0].NumEmbeddings)
	batches := 0
	for failed := (*Failed)(nil); failed == nil; {
		message, err := tr.next()
		require.NoError(t, err)
		switch m := message.(type) {
		case *MiniBatch:
			batches++
			tr.send(&Free{Buffer: m.Buffer})
		case *Failed:
			failed = m
			assert.Equal(t, CodeData, m.Code, m.Message)
			assert.Equal(t, "day_1.parquet", filepath.Base(m.File))
			assert.Equal(t, "items", m.Column)
			require.NotNil(t, m.Row)
			assert.Less(t, *m.Row, int64(20))
		}
	}
	assert.LessOrEqual(t, batches, 3, "the first partition has three mini-batches")
	require.NoError(t, tr.conn.Close())
	_ = awaitEnd(t, ended)
}

// TestModulesOfATrainer opens files with a module, whose function makes the values, and with modules that do not fit.
func TestModulesOfATrainer(t *testing.T) {
	files, dir := []string{writeFiles(t, 20)}, t.TempDir()
	const document = "batch: 20\nsparse: [{inputs: [label], as: k, " +
		"ops: [wasm: {module: m, function: negate, in: [int64], out: int64}]}]\n"
	module := wasmtest.Module{Functions: []wasmtest.Function{{Name: "negate", Params: []byte{wasmtest.I64},
		Results: []byte{wasmtest.I64}, Code: wasmtest.Code(wasmtest.ConstI64(0), wasmtest.Get(0), wasmtest.Op(0x7d))}}}
	path := filepath.Join(dir, "m.wasm")
	require.NoError(t, os.WriteFile(path, module.Bytes(), 0o600))
	open := func(document string, modules map[string]string) *trainer {
		tr, ended := start(t, Options{})
		tr.send(&Open{Version: Version, Plan: Plan{Order: "deterministic", Shuffle: "none"}, Source: Source{
			Files: files, Pipeline: document, Modules: modules}})
		t.Cleanup(func() {
			require.NoError(t, tr.conn.Close())
			_ = awaitEnd(t, ended)
		})
		return tr
	}
	tr := open(document, map[string]string{"m": path})
	must[*Opened](tr)
	_, mb := tr.take()
	require.Len(t, mb.Values64, 20)
	for i, v := range mb.Values64 {
		assert.EqualValues(t, -(i % 2), v)
	}
	for name, c := range map[string]struct {
		document   string
		modules    map[string]string
		code, says string
	}{
		"none":           {document, nil, CodePipeline, `or in Python with modules={"m": FILE}`},
		"not there":      {document, map[string]string{"m": "/nowhere/m"}, CodeOptions, "/nowhere/m"},
		"a folder":       {document, map[string]string{"m": dir}, CodeOptions, "not a regular file"},
		"of other names": {document, map[string]string{"mm": path}, CodeOptions, `did you mean "m"?`},
		"other function": {strings.Replace(document, "negate", "sub", 1), map[string]string{"m": path}, CodePipeline,
			`no function "sub" is exported`},
	} {
		failed := must[*Failed](open(c.document, c.modules))
		assert.Equal(t, c.code, failed.Code, name+": "+failed.Message)
		assert.Contains(t, failed.Message, c.says, name)
	}
}

// TestVocabulariesThatCannotBeOpened checks files that are not there, and pipelines without their vocabulary.
func TestVocabulariesThatCannotBeOpened(t *testing.T) {
	files := []string{writeFiles(t, 20)}
	for name, c := range map[string]struct {
		vocabularies map[string]string
		code, says   string
	}{
		"none":           {nil, CodePipeline, `"items" has no file`},
		"not there":      {map[string]string{"items": "/nowhere/v"}, CodeOptions, "/nowhere/v"},
		"of other names": {map[string]string{"item": "/nowhere/v"}, CodeOptions, `did you mean "items"?`},
	} {
		t.Run(name, func(t *testing.T) {
			tr, ended := start(t, Options{})
			tr.send(&Open{Version: Version, Source: Source{Files: files, Pipeline: lookedUp, Vocabularies: c.vocabularies}})
			failed := must[*Failed](tr)
			assert.Equal(t, c.code, failed.Code, failed.Message)
			assert.Contains(t, failed.Message, c.says)
			require.NoError(t, tr.conn.Close())
			_ = awaitEnd(t, ended)
		})
	}
}
