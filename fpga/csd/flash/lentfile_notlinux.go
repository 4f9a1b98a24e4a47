//go:build !linux

package flash

import (
	"os"
	"sync/atomic"
)

// lentFile lends the bytes of a file. Only on Linux can it.
type lentFile struct{ recall func() }

func newLentFile(*os.File, bool, *atomic.Uint64) *lentFile { return nil }

func (l *lentFile) lend(int64, int64) ([]byte, uint64, bool) { return nil, 0, false }
func (l *lentFile) lasts(uint64) bool                        { return false }
func (l *lentFile) close() error                             { return nil }
