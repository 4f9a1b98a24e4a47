package passthru

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// Controller is a controller as sysfs describes it. Strings that sysfs does not have are empty.
type Controller struct {
	Name       string      `json:"name"` // nvme0
	Model      string      `json:"model" table:"model"`
	Serial     string      `json:"serial" table:"serial"`
	Firmware   string      `json:"firmware"`
	NQN        string      `json:"nqn"`
	Transport  string      `json:"transport" table:"transport"` // pcie, tcp, ...
	Address    string      `json:"address"`
	State      string      `json:"state"` // live, connecting, ...
	Paths      int         `json:"paths"` // controllers of the same subsystem, this one included
	Namespaces []Namespace `json:"namespaces"`

	dev string // major:minor of the character device
}

// Namespace is a namespace of a controller as sysfs describes it.
type Namespace struct {
	ID      uint32 `json:"nsid"`    // 0 where the kernel is too old to say it in sysfs
	Generic string `json:"generic"` // ng0n1; empty where the kernel makes no generic devices
	// nvme0n1; empty where no block device is visible, as for the sets of computation
	Block     string `json:"block"`
	Size      int64  `json:"size_bytes"`   // Size is that of the block device.
	BlockSize int    `json:"lba_bytes"`    // BlockSize is that of the block device.
	Multipath bool   `json:"multipath"`    // the devices are the subsystem's, over several possible paths
	Most      int    `json:"max_transfer"` // bytes that the kernel carries in one command; 0 if it does not say

	dev string // major:minor of the generic device, or of the block device where there is none
}

var (
	controllerName = regexp.MustCompile(`^nvme\d+$`)
	genericName    = regexp.MustCompile(`^ng(\d+n\d+)$`)
	diskName       = regexp.MustCompile(`^nvme(\d+n\d+)$`)
	pathName       = regexp.MustCompile(`^nvme(\d+)c\d+n(\d+)$`) // one path's hidden disk, under native multipath
)

// pageSize is the size of what the kernel counts as a segment of scattered memory, at least.
const pageSize = 4096

// sysfs is a mounted sysfs, or a tree like one.
type sysfs string

