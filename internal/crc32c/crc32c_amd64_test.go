//go:build !purego && unix

package crc32c

import (
	"os"
	"syscall"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"
)

// TestPath proves which path runs.
func TestPath(t *testing.T) {
	assert.Equal(t, cpu.X86.HasAVX512F && cpu.X86.HasAVX512VPCLMULQDQ && allowed(os.Getenv("MILLRACE_CPU")), wide)
	assert.True(t, allowed("") && allowed("avx512") && allowed("avx512-products") && allowed("avx512-shifts"))
	assert.False(t, allowed("avx2") || allowed("generic") || allowed("typo") || allowed("avx512-typo"))
	if !wide {
		t.Log("the kernel was not run")
		return
	}
	b := bytes(least + stride/2)
	_, done := fold(0, b)
	assert.Equal(t, least, done)
	_, done = fold(0, b[:least-1])
	assert.Zero(t, done)
}

// TestNothingIsReadPastTheEnd puts bytes before a page that is not mapped.
func TestNothingIsReadPastTheEnd(t *testing.T) {
	page := os.Getpagesize()
	mem, err := syscall.Mmap(-1, 0, 3*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	require.NoError(t, err)
	defer func() { require.NoError(t, syscall.Munmap(mem)) }()
	copy(mem, bytes(2*page))
	require.NoError(t, syscall.Mprotect(mem[2*page:], syscall.PROT_NONE))
	for n := range 2 * page {
		b := mem[2*page-n : 2*page]
		if n < 2*least || n%stride < 3 || n%97 == 0 {
			require.Equal(t, oracle(b), Checksum(b), "%d bytes", n)
		}
	}
}
