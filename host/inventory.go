package host

import (
	"context"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
)

// Inventory lists the partitions that the drives of a node hold, of all data sets.
type Inventory struct {
	Partitions []Held   // sorted by name; a name twice where drives hold different files of it
	Schemas    []Schema // each that a partition has, sorted by digest
	Drives     []Holding
	Digest     dataset.Digest // Digest covers all of the above: if it is unchanged, so is the rest.
}

// Held is a partition and the digest of its schema.
type Held struct {
	dataset.Partition
	Schema dataset.Digest
}

// Schema is the columns that partitions share: their names, types and nulls, and how malformed rows are treated. The
// partitions of one job must share a schema. Why a column cannot be used in some partition is not part of the digest.
type Schema struct {
	Digest     dataset.Digest
	Columns    []columntypes.Column
	MeanLength map[string]float64
	Malformed  program.Malformed
}

// Holding is a drive and the names of its partitions, sorted.
type Holding struct {
	Drive      string
	Partitions []string
}

// Inventory returns the partitions that the drives hold. It returns the same Inventory until they change; the caller
// must not change it.
func (m *Manager) Inventory() (*Inventory, error) {
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
	inv, err := takeInventory(drives)
	if err != nil {
		return nil, err
	}
	m.inventory, m.versions = inv, versions
	return inv, nil
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

// takeInventory lists the partitions that the drives hold.
func takeInventory(drives []*Drive) (*Inventory, error) {
	inv := &Inventory{}
	var last schemaMemo
	type identity struct {
		name   string
		digest dataset.Digest
		bytes  int64
	}
	seen := map[identity]bool{}
	schemas := map[dataset.Digest]*schema{}
	malformed := map[dataset.Digest]program.Malformed{}
	for _, d := range drives {
		h := Holding{Drive: d.name}
		for _, p := range d.Partitions() {
			h.Partitions = append(h.Partitions, p.Name)
			e := p.Describe()
			if id := (identity{e.Name, e.Content, e.Bytes}); !seen[id] {
				seen[id] = true
				columns, _ := Columns(p, d.o.Text)
				policy := program.Malformed(d.o.Text.Policy)
				digest, err := last.digest(columns, policy)
				if err != nil {
					return nil, fmt.Errorf("drive %s: partition %s: %w", d.name, p.Name, err)
				}
				if schemas[digest] == nil {
					schemas[digest], malformed[digest] = &schema{}, policy
				}
				if err := schemas[digest].add(p, d.o.Text); err != nil {
					return nil, fmt.Errorf("drive %s: %w", d.name, err)
				}
				inv.Partitions = append(inv.Partitions, Held{e, digest})
			}
		}
		slices.Sort(h.Partitions)
		inv.Drives = append(inv.Drives, h)
	}
	slices.SortStableFunc(inv.Partitions, func(a, b Held) int {
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return slices.Compare(a.Content[:], b.Content[:])
	})
	for digest, s := range schemas {
		inv.Schemas = append(inv.Schemas,
			Schema{Digest: digest, Columns: s.union.Columns(), MeanLength: s.meanLength(), Malformed: malformed[digest]})
	}
	slices.SortFunc(inv.Schemas, func(a, b Schema) int { return slices.Compare(a.Digest[:], b.Digest[:]) })
	inv.Digest = inv.sum()
	return inv, nil
}

// sum hashes the inventory. Every string is hashed behind its length, so that no two inventories hash alike.
func (inv *Inventory) sum() dataset.Digest {
	h := sha256.New()
	writeString := func(s string) {
		_ = binary.Write(h, binary.LittleEndian, uint64(len(s)))
		h.Write([]byte(s))
	}
	for i := range inv.Partitions {
		p := &inv.Partitions[i]
		writeString(p.Name)
		_ = binary.Write(h, binary.LittleEndian, []int64{p.Bytes, p.Rows})
		h.Write(p.Content[:])
		h.Write(p.Schema[:])
	}
	for _, d := range inv.Drives {
		writeString(d.Drive)
		_ = binary.Write(h, binary.LittleEndian, uint64(len(d.Partitions)))
		for _, name := range d.Partitions {
			writeString(name)
		}
	}
	return dataset.Digest(h.Sum(nil))
}

// schemaMemo computes the digest of columns, leaving out why a column cannot be used in one partition. Partitions that
// follow each other mostly have the same columns, so it remembers the last.
type schemaMemo struct {
	columns []columntypes.Column
	policy  program.Malformed
	sum     dataset.Digest
}

func (s *schemaMemo) digest(columns []columntypes.Column, policy program.Malformed) (dataset.Digest, error) {
	plain := slices.Clone(columns)
	for i := range plain {
		plain[i].Unsupported = nil
	}
	if s.columns != nil && s.policy == policy && slices.Equal(plain, s.columns) {
		return s.sum, nil
	}
	b, err := api.EncodeColumns(plain)
	if err != nil {
		return dataset.Digest{}, err
	}
	s.columns, s.policy, s.sum = plain, policy, sha256.Sum256(append(b, byte(policy)))
	return s.sum, nil
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
		Running: d.Running(), Rates: m.rates.of(d.rateIdentity(), d.image()),
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