// Controllers lists the controllers that the kernel has, by name. Without an NVMe driver there are none.
func Controllers(o Options) ([]Controller, error) {
	s := o.sysfsTree()
	names, err := s.listFolder("class/nvme")
	if err != nil {
		return nil, fmt.Errorf("list controllers: %w", err)
	}
	var all []Controller
	for _, name := range names {
		if !controllerName.MatchString(name) {
			continue
		}
		c, err := s.readController(name)
		if errors.Is(err, ErrNotFound) {
			continue // it went away between the two
		}
		if err != nil {
			return nil, fmt.Errorf("list controllers: %w", err)
		}
		all = append(all, c)
	}
	slices.SortFunc(all, func(a, b Controller) int {
		return cmp.Or(cmp.Compare(len(a.Name), len(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return all, nil
}

// readController reads one controller and its namespaces.
func (s sysfs) readController(name string) (Controller, error) {
	dir := filepath.Join("class/nvme", name)
	entries, err := s.listFolder(dir)
	if err != nil {
		return Controller{}, fmt.Errorf("%s: %w", name, err)
	}
	if len(entries) == 0 {
		return Controller{}, fmt.Errorf("%s: %w", name, ErrNotFound)
	}
	c := Controller{
		Name: name, Model: s.readText(dir, "model"), Serial: s.readText(dir, "serial"),
		Firmware: s.readText(dir, "firmware_rev"),
		NQN:      s.readText(dir, "subsysnqn"), Transport: s.readText(dir, "transport"), Address: s.readText(dir,
			"address"), State: s.readText(dir, "state"),
		Paths: 1, dev: s.readText(dir, "dev"),
	}
	// Disks of one path say which of the subsystem's shared ones lead here.
	shared := map[string]string{}
	for _, e := range entries {
		if m := pathName.FindStringSubmatch(e); m != nil {
			shared[m[1]+"n"+m[2]] = e
		}
	}
	c.Namespaces = s.readNamespaces(dir, func(string) bool { return true })
	subsystems, err := s.listFolder("class/nvme-subsystem")
	if err != nil {
		return Controller{}, fmt.Errorf("%s: %w", name, err)
	}
	for _, sub := range subsystems {
		subdir := filepath.Join("class/nvme-subsystem", sub)
		members, err := s.listFolder(subdir)
		if err != nil {
			return Controller{}, fmt.Errorf("%s: %w", name, err)
		}
		if !slices.Contains(members, name) {
			continue
		}
		c.Paths = 0
		for _, m := range members {
			if controllerName.MatchString(m) {
				c.Paths++
			}
		}
		heads := s.readNamespaces(subdir, func(key string) bool { return shared[key] != "" })
		for i := range heads {
			heads[i].Multipath = true
		}
		c.Namespaces = append(c.Namespaces, heads...)
	}
	slices.SortFunc(c.Namespaces, func(a, b Namespace) int {
		return cmp.Or(cmp.Compare(a.ID, b.ID), cmp.Compare(a.Generic, b.Generic), cmp.Compare(a.Block, b.Block))
	})
	return c, nil
}

// readNamespaces reads the namespaces whose devices lie in a folder of sysfs. A generic device and a disk with the same
// numbers belong to one namespace; only the disk's folder has its identifier.
func (s sysfs) readNamespaces(dir string, wanted func(key string) bool) []Namespace {
	entries, err := s.listFolder(dir)
	if err != nil {
		return nil
	}
	found := map[string]*Namespace{}
	at := func(key string) *Namespace {
		if found[key] == nil {
			found[key] = &Namespace{}
		}
		return found[key]
	}
	for _, e := range entries {
		if m := genericName.FindStringSubmatch(e); m != nil && wanted(m[1]) {
			ns := at(m[1])
			ns.Generic = e
			if dev := s.readText(dir, e, "dev"); dev != "" {
				ns.dev = dev
			}
			if ns.ID == 0 {
				ns.ID = uint32(s.readNumber(dir, e, "nsid"))
			}
		}
		if m := diskName.FindStringSubmatch(e); m != nil && wanted(m[1]) {
			ns := at(m[1])
			if id := s.readNumber(dir, e, "nsid"); id != 0 {
				ns.ID = uint32(id)
			}
			ns.Most = s.mostBytes(dir, e)
			dev := s.readText(dir, e, "dev")
			if dev == "" || s.readText(dir, e, "hidden") == "1" {
				continue // a command set that the kernel has no block device for
			}
			ns.Block, ns.Size = e, s.readNumber(dir, e, "size")*512
			ns.BlockSize = int(s.readNumber(dir, e, "queue/logical_block_size"))
			if ns.dev == "" {
				ns.dev = dev
			}
		}
	}
	all := make([]Namespace, 0, len(found))
	for _, ns := range found {
		if ns.Generic != "" || ns.Block != "" {
			all = append(all, *ns)
		}
	}
	return all
}

// mostBytes returns the most data of a command of a disk if every page of the data lies elsewhere in memory.
func (s sysfs) mostBytes(dir, disk string) int {
	sectors := s.readNumber(dir, disk, "queue/max_hw_sectors_kb")
	if sectors <= 0 || sectors > 1<<20 {
		return 0
	}
	n := sectors << 10
	if segments := s.readNumber(dir, disk, "queue/max_segments"); segments > 0 {
		n = min(n, segments*pageSize)
	}
	return int(n)
}

// listFolder names a folder's entries, none where there is no folder.
func (s sysfs) listFolder(dir string) ([]string, error) {
	entries, err := os.ReadDir(filepath.Join(string(s), dir))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = e.Name()
	}
	return names, nil
}

// readText reads an attribute, empty where there is none.
func (s sysfs) readText(path ...string) string {
	b, err := os.ReadFile(filepath.Join(append([]string{string(s)}, path...)...))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}

// readNumber reads an attribute that is a decimal number from 0 to 2^53, 0 where there is none.
func (s sysfs) readNumber(path ...string) int64 {
	n, err := strconv.ParseInt(s.readText(path...), 10, 64)
	if err != nil || n < 0 || n > 1<<53 {
		return 0
	}
	return n
}
