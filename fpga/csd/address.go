package csd

import "unsafe"

// addressOf is the address of b's first byte, only to find page boundaries.
func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
