package csd

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
)

const testSLM = 4 << 20

func openDrive(t testing.TB, o Options) *Drive {
	t.Helper()
	if o.SLMBytes == 0 {
		o.SLMBytes = testSLM
	}
	d, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

// connect begins an association that ends with the test.
func connect(t testing.TB, d *Drive) nvme.Conn {
	t.Helper()
	c, err := controller.Local(d.Subsystem(), controller.HostID{NQN: "nqn.2014-08.org.nvmexpress:uuid:host"})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, c.Close()) })
	return c
}

func write(t testing.TB, c nvme.Conn, lba uint64, p []byte, fua bool) {
	t.Helper()
	cmd := nvme.Write(1, lba, uint32(len(p)/512), 512, fua)
	_, err := c.IO(t.Context(), &cmd, p)
	require.NoError(t, err)
}

func read(t testing.TB, c nvme.Conn, lba uint64, n int) []byte {
	t.Helper()
	p := make([]byte, n)
	cmd := nvme.Read(1, lba, uint32(n/512), 512)
	_, err := c.IO(t.Context(), &cmd, p)
	require.NoError(t, err)
	return p
}

func TestDataSurvivesCloseAndOpen(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	data := bytes.Repeat([]byte("flash"), 512)
	d, err := Open(Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: testSLM})
	require.NoError(t, err)
	c, err := controller.Local(d.Subsystem(), controller.HostID{})
	require.NoError(t, err)
	write(t, c, 3, data, false)
	require.ErrorIs(t, d.Close(), ErrBusy, "an association is open")
	require.NoError(t, c.Close())
	id := d.UUID()
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())

	raw, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, data, raw[3*512:][:len(data)], "byte for byte from block 0")
	assert.Len(t, raw, 1<<20)

	d = openDrive(t, Options{Path: path})
	assert.Equal(t, id, d.UUID())
	size, lba := d.Geometry()
	assert.Equal(t, int64(1<<20), size)
	assert.Equal(t, 512, lba)
	assert.Equal(t, data, read(t, connect(t, d), 3, len(data)))
	n := d.Subsystem().Counters()
	assert.Equal(t, uint64(2), n.PowerCycles)
	assert.Equal(t, uint64(0), n.UnsafeShutdowns)
	assert.Equal(t, uint64(5), n.SectorsWritten)
}

func TestSecondOpenerIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	d, err := Open(Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: testSLM})
	require.NoError(t, err)
	_, err = Open(Options{Path: path})
	require.ErrorIs(t, err, ErrBusy)
	require.NoError(t, d.Close())
	openDrive(t, Options{Path: path})
}

func TestOtherGeometryIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	d, err := Open(Options{Path: path, Create: true, Size: 1 << 20, LBA: 4096, SLMBytes: testSLM})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	for name, o := range map[string]Options{
		"size":       {Path: path, Size: 2 << 20},
		"block size": {Path: path, LBA: 512},
	} {
		_, err := Open(o)
		require.ErrorIs(t, err, ErrGeometry, name)
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	require.NoError(t, err)
	_, err = f.Write([]byte{1})
	require.NoError(t, errors.Join(err, f.Close()))
	_, err = Open(Options{Path: path})
	require.ErrorIs(t, err, ErrGeometry, "a longer file")
	require.NoError(t, os.Truncate(path, 100))
	assert.NoError(t, openDrive(t, Options{Path: path, Size: 1 << 20, LBA: 4096}).flash.Sync())
	st, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, int64(1<<20), st.Size(), "a shorter file is one that a tool rewrote")
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	there := filepath.Join(dir, "there")
	require.NoError(t, os.WriteFile(there, []byte("something precious"), 0o644))
	for name, tt := range map[string]struct {
		o    Options
		want error
	}{
		"no drive":             {Options{Path: filepath.Join(dir, "none")}, ErrNoDrive},
		"file without state":   {Options{Path: there}, ErrNoDrive},
		"create over a file":   {Options{Path: there, Create: true}, fs.ErrExist},
		"odd size":             {Options{Size: 1000}, ErrGeometry},
		"negative size":        {Options{Size: -512}, ErrGeometry},
		"odd block size":       {Options{LBA: 520}, ErrGeometry},
		"create with odd size": {Options{Path: filepath.Join(dir, "x"), Create: true, Size: 5}, ErrGeometry},
		"directory":            {Options{Path: dir}, nil},
		"little SLM":           {Options{SLMBytes: 4096}, nil},
		"odd SLM":              {Options{SLMBytes: MinSLM + 1}, nil},
		"threads":              {Options{Threads: -1}, nil},
		"path and flash":       {Options{Path: there, Flash: &memoryFlash{free: func() error { return nil }}}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Open(tt.o)
			require.Error(t, err)
			if tt.want != nil {
				require.ErrorIs(t, err, tt.want)
			}
		})
	}
	b, err := os.ReadFile(there)
	require.NoError(t, err)
	assert.Equal(t, "something precious", string(b))
}

