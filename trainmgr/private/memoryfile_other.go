//go:build !linux

package private

import (
	"errors"
	"os"
)

// maxThreads bounds the engine threads that a trainer may ask for.
const maxThreads = 256

// memoryFile is memory that has a descriptor and no name, which Linux alone has.
type memoryFile struct {
	file *os.File
	data []byte
}

func createMemoryFile(int64) (*memoryFile, error) {
	return nil, errors.New("the private process needs Linux: shared memory without a name is memfd_create's")
}

func (m *memoryFile) size() int64 { return int64(len(m.data)) }

func (m *memoryFile) close() error { return nil }
