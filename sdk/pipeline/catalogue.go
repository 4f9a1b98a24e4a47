package pipeline

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/catalogue"
)

// Operator is the catalogue's entry of an operator, and the functions by which this package applies it.
type Operator struct {
	catalogue.Entry

	// check, apply and combine are Check, Apply and Combine of the entry, as this package calls them.
	check   func(p *problems, o *Op, a location)
	apply   func(c *chain, o *Op, a location)
	combine func(c *combination, o *Op, a location)
}

// short returns the parameter that may be written alone, as in fill_null: 0, or nil if there is none. An operator has
// one if it has a single parameter and that has no default, or if the first of its parameters says so.
func (o *Operator) short() *Param {
	if len(o.Params) == 1 && o.Params[0].Default == nil || len(o.Params) > 1 && o.Params[0].Alone {
		return &o.Params[0]
	}
	return nil
}

// param returns the parameter of a name, or nil if there is none.
func (o *Operator) param(name string) *Param {
	for i := range o.Params {
		if o.Params[i].Name == name {
			return &o.Params[i]
		}
	}
	return nil
}

// Catalogue returns the operators, in the order of their names.
func Catalogue() []Operator {
	list := append(entries(), documentOperators()...)
	slices.SortFunc(list, func(a, b Operator) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// operators is the catalogue by name.
var operators = func() map[string]*Operator {
	m := make(map[string]*Operator)
	list := Catalogue()
	for i := range list {
		m[list[i].Name] = &list[i]
	}
	return m
}()

// operatorNames returns the names in the catalogue's order.
func operatorNames() []string {
	var names []string
	for _, o := range Catalogue() {
		names = append(names, o.Name)
	}
	return names
}

// estimateCost returns the estimated nanoseconds of one core for a value, and whether there is an estimate.
func (o *Op) estimateCost() (nanoseconds float64, known bool) {
	entry := operators[o.Name]
	if entry == nil || entry.Cost == nil {
		return 0, false
	}
	return entry.Cost(o), true
}
