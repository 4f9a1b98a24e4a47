//go:build !linux

package memory

const mapNoReserve = 0

// Zero makes b read as zeros. Only on Linux does it also return pages to the system.
func Zero(b []byte) { clear(b) }

// ClearUsed makes b read as zeros. On Linux it does not touch unused pages.
func ClearUsed(b []byte) { clear(b) }
