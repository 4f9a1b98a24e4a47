package csd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/csd/flash"
)

// beginUse keeps that the drive of a file is in use, and makes the file as long as the drive is. A disk that takes no
// write, because it is full, say, does not keep the drive from being opened, as long as nothing has changed that has to
// be kept.
func (d *Drive) beginUse() error {
	file, ok := d.flash.(*flash.File)
	if !ok {
		return nil
	}
	file.OnCut(func(lost flash.Range) error { return d.keepCut(file, lost) })
	d.mu.Lock()
	defer d.mu.Unlock()
	cut, err := d.lookForCut(file)
	if err != nil {
		return err
	}
	if file.ReadOnly() {
		d.opt.Logger.Warn("the drive is opened for reading only", "drive", d.logName(), "error", file.WriteError())
		return nil
	}
	changed := d.changed
	if !changed && d.comp != nil {
		if changed, err = d.trustChanged(); err != nil {
			return err
		}
	}
	if d.unused {
		return d.beginUnused(file)
	}
	d.state.Clean = false
	switch err := d.saveState(); {
	case err == nil:
	case changed:
		return err
	case cut:
		// A write would make the file longer, and hide that it was cut.
		file.ForbidWrites(err)
		d.opt.Logger.Warn("the drive is opened for reading only: that its flash was cut cannot be kept", "drive", d.logName(),
			"error", err)
		return nil
	default:
		d.warnNotKept("open", err)
		if d.kept, err = d.presentState().keptPart(); err != nil {
			return err
		}
	}
	return file.Extend()
}

// beginUnused keeps the state of a drive that was never in use, makes its file as long as the drive, and then keeps
// that the drive is in use. A kill before the first step leaves an empty file, which the next creation takes. A kill
// after it leaves a drive without a power cycle: the next opening knows that its empty file was not cut.
func (d *Drive) beginUnused(file *flash.File) error {
	d.state.Counters.PowerCycles = 0
	if err := d.saveState(); err != nil {
		return err
	}
	if err := errors.Join(file.Extend(), file.Sync()); err != nil {
		return err
	}
	d.state.Counters.PowerCycles, d.state.Clean = 1, false
	return d.saveState()
}

// lookForCut finds out whether bytes of the flash are missing, and logs them. It reports whether that was not known
// before.
func (d *Drive) lookForCut(file *flash.File) (fresh bool, err error) {
	if d.unused {
		file.SetSize(d.state.Size)
		return false, nil
	}
	lost, fresh, err := file.FindLost(d.state.Size, d.state.Lost)
	if err != nil {
		return false, err
	}
	d.state.Lost = lost
	if fresh {
		d.state.Counters.MediaErrors++
	}
	if lost != nil {
		d.opt.Logger.Error(
			"bytes of the flash file are missing and read as zeros: it was cut; millrace drive validate names what they held",
			"drive", d.logName(), "from_byte", lost.From, "to_byte", lost.To, "just_found", fresh)
	}
	return fresh, nil
}

// trustChanged reports whether this opening changed which images the drive takes.
func (d *Drive) trustChanged() (bool, error) {
	now := d.presentState()
	was, err := json.Marshal(d.state.Trust)
	if err != nil {
		return false, err
	}
	is, err := json.Marshal(now.Trust)
	return !bytes.Equal(was, is), err
}

// endUse keeps the state when the drive is closed. If the disk takes no write, the counters are lost; any other change
// that cannot be kept is an error.
func (d *Drive) endUse() error {
	err := d.saveState()
	if err == nil {
		return nil
	}
	now, eerr := d.presentState().keptPart()
	if eerr != nil || !bytes.Equal(now, d.kept) {
		return err
	}
	d.warnNotKept("close", err)
	return nil
}

// warnNotKept says once that the counters cannot be kept.
func (d *Drive) warnNotKept(doing string, err error) {
	if d.warned {
		return
	}
	d.warned = true
	d.opt.Logger.Warn(
		"the drive's counters cannot be kept, all else is as it was: make room on the disk, or see who may write there",
		"drive", d.logName(), "doing", doing, "error", err)
}

// presentState is the state as it is now. d.mu is held.
func (d *Drive) presentState() state {
	s := d.state
	if d.sub != nil {
		s.Counters = d.sub.Counters()
	}
	if d.comp != nil {
		trust, regions := d.comp.slots.Kept()
		s.Trust, s.Kept, s.Further = trust, regions[0], regions[1:]
	}
	if file, ok := d.flash.(*flash.File); ok {
		s.Lost = file.Lost()
	}
	return s
}

// saveState writes PATH.json. d.mu is held.
func (d *Drive) saveState() error {
	if file, ok := d.flash.(*flash.File); ok && file.ReadOnly() {
		return fmt.Errorf("keep state: %w: %w", flash.ErrReadOnly, file.WriteError())
	}
	s := d.presentState()
	if err := s.writeState(d.opt.Path, d.opt.atStep); err != nil {
		return fmt.Errorf("keep state: %w", err)
	}
	var err error
	d.kept, err = s.keptPart()
	return err
}
