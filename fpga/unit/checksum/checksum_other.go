//go:build !amd64 || purego

package checksum

func folded([]byte) (sum uint32, done int) { return 0, 0 }
