package format

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestColumnTypeValidate(t *testing.T) {
	good := ColumnType{Physical: Int64, List: true, MaxDef: 3, MaxRep: 1, RepDef: 2}
	require.NoError(t, good.Validate())
	for name, c := range map[string]struct {
		lie  func(ct *ColumnType)
		want error
	}{
		"INT96":              {func(ct *ColumnType) { ct.Physical, ct.TypeLength = Int96, 11 }, ErrCorrupt},
		"type 200":           {func(ct *ColumnType) { ct.Physical = 200 }, ErrUnsupported},
		"LZO":                {func(ct *ColumnType) { ct.Codec = LZO }, ErrUnsupported},
		"codec 200":          {func(ct *ColumnType) { ct.Codec = 200 }, ErrUnsupported},
		"three repetitions":  {func(ct *ColumnType) { ct.MaxRep = 3 }, ErrUnsupported},
		"no entries":         {func(ct *ColumnType) { ct.MaxRep = 2 }, ErrCorrupt},
		"entries of a list":  {func(ct *ColumnType) { ct.EntryDef = 1 }, ErrCorrupt},
		"entries inside":     {func(ct *ColumnType) { ct.MaxRep, ct.EntryDef = 2, 2 }, ErrCorrupt},
		"no repetition":      {func(ct *ColumnType) { ct.MaxRep = 0 }, ErrCorrupt},
		"not a list":         {func(ct *ColumnType) { ct.List = false }, ErrCorrupt},
		"list at level 0":    {func(ct *ColumnType) { ct.RepDef = 0 }, ErrCorrupt},
		"list above its max": {func(ct *ColumnType) { ct.RepDef = 4 }, ErrCorrupt},
		"level 64":           {func(ct *ColumnType) { ct.MaxDef = 64 }, ErrCorrupt},
		"length 0":           {func(ct *ColumnType) { ct.Physical = FixedLenByteArray }, ErrCorrupt},
		"negative length":    {func(ct *ColumnType) { ct.Physical, ct.TypeLength = FixedLenByteArray, -4 }, ErrCorrupt},
		"length too great": {func(ct *ColumnType) { ct.Physical, ct.TypeLength = FixedLenByteArray, maxTypeLength+1 },
			ErrCorrupt},
	} {
		ct := good
		c.lie(&ct)
		require.ErrorIs(t, ct.Validate(), c.want, name)
	}
}
