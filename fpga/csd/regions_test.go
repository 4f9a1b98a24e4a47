package csd

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd/images"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/timing"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/cs"
)

// activeIn returns the slot that each region executes.
func activeIn(d *Drive) (slots []int) {
	for _, g := range d.Images().Regions {
		slots = append(slots, g.Slot)
	}
	return slots
}

func TestRegionsAtTheirLimits(t *testing.T) {
	for name, test := range map[string]struct {
		o    Options
		says string // empty: the drive opens
	}{
		"one":                     {Options{Regions: 1}, ""},
		"seven":                   {Options{Regions: 7}, ""},
		"eight":                   {Options{Regions: 8}, "8 regions: want 1 to 7"},
		"fewer than none":         {Options{Regions: -1}, "-1 regions"},
		"just enough memory":      {Options{Regions: 3, SLMBytes: 3 * MinSLM}, ""},
		"too little memory":       {Options{Regions: 3, SLMBytes: 3*MinSLM - 4096}, "each needs 65536"},
		"a drive of blocks":       {Options{Regions: 2, Plain: true}, "does not compute"},
		"a model":                 {Options{Regions: 2, Timing: timing.NewPacing(timing.ModeSmartSSD, 1)}, "one region"},
		"a model of one region":   {Options{Regions: 1, Timing: timing.NewPacing(timing.ModeSmartSSD, 1)}, ""},
		"a drive without a flash": {Options{Regions: 2, Diskless: true}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			if !test.o.Diskless {
				test.o.Size = 1 << 20
			}
			if test.o.SLMBytes == 0 {
				test.o.SLMBytes = testSLM
			}
			d, err := Open(test.o)
			if test.says != "" {
				require.ErrorContains(t, err, test.says)
				return
			}
			require.NoError(t, err)
			assert.Len(t, d.Images().Regions, max(test.o.Regions, 1))
			require.NoError(t, d.Close())
		})
	}
}

// TestEveryRegionMakesTheSameBytes: of all known answers, on both the stock image and a loaded one.
func TestEveryRegionMakesTheSameBytes(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20, Regions: 3, SLMBytes: 3 * testSLM})
	c := connect(t, d)
	b, m := numbered(t, 7)
	require.NoError(t, load(t, c, 1, b, m.ID.PUID()))
	require.NoError(t, activateIn(t, c, 2, 1))
	assert.Equal(t, []int{0, 0, 1}, activeIn(d))
	for region := range 3 {
		for _, v := range m.Spec.SelfTest {
			state, out, err := runVectorIn(t, c, region, v)
			require.NoError(t, err, "region %d: %s", region, v.Name)
			assert.Equal(t, v.State, state)
			assert.Equal(t, v.Output, out, "region %d: %s", region, v.Name)
		}
	}
	page := make([]byte, 16<<10)
	cmd := nvme.GetLog(nvme.LogVendor, nvme.AllNamespaces, 0, uint32(len(page)))
	_, err := c.Admin(t.Context(), &cmd, page)
	require.NoError(t, err)
	var l cs.Log
	require.NoError(t, l.Unmarshal(page))
	assert.EqualValues(t, 3, l.Threads, "one a region")
}

// TestHostsInRegionsBesideASwitch: two hosts get the right bytes while a third region changes its image all the time.
func TestHostsInRegionsBesideASwitch(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20, Regions: 3, SLMBytes: 3 * testSLM})
	a, am := numbered(t, 7)
	b, bm := numbered(t, 8)
	third := connect(t, d)
	require.NoError(t, load(t, third, 1, a, am.ID.PUID()))
	require.NoError(t, load(t, third, 2, b, bm.ID.PUID()))
	var hosts sync.WaitGroup
	for region := range 2 {
		c := connect(t, d)
		hosts.Go(func() {
			for range 5 {
				for _, v := range am.Spec.SelfTest {
					state, out, err := runVectorIn(t, c, region, v)
					assert.NoError(t, err)
					assert.Equal(t, v.State, state)
					assert.Equal(t, v.Output, out)
				}
			}
		})
	}
	for n := range 10 {
		require.NoError(t, activateIn(t, third, 2, uint16(n%3)))
		v := am.Spec.SelfTest[n]
		_, out, err := runVectorIn(t, third, 2, v)
		require.NoError(t, err)
		require.Equal(t, v.Output, out)
	}
	hosts.Wait()
}

