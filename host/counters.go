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
