package node

import (
	"log/slog"
	"sync"

	"github.com/millrace/millrace/host/node/splits"
)

// drainSwitch holds whether the node takes new splits. It is safe for concurrent use.
type drainSwitch struct {
	splits  *splits.Table
	changed func() // tells the control plane
	log     *slog.Logger

	mu       sync.Mutex
	draining bool
}

// on reports whether the node refuses new splits.
func (d *drainSwitch) on() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.draining
}

// set makes the node refuse new splits, or take them again.
func (d *drainSwitch) set(draining bool) {
	d.mu.Lock()
	was := d.draining
	d.draining = draining
	d.mu.Unlock()
	d.splits.Drain(draining)
	if was != draining {
		d.log.Info("draining", "from", was, "to", draining)
		d.changed()
	}
}
