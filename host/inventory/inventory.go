// Package inventory describes what the drives of a node hold: partitions of any data sets, the schemas of these, and
// which drive holds which. An inventory has a digest, by which a control plane sees that it has changed. The package is
// pure: the partitions' footers were read before.
package inventory

import (
	"cmp"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"slices"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/partition/schema"
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

// Builder makes an inventory. The zero value has no partitions.
type Builder struct {
	inventory Inventory
	last      schemaMemo
	seen      map[identity]bool
	schemas   map[dataset.Digest]*growingSchema
}

// identity names a partition: drives may hold different files of one name.
type identity struct {
	name   string
	digest dataset.Digest
	bytes  int64
}

// growingSchema is a schema while partitions are added to it.
type growingSchema struct {
	schema.Union
	malformed program.Malformed
}

// AddDrive adds the partitions that a drive holds, whose text is read as o says.
func (b *Builder) AddDrive(drive string, partitions []*partition.Partition, o text.Options) error {
	h := Holding{Drive: drive}
	for _, p := range partitions {
		h.Partitions = append(h.Partitions, p.Name)
	}
	slices.Sort(h.Partitions)
	b.inventory.Drives = append(b.inventory.Drives, h)
	if err := b.Add(partitions, o); err != nil {
		return fmt.Errorf("drive %s: %w", drive, err)
	}
	return nil
}

// Add adds partitions, whose text is read as o says.
func (b *Builder) Add(partitions []*partition.Partition, o text.Options) error {
	if b.seen == nil {
		b.seen, b.schemas = map[identity]bool{}, map[dataset.Digest]*growingSchema{}
	}
	policy := program.Malformed(o.Policy)
	for _, p := range partitions {
		e := p.Describe()
		id := identity{e.Name, e.Content, e.Bytes}
		if b.seen[id] {
			continue
		}
		b.seen[id] = true
		columns, _ := schema.Columns(p, o)
		digest, err := b.last.digest(columns, policy)
		if err != nil {
			return fmt.Errorf("partition %s: %w", p.Name, err)
		}
		if b.schemas[digest] == nil {
			b.schemas[digest] = &growingSchema{malformed: policy}
		}
		if err := b.schemas[digest].Add(p, o); err != nil {
			return err
		}
		b.inventory.Partitions = append(b.inventory.Partitions, Held{e, digest})
	}
	return nil
}

// Inventory returns the inventory of what was added. The builder is not used after it.
func (b *Builder) Inventory() *Inventory {
	inv := &b.inventory
	slices.SortStableFunc(inv.Partitions, func(a, b Held) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), slices.Compare(a.Content[:], b.Content[:]))
	})
	for digest, s := range b.schemas {
		inv.Schemas = append(inv.Schemas,
			Schema{Digest: digest, Columns: s.Columns(), MeanLength: s.MeanLength(), Malformed: s.malformed})
	}
	slices.SortFunc(inv.Schemas, func(a, b Schema) int { return slices.Compare(a.Digest[:], b.Digest[:]) })
	inv.Digest = inv.sum()
	return inv
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
