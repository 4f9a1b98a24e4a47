package host

import (
	"context"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk"
)

// ReadCounters reads what a drive that computes has counted since it was opened (vendor log C0h).
func ReadCounters(ctx context.Context, dev *sdk.Device) (*api.Counters, error) {
	l, err := dev.Counters(ctx)
	if err != nil {
		return nil, err
	}
	c := &api.Counters{
		Backend: l.Backend, Programs: l.Executions, Rows: l.Rows,
		FlashToDRAMBytes: l.FlashToDRAM.Bytes, DRAMToHostBytes: l.DRAMToHost.Bytes, HostToDRAMBytes: l.HostToDRAM.Bytes,
	}
	for _, p := range l.Programs {
		c.BusyNanoseconds += p.Timing.Total
	}
	return c, nil
}

// since is what a drive counted after earlier.
func since(c, earlier *api.Counters) *api.Counters {
	return &api.Counters{
		Backend: c.Backend, Programs: c.Programs - earlier.Programs, Rows: c.Rows - earlier.Rows,
		FlashToDRAMBytes: c.FlashToDRAMBytes - earlier.FlashToDRAMBytes, DRAMToHostBytes: c.DRAMToHostBytes - earlier.DRAMToHostBytes,
		HostToDRAMBytes: c.HostToDRAMBytes - earlier.HostToDRAMBytes, BusyNanoseconds: c.BusyNanoseconds - min(earlier.BusyNanoseconds, c.BusyNanoseconds),
	}
}
