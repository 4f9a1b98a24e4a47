package wasm

import (
	"math"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/catalogue"
	"github.com/millrace/millrace/fpga/program"
)

// Entry is what the catalogue says of the operator.
var Entry = catalogue.Entry{
	Name: "wasm", Unit: Unit, Inputs: 1, MaxInputs: program.MaxInputs,
	Example: "- wasm: {module: features, function: add_and_clamp, in: [int64, int64], out: int64}",
	Summary: "Calls an exported function of a WebAssembly module for each row. What it yields depends on the row's " +
		"inputs only: memory and globals of the module are as at first before each row. A NaN that arithmetic makes is " +
		"the canonical one (7fc00000h, 7ff8000000000000h), so the bits are the same everywhere.",
	Params: []catalogue.Param{
		{Name: "module", Type: catalogue.ParamText,
			Summary: "name of the module, whose file `--wasm NAME=FILE` gives, or in Python `modules={NAME: FILE}`"},
		{Name: "function", Type: catalogue.ParamText, Summary: "name of the exported function"},
		{Name: "in", Type: catalogue.ParamWords, Choices: kindNames,
			Summary: "kinds of its parameters, one an input: int64 is i64, float32 f32 and float64 f64"},
		{Name: "out", Type: catalogue.ParamChoice, Choices: kindNames, Summary: "kind of its result"},
	},
	Takes: "1 to 8 inputs, one value a row; int64 becomes float32 or float64, and float32 and float64 each other, " +
		"where `in` says so (nearest, ties to even)",
	Yields: "`out`; ids are not bounded, so end keys with `positive_modulus`, `clamp` or a hash",
	Nulls:  "null if one of the inputs is, and the function is not called",
	Lists:  "refused",
	Errors: "the module is not at hand, or is refused: it is damaged, or larger than the limits, imports something, " +
		"or the function is not exported with these kinds, calls itself, or calls through a table. A row for which the " +
		"function traps fails the split: division by 0, an address outside the memory, more than 131072 instructions",
	Source:  "ours; WebAssembly 1.0 with sign extension and conversions that do not trap",
	Check:   check,
	Combine: combine,
}

// kindNames are the names of the kinds of values that functions take and yield.
var kindNames = []string{"int64", "float32", "float64"}

// kindOf returns the kind of a name.
func kindOf(name string) program.Kind {
	return []program.Kind{program.Int64, program.Float32, program.Float64}[slices.Index(kindNames, name)]
}

func check(c catalogue.Check) {
	in, _ := c.Given("in")
	if n := len(in.(catalogue.Words)); n == 0 || n > program.MaxInputs {
		c.Wrong("in", catalogue.ErrValue, "%d kinds, want that of each input, 1 to %d", n, program.MaxInputs)
	}
	function, _ := c.Given("function")
	if name := string(function.(catalogue.Text)); name == "" || len(name) > MaxName || strings.ContainsRune(name, 0) {
		c.Wrong("function", catalogue.ErrValue, "a name of %d bytes, want 1 to %d and no NUL", len(name), MaxName)
	}
}

// combine calls a function of a module for each row.
func combine(c catalogue.Combination) {
	in := c.Value("in").(catalogue.Words)
	if len(in) != c.Inputs() {
		c.RefuseParameter("in", catalogue.ErrValue, "%d kinds, and the inputs are %d", len(in), c.Inputs())
		return
	}
	call := Op{Function: c.Word("function"), Out: kindOf(c.Word("out"))}
	taken := true
	for i, name := range in {
		call.In[i] = kindOf(name)
		if c.IsList(i) {
			c.Refuse(i, catalogue.ErrColumnType, "wasm takes one value a row, and these are lists")
			taken = false
			continue
		}
		taken = c.Take(i, call.In[i]) && taken
	}
	if !taken {
		return
	}
	var ok bool
	if call.Module, ok = c.Module("module"); ok {
		c.Yield(call, catalogue.Range{Low: math.MinInt64, High: math.MaxInt64}, false, false)
	}
}
