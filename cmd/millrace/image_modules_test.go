package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	w "github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
)

// counterVectors are known answers of writeCounter's function.
const counterVectors = `{"functions": [{"function": "count", "in": ["int64", "int64"], "out": "int64", "rows": [
  {"in": [1, 2], "out": 5}, {"in": [-5, 2], "out": -1}, {"in": [null, 2], "out": null}]}]}`

// TestAnImageDeploysOperators builds an image with a module, and preprocesses with its function in a drive over both
// command sets. A drive whose image lacks the module names the slot that has it.
func TestAnImageDeploysOperators(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	data, pipe, module := filepath.Join(dir, "data"), filepath.Join(dir, "p.yaml"), writeCounter(t, 0)
	must(t, "dataset", "generate", "--progress", "none", "--rows", "900", "--row-group-rows", "400", "--out", data)
	require.NoError(t, os.WriteFile(pipe, []byte(`values:
  - {as: a, from: int_0, ops: [fill_null: 0]}
  - {as: b, from: int_1, ops: [fill_null: 0]}
sparse:
  - {inputs: [a, b], as: k, ops: [wasm: {module: counter, function: count, in: [int64, int64], out: int64}]}
`), 0o600))
	values := func(how ...string) []byte {
		t.Helper()
		out := filepath.Join(t.TempDir(), "out")
		must(t, append([]string{"preprocess", "--progress", "none", "--pipeline", pipe, "--wasm", module, "--out", out},
			how...)...)
		_, got := array(t, out, "values.npy")
		require.NotEmpty(t, got)
		return got
	}
	want := values("--in", data, "--engine", "cpu")
	require.Equal(t, want, values("--in", data, "--engine", "reference"))

	drive, mimg := "file:"+dir+"/d0.flash", filepath.Join(dir, "counter.mimg")
	must(t, "drive", "create", drive+"?size=64MiB")
	parts, err := filepath.Glob(data + "/*.parquet")
	require.NoError(t, err)
	must(t, append([]string{"drive", "put", "--progress", "none", drive}, parts...)...)
	known := file(t, "vectors.json", counterVectors)
	must(t, "image", "build", "--stock", "--wasm", module, "--vectors", "counter="+known, "--out", mimg)
	fails := func(says string, how ...string) {
		t.Helper()
		code, _, errs := millrace(t, append([]string{"preprocess", "--progress", "none", "--pipeline", pipe, "--wasm",
			module, "--out", filepath.Join(dir, "none")}, how...)...)
		assert.Equal(t, exitFailed, code)
		assert.Contains(t, errs, says)
		assert.NoDirExists(t, filepath.Join(dir, "none"))
	}
	m, err := readImage(mimg)
	require.NoError(t, err)
	digest := m.Spec.Modules[0].Digest().String()
	fails("module "+digest+" is in no image of the drive", "--drive", drive)
	fails("module "+digest+" is in no image of the drive", "--in", data, "--engine", "drive")
	for _, commands := range []string{"vendor", "standard"} {
		assert.Equal(t, want, values("--in", data, "--image", mimg, "--commands", commands), commands)
	}
	for says, how := range map[string][]string{
		"--image is for --in alone":                 {"--drive", drive},
		"--image is for a drive that computes, and": {"--in", data, "--engine", "cpu"},
	} {
		code, _, errs := millrace(t, append([]string{"preprocess", "--pipeline", pipe, "--wasm", module, "--image",
			mimg, "--out", filepath.Join(dir, "none")}, how...)...)
		assert.Equal(t, exitUsage, code)
		assert.Contains(t, errs, says)
	}
	must(t, "image", "load", drive, mimg, "--slot", "1")
	fails(fmt.Sprintf("but in image %s in slot 1: activate that image", m.ID.Short()), "--drive", drive)
	must(t, "image", "activate", drive, "1")
	for _, commands := range []string{"vendor", "standard"} {
		assert.Equal(t, want, values("--drive", drive+"?commands="+commands), commands)
	}
	assert.Equal(t, []image.SlotModule{{Name: "counter", SHA256: m.Spec.Modules[0].Digest()}},
		reported(t, drive).Slots[1].Modules)
	must(t, "image", "rollback", drive)
	fails("in slot 1: activate that image", "--drive", drive)

	var info imageDescription
	require.NoError(t, json.Unmarshal([]byte(must(t, "image", "info", mimg, "--output", "json")), &info))
	require.Len(t, info.Modules, 1)
	assert.Equal(t, []string{"count(int64, int64) -> int64"}, info.Modules[0].Functions)
	assert.Contains(t, must(t, "image", "info", mimg), digest)
	assert.Contains(t, info.SelfTests, "counter: count")
	assert.NotContains(t, info.Unproven, "wasm")
	again := filepath.Join(dir, "again.mimg")
	must(t, "image", "build", file(t, "spec.json", must(t, "image", "info", mimg, "--spec")), "--out", again)
	sameBytes, err := os.ReadFile(again)
	require.NoError(t, err)
	assert.Equal(t, m.Bytes(), sameBytes)
}

