package engine_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/engine"
)

// TestExecuteAllocatesNothing checks that a slice allocates nothing in the steady state.
func TestExecuteAllocatesNothing(t *testing.T) {
	for name, lists := range map[string]bool{"scalars": false, "lists": true} {
		for _, c := range []struct{ codec, encoding string }{{"", ""}, {"snappy", "dictionary"}} {
			t.Run(name+"/"+c.codec+c.encoding, func(t *testing.T) {
				const rows, batch = 600, 150
				data, p := benchmarkProgram(t, rows, 4, 4, 2, 64, lists, c.codec, c.encoding)
				h := newSliceRunner(t, engine.New(engine.Options{}), data, p, batch)
				for range 2 * rows / batch {
					h.nextBatch() // so that every page and dictionary was read before
				}
				// One run reads the whole file. Decompressors are in a pool of the runtime, which may drop them.
				n := testing.AllocsPerRun(20, func() {
					for range rows / batch {
						h.nextBatch()
					}
				})
				require.Zero(t, n)
			})
		}
	}
}
