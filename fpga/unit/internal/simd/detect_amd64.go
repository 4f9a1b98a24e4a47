//go:build !purego

package simd

import "golang.org/x/sys/cpu"

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
