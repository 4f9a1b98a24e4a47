package csd

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/operator/wasm"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// moduleOf is a module whose function f takes an integer and yields one.
func moduleOf(name string, code ...[]byte) image.Module {
	return image.Module{Name: name, Bytes: wasmtest.Module{Pages: 1, Functions: []wasmtest.Function{{Name: "f",
		Params: []byte{wasmtest.I64}, Results: []byte{wasmtest.I64}, Code: wasmtest.Code(code...)}}}.Bytes()}
}

// callOf calls the function of a module for three rows, of which the values are one more.
func callOf(m image.Module) image.Call {
	return image.Call{Function: wasm.Op{Module: m.Digest(), Function: "f", Out: program.Int64,
		In: [program.MaxInputs]program.Kind{program.Int64}}, In: [][]uint64{{1}, {2}, {41}}, Out: []uint64{2, 3, 42}}
}

// addOne is a module that adds 1.
func addOne() image.Module {
	return moduleOf("one", wasmtest.Get(0), wasmtest.ConstI64(1), wasmtest.Op(0x7c))
}

// withTests is the stock image with modules, and only these self-tests.
func withTests(t *testing.T, tests []image.Vector, modules ...image.Module) ([]byte, *image.Image) {
	return variant(t, func(s *image.Spec) {
		for _, m := range modules {
			s.AddModule(m)
		}
		s.SelfTest = tests
	})
}

// TestTheActiveImageSaysWhichModulesRun runs one program under an image with its module, under the stock image, and
// again after the drive was opened: a program that was prepared under one image does not run under another.
func TestTheActiveImageSaysWhichModulesRun(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	d := openDrive(t, Options{Path: path, Create: true, Size: 1 << 20})
	c := connect(t, d)
	call := callOf(addOne())
	v := call.Vector("adds one")
	runs := func(c nvme.Conn) {
		t.Helper()
		state, out, err := runVector(t, c, v)
		require.NoError(t, err)
		assert.EqualValues(t, program.Done, state)
		assert.Equal(t, v.Output, out)
	}
	refused := func() {
		t.Helper()
		state, _, err := runVector(t, c, v)
		require.ErrorIs(t, err, cs.StatusProgramFault)
		assert.EqualValues(t, program.BadProgram, state)
	}
	refused()
	b, m := withTests(t, []image.Vector{v}, addOne())
	require.NoError(t, load(t, c, 1, b, m.ID.PUID()))
	refused()
	require.NoError(t, activate(t, c, 1))
	runs(c)
	other, om := withTests(t, nil, moduleOf("one", wasmtest.Get(0)))
	put(t, c, 2, other, om)
	refused() // an image with another module of the name
	require.NoError(t, activate(t, c, 0))
	refused()
	require.NoError(t, activate(t, c, 1))
	runs(c)

	page := logPageOf(t, c)
	require.Len(t, page.Slots[1].Modules, 1)
	assert.Equal(t, image.SlotModule{Name: "one", SHA256: call.Function.Module}, page.Slots[1].Modules[0])
	assert.True(t, page.Slots[1].HasModule(call.Function.Module))
	assert.False(t, page.Slots[2].HasModule(call.Function.Module))
	assert.Empty(t, page.Slots[0].Modules)

	require.NoError(t, c.Close())
	require.NoError(t, d.Close())
	runs(connect(t, openDrive(t, Options{Path: path})))
}

// TestHostileModulesLeaveTheDriveUnhurt activates an image whose modules do not end, trap and write outside. Their
// rows fail, and other programs run beside them and after.
func TestHostileModulesLeaveTheDriveUnhurt(t *testing.T) {
	c := connect(t, openDrive(t, Options{Size: 1 << 20, Threads: 2}))
	loops := moduleOf("loops", wasmtest.Op(0x03, 0x40, 0x0c, 0, 0x0b), wasmtest.Get(0))
	divides := moduleOf("divides", wasmtest.Get(0), wasmtest.ConstI64(0), wasmtest.Op(0x7f))
	outside := moduleOf("outside", wasmtest.ConstI32(-8), wasmtest.Get(0), wasmtest.Access(0x37, 0), wasmtest.Get(0))
	grows := moduleOf("grows", wasmtest.ConstI32(1<<15), wasmtest.Op(0x40, 0), wasmtest.Op(0xac))
	bad := []image.Module{loops, divides, outside}
	b, m := withTests(t, nil, append(bad, grows, addOne())...)
	put(t, c, 1, b, m)
	good := callOf(addOne())
	want := good.Vector("adds one")
	for range 2 {
		for _, module := range bad {
			call := callOf(module)
			state, out, err := runVector(t, c, call.TrapVector("trap"))
			require.ErrorIs(t, err, cs.StatusProgramFault, module.Name)
			assert.EqualValues(t, program.BadData, state, module.Name)
			assert.Equal(t, make([]byte, len(out)), out, "%s: nothing is put out", module.Name)
			state, out, err = runVector(t, c, want)
			require.NoError(t, err, module.Name)
			assert.EqualValues(t, program.Done, state)
			assert.Equal(t, want.Output, out, module.Name)
		}
	}
	call := callOf(grows)
	call.Out = []uint64{1<<64 - 1, 1<<64 - 1, 1<<64 - 1}
	v := call.Vector("grows")
	_, out, err := runVector(t, c, v)
	require.NoError(t, err)
	assert.Equal(t, v.Output, out, "memory.grow yields -1")
}

// TestSelfTestsOfModules activates images whose self-tests call modules.
func TestSelfTestsOfModules(t *testing.T) {
	c := connect(t, openDrive(t, Options{Size: 1 << 20}))
	trap := moduleOf("trap", wasmtest.Op(0x00))
	right, wrong, traps, ends := callOf(addOne()), callOf(addOne()), callOf(trap), callOf(addOne())
	wrong.Out = []uint64{2, 3, 43}
	missing := callOf(moduleOf("another", wasmtest.ConstI64(7)))
	illTyped := moduleOf("typed", wasmtest.ConstI32(1))
	for name, tt := range map[string]struct {
		test   image.Vector
		module image.Module
		step   image.Step // empty: activated
		says   string
	}{
		"known answers":   {right.Vector("v"), trap, "", ""},
		"a trap":          {traps.TrapVector("v"), trap, "", ""},
		"wrong answers":   {wrong.Vector("v"), trap, image.StepSelfTest, "other bytes than the known answer"},
		"no trap":         {ends.TrapVector("v"), trap, image.StepSelfTest, "ended in done, not"},
		"a trap instead":  {traps.Vector("v"), trap, image.StepSelfTest, "unreachable"},
		"no such module":  {missing.Vector("v"), trap, image.StepSelfTest, "activate an image that holds it"},
		"types of values": {right.Vector("v"), illTyped, image.StepBackend, `module "typed": wasm module`},
	} {
		b, m := withTests(t, []image.Vector{tt.test}, addOne(), tt.module)
		require.NoError(t, load(t, c, 3, b, m.ID.PUID()), name)
		err := activate(t, c, 3)
		if tt.step == "" {
			require.NoError(t, err, name)
			require.NoError(t, activate(t, c, 0))
			continue
		}
		require.Error(t, err, name)
		f := lastRefusal(t, c)
		assert.Equal(t, tt.step, f.Step, name)
		assert.Contains(t, f.Detail, tt.says, name)
	}
}
