package extents

import (
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
)

var controllerName = regexp.MustCompile(`^nvme\d+$`)

// virtualDisk matches disks that are memory, or another machine's, or stand on other disks.
var virtualDisk = regexp.MustCompile(`^(nbd|zram|ram|drbd|bcache|rbd)`)

// findDisk reads from sysfs which disk a block device is, or is a partition of.
func findDisk(o Options, major, minor uint32) (Disk, error) {
	if major == 0 {
		// btrfs, overlayfs, tmpfs, NFS: a number that stands for no one device.
		return Disk{}, fmt.Errorf("device %d:%d is not a block device: %w", major, minor, ErrStacked)
	}
	link := filepath.Join(o.Sysfs, "dev/block", fmt.Sprintf("%d:%d", major, minor))
	dir, err := filepath.EvalSymlinks(link)
	if errors.Is(err, fs.ErrNotExist) {
		return Disk{}, fmt.Errorf("device %d:%d is not in sysfs: %w", major, minor, ErrStacked)
	}
	if err != nil {
		return Disk{}, err
	}
	var d Disk
	if exists(dir, "partition") {
		sectors, err := readNumber(dir, "start")
		if err != nil {
			return Disk{}, fmt.Errorf("where partition %s begins: %w", filepath.Base(dir), err)
		}
		// Sysfs counts in 512 bytes, whatever the disk's blocks are.
		d.Partition = sectors * 512
		dir = filepath.Dir(dir)
	}
	d.Name = filepath.Base(dir)
	block, err := readNumber(dir, "queue/logical_block_size")
	if err != nil || block < 512 || block > 1<<16 || block&(block-1) != 0 {
		return Disk{}, fmt.Errorf("%s: logical blocks of %d bytes: %w", d.Name, block,
			errors.Join(err, errors.New("cannot be")))
	}
	d.Block = int(block)
	switch {
	case exists(dir, "loop"):
		return loopDisk(o, d, dir)
	case exists(dir, "dm"):
		return Disk{}, fmt.Errorf("%s is a device mapper's (LVM, crypt, multipath): %w", d.Name, ErrStacked)
	case exists(dir, "md"):
		return Disk{}, fmt.Errorf("%s is a RAID array: %w", d.Name, ErrStacked)
	case virtualDisk.MatchString(d.Name):
		return Disk{}, fmt.Errorf("%s has no drive of its own behind it: %w", d.Name, ErrStacked)
	}
	if slaves, err := os.ReadDir(filepath.Join(dir, "slaves")); err == nil && len(slaves) > 0 {
		return Disk{}, fmt.Errorf("%s stands on %s: %w", d.Name, slaves[0].Name(), ErrStacked)
	}
	if nsid, err := readNumber(dir, "nsid"); err == nil && nsid > 0 && nsid < math.MaxUint32 {
		d.NSID = uint32(nsid)
		d.Control = controllerOf(o, dir)
	}
	return d, nil
}

// controllerOf returns the only controller of a namespace's disk: the folder above the disk, or, if that folder is a
// subsystem, the subsystem's only controller.
func controllerOf(o Options, dir string) string {
	up := filepath.Base(filepath.Dir(dir))
	if controllerName.MatchString(up) {
		return up
	}
	members, err := os.ReadDir(filepath.Join(o.Sysfs, "class/nvme-subsystem", up))
	if err != nil {
		return ""
	}
	only := ""
	for _, m := range members {
		if controllerName.MatchString(m.Name()) {
			if only != "" {
				return ""
			}
			only = m.Name()
		}
	}
	return only
}

// loopDisk returns the image file behind a loop device, if Options.Loop is set.
func loopDisk(o Options, d Disk, dir string) (Disk, error) {
	image, err := os.ReadFile(filepath.Join(dir, "loop/backing_file"))
	if err != nil {
		return Disk{}, fmt.Errorf("%s: which file it shows: %w", d.Name, err)
	}
	name := strings.TrimSuffix(string(image), "\n")
	if !o.Loop {
		return Disk{}, fmt.Errorf("%s is a loop device over %s: %w", d.Name, name, ErrStacked)
	}
	offset, err := readNumber(dir, "loop/offset")
	if err != nil {
		return Disk{}, fmt.Errorf("%s: where in %s it begins: %w", d.Name, name, err)
	}
	d.Name, d.Loop, d.Partition = name, true, d.Partition+offset
	return d, nil
}

func exists(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// readNumber reads an attribute that is a decimal number from 0 to 2^52, so that its sums and products with 512 do not
// overflow.
func readNumber(dir, name string) (int64, error) {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return 0, err
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	if err != nil || n < 0 || n > 1<<52 {
		return 0, fmt.Errorf("%s: %q is not a number that can be", name, strings.TrimSpace(string(b)))
	}
	return n, nil
}
