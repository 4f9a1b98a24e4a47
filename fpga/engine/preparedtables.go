package engine

import (
	"context"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/bucketize"
	"github.com/millrace/millrace/fpga/unit/localhour"
	"github.com/millrace/millrace/fpga/unit/mapid"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
)

// preparedTables are what the operators of a program made of its tables, each once: many operators may share a table,
// and the memory of a program must not grow with the operators that use one.
type preparedTables struct {
	buckets map[*program.Bucketize]*bucketize.Table
	zones   map[*program.LocalHour]*localhour.Zone
	indexes map[listMemory]*mapid.Index

	ctx       context.Context // of compiling the program
	modules   program.Modules // of the engine
	functions map[program.Wasm]combiner
	wasm      format.Total // of the functions
}

// listMemory identifies a list by its memory.
type listMemory struct {
	first *int64
	count int
}

func newPreparedTables() *preparedTables {
	return &preparedTables{
		buckets: map[*program.Bucketize]*bucketize.Table{}, zones: map[*program.LocalHour]*localhour.Zone{},
		indexes: map[listMemory]*mapid.Index{}, functions: map[program.Wasm]combiner{},
	}
}

func (p *preparedTables) bucketTable(o *program.Bucketize) (*bucketize.Table, error) {
	return prepareOnce(p.buckets, o, func() (*bucketize.Table, error) { return bucketize.New(BucketizeParams(o)) })
}

func (p *preparedTables) zone(o *program.LocalHour) (*localhour.Zone, error) {
	return prepareOnce(p.zones, o, func() (*localhour.Zone, error) { return localhour.New(o.Starts, o.Offsets) })
}

// keyIndex returns the index of keys, of which there is at least one.
func (p *preparedTables) keyIndex(keys []int64) (*mapid.Index, error) {
	return prepareOnce(p.indexes, listMemory{&keys[0], len(keys)}, func() (*mapid.Index, error) { return mapid.New(keys) })
}

// prepareOnce returns the value of a key, which prepare makes if there is none.
func prepareOnce[K comparable, V any](made map[K]V, key K, prepare func() (V, error)) (V, error) {
	v, ok := made[key]
	if ok {
		return v, nil
	}
	v, err := prepare()
	if err == nil {
		made[key] = v
	}
	return v, err
}

// BucketizeParams returns the parameters of the unit for a program's operator.
func BucketizeParams(b *program.Bucketize) bucketize.Params {
	p := bucketize.Params{Borders: b.Borders32, Borders64: b.Borders64, BordersI64: b.BordersInt}
	switch {
	case len(b.Borders64) > 0:
		p.Compare = bucketize.CompareFloat64
	case len(b.BordersInt) > 0:
		p.Compare = bucketize.CompareInt64
	}
	if b.Side == program.Right {
		p.Side = bucketize.SideRight
	}
	switch b.NaN {
	case program.NaNFirst:
		p.NaN = bucketize.NaNFirst
	case program.NaNLast:
		p.NaN = bucketize.NaNLast
	case program.NaNError:
		p.NaN = bucketize.NaNFail
	}
	return p
}
