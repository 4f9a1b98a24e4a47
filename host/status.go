package host

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/millrace/millrace/host/inventory"
	"github.com/millrace/millrace/sdk"
)

// Inventory returns the partitions that the drives hold. It returns the same Inventory until they change; the caller
// must not change it.
func (m *Manager) Inventory() (*inventory.Inventory, error) {
	m.inventoryMu.Lock()
	defer m.inventoryMu.Unlock()
	drives := m.Drives()
	versions := make([]heldVersion, len(drives))
	for i, d := range drives {
		versions[i] = d.version()
	}
	if m.inventory != nil && slices.Equal(versions, m.versions) {
		return m.inventory, nil
	}
	var b inventory.Builder
	for _, d := range drives {
		if err := b.AddDrive(d.name, d.Partitions(), d.o.Text); err != nil {
			return nil, err
		}
	}
	m.inventory, m.versions = b.Inventory(), versions
	return m.inventory, nil
}

// heldVersion is a drive and the version of its partitions, which grows when they change.
type heldVersion struct {
	drive   *Drive
	version uint64
}

// version returns the version of the drive's partitions.
func (d *Drive) version() heldVersion {
	d.mu.Lock()
	defer d.mu.Unlock()
	return heldVersion{d, d.heldVersion}
}

// DriveStatus is how a drive is now.
type DriveStatus struct {
	Name     string
	UUID     string // its own identity, "" where it has none; all regions of a drive have it
	Region   int    // The drive computes in this region.
	Regions  int    // Regions is how many the drive has; 0 if it does not compute.
	Image    string // the active image's id, "" where it has none
	Computes bool
	Threads  int
	Streams  int
	Running  int                // open streams
	Free     int64              // room for more members, bytes
	Rates    map[string]float64 // P by pipeline digest
}

// memberOverhead is the room that a member takes beside its bytes: a header, and the archive's end.
const memberOverhead = 3 * 512

// Status returns how a drive is, as far as it is known: it does not ask the drive.
func (m *Manager) Status(d *Drive) DriveStatus {
	s := DriveStatus{
		Name: d.name, UUID: d.UUID(), Image: d.image(), Computes: d.Computes(), Threads: d.threads(),
		Streams: d.streams(),
		Running: d.Running(), Rates: m.rates.Of(d.rateIdentity(), d.image()),
	}
	if dev := d.Device(); dev != nil {
		s.Region, s.Regions = dev.Region(), dev.Info().Regions
	}
	if d.volume != nil {
		used, size := d.volume.Used()
		s.Free = max(0, size-used-memberOverhead)
	}
	return s
}

// Busy returns how long the drive's engine threads, or the CPU's where it computes, have computed since the drive was
// opened. It asks the drive, so that an error says that the drive is gone. The counters of a drive of several regions
// are of all regions; a region's own time is that of the jobs that this host runs there now.
func (m *Manager) Busy(ctx context.Context, d *Drive) (time.Duration, error) {
	c, err := d.counters(ctx)
	if err != nil {
		return 0, fmt.Errorf("drive %s: %w", d.name, err)
	}
	if c != nil && d.computer().Info().Regions < 2 {
		return time.Duration(c.BusyNanoseconds), nil
	}
	if c == nil && d.device != nil {
		if _, err := d.device.SMART(ctx); err != nil {
			return 0, fmt.Errorf("drive %s: %w", d.name, err)
		}
	}
	return m.computeTime(d), nil
}

// computeTime returns how long the processors of the present jobs on a drive have computed.
func (m *Manager) computeTime(d *Drive) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	sum := time.Duration(0)
	for _, j := range m.jobs {
		j.mu.Lock()
		if p := j.processors[d.name]; p != nil && p.drive == d {
			s := p.Stats()
			sum += s.Decode + s.Transform
		}
		j.mu.Unlock()
	}
	return sum
}

// addRunning counts open streams in, or out where n is negative.
func (d *Drive) addRunning(n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.running += n
}

// Running returns the number of streams that are open on the drive, of all jobs.
func (d *Drive) Running() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.running
}

// UUID returns the drive's own identity, or "" where it has none.
func (d *Drive) UUID() string {
	if d.Device() == nil {
		return ""
	}
	return namespaceUUID(d.Device())
}

// namespaceUUID returns the identity of a device's first namespace. The first namespace of a drive without flash has no
// blocks.
func namespaceUUID(dev *sdk.Device) string {
	if list := dev.Info().Namespaces; len(list) > 0 {
		return list[0].UUID
	}
	return ""
}

// image returns the active image's id, or "" where the node's CPU computes.
func (d *Drive) image() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.activeImage
}

// readActiveImage asks the drive which image is active. Of a drive that does not report its images, only the first
// bytes of the id are known.
func (d *Drive) readActiveImage(ctx context.Context) {
	if d.engine != EngineDrive {
		return
	}
	id := ""
	for _, p := range d.computer().Info().Programs {
		if p.Active {
			id = p.PUID
		}
	}
	if r, err := d.computer().ImageLog(ctx); err == nil {
		if s, ok := r.Active(); ok {
			id = s.Image.String()
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.activeImage = id
}

// rateIdentity returns the identity under which P of a drive is kept. A region has a P of its own, which depends on how
// many regions share the drive's flash, too.
func (d *Drive) rateIdentity() string {
	id := d.Identity()
	if dev := d.computer(); dev != nil && dev.Info().Regions > 1 {
		return fmt.Sprintf("%s region %d of %d", id, dev.Region(), dev.Info().Regions)
	}
	return id
}

// Identity returns the identity under which records of what a drive holds are kept: its UUID where it has one, else its
// name. The regions of a drive hold the same, and have one identity.
func (d *Drive) Identity() string {
	if id := d.UUID(); id != "" {
		if d.card != nil && d.device != nil {
			return id + "+" + namespaceUUID(d.card) // P is that of the two together
		}
		return id
	}
	return fmt.Sprintf("name:%s", d.name)
}
