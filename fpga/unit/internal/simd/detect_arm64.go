//go:build !purego

package simd

// detect returns NEON: Go's ABI of arm64 requires it, so that it needs no test.
func detect() Level { return NEON }

func detectVBMI() bool { return false }

func processor() (vendor string, family uint32) { return "", 0 }
