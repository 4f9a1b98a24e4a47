package csd

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/millrace/millrace/nvme/controller"
)

// limitsHostIO reports whether a share in percent is a limit that a drive may have.
func limitsHostIO(percent int) bool {
	return percent >= controller.MinHostIOShare && percent < controller.NoHostIOLimit
}

// setHostIOShare makes the limit of ordinary reads and writes that of Options.
func (d *Drive) setHostIOShare() error {
	share := d.opt.HostIOShare
	if share == 0 {
		return nil
	}
	if share != controller.NoHostIOLimit {
		switch {
		case !limitsHostIO(share):
			return fmt.Errorf("a share of %d %% of the time for ordinary reads and writes: want %d to %d, and %d sets no limit",
				share, controller.MinHostIOShare, controller.NoHostIOLimit, controller.NoHostIOLimit)
		case d.opt.Plain:
			return errors.New("a limit of ordinary reads and writes keeps time for regions, and a drive that does not compute " +
				"has none")
		case d.hasNoFlash():
			return errors.New("a limit of ordinary reads and writes is one of the flash, and this drive has none")
		}
	} else {
		share = 0
	}
	d.changed = d.changed || share != d.state.HostIOShare
	d.state.HostIOShare = share
	return nil
}

// HostIOShare returns how much of the time, in percent, ordinary reads and writes may use the flash while regions
// compute; controller.NoHostIOLimit if there is no limit.
func (d *Drive) HostIOShare() int { return cmp.Or(d.state.HostIOShare, controller.NoHostIOLimit) }
