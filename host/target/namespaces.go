package target

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/nvme/controller"
)

// addedNamespaces are the namespaces that a served drive has beside its own. Target.mu guards them.
type addedNamespaces struct {
	sub   *controller.Subsystem
	log   *slog.Logger
	flash map[string]*csd.Drive // open, by path
	paths map[uint32]string     // the path of each namespace's flash
}

func newAddedNamespaces(sub *controller.Subsystem, log *slog.Logger) *addedNamespaces {
	return &addedNamespaces{sub: sub, log: log, flash: map[string]*csd.Drive{}, paths: map[uint32]string{}}
}

// identifiers returns the namespaces in order.
func (a *addedNamespaces) identifiers() []uint32 {
	return slices.AppendSeq([]uint32{}, slices.Values(slices.Sorted(maps.Keys(a.paths))))
}

// set makes the namespaces those of a checked list. An error means that nothing has changed: flash is opened first,
// then the namespaces are replaced in one step, and only then flash that is not needed any more is closed.
func (a *addedNamespaces) set(list []Namespace) error {
	opened, err := a.openFlash(list)
	if err != nil {
		return err
	}
	wanted := map[uint32]string{}
	for _, n := range list {
		wanted[n.NSID] = n.Flash
	}
	var remove []uint32
	for _, id := range a.identifiers() {
		if wanted[id] != a.paths[id] {
			remove = append(remove, id)
		}
	}
	var add []controller.Namespace
	for _, n := range list {
		if a.paths[n.NSID] == n.Flash {
			continue
		}
		d := opened[n.Flash]
		if d == nil {
			d = a.flash[n.Flash]
		}
		_, lba := d.Geometry()
		add = append(add, controller.Namespace{NSID: n.NSID, Flash: d.Flash(), BlockSize: uint32(lba), UUID: d.UUID()})
	}
	if _, err := a.sub.ChangeNamespaces(remove, add); err != nil {
		return errors.Join(err, abandonAll(opened))
	}
	a.paths = wanted
	maps.Copy(a.flash, opened)
	a.closeUnused()
	return nil
}

// openFlash opens the flash that the list names and that is not open yet. Where it fails it leaves none open, and no
// file that it made.
func (a *addedNamespaces) openFlash(list []Namespace) (opened map[string]*csd.Drive, err error) {
	opened = map[string]*csd.Drive{}
	defer func() {
		if err != nil {
			err = errors.Join(err, abandonAll(opened))
		}
	}()
	for _, n := range list {
		o := n.options(a.log)
		if d := a.flash[n.Flash]; d != nil {
			if size, lba := d.Geometry(); o.Size != 0 && o.Size != size || o.LBA != 0 && o.LBA != lba {
				return opened, fmt.Errorf("namespace %d: %s has %d bytes in blocks of %d and keeps them while it is served",
					n.NSID, n.Flash, size, lba)
			}
			continue
		}
		d, err := csd.Open(o)
		if errors.Is(err, csd.ErrNoDrive) {
			err = fmt.Errorf("%w, or give its size here", err)
		}
		if err != nil {
			return opened, fmt.Errorf("namespace %d: %w", n.NSID, err)
		}
		opened[n.Flash] = d
	}
	return opened, nil
}

// closeUnused closes the flash of namespaces that are gone. A failure changes nothing for hosts any more: it is logged.
func (a *addedNamespaces) closeUnused() {
	used := slices.Collect(maps.Values(a.paths))
	for path, d := range a.flash {
		if slices.Contains(used, path) {
			continue
		}
		delete(a.flash, path)
		if err := d.Close(); err != nil {
			a.log.Error("close the flash of a removed namespace", "drive", path, "error", err)
		}
	}
}

// close closes the flash. No association may be open any more.
func (a *addedNamespaces) close() (err error) {
	for _, d := range a.flash {
		err = errors.Join(err, d.Close())
	}
	a.flash = nil
	return err
}

// abandonAll abandons drives of which no host has seen anything.
func abandonAll(drives map[string]*csd.Drive) (err error) {
	for _, d := range drives {
		err = errors.Join(err, abandon(d))
	}
	return err
}

// abandon closes a drive of which no host has seen anything, and removes its files where this process made them.
func abandon(d *csd.Drive) error {
	if d.Created() {
		return d.Remove()
	}
	return d.Close()
}
