//go:build !amd64 || purego

package simd

func detect() Level { return Generic }

func detectVBMI() bool { return false }