// TestARegionThatSpinsTakesItsOwnTime: executions of other regions do not wait for its thread.
func TestARegionThatSpinsTakesItsOwnTime(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20, Regions: 2})
	c := connect(t, d)
	_, m := stockImage(t)
	d.comp.threads[1] <- struct{}{} // its thread never ends
	_, out, err := runVectorIn(t, c, 0, m.Spec.SelfTest[0])
	require.NoError(t, err)
	assert.Equal(t, m.Spec.SelfTest[0].Output, out)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	p := cs.Preprocess{Ranges: make([]cs.Range, rangeCount)}
	b, err := p.Marshal()
	require.NoError(t, err)
	cmd := cs.InRegion(cs.PreprocessCommand(uint32(len(b))), 1)
	_, err = c.IO(ctx, &cmd, b)
	require.Error(t, err, "the command waits for the region's own thread")
	<-d.comp.threads[1]
}

// TestAnImageOfSeveralRegions stays active until the last of them executes another, and is not replaced while one of
// them starts with it.
func TestAnImageOfSeveralRegions(t *testing.T) {
	d := openDrive(t, Options{Size: 1 << 20, Regions: 3})
	c := connect(t, d)
	b, m := numbered(t, 7)
	other, om := numbered(t, 8)
	require.NoError(t, load(t, c, 1, b, m.ID.PUID()))
	for region := 1; region <= 2; region++ {
		require.NoError(t, activateIn(t, c, region, 1))
	}
	require.NoError(t, activateIn(t, c, 1, 0))
	assert.True(t, logPageOf(t, c).Slots[1].Active, "region 2 executes it")
	require.ErrorIs(t, load(t, c, 1, other, om.ID.PUID()), nvme.ProgramInUse)
	off := cs.Activation(1, false)
	off.SetNSID(cs.RegionNamespace(2))
	_, err := c.Admin(t.Context(), &off, nil)
	require.NoError(t, err)
	r := logPageOf(t, c)
	assert.False(t, r.Slots[1].Active)
	assert.True(t, r.Slots[1].Boot)
	assert.Equal(t, image.NoSlot, r.Regions[2].Slot)
	require.ErrorIs(t, load(t, c, 1, other, om.ID.PUID()), nvme.ProgramInUse, "region 2 starts with it")
	require.NoError(t, activateIn(t, c, 2, 0))
	require.NoError(t, load(t, c, 1, other, om.ID.PUID()))

	_, ok := logPageOf(t, c).In(2).Rollback()
	assert.False(t, ok, "the image that ran before is gone, and the stock image runs")
	assert.EqualValues(t, 1, d.comp.slots.Firmware().Active, "log page 03h is region 0's")
}

func TestRegionsAreKept(t *testing.T) {
	path := filepath.Join(t.TempDir(), "drive")
	version := func() int { return keptVersion(t, path) }
	a, am := numbered(t, 7)
	b, bm := numbered(t, 8)
	session(t, Options{Path: path, Create: true, Size: 1 << 20}, func(d *Drive, c nvme.Conn) {
		put(t, c, 1, a, am)
		require.NoError(t, load(t, c, 2, b, bm.ID.PUID()))
	})
	assert.Equal(t, 2, version(), "an older build opens a drive of one region")
	session(t, Options{Path: path, Regions: 3}, func(d *Drive, c nvme.Conn) {
		assert.Equal(t, []int{1, 0, 0}, activeIn(d), "new regions start with the stock image")
		require.NoError(t, activateIn(t, c, 2, 2))
		require.NoError(t, activateIn(t, c, 1, 1))
	})
	assert.Equal(t, 3, version())
	session(t, Options{Path: path}, func(d *Drive, c nvme.Conn) {
		assert.Equal(t, []int{1, 1, 2}, activeIn(d))
		to, ok := d.Images().In(2).Rollback()
		require.True(t, ok)
		assert.Equal(t, 0, to.Slot)
	})
	session(t, Options{Path: path, Regions: 2}, func(d *Drive, _ nvme.Conn) { assert.Equal(t, []int{1, 1}, activeIn(d)) })
	session(t, Options{Path: path}, func(d *Drive, _ nvme.Conn) { assert.Equal(t, []int{1, 1}, activeIn(d)) })
	session(t, Options{Path: path, Regions: 1}, func(d *Drive, _ nvme.Conn) { assert.Equal(t, []int{1}, activeIn(d)) })
	assert.Equal(t, 2, version())

	// A region whose image is gone starts with the stock image, alone.
	session(t, Options{Path: path, Regions: 2}, func(_ *Drive, c nvme.Conn) { require.NoError(t, activateIn(t, c, 1, 2)) })
	require.NoError(t, os.Truncate(images.Path(path, 2), 100))
	session(t, Options{Path: path}, func(d *Drive, _ nvme.Conn) {
		assert.Equal(t, []int{1, 0}, activeIn(d))
		assert.NotEmpty(t, d.Images().Slots[2].Reason)
	})
}

// keptVersion returns the version of a drive's PATH.json.
func keptVersion(t *testing.T, path string) int {
	t.Helper()
	b, err := os.ReadFile(statePath(path))
	require.NoError(t, err)
	var v struct{ Version int }
	require.NoError(t, json.Unmarshal(b, &v))
	return v.Version
}

