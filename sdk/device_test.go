package sdk

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
	"github.com/millrace/millrace/fpga/image/stock/stocktest"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/nvme/faults"
)

func openDevice(t testing.TB, uri string, o DeviceOptions) *Device {
	t.Helper()
	d, err := Open(t.Context(), uri, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

func noisy(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(i*7 + i>>8*13 + 1)
	}
	return b
}

// recorder is a trace that counts commands by opcode and keeps their lengths.
type recorder struct {
	mu    sync.Mutex
	sizes map[uint8][]int
	held  int64
}

func (r *recorder) trace() *Trace {
	r.sizes = map[uint8][]int{}
	return &Trace{
		Command: func(cmd *nvme.Command, admin bool, took time.Duration, err error) {
			r.mu.Lock()
			defer r.mu.Unlock()
			if !admin {
				r.sizes[cmd.Opcode()] = append(r.sizes[cmd.Opcode()], int(cmd.DataLength()))
			}
		},
		Reserve: func(_ uint64, n int64) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.held += n
		},
	}
}

func (r *recorder) take(opcode uint8) []int {
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.sizes[opcode]
	delete(r.sizes, opcode)
	return s
}

func TestFileDriveKeepsWhatWasWritten(t *testing.T) {
	for _, lba := range []int{512, 4096} {
		uri := "file:" + filepath.Join(t.TempDir(), "drive")
		d, err := Create(t.Context(), fmt.Sprintf("%s?size=4MiB&lba=%d&slm=1MiB", uri, lba), DeviceOptions{})
		require.NoError(t, err)
		data := noisy(100_001)
		n, err := d.WriteAt(data, 777)
		require.NoError(t, err)
		assert.Equal(t, len(data), n)
		require.NoError(t, d.Flush(t.Context()))
		require.NoError(t, d.Close())
		require.NoError(t, d.Close())

		d = openDevice(t, uri+"?slm=1MiB", DeviceOptions{})
		assert.Equal(t, int64(4<<20), d.Size())
		assert.Equal(t, lba, d.BlockSize())
		got := make([]byte, len(data))
		_, err = d.ReadAt(got, 777)
		require.NoError(t, err)
		assert.Equal(t, data, got)

		_, err = Open(t.Context(), uri, DeviceOptions{})
		require.ErrorIs(t, err, csd.ErrBusy)
		_, err = Create(t.Context(), uri, DeviceOptions{})
		require.ErrorIs(t, err, fs.ErrExist)
	}
}

func TestOpenRefuses(t *testing.T) {
	dir := t.TempDir()
	d, err := Create(t.Context(), "file:"+dir+"/d?size=1MiB&slm=1MiB", DeviceOptions{})
	require.NoError(t, err)
	require.NoError(t, d.Close())
	for uri, want := range map[string]error{
		"tcp://127.0.0.1:1/nqn.x":      nil,
		"tcp://127.0.0.1:1/n?lba=512":  ErrURI,
		"nvme:/dev/nvme99999":          nil,
		"nvme:/dev/nvme0?lba=512":      ErrURI,
		"what:":                        ErrURI,
		"file:" + dir + "/none":        csd.ErrNoDrive,
		"file:" + dir + "/d?size=2MiB": csd.ErrGeometry,
		"file:" + dir + "/d?lba=4096":  csd.ErrGeometry,
		"mem:?size=1000B":              csd.ErrGeometry,
		"mem:?slm=100B":                nil,
	} {
		_, err := Open(t.Context(), uri, DeviceOptions{})
		require.Error(t, err, uri)
		if want != nil {
			require.ErrorIs(t, err, want, uri)
		}
		assert.Contains(t, err.Error(), uri[:4])
	}
}

