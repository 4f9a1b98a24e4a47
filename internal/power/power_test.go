package power

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// sysfs is a fake tree of energy counters.
type sysfs struct {
	t    *testing.T
	root string
}

// zone makes a zone, or changes the files of one.
func (s sysfs) zone(dir string, files map[string]string) {
	s.t.Helper()
	path := filepath.Join(s.root, dir)
	require.NoError(s.t, os.MkdirAll(path, 0o700))
	for name, text := range files {
		file := filepath.Join(path, name)
		require.NoError(s.t, os.WriteFile(file+".new", []byte(text), 0o600))
		require.NoError(s.t, os.Rename(file+".new", file)) // in one step, beside a goroutine that reads
	}
}

// set sets a counter, in microjoules.
func (s sysfs) set(dir string, uj uint64) {
	s.zone(dir, map[string]string{"energy_uj": strconv.FormatUint(uj, 10) + "\n"})
}

// server is a machine with two packages, memory in the first, and parts and a board that must not count.
func server(t *testing.T) sysfs {
	s := sysfs{t, t.TempDir()}
	for dir, name := range map[string]string{"intel-rapl:0": "package-0", "intel-rapl:0:0": "core",
		"intel-rapl:0:1": "dram", "intel-rapl:1": "package-1", "intel-rapl:2": "psys"} {
		s.zone(dir, map[string]string{"name": name + "\n", "max_energy_range_uj": "1000000000\n", "energy_uj": "0\n"})
	}
	return s
}

// hands is a clock that a test moves.
type hands struct{ now time.Time }

func (h *hands) pass(d time.Duration) { h.now = h.now.Add(d) }
func (h *hands) time() time.Time      { return h.now }

func noGPUs(context.Context) ([]byte, error) { return nil, nil }

// open opens a meter whose goroutine reads once an hour, so that a test decides what is read.
func open(t *testing.T, root string, clock *hands, change func(o *Options)) *Meter {
	t.Helper()
	o := Options{Powercap: root, GPUs: noGPUs, Now: clock.time, Every: time.Hour,
		Model: Model{Core: 12.5, CoreSource: "a test", Drive: 25, DriveSource: "a test"}}
	if change != nil {
		change(&o)
	}
	m, err := Open(t.Context(), o)
	require.NoError(t, err)
	return m
}

// domains returns the joules by domain.
func domains(e *Energy) map[string]float64 {
	all := make(map[string]float64)
	for _, d := range e.Domains {
		all[d.Name] = d.Joules
	}
	return all
}

// TestPackagesAndMemoryAddUp: a package's cores and the board are parts or wholes of what counts already.
func TestPackagesAndMemoryAddUp(t *testing.T) {
	s, clock := server(t), &hands{time.Unix(1000, 0)}
	s.set("intel-rapl:0", 7_000_000)
	m := open(t, s.root, clock, nil)
	r := m.begin(t.Context())
	s.set("intel-rapl:0", 107_000_000)
	s.set("intel-rapl:0:0", 60_000_000)
	s.set("intel-rapl:0:1", 20_000_000)
	s.set("intel-rapl:1", 50_000_000)
	s.set("intel-rapl:2", 900_000_000)
	clock.pass(10 * time.Second)
	e := r.end(t.Context(), Use{Rows: 2_000_000, CPUSeconds: 99})
	assert.Equal(t, map[string]float64{"package-0": 100, "package-0/dram": 20, "package-1": 50}, domains(e))
	assert.Equal(t, Measured, e.Kind)
	assert.InDelta(t, 170, e.Joules, 1e-9)
	assert.InDelta(t, 85, e.PerMillionRows, 1e-9)
	assert.InDelta(t, 17, e.Watts(), 1e-9)
	assert.Nil(t, e.Split, "the idle machine was not measured")
	assert.Contains(t, e.String(), "170 J measured, 85 J a million rows, 17 W on average")
}

// TestCountersWrapAround: once between two readings, and again in the next; a counter at its greatest value.
func TestCountersWrapAround(t *testing.T) {
	s, clock := server(t), &hands{time.Unix(1000, 0)}
	s.set("intel-rapl:0", 999_000_000)
	m := open(t, s.root, clock, nil)
	r := m.begin(t.Context())
	s.set("intel-rapl:0", 4_000_000) // 1 J to the end of the range, and 4 J
	r.sample(t.Context())
	s.set("intel-rapl:0", 1_000_000_000) // the greatest value
	r.sample(t.Context())
	s.set("intel-rapl:0", 0)
	e := r.end(t.Context(), Use{})
	assert.InDelta(t, 5+996+0, domains(e)["package-0"], 1e-9)

	s.set("intel-rapl:0", 1_000_000_001)
	r = m.begin(t.Context())
	e = r.end(t.Context(), Use{})
	assert.NotContains(t, domains(e), "package-0")
	assert.Contains(t, e.Notes[0], "package-0 is left out")
	assert.Contains(t, e.Notes[0], "above its range")
}

