package endtoend

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock/stocktest"
	w "github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/worker"
	"github.com/millrace/millrace/internal/shared"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/pipeline"
	"github.com/millrace/millrace/trainmgr/remote"
)

// calledDocument calls a function of a module for a key, and for the value of a filter.
const calledDocument = `name: called
batch: 50
label: {column: label}
values:
  - {as: a, from: int_0, ops: [fill_null: 0]}
  - {inputs: [a, cat_0], as: both, ops: [wasm: {module: features, function: add, in: [int64, int64], out: int64}]}
sparse:
  - {columns: [both, list_0], ops: [positive_modulus: 1000]}
filter: {column: both, ge: 1000}
`

// featuresModule returns a module whose function adds two integers, a constant, and how often it was called.
func featuresModule(add int64) pipeline.Module {
	f := w.Function{Name: "add", Params: []byte{w.I64, w.I64}, Results: []byte{w.I64}, Code: w.Code(
		w.Op(0x23, 0), w.ConstI64(1), w.Op(0x7c, 0x24, 0),
		w.Get(0), w.Get(1), w.Op(0x7c, 0x23, 0, 0x7c), w.ConstI64(add), w.Op(0x7c))}
	m := w.Module{Functions: []w.Function{f}, Globals: []w.Global{{Type: w.I64, Init: w.ConstI64(0)}}}
	return pipeline.Module{Name: "features", Bytes: m.Bytes()}
}

// calls are the files of a job that calls functions of modules.
func calls(modules ...pipeline.Module) remote.Files { return remote.Files{Modules: modules} }

// calledSpec is a job of calledDocument.
func calledSpec() *apiv1.JobSpec {
	return &apiv1.JobSpec{Name: "called", Pipeline: []byte(calledDocument), Plan: plan(), Epochs: 1}
}

// writeImage writes the stock image with a module to a file, and returns its path and the image.
func writeImage(t testing.TB, m pipeline.Module) (string, *image.Image) {
	t.Helper()
	made := stocktest.Changed(t, func(s *image.Spec) { s.AddModule(image.Module{Name: m.Name, Bytes: m.Bytes}) })
	path := filepath.Join(t.TempDir(), "features.mimg")
	require.NoError(t, os.WriteFile(path, made.Bytes(), 0o600))
	return path, made
}

// awaitImage waits until the drives of a node have an image.
func awaitImage(t testing.TB, c *remote.Client, name string, want *image.Image) {
	t.Helper()
	require.Eventually(t, func() bool {
		list, err := c.Nodes(t.Context())
		require.NoError(t, err)
		for _, n := range list {
			if n.Status.Name == name {
				ready := len(n.Status.Drives) > 0
				for _, d := range n.Status.Drives {
					ready = ready && d.Image == want.ID.String() && d.State == "ready"
				}
				return ready
			}
		}
		return false
	}, time.Minute, 20*time.Millisecond)
}

