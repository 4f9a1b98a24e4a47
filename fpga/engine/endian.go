//go:build armbe || arm64be || m68k || mips || mips64 || mips64p32 || ppc || ppc64 || s390 || s390x || shbe || sparc || sparc64

package engine

// Columns and tensors are little-endian in files, in a drive's memory and on the wire, and the kernels write them as the machine
// lays numbers out. On a machine that lays them out the other way mini-batches would be wrong, so the engine does not build there.
var _ = theEngineWantsALittleEndianMachine
