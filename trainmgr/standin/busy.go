package standin

import (
	"context"
	"runtime"
	"time"
)

// spin is busy on a processor until it has used some processor time. Under a quota that takes longer.
func spin(ctx context.Context, used time.Duration) error {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	begin := threadTime()
	for threadTime()-begin < used {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		for range 1000 {
			runtime.KeepAlive(ctx)
		}
	}
	return nil
}