func TestNamedDrivesAreShared(t *testing.T) {
	name := "mem:" + t.Name()
	a, err := Open(t.Context(), name+"?size=1MiB&slm=1MiB", DeviceOptions{})
	require.NoError(t, err)
	b := openDevice(t, name, DeviceOptions{})
	_, err = a.WriteAt([]byte("shared"), 5)
	require.NoError(t, err)
	got := make([]byte, 6)
	_, err = b.ReadAt(got, 5)
	require.NoError(t, err)
	assert.Equal(t, "shared", string(got))
	_, err = Open(t.Context(), name+"?size=2MiB", DeviceOptions{})
	require.ErrorIs(t, err, csd.ErrGeometry)
	_, err = Open(t.Context(), name+"?threads=2", DeviceOptions{})
	require.ErrorIs(t, err, csd.ErrGeometry)
	_, err = Create(t.Context(), name, DeviceOptions{})
	require.ErrorIs(t, err, fs.ErrExist)
	require.NoError(t, a.Close())
	_, err = b.ReadAt(got, 5)
	require.NoError(t, err, "the drive lives while somebody has it open")

	other := openDevice(t, "mem:?size=1MiB&slm=1MiB", DeviceOptions{})
	_, err = other.ReadAt(got, 5)
	require.NoError(t, err)
	assert.Equal(t, make([]byte, 6), got, "a drive without a name is nobody else's")
}

func TestTransfersAreSplitAtMDTS(t *testing.T) {
	r := &recorder{}
	d := openDevice(t, "mem:?size=8MiB&slm=8MiB", DeviceOptions{Trace: r.trace()})
	mdts := d.MaxTransfer()
	require.Equal(t, 1<<20, mdts)
	slm, err := d.ReserveSLM(t.Context(), 4<<20)
	require.NoError(t, err)
	for _, c := range []struct {
		n    int
		want []int
	}{
		{mdts - 512, []int{mdts - 512}}, {mdts, []int{mdts}}, {mdts + 512, []int{512, mdts}},
		{3 * mdts, []int{mdts, mdts, mdts}},
	} {
		data := noisy(c.n)
		got := make([]byte, c.n)
		require.NoError(t, d.WriteBlocks(t.Context(), data, 1, false))
		require.NoError(t, d.ReadBlocks(t.Context(), got, 1))
		require.True(t, bytes.Equal(data, got))
		assert.ElementsMatch(t, c.want, r.take(opWrite))
		assert.ElementsMatch(t, c.want, r.take(opRead))

		clear(got)
		require.NoError(t, slm.Store(t.Context(), 4096, data))
		require.NoError(t, slm.Fetch(t.Context(), 4096, got))
		require.True(t, bytes.Equal(data, got))
		assert.ElementsMatch(t, c.want, r.take(cs.IOStore))
		assert.ElementsMatch(t, c.want, r.take(cs.IOFetch))
	}
	// Memory has bytes as its unit: a length is one byte below the bound, at the bound, and one byte above it.
	for _, n := range []int{mdts - 1, mdts, mdts + 1} {
		require.NoError(t, slm.Fetch(t.Context(), 0, make([]byte, n)))
		assert.Len(t, r.take(cs.IOFetch), (n+mdts-1)/mdts)
	}
}

func TestBytesOfAnyAlignment(t *testing.T) {
	for _, lba := range []int{512, 4096} {
		t.Run(fmt.Sprint(lba), func(t *testing.T) {
			const size = 64 << 10
			d := openDevice(t, fmt.Sprintf("mem:?size=64KiB&slm=64KiB&lba=%d", lba), DeviceOptions{})
			model := make([]byte, size)
			rapid.Check(t, func(r *rapid.T) {
				for range rapid.IntRange(1, 8).Draw(r, "writes") {
					off := rapid.IntRange(0, size).Draw(r, "off")
					b := noisy(rapid.IntRange(0, min(size-off, 9000)).Draw(r, "n"))
					n, err := d.WriteAt(b, int64(off))
					require.NoError(r, err)
					require.Equal(r, len(b), n)
					copy(model[off:], b)
				}
				off := rapid.IntRange(0, size-1).Draw(r, "at")
				got := make([]byte, rapid.IntRange(0, size).Draw(r, "len"))
				n, err := d.ReadAt(got, int64(off))
				if off+len(got) > size {
					require.ErrorIs(r, err, io.EOF)
				} else {
					require.NoError(r, err)
				}
				require.Equal(r, model[off:off+n], got[:n])
				require.Equal(r, min(len(got), size-off), n)
			})
		})
	}
}

