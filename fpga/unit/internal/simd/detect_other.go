//go:build (!amd64 && !arm64) || purego

package simd

func detect() Level { return Generic }

func detectVBMI() bool { return false }

func processor() (vendor string, family uint32) { return "", 0 }