func TestKilledDriveCountsAnUnsafeShutdown(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	d, err := Open(Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: testSLM})
	require.NoError(t, err)
	// What a kill leaves: the lock goes with the descriptor, PATH.json stays as it was.
	require.NoError(t, d.flash.Close())
	require.NoError(t, d.free())
	d = openDrive(t, Options{Path: path})
	assert.Equal(t, uint64(1), d.Subsystem().Counters().UnsafeShutdowns)
}

func TestDamagedStateIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	d, err := Open(Options{Path: path, Create: true, Size: 1 << 20, SLMBytes: testSLM})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	good, err := os.ReadFile(statePath(path))
	require.NoError(t, err)
	for name, edit := range map[string]func(m map[string]any){
		"version":     func(m map[string]any) { m["version"] = 2 },
		"unknown key": func(m map[string]any) { m["colour"] = "red" },
		"size":        func(m map[string]any) { m["size_bytes"] = -1 },
		"lba":         func(m map[string]any) { m["lba_bytes"] = 0 },
		"slot":        func(m map[string]any) { m["active_slot"] = 99 },
		"uuid":        func(m map[string]any) { m["uuid"] = uuid.UUID{} },
		"type":        func(m map[string]any) { m["lba_bytes"] = "512" },
	} {
		t.Run(name, func(t *testing.T) {
			var m map[string]any
			require.NoError(t, json.Unmarshal(good, &m))
			edit(m)
			b, err := json.Marshal(m)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(statePath(path), b, 0o644))
			_, err = Open(Options{Path: path})
			require.Error(t, err)
		})
	}
}

func FuzzState(f *testing.F) {
	b, _ := json.Marshal(&state{Version: 1, UUID: uuid.New(), Size: 1 << 20, LBA: 512})
	f.Add(b)
	f.Fuzz(func(t *testing.T, b []byte) {
		if s, err := parseState(b); err == nil {
			require.NoError(t, checkGeometry(s.Size, s.LBA))
			require.Less(t, s.Active, slotCount)
		}
	})
}

func TestFlushAndFUAReachTheDisk(t *testing.T) {
	syncs := 0
	o := Options{Size: 1 << 20, WrapFlash: func(f controller.Flash) controller.Flash {
		return &Faulty{Flash: f, Flush: func() error { syncs++; return nil }}
	}}
	c := connect(t, openDrive(t, o))
	write(t, c, 0, make([]byte, 512), false)
	assert.Equal(t, 0, syncs)
	write(t, c, 0, make([]byte, 512), true)
	assert.Equal(t, 1, syncs, "force unit access")
	cmd := nvme.Flush(1)
	_, err := c.IO(t.Context(), &cmd, nil)
	require.NoError(t, err)
	assert.Equal(t, 2, syncs, "flush")
}

func TestFaultsComeOutAsStatuses(t *testing.T) {
	bad := errors.New("bad block")
	o := Options{Size: 1 << 20, WrapFlash: func(f controller.Flash) controller.Flash {
		return &Faulty{Flash: f, Read: FailLBA(7, bad), Write: FailLBA(9, bad), Flush: func() error { return bad }}
	}}
	c := connect(t, openDrive(t, o))
	cmd := nvme.Read(1, 6, 2, 512)
	_, err := c.IO(t.Context(), &cmd, make([]byte, 1024))
	require.ErrorIs(t, err, nvme.UnrecoveredReadError)
	cmd = nvme.Write(1, 9, 1, 512, false)
	_, err = c.IO(t.Context(), &cmd, make([]byte, 512))
	require.ErrorIs(t, err, nvme.WriteFault)
	cmd = nvme.Flush(1)
	_, err = c.IO(t.Context(), &cmd, nil)
	require.Error(t, err)
	read(t, c, 8, 512)
}

