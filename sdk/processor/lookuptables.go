package processor

import (
	"context"
	"fmt"
	"slices"

	"github.com/millrace/millrace/sdk/slicer"
	"github.com/millrace/millrace/sdk/target"
	"github.com/millrace/millrace/sdk/vocabulary"
)

// storeTables writes a program's lookup tables to the target's memory, and lets go of their bytes.
func storeTables(ctx context.Context, t target.Target, p *slicer.Program) error {
	at := p.TablesSpan().Addr
	prog := *p.Program
	prog.LookupTables = slices.Clone(prog.LookupTables)
	for i := range prog.LookupTables {
		table := &prog.LookupTables[i]
		if uint64(len(table.Stored)) != table.Bytes() {
			return fmt.Errorf("store lookup table %d: %d of its %d bytes are at hand", i, len(table.Stored), table.Bytes())
		}
		if err := t.Store(ctx, at+table.Offset, table.Stored); err != nil {
			return fmt.Errorf("store lookup table %d: %w", i, err)
		}
		table.Stored = nil
	}
	p.Program = &prog
	return nil
}

// absentKey returns the error of a result that names a key which a lookup table lacks.
func (m *maker) absentKey() error {
	a, keys := m.result.AbsentKey, m.runner.pipeline.schema.Keys
	if uint64(a.Key) >= uint64(len(keys)) || a.Row >= m.slicer.BatchRows() {
		return &target.EngineError{Partition: m.partition.Name, State: m.result.State,
			Message: fmt.Sprintf("the result names key %d of %d and row %d of %d", a.Key, len(keys), a.Row,
				m.slicer.BatchRows())}
	}
	return &vocabulary.UnknownError{Partition: m.partition.Name, Row: m.slicer.FirstRow() + int64(a.Row),
		Column: keys[a.Key].Name, Key: a.Value}
}
