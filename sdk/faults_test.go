package sdk_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	pq "github.com/parquet-go/parquet-go"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/faults"
	"github.com/millrace/millrace/nvme/tcp"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/processor"
	"github.com/millrace/millrace/sdk/processor/processortest"
)

// columnAt returns a pattern that matches the columns of row group 0 with bytes in the block at an offset of a
// partition: one column, or either of two.
func columnAt(p *partition.Partition, off int64) string {
	var names []string
	for i, c := range p.File.RowGroups[0].Columns {
		if c.Offset < off+512 && off < c.Offset+c.Compressed {
			names = append(names, p.File.Leaves[i].Name)
		}
	}
	return "(" + strings.Join(names, "|") + ")( or .*)?"
}

// TestFaultsUnderPreprocess has a drive go wrong in the middle of a run. The run gives the mini-batches that the
// reference gives, or it ends with an error that says what happened. Then the device serves the next processor as
// before.
func TestFaultsUnderPreprocess(t *testing.T) {
	l := processortest.Layout{Rows: 3000, Group: 1100, Page: 2 << 10, Codec: &pq.Snappy, Seed: 44}
	data := processortest.WriteParquet(t, l)
	prog, schema := processortest.Jagged()
	run := processor.Run{Rows: int64(l.Rows), Batch: 32, Partition: processortest.Open(t, data, true)}
	want := processortest.Reference(t, prog, schema, run)
	for name, c := range map[string]struct {
		script string
		errs   []error // any of them; none: the run does not notice
		stats  faults.Stats
	}{
		"a block that cannot be read once": {
			"fail: [{operation: read, lba: 60, times: 1}]",
			[]error{nvme.UnrecoveredReadError}, faults.Stats{Reads: 1},
		},
		"a connection lost": {
			"drop: [{pdu: 40, queue: io, direction: received}]",
			[]error{tcp.ErrLost}, faults.Stats{Drops: 1},
		},
		"the drive gone for a moment": {
			"away: [{for: 50ms, command: 60}]",
			[]error{tcp.ErrLost}, faults.Stats{Absences: 1},
		},
		"data broken on its way": {
			"flip: [{digest: data, pdu: 30, queue: io}]",
			[]error{nil}, faults.Stats{DataDigests: 1},
		},
		"data broken again and again": {
			"flip: [{digest: data, pdu: 30, times: 4, queue: io}]",
			[]error{nvme.TransientTransportError}, faults.Stats{DataDigests: 4},
		},
		"slow commands": {
			"delay: [{by: 20ms, opcode: preprocess, after: 2, times: 3}, {by: 10ms, opcode: fetch, times: 2}]",
			[]error{nil}, faults.Stats{Delays: 5},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			script, err := faults.Parse([]byte(c.script))
			require.NoError(t, err)
			in, err := faults.New(script, faults.Options{})
			require.NoError(t, err)
			uri, at := servedBehind(t, csd.Options{SLMBytes: 16 << 20, WrapFlash: in.Flash}, tcp.TargetOptions{}, in.Listener,
				data)
			dev, err := sdk.Open(t.Context(), uri+"?digests=both",
				sdk.DeviceOptions{TCP: tcp.DialOptions{FirstDelay: 10 * time.Millisecond}})
			require.NoError(t, err)
			defer func() { require.NoError(t, dev.Close()) }()
			run := run
			// The footer is read without faults, so that every fault happens to the run.
			run.Partition = processortest.Place(t, data, at)
			p := startOn(t, dev, prog, schema, processor.Options{SLM: 4 << 20})
			got, err := processortest.Collect(p, run)
			matched := false
			for _, e := range c.errs {
				matched = matched || e == nil && err == nil || e != nil && errors.Is(err, e)
			}
			require.True(t, matched, "%v", err)
			processortest.RequireSame(t, want[:len(got)], got)
			if err == nil {
				require.Len(t, got, len(want))
			}
			if errors.Is(err, nvme.UnrecoveredReadError) {
				require.ErrorContains(t, err, ": block 60: ")
				require.Regexp(t, `: row group 0: column `+columnAt(run.Partition, 60*512-at[0].Device)+`: rows `, err.Error())
			}
			st := in.Stats()
			st.Reset = 0
			require.Equal(t, c.stats, st)
			require.NoError(t, p.Close())

			p = startOn(t, dev, prog, schema, processor.Options{SLM: 4 << 20})
			got, err = processortest.Collect(p, run)
			require.NoError(t, err)
			processortest.RequireSame(t, want, got)
			require.NoError(t, p.Close())
		})
	}
}
