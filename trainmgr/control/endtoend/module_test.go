package endtoend

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	w "github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/host/api/v1/apiv1connect"
	"github.com/millrace/millrace/host/node"
	"github.com/millrace/millrace/host/worker"
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
	b, err := image.Stock()
	require.NoError(t, err)
	made, err := image.Parse(b)
	require.NoError(t, err)
	made.Spec.AddModule(image.Module{Name: m.Name, Bytes: m.Bytes})
	b, err = image.Build(&made.Spec)
	require.NoError(t, err)
	made, err = image.Parse(b)
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "features.mimg")
	require.NoError(t, os.WriteFile(path, b, 0o600))
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
	a := startNode(t, drive, node.Options{})
	defer func() { assert.NoError(t, a.Close()) }()
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
	require.ErrorContains(t, err, `there is no file for "features": name it with --wasm features=FILE`)
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

// TestModulesThatAreRefused: the control plane refuses what is no module, what is too large, other bytes than the
// digest's, and a module without the function that the pipeline calls.
func TestModulesThatAreRefused(t *testing.T) {
	data := files(t, 300)
	s := startControl(t, controlOptions(t.TempDir()))
	a := startNode(t, nodeConfig("n0", []string{s.URL()}, makeDrive(t, "mem", data)), node.Options{})
	defer func() { assert.NoError(t, a.Close()) }()
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
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
	missing := submit(calledDocument, featuresModule(5), nil)
	require.ErrorContains(t, missing, "the control plane does not have module")
	assert.Equal(t, connect.CodeFailedPrecondition, connect.CodeOf(missing))
	for says, err := range map[string]error{
		`line 6:`: submit(strings.Replace(calledDocument, "function: add", "function: sub", 1), module, nil),
		`no function "sub" is exported`: submit(strings.Replace(calledDocument, "function: add", "function: sub", 1),
			module, nil),
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

// TestAMemberThatSendsAnotherModule: a node runs nothing whose SHA-256 is not the digest that the job names.
func TestAMemberThatSendsAnotherModule(t *testing.T) {
	data := files(t, 300)
	s := startControl(t, controlOptions(t.TempDir()))
	bad := member(t, s.URL(), func(r *http.Response) {
		raw, err := io.ReadAll(r.Body)
		if assert.NoError(t, err) {
			right, wrong := w.ConstI64(0), w.ConstI64(1)
			r.Body = io.NopCloser(bytes.NewReader(bytes.ReplaceAll(raw, append(right, 0x7c, 0x0b), append(wrong, 0x7c, 0x0b))))
		}
	})
	cpu := nodeConfig("n0", []string{bad}, makeDrive(t, "mem", data))
	cpu.Drives[0].Engine, cpu.Modules.Submitted = "cpu", true
	a := startNode(t, cpu, node.Options{})
	defer func() { assert.NoError(t, a.Close()) }()
	c := dial(t, s.URL())
	awaitPartitions(t, c, map[string]bool{"n0": true}, len(data))
	st, err := c.SubmitWith(t.Context(), "", calledSpec(), calls(featuresModule(0)))
	require.NoError(t, err)
	awaitJob(t.Context(), t, c, st.Id, "it waits", func(now *apiv1.JobStatus) bool {
		st = now
		return strings.Contains(st.State, "bytes are not those of the file's digest")
	})
	assert.Contains(t, st.State, "no member of the control plane sent it")
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
	a := startNode(t, configs[0], node.Options{})
	defer func() { assert.NoError(t, a.Close()) }()
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
	a := startNode(t, drive, node.Options{})
	defer func() { assert.NoError(t, a.Close()) }()
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
