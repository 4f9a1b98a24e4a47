package telemetry

import "github.com/cilium/ebpf/asm"

// The frame of both programs, in bytes below R10. A command's key is {controller, queue, identifier}, 32 bits each.
const (
	frameKey   = -16 // of the command
	frameStart = -32 // its value: when it began, its opcode
	frameCell  = -40 // a cell's key: controller, and opcode with queue and bucket
	frameZero  = -56 // a cell's first value
	sizeKey    = 12
	sizeStart  = 16
	sizeCell   = 8
	sizeValue  = 16
)

// loadField reads a field of the record at R6 into a register.
func loadField(dst asm.Register, f field) asm.Instruction {
	size := map[int]asm.Size{1: asm.Byte, 2: asm.Half, 4: asm.Word, 8: asm.DWord}[f.size]
	return asm.LoadMem(dst, asm.R6, int16(f.offset), size)
}

// storeKey writes the command's key to the frame. Fields: ctrl_id, qid, cid.
func storeKey(f []field) asm.Instructions {
	var ins asm.Instructions
	for i := range 3 {
		ins = append(ins, loadField(asm.R1, f[i]), asm.StoreMem(asm.RFP, int16(frameKey+4*i), asm.R1, asm.Word))
	}
	return ins
}

// pointTo sets a register to an address in the frame.
func pointTo(dst asm.Register, at int32) asm.Instructions {
	return asm.Instructions{asm.Mov.Reg(dst, asm.RFP), asm.Add.Imm(dst, at)}
}

// join appends pieces of a program.
func join(pieces ...asm.Instructions) asm.Instructions {
	var all asm.Instructions
	for _, p := range pieces {
		all = append(all, p...)
	}
	return all
}

// setupProgram runs when the driver sets a command up. It records the time and the opcode. Fields: ctrl_id, qid, cid,
// opcode.
func setupProgram(f []field, commands int) asm.Instructions {
	return join(
		asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}, storeKey(f),
		asm.Instructions{
			asm.FnKtimeGetNs.Call(),
			asm.StoreMem(asm.RFP, frameStart, asm.R0, asm.DWord),
			loadField(asm.R1, f[3]),
			asm.StoreMem(asm.RFP, frameStart+8, asm.R1, asm.DWord),
			asm.LoadMapPtr(asm.R1, commands),
		},
		pointTo(asm.R2, frameKey), pointTo(asm.R3, frameStart),
		asm.Instructions{
			asm.Mov.Imm(asm.R4, 0),
			asm.FnMapUpdateElem.Call(),
			asm.Mov.Imm(asm.R0, 0),
			asm.Return(),
		})
}

// completionProgram runs when a command has completed. It counts the time since its setup in the cell of its bucket.
// Fields: ctrl_id, qid, cid.
func completionProgram(f []field, commands, cells int) asm.Instructions {
	ins := join(
		asm.Instructions{asm.Mov.Reg(asm.R6, asm.R1)}, storeKey(f),
		asm.Instructions{asm.LoadMapPtr(asm.R1, commands)}, pointTo(asm.R2, frameKey),
		asm.Instructions{
			asm.FnMapLookupElem.Call(),
			asm.JEq.Imm(asm.R0, 0, "exit"), // set up before anybody watched
			asm.LoadMem(asm.R7, asm.R0, 0, asm.DWord),
			asm.LoadMem(asm.R8, asm.R0, 8, asm.DWord),
			asm.And.Imm(asm.R8, 0xff),
			asm.LoadMapPtr(asm.R1, commands),
		},
		pointTo(asm.R2, frameKey),
		asm.Instructions{
			asm.FnMapDeleteElem.Call(),
			asm.FnKtimeGetNs.Call(),
			asm.Sub.Reg(asm.R0, asm.R7),
			asm.Mov.Reg(asm.R7, asm.R0), // how long it took
			asm.Mov.Imm(asm.R9, 0),      // its bucket: the place of the highest bit
			asm.Mov.Reg(asm.R1, asm.R7),
		})
	for _, step := range []int32{32, 16, 8, 4, 2, 1} {
		next := map[int32]string{32: "b16", 16: "b8", 8: "b4", 4: "b2", 2: "b1", 1: "b0"}[step]
		head := asm.Mov.Reg(asm.R2, asm.R1)
		if step < 32 {
			head = head.WithSymbol(map[int32]string{16: "b16", 8: "b8", 4: "b4", 2: "b2", 1: "b1"}[step])
		}
		ins = append(ins, head, asm.RSh.Imm(asm.R2, step), asm.JEq.Imm(asm.R2, 0, next), asm.Add.Imm(asm.R9, step),
			asm.Mov.Reg(asm.R1, asm.R2))
	}
	lookup := join(asm.Instructions{asm.LoadMapPtr(asm.R1, cells)}, pointTo(asm.R2, frameCell),
		asm.Instructions{asm.FnMapLookupElem.Call()})
	return join(ins,
		asm.Instructions{
			asm.LoadMem(asm.R1, asm.RFP, frameKey, asm.Word).WithSymbol("b0"),
			asm.StoreMem(asm.RFP, frameCell, asm.R1, asm.Word),
			asm.LSh.Imm(asm.R9, 16),
			asm.Or.Reg(asm.R8, asm.R9),
			asm.LoadMem(asm.R1, asm.RFP, frameKey+4, asm.Word),
			asm.JNE.Imm(asm.R1, 0, "io"), // queue 0 is the admin queue
			asm.Or.Imm(asm.R8, 1<<8),
			asm.StoreMem(asm.RFP, frameCell+4, asm.R8, asm.Word).WithSymbol("io"),
		},
		lookup,
		asm.Instructions{
			asm.JNE.Imm(asm.R0, 0, "count"),
			// The first command of its kind makes the cell. If another processor has made it meanwhile, that cell
			// stays.
			asm.Mov.Imm(asm.R1, 0),
			asm.StoreMem(asm.RFP, frameZero, asm.R1, asm.DWord),
			asm.StoreMem(asm.RFP, frameZero+8, asm.R1, asm.DWord),
			asm.LoadMapPtr(asm.R1, cells),
		},
		pointTo(asm.R2, frameCell), pointTo(asm.R3, frameZero),
		asm.Instructions{asm.Mov.Imm(asm.R4, 1), asm.FnMapUpdateElem.Call()}, // BPF_NOEXIST
		lookup,
		asm.Instructions{
			asm.JEq.Imm(asm.R0, 0, "exit"), // the map is full
			asm.Mov.Imm(asm.R1, 1).WithSymbol("count"),
			asm.AddAtomic.Mem(asm.R0, asm.R1, asm.DWord, 0),
			asm.AddAtomic.Mem(asm.R0, asm.R7, asm.DWord, 8),
			asm.Mov.Imm(asm.R0, 0).WithSymbol("exit"),
			asm.Return(),
		})
}
