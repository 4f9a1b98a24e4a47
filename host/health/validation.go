package health

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"time"

	"github.com/millrace/millrace/host/volume"
	"github.com/millrace/millrace/nvme/passthru"
	"github.com/millrace/millrace/sdk"
)

// Result says how a step of Validate ended.
type Result string

// Results.
const (
	Passed  Result = "passed"
	Failed  Result = "failed"
	Skipped Result = "skipped"
)

// Check is the result of one step.
type Check struct {
	Name    string  `json:"name" table:"step"`
	Result  Result  `json:"result" table:"result"`
	Elapsed float64 `json:"elapsed_seconds" table:"seconds|%.3f"`
	Detail  string  `json:"detail" table:""`
}

// Options say how a drive is tried. The zero value works.
type Options struct {
	// Scratch is the range of namespace 1 that is written, in bytes; 0 means DefaultScratch, at the namespace's end.
	Scratch int64
	// Step is the deadline of every step; 0 means DefaultStep.
	Step time.Duration
	// Device says how the device is opened, beside its URI.
	Device sdk.DeviceOptions
}

// Defaults of Options.
const (
	DefaultScratch = 1 << 20
	DefaultStep    = 30 * time.Second
)

// skipError says why a step was skipped.
type skipError struct{ why string }

func (s skipError) Error() string { return s.why }

func skipf(format string, a ...any) error { return skipError{fmt.Sprintf(format, a...)} }

// validation is one run of Validate.
type validation struct {
	uri string
	o   Options
	dev *sdk.Device
}

// Validate tries the drive that a URI names. It always returns one check for each step, in order; when ctx ends, the
// remaining steps fail.
func Validate(ctx context.Context, uri string, o Options) []Check {
	if o.Scratch <= 0 {
		o.Scratch = DefaultScratch
	}
	if o.Step <= 0 {
		o.Step = DefaultStep
	}
	v := &validation{uri: uri, o: o}
	var checks []Check
	for _, step := range []struct {
		name string
		run  func(context.Context) (string, error)
	}{
		{"link", v.link}, {"identify", v.identify}, {"contents", v.contents}, {"flash", v.flash}, {"memory", v.memory},
		{"move", v.move}, {"self-test", v.selfTest},
	} {
		checks = append(checks, v.step(ctx, step.name, step.run))
	}
	if v.dev != nil {
		if err := v.dev.Close(); err != nil {
			checks[0].Result, checks[0].Detail = Failed, fmt.Sprintf("close: %v", err)
		}
	}
	return checks
}

// step runs one step under its deadline.
func (v *validation) step(ctx context.Context, name string, run func(context.Context) (string, error)) Check {
	c := Check{Name: name, Result: Passed}
	if v.dev == nil && name != "link" {
		c.Result, c.Detail = Skipped, "there is no link"
		return c
	}
	ctx, cancel := context.WithTimeout(ctx, v.o.Step)
	defer cancel()
	start := time.Now()
	detail, err := run(ctx)
	c.Detail, c.Elapsed = detail, time.Since(start).Seconds()
	var s skipError
	switch {
	case errors.As(err, &s):
		c.Result, c.Detail = Skipped, s.why
	case err != nil:
		c.Result, c.Detail = Failed, err.Error()
	}
	return c
}

// rounds is how many commands the link step times.
const rounds = 100

// link opens the drive and measures the round trip of admin commands.
func (v *validation) link(ctx context.Context) (string, error) {
	dev, err := sdk.Open(ctx, v.uri, v.o.Device)
	if err != nil {
		return "", err
	}
	v.dev = dev
	least := time.Duration(1<<63 - 1)
	for range rounds {
		start := time.Now()
		if _, err := dev.SMART(ctx); err != nil {
			return "", err
		}
		least = min(least, time.Since(start))
	}
	return fmt.Sprintf("%d commands, %s there and back at best", rounds, least.Round(100*time.Nanosecond)), nil
}

// identify checks that the drive's description of itself is consistent.
func (v *validation) identify(context.Context) (string, error) {
	i := v.dev.Info()
	seen := map[string]uint32{}
	for _, ns := range i.Namespaces {
		if other, ok := seen[ns.UUID]; ok && ns.UUID != noUUID {
			return "", fmt.Errorf("namespaces %d and %d have the same UUID %s", other, ns.ID, ns.UUID)
		}
		seen[ns.UUID] = ns.ID
	}
	if i.Model == "" || i.Serial == "" {
		return "", errors.New("it names no model or no serial number")
	}
	compute := "does not compute"
	if v.dev.HasCompute() {
		compute = fmt.Sprintf("computes (%s, %d bytes of memory)", i.Backend, i.SLM.Size)
	}
	flash := fmt.Sprintf("%d bytes in blocks of %d", i.Size, i.BlockSize)
	if i.Diskless {
		flash = "no flash"
	}
	return fmt.Sprintf("%s, serial %s, %d namespaces, %s, %s", i.Model, i.Serial, len(i.Namespaces), flash, compute), nil
}

