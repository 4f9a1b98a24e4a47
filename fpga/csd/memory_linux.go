package csd

import (
	"os"

	"golang.org/x/sys/unix"
)

const mapNoReserve = unix.MAP_NORESERVE

// zeroMemory makes b, a part of memory from newMemory, read as zeros, and returns whole pages to the system.
func zeroMemory(b []byte) {
	page := os.Getpagesize()
	head := min(len(b), -int(addressOf(b))&(page-1))
	clear(b[:head])
	body := (len(b) - head) &^ (page - 1)
	if body > 0 && unix.Madvise(b[head:head+body], unix.MADV_DONTNEED) != nil {
		clear(b[head : head+body])
	}
	clear(b[head+body:])
}
