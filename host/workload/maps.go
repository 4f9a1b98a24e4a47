package workload

import "github.com/parquet-go/parquet-go"

// Names of the columns that hold a model's features as maps, as in Meta's public examples of DPP's tables.
const (
	FloatFeatures  = "float_features"   // map<int32, float32>: dense feature i by i
	IDListFeatures = "id_list_features" // map<int32, list<int64>>: sparse feature i by i
)

// mapped puts a model's dense and sparse features, which are columns, into two maps. A row's entries are the features
// that it has, in ascending order; a row without any has an empty map.
func mapped(m Model, flat []column) []column {
	cols := []column{flat[0]}
	for i, name := range []string{FloatFeatures, IDListFeatures} {
		features := flat[1 : 1+m.Dense]
		if i == 1 {
			features = flat[1+m.Dense:]
		}
		for _, k := range []kind{keysColumn, valuesColumn} {
			cols = append(cols, column{name: name, index: len(cols), kind: k, features: features})
		}
	}
	return cols
}

// Definition levels of a map's leaves: it is optional, its keys and values are not.
const (
	levelNoEntry = 1
	levelEntry   = 2
	levelElement = 3 // of a list that is an entry's value
)

// appendMap is appendRows for a leaf of a map.
func (c *column) appendMap(dst []parquet.Value, block uint64, from, to int) []parquet.Value {
	rows := make([][]parquet.Value, len(c.features)) // the values of each feature in the rows that are not yet used
	for f := range c.features {
		rows[f] = c.features[f].appendRows(nil, block, from, to)
	}
	for range to - from {
		entries := 0
		for f := range rows {
			n := 1
			for n < len(rows[f]) && rows[f][n].RepetitionLevel() > 0 {
				n++
			}
			row := rows[f][:n]
			rows[f] = rows[f][n:]
			if row[0].IsNull() && row[0].DefinitionLevel() == levelNull {
				continue
			}
			rep := min(entries, 1)
			entries++
			switch {
			case c.kind == keysColumn:
				dst = append(dst, parquet.Int32Value(int32(f)).Level(rep, levelEntry, c.index))
			case row[0].IsNull(): // an empty list
				dst = append(dst, parquet.NullValue().Level(rep, levelEntry, c.index))
			case c.features[f].kind == listColumn:
				for i, v := range row {
					if i > 0 {
						rep = 2
					}
					dst = append(dst, v.Level(rep, levelElement, c.index))
				}
			default:
				dst = append(dst, row[0].Level(rep, levelEntry, c.index))
			}
		}
		if entries == 0 {
			dst = append(dst, parquet.NullValue().Level(0, levelNoEntry, c.index))
		}
	}
	return dst
}
