package csd

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd/images"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
)

// stockImage returns the stock image, its parsed form and its first known answer.
func stockImage(t testing.TB) ([]byte, *image.Image) {
	b, err := stock.Image()
	require.NoError(t, err)
	m, err := image.Parse(b)
	require.NoError(t, err)
	return b, m
}

// runVector runs a known answer through the drive's commands, as a host would, and returns state and output.
func runVector(t testing.TB, c nvme.Conn, v image.Vector) (uint64, []byte, error) {
	t.Helper()
	return runVectorIn(t, c, 0, v)
}

// runVectorIn is runVector in a region.
func runVectorIn(t testing.TB, c nvme.Conn, region int, v image.Vector) (uint64, []byte, error) {
	t.Helper()
	var ranges []cs.Range
	sizes := []int{len(v.Program), len(v.Input), int(v.Dict), int(v.Scratch), len(v.Output), 64 << 10}
	if len(v.Tables) > 0 {
		sizes = append(sizes, len(v.Tables))
	}
	for _, n := range sizes {
		n = (n + 4096) &^ 4095
		cmd := cs.InRegion(cs.SLMReserve(cs.AnyAddress, uint64(n)), region)
		cpl, err := c.Admin(t.Context(), &cmd, nil)
		require.NoError(t, err)
		ranges = append(ranges, cs.Range{Addr: cpl.Result(), Len: uint64(n)})
	}
	defer func() {
		for _, r := range ranges {
			cmd := cs.SLMRelease(r.Addr, r.Len)
			_, err := c.Admin(context.Background(), &cmd, nil)
			assert.NoError(t, err)
		}
	}()
	defer func() {
		b := make([]byte, wire.ResultHeader+program.MaxMessage+wire.ResultTask*64)
		cmd := cs.Fetch(ranges[5].Addr, uint32(len(b)))
		_, err := c.IO(context.Background(), &cmd, b)
		require.NoError(t, err)
		if r, err := wire.UnmarshalResult(b); err == nil {
			assert.Positive(t, r.Wait, "how long it waited for a thread")
			assert.Zero(t, r.Move, "nothing was moved")
		}
	}()
	for i, b := range [][]byte{v.Program, v.Input, 6: v.Tables} {
		if len(b) == 0 {
			continue
		}
		cmd := cs.Store(ranges[i].Addr, uint32(len(b)))
		_, err := c.IO(t.Context(), &cmd, b)
		require.NoError(t, err)
	}
	p := cs.Preprocess{Ranges: ranges, Args: v.Args}
	b, err := p.Marshal()
	require.NoError(t, err)
	cmd := cs.InRegion(cs.PreprocessCommand(uint32(len(b))), region)
	cpl, err := c.IO(t.Context(), &cmd, b)
	out := make([]byte, len(v.Output))
	fetch := cs.Fetch(ranges[4].Addr, uint32(len(out)))
	_, fetchErr := c.IO(t.Context(), &fetch, out)
	require.NoError(t, fetchErr)
	return cpl.Result(), out, err
}

// TestStockImageAnswers runs all known answers of the stock image by a host's commands.
func TestStockImageAnswers(t *testing.T) {
	_, m := stockImage(t)
	c := connect(t, openDrive(t, Options{Size: 1 << 20}))
	runVectors(t, c, m.Spec.SelfTest)
}

// runVectors runs known answers and compares what they put out.
func runVectors(t *testing.T, c nvme.Conn, vectors []image.Vector) {
	t.Helper()
	for _, v := range vectors {
		state, out, err := runVector(t, c, v)
		require.NoError(t, err, v.Name)
		assert.Equal(t, v.State, state, v.Name)
		assert.Equal(t, v.Output, out, v.Name)
	}
}

