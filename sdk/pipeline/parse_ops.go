package pipeline

import (
	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// ops reads a list of operators. An operator is written as a mapping of its name to its parameters, or as its name
// alone when it needs none. group is the mapping that has the operators.
func (p *parser) ops(n *yaml.Node, a problem.Place, group *yaml.Node) []Op {
	var ops []Op
	at := place{index: -1, inputs: p.inputsOf(group, a)}
	p.items(n, a, MaxOperators, "operators", func(n *yaml.Node, a problem.Place) {
		at.index++
		value := p.follow(n, a)
		switch {
		case value.Kind == yaml.ScalarNode && value.ShortTag() == "!!str":
			if o := p.operator(value.Value, nil, at, a); o != nil {
				ops = append(ops, Op{Name: o.Name, Pos: a.Pos})
			}
		case value.Kind == yaml.MappingNode && len(value.Content) == 2:
			key := p.follow(value.Content[0], a)
			if key.Kind != yaml.ScalarNode {
				p.Add(a, problem.ErrValue, "%s, want an operator's name", describe(key))
				return
			}
			here := a
			here.Pos = position(value.Content[0])
			if o := p.operator(key.Value, value.Content[1], at, here); o != nil {
				in := a.Key(o.Name, position(value.Content[1]))
				ops = append(ops, Op{Name: o.Name, Args: p.args(o, value.Content[1], in), Pos: here.Pos})
			}
		case value.Kind == yaml.MappingNode:
			p.Add(a, problem.ErrValue, "a mapping of %d, want one operator and its parameters", len(value.Content)/2)
		default:
			p.Add(a, problem.ErrValue, "%s, want an operator", describe(value))
		}
	})
	return ops
}

// inputsOf returns as many patterns as a mapping has inputs. It reads nothing of them: that is done elsewhere.
func (p *parser) inputsOf(group *yaml.Node, a problem.Place) []Pattern {
	group = p.follow(group, a)
	for i := 0; i+1 < len(group.Content); i += 2 {
		if inputs := group.Content[i+1]; group.Content[i].Value == "inputs" {
			return make([]Pattern, min(len(inputs.Content), MaxPatterns))
		}
	}
	return nil
}

// operator looks a name up.
func (p *parser) operator(name string, params *yaml.Node, at place, a problem.Place) *catalogue.Entry {
	o := operators[name]
	if o == nil {
		p.Add(a, problem.ErrUnknownOperator, "%q%s", problem.Shorten(name), suggestOperator(name, func(name string) bool {
			trial := *p
			trial.Errors = nil
			op := Op{Name: name}
			if params != nil {
				op.Args = trial.args(operators[name], params, a)
			}
			checkOperator(&trial.List, &op, at, a)
			return len(trial.Errors) == 0
		}))
	}
	return o
}

// args reads an operator's parameters: a mapping, nothing, or the value of the only parameter.
func (p *parser) args(o *catalogue.Entry, n *yaml.Node, a problem.Place) []Arg {
	value := p.follow(n, a)
	if value.Kind == yaml.ScalarNode && value.ShortTag() == "!!null" {
		return nil
	}
	if short := o.Lone(); short != nil && value.Kind != yaml.MappingNode {
		if v := p.value(short, value, a); v != nil {
			return []Arg{{Name: short.Name, Value: v, Pos: a.Pos}}
		}
		return nil
	}
	if len(o.Params) == 0 && (value.Kind != yaml.MappingNode || len(value.Content) > 0) {
		p.Add(a, problem.ErrUnknownParam, "%s takes no parameters", o.Name)
		return nil
	}
	names := make([]string, len(o.Params))
	for i := range o.Params {
		names[i] = o.Params[i].Name
	}
	var args []Arg
	p.members(value, a, problem.ErrUnknownParam, names, func(key string, n *yaml.Node, a problem.Place) {
		if v := p.value(o.Param(key), n, a); v != nil {
			args = append(args, Arg{Name: key, Value: v, Pos: a.Pos})
		}
	})
	return args
}

// value reads a parameter's value. It returns nil if the value is not of the parameter's type. Ranges are checked
// later.
func (p *parser) value(param *Param, n *yaml.Node, a problem.Place) Value {
	switch param.Type {
	case ParamTable:
		return p.table(n, a)
	case ParamTextTable:
		return p.textTable(n, a)
	case ParamWords:
		words := Words{}
		p.items(n, a, MaxPatterns, "words", func(n *yaml.Node, a problem.Place) {
			words = append(words, p.text(n, a, "a word"))
		})
		return words
	case ParamChoice, ParamText:
		if t := p.text(n, a, "a word"); t != "" {
			return Text(t)
		}
	case ParamBorders:
		return p.borders(n, a)
	default:
		if x, ok := p.number(n, a); ok {
			return x
		}
	}
	return nil
}

func (p *parser) borders(n *yaml.Node, a problem.Place) Value {
	value := p.follow(n, a)
	b := Borders{Pos: a.Pos}
	if value.Kind == yaml.SequenceNode {
		for i, item := range value.Content {
			if p.stopped() {
				break
			}
			// Lists are long: the location of an element is computed only for an error.
			x, ok := numberOf(p.follow(item, a))
			if !ok {
				x, _ = p.number(item, a.Index(i, position(item)))
			}
			b.List = append(b.List, x)
		}
		return b
	}
	if value.Kind != yaml.MappingNode {
		p.Add(a, problem.ErrValue, "%s, want a list of numbers, or log_spaced: {from, to, count}", describe(value))
		return nil
	}
	p.members(value, a, problem.ErrUnknownParam, []string{"log_spaced"}, func(_ string, n *yaml.Node, a problem.Place) {
		b.LogSpaced = p.logSpaced(n, a)
	})
	if b.LogSpaced == nil && len(p.Errors) == 0 {
		p.Add(a, problem.ErrMissing, "log_spaced")
	}
	return b
}

func (p *parser) logSpaced(n *yaml.Node, a problem.Place) *LogSpaced {
	l := &LogSpaced{}
	given := make(map[string]bool)
	names := []string{"from", "to", "count"}
	if !p.members(n, a, problem.ErrUnknownParam, names, func(key string, n *yaml.Node, a problem.Place) {
		given[key] = true
		x, ok := p.number(n, a)
		switch {
		case !ok:
		case key == "from":
			l.From = x.Real()
		case key == "to":
			l.To = x.Real()
		case !x.Integer || x.Int < 2 || x.Int > program.MaxBorders:
			p.Add(a, problem.ErrValue, "%s, want a whole number from 2 to %d", x, program.MaxBorders)
		default:
			l.Count = int(x.Int)
		}
	}) {
		return nil
	}
	for _, name := range names {
		if !given[name] && !p.stopped() {
			p.Add(a, problem.ErrMissing, "%s", name)
		}
	}
	return l
}
