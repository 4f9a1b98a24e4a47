package pipeline

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/unit/wasm/format"
	"github.com/millrace/millrace/sdk/pipeline/problem"
)

// Module is a WebAssembly module with operators of one's own, by the name that pipelines give it.
type Module struct {
	Name  string
	Bytes []byte // nil: they are not at hand, and Digest names the module
	// Digest is the SHA-256 of a module whose Bytes are nil. It is not read otherwise.
	Digest program.ModuleDigest
}

// Sum returns the SHA-256 of the module.
func (m *Module) Sum() program.ModuleDigest {
	if m.Bytes == nil {
		return m.Digest
	}
	return sha256.Sum256(m.Bytes)
}

// BindModule returns the spec with a module that its operators may name. The receiver does not change. If the bytes of
// the module are at hand, it must have the functions that the operators call. Without them the spec can be resolved and
// lowered all the same; an engine that runs the program checks its functions. The error is of type [Errors].
func (s *Spec) BindModule(m Module) (*Spec, error) {
	var p problem.List
	names := s.moduleNames()
	if !slices.Contains(names, m.Name) {
		p.Add(problem.Place{}, problem.ErrModule, "no operator of the pipeline names module %q%s", problem.Shorten(m.Name),
			problem.Suggest(m.Name, names))
	}
	if m.Bytes != nil {
		called := calledFunctions{errs: map[string]error{}}
		called.module, called.err = format.Parse(m.Bytes)
		s.eachModuleCall(func(name string, o *Op, a problem.Place) {
			if name == m.Name {
				checkFunction(&p, &called, name, o, a)
			}
		})
	}
	if err := p.Err(); err != nil {
		return nil, err
	}
	bound := *s
	bound.Modules = append(slices.DeleteFunc(slices.Clone(s.Modules), func(o Module) bool { return o.Name == m.Name }), m)
	return &bound, nil
}

// eachModuleCall calls f with every operator that calls a function of a module, and its place.
func (s *Spec) eachModuleCall(f func(module string, o *Op, a problem.Place)) {
	s.eachChain(func(ops []Op, a problem.Place) {
		for i := range ops {
			if ops[i].Name != wasmOperator {
				continue
			}
			if module, ok := ops[i].Argument("module"); ok {
				if name, ok := module.Value.(Text); ok {
					f(string(name), &ops[i], a.Index(i, ops[i].Pos))
				}
			}
		}
	})
}

// moduleNames returns the modules that operators name, each once.
func (s *Spec) moduleNames() (names []string) {
	s.eachModuleCall(func(name string, _ *Op, _ problem.Place) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	})
	return names
}

// calledFunctions checks the functions of a module that a pipeline calls, each once.
type calledFunctions struct {
	module *format.Module
	err    error            // Why the module cannot be read, or its functions take too much together.
	errs   map[string]error // The functions that were checked, by name and signature.
	total  format.Total
}

// whyRefused returns why a function cannot be called, or nil.
func (c *calledFunctions) whyRefused(function string, of format.Signature) error {
	key := function + of.String()
	err, checked := c.errs[key]
	if !checked && c.err == nil && len(c.errs) == format.MaxProgramFunctions {
		c.err = fmt.Errorf("more than %d functions", format.MaxProgramFunctions)
	}
	if checked || c.err != nil {
		return cmp.Or(err, c.err)
	}
	rewritten, err := c.module.Rewrite(function, of)
	if c.errs[key] = err; err == nil {
		c.err = c.total.Add(rewritten)
	}
	return cmp.Or(err, c.err)
}

// checkFunction checks that a module has the function that an operator calls. It passes over an operator whose
// parameters are missing or have other types, which resolving the spec refuses.
func checkFunction(p *problem.List, functions *calledFunctions, name string, o *Op, a problem.Place) {
	function, _ := o.Argument("function")
	in, _ := o.Argument("in")
	out, _ := o.Argument("out")
	if function == nil || in == nil || out == nil {
		return
	}
	called, isText := function.Value.(Text)
	kinds, areWords := in.Value.(Words)
	yields, isWord := out.Value.(Text)
	if !isText || !areWords || !isWord {
		return
	}
	signature := format.Signature{Out: wasmKinds[string(yields)]}
	for _, kind := range kinds {
		signature.In = append(signature.In, wasmKinds[kind])
	}
	if err := functions.whyRefused(string(called), signature); err != nil {
		at := a.Key(wasmOperator, a.Pos).Key("function", function.Pos)
		p.Add(at, problem.ErrModule, "%q: %s", problem.Shorten(name), strings.TrimPrefix(err.Error(), "wasm module: "))
	}
}

// wasmOperator is the name of the operator that calls a function of a module.
const wasmOperator = "wasm"

// wasmKinds are the kinds of values that functions take and yield.
var wasmKinds = map[string]format.Kind{"int64": format.Int64, "float32": format.Float32, "float64": format.Float64}