func TestBlockBounds(t *testing.T) {
	d := openDevice(t, "mem:?size=64KiB&slm=64KiB", DeviceOptions{})
	b := make([]byte, 1024)
	require.NoError(t, d.ReadBlocks(t.Context(), b, 126))
	require.ErrorIs(t, d.ReadBlocks(t.Context(), b, 127), nvme.LBAOutOfRange)
	require.ErrorIs(t, d.WriteBlocks(t.Context(), b, 1<<60, false), nvme.LBAOutOfRange)
	require.Error(t, d.ReadBlocks(t.Context(), b[:100], 0))
	require.NoError(t, d.ReadBlocks(t.Context(), nil, 128))
	_, err := d.ReadAt(b, -1)
	require.Error(t, err)
	_, err = d.ReadAt(b, 64<<10)
	require.ErrorIs(t, err, io.EOF)
	_, err = d.WriteAt(b, 64<<10-1023)
	require.ErrorIs(t, err, nvme.LBAOutOfRange)
	_, err = d.WriteAt(b, -1)
	require.ErrorIs(t, err, nvme.LBAOutOfRange)
}

func TestFaultsAreNamed(t *testing.T) {
	script, err := faults.Parse([]byte(
		"fail: [{operation: read, lba: 5000}, {operation: write, lba: 10, status: capacity_exceeded}]"))
	require.NoError(t, err)
	injector, err := faults.New(script, faults.Options{})
	require.NoError(t, err)
	d := openDevice(t, "mem:bad?size=4MiB&slm=64KiB", DeviceOptions{WrapFlash: injector.Flash})
	err = d.ReadBlocks(t.Context(), make([]byte, 4<<20), 0)
	require.ErrorIs(t, err, nvme.UnrecoveredReadError)
	assert.Contains(t, err.Error(), "mem:bad")
	_, err = d.WriteAt(make([]byte, 100), 10*512)
	require.ErrorIs(t, err, nvme.CapacityExceeded, "a full disk under the drive")
}

// countedFlash counts what reaches the disk.
type countedFlash struct {
	controller.Flash
	syncs *int
}

func (f countedFlash) Sync() error {
	*f.syncs++
	return f.Flash.Sync()
}

func TestForceUnitAccessAndFlush(t *testing.T) {
	syncs := 0
	d := openDevice(t, "mem:?size=1MiB&slm=64KiB", DeviceOptions{WrapFlash: func(f controller.Flash) controller.Flash {
		return countedFlash{f, &syncs}
	}})
	require.NoError(t, d.WriteBlocks(t.Context(), make([]byte, 512), 0, false))
	assert.Equal(t, 0, syncs)
	require.NoError(t, d.WriteBlocks(t.Context(), make([]byte, 512), 0, true))
	assert.Equal(t, 1, syncs)
	require.NoError(t, d.Flush(t.Context()))
	assert.Equal(t, 2, syncs)
}

func TestInfo(t *testing.T) {
	d := openDevice(t, "mem:?size=1MiB&slm=2MiB&threads=3&commands=standard", DeviceOptions{})
	i := d.Info()
	assert.Equal(t, int64(1<<20), i.Size)
	assert.Equal(t, uint64(2<<20), i.SLM.Size)
	assert.Equal(t, 3, i.Threads)
	assert.Equal(t, csd.BackendFunctional, i.Backend)
	assert.Equal(t, "standard", i.Commands)
	assert.NotEmpty(t, i.NQN)
	require.Len(t, i.Namespaces, 3)
	assert.Equal(t, []uint8{0, 3, 4}, []uint8{i.Namespaces[0].CSI, i.Namespaces[1].CSI, i.Namespaces[2].CSI})
	require.NotEmpty(t, i.Programs)
	assert.True(t, i.Programs[0].Active)
	assert.Equal(t, "device-defined", i.Programs[0].Occupancy)
	assert.Len(t, i.Programs[0].PUID, 16)
	s, err := d.SMART(t.Context())
	require.NoError(t, err)
	assert.Equal(t, uint64(1), s.PowerCycles)
	assert.Contains(t, d.String(), "mem:")
}