// noFlash is why steps are skipped that try flash.
const noFlash = "the drive has no flash"

// noUUID is the UUID of a namespace that has none.
const noUUID = "00000000-0000-0000-0000-000000000000"

// flash writes, reads and verifies a range that is not in use, and then writes the zeros back that were there.
func (v *validation) flash(ctx context.Context) (_ string, err error) {
	dev := v.dev
	if dev.Diskless() {
		return "", skipf("%s", noFlash)
	}
	if dev.Info().ReadOnly {
		return "", skipf("the drive is read-only")
	}
	release, err := v.claim()
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, release()) }()
	block := int64(dev.BlockSize())
	n := (v.o.Scratch + block - 1) / block * block
	if n > dev.Size()/2 {
		return "", skipf("a scratch range of %d bytes is more than half of the drive", n)
	}
	at := (dev.Size() - n) / block * block
	vol, err := volume.Open(ctx, dev)
	if err != nil {
		return "", skipf("the drive holds something that is not a volume, so no range is known to be free: %v", err)
	}
	if used, _ := vol.Used(); used+archiveEnd > at {
		return "", skipf("the volume uses the range: it ends at byte %d, the range begins at %d", used, at)
	}
	lba := uint64(at / block)
	old := make([]byte, n)
	if err := dev.ReadBlocks(ctx, old, lba); err != nil {
		return "", err
	}
	if i := bytes.IndexFunc(old, func(r rune) bool { return r != 0 }); i >= 0 {
		return "", skipf("the range is in use: byte %d of the drive is not 0", at+int64(i))
	}
	defer func() {
		// The zeros are written back even when the step's time is up.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), v.o.Step)
		defer cancel()
		back := errors.Join(dev.WriteBlocks(ctx, old, lba, false), dev.Flush(ctx))
		if back != nil {
			back = fmt.Errorf("put back the zeros at byte %d: %w", at, back)
		}
		err = errors.Join(err, back)
	}()
	want := randomBytes(int(n))
	if err := errors.Join(dev.WriteBlocks(ctx, want, lba, false), dev.Flush(ctx)); err != nil {
		return "", err
	}
	got := make([]byte, n)
	if err := dev.ReadBlocks(ctx, got, lba); err != nil {
		return "", err
	}
	if err := compare(want, got); err != nil {
		return "", fmt.Errorf("what was written at byte %d reads back otherwise: %w", at, err)
	}
	return fmt.Sprintf("%d bytes at byte %d written, flushed, read and verified", n, at), nil
}

// archiveEnd is the size of the end of a tar archive: two blocks of zeros.
const archiveEnd = 1024

// claim takes the kernel's block device of namespace 1 for this process alone, so that no file system on it is harmed.
// A drive that is not behind the kernel needs nothing.
func (v *validation) claim() (release func() error, err error) {
	none := func() error { return nil }
	u, err := sdk.ParseURI(v.uri)
	if err != nil || u.Scheme != "nvme" {
		return none, err
	}
	all, err := passthru.Controllers(passthru.Options{})
	if err != nil {
		return none, err
	}
	name := u.Name
	if resolved, err := filepath.EvalSymlinks(name); err == nil {
		name = resolved
	}
	for _, c := range all {
		if c.Name != filepath.Base(name) {
			continue
		}
		for _, ns := range c.Namespaces {
			if ns.ID != 1 || ns.Block == "" {
				continue
			}
			// O_EXCL of a block device fails while a file system on it is mounted.
			f, err := os.OpenFile(filepath.Join("/dev", ns.Block), os.O_RDWR|os.O_EXCL, 0)
			if err != nil {
				return none, skipf("%s is in use: %v", ns.Block, err)
			}
			return f.Close, nil
		}
	}
	return none, nil
}

// randomBytes returns n random bytes.
func randomBytes(n int) []byte {
	b := make([]byte, 0, n+8)
	rng := rand.NewPCG(rand.Uint64(), rand.Uint64())
	for len(b) < n {
		b = binary.LittleEndian.AppendUint64(b, rng.Uint64())
	}
	return b[:n]
}

// compare returns an error that names the first difference.
func compare(want, got []byte) error {
	if bytes.Equal(want, got) {
		return nil
	}
	for i := range want {
		if want[i] != got[i] {
			return fmt.Errorf("byte %d is %#02x, not %#02x", i, got[i], want[i])
		}
	}
	return nil
}
