package pipeline

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// table reads a table of ids: a list of values, or a mapping of keys to values. Keys may stand in quotes, as JSON has
// them.
func (p *parser) table(n *yaml.Node, a problem.Place) Value {
	value := p.follow(n, a)
	switch {
	case value.Kind == yaml.SequenceNode && len(value.Content) <= program.MaxBorders:
		t := IDTable{Values: make([]int64, 0, len(value.Content))}
		for i, item := range value.Content {
			if p.stopped() {
				break
			}
			t.Values = append(t.Values, p.integer(item, a, i))
		}
		return t
	case value.Kind == yaml.MappingNode && len(value.Content) <= 2*program.MaxBorders:
		return p.pairs(value, a)
	case value.Kind == yaml.SequenceNode, value.Kind == yaml.MappingNode:
		p.Add(a, problem.ErrValue, "a table of more than %d values", program.MaxBorders)
	default:
		p.Add(a, problem.ErrValue, "%s, want a mapping of ids to ids, or a list of ids", describe(value))
	}
	return nil
}

// pairs reads a mapping of ids to ids and orders it by its keys.
func (p *parser) pairs(n *yaml.Node, a problem.Place) Value {
	keys, values, ok := readPairs(p, n, a, "a whole number", keyOf)
	if !ok {
		return nil
	}
	return IDTable{Keys: keys, Values: values}
}

// textTable reads a table of texts: a mapping of texts to whole numbers.
func (p *parser) textTable(n *yaml.Node, a problem.Place) Value {
	value := p.follow(n, a)
	switch {
	case value.Kind != yaml.MappingNode:
		p.Add(a, problem.ErrValue, "%s, want a mapping of texts to whole numbers", describe(value))
		return nil
	case len(value.Content) > 2*program.MaxTexts:
		p.Add(a, problem.ErrValue, "a table of more than %d texts", program.MaxTexts)
		return nil
	}
	keys, values, ok := readPairs(p, value, a, "text; put it in quotes", func(n *yaml.Node) (string, bool) {
		return n.Value, n.Kind == yaml.ScalarNode && n.ShortTag() == "!!str"
	})
	if !ok {
		return nil
	}
	return TextTable{Keys: keys, Values: values}
}

// readPairs reads a mapping of keys to whole numbers and orders it by its keys. want says what keys are, and read reads
// one. ok is false if a key occurs twice.
func readPairs[K cmp.Ordered](p *parser, n *yaml.Node, a problem.Place, want string,
	read func(n *yaml.Node) (K, bool)) (keys []K, values []int64, ok bool) {
	type pair struct {
		key   K
		value int64
		at    *yaml.Node
	}
	pairs := make([]pair, 0, len(n.Content)/2)
	for i := 0; i+1 < len(n.Content) && !p.stopped(); i += 2 {
		key, ok := read(p.follow(n.Content[i], a))
		if !ok {
			p.Add(a.Key(problem.Shorten(n.Content[i].Value), position(n.Content[i])), problem.ErrValue, "%s as a key, want %s",
				describe(n.Content[i]), want)
			continue
		}
		pairs = append(pairs, pair{key, p.integer(n.Content[i+1], a, i/2), n.Content[i]})
	}
	slices.SortStableFunc(pairs, func(x, y pair) int { return cmp.Compare(x.key, y.key) })
	keys, values = make([]K, 0, len(pairs)), make([]int64, 0, len(pairs))
	for i, x := range pairs {
		if i > 0 && x.key == pairs[i-1].key {
			name := problem.Shorten(fmt.Sprint(x.key))
			p.Add(a.Key(name, position(x.at)), problem.ErrDuplicate, "key %s", name)
			return nil, nil, false
		}
		keys, values = append(keys, x.key), append(values, x.value)
	}
	return keys, values, true
}

// keyOf reads a key of a table.
func keyOf(n *yaml.Node) (int64, bool) {
	if x, ok := numberOf(n); ok {
		return x.Int, x.Integer
	}
	if n.Kind != yaml.ScalarNode || n.ShortTag() != "!!str" {
		return 0, false
	}
	key, err := strconv.ParseInt(n.Value, 10, 64)
	return key, err == nil
}

// integer reads a whole number, element i of what lies at a. Tables are long: the location of an element is computed
// only for an error.
func (p *parser) integer(n *yaml.Node, a problem.Place, i int) int64 {
	x, ok := numberOf(p.follow(n, a))
	switch {
	case !ok:
		p.number(n, a.Index(i, position(n)))
	case !x.Integer:
		p.Add(a.Index(i, position(n)), problem.ErrValue, "%s, want a whole number", x)
	}
	return x.Int
}