func TestPlainDrive(t *testing.T) {
	d := openDevice(t, "mem:?size=1MiB", DeviceOptions{Plain: true})
	assert.False(t, d.HasCompute())
	assert.Nil(t, d.Compute())
	_, err := d.ReserveSLM(t.Context(), 1)
	require.ErrorIs(t, err, ErrNoCompute)
	_, err = d.Counters(t.Context())
	require.ErrorIs(t, err, ErrNoCompute)
	require.ErrorIs(t, d.LoadImage(t.Context(), 1, nil), ErrNoCompute)
	require.ErrorIs(t, d.ActivateImage(t.Context(), 0), ErrNoCompute)
	_, err = d.WriteAt([]byte("plain"), 0)
	require.NoError(t, err)
}

func TestFilesAsADrive(t *testing.T) {
	dir := t.TempDir()
	var paths []string
	for i, n := range []int{1000, 0, 4096, 5} {
		p := filepath.Join(dir, fmt.Sprint(i))
		require.NoError(t, os.WriteFile(p, noisy(n), 0o644))
		paths = append(paths, p)
	}
	d, extents, err := OpenFiles(t.Context(), paths, FilesOptions{SLM: 1 << 20, Commands: Standard})
	require.NoError(t, err)
	defer func() { assert.NoError(t, d.Close()) }()
	require.Len(t, extents, 4)
	assert.True(t, d.Info().ReadOnly)
	for i, n := range []int{1000, 0, 4096, 5} {
		got := make([]byte, n)
		_, err := d.ReadAt(got, extents[i].Device)
		require.NoError(t, err)
		assert.Equal(t, noisy(n), got)
		assert.Zero(t, extents[i].Device%512)
	}
	require.ErrorIs(t, d.WriteBlocks(t.Context(), make([]byte, 512), 0, false), nvme.WriteProtected)
	_, _, err = OpenFiles(t.Context(), []string{filepath.Join(dir, "none")}, FilesOptions{})
	require.ErrorIs(t, err, fs.ErrNotExist)
	_, _, err = OpenFiles(t.Context(), paths, FilesOptions{SLM: 5})
	require.Error(t, err)
}

// eachSet runs f with a drive of both command sets.
func eachSet(t *testing.T, params string, o DeviceOptions, f func(t *testing.T, d *Device)) {
	for _, set := range []Commands{Vendor, Standard} {
		t.Run(string(set), func(t *testing.T) {
			f(t, openDevice(t, "mem:?size=1MiB&commands="+string(set)+params, o))
		})
	}
}

func TestSLMIsReservedAndReleased(t *testing.T) {
	r := &recorder{}
	o := DeviceOptions{Trace: r.trace()}
	eachSet(t, "&slm=1MiB", o, func(t *testing.T, d *Device) {
		c := d.Compute()
		var full *ReserveError
		_, err := c.Reserve(t.Context(), 1<<20+1)
		require.ErrorAs(t, err, &full)
		require.ErrorIs(t, err, ErrSLMFull)
		assert.Equal(t, uint64(1<<20), full.Size)
		_, err = c.Reserve(t.Context(), 0)
		require.Error(t, err)

		all, err := c.Reserve(t.Context(), 1<<20)
		require.NoError(t, err)
		assert.Equal(t, int64(1<<20), r.held)
		_, err = c.Reserve(t.Context(), 1)
		require.ErrorIs(t, err, ErrSLMFull)
		assert.Contains(t, err.Error(), "reserve 1 bytes")
		require.NoError(t, all.Release(t.Context()))
		require.NoError(t, all.Release(t.Context()), "twice is not an error")

		var parts []*SLM
		for range 4 {
			p, err := c.Reserve(t.Context(), 256<<10-10)
			require.NoError(t, err)
			parts = append(parts, p)
		}
		require.NoError(t, parts[1].Release(t.Context()))
		again, err := c.Reserve(t.Context(), 100)
		require.NoError(t, err)
		assert.Equal(t, parts[1].Addr(), again.Addr(), "what was released is found again")
		for _, p := range append(parts, again) {
			require.NoError(t, p.Release(t.Context()))
		}
		assert.Zero(t, r.held)
	})
}