// TestModulesInTheCluster: a node whose drive has an image with the module, a node whose CPU runs modules of
// submitters, and a worker whose configuration names the image make the mini-batches of one machine. The filter of the
// pipeline calls the module, too. A node that is replaced in the middle by one with an empty disk fetches the module
// again.
func TestModulesInTheCluster(t *testing.T) {
	data := files(t, 1500, 1401, 900, 1049)
	module := featuresModule(0)
	spec, err := pipeline.Parse([]byte(calledDocument))
	require.NoError(t, err)
	spec, err = spec.BindModule(module)
	require.NoError(t, err)
	want, _ := boundFilteredHere(t, spec, data, 1)
	path, made := writeImage(t, module)
	s := startControl(t, controlOptions(t.TempDir()))
	parts := deal(data, 2)
	drive := nodeConfig("n0", []string{s.URL()}, makeDrive(t, "mem", parts[0]))
	drive.Image.File = path
	runNode(t, drive)
	cpu := nodeConfig("n1", []string{s.URL()}, makeDrive(t, "mem", parts[1]))
	cpu.Drives[0].Engine, cpu.Modules.Submitted = "cpu", true
	b := startNode(t, cpu, node.Options{})
	defer func() { assert.NoError(t, b.Close()) }()
	pool := workerConfig("w0", []string{s.URL()})
	pool.Modules.Images = []string{path}
	pooled := startWorker(t, pool)
	defer func() { assert.NoError(t, pooled.Close()) }()
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true, "n1": true}, len(data))
	awaitImage(t, c, "n0", made)
	awaitReady(t, c, "w0")

	_, err = c.Submit(t.Context(), calledSpec())
	require.ErrorContains(t, err, `"features" has no file: name it with --wasm features=FILE`)
	st, err := c.SubmitWith(t.Context(), "", calledSpec(), calls(module))
	require.NoError(t, err)
	again, err := c.SubmitWith(t.Context(), "", calledSpec(), calls(module))
	require.NoError(t, err)
	assert.Equal(t, st.Id, again.Id, "the same submission is the same job")
	_, err = c.SubmitWith(t.Context(), "", calledSpec(), calls(featuresModule(1)))
	require.ErrorContains(t, err, "was submitted otherwise", "another module is another job")
	got := takeAll(t, c, st.Id, func(n int) {
		if n != 20 {
			return
		}
		require.NoError(t, b.Close())
		b = startNode(t, cpu, node.Options{})
	})
	check(t, want, got, false)
	st = awaitDone(t, c, st.Id)
	require.Len(t, st.Spec.Modules, 1)

	only := calledSpec()
	only.Name, only.Placement = "pool", "pool"
	st, err = c.SubmitWith(t.Context(), "", only, calls(module))
	require.NoError(t, err)
	check(t, want, takeAll(t, c, st.Id, nil), false)
}

// awaitFailed waits until a job has failed, and returns why.
func awaitFailed(t testing.TB, c *remote.Client, id string) string {
	t.Helper()
	var st *apiv1.JobStatus
	awaitJob(t.Context(), t, c, id, "it fails", func(now *apiv1.JobStatus) bool {
		st = now
		return strings.HasPrefix(st.State, "failed")
	})
	return st.State
}

// TestModulesThatANodeDoesNotRun: unless its configuration says otherwise, a node runs no module that a submitter put
// there, and the job's state says what to do. A drive says which of its images has the module.
func TestModulesThatANodeDoesNotRun(t *testing.T) {
	data := files(t, 300)
	module := featuresModule(0)
	spec := calledSpec()
	spec.Pipeline = []byte(strings.Split(calledDocument, "filter:")[0])
	s := startControl(t, controlOptions(t.TempDir()))
	c := dial(t, s.URL())
	cpu := nodeConfig("n0", []string{s.URL()}, makeDrive(t, "file", data))
	cpu.Drives[0].Engine = "cpu"
	a := startNode(t, cpu, node.Options{})
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	st, err := c.SubmitWith(t.Context(), "", spec, calls(module))
	require.NoError(t, err)
	why := awaitFailed(t, c, st.Id)
	assert.Contains(t, why, "name one that holds it in modules.images")
	assert.Contains(t, why, "modules.submitted: true")
	require.NoError(t, a.Close())

	uri := cpu.Drives[0].URI
	drive := nodeConfig("n0", []string{s.URL()}, uri)
	a = startNode(t, drive, node.Options{})
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	st, err = c.SubmitWith(t.Context(), "", spec, calls(module))
	require.NoError(t, err)
	assert.Contains(t, awaitFailed(t, c, st.Id), "is in no image of the drive")
	require.NoError(t, a.Close())

	_, made := writeImage(t, module)
	dev, err := sdk.Open(t.Context(), uri, sdk.DeviceOptions{})
	require.NoError(t, err)
	require.NoError(t, dev.LoadImage(t.Context(), 2, made.Bytes()))
	require.NoError(t, dev.Close())
	a = startNode(t, drive, node.Options{})
	defer func() { assert.NoError(t, a.Close()) }()
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	st, err = c.SubmitWith(t.Context(), "", spec, calls(module))
	require.NoError(t, err)
	assert.Contains(t, awaitFailed(t, c, st.Id), "in slot 2: activate that image")
}

