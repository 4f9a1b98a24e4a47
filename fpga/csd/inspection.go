package csd

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/internal/ownership"
)

// Check reports whether this process could open the drive in a file, without opening it: nothing is written. The error
// is Open's, and wraps ErrBusy where the drive is in service.
func Check(path string) (err error) {
	f, err := openFlashFile(path, false)
	if err != nil {
		return fmt.Errorf("drive %s: %w", path, err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	s, err := readState(path)
	if err != nil {
		return fmt.Errorf("drive %s: %w", path, err)
	}
	if _, _, err := f.FindLost(s.Size, s.Lost); err != nil {
		return fmt.Errorf("drive %s: %w", path, err)
	}
	// The state is replaced by a rename, so the folder has to take a file.
	probe, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".check-*")
	if err != nil {
		return fmt.Errorf("drive %s: its state is written beside it: %w", path,
			ownership.Explain(err, filepath.Join(filepath.Dir(path), "none")))
	}
	return errors.Join(probe.Close(), os.Remove(probe.Name()))
}
