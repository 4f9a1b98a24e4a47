//go:build !linux

package csd

const mapNoReserve = 0

// zeroMemory makes b read as zeros. Only on Linux does it also return pages to the system.
func zeroMemory(b []byte) { clear(b) }

// clearUsed makes b read as zeros. On Linux it does not touch unused pages.
func clearUsed(b []byte) { clear(b) }
