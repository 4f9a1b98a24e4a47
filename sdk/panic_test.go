package sdk_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"runtime"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/processor"
)

// TestAPanicEndsItsStream has a panic end its stream and nothing else. The error names the place and has the stack,
// other streams go on, the processor opens no other stream, and no goroutine is left.
func TestAPanicEndsItsStream(t *testing.T) {
	data := write(t, layout{rows: 1000, group: 1000, page: 1 << 10, seed: 61})
	prog, schema := fixed()
	for name, sync := range map[string]bool{"one ahead": false, "asked for": true} {
		t.Run(name, func(t *testing.T) {
			before := runtime.NumGoroutine()
			f := newFlash(8<<20, 512)
			part := place(t, data, f.put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
			p, err := processor.Start(t.Context(), f, prog, schema, processor.Options{Streams: 2, Sync: sync})
			require.NoError(t, err)
			run := processor.Run{Partition: part, Rows: 1000, Batch: 100}
			want := truth(t, prog, schema, run)
			other, err := p.Open(t.Context(), run)
			require.NoError(t, err)
			m, err := other.Next(t.Context())
			require.NoError(t, err)
			require.NoError(t, m.Validate())
			m.Release()
			s, err := p.Open(t.Context(), run)
			require.NoError(t, err)
			var fell atomic.Bool // either stream may be the next to execute
			f.mu.Lock()
			f.fail = func(int) error {
				if fell.CompareAndSwap(false, true) {
					panic("a bug in a slice")
				}
				return nil
			}
			f.mu.Unlock()
			ends := map[bool]int{}
			for _, s := range []processor.Stream{s, other} {
				made := 0
				for {
					m, err := s.Next(t.Context())
					if err != nil {
						var fell *processor.PanicError
						if ends[errors.As(err, &fell)]++; fell != nil {
							require.ErrorIs(t, err, processor.ErrPanic)
							assert.ErrorContains(t, err, part.Name+": rows from ")
							assert.ErrorContains(t, err, "a bug in a slice")
							assert.Contains(t, string(fell.Stack), "panic_test.go")
							_, again := s.Next(t.Context())
							assert.Equal(t, err, again)
						} else {
							require.ErrorIs(t, err, io.EOF)
							assert.GreaterOrEqual(t, made, len(want)-1)
						}
						break
					}
					made++
					require.NoError(t, m.Validate())
					m.Release()
				}
			}
			assert.Equal(t, map[bool]int{true: 1, false: 1}, ends)
			require.NoError(t, s.Close())
			require.NoError(t, other.Close())
			_, err = p.Open(t.Context(), run)
			require.ErrorIs(t, err, processor.ErrPanic)
			require.NoError(t, p.Close())
			settle(t, before)
		})
	}
}

// fallen is flash whose reads panic while the test demands it.
type fallen struct {
	controller.Flash
	now *bool
}

func (f fallen) ReadAt(p []byte, off int64) (int, error) {
	if *f.now {
		panic("a bug in a drive")
	}
	return f.Flash.ReadAt(p, off)
}

// TestADriveInThisProcessThatPanics fails the command.
func TestADriveInThisProcessThatPanics(t *testing.T) {
	for _, commands := range []string{"vendor", "standard"} {
		t.Run(commands, func(t *testing.T) {
			now := false
			d, err := sdk.Create(t.Context(), "mem:?size=1MiB&commands="+commands, sdk.DeviceOptions{
				WrapFlash: func(f controller.Flash) controller.Flash { return fallen{f, &now} },
			})
			require.NoError(t, err)
			b := make([]byte, 512)
			now = true
			_, err = d.ReadAt(b, 0)
			require.ErrorIs(t, err, nvme.InternalError)
			now = false
			_, err = d.ReadAt(b, 0)
			require.NoError(t, err)
			require.NoError(t, d.Close())
		})
	}
}
