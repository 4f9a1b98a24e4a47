package tensor

import (
	"errors"
	"fmt"
	"io"
	"os"
)

// spoolPrefix starts the names of spools.
const spoolPrefix = "spool-"

// spool collects one feature's bytes in a file. The file is open only while it is written, so that the limit of open
// files does not bound the number of features.
type spool struct {
	path  string
	buf   []byte
	limit int // The most bytes of buf.
	bytes int64
}

// write appends bytes to the buffer, and writes both to the file if they exceed the limit.
func (s *spool) write(b []byte) error {
	if len(s.buf)+len(b) <= s.limit {
		s.buf = append(s.buf, b...)
		return nil
	}
	if err := s.flush(b); err != nil {
		return err
	}
	s.buf = s.buf[:0]
	return nil
}

// flush appends the buffer and b to the file.
func (s *spool) flush(b []byte) error {
	f, err := os.OpenFile(s.path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o666)
	if err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	_, err = f.Write(s.buf)
	if err == nil {
		_, err = f.Write(b)
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return fmt.Errorf("spool: %w", err)
	}
	s.bytes += int64(len(s.buf) + len(b))
	return nil
}

// joinSpools copies spools one after the other into a new file and removes them.
func joinSpools(dir, name string, spools []spool) (*npyFile, error) {
	file, err := createNpyFile(dir, name)
	if err != nil {
		return nil, err
	}
	for i := range spools {
		if err := spools[i].moveTo(file); err != nil {
			return nil, errors.Join(err, file.f.Close())
		}
	}
	return file, nil
}

// moveTo appends the spool to a file and removes the spool.
func (s *spool) moveTo(file *npyFile) error {
	if s.bytes > 0 {
		f, err := os.Open(s.path)
		if err != nil {
			return fmt.Errorf("spool: %w", err)
		}
		n, err := io.Copy(file.f, f) // copy_file_range, where the system has it
		if err == nil && n != s.bytes {
			err = io.ErrUnexpectedEOF
		}
		if err = errors.Join(err, f.Close()); err != nil {
			return fmt.Errorf("copy %s: %w", s.path, err)
		}
		if err := os.Remove(s.path); err != nil {
			return fmt.Errorf("spool: %w", err)
		}
	}
	err := file.write(s.buf)
	s.buf = nil
	return err
}
