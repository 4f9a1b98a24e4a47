package vocabulary

import unit "github.com/millrace/millrace/fpga/unit/vocabulary"

// ColumnDifference compares a column of two vocabularies.
type ColumnDifference struct {
	Column string
	// OtherChain says that different operators make the keys.
	OtherChain                  bool
	Before, After               int64 // keys; of a column that one vocabulary lacks 0
	Same, Moved, Added, Removed int64 // keys with the same id, with another id, in the second or the first alone
}

// Compare compares two vocabularies, column by column: those of a in their order, then those that b has alone.
func Compare(a, b *Vocabulary) ([]ColumnDifference, error) {
	var list []ColumnDifference
	for i := range a.Columns {
		c := &a.Columns[i]
		d := ColumnDifference{Column: c.Name, Before: int64(len(a.Tables[c.Table]))}
		o := b.Column(c.Name)
		if o == nil {
			d.Removed = d.Before
			list = append(list, d)
			continue
		}
		d.OtherChain, d.After = o.Chain != c.Chain, int64(len(b.Tables[o.Table]))
		if err := d.compareKeys(a.Tables[c.Table], b.Tables[o.Table], a.Rules.Base-b.Rules.Base); err != nil {
			return nil, err
		}
		list = append(list, d)
	}
	for i := range b.Columns {
		if c := &b.Columns[i]; a.Column(c.Name) == nil {
			n := int64(len(b.Tables[c.Table]))
			list = append(list, ColumnDifference{Column: c.Name, After: n, Added: n})
		}
	}
	return list, nil
}

// compareKeys counts the keys of two tables whose bases differ by shift.
func (d *ColumnDifference) compareKeys(before, after []int64, shift int64) error {
	table, err := unit.NewTable(after)
	if err != nil {
		return err
	}
	var indices [lookupBlock]int32
	for begin := 0; begin < len(before); begin += lookupBlock {
		part := before[begin:min(begin+lookupBlock, len(before))]
		unit.Lookup(table, indices[:len(part)], part)
		for i := range part {
			switch index := indices[i]; {
			case index < 0:
				d.Removed++
			case int64(index) == int64(begin+i)+shift:
				d.Same++
			default:
				d.Moved++
			}
		}
	}
	d.Added = d.After - d.Same - d.Moved
	return nil
}
