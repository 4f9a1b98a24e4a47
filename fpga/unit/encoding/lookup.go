//go:build (amd64 || arm64) && !purego

package encoding

// lookUp does what the kernel can and leaves the rest to the plain path.
func lookUp[D, S Word](kernel func(dst *D, dict *S, idx *uint32, n, size int) int,
	plain func(dst []D, dict []S, idx []uint32) int, dst []D, dict []S, idx []uint32) int {
	done := 0
	if len(idx) > 0 && len(dict) > 0 {
		done = kernel(&dst[0], &dict[0], &idx[0], len(idx), min(len(dict), 1<<32-1))
	}
	return done + plain(dst[done:], dict, idx[done:])
}