func TestStockImageRunsAndIsCounted(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20, Threads: 2})
	_, m := stockImage(t)
	id, ok := d.ActiveImage()
	require.True(t, ok)
	assert.Equal(t, m.ID, id)
	c := connect(t, d)
	// The counts below are those of the vectors that are not an operator's own.
	vectors := slices.DeleteFunc(slices.Clone(m.Spec.SelfTest), func(v image.Vector) bool {
		return slices.ContainsFunc(program.Known(), func(u program.UnitRef) bool { return u.Unit.String() == v.Name })
	})
	for range 3 {
		runVectors(t, c, vectors)
	}
	b := make([]byte, 16<<10)
	cmd := nvme.GetLog(0xc0, nvme.AllNamespaces, 0, uint32(len(b)))
	_, err := c.Admin(t.Context(), &cmd, b)
	require.NoError(t, err)
	var l cs.Log
	require.NoError(t, l.Unmarshal(b))
	assert.Equal(t, BackendFunctional, l.Backend)
	assert.Equal(t, uint16(2), l.Threads)
	assert.Equal(t, uint64(15), l.Executions)
	assert.Equal(t, uint64(6+6+9+6+6), l.Rows, "two rows an execution, or three of maps, however many columns")
	assert.Equal(t, uint64(testSLM), l.SLMBytes)
	require.Len(t, l.Programs, len(vectors))
	for i, p := range l.Programs {
		assert.Equal(t, uint64(3), p.Runs)
		assert.Equal(t, []uint64{6, 6, 9, 6, 6}[i], p.Rows)
		assert.Positive(t, p.P)
		assert.LessOrEqual(t, p.Shortest, p.Longest)
	}
	assert.Equal(t, sha256.Sum256(vectors[len(vectors)-1].Program), l.Programs[0].ID, "the latest first")
	byName := map[string]cs.UnitCounter{}
	for _, u := range l.Units {
		byName[u.Name] = u
	}
	assert.Equal(t, uint64(9), byName["text"].Runs, "of text rows, and twice of binary rows, three times")
	assert.Equal(t, uint64(18), byName["parquet"].Runs, "a block of each of five columns, and one of a map, three times")
	assert.Equal(t, uint64(6+4*12+45), byName["parquet"].Rows,
		"two rows of one value, four times two of lists with four, and a map of three times five, three times")
	assert.Equal(t, uint64(15), byName[TransformName].Runs)
	assert.Equal(t, uint64(3), byName["log"].Runs)
	assert.Equal(t, uint64(6), byName["log"].Rows)
	assert.Equal(t, uint64(5*6), byName["fill_null"].Rows)
	for _, name := range []string{"parquet", "text", "log", "sigrid_hash"} {
		u := byName[name]
		assert.Positive(t, u.Total, name)
		assert.LessOrEqual(t, u.Shortest, u.Average(), name)
		assert.LessOrEqual(t, u.Average(), u.Longest, name)
		assert.LessOrEqual(t, u.Longest, u.Total, name)
	}
	assert.Positive(t, l.HostToDRAM.Bytes)
}

func TestExecutionsThatFail(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20})
	_, m := stockImage(t)
	c := connect(t, d)
	v := m.Spec.SelfTest[0]
	v.Args = []byte("no slice")
	state, _, err := runVector(t, c, v)
	require.ErrorIs(t, err, cs.StatusProgramFault)
	assert.Equal(t, uint64(program.BadSlice), state)

	v = m.Spec.SelfTest[0]
	v.Args = bytes.Clone(v.Args)
	v.Args[16]++ // the digest of the program
	state, _, err = runVector(t, c, v)
	require.ErrorIs(t, err, cs.StatusProgramFault)
	assert.Equal(t, uint64(program.BadProgram), state)

	v = m.Spec.SelfTest[0]
	v.Input = bytes.Clone(v.Input)
	v.Input[2] = '!'
	state, _, err = runVector(t, c, v)
	require.ErrorIs(t, err, cs.StatusProgramFault)
	assert.Equal(t, uint64(program.BadData), state)

	_, st := d.comp.Execute(t.Context(), controller.Execution{Ranges: make([]cs.Range, 5)})
	assert.Equal(t, nvme.InvalidField, st)
}

