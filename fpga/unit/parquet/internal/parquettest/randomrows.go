package parquettest

import (
	"math"
	"math/rand"

	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// RandomValue draws from a small or a large set, so that dictionaries and runs both happen.
func (c *Column) RandomValue(r *rand.Rand, few bool) any {
	x := r.Uint64()
	if few {
		x = uint64(r.Intn(5)) * 0x0123456789abcdef
	}
	switch c.Physical {
	case format.Boolean:
		return int64(x & 1)
	case format.Int32:
		if c.Unsigned {
			return int64(uint32(x))
		}
		return int64(int32(x))
	case format.Int64:
		return int64(x)
	case format.Float:
		return math.Float32frombits(uint32(x))
	case format.Double:
		return math.Float64frombits(x)
	case format.FixedLenByteArray, format.Int96:
		b := make([]byte, c.Length)
		rand.New(rand.NewSource(int64(x))).Read(b)
		return b
	}
	b := make([]byte, x%23)
	rand.New(rand.NewSource(int64(x))).Read(b)
	return b
}

// FillRandom fills the column with n rows.
func (c *Column) FillRandom(r *rand.Rand, n int, nulls float64, few bool) {
	maxDef, repDef := c.Shape.LevelBounds()
	streak := 0
	var last any
	value := func(nullable bool) any {
		if streak--; streak > 0 {
			return last
		}
		if r.Intn(30) == 0 {
			streak = r.Intn(60)
		}
		if last = c.RandomValue(r, few); nullable && r.Float64() < nulls {
			last = nil
		}
		return last
	}
	for range n {
		if repDef == 0 {
			c.Rows = append(c.Rows, value(maxDef > 0))
			continue
		}
		list := func() any {
			if repDef > 1 && c.Shape != ShapeInMapRequired && r.Float64() < nulls/2 {
				return nil
			}
			l := []any{}
			for range r.Intn(1 + r.Intn(12)) {
				l = append(l, value(maxDef > repDef))
			}
			return l
		}
		if entry := c.Shape.entryDef(); entry > 0 {
			var lists any
			if entry == 1 || r.Float64() >= nulls/2 {
				all := []any{}
				for range r.Intn(1 + r.Intn(9)) {
					all = append(all, list())
				}
				lists = all
			}
			c.Rows = append(c.Rows, lists)
			continue
		}
		c.Rows = append(c.Rows, list())
	}
}
