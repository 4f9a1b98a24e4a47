package bucketize

import (
	"fmt"
	"math"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "bucketize", Unit: Unit,
	Example: "- bucketize: {borders: [0.5, 1, 1.5], side: left}",
	Cost:    catalogue.Costs(1.6),
	Reads:   reads,
	Summary: "The number of the bucket that a value falls into, 0 to the number of borders.",
	Params: []catalogue.Param{
		{Name: "borders", Type: catalogue.ParamBorders,
			Summary: "a list of numbers that does not decrease, or `{log_spaced: {from, to, count}}`"},
		{Name: "side", Type: catalogue.ParamChoice, Default: catalogue.Text("left"), Choices: []string{"left", "right"},
			Summary: "bucket of a value on a border: the one below it (left) or above it (right)"},
		{Name: "nan", Type: catalogue.ParamChoice, Default: catalogue.Text("torcharrow"),
			Choices: []string{"torcharrow", "first", "last", "error"},
			Summary: "bucket of a NaN; `torcharrow` is 0 with one border, else 1; `error` fails the split"},
		{Name: "compare", Type: catalogue.ParamChoice, Default: catalogue.Text("float32"),
			Choices: []string{"float32", "float64", "int64"}, Summary: "type in which value and border are compared"},
	},
	Takes: "int64, float32, float64, converted to `compare` (nearest, ties to even); `int64` takes int64 " +
		"alone",
	Yields: "int64",
	Nulls:  "stay null",
	Lists:  "element by element",
	Errors: "no borders; borders that decrease, are not numbers, or do not fit `compare`; `compare: int64` " +
		"with a border that is not whole, with log_spaced borders or with a column that is not int64",
	Source: "TorchArrow `bucketize` (float32, left: equal borders as there); `side: right` is NVTabular's " +
		"Bucketize and np.digitize, with `compare: float64`. `compare: int64` is TorchArrow's for lists of " +
		"whole numbers",
	Apply: apply,
}

// reads returns how the operator uses a column.
func reads(a catalogue.Arguments) catalogue.Use {
	switch compare, _ := a.Given("compare"); compare {
	case catalogue.Text("int64"):
		return catalogue.UsedAsIDs
	case catalogue.Text("float64"):
		return catalogue.UsedAsFloat64
	}
	return catalogue.UsedAsFloat32
}

// The meanings of the words.
var (
	compareKinds = map[string]program.Kind{"float32": program.Float32, "float64": program.Float64,
		"int64": program.Int64}
	sides    = map[string]Side{"left": Left, "right": Right}
	nanRules = map[string]NaN{"torcharrow": NaNTorchArrow, "first": NaNFirst, "last": NaNLast, "error": NaNError}
)

// sharedOp identifies operators whose borders are the same memory.
type sharedOp struct {
	first   *catalogue.Number   // It is the first number of a list; nil for computed borders.
	spaced  catalogue.LogSpaced // It makes computed borders.
	compare program.Kind
	side    Side
	nan     NaN
}

func apply(c catalogue.Chain) {
	if !c.RequireNumbers() {
		return
	}
	compare := compareKinds[c.Word("compare")]
	if compare == program.Int64 && c.Kind() != program.Int64 {
		c.Refuse(catalogue.ErrColumnType, "compare: int64 takes int64, and these are %v", c.Kind())
		return
	}
	borders := c.Value("borders").(catalogue.Borders)
	key := sharedOp{compare: compare, side: sides[c.Word("side")], nan: nanRules[c.Word("nan")]}
	n := len(borders.List)
	if borders.LogSpaced != nil {
		key.spaced, n = *borders.LogSpaced, borders.LogSpaced.Count
	} else {
		key.first = &borders.List[0]
	}
	op, err := c.Shared(key, func() (program.Op, error) {
		if err := c.CountNumbers(key, n); err != nil {
			return nil, err
		}
		o := &Op{Side: key.side, NaN: key.nan}
		if borders.LogSpaced != nil {
			return o, o.convertLogSpaced(*borders.LogSpaced, compare)
		}
		return o, o.convertList(borders.List, compare)
	})
	if err != nil {
		c.Refuse(catalogue.ErrValue, "%v", err)
		return
	}
	c.Convert(compare)
	c.Append(op)
	c.SetIDs(catalogue.Range{High: int64(n)}, true)
}

// convertList converts borders that were written out.
func (o *Op) convertList(list []catalogue.Number, compare program.Kind) error {
	for i, x := range list {
		switch compare {
		case program.Int64:
			if !x.Integer {
				return fmt.Errorf("border %d (%s) must be whole to compare as int64", i, x)
			}
			o.BordersInt = append(o.BordersInt, x.Int)
		case program.Float64:
			o.Borders64 = append(o.Borders64, x.Real())
		default:
			y := x.Float32()
			if math.IsInf(float64(y), 0) && !math.IsInf(x.Real(), 0) {
				return fmt.Errorf("border %d (%s) does not fit float32", i, x)
			}
			o.Borders32 = append(o.Borders32, y)
		}
	}
	return nil
}

// convertLogSpaced computes borders and converts them.
func (o *Op) convertLogSpaced(l catalogue.LogSpaced, compare program.Kind) error {
	if compare == program.Int64 {
		return fmt.Errorf("log_spaced borders are real numbers: compare as float32 or float64")
	}
	exact, err := l.Exact()
	if err != nil {
		return err
	}
	for i, x := range exact {
		if compare == program.Float64 {
			y, _ := x.Float64()
			o.Borders64 = append(o.Borders64, y)
			continue
		}
		y, _ := x.Float32()
		if math.IsInf(float64(y), 0) || y == 0 {
			return fmt.Errorf("border %d (%s) does not fit float32", i, x.Text('g', 6))
		}
		o.Borders32 = append(o.Borders32, y)
	}
	return nil
}