func TestOneEngineThreadAtATime(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20})
	d.comp.threads[0] <- struct{}{} // the thread is busy
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, st := d.comp.Execute(ctx, controller.Execution{Ranges: make([]cs.Range, rangeCount)})
	assert.Equal(t, nvme.CommandAborted, st)
	<-d.comp.threads[0]
	_, st = d.comp.Execute(t.Context(), controller.Execution{Ranges: make([]cs.Range, rangeCount)})
	assert.Equal(t, cs.StatusProgramFault, st)
}

// load puts an image into a slot with the vendor commands.
func load(t testing.TB, c nvme.Conn, slot uint16, b []byte, puid uint64) error {
	t.Helper()
	const chunk = 5000
	for off := 0; off < len(b); off += chunk {
		part := b[off:min(len(b), off+chunk)]
		cmd := cs.ImageDownload(cs.Chunk{Slot: slot, Size: uint32(len(b)), Offset: uint32(off), Len: uint32(len(part)),
			PUID: puid})
		if _, err := c.Admin(t.Context(), &cmd, part); err != nil {
			return err
		}
	}
	return nil
}

func activate(t testing.TB, c nvme.Conn, slot uint16) error {
	t.Helper()
	return activateIn(t, c, 0, slot)
}

// activateIn is activate in a region.
func activateIn(t testing.TB, c nvme.Conn, region int, slot uint16) error {
	t.Helper()
	cmd := cs.InRegion(cs.ImageActivate(slot), region)
	_, err := c.Admin(t.Context(), &cmd, nil)
	return err
}

// variant is the stock image changed.
func variant(t testing.TB, change func(*image.Spec)) ([]byte, *image.Image) {
	_, m := stockImage(t)
	s := m.Spec
	change(&s)
	b, err := image.Build(&s)
	require.NoError(t, err)
	m, err = image.Parse(b)
	require.NoError(t, err)
	return b, m
}

func TestLoadedImageStaysActiveAcrossOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	b, m := variant(t, func(s *image.Spec) { s.Partition.Slots = 7 })
	d, err := Open(Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: testSLM})
	require.NoError(t, err)
	c, err := controller.Local(d.Subsystem(), controller.HostID{})
	require.NoError(t, err)
	require.NoError(t, load(t, c, 2, b, m.ID.PUID()))
	require.NoError(t, activate(t, c, 2))
	require.NoError(t, c.Close())
	require.NoError(t, d.Close())

	d, err = Open(Options{Path: path, SLMBytes: testSLM})
	require.NoError(t, err)
	id, _ := d.ActiveImage()
	assert.Equal(t, m.ID, id)
	require.NoError(t, d.Close())

	// A slot's file that was damaged leaves the slot empty and the stock image active.
	require.NoError(t, os.Truncate(images.Path(path, 2), 100))
	d = openDrive(t, Options{Path: path})
	_, m = stockImage(t)
	id, _ = d.ActiveImage()
	assert.Equal(t, m.ID, id)
	assert.NotEmpty(t, d.Images().Slots[2].Reason)
	assert.Equal(t, cs.SlotEmpty, d.comp.slots.List()[2].Occupancy)
}

func TestImagesThatAreRefused(t *testing.T) {
	c := connect(t, openDrive(t, Options{Size: 1 << 20}))
	good, m := variant(t, func(s *image.Spec) { s.Partition.Slots = 7 })
	other, om := variant(t, func(s *image.Spec) { s.Interface[0]++ })
	wrong, wm := variant(t, func(s *image.Spec) {
		v := s.SelfTest[0]
		v.Output = bytes.Clone(v.Output)
		v.Output[0]++
		s.SelfTest = []image.Vector{v}
	})
	newer, nm := variant(t, func(s *image.Spec) { s.Units[0].Version = 9 })

	require.ErrorIs(t, load(t, c, 1, good[:len(good)-1], m.ID.PUID()), nvme.InvalidProgramData)
	require.ErrorIs(t, load(t, c, 1, good, m.ID.PUID()+1), nvme.InvalidProgramData)
	require.ErrorIs(t, load(t, c, 1, other, om.ID.PUID()), nvme.InvalidProgramData, "another interface")
	require.ErrorIs(t, load(t, c, 0, good, m.ID.PUID()), nvme.ProgramNotDownloadable)
	require.NoError(t, load(t, c, 1, wrong, wm.ID.PUID()))
	require.ErrorIs(t, activate(t, c, 1), nvme.InvalidProgramData, "the self-test fails")
	require.NoError(t, load(t, c, 2, newer, nm.ID.PUID()))
	require.ErrorIs(t, activate(t, c, 2), nvme.InvalidProgramData, "a unit without backend")
	// The image that was active still runs.
	_, sm := stockImage(t)
	state, _, err := runVector(t, c, sm.Spec.SelfTest[0])
	require.NoError(t, err)
	assert.Zero(t, state)
}

