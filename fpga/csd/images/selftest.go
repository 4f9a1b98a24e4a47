package images

import (
	"bytes"
	"context"
	"fmt"
	"unsafe"

	"github.com/millrace/millrace/fpga/engine"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/fpga/program/wire"
)

// selfTest runs an image's known-answer vectors over memory of its own.
func selfTest(ctx context.Context, e *engine.Engine, vectors []image.Vector) error {
	for i := range vectors {
		v := &vectors[i]
		if v.Scratch > image.MaxVectorMemory || v.Dict > image.MaxVectorMemory {
			return fmt.Errorf("self-test %q: asks for too much memory", v.Name)
		}
		mem := engine.Memory{
			Program: alignedCopy(v.Program, len(v.Program)),
			Input:   alignedCopy(v.Input, len(v.Input)),
			Dict:    alignedCopy(nil, int(v.Dict)),
			Scratch: alignedCopy(nil, int(v.Scratch)),
			Output:  alignedCopy(nil, len(v.Output)),
			Tables:  alignedCopy(v.Tables, len(v.Tables)),
			Result:  alignedCopy(nil, wire.ResultSize(len(v.Args)/wire.SliceTask)),
		}
		if got := e.Execute(ctx, mem, v.Args); uint64(got) != v.State {
			why := ""
			if r, err := wire.UnmarshalResult(mem.Result); err == nil {
				why = ": " + r.Message
			}
			return fmt.Errorf("self-test %q ended in %s, not %s%s", v.Name, got, program.State(v.State), why)
		}
		if !bytes.Equal(mem.Output, v.Output) {
			return fmt.Errorf("self-test %q put out other bytes than the known answer", v.Name)
		}
	}
	return nil
}

// alignedCopy copies b into n bytes that begin at a multiple of 64, as memory ranges do.
func alignedCopy(b []byte, n int) []byte {
	m := make([]byte, n+program.Align)
	skip := -int(uintptr(unsafe.Pointer(unsafe.SliceData(m)))) & (program.Align - 1)
	m = m[skip : skip+n : skip+n]
	copy(m, b)
	return m
}
