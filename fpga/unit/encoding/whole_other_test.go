//go:build !amd64 || purego

package encoding

func wholeVectors([]uint32, []int64, []byte) map[int]func(width int) int { return nil }
