//go:build !linux && !darwin

package passes

import "math"

// freeBytes returns that there is room: this system is not asked. A disk that gets full is an error of the write.
func freeBytes(string) (int64, error) { return math.MaxInt64, nil }