// TestTheWatchReads: the goroutine reads between begin and end, so that a counter may wrap around several times.
func TestTheWatchReads(t *testing.T) {
	s := server(t)
	m := open(t, s.root, &hands{}, func(o *Options) { o.Now, o.Every = time.Now, time.Millisecond })
	r := m.begin(t.Context())
	for _, uj := range []uint64{600_000_000, 200_000_000, 800_000_000} {
		s.set("intel-rapl:1", uj)
		require.Eventually(t, func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return m.domains[2].(*counter).last == uj
		}, time.Minute, time.Millisecond)
	}
	e := r.end(t.Context(), Use{})
	assert.InDelta(t, 600+600+600, domains(e)["package-1"], 1e-9)
}

// TestStaticAndDynamic: 4 W idle; a run of 10 s and 170 J has 40 J of it.
func TestStaticAndDynamic(t *testing.T) {
	s, clock := server(t), &hands{time.Unix(1000, 0)}
	m := open(t, s.root, clock, nil)
	m.idle = map[string]float64{"package-0": 3, "package-1": 1, "gpus": 100}
	r := m.begin(t.Context())
	s.set("intel-rapl:0", 170_000_000)
	clock.pass(10 * time.Second)
	e := r.end(t.Context(), Use{Rows: 1_000_000})
	require.NotNil(t, e.Split)
	assert.Equal(t, Split{IdleWatts: 4, StaticJoules: 40, DynamicJoules: 130, DynamicPerMillionRows: 130}, *e.Split)
	r = m.begin(t.Context())
	clock.pass(10 * time.Second)
	e = r.end(t.Context(), Use{})
	assert.Zero(t, e.Split.DynamicJoules, "a machine that draws less than before has no dynamic energy below 0")
}

// TestIdleIsMeasured by Open, which waits.
func TestIdleIsMeasured(t *testing.T) {
	s := server(t)
	m := open(t, s.root, &hands{}, func(o *Options) { o.Now, o.Idle = time.Now, time.Millisecond })
	assert.Len(t, m.idle, 3)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := Open(ctx, Options{Powercap: s.root, GPUs: noGPUs, Idle: time.Hour})
	assert.ErrorIs(t, err, context.Canceled)
}

// TestDamagedTrees: a zone that cannot be read is left out, and the note says what to do.
func TestDamagedTrees(t *testing.T) {
	counter := func(text string) func(s sysfs) {
		return func(s sysfs) { s.zone("intel-rapl:0", map[string]string{"energy_uj": text}) }
	}
	remove := func(s sysfs) { require.NoError(s.t, os.Remove(s.root+"/intel-rapl:0/energy_uj")) }
	for name, c := range map[string]struct {
		change func(s sysfs)
		says   string
		kind   string
	}{
		"no tree":   {func(s sysfs) { require.NoError(s.t, os.RemoveAll(s.root)) }, "nothing on this machine", Modelled},
		"no number": {counter("a lot"), `holds "a lot"`, Measured},
		"empty":     {counter(""), `holds ""`, Measured},
		"negative":  {counter("-1"), `holds "-1"`, Measured},
		"long":      {counter(strings.Repeat("9", 99)), "want a number", Measured},
		"no range": {func(s sysfs) { s.zone("intel-rapl:0", map[string]string{"max_energy_range_uj": "0"}) },
			"has the range 0", Measured},
		"no counter":   {remove, "no such file", Measured},
		"a folder":     {func(s sysfs) { remove(s); s.zone("intel-rapl:0/energy_uj", nil) }, "is a directory", Measured},
		"beyond range": {counter("9223372036854775808"), "above its range", Measured},
	} {
		t.Run(name, func(t *testing.T) {
			s := server(t)
			c.change(s)
			r := open(t, s.root, &hands{}, nil).begin(t.Context())
			e := r.end(t.Context(), Use{CPUSeconds: 2, Rows: 1e6})
			assert.Equal(t, c.kind, e.Kind)
			assert.NotContains(t, domains(e), "package-0")
			assert.Contains(t, strings.Join(e.Notes, "\n"), c.says)
		})
	}
}

// TestUnreadableCounters: the note says why a counter is left out, and how to make it readable where that helps.
func TestUnreadableCounters(t *testing.T) {
	s := server(t)
	path := filepath.Join(s.root, "intel-rapl:0", "energy_uj")
	require.NoError(t, os.Remove(path))
	require.NoError(t, os.Mkdir(path, 0o700)) // a file of mode 0 would be readable to root
	e := open(t, s.root, &hands{}, nil).begin(t.Context()).end(t.Context(), Use{})
	assert.Contains(t, e.Notes[0], "an energy counter is left out: read "+path)
	denied := unreadable(path, &fs.PathError{Op: "open", Path: path, Err: fs.ErrPermission})
	require.ErrorIs(t, denied, fs.ErrPermission)
	assert.ErrorContains(t, denied, "chmod a+r "+path)
}

