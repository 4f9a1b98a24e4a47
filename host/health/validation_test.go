package health

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/sdk"
)

// results are the steps' results by name.
func results(checks []Check) map[string]Result {
	m := map[string]Result{}
	for _, c := range checks {
		m[c.Name] = c.Result
	}
	return m
}

// want is every step passed, but for some.
func want(but map[string]Result) map[string]Result {
	m := map[string]Result{"link": Passed, "identify": Passed, "contents": Passed, "flash": Passed, "memory": Passed,
		"move": Passed, "self-test": Passed}
	for k, v := range but {
		m[k] = v
	}
	return m
}

// detail is the detail of a step.
func detail(checks []Check, name string) string {
	for _, c := range checks {
		if c.Name == name {
			return c.Detail
		}
	}
	return ""
}

// hold opens a drive in memory that stays while the test runs.
func hold(t *testing.T, query string, o sdk.DeviceOptions) (string, *sdk.Device) {
	t.Helper()
	name := "mem:" + strings.ReplaceAll(t.Name(), "/", "-")
	dev, err := sdk.Open(t.Context(), name+"?"+query, o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, dev.Close()) })
	return name, dev
}

func TestAGoodDrivePasses(t *testing.T) {
	for _, query := range []string{"size=4MiB&slm=8MiB", "size=4MiB&slm=8MiB&commands=standard",
		"size=4MiB&lba=4096&slm=64MiB", "size=8MiB&slm=4MiB"} {
		name, dev := hold(t, query, sdk.DeviceOptions{})
		_, options, _ := strings.Cut(query, "commands=")
		if options != "" {
			name += "?commands=" + options
		}
		require.NoError(t, dev.WriteBlocks(t.Context(), bytes.Repeat([]byte{0}, 4096), 0, true))
		checks := Validate(t.Context(), name, Options{})
		assert.Equal(t, want(nil), results(checks), "%s: %+v", query, checks)
		all := make([]byte, dev.Size())
		_, err := dev.ReadAt(all, 0)
		require.NoError(t, err)
		assert.Equal(t, make([]byte, len(all)), all, "zeros are put back")
		slm, err := dev.ReserveSLM(t.Context(), dev.Info().SLM.Size)
		require.NoError(t, err, "memory is given back")
		require.NoError(t, slm.Release(t.Context()))
		require.NoError(t, dev.Close())
	}
}

func TestAPlainDrive(t *testing.T) {
	checks := Validate(t.Context(), "mem:?size=4MiB", Options{Device: sdk.DeviceOptions{Plain: true}})
	assert.Equal(t, want(map[string]Result{"memory": Skipped, "move": Skipped, "self-test": Skipped}), results(checks))
	assert.Equal(t, "the drive does not compute", detail(checks, "move"))
}

func TestNoLink(t *testing.T) {
	for _, uri := range []string{"file:" + t.TempDir() + "/none", "what:", "nvme:/dev/nvme99999"} {
		checks := Validate(t.Context(), uri, Options{})
		assert.Equal(t, map[string]Result{"link": Failed, "identify": Skipped, "contents": Skipped, "flash": Skipped,
			"memory": Skipped, "move": Skipped, "self-test": Skipped}, results(checks), uri)
	}
}

func TestScratchThatIsInUse(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(t *testing.T, dev *sdk.Device)
		why     string
	}{
		"by the volume": {func(t *testing.T, dev *sdk.Device) {
			vol, err := volume.Open(t.Context(), dev)
			require.NoError(t, err)
			n := dev.Size() - 600<<10
			require.NoError(t, vol.Put(t.Context(), "big", n, bytes.NewReader(make([]byte, n))))
		}, "the volume uses the range: it ends at byte"},
		"by something that is not a volume": {func(t *testing.T, dev *sdk.Device) {
			_, err := dev.WriteAt([]byte("EFI PART"), 0)
			require.NoError(t, err)
		}, "the drive holds something that is not a volume"},
		"by somebody": {func(t *testing.T, dev *sdk.Device) {
			_, err := dev.WriteAt([]byte{7}, dev.Size()-1)
			require.NoError(t, err)
		}, "the range is in use: byte 4194303 of the drive is not 0"},
	} {
		t.Run(name, func(t *testing.T) {
			uri, dev := hold(t, "size=4MiB&slm=8MiB", sdk.DeviceOptions{})
			c.prepare(t, dev)
			before, after := make([]byte, dev.Size()), make([]byte, dev.Size())
			_, err := dev.ReadAt(before, 0)
			require.NoError(t, err)
			checks := Validate(t.Context(), uri, Options{})
			expected := want(map[string]Result{"flash": Skipped})
			if name == "by something that is not a volume" {
				expected["contents"] = Skipped
			}
			assert.Equal(t, expected, results(checks))
			assert.Contains(t, detail(checks, "flash"), c.why)
			_, err = dev.ReadAt(after, 0)
			require.NoError(t, err)
			assert.Equal(t, before, after)
		})
	}
	uri, _ := hold(t, "size=1MiB&slm=8MiB", sdk.DeviceOptions{})
	assert.Equal(t, Skipped, results(Validate(t.Context(), uri, Options{}))["flash"], "more than half of the drive")
	assert.Equal(t, Passed, results(Validate(t.Context(), uri, Options{Scratch: 5000}))["flash"])
}

