package pipeline

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/operator"
)

// Catalogue returns the operators, in the order of their names.
func Catalogue() []catalogue.Entry {
	list := append(operator.Entries(), documentOperators()...)
	slices.SortFunc(list, func(a, b catalogue.Entry) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// operators is the catalogue by name.
var operators = func() map[string]*catalogue.Entry {
	m := make(map[string]*catalogue.Entry)
	list := Catalogue()
	for i := range list {
		m[list[i].Name] = &list[i]
	}
	return m
}()

// EntryOf returns the catalogue's entry of an operator, or nil if there is none of that name.
func EntryOf(operator string) *catalogue.Entry { return operators[operator] }

// operatorNames returns the names in the catalogue's order.
func operatorNames() []string {
	var names []string
	for _, o := range Catalogue() {
		names = append(names, o.Name)
	}
	return names
}
