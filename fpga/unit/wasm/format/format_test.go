package format_test

import (
	"bytes"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/unit/wasm/format"
	w "github.com/millrace/millrace/fpga/unit/wasm/wasmtest"
)

// one is the signature of the functions of these tests.
var one = format.Signature{In: []format.Kind{format.Int64}, Out: format.Int64}

// function returns a function of one integer.
func function(name string, code ...[]byte) w.Function {
	return w.Function{Name: name, Params: []byte{w.I64}, Results: []byte{w.I64}, Code: w.Code(code...)}
}

// chain returns n functions, of which each calls the next.
func chain(n int) (list []w.Function) {
	for i := range n {
		f := function("", w.Get(0))
		if i+1 < n {
			f.Code = w.Code(w.Get(0), w.Unsigned([]byte{0x10}, uint64(i+1)))
		}
		list = append(list, f)
	}
	list[0].Name = "f"
	return list
}

// many returns f, and functions that nothing calls, n in all.
func many(n int) []w.Function {
	list := []w.Function{function("f", w.Get(0))}
	for len(list) < n {
		list = append(list, w.Function{})
	}
	return list
}

// blocks returns n blocks, each in the one before.
func blocks(n int) []byte {
	return w.Code(bytes.Repeat([]byte{0x02, 0x40}, n), bytes.Repeat([]byte{0x0b}, n), w.Get(0))
}

// section returns a section.
func section(id byte, content ...byte) []byte {
	return append(w.Unsigned([]byte{id}, uint64(len(content))), content...)
}

