package sdk

import (
	"context"
	"time"

	"github.com/millrace/millrace/nvme"
)

// Trace holds functions that a device calls as things happen. A nil Trace or function is not called. Functions are
// called from several goroutines, must not block, and must not keep the command.
type Trace struct {
	// Command is called when a command has completed, with the time it took.
	Command func(cmd *nvme.Command, admin bool, took time.Duration, err error)
	// Reserve is called when SLM is reserved (bytes > 0) and released (bytes < 0).
	Reserve func(addr uint64, bytes int64)
}

func (t *Trace) io(ctx context.Context, c nvme.Conn, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	if t == nil || t.Command == nil {
		return c.IO(ctx, cmd, data)
	}
	start := time.Now()
	cpl, err := c.IO(ctx, cmd, data)
	t.Command(cmd, false, time.Since(start), err)
	return cpl, err
}

func (t *Trace) admin(ctx context.Context, c nvme.Conn, cmd *nvme.Command, data []byte) (nvme.Completion, error) {
	if t == nil || t.Command == nil {
		return c.Admin(ctx, cmd, data)
	}
	start := time.Now()
	cpl, err := c.Admin(ctx, cmd, data)
	t.Command(cmd, true, time.Since(start), err)
	return cpl, err
}

func (t *Trace) reserved(addr uint64, bytes int64) {
	if t != nil && t.Reserve != nil {
		t.Reserve(addr, bytes)
	}
}