// TestModulesThatAreRefused: the control plane refuses what is not a module, what is too large, other bytes than the
// digest's, and a module without the function that the pipeline calls.
func TestModulesThatAreRefused(t *testing.T) {
	data := files(t, 300)
	s, c := oneNode(t, data)
	service := apiv1connect.NewControlClient(http.DefaultClient, s.URL())
	put := func(raw []byte, digest [32]byte) error {
		_, err := service.PutVocabulary(t.Context(), &apiv1.PutVocabularyRequest{Sha256: digest[:], Bytes: int64(len(raw)),
			Piece: raw[:min(len(raw), 512<<10)], Module: true})
		return err
	}
	module := featuresModule(0)
	text := []byte("this is no WebAssembly module")
	for says, c := range map[string]struct {
		raw    []byte
		digest [32]byte
		code   connect.Code
	}{
		"no WebAssembly module of version 1 begins here": {text, sha256.Sum256(text), connect.CodeInvalidArgument},
		"want 8 to 1048576":                        {make([]byte, 1<<20+1), [32]byte{1}, connect.CodeInvalidArgument},
		"bytes are not those of the file's digest": {module.Bytes, [32]byte{2}, connect.CodeDataLoss},
	} {
		err := put(c.raw, c.digest)
		require.ErrorContains(t, err, says)
		assert.Equal(t, c.code, connect.CodeOf(err), says)
	}
	require.NoError(t, put(module.Bytes, sha256.Sum256(module.Bytes)))
	unreached := w.Code(w.Op(1), w.Unsigned(nil, 50_000), w.Op(w.I64, 0x0b))
	large := w.Module{Functions: []w.Function{{Name: "add", Params: []byte{w.I64, w.I64}, Results: []byte{w.I64},
		Code: w.Get(0)}}, Bodies: slices.Repeat([][]byte{unreached}, 200)}.Bytes()
	require.ErrorContains(t, put(large, sha256.Sum256(large)), "more than 2048 locals")

	submit := func(document string, m pipeline.Module, change func(*apiv1.JobModule)) error {
		digest := sha256.Sum256(m.Bytes)
		named := &apiv1.JobModule{Name: m.Name, Sha256: digest[:], Bytes: int64(len(m.Bytes))}
		if change != nil {
			change(named)
		}
		spec := calledSpec()
		spec.Pipeline, spec.Modules = []byte(document), []*apiv1.JobModule{named}
		_, err := service.SubmitJob(t.Context(), &apiv1.SubmitJobRequest{Spec: spec})
		return err
	}
	// Each loop sets a local, and all locals are read behind the loops.
	looping := w.Function{Name: "add", Params: []byte{w.I64, w.I64}, Results: []byte{w.I64},
		Locals: bytes.Repeat([]byte{w.I64}, 2000)}
	for i := range uint64(300) {
		looping.Code = w.Code(looping.Code, w.Op(3, 0x40), w.Get(i), w.Unsigned([]byte{0x21}, i+1),
			w.Op(0x20, 0, 0xa7, 0x0d, 0, 0x0b))
	}
	for i := range uint64(2000) {
		looping.Code = w.Code(looping.Code, w.Get(i), w.Op(0x1a))
	}
	looping.Code = w.Code(looping.Code, w.Get(0))
	slow := pipeline.Module{Name: "features", Bytes: w.Module{Functions: []w.Function{looping}}.Bytes()}
	require.NoError(t, put(slow.Bytes, sha256.Sum256(slow.Bytes)))
	many, manyCalls := costlyModule(5, 21_500, 0x20, 0, 0x1a)
	require.NoError(t, put(many.Bytes, sha256.Sum256(many.Bytes)))
	missing := submit(calledDocument, featuresModule(5), nil)
	require.ErrorContains(t, missing, "the control plane does not have module")
	assert.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(missing))
	for says, err := range map[string]error{
		`line 6:`: submit(strings.Replace(calledDocument, "function: add", "function: sub", 1), module, nil),
		`no function "sub" is exported`: submit(strings.Replace(calledDocument, "function: add", "function: sub", 1),
			module, nil),
		"steps to compile, want at most 2097152":  submit(calledDocument, slow, nil),
		"take more than 8388608 steps to compile": submit(manyCalls, many, nil),
		`no operator of the pipeline names module "other"`: submit(calledDocument, module,
			func(m *apiv1.JobModule) { m.Name = "other" }),
		"bytes, not": submit(calledDocument, module, func(m *apiv1.JobModule) { m.Bytes++ }),
		"digest of":  submit(calledDocument, module, func(m *apiv1.JobModule) { m.Sha256 = m.Sha256[1:] }),
	} {
		require.ErrorContains(t, err, says)
		assert.Equal(t, connect.CodeInvalidArgument, connect.CodeOf(err), says)
	}
	_, err := c.SubmitWith(t.Context(), "", calledSpec(), calls(pipeline.Module{Name: "features", Bytes: text}))
	require.ErrorContains(t, err, "no WebAssembly module of version 1 begins here", "before it is put")
	_, err = c.SubmitWith(t.Context(), "", calledSpec(), calls(pipeline.Module{Name: "features"}))
	require.ErrorIs(t, err, remote.ErrOptions)
}