func TestSLMOfAnotherHostIsOutOfReach(t *testing.T) {
	for _, set := range []string{"vendor", "standard"} {
		name := "mem:" + t.Name() + set
		a := openDevice(t, name+"?size=1MiB&slm=1MiB&commands="+set, DeviceOptions{})
		b, err := Open(t.Context(), name+"?commands="+set, DeviceOptions{})
		require.NoError(t, err)
		secret, err := b.ReserveSLM(t.Context(), 512<<10)
		require.NoError(t, err)
		require.NoError(t, secret.Store(t.Context(), 0, []byte("secret")))
		mine, err := a.ReserveSLM(t.Context(), 512<<10)
		require.NoError(t, err)
		assert.NotEqual(t, secret.Addr(), mine.Addr())
		stolen := &SLM{c: a.Compute(), addr: secret.Addr(), size: secret.Size(), association: a.anyAssociation()}
		require.ErrorIs(t, stolen.Fetch(t.Context(), 0, make([]byte, 8)), nvme.AccessDenied)
		_, ok := stolen.View(0, 8)
		assert.False(t, ok)
		// The memory that an association held is free when the association ends, and clean.
		require.NoError(t, b.Close())
		next, err := a.ReserveSLM(t.Context(), 512<<10)
		require.NoError(t, err)
		got := make([]byte, 8)
		require.NoError(t, next.Fetch(t.Context(), 0, got))
		assert.Equal(t, make([]byte, 8), got)
	}
}

func TestSLMBytesOfAnyAlignment(t *testing.T) {
	eachSet(t, "&slm=64KiB", DeviceOptions{}, func(t *testing.T, d *Device) {
		const size = 32 << 10
		slm, err := d.ReserveSLM(t.Context(), size)
		require.NoError(t, err)
		model := make([]byte, size)
		rapid.Check(t, func(r *rapid.T) {
			off := rapid.IntRange(0, size).Draw(r, "off")
			b := noisy(rapid.IntRange(0, min(size-off, 5000)).Draw(r, "n"))
			require.NoError(r, slm.Store(t.Context(), uint64(off), b))
			copy(model[off:], b)
			at := rapid.IntRange(0, size).Draw(r, "at")
			got := make([]byte, rapid.IntRange(0, size-at).Draw(r, "len"))
			require.NoError(r, slm.Fetch(t.Context(), uint64(at), got))
			require.Equal(r, model[at:at+len(got)], got)
			view, ok := slm.View(uint64(at), uint64(len(got)))
			require.True(r, ok)
			require.Equal(r, model[at:at+len(got)], view)
		})
		require.Error(t, slm.Store(t.Context(), size, []byte{1}))
		require.Error(t, slm.Fetch(t.Context(), 1<<63, make([]byte, 1)))
		_, ok := slm.View(size-1, 2)
		assert.False(t, ok)
		_, ok = slm.View(1<<63, 1<<63)
		assert.False(t, ok)
	})
}

func TestUnmappedDriveGivesNoViews(t *testing.T) {
	d := openDevice(t, "mem:?size=1MiB&slm=64KiB", DeviceOptions{NoMap: true})
	slm, err := d.ReserveSLM(t.Context(), 4096)
	require.NoError(t, err)
	_, ok := slm.View(0, 1)
	assert.False(t, ok)
}

// answer runs a known answer of the stock image on a drive: its input comes from flash.
func answer(t testing.TB, d *Device, slm *SLM, v *image.Vector) (program.State, []byte, error) {
	t.Helper()
	ctx := t.Context()
	var ranges []cs.Range
	var at uint64
	sizes := []int{len(v.Program), len(v.Input), int(v.Dict), int(v.Scratch), len(v.Output), 64 << 10}
	if len(v.Tables) > 0 {
		sizes = append(sizes, len(v.Tables))
	}
	for _, n := range sizes {
		ranges = append(ranges, slm.Range(at, wholePages(uint64(n))))
		at += wholePages(uint64(n))
	}
	require.NoError(t, slm.Store(ctx, 0, v.Program))
	if len(v.Tables) > 0 {
		require.NoError(t, slm.Store(ctx, ranges[6].Addr-slm.Addr(), v.Tables))
	}
	// Bytes between tensors belong to no tensor: the engine does not write them.
	require.NoError(t, slm.Store(ctx, ranges[4].Addr-slm.Addr(), make([]byte, len(v.Output))))
	_, err := d.WriteAt(v.Input, 3*512)
	require.NoError(t, err)
	blocks := uint32((len(v.Input) + 511) / 512)
	copies := []cs.Copy{{NSID: 1, SLBA: 3, NLB: blocks, Dest: ranges[1].Addr}}
	state, err := d.Compute().Preprocess(ctx, copies, ranges, v.Args)
	out := make([]byte, len(v.Output))
	require.NoError(t, slm.Fetch(ctx, ranges[4].Addr-slm.Addr(), out))
	return state, out, err
}

