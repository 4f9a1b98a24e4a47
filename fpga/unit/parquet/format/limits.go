package format

// These limits are the same for every reader of pages.
const (
	// MaxZstdWindow bounds how far a zstd frame may look back, in bytes: what zstd's --ultra and --long=27 use at most.
	MaxZstdWindow = 128 << 20
	// MaxDeltaBlock bounds the values of one block of DELTA_BINARY_PACKED.
	MaxDeltaBlock = 1 << 24
)
