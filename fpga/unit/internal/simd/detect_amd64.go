//go:build !purego

package simd

import (
	"encoding/binary"

	"golang.org/x/sys/cpu"
)

func detect() Level {
	x := &cpu.X86
	switch {
	case !(x.HasAVX2 && x.HasFMA && x.HasBMI2):
		return Generic
	case !(x.HasAVX512F && x.HasAVX512BW && x.HasAVX512DQ && x.HasAVX512VL):
		return AVX2
	}
	return AVX512
}

func detectVBMI() bool { return cpu.X86.HasAVX512VBMI && cpu.X86.HasAVX512VBMI2 }

// cpuid executes the instruction, with 0 in ECX. Package cpu returns no vendor.
func cpuid(leaf uint32) (eax, ebx, ecx, edx uint32)

// processor returns this processor's vendor and family.
func processor() (vendor string, family uint32) {
	_, b, c, d := cpuid(0)
	name := binary.LittleEndian.AppendUint32(nil, b)
	name = binary.LittleEndian.AppendUint32(name, d)
	name = binary.LittleEndian.AppendUint32(name, c)
	signature, _, _, _ := cpuid(1)
	return string(name), familyOf(signature)
}
