package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/host/extents"
	"github.com/millrace/millrace/sdk"
)

// ErrElsewhere says that a file does not lie on the drive that was to preprocess it.
var ErrElsewhere = errors.New("the file does not lie on this drive")

// mounted tells whether the drive is behind the kernel and its members are files of a file system on it, named by
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

// openMounted opens files of a mounted file system as partitions of the drive they lie on (PreSto's flow: the host
// finds the blocks, the drive reads them itself). node is the drive's device node, as /dev/nvme0.
func (d *Drive) openMounted(ctx context.Context, node string) error {
	if err := d.chooseEngine(); err != nil {
		return err
	}
	names := map[string]string{}
	var list []*sdk.Partition
	for _, path := range d.o.Members {
		name := filepath.Base(path)
		if other, ok := names[name]; ok {
			return fmt.Errorf("%s and %s have the same base name: partitions are named by it", other, path)
		}
		names[name] = path
		m, err := extents.Find(path, extents.Options{})
		if err != nil {
			return err
		}
		// With several paths to a drive the kernel names no controller for a disk; the namespace must do then.
		if m.Disk.NSID != dataNamespace || (m.Disk.Control != "" && m.Disk.Control != filepath.Base(node)) {
			return fmt.Errorf("%s is on %s: %w (%s)", path, m.Disk.Name, ErrElsewhere, node)
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		d.closers = append(d.closers, f.Close)
		p, err := sdk.OpenPartition(ctx, name, f, m.Size, d.source(),
			sdk.PartitionOptions{Text: d.o.Text, Extents: m.Extents})
		if err != nil {
			return err
		}
		list = append(list, p)
		if d.maps == nil {
			d.maps = map[*sdk.Partition]*extents.Map{}
		}
		d.maps[p] = m
	}
	return d.hold(list)
}

// dataNamespace is the namespace whose blocks a drive preprocesses.
const dataNamespace = 1