// faulty is flash that forgets what is written to it, or refuses it.
type faulty struct {
	controller.Flash
	lose atomic.Bool
	fail error
}

func (f *faulty) WriteAt(p []byte, off int64) (int, error) {
	if f.fail != nil {
		return 0, f.fail
	}
	if f.lose.Load() {
		q := bytes.Clone(p)
		q[len(q)/2] ^= 1
		return f.Flash.WriteAt(q, off)
	}
	return f.Flash.WriteAt(p, off)
}

func TestFlashThatErrs(t *testing.T) {
	f := &faulty{}
	wrap := sdk.DeviceOptions{WrapFlash: func(inner controller.Flash) controller.Flash { f.Flash = inner; return f }}
	f.lose.Store(true)
	checks := Validate(t.Context(), "mem:?size=4MiB&slm=8MiB", Options{Device: wrap})
	assert.Equal(t, want(map[string]Result{"flash": Failed}), results(checks))
	assert.Contains(t, detail(checks, "flash"), "what was written at byte 3145728 reads back otherwise: byte ")

	f = &faulty{fail: errors.New("worn out")}
	checks = Validate(t.Context(), "mem:?size=4MiB&slm=8MiB", Options{Device: wrap})
	assert.Equal(t, want(map[string]Result{"flash": Failed}), results(checks))
	assert.Contains(t, detail(checks, "flash"), "put back the zeros at byte 3145728")
}

// wrong is a drive whose engine is broken.
type wrong struct {
	controller.Compute
	how string
}

func (w *wrong) Execute(ctx context.Context, x controller.Execution) (uint64, nvme.Status) {
	switch w.how {
	case "hangs":
		<-ctx.Done()
		return 0, nvme.CommandAborted
	case "fails":
		return 0, nvme.InternalError
	}
	v, st := w.Compute.Execute(ctx, x)
	switch w.how {
	case "another state":
		v++
	case "other bytes":
		w.SLM()[x.Ranges[4].Addr] ^= 1
	}
	return v, st
}

func TestEnginesThatErr(t *testing.T) {
	for name, c := range map[string]struct {
		move Result
		why  string
	}{
		"another state": {Passed, "it ended in"},
		"other bytes":   {Passed, "byte 0 is"},
		"fails":         {Failed, "internal error"},
		"hangs":         {Failed, "deadline"},
	} {
		wrap := func(inner controller.Compute) controller.Compute { return &wrong{inner, name} }
		o := Options{Scratch: 4096, Device: sdk.DeviceOptions{WrapCompute: wrap}}
		if name == "hangs" {
			o.Step = 200 * time.Millisecond
		}
		checks := Validate(t.Context(), "mem:?size=4MiB&slm=8MiB", o)
		for o.Step > 0 && o.Step < time.Minute && results(checks)["move"] == Skipped { // the machine is too slow for it
			o.Step *= 4
			checks = Validate(t.Context(), "mem:?size=4MiB&slm=8MiB", o)
		}
		assert.Equal(t, c.move, results(checks)["move"], name)
		assert.Equal(t, Failed, results(checks)["self-test"], name)
		assert.Contains(t, detail(checks, "self-test"), c.why, name)
	}
}

func TestMemoryThatOthersHold(t *testing.T) {
	uri, dev := hold(t, "size=4MiB&slm=8MiB", sdk.DeviceOptions{})
	_, err := dev.ReserveSLM(t.Context(), 8<<20)
	require.NoError(t, err)
	checks := Validate(t.Context(), uri, Options{})
	assert.Equal(t, want(map[string]Result{"memory": Skipped, "move": Skipped, "self-test": Skipped}), results(checks))
	assert.Contains(t, detail(checks, "memory"), "others hold the drive's memory")
}

func TestEndOfTheContextFails(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, c := range Validate(ctx, "mem:?size=4MiB", Options{}) {
		assert.NotEqual(t, Passed, c.Result, c.Name)
	}
}

func TestStepsReportTheirTime(t *testing.T) {
	for _, c := range Validate(t.Context(), "mem:?size=4MiB&slm=8MiB", Options{Scratch: 4096}) {
		assert.GreaterOrEqual(t, c.Elapsed, 0.0)
		assert.NotEmpty(t, c.Detail)
	}
}