// TestLimits holds every limit from both sides.
func TestLimits(t *testing.T) {
	identity := function("f", w.Get(0))
	cases := map[string]struct {
		inside, outside []byte
		want            string
	}{
		"bytes": {
			append(w.Module{Functions: many(1)}.Bytes(), section(0, append([]byte{0}, make([]byte, 1000)...)...)...),
			append(w.Module{Functions: many(1)}.Bytes(), make([]byte, format.MaxModule)...), "want at most 1048576",
		},
		"pages": {
			w.Module{Functions: many(1), Pages: format.MaxPages}.Bytes(),
			w.Module{Functions: many(1), Pages: format.MaxPages + 1}.Bytes(), "a memory of 17 pages, want at most 16",
		},
		"functions": {
			w.Module{Functions: many(1000)}.Bytes(), w.Module{Functions: many(format.MaxTypes + 1)}.Bytes(),
			"1025 types, want at most 1024",
		},
		"chain of calls": {
			w.Module{Functions: chain(format.MaxCalls)}.Bytes(), w.Module{Functions: chain(format.MaxCalls + 1)}.Bytes(),
			"more than 64 functions that call each other in a chain",
		},
		"code": {
			w.Module{Functions: []w.Function{function("f", bytes.Repeat([]byte{1}, format.MaxCode-100), w.Get(0))}}.Bytes(),
			w.Module{Functions: []w.Function{function("f", bytes.Repeat([]byte{1}, format.MaxCode), w.Get(0))}}.Bytes(),
			"more than 65536 bytes of code",
		},
		"blocks in blocks": {
			w.Module{Functions: []w.Function{function("f", blocks(format.MaxNesting-1))}}.Bytes(),
			w.Module{Functions: []w.Function{function("f", blocks(format.MaxNesting))}}.Bytes(),
			"more than 256 blocks in blocks",
		},
		"locals": {
			w.Module{Functions: []w.Function{{Name: "f", Params: []byte{w.I64}, Results: []byte{w.I64}, Code: w.Get(0),
				Locals: bytes.Repeat([]byte{w.I64}, format.MaxLocals-1)}}}.Bytes(),
			w.Module{Functions: []w.Function{{Name: "f", Params: []byte{w.I64}, Results: []byte{w.I64}, Code: w.Get(0),
				Locals: bytes.Repeat([]byte{w.I64}, format.MaxLocals)}}}.Bytes(),
			"more than 2048 locals",
		},
		"locals of a function that is not reached": {
			besides(1, format.MaxLocals), besides(1, format.MaxLocals+1), "more than 2048 locals",
		},
		"locals of all functions": {
			besides(format.MaxModuleLocals/format.MaxLocals, format.MaxLocals),
			besides(format.MaxModuleLocals/format.MaxLocals+1, format.MaxLocals), "more than 65536 locals of all functions",
		},
		// An instruction takes 40 steps, a branch adds 3 blocks, and each block has the lookups of those before it.
		"steps of the branches of a function": {
			w.Module{Functions: []w.Function{function("f", branches(1763))}}.Bytes(),
			w.Module{Functions: []w.Function{function("f", branches(1764))}}.Bytes(),
			"function 0 takes about 2097976 steps to compile, want at most 2097152: it has 5297 blocks, and 1 locals",
		},
		"steps of the functions of an operator": {
			w.Module{Functions: calling(3, 17_000)}.Bytes(), w.Module{Functions: calling(3, 17_600)}.Bytes(),
			"the operator takes about 2114",
		},
		"results": {
			w.Module{Functions: []w.Function{function("f", w.Op(0x10, 1), w.Get(0)), {}}}.Bytes(),
			w.Module{Functions: []w.Function{function("f", w.Op(0x10, 1, 0x1a), w.Op(0x1a), w.Get(0)),
				{Results: []byte{w.I32, w.I32}, Code: w.Code(w.ConstI32(1), w.ConstI32(2))}}}.Bytes(),
			"function 1 has 2 results",
		},
		"globals": {
			w.Module{Functions: many(1), Globals: globals(format.MaxGlobals)}.Bytes(),
			w.Module{Functions: many(1), Globals: globals(format.MaxGlobals + 1)}.Bytes(), "257 globals, want at most 256",
		},
		"data": {
			w.Module{Functions: many(1), Pages: 1, Data: make([]byte, 1<<16)}.Bytes(),
			w.Module{Functions: many(1), Pages: 1, Data: make([]byte, 1<<16+1)}.Bytes(),
			"a segment of data that ends at 65537 in a memory of 65536 bytes",
		},
		"imports": {
			w.Module{Functions: many(1), Sections: section(2, 0)}.Bytes(),
			w.Module{Functions: many(1), Sections: section(2, 1, 1, 'e', 1, 'f', 0, 0)}.Bytes(), "the module imports something",
		},
		"locals that are there": {
			w.Module{Functions: []w.Function{identity}}.Bytes(),
			w.Module{Functions: []w.Function{function("f", w.Get(1))}}.Bytes(), "local 1 of 1",
		},
		"memory that is there": {
			w.Module{Functions: []w.Function{function("f", w.ConstI32(0), w.Access(0x29, 0))}, Pages: 1}.Bytes(),
			w.Module{Functions: []w.Function{function("f", w.ConstI32(0), w.Access(0x29, 0))}}.Bytes(), "the module has none",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := format.Rewrite(c.inside, "f", one)
			require.NoError(t, err)
			_, err = format.Rewrite(c.outside, "f", one)
			require.ErrorIs(t, err, format.ErrModule)
			assert.ErrorContains(t, err, c.want)
			assert.Less(t, len(err.Error()), 400)
		})
	}
}

// besides returns a module of f, and of functions that nothing calls, with a number of locals each.
func besides(functions, locals int) []byte {
	body := w.Code(w.Op(1), w.Unsigned(nil, uint64(locals)), w.Op(w.I64, 0x0b))
	return w.Module{Functions: many(1), Bodies: slices.Repeat([][]byte{body}, functions)}.Bytes()
}

// branches returns a block with n branches out of it.
func branches(n int) []byte {
	return w.Code(w.Op(2, 0x40), bytes.Repeat(w.Op(0x20, 0, 0xa7, 0x0d, 0), n), w.Op(0x0b), w.Get(0))
}

// calling returns f, and n functions that it calls, of a number of instructions each.
func calling(n, instructions int) []w.Function {
	list := []w.Function{function("f", w.Get(0))}
	for i := range n {
		list = append(list, function("", w.Get(0), bytes.Repeat(w.Op(0x50, 0xad), instructions/2)))
		list[0].Code = w.Code(list[0].Code, w.Unsigned([]byte{0x10}, uint64(i+1)))
	}
	return list
}

