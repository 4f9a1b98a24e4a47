package processor_test

import (
	"errors"
	"io"
	"math/rand/v2"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/leaks"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
)

// TestAPanicEndsItsStream has a panic end its stream and nothing else. The error names the place and has the stack,
// other streams go on, the processor opens no other stream, and no goroutine is left.
func TestAPanicEndsItsStream(t *testing.T) {
	data := processortest.WriteParquet(t, processortest.Layout{Rows: 1000, Group: 1000, Page: 1 << 10, Seed: 61})
	prog, schema := processortest.Fixed()
	for name, sync := range map[string]bool{"one ahead": false, "asked for": true} {
		t.Run(name, func(t *testing.T) {
			leaks.Check(t)
			f := processortest.NewFlash(8<<20, 512)
			part := processortest.Place(t, data, f.Put(rand.New(rand.NewPCG(1, 1)), data, 0, 1))
			p, err := processor.Start(t.Context(), f, prog, schema, processor.Options{Streams: 2, Sync: sync})
			require.NoError(t, err)
			run := processor.Run{Partition: part, Rows: 1000, Batch: 100}
			want := processortest.Reference(t, prog, schema, run)
			other, err := p.Open(t.Context(), run)
			require.NoError(t, err)
			m, err := other.Next(t.Context())
			require.NoError(t, err)
			require.NoError(t, m.Validate())
			m.Release()
			s, err := p.Open(t.Context(), run)
			require.NoError(t, err)
			var fell atomic.Bool // either stream may be the next to execute
			f.SetFail(func(int) error {
				if fell.CompareAndSwap(false, true) {
					panic("a bug in a slice")
				}
				return nil
			})
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
		})
	}
}
