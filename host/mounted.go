package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/host/extents"
	"github.com/millrace/millrace/host/filename"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/partition"
)

// ErrElsewhere says that a file does not lie on the drive that was to preprocess it.
var ErrElsewhere = errors.New("the file does not lie on this drive")

// dataNamespace is the namespace whose blocks a drive preprocesses.
const dataNamespace = 1

// mounted reports whether the drive is behind the kernel and its members are files of a file system on it, named by
// path, rather than members of a volume.
func (d *Drive) mounted(scheme string) bool {
	if scheme != "nvme" || len(d.o.Members) == 0 {
		return false
	}
	for _, m := range d.o.Members {
		if !strings.ContainsRune(m, filepath.Separator) {
			return false
		}
	}
	return true
}

// openMounted opens files of a mounted file system as partitions of the drive that they lie on. This is PreSto's flow:
// the host finds the blocks, and the drive reads them itself. device is the drive's device file, as /dev/nvme0.
func (d *Drive) openMounted(ctx context.Context, device string) error {
	if err := d.chooseEngine(); err != nil {
		return err
	}
	d.maps = map[*partition.Partition]*extents.Map{}
	names, err := filename.NameEach(source.ParseLocations(d.o.Members...))
	if err != nil {
		return err
	}
	d.setPlaces(names)
	var list []*partition.Partition
	for i, path := range d.o.Members {
		m, err := extents.Find(path, extents.Options{})
		if err != nil {
			return err
		}
		// With several paths to a drive the kernel names no controller for a disk. Then the namespace has to suffice.
		if m.Disk.NSID != dataNamespace || (m.Disk.Control != "" && m.Disk.Control != filepath.Base(device)) {
			return fmt.Errorf("%s is on %s: %w (%s)", path, m.Disk.Name, ErrElsewhere, device)
		}
		f, err := d.openRegularFile(path)
		if err != nil {
			return err
		}
		o := partition.Options{Text: d.o.Text, Extents: m.Extents}
		p, err := partition.Open(ctx, names[i], f, m.Size, d.source(), o)
		if err != nil {
			return err
		}
		list = append(list, p)
		d.maps[p], d.files[p] = m, f
	}
	return d.hold(list)
}