// TestOnlyABoard: psys counts where there is no package.
func TestOnlyABoard(t *testing.T) {
	s := sysfs{t, t.TempDir()}
	s.zone("intel-rapl:0", map[string]string{"name": "psys", "max_energy_range_uj": "100", "energy_uj": "0"})
	s.zone("intel-rapl:1", map[string]string{"name": "other", "max_energy_range_uj": "100", "energy_uj": "0"})
	e := open(t, s.root, &hands{}, nil).begin(t.Context()).end(t.Context(), Use{})
	assert.Equal(t, map[string]float64{"psys": 0}, domains(e))
}

// TestModelled: without a counter a busy core's share counts, and modelled drives count wherever the machine measures.
func TestModelled(t *testing.T) {
	e := open(t, t.TempDir(), &hands{}, nil).begin(t.Context()).end(t.Context(), Use{CPUSeconds: 4, Rows: 2e6})
	assert.Equal(t, map[string]float64{"cores": 50}, domains(e))
	assert.InDelta(t, 25, e.PerMillionRows, 1e-9)
	assert.Zero(t, e.Watts())

	r := open(t, server(t).root, &hands{}, nil).begin(t.Context())
	e = r.end(t.Context(), Use{CPUSeconds: 4, DriveSeconds: 2})
	assert.Equal(t, Modelled, e.Kind)
	assert.Equal(t, map[string]float64{"drives": 50}, domains(e))
}

// TestMeasure returns the work's error, and without a meter only does the work.
func TestMeasure(t *testing.T) {
	m := open(t, server(t).root, &hands{}, nil)
	e, err := m.Measure(t.Context(), func() (Use, error) { return Use{Rows: 5}, nil })
	require.NoError(t, err)
	assert.Len(t, e.Domains, 3)
	broken := errors.New("broken")
	for _, m := range []*Meter{m, nil} {
		_, err = m.Measure(t.Context(), func() (Use, error) { return Use{}, broken })
		assert.ErrorIs(t, err, broken)
	}
	e, err = (*Meter)(nil).Measure(t.Context(), func() (Use, error) { return Use{}, nil })
	require.NoError(t, err)
	assert.Nil(t, e)
}

// TestGPUs: power that changes from 100 W to 300 W over 10 s is 2,000 J.
func TestGPUs(t *testing.T) {
	clock := &hands{time.Unix(1000, 0)}
	printed := "0, 60.00\n1, 40.00\n2, [N/A]\n"
	m := open(t, t.TempDir(), clock, func(o *Options) {
		o.GPUs = func(context.Context) ([]byte, error) { return []byte(printed), nil }
	})
	r := m.begin(t.Context())
	printed = "0, 250.00\n1, 50.00\n2, [N/A]\n"
	clock.pass(10 * time.Second)
	e := r.end(t.Context(), Use{})
	assert.Equal(t, map[string]float64{"gpus": 2000}, domains(e))
	assert.Contains(t, e.Domains[0].Source, "2 GPUs")
	r = m.begin(t.Context())
	printed = "0, 250.00\n"
	e = r.end(t.Context(), Use{})
	assert.Contains(t, e.Notes[0], "1 of 2 GPUs")

	broken := open(t, t.TempDir(), clock, func(o *Options) {
		o.GPUs = func(context.Context) ([]byte, error) { return nil, errors.New("no driver") }
	})
	assert.Equal(t, []string{"GPUs are left out: no driver"}, broken.notes)
	for _, text := range []string{"watts", "0 60", "x, 60", "-1, 60", "64, 1", "0, -1", "0, many", "0, NaN", "0, 1e9"} {
		_, err := parseGPUs([]byte(text))
		assert.Error(t, err, text)
	}
	none, err := parseGPUs([]byte("\n0, [Not Supported]\n"))
	require.NoError(t, err)
	assert.Empty(t, none)
}

// readingsFile writes a file of readings, a line each second from 1000 on.
func readingsFile(t *testing.T, watts ...float64) string {
	t.Helper()
	b := "time,watts\n"
	for i, w := range watts {
		b += fmt.Sprintf("%d,%v\n", 1000+i, w)
	}
	path := filepath.Join(t.TempDir(), "pdu.csv")
	require.NoError(t, os.WriteFile(path, []byte(b), 0o600))
	return path
}

