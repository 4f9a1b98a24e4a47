package host

import (
	"context"
	"fmt"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/processor"
)

// ReadCounters reads the counters of a drive that computes (vendor log C0h). They count since the drive was opened.
func ReadCounters(ctx context.Context, dev *sdk.Device) (*api.Counters, error) {
	l, err := dev.Counters(ctx)
	if err != nil {
		return nil, err
	}
	c := &api.Counters{
		Backend: l.Backend, Programs: l.Executions, Rows: l.Rows,
		FlashToDRAMBytes: l.FlashToDRAM.Bytes, FlashLentBytes: l.FlashLent.Bytes,
		DRAMToHostBytes: l.DRAMToHost.Bytes, HostToDRAMBytes: l.HostToDRAM.Bytes,
	}
	for _, p := range l.Programs {
		c.BusyNanoseconds += p.Timing.Total
	}
	return c, nil
}

// countersSince returns how far a drive's counters have grown since an earlier reading.
func countersSince(c, earlier *api.Counters) *api.Counters {
	return &api.Counters{
		Backend: c.Backend, Programs: c.Programs - earlier.Programs, Rows: c.Rows - earlier.Rows,
		FlashToDRAMBytes: c.FlashToDRAMBytes - earlier.FlashToDRAMBytes,
		FlashLentBytes:   c.FlashLentBytes - earlier.FlashLentBytes,
		DRAMToHostBytes:  c.DRAMToHostBytes - earlier.DRAMToHostBytes,
		HostToDRAMBytes:  c.HostToDRAMBytes - earlier.HostToDRAMBytes,
		BusyNanoseconds:  c.BusyNanoseconds - min(earlier.BusyNanoseconds, c.BusyNanoseconds),
	}
}

// counters returns the drive's own counters, or nil where the node's CPU computes.
func (d *Drive) counters(ctx context.Context) (*api.Counters, error) {
	if d.engine != EngineDrive {
		return nil, nil
	}
	c, err := ReadCounters(ctx, d.computer())
	if err != nil {
		return nil, fmt.Errorf("read its counters: %w", err)
	}
	return c, nil
}

// countersTime is how long a report waits for a drive's counters: far longer than a drive needs that is there.
const countersTime = 5 * time.Second

// report returns the drive's report of a job. stats has the work of the job's processor since P was measured, and
// counted the drive's counters at that time.
func (d *Drive) report(ctx context.Context, stats processor.Stats, counted *api.Counters) (api.DriveReport, error) {
	r := api.DriveReport{
		Name: d.name, Engine: string(d.engine), Rows: stats.Rows, Fragments: stats.Fragments, Wait: stats.Wait,
		Move: stats.Move, Decode: stats.Decode,
		Transform: stats.Transform, Fetch: stats.Fetch, BytesMoved: stats.BytesPlanned,
		BytesUnneeded: stats.BytesUnneeded(), BytesOut: stats.BytesOut, RowsDropped: stats.Dropped,
		BytesStored: stats.BytesStored, BytesAhead: stats.BytesAhead, BytesFetched: stats.BytesFetched,
		Source: d.farCounters(),
	}
	if d.engine != EngineDrive {
		return r, nil
	}
	r.Engine = fmt.Sprintf("drive (%s)", d.computer().Info().Commands)
	if d.Fed() {
		r.Engine = fmt.Sprintf("drive (%s), fed by the host", d.computer().Info().Commands)
	}
	bounded, cancel := context.WithTimeout(ctx, countersTime)
	defer cancel()
	now, err := d.counters(bounded)
	switch {
	case err == nil:
		r.Counters = countersSince(now, counted)
	case ctx.Err() != nil:
		return r, err
	default: // the report has the work of a drive that is gone by now
		r.Problem = err.Error()
	}
	return r, nil
}
