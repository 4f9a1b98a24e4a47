package catalogue

import (
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/program"
)

// ErrStatistics says that statistics lack what an operator takes from them.
var ErrStatistics = errors.New("statistics do not fit")

// StatisticsParameter is the parameter of operators that names statistics of the document.
const StatisticsParameter = "statistics"

// Statistics are numbers of the values that a chain has made so far. A number is nil if no value is finite.
type Statistics struct {
	Mean, Deviation, Min, Max, Median *float64
	Value                             string // The name of the value.
	Name                              string // The name of the statistics.
}

// Origin names the value and the statistics, for an error.
func (s *Statistics) Origin() string { return fmt.Sprintf("%s in %q", s.Value, s.Name) }

// Require returns a number of the statistics. It refuses statistics that lack the number, for which why gives the
// reason, and numbers that are neither 0 nor in the range of normal float32 numbers.
func (s *Statistics) Require(c Chain, x *float64, what, why string) (number float64, ok bool) {
	switch {
	case x == nil:
		c.Refuse(ErrStatistics, "%q has no %s of %s: %s", s.Name, what, s.Value, why)
		return 0, false
	case !program.InNormalRange(*x):
		c.Refuse(ErrStatistics, "the %s of %s is %v, want 0 or a number of 1.2e-38 to 3.4e38, or its negative", what,
			s.Origin(), *x)
		return 0, false
	}
	return *x, true
}

// CheckNormalRange refuses parameters that are neither 0 nor in the range of normal float32 numbers.
func CheckNormalRange(c Check, names ...string) {
	for _, name := range names {
		v, _ := c.Given(name)
		if x, ok := v.(Number); ok && !program.InNormalRange(x.Real()) {
			c.Wrong(name, ErrValue, "%s, want 0 or a number of 1.2e-38 to 3.4e38, or its negative", x)
		}
	}
}