func stockAnswers(t testing.TB) []image.Vector { return stocktest.Parsed(t).Spec.SelfTest }

func TestPreprocess(t *testing.T) {
	eachSet(t, "&slm=1MiB", DeviceOptions{}, func(t *testing.T, d *Device) {
		vectors := stockAnswers(t)
		slm, err := d.ReserveSLM(t.Context(), 512<<10)
		require.NoError(t, err)
		for range 3 {
			for i := range vectors {
				state, out, err := answer(t, d, slm, &vectors[i])
				require.NoError(t, err)
				assert.Equal(t, program.Done, state)
				assert.Equal(t, vectors[i].Output, out)
			}
		}
		l, err := d.Counters(t.Context())
		require.NoError(t, err)
		executions := uint64(3 * len(vectors))
		assert.Equal(t, executions, l.Executions)
		assert.Equal(t, executions, l.FlashToDRAM.Commands)
		moved := 0
		for i := range vectors {
			moved += 3 * ((len(vectors[i].Input) + 511) / 512 * 512)
		}
		assert.EqualValues(t, moved, l.FlashToDRAM.Bytes)

		broken := vectors[0]
		broken.Args = []byte("no slice")
		state, _, err := answer(t, d, slm, &broken)
		require.NoError(t, err, "a program that gives up says so in its state")
		assert.Equal(t, program.BadSlice, state)

		_, err = d.Compute().Preprocess(t.Context(), []cs.Copy{{NSID: 1, SLBA: 1 << 40, NLB: 1, Dest: slm.Addr()}}, nil, nil)
		require.ErrorIs(t, err, nvme.LBAOutOfRange)
		ranges := []cs.Range{{Addr: 512 << 10, Len: 4096}}
		if _, err := d.Compute().Preprocess(t.Context(), nil, ranges, nil); err == nil {
			t.Error("executed over memory that nobody reserved")
		}
		require.NoError(t, slm.Release(t.Context()), "range sets go with their memory")
		again, err := d.ReserveSLM(t.Context(), 512<<10)
		require.NoError(t, err)
		_, out, err := answer(t, d, again, &vectors[0])
		require.NoError(t, err)
		assert.Equal(t, vectors[0].Output, out)
	})
}

func TestArgumentsAreBounded(t *testing.T) {
	eachSet(t, "&slm=1MiB", DeviceOptions{}, func(t *testing.T, d *Device) {
		slm, err := d.ReserveSLM(t.Context(), 512<<10)
		require.NoError(t, err)
		var ranges []cs.Range
		for i := range uint64(6) {
			ranges = append(ranges, slm.Range(i*8192, 8192))
		}
		copies := []cs.Copy{{NSID: 1, NLB: 1, Dest: slm.Addr()}}
		most := d.Compute().MaxArgs(1, 6)
		for n, ok := range map[int]bool{most - 1: true, most: true, most + 1: false} {
			state, err := d.Compute().Preprocess(t.Context(), copies, ranges, make([]byte, n))
			if ok {
				require.NoError(t, err)
				assert.Equal(t, program.BadSlice, state)
			} else {
				require.ErrorIs(t, err, ErrArgs)
			}
		}
	})
	p := cs.Preprocess{Ranges: make([]cs.Range, 3), Copies: make([]cs.Copy, 5)}
	b, err := p.Marshal()
	require.NoError(t, err)
	assert.Len(t, b, cs.PreprocessHeader+3*vendorRange+5*vendorCopy)
}

