package resolve

import (
	"math"
	"strings"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/operator/int96time"
	rescaleop "github.com/millrace/millrace/fpga/operator/rescale"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/columntypes"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// Annotation returns what the chain's values stand for. It is empty if they are numbers, or if the operators so far
// have changed what the values count.
func (c *chain) Annotation() string {
	if !program.KeepsUnit(c.ops) {
		return ""
	}
	return c.column.Annotation()
}

// applyTime adds the operator that counts a time in seconds or days.
func (c *chain) applyTime(to int96time.TimeUnit) {
	word, annotation := c.Word("unit"), c.Annotation()
	if c.column.Reading == program.ReadSeconds && len(c.ops) == 0 {
		if word != "file" {
			c.Refuse(problem.ErrValue, "unit %s, and each partition says its own: it is %s; leave unit out", word,
				annotation)
			return
		}
		c.rescale(columntypes.TimeUnits["seconds"], to)
		return
	}
	if c.kind == program.Bytes {
		switch {
		case annotation != "INT96":
			c.Refuse(problem.ErrColumnType, "%s takes times, and %s", c.Name, c.describeNoTimes())
		case word != "file":
			c.Refuse(problem.ErrValue, "unit %s of INT96, which has days and nanoseconds; leave unit out", word)
		default:
			c.appendOp(int96time.Op{To: to})
			c.kind, c.ids, c.bounded = program.Int64, catalogue.AllIntegers, false
		}
		return
	}
	if c.kind != program.Int64 {
		c.Refuse(problem.ErrColumnType, "%s takes times kept as integers, and these are %v", c.Name, c.kind)
		return
	}
	unit, known := columntypes.TimeUnits[word]
	if !known {
		if unit, known = columntypes.TimeUnitOf(annotation); !known {
			c.Refuse(problem.ErrColumnType,
				"%s does not know what the values count: %s; say unit: seconds, millis, micros, nanos "+
					"or days", c.Name, c.describeIntegers())
			return
		}
		if to == int96time.Days && strings.HasPrefix(annotation, "TIME(") {
			c.Refuse(problem.ErrColumnType, "to_days of a time of day, which is less than a day: %s; write to_seconds",
				annotation)
			return
		}
	}
	c.rescale(unit, to)
}

// describeIntegers says what the file tells about a column of integers.
func (c *chain) describeIntegers() string {
	switch logical := c.Annotation(); {
	case logical != "":
		return "the column is " + logical
	case c.column.Logical != "":
		return "operators before it have changed " + c.column.Logical
	}
	return "the file calls them integers and nothing more"
}

// rescale adds the operator that counts times of a unit in seconds or days.
func (c *chain) rescale(unit columntypes.TimeUnit, to int96time.TimeUnit) {
	r := rescaleop.Op{Multiplier: unit.Seconds, Divisor: unit.PerSecond}
	if to == int96time.Days {
		if r.Divisor *= columntypes.SecondsOfDay; r.Multiplier > 1 { // from days to days
			r = rescaleop.Op{Multiplier: 1, Divisor: 1}
		}
	}
	if r.Multiplier == 1 && r.Divisor == 1 {
		return
	}
	c.appendOp(r)
	c.ids = catalogue.Range{Low: scaled(c.ids.Low, r), High: scaled(c.ids.High, r)}
}

// scaled returns what an operator makes of an end of a range. Values that do not fit int64 fail, so the end is then an
// end of int64.
func scaled(x int64, r rescaleop.Op) int64 {
	limit := math.MaxInt64 / r.Multiplier
	switch {
	case r.Multiplier == 1 && x%r.Divisor < 0:
		return x/r.Divisor - 1
	case r.Multiplier == 1:
		return x / r.Divisor
	case x > limit:
		return math.MaxInt64
	case x < -limit:
		return math.MinInt64
	}
	return x * r.Multiplier
}

// maxDecimalPrecision is the most digits of a decimal that is read: those of 32 bytes.
const maxDecimalPrecision = 76

// ReadVaried reads a column whose partitions store it in different types, if no operator has read it, and reports
// whether it did or refused to.
func (c *chain) ReadVaried(to program.Kind) bool {
	switch {
	case c.column.Class() == columntypes.NoClass || len(c.ops) > 0:
		return false
	case to == program.Int64 && !c.column.IDsAgree():
		c.Refuse(problem.ErrColumnType, "%s to int64 of partitions that differ in the scale: %s", c.Name, c.column.Logical)
	default:
		c.from.readBy(program.ReadValues, to)
		c.kind, c.ids = c.from.kind, c.from.ids
	}
	return true
}

// DecimalScale returns the scale of decimals, and refuses other values.
func (c *chain) DecimalScale() (scale uint8, ok bool) {
	annotation := c.Annotation()
	_, n, ok := columntypes.DecimalScale(annotation)
	switch {
	case !ok && c.kind == program.Bytes:
		c.Refuse(problem.ErrColumnType, "%s takes DECIMAL, and %s", c.Name, c.DescribeBytes())
	case !ok && c.kind == program.Int64:
		c.Refuse(problem.ErrColumnType, "%s takes DECIMAL: %s", c.Name, c.describeIntegers())
	case !ok:
		c.Refuse(problem.ErrColumnType, "%s takes DECIMAL, and these are %v", c.Name, c.kind)
	case !c.r.checkDecimal(annotation, c.Name+" takes", c.at):
		c.failed, ok = true, false
	}
	return uint8(n), ok
}