// TestAFileIsOfTheWholeMachine: nothing is added to it.
func TestAFileIsOfTheWholeMachine(t *testing.T) {
	clock := &hands{time.Unix(1001, 0)}
	m := open(t, server(t).root, clock, func(o *Options) { o.Readings = readingsFile(t, 100, 200, 300, 400) })
	r := m.begin(t.Context())
	clock.pass(2500 * time.Millisecond)
	e := r.end(t.Context(), Use{CPUSeconds: 1})
	assert.Equal(t, map[string]float64{"machine": 200 + 300 + 400*0.5}, domains(e))

	r = m.begin(t.Context())
	clock.pass(time.Second)
	e = r.end(t.Context(), Use{CPUSeconds: 1})
	assert.Equal(t, Modelled, e.Kind)
	assert.Contains(t, e.Notes[0], "pdu.csv: power readings do not cover the time")
	assert.Contains(t, e.Notes[0], "read until the run has ended")
	_, err := Open(t.Context(), Options{Readings: "none.csv"})
	assert.ErrorContains(t, err, "none.csv")

	clock.now = time.Unix(5000, 0)
	m = open(t, t.TempDir(), clock, func(o *Options) { o.Readings, o.Idle = readingsFile(t, 100), time.Nanosecond })
	assert.Empty(t, m.idle)
}

func TestReadings(t *testing.T) {
	r, err := parseReadings([]byte("# a PDU\ntime,watts\n2026-11-24T20:00:00Z, 100\n2026-11-24T20:00:10.5Z,50\n2026-11-2"))
	require.NoError(t, err)
	require.Len(t, r, 2, "the last line is being written")
	begin := r[0].At
	for _, c := range []struct{ from, to, want float64 }{
		{0, 10.5, 1050}, {0, 0, 0}, {1, 2, 100}, {10, 11, 50 + 25}, {10.5, 21, 525},
	} {
		at := func(s float64) time.Time { return begin.Add(time.Duration(s * 1e9)) }
		got, err := r.joules(at(c.from), at(c.to))
		require.NoError(t, err)
		assert.InDelta(t, c.want, got, 1e-6)
	}
	_, err = r.joules(begin.Add(-time.Nanosecond), begin)
	assert.ErrorContains(t, err, "begin to read before the run")
	_, err = r.joules(begin, begin.Add(21*time.Second+1))
	assert.ErrorContains(t, err, "read until the run has ended")
	_, err = readings{}.joules(begin, begin)
	assert.ErrorContains(t, err, "there is no reading")
	for text, says := range map[string]string{
		"1\n": "want lines", "1,2,3\n": "want lines", "noon,1\n": "line 1", "1,much\n": `"much"`, "1,-1\n": "number of watts",
		"1,NaN\n": "number of watts", "1,1e8\n": "number of watts", "2,1\n2,1\n": "line 2: its time is not after",
		"2,1\ntime,watts\n": "neither Unix seconds", "-1,1\n": "neither", "1e12,1\n": "neither", "\"1,2\n": "want lines",
	} {
		_, err := parseReadings([]byte(text))
		require.ErrorIs(t, err, ErrReadings, text)
		assert.ErrorContains(t, err, says, text)
	}
}

// FuzzReadings: any file is refused, or has readings whose times ascend and whose watts are finite.
func FuzzReadings(f *testing.F) {
	f.Add([]byte("time,watts\n1,2\n2.5,3\n"))
	f.Add([]byte("2026-11-24T20:00:00Z,100\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := parseReadings(b)
		if err != nil {
			require.ErrorIs(t, err, ErrReadings)
			return
		}
		for i := range r {
			require.True(t, r[i].Watts >= 0 && r[i].Watts <= maxWatts)
			require.True(t, i == 0 || r[i].At.After(r[i-1].At))
		}
	})
}

// FuzzGPUs: any output is refused, or has watts that a GPU may draw.
func FuzzGPUs(f *testing.F) {
	f.Add([]byte("0, 60.00\n1, [N/A]\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := parseGPUs(b)
		for n, w := range list {
			require.True(t, err == nil && n >= 0 && n < mostGPUs && w >= 0 && w < 1e5)
		}
	})
}

// FuzzTree: a tree of any bytes is read without a panic, and gives no energy below 0.
func FuzzTree(f *testing.F) {
	f.Add("package-0\n", "1000", "1", "5")
	f.Add("dram", "0", "-1", "x")
	f.Fuzz(func(t *testing.T, name, most, first, then string) {
		s := sysfs{t, t.TempDir()}
		s.zone("intel-rapl:0", map[string]string{"name": name, "max_energy_range_uj": most, "energy_uj": first})
		r := open(t, s.root, &hands{}, nil).begin(t.Context())
		s.zone("intel-rapl:0", map[string]string{"energy_uj": then})
		e := r.end(t.Context(), Use{})
		require.GreaterOrEqual(t, e.Joules, 0.0)
	})
}