func globals(n int) (list []w.Global) {
	for range n {
		list = append(list, w.Global{Type: w.I64, Init: w.ConstI64(7)})
	}
	return list
}

// TestRefused checks modules that have what an operator may not have.
func TestRefused(t *testing.T) {
	code := func(parts ...[]byte) []byte {
		return w.Module{Functions: []w.Function{function("f", parts...)}, Pages: 1}.Bytes()
	}
	cases := map[string]struct {
		module []byte
		want   string
	}{
		"nothing":           {nil, "no WebAssembly module of version 1 begins here"},
		"another version":   {[]byte("\x00asm\x02\x00\x00\x00"), "no WebAssembly module of version 1"},
		"no functions":      {[]byte("\x00asm\x01\x00\x00\x00"), `no function "f" is exported`},
		"another name":      {w.Module{Functions: []w.Function{function("g", w.Get(0))}}.Bytes(), "g(int64) -> int64"},
		"recursion":         {code(w.Get(0), w.Op(0x10, 0)), "function 0 calls itself"},
		"a call of a table": {code(w.Get(0), w.Op(0x11, 0, 0)), "instruction 0x11"},
		"bulk memory":       {code(w.Op(0xfc, 11, 0), w.Get(0)), "build with -mno-bulk-memory"},
		"vectors":           {code(w.Op(0xfd, 12)), "instruction 0xfd"},
		"threads":           {code(w.Op(0xfe, 0)), "instruction 0xfe"},
		"a second memory":   {code(w.Op(0x3f, 1)), "a second memory"},
		"several results":   {code(w.Op(0x02, 0x00), w.Get(0)), "a value of type 0x0"},
		"no such function":  {code(w.Get(0), w.Op(0x10, 9)), "function 9 of 1"},
		"no such global":    {code(w.Op(0x23, 0)), "global 0 of 0"},
		"unknown section":   {append(w.Module{Functions: many(1)}.Bytes(), section(13)...), "section 13 is unknown"},
		"sections twice": {append(w.Module{Functions: many(1)}.Bytes(), section(7, 0)...),
			"section 7 is unknown, or comes out"},
		"bytes behind a list": {w.Module{Functions: many(1), Sections: section(2, 0, 0)}.Bytes(),
			"1 bytes behind the section"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			_, err := format.Rewrite(c.module, "f", one)
			require.ErrorIs(t, err, format.ErrModule)
			assert.ErrorContains(t, err, c.want)
		})
	}
	header := []byte("\x00asm\x01\x00\x00\x00")
	for want, sections := range map[string][]byte{
		"the module has a start function":                 section(8, 0),
		"a memory of flags 0x3":                           section(5, 1, 3, 1, 1),
		"2 memories, want one":                            section(5, 2, 0, 1, 0, 1),
		"a segment of data of flags 0x1":                  section(11, 1, 1, 0),
		"a segment of data whose place is not a constant": section(11, 1, 0, 0x23, 0, 0x0b, 0),
		"a value of type 0x7b":                            section(1, 1, 0x60, 1, 0x7b, 0),
		"two exports of one name":                         section(7, 2, 1, 'f', 0, 0, 1, 'f', 0, 0),
		"is function 3 of 0":                              section(7, 1, 1, 'f', 0, 3),
		"a first value by instruction 0x23":               section(6, 1, 0x7f, 0, 0x23, 0, 0x0b),
		"a number of more than five bytes":                section(1, 0x80, 0x80, 0x80, 0x80, 0x80, 0),
		"a number of more than 32 bits":                   section(1, 0xff, 0xff, 0xff, 0xff, 0x7f),
		"100 types in 0 bytes":                            section(1, 100),
		"1 functions and 0 bodies":                        append(section(1, 1, 0x60, 0, 0), section(3, 1, 0)...),
		"5 bytes are wanted and 0 left":                   {3, 5},
	} {
		_, err := format.Parse(append(bytes.Clone(header), sections...))
		require.ErrorIs(t, err, format.ErrModule, want)
		assert.ErrorContains(t, err, want)
	}
}