// TestKillAtEveryStepOfASwitch: a region has its old image or its new one, and the other regions theirs.
func TestKillAtEveryStepOfASwitch(t *testing.T) {
	a, am := numbered(t, 7)
	x, xm := numbered(t, 9)
	for step, switched := range map[string]bool{
		"image: judged": false, "image: kept": false, "image: tested": false, "state: written": false,
		"state: renamed": true, "image: active": true,
	} {
		t.Run(step, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "drive")
			session(t, Options{Path: path, Create: true, Size: 1 << 20, Regions: 3}, func(_ *Drive, c nvme.Conn) {
				put(t, c, 1, a, am)
			})
			cmd, out, err := victimOf(path, []string{imageFile(t, x)}, step, loadRegion+"=2")
			require.NoError(t, err)
			said, err := io.ReadAll(out)
			require.NoError(t, err)
			require.Error(t, cmd.Wait(), "it was killed: %s", said)
			require.Contains(t, string(said), "open\n")
			require.NotContains(t, string(said), "FAIL")
			session(t, Options{Path: path}, func(d *Drive, c nvme.Conn) {
				want := []int{1, 0, 0}
				if switched {
					want[2] = 2
				}
				require.Equal(t, want, activeIn(d))
				for _, v := range xm.Spec.SelfTest[:2] {
					_, out, err := runVectorIn(t, c, 2, v)
					require.NoError(t, err)
					require.Equal(t, v.Output, out)
				}
			})
		})
	}
}

// BenchmarkSwitch measures the switch of a region between two images that are resident and tested, of a drive in memory
// and of one in a file: from the end of the last slice of one image to the moment at which the first slice of the other
// has executed, so that the slice itself counts, too. The owner of the region holds its memory all the time. Another
// region executes slices meanwhile in the runs "beside".
func BenchmarkSwitch(b *testing.B) {
	for _, flash := range []string{"memory", "file"} {
		for _, beside := range []bool{false, true} {
			name := flash + map[bool]string{false: "/alone", true: "/beside"}[beside]
			b.Run(name, func(b *testing.B) {
				o := Options{Size: 1 << 20, Regions: 2}
				if flash == "file" {
					o.Path, o.Create = filepath.Join(b.TempDir(), "drive"), true
				}
				benchmarkSwitch(b, o, beside)
			})
		}
	}
}

func benchmarkSwitch(b *testing.B, o Options, beside bool) {
	d := openDrive(b, o)
	c := connect(b, d)
	loaded, m := numbered(b, 7)
	require.NoError(b, load(b, c, 1, loaded, m.ID.PUID()))
	slice := prepared(b, c, 1, m.Spec.SelfTest[0])
	stop := make(chan struct{})
	var other sync.WaitGroup
	if beside {
		host := connect(b, d)
		theirs := prepared(b, host, 0, m.Spec.SelfTest[0])
		other.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					theirs()
				}
			}
		})
	}
	var took []time.Duration
	for n := uint16(1); b.Loop(); n++ {
		slice()
		began := time.Now()
		require.NoError(b, activateIn(b, c, 1, n%2))
		slice()
		took = append(took, time.Since(began))
	}
	close(stop)
	other.Wait()
	slices.Sort(took)
	at := func(share float64) float64 { return took[int(share*float64(len(took)-1))].Seconds() * 1e3 }
	b.ReportMetric(at(0.5), "p50-ms")
	b.ReportMetric(at(0.99), "p99-ms")
}

// prepared stores a known answer in the memory of a region, and returns a function that executes its slice.
func prepared(b *testing.B, c nvme.Conn, region int, v image.Vector) func() {
	p := cs.Preprocess{Args: v.Args}
	for i, n := range []int{len(v.Program), len(v.Input), int(v.Dict), int(v.Scratch), len(v.Output), 64 << 10} {
		n = (n + 4096) &^ 4095
		reserve := cs.InRegion(cs.SLMReserve(cs.AnyAddress, uint64(n)), region)
		at, err := c.Admin(b.Context(), &reserve, nil)
		require.NoError(b, err)
		p.Ranges = append(p.Ranges, cs.Range{Addr: at.Result(), Len: uint64(n)})
		if i > rangeInput {
			continue
		}
		content := [][]byte{v.Program, v.Input}[i]
		store := cs.Store(at.Result(), uint32(len(content)))
		_, err = c.IO(b.Context(), &store, content)
		require.NoError(b, err)
	}
	data, err := p.Marshal()
	require.NoError(b, err)
	cmd := cs.InRegion(cs.PreprocessCommand(uint32(len(data))), region)
	return func() {
		_, err := c.IO(context.Background(), &cmd, data)
		require.NoError(b, err)
	}
}
