package csd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/google/uuid"

	"github.com/millrace/millrace/nvme/controller"
)

// stateVersion is the version of PATH.json that this build writes and reads.
const stateVersion = 1

// state is what a drive in a file remembers beside its flash: PATH.json, always replaced by a rename.
type state struct {
	Version  int                 `json:"version"`
	UUID     uuid.UUID           `json:"uuid"`
	Size     int64               `json:"size_bytes"`
	LBA      int                 `json:"lba_bytes"`
	Active   int                 `json:"active_slot"` // -1: none
	Clean    bool                `json:"clean_shutdown"`
	Counters controller.Counters `json:"counters"`
}

func statePath(path string) string { return path + ".json" }

func slotPath(path string, slot int) string { return path + ".slot" + strconv.Itoa(slot) + ".mimg" }

// readState reads PATH.json. A missing one is ErrNoDrive.
func readState(path string) (*state, error) {
	b, err := readBounded(statePath(path), 1<<20)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%w: %w; create it with millrace drive create", ErrNoDrive, err)
	}
	if err != nil {
		return nil, err
	}
	s, err := parseState(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", statePath(path), err)
	}
	return s, nil
}

func parseState(b []byte) (*state, error) {
	s := new(state)
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, err
	}
	if s.Version != stateVersion {
		return nil, fmt.Errorf("version %d, this build knows %d", s.Version, stateVersion)
	}
	if s.UUID == (uuid.UUID{}) {
		return nil, errors.New("no uuid")
	}
	if s.Active < -1 || s.Active >= slotCount {
		return nil, fmt.Errorf("active slot %d: there are 0 to %d", s.Active, slotCount-1)
	}
	return s, checkGeometry(s.Size, s.LBA)
}

func (s *state) write(path string) error {
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(statePath(path), append(b, '\n'))
}

// replaceFile puts b in the place of a file so that a crash leaves the old one or the new one.
func replaceFile(path string, b []byte) error {
	f, err := os.CreateTemp(filepath.Dir(path), filepath.Base(path)+".*")
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return syncDir(filepath.Dir(path))
}

// syncDir makes a rename in a directory last.
func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// readBounded reads a file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err = errors.Join(err, f.Close()); err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s: more than %d bytes", path, limit)
	}
	return b, nil
}