func TestPlainDriveHasOneNamespace(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20, Plain: true})
	_, ok := d.ActiveImage()
	assert.False(t, ok)
	b := make([]byte, nvme.IdentifySize)
	cmd := nvme.Identify(nvme.CNSActiveNamespaces, 0, 0)
	_, err := connect(t, d).Admin(t.Context(), &cmd, b)
	require.NoError(t, err)
	assert.Equal(t, []uint32{1}, nvme.UnmarshalNamespaceList(b))
}

// stock is the stock image, its parsed form and its first known answer.
func stock(t testing.TB) ([]byte, *image.Image) {
	b, err := image.Stock()
	require.NoError(t, err)
	m, err := image.Parse(b)
	require.NoError(t, err)
	return b, m
}

// runVector runs a known answer through the drive's commands, as a host would, and returns state and output.
func runVector(t testing.TB, c nvme.Conn, v image.Vector) (uint64, []byte, error) {
	t.Helper()
	var ranges []cs.Range
	for _, n := range []int{len(v.Program), len(v.Input), int(v.Dict), int(v.Scratch), len(v.Output), 64 << 10} {
		n = (n + 4096) &^ 4095
		cmd := cs.SLMReserve(cs.AnyAddress, uint64(n))
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
	for i, b := range [][]byte{v.Program, v.Input} {
		cmd := cs.Store(ranges[i].Addr, uint32(len(b)))
		_, err := c.IO(t.Context(), &cmd, b)
		require.NoError(t, err)
	}
	p := cs.Preprocess{Ranges: ranges, Args: v.Args}
	b, err := p.Marshal()
	require.NoError(t, err)
	cmd := cs.PreprocessCommand(uint32(len(b)))
	cpl, err := c.IO(t.Context(), &cmd, b)
	out := make([]byte, len(v.Output))
	fetch := cs.Fetch(ranges[4].Addr, uint32(len(out)))
	_, fetchErr := c.IO(t.Context(), &fetch, out)
	require.NoError(t, fetchErr)
	return cpl.Result(), out, err
}

func TestStockImageRunsAndIsCounted(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20, Threads: 2})
	_, m := stock(t)
	id, ok := d.ActiveImage()
	require.True(t, ok)
	assert.Equal(t, m.ID, id)
	c := connect(t, d)
	for range 3 {
		for _, v := range m.Spec.SelfTest {
			state, out, err := runVector(t, c, v)
			require.NoError(t, err, v.Name)
			assert.Equal(t, v.State, state, v.Name)
			assert.Equal(t, v.Output, out, v.Name)
		}
	}
	b := make([]byte, 16<<10)
	cmd := nvme.GetLog(0xc0, nvme.AllNamespaces, 0, uint32(len(b)))
	_, err := c.Admin(t.Context(), &cmd, b)
	require.NoError(t, err)
	var l cs.Log
	require.NoError(t, l.Unmarshal(b))
	assert.Equal(t, BackendFunctional, l.Backend)
	assert.Equal(t, uint16(2), l.Threads)
	assert.Equal(t, uint64(6), l.Executions)
	assert.Equal(t, uint64(12), l.Rows, "two rows an execution, however many columns")
	assert.Equal(t, uint64(testSLM), l.SLMBytes)
	require.Len(t, l.Programs, 2)
	for _, p := range l.Programs {
		assert.Equal(t, uint64(3), p.Runs)
		assert.Equal(t, uint64(6), p.Rows)
		assert.Positive(t, p.P)
		assert.LessOrEqual(t, p.Shortest, p.Longest)
	}
	assert.Equal(t, sha256.Sum256(m.Spec.SelfTest[1].Program), l.Programs[0].ID, "the latest first")
	byName := map[string]cs.UnitCounter{}
	for _, u := range l.Units {
		byName[u.Name] = u
	}
	assert.Equal(t, uint64(3), byName["text"].Runs)
	assert.Equal(t, uint64(3), byName["parquet"].Runs)
	assert.Equal(t, uint64(12), byName["parquet"].Rows, "two columns of two rows, three times")
	assert.Equal(t, uint64(6), byName[TransformName].Runs)
	assert.Equal(t, uint64(3), byName["log"].Runs)
	assert.Equal(t, uint64(6), byName["log"].Rows)
	assert.Equal(t, uint64(5*6), byName["fill_null"].Rows)
	assert.Positive(t, l.HostToDRAM.Bytes)
}