func TestManySlotsOfOneAssociation(t *testing.T) {
	// More sets of ranges than the standard set keeps: old ones make room.
	eachSet(t, "&slm=64MiB", DeviceOptions{}, func(t *testing.T, d *Device) {
		vectors := stockAnswers(t)
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				slm, err := d.ReserveSLM(t.Context(), 8<<20)
				if !assert.NoError(t, err) {
					return
				}
				for i := range uint64(maxSets/2 + 3) {
					part := &SLM{c: slm.c, addr: slm.addr + i*192<<10, size: 192 << 10, association: slm.association}
					_, out, err := answer(t, d, part, &vectors[0])
					assert.NoError(t, err)
					assert.Equal(t, vectors[0].Output, out)
				}
				assert.NoError(t, slm.Release(t.Context()))
			})
		}
		wg.Wait()
	})
}

func TestImages(t *testing.T) {
	eachSet(t, "&slm=1MiB", DeviceOptions{}, func(t *testing.T, d *Device) {
		b, err := stock.Image()
		require.NoError(t, err)
		require.NoError(t, d.LoadImage(t.Context(), 1, b))
		require.NoError(t, d.ActivateImage(t.Context(), 1))
		list, err := d.programs(t.Context())
		require.NoError(t, err)
		assert.True(t, list[1].Active)
		slm, err := d.ReserveSLM(t.Context(), 512<<10)
		require.NoError(t, err)
		v := stockAnswers(t)[1]
		_, out, err := answer(t, d, slm, &v)
		require.NoError(t, err, "the standard set notices that another slot is active")
		assert.Equal(t, v.Output, out)
		require.ErrorIs(t, d.ActivateImage(t.Context(), 3), nvme.NoProgram)
		require.ErrorIs(t, d.LoadImage(t.Context(), -1, b), nvme.InvalidProgramIndex)
		require.ErrorIs(t, d.LoadImage(t.Context(), 99, b), nvme.InvalidProgramIndex)
		require.ErrorIs(t, d.ActivateImage(t.Context(), 1<<20), nvme.InvalidProgramIndex)
		require.ErrorIs(t, d.LoadImage(t.Context(), 2, b[:50]), image.ErrCorrupt)
	})
}

func TestExecutionsThatFailOnTheDrive(t *testing.T) {
	for _, set := range []string{"vendor", "standard"} {
		injector, err := faults.New(new(faults.Script), faults.Options{})
		require.NoError(t, err)
		d := openDevice(t, "mem:?size=1MiB&slm=1MiB&commands="+set, DeviceOptions{WrapCompute: injector.Compute})
		slm, err := d.ReserveSLM(t.Context(), 512<<10)
		require.NoError(t, err)
		second := faults.Execute{Status: nvme.InternalError, Count: faults.Count{After: 1, Times: 1}}
		require.NoError(t, injector.Replace(&faults.Script{Execute: []faults.Execute{second}}))
		v := stockAnswers(t)[0]
		_, _, err = answer(t, d, slm, &v)
		require.NoError(t, err)
		_, _, err = answer(t, d, slm, &v)
		require.ErrorIs(t, err, nvme.InternalError)
		_, _, err = answer(t, d, slm, &v)
		require.NoError(t, err)
	}
}

func TestContextEndsAnExecutionThatWaits(t *testing.T) {
	eachSet(t, "&slm=1MiB", DeviceOptions{}, func(t *testing.T, d *Device) {
		slm, err := d.ReserveSLM(t.Context(), 512<<10)
		require.NoError(t, err)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = d.Compute().Preprocess(ctx, nil, []cs.Range{slm.Range(0, 4096)}, nil)
		require.ErrorIs(t, err, context.Canceled)
		require.ErrorIs(t, slm.Fetch(ctx, 0, make([]byte, 8)), context.Canceled)
		require.ErrorIs(t, d.ReadBlocks(ctx, make([]byte, 512), 0), context.Canceled)
	})
}

func TestCloseEndsEverything(t *testing.T) {
	leaks.Check(t)
	d, err := Open(t.Context(), "mem:?size=1MiB&slm=1MiB", DeviceOptions{})
	require.NoError(t, err)
	_, err = d.ReserveSLM(t.Context(), 4096)
	require.NoError(t, err)
	var all futures
	for range 100 {
		cmd := nvme.Read(1, 0, 1, 512)
		all = append(all, d.Queue().Submit(t.Context(), &cmd, make([]byte, 512)))
	}
	require.NoError(t, d.Close())
	require.NoError(t, all.wait())
	require.ErrorIs(t, d.Flush(t.Context()), ErrClosed)
}
