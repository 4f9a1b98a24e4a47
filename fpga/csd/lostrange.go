package csd

import "github.com/millrace/millrace/fpga/csd/flash"

// keepCut keeps what is missing from a file that was cut while the drive is open, and makes the file whole again.
func (d *Drive) keepCut(file *flash.File, lost flash.Range) error {
	d.opt.Logger.Error("the flash file was cut while the drive is open: what is missing reads as zeros",
		"drive", d.logName(), "from_byte", lost.From, "to_byte", lost.To)
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.saveState(); err != nil { // a longer file would hide that it was cut
		d.opt.Logger.Warn("that the flash file was cut is not kept", "drive", d.logName(), "error", err)
		return nil
	}
	return file.Extend()
}

// Lost returns the bytes of namespace 1 that were missing when the drive was opened, or when they were read, and have
// not been written since: n from off on, 0 if there are none.
func (d *Drive) Lost() (off, n int64) {
	if file, ok := d.flash.(*flash.File); ok {
		if r := file.Lost(); r != nil {
			return r.From, r.To - r.From
		}
	}
	return 0, 0
}
