package pipeline

import (
	"crypto/sha256"
	"errors"
	"math"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
)

// ErrModule says that a WebAssembly module is not there, or has no such function.
var ErrModule = errors.New("module does not fit")

// Module is a WebAssembly module with operators of one's own, by the name that pipelines give it.
type Module struct {
	Name  string
	Bytes []byte
}

// BindModule returns the spec with a module that its operators may name. The receiver does not change.
func (s *Spec) BindModule(m Module) (*Spec, error) {
	if !slices.Contains(s.moduleNames(), m.Name) {
		var p problems
		p.add(location{}, ErrModule, "no operator of the pipeline names module %q%s", shorten(m.Name),
			suggestAccepted(m.Name, s.moduleNames(), func(string) bool { return true }))
		return nil, p.err()
	}
	bound := *s
	bound.Modules = append(slices.DeleteFunc(slices.Clone(s.Modules), func(o Module) bool { return o.Name == m.Name }), m)
	return &bound, nil
}

// moduleNames returns the modules that operators name, each once.
func (s *Spec) moduleNames() (names []string) {
	see := func(ops []Op) {
		for i := range ops {
			if ops[i].Name != wasmOperator {
				continue
			}
			if a, ok := ops[i].arg("module"); ok {
				if name, ok := a.Value.(Text); ok && !slices.Contains(names, string(name)) {
					names = append(names, string(name))
				}
			}
		}
	}
	for i := range s.Values {
		see(s.Values[i].Ops)
	}
	for _, k := range s.groupLists() {
		for i := range k.groups {
			see(k.groups[i].Ops)
		}
	}
	return names
}

// wasmOperator is the name of the operator that calls a function of a module.
const wasmOperator = "wasm"

// wasmKinds are the kinds of values that functions take and yield.
var wasmKinds = map[string]struct {
	program program.Kind
	unit    format.Kind
}{
	"int64":   {program.Int64, format.Int64},
	"float32": {program.Float32, format.Float32},
	"float64": {program.Float64, format.Float64},
}

// wasmKindNames are the names of wasmKinds.
func wasmKindNames() []string { return []string{"int64", "float32", "float64"} }

func checkWasm(p *problems, o *Op, a location) {
	in, _ := o.arg("in")
	if n := len(in.Value.(Words)); n == 0 || n > program.MaxInputs {
		p.add(a.key("in", firstPos(in.Pos, a.pos)), ErrValue, "%d kinds, want that of each input, 1 to %d", n,
			program.MaxInputs)
	}
	function, _ := o.arg("function")
	if name := string(function.Value.(Text)); name == "" || len(name) > program.MaxFunctionName ||
		strings.ContainsRune(name, 0) {
		p.add(a.key("function", firstPos(function.Pos, a.pos)), ErrValue, "a name of %d bytes, want 1 to %d and no NUL",
			len(name), program.MaxFunctionName)
	}
}

// combineWasm calls a function of a module for each row.
func combineWasm(c *combination, o *Op, a location) {
	at := func(name string) location {
		arg, _ := o.arg(name)
		return a.key(wasmOperator, a.pos).key(name, firstPos(arg.Pos, a.pos))
	}
	in := c.chain.value(o, "in").(Words)
	if len(in) != len(c.inputs) {
		c.refuse(at("in"), ErrValue, "%d kinds, and the inputs are %d", len(in), len(c.inputs))
		return
	}
	call := program.Wasm{Function: c.word(o, "function"), Out: wasmKinds[c.word(o, "out")].program}
	signature := format.Signature{Out: wasmKinds[c.word(o, "out")].unit}
	for i, name := range in {
		call.In[i] = wasmKinds[name].program
		signature.In = append(signature.In, wasmKinds[name].unit)
		c.convertInput(o, i, call.In[i])
	}
	if c.failed {
		return
	}
	name := c.word(o, "module")
	module, ok := c.r.modules[name]
	if !ok {
		c.refuse(at("module"), ErrModule, "there is no file for %q: name it with --wasm %s=FILE", shorten(name),
			shorten(name))
		return
	}
	if _, err := format.Rewrite(module, call.Function, signature); err != nil {
		c.refuse(at("function"), ErrModule, "%q: %s", shorten(name), strings.TrimPrefix(err.Error(), "wasm module: "))
		return
	}
	call.Module = sha256.Sum256(module)
	if c.r.used == nil {
		c.r.used = program.Modules{}
	}
	c.r.used[call.Module] = module
	c.yield(call, idRange{math.MinInt64, math.MaxInt64}, false)
}

// convertInput brings an input to the kind that a function takes.
func (c *combination) convertInput(o *Op, i int, to program.Kind) {
	in := chain{r: c.r, column: &c.inputs[i].column, kind: c.inputs[i].kind, ops: slices.Clone(c.inputs[i].ops)}
	switch {
	case in.column.List:
		in.refuse(c.places[i], ErrColumnType, "wasm takes one value a row, and these are lists")
	case to == program.Int64:
		in.requireIntegers(o, c.places[i])
	case in.requireNumbers(o, c.places[i]):
		in.convert(to)
		c.inputs[i].ops, c.inputs[i].kind = in.ops, in.kind
	}
	c.failed = c.failed || in.failed
}
