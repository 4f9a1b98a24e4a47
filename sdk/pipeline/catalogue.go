package pipeline

import (
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/operator"
	"github.com/millrace/millrace/sdk/pipeline/problem"
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

// suggestOperator is suggest for an operator that would be accepted in the place of got. It lists all operators if none
// is close.
func suggestOperator(got string, accepts func(name string) bool) string {
	if near := problem.SuggestAccepted(got, operatorNames(), accepts); strings.Contains(near, "did you mean") {
		return near
	}
	return "; want one of " + strings.Join(operatorNames(), ", ")
}