// TestImagesWithModulesThatAreRefused builds images of modules and known answers that do not fit.
func TestImagesWithModulesThatAreRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	module, known := writeCounter(t, 0), file(t, "vectors.json", counterVectors)
	build := func(flags ...string) (int, string) {
		code, _, errs := millrace(t, append([]string{"image", "build", "--stock", "--out", dir + "/x.mimg"},
			flags...)...)
		return code, errs
	}
	for says, flags := range map[string][]string{
		"NAME=FILE":                     {"--wasm", "=" + module},
		"want MODULE=FILE":              {"--wasm", module, "--vectors", known},
		`the image has no module "out"`: {"--wasm", module, "--vectors", "out=" + known},
	} {
		code, errs := build(flags...)
		assert.Equal(t, exitUsage, code, says)
		assert.Contains(t, errs, says)
	}
	code, errs := build("--wasm", "text="+known)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, `module "text": wasm module: byte 0`)
	code, errs = build("--wasm", module, "--vectors", "counter="+module)
	assert.Equal(t, exitFailed, code)
	assert.Contains(t, errs, "vectors:")

	// Known answers of every kind are tested by drives, and a wrong one keeps the image off them.
	f := func(name string, of byte, code ...[]byte) w.Function {
		return w.Function{Name: name, Params: []byte{of}, Results: []byte{of}, Code: w.Code(code...)}
	}
	kinds := file(t, "kinds.wasm", string(w.Module{Functions: []w.Function{
		f("halve32", w.F32, w.Get(0), w.ConstF32(0x3f000000), w.Op(0x94)),
		f("halve64", w.F64, w.Get(0), w.ConstF64(0.5), w.Op(0xa2)),
		f("invert", w.I64, w.ConstI64(60), w.Get(0), w.Op(0x7f))}}.Bytes()))
	answers := func(half string) string {
		return file(t, "kinds.json", `{"functions": [
  {"function": "halve32", "in": ["float32"], "out": "float32", "rows": [{"in": [3], "out": 1.5}, {"in": ["nan"],
    "out": "nan"}]},
  {"function": "halve64", "in": ["float64"], "out": "float64", "rows": [{"in": [0.2], "out": `+half+`}]},
  {"function": "invert", "in": ["int64"], "out": "int64", "rows": [{"in": [7], "out": 8},
    {"in": [0], "trap": true}]}]}`)
	}
	for half, want := range map[string]int{"0.1": exitDone, "0.2": exitFailed} {
		must(t, "image", "build", "--stock", "--wasm", kinds, "--vectors", "kinds="+answers(half), "--out",
			dir+"/k.mimg")
		code, out, _ := millrace(t, "image", "verify", dir+"/k.mimg")
		assert.Equal(t, want, code, half)
		if want == exitFailed {
			assert.Contains(t, out, `self-test "kinds: halve64" put out other bytes`)
		}
	}
}
