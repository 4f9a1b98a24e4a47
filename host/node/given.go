package node

import (
	"context"
	"time"

	"github.com/millrace/millrace/host"
)

// rescanGiven looks at the partitions of a store again and again, until ctx ends, and announces them when they have
// changed. While the store cannot be asked, those that were announced stay.
func (a *Agent) rescanGiven(
	ctx context.Context, period time.Duration, redescribe func(context.Context, *host.Given) (*host.Given, error),
) {
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		known := a.status.given.Load()
		found, err := redescribe(ctx, known)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			a.log.Warn("the partitions of a store cannot be looked at: those of before stay announced", "error", err)
		case found != known:
			a.status.given.Store(found)
			a.log.Info("partitions of a store changed", "partitions", len(found.Sources))
			a.heartbeat.SendSoon()
		}
	}
}
