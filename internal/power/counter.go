package power

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"
)

// powercap is where Linux has the energy counters.
const powercap = "/sys/class/powercap"

// counter is an energy counter of the kernel's power capping framework. It counts microjoules up to its greatest value,
// and begins at 0 again.
type counter struct {
	label  string // its name, behind that of the domain that it is in
	folder string
	most   uint64 // microjoules, the greatest value
	last   uint64
	read   bool
}

func (c *counter) name() string   { return c.label }
func (c *counter) source() string { return "RAPL, " + filepath.Base(c.folder) }

// sample implements domain.
func (c *counter) sample(context.Context, time.Time) (joules float64, err error) {
	now, err := readCounter(filepath.Join(c.folder, "energy_uj"))
	if err != nil {
		return 0, err
	}
	if now > c.most {
		return 0, fmt.Errorf("%s is at %d uJ, above its range of %d", c.folder, now, c.most)
	}
	passed := now - c.last
	if now < c.last {
		passed = c.most - c.last + now // it wrapped around
	}
	if !c.read {
		passed = 0
	}
	c.last, c.read = now, true
	return float64(passed) / 1e6, nil
}

// maxCounterBytes bounds a file of sysfs.
const maxCounterBytes = 64

// readCounter reads a file that holds one number.
func readCounter(path string) (uint64, error) {
	b, err := os.ReadFile(path)
	if err != nil {
		return 0, unreadable(path, err)
	}
	text := strings.TrimSpace(string(b[:min(len(b), maxCounterBytes)]))
	v, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("%s holds %q, want a number of microjoules", path, text)
	}
	return v, nil
}

// unreadable returns the error of a file that could not be read, with what to do about it.
func unreadable(path string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return fmt.Errorf("%w: Linux lets root alone read energy counters, as they betray what other programs compute: "+
		"run as root, or let this user read them with: chmod a+r %s", err, path)
}

// findCounters finds the counters that can be read. Why others cannot be read is in the notes.
func (m *Meter) findCounters() {
	root := m.options.Powercap
	if root == "" {
		root = powercap
	}
	zones, err := filepath.Glob(filepath.Join(root, "intel-rapl:*"))
	if err != nil || len(zones) == 0 {
		return
	}
	slices.Sort(zones)
	labels := make(map[string]string) // by folder
	for _, path := range zones {
		if name := zoneName(path); name != "" {
			labels[path] = name
		}
	}
	var found []*counter
	for _, path := range zones {
		if !counts(path, labels) {
			continue
		}
		c, err := newCounter(path, labels)
		if err != nil {
			m.notes = append(m.notes, "an energy counter is left out: "+err.Error())
			continue
		}
		found = append(found, c)
	}
	for _, c := range found {
		m.domains = append(m.domains, c)
	}
}

// zoneName returns the name of a zone; "" if it has none.
func zoneName(path string) string {
	b, err := os.ReadFile(filepath.Join(path, "name"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b[:min(len(b), maxCounterBytes)]))
}

// parent returns the folder of the zone that a zone is part of: intel-rapl:0 for intel-rapl:0:2. ok is false for a zone
// that is part of none.
func parent(path string) (_ string, ok bool) {
	if strings.Count(filepath.Base(path), ":") < 2 {
		return "", false
	}
	return path[:strings.LastIndexByte(path, ':')], true
}

// counts reports whether the energy of a zone is to be added: packages, and memory; a board only without packages.
func counts(path string, labels map[string]string) bool {
	name := labels[path]
	if _, part := parent(path); part {
		return name == "dram" // core and uncore are parts of the package's energy
	}
	if strings.HasPrefix(name, "package") {
		return true
	}
	for other, label := range labels {
		if _, part := parent(other); !part && strings.HasPrefix(label, "package") {
			return false
		}
	}
	return name == "psys"
}

// newCounter opens the counter of a zone, and reads it once.
func newCounter(path string, labels map[string]string) (*counter, error) {
	most, err := readCounter(filepath.Join(path, "max_energy_range_uj"))
	if err != nil {
		return nil, err
	}
	if most == 0 {
		return nil, fmt.Errorf("%s has the range 0", path)
	}
	c := &counter{label: labels[path], folder: path, most: most}
	if whole, part := parent(path); part {
		c.label = labels[whole] + "/" + c.label
	}
	_, err = c.sample(context.Background(), time.Time{})
	return c, err
}