// TestTruncated cuts a module at every byte.
func TestTruncated(t *testing.T) {
	whole := stateful()
	_, err := format.Rewrite(whole, "f", one)
	require.NoError(t, err)
	for n := range whole[:len(whole)-1] {
		_, err := format.Rewrite(whole[:n], "f", one)
		if n == len(whole)-9 {
			require.NoError(t, err) // the section of data is left out
			continue
		}
		require.ErrorIs(t, err, format.ErrModule, "%d bytes", n)
	}
}

// stateful returns a module that counts its calls in a global and in memory.
func stateful() []byte {
	return w.Module{
		Pages: 1, Data: []byte{5}, Globals: []w.Global{{Type: w.I64, Init: w.ConstI64(3)}},
		Functions: []w.Function{function("f",
			w.Op(0x23, 0), w.ConstI64(1), w.Op(0x7c, 0x24, 0), // global++
			w.ConstI32(0), w.ConstI32(0), w.Access(0x29, 0), w.ConstI64(1), w.Op(0x7c), w.Access(0x37, 0), // memory++
			w.Get(0), w.Op(0x23, 0), w.Op(0x7c), w.ConstI32(0), w.Access(0x29, 0), w.Op(0x7c))},
	}.Bytes()
}

// TestExports lists the functions that can be operators.
func TestExports(t *testing.T) {
	m, err := format.Parse(w.Module{Functions: []w.Function{function("f", w.Get(0)), {Name: "none"}, {Name: "g",
		Params: []byte{w.F32, w.F64}, Results: []byte{w.F32}, Code: w.Get(0)}}}.Bytes())
	require.NoError(t, err)
	names, signatures := m.Exports()
	assert.Equal(t, []string{"f", "g"}, names)
	assert.Equal(t, "(float32, float64) -> float32", signatures[1].String())
	require.Error(t, format.Signature{Out: format.Int64}.Check())
	require.Error(t, format.Signature{In: make([]format.Kind, 9), Out: format.Int64}.Check())
	require.ErrorContains(t, format.Signature{In: []format.Kind{7}, Out: format.Int64}.Check(), "kind(7)")
}

// FuzzRewrite rewrites any bytes: they are refused, or what comes out is a module that Parse reads.
func FuzzRewrite(f *testing.F) {
	f.Add(stateful())
	f.Add(w.Module{Functions: chain(3)}.Bytes())
	f.Add(w.Module{Functions: []w.Function{function("f", blocks(2))}, Globals: globals(2)}.Bytes())
	f.Add(w.Module{Functions: []w.Function{function("f", branches(3))}}.Bytes())
	f.Add(w.Module{Functions: calling(2, 4)}.Bytes())
	f.Add(besides(2, 50_000))
	f.Add(besides(2, 100))
	// Dead code behind a branch, in which the stack has values that nothing pushed, and a table of branches.
	f.Add(w.Module{Functions: []w.Function{function("f", w.Op(2, 0x40, 0x0c, 0, 0x7c, 0x1a, 0x1a, 0x05, 0x0b),
		w.Op(3, 0x7e), w.Get(0), w.Op(0xa7, 0x0e, 2, 0, 0, 0, 0x0b))}}.Bytes())
	f.Add(w.Module{Pages: 1, Functions: []w.Function{function("f", w.Op(0x20, 0, 0xa7, 4, 0x7e, 0x20, 0, 5, 0x41, 0),
		w.Access(0x29, 1<<32-1), w.Op(0x0b))}}.Bytes())
	f.Fuzz(func(t *testing.T, b []byte) {
		before := bytes.Clone(b)
		m, err := format.Rewrite(b, "f", one)
		require.Equal(t, before, b)
		if err != nil {
			require.ErrorIs(t, err, format.ErrModule)
			return
		}
		require.LessOrEqual(t, m.Pages, uint32(2*format.MaxPages+1))
		require.LessOrEqual(t, m.Steps, uint64(format.MaxWork))
		require.LessOrEqual(t, len(m.Bytes), len(b)+80*format.MaxCode)
	})
}