func TestExecutionsThatFail(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20})
	_, m := stock(t)
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

	_, st := d.comp.Execute(t.Context(), make([]cs.Range, 5), nil)
	assert.Equal(t, nvme.InvalidField, st)
}

func TestOneEngineThreadAtATime(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20})
	d.comp.threads <- struct{}{} // the thread is busy
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, st := d.comp.Execute(ctx, make([]cs.Range, rangeCount), nil)
	assert.Equal(t, nvme.CommandAborted, st)
	<-d.comp.threads
	_, st = d.comp.Execute(t.Context(), make([]cs.Range, rangeCount), nil)
	assert.Equal(t, cs.StatusProgramFault, st)
}

// load puts an image into a slot with the vendor commands.
func load(t testing.TB, c nvme.Conn, slot uint16, b []byte, puid uint64) error {
	t.Helper()
	const chunk = 5000
	for off := 0; off < len(b); off += chunk {
		part := b[off:min(len(b), off+chunk)]
		cmd := cs.ImageDownload(cs.Chunk{Slot: slot, Size: uint32(len(b)), Offset: uint32(off), Len: uint32(len(part)), PUID: puid})
		if _, err := c.Admin(t.Context(), &cmd, part); err != nil {
			return err
		}
	}
	return nil
}

func activate(t testing.TB, c nvme.Conn, slot uint16) error {
	t.Helper()
	cmd := cs.ImageActivate(slot)
	_, err := c.Admin(t.Context(), &cmd, nil)
	return err
}

// variant is the stock image changed.
func variant(t testing.TB, change func(*image.Spec)) ([]byte, *image.Image) {
	_, m := stock(t)
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
	require.NoError(t, os.Truncate(slotPath(path, 2), 100))
	d = openDrive(t, Options{Path: path})
	_, m = stock(t)
	id, _ = d.ActiveImage()
	assert.Equal(t, m.ID, id)
	assert.NotEmpty(t, d.comp.slots.slots[2].reason)
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
	_, sm := stock(t)
	state, _, err := runVector(t, c, sm.Spec.SelfTest[0])
	require.NoError(t, err)
	assert.Zero(t, state)
}

func TestSignaturePolicy(t *testing.T) {
	key := ed25519.NewKeyFromSeed(bytes.Repeat([]byte{1}, 32))
	keys := []ed25519.PublicKey{key.Public().(ed25519.PublicKey)}
	plain, m := variant(t, func(s *image.Spec) { s.Partition.Slots = 7 })
	signed, err := m.Sign(key)
	require.NoError(t, err)
	for _, tt := range []struct {
		policy Policy
		bytes  []byte
		want   error
	}{
		{SignatureOff, plain, nil}, {SignatureWarn, plain, nil}, {SignatureRequire, plain, nvme.OperationDenied},
		{SignatureOff, signed, nil}, {SignatureWarn, signed, nil}, {SignatureRequire, signed, nil},
	} {
		c := connect(t, openDrive(t, Options{Size: 1 << 20, Policy: tt.policy, Keys: keys}))
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
	_, m := stock(t)
	_, _, err = runVector(t, c, m.Spec.SelfTest[0])
	require.ErrorIs(t, err, nvme.ProgramNotActivated)
	require.NoError(t, activate(t, c, 0))
	_, _, err = runVector(t, c, m.Spec.SelfTest[0])
	require.NoError(t, err)
}

func TestCountersForgetTheOldestProgram(t *testing.T) {
	c := newCounters()
	p := &program.Program{Source: program.CriteoTSV}
	body := p.Marshal()
	for i := range maxPrograms + 5 {
		c.executions++
		c.slice.Digest = [32]byte{byte(i)}
		c.slice.Program = uint64(len(body))
		k := c.program(body)
		if k == nil {
			t.Skip("an empty program is refused by this version") // then the map never fills by this road
		}
		k.last = c.executions
	}
	assert.Len(t, c.programs, maxPrograms)
	assert.NotContains(t, c.programs, [32]byte{0})
	assert.Contains(t, c.programs, [32]byte{maxPrograms})
}

func TestConcurrentUse(t *testing.T) {
	d := openDrive(t, Options{Size: 4 << 20, Threads: 2})
	_, m := stock(t)
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
