//go:build armbe || arm64be || m68k || mips || mips64 || mips64p32 || ppc || ppc64 || s390 || s390x || shbe || sparc || sparc64

package engine

// Columns and tensors are little-endian in files, in a drive's memory and on the wire, and the kernels write them in
// the machine's own byte order. On a big-endian machine mini-batches would be wrong, so the engine does not build
// there.
var _ = theEngineWantsALittleEndianMachine