// costlyModule is a module of n functions that have some code times times, nearly as often as an operator may, and a
// document that calls them one after the other.
func costlyModule(n, times int, code ...byte) (pipeline.Module, string) {
	var m w.Module
	document := "name: costly\nbatch: 50\nlabel: {column: label}\n" +
		"values:\n  - {as: v, from: int_0, ops: [fill_null: 0]}\n"
	value := "v"
	for i := range n {
		m.Functions = append(m.Functions, w.Function{Name: fmt.Sprintf("f%d", i), Params: []byte{w.I64, w.I64},
			Results: []byte{w.I64}, Code: w.Code(w.Op(2, 0x40), bytes.Repeat(code, times), w.Op(0x0b), w.Get(1))})
		document += fmt.Sprintf("  - {inputs: [%s, cat_0], as: v%d, ops: [wasm: {module: features, function: f%d, "+
			"in: [int64, int64], out: int64}]}\n", value, i, i)
		value = fmt.Sprintf("v%d", i)
	}
	document += fmt.Sprintf("sparse:\n  - {columns: [%s, list_0], ops: [positive_modulus: 1000]}\n", value)
	return pipeline.Module{Name: "features", Bytes: m.Bytes()}, document
}

// TestHostileModulesLeaveAWorkerUnhurt gives a worker that runs submitted modules those that are the largest within the
// limits of an operator, and one whose code does not type. The worker's memory stays small. Jobs can be cancelled as
// soon as they run. A job whose module cannot be compiled fails. The worker ends when its context ends.
// TestModulesThatAreRefused has larger modules.
func TestHostileModulesLeaveAWorkerUnhurt(t *testing.T) {
	if _, err := os.Stat("/proc/self/status"); err != nil {
		shared.Missing(t, "the greatest memory of a process is known on Linux only: %v", err)
	}
	s := startControl(t, controlOptions(t.TempDir()))
	data := files(t, 300)
	runNode(t, nodeConfig("n0", []string{s.URL()}, makeDrive(t, "mem", data)))
	pool := workerConfig("w0", []string{s.URL()})
	pool.Modules.Submitted = true
	p := start(t, role{Worker: &pool})
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	awaitReady(t, c, "w0")
	submit := func(name, document string, m pipeline.Module) string {
		spec := calledSpec()
		spec.Name, spec.Pipeline, spec.Placement = name, []byte(document), "pool"
		st, err := c.SubmitWith(t.Context(), "", spec, calls(m))
		require.NoError(t, err)
		return st.Id
	}
	typeless := pipeline.Module{Name: "features", Bytes: w.Module{Functions: []w.Function{{Name: "add",
		Params: []byte{w.I64, w.I64}, Results: []byte{w.I64}, Code: w.ConstI32(1)}}}.Bytes()}
	id := submit("typeless", strings.Split(calledDocument, "filter:")[0], typeless)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	j, err := c.Attach(ctx, id, remote.AttachOptions{QueueBytes: 40_000})
	require.NoError(t, err)
	for _, err = range j.MiniBatches(ctx) {
		require.Error(t, err)
	}
	require.ErrorContains(t, err, "wasm module: invalid function[0]")
	require.NoError(t, j.Close())
	assert.Contains(t, awaitFailed(t, c, id), "wasm module: invalid function[0]")
	slow, document := costlyModule(4, 1700, 0x20, 0, 0xa7, 0x0d, 0)
	for i := range 2 {
		id := submit(fmt.Sprint("slow", i), document, slow)
		awaitJob(ctx, t, c, id, "it runs", func(now *apiv1.JobStatus) bool { return now.State == "running" })
		require.NoError(t, c.Cancel(ctx, id))
		awaitJob(ctx, t, c, id, "it is cancelled", func(now *apiv1.JobStatus) bool { return now.State == "cancelled" })
	}
	assert.NotEmpty(t, takeAll(t, c, submit("last", document, slow), nil).sums)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	require.NoError(t, err)
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	kib, err := strconv.Atoi(strings.Fields(rest)[0])
	require.NoError(t, err)
	t.Logf("VmHWM of the worker: %d MiB", kib>>10)
	assert.Less(t, kib>>10, 300)
	require.NoError(t, p.stdin.Close())
	select {
	case <-p.done:
		require.NoError(t, p.err)
	case <-time.After(time.Minute):
		t.Fatal("the worker does not end")
	}
}