// trusting sets what a drive trusts.
func trusting(t image.Trust) func(*image.Trust) error {
	return func(into *image.Trust) error {
		*into = t
		return nil
	}
}

func TestSignaturePolicy(t *testing.T) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32))
	keys := []ed25519.PublicKey{key.Public().(ed25519.PublicKey)}
	plain, m := variant(t, func(s *image.Spec) { s.Partition.Slots = 7 })
	signed, err := m.Sign(key)
	require.NoError(t, err)
	for _, tt := range []struct {
		policy image.Policy
		bytes  []byte
		want   error
	}{
		{image.PolicyOff, plain, nil}, {image.PolicyWarn, plain, nil}, {image.PolicyRequire, plain, nvme.OperationDenied},
		{image.PolicyOff, signed, nil}, {image.PolicyWarn, signed, nil}, {image.PolicyRequire, signed, nil},
	} {
		c := connect(t, openDrive(t, Options{Size: 1 << 20, Trust: trusting(image.Trust{Policy: tt.policy, Keys: keys})}))
		err := load(t, c, 1, tt.bytes, m.ID.PUID())
		if tt.want == nil {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, tt.want)
		}
	}
}

func TestDeactivatedDriveDoesNotExecute(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20})
	c := connect(t, d)
	cmd := cs.Activation(0, false)
	_, err := c.Admin(t.Context(), &cmd, nil)
	require.NoError(t, err)
	_, m := stockImage(t)
	_, _, err = runVector(t, c, m.Spec.SelfTest[0])
	require.ErrorIs(t, err, nvme.ProgramNotActivated)
	require.NoError(t, activate(t, c, 0))
	_, _, err = runVector(t, c, m.Spec.SelfTest[0])
	require.NoError(t, err)
}

func TestCountersForgetTheOldestProgram(t *testing.T) {
	c := newCounters(nil)
	_, m := stockImage(t)
	body := m.Spec.SelfTest[0].Program
	for i := range maxPrograms + 5 {
		c.executions++
		c.slice.Digest = [32]byte{byte(i)}
		c.slice.Program = uint64(len(body))
		k := c.programCounterOf(body)
		require.NotNil(t, k)
		k.last = c.executions
	}
	assert.Len(t, c.programs, maxPrograms)
	assert.NotContains(t, c.programs, [32]byte{0})
	assert.Contains(t, c.programs, [32]byte{maxPrograms})
}

func TestConcurrentUse(t *testing.T) {
	d := openDrive(t, Options{Size: 4 << 20, Threads: 2})
	_, m := stockImage(t)
	var wg sync.WaitGroup
	for i := range 4 {
		wg.Go(func() {
			c, err := controller.Local(d.Subsystem(), controller.HostID{})
			if !assert.NoError(t, err) {
				return
			}
			defer func() { assert.NoError(t, c.Close()) }()
			for j := range 10 {
				write(t, c, uint64(i*100), bytes.Repeat([]byte{byte(j)}, 4096), false)
				_, out, err := runVector(t, c, m.Spec.SelfTest[j%2])
				assert.NoError(t, err)
				assert.Equal(t, m.Spec.SelfTest[j%2].Output, out)
			}
		})
	}
	wg.Wait()
}
