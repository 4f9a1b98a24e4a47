package private

import (
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// maxThreads bounds the engine threads that a trainer may ask for.
const maxThreads = 256

// memoryFile is memory that has a descriptor and no name. This process alone can write to it.
type memoryFile struct {
	file *os.File
	data []byte // the whole file, mapped
}

// createMemoryFile makes a memory file of a fixed size. The file is sealed: its size never changes, and further
// mappings cannot write to it (a trainer maps it privately, so that its writes go to a copy of its own).
func createMemoryFile(size int64) (m *memoryFile, err error) {
	fd, err := unix.MemfdCreate("millrace-minibatch", unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, fmt.Errorf("shared memory for a mini-batch: memfd_create: %w", err)
	}
	m = &memoryFile{file: os.NewFile(uintptr(fd), "memfd")}
	defer func() {
		if err != nil {
			err = errors.Join(fmt.Errorf("shared memory of %d bytes for a mini-batch: %w", size, err), m.close())
			m = nil
		}
	}()
	if err := m.file.Truncate(size); err != nil {
		return m, err
	}
	if m.data, err = unix.Mmap(fd, 0, int(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		return m, fmt.Errorf("mmap: %w", err)
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals|unix.F_SEAL_FUTURE_WRITE|unix.F_SEAL_SEAL)
	if errors.Is(err, unix.EINVAL) { // Linux before 5.1 has no F_SEAL_FUTURE_WRITE
		_, err = unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals|unix.F_SEAL_SEAL)
	}
	if err != nil {
		return m, fmt.Errorf("seal: %w", err)
	}
	return m, nil
}

func (m *memoryFile) size() int64 { return int64(len(m.data)) }

// close ends this process's mapping and descriptor.
func (m *memoryFile) close() error {
	var err error
	if m.data != nil {
		err = unix.Munmap(m.data)
		m.data = nil
	}
	return errors.Join(err, m.file.Close())
}