// TestModulesSurviveTheLeader: the members share modules, so that the leader's death keeps no node that joins later
// from a job. The next leader needs no module to load the job.
func TestModulesSurviveTheLeader(t *testing.T) {
	data := files(t, 1500, 1401)
	module := featuresModule(3)
	spec, err := pipeline.Parse([]byte(calledDocument))
	require.NoError(t, err)
	spec, err = spec.BindModule(module)
	require.NoError(t, err)
	want, _ := boundFilteredHere(t, spec, data, 1)
	members, urls := startMembers(t, 3)
	c := dial(t, urls...)
	parts := deal(data, 2)
	var configs []node.Config
	for i, name := range []string{"n0", "n1"} {
		o := nodeConfig(name, urls, makeDrive(t, "mem", parts[i]))
		o.Drives[0].Engine, o.Modules.Submitted = "cpu", true
		configs = append(configs, o)
	}
	runNode(t, configs[0])
	b := startNode(t, configs[1], node.Options{})
	defer func() { assert.NoError(t, b.Close()) }()
	awaitPartitions(t, c, map[string]bool{"n0": true, "n1": true}, len(data))
	st, err := c.SubmitWith(t.Context(), "", calledSpec(), calls(module))
	require.NoError(t, err)
	digest := sha256.Sum256(module.Bytes)
	require.Eventually(t, func() bool {
		for _, m := range members {
			held, err := os.ReadFile(filepath.Join(m.role.Member.Data, "vocabularies", hex.EncodeToString(digest[:])))
			if err != nil || !bytes.Equal(held, module.Bytes) {
				return false
			}
		}
		return true
	}, time.Minute, 20*time.Millisecond, "every member gets the module")
	got := takeAll(t, c, st.Id, func(n int) {
		if n != 10 {
			return
		}
		require.NoError(t, b.Close())
		members[leaderOf(t, c, members)].kill()
		b = startNode(t, configs[1], node.Options{})
	})
	check(t, want, got, false)
}

// TestOwnCPUsRunModules: the worker of a rank alone runs the modules of the rank's job, whatever its configuration
// says.
func TestOwnCPUsRunModules(t *testing.T) {
	data := files(t, 600)
	module := featuresModule(0)
	spec, err := pipeline.Parse([]byte(calledDocument))
	require.NoError(t, err)
	spec, err = spec.BindModule(module)
	require.NoError(t, err)
	want, _ := boundFilteredHere(t, spec, data, 1)
	s := startControl(t, controlOptions(t.TempDir()))
	path, made := writeImage(t, module)
	drive := nodeConfig("n0", []string{s.URL()}, makeDrive(t, "mem", data))
	drive.Image.File = path
	runNode(t, drive)
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	awaitImage(t, c, "n0", made)
	job := calledSpec()
	job.Placement = "trainer"
	st, err := c.SubmitWith(t.Context(), "", job, calls(module))
	require.NoError(t, err)
	own := startWorkerOf(t, workerConfig("", []string{s.URL()}), &worker.Rank{Job: st.Id})
	defer func() { assert.NoError(t, own.Close()) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	awaitOwn(ctx, t, c, st.Id, 1)
	check(t, want, takeAll(t, c, st.Id, nil), false)
}
