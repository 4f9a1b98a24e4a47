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

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/internal/ownership"
	"github.com/millrace/millrace/internal/wholefile"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
)

// StateVersion is the newest version of PATH.json that this build writes; it reads those from 1 on. Version 1 knew of
// images only the active slot. Version 2 knows one region, and version 3 neither weights of regions nor a limit of
// ordinary reads and writes. A drive is written in the oldest version from 2 on that can hold its state, so that older
// builds read it.
const StateVersion = 4

const (
	stateOneRegion = 2
	stateRegions   = 3
)

// state is what a drive in a file keeps beside its flash, in PATH.json, which is always replaced by a rename.
type state struct {
	Version     int                 `json:"version"`
	UUID        uuid.UUID           `json:"uuid"`
	Size        int64               `json:"size_bytes"`
	LBA         int                 `json:"lba_bytes"`
	regionState                     // of region 0
	Further     []regionState       `json:"further_regions,omitempty"`       // regions 1 and up
	Weights     []int               `json:"region_weights,omitempty"`        // of all regions; empty: each 1
	HostIOShare int                 `json:"host_io_share_percent,omitempty"` // 0: no limit
	Trust       image.Trust         `json:"trust"`
	Lost        *lostRange          `json:"lost,omitempty"` // of the flash, whose file was cut
	Clean       bool                `json:"clean_shutdown"`
	Counters    controller.Counters `json:"counters"`
}

// regionState is what is kept of a region.
type regionState struct {
	// of the last good image, which the region starts with; version 1 wrote -1 for none
	Active   int      `json:"active_slot"`
	Image    image.ID `json:"active_image"` // zero, of version 1: the image that the slot holds
	Previous mark     `json:"previous"`     // the image that was active before; zero: none
}

func (r *regionState) checkRegion() error {
	if r.Active < -1 || r.Active >= slotCount {
		return fmt.Errorf("active slot %d: there are 0 to %d", r.Active, slotCount-1)
	}
	if r.Previous.Slot < 0 || r.Previous.Slot >= slotCount {
		return fmt.Errorf("previous slot %d: there are 0 to %d", r.Previous.Slot, slotCount-1)
	}
	return nil
}

// regionCount returns the number of regions.
func (s *state) regionCount() int { return 1 + len(s.Further) }

// keptOfRegion returns what is kept of a region.
func (s *state) keptOfRegion(number int) regionState {
	if number == 0 {
		return s.regionState
	}
	return s.Further[number-1]
}

// setRegions changes the number of regions. New ones start with the stock image, and all weigh the same.
func (s *state) setRegions(n int) {
	s.Weights = nil
	further := make([]regionState, n-1)
	copy(further, s.Further)
	s.Further = further
}

// neededVersion returns the version of the form that can hold the state.
func (s *state) neededVersion() int {
	switch {
	case s.HostIOShare != 0 || s.Weights != nil:
		return StateVersion
	case len(s.Further) > 0:
		return stateRegions
	}
	return stateOneRegion
}

func statePath(path string) string { return path + ".json" }

func slotPath(path string, slot int) string { return path + ".slot" + strconv.Itoa(slot) + ".mimg" }

// readState reads PATH.json. A missing one is ErrNoDrive.
func readState(path string) (*state, error) {
	b, err := readBounded(statePath(path), 1<<20)
	if errors.Is(err, os.ErrNotExist) {
		return nil, noStateError(path, err)
	}
	if err != nil {
		return nil, ownership.Explain(err, statePath(path))
	}
	s, err := parseState(b)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", statePath(path), err)
	}
	return s, nil
}

// noStateError returns the error of a drive whose state is not there. No drive can be created at a path that holds
// bytes.
func noStateError(path string, err error) error {
	if st, serr := os.Stat(path); serr == nil && st.Size() == 0 {
		return fmt.Errorf("%w: %w; create it with millrace drive create", ErrNoDrive, err)
	}
	return fmt.Errorf("%w: %w: that file has the geometry and the identity of the drive: copy it with the flash; or "+
		"extract the flash, which is a tar archive, and put its files on a new drive", ErrNoDrive, err)
}

func parseState(b []byte) (*state, error) {
	s := new(state)
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(s); err != nil {
		return nil, err
	}
	if s.Version < 1 || s.Version > StateVersion {
		return nil, fmt.Errorf("version %d, this build knows 1 to %d", s.Version, StateVersion)
	}
	if len(s.Further) >= cs.MaxRegions || s.Version < stateRegions && len(s.Further) > 0 {
		return nil, fmt.Errorf("version %d with %d further regions: version %d has at most %d, and older ones none",
			s.Version, len(s.Further), stateRegions, cs.MaxRegions-1)
	}
	if s.HostIOShare != 0 && (s.Version < StateVersion || !limitsHostIO(s.HostIOShare)) {
		return nil, fmt.Errorf("version %d with a share of ordinary reads and writes of %d %%: version %d has %d to %d, and "+
			"older ones none", s.Version, s.HostIOShare, StateVersion, controller.MinHostIOShare,
			controller.NoHostIOLimit-1)
	}
	if s.Weights != nil {
		if s.Version < StateVersion {
			return nil, fmt.Errorf("version %d with weights of regions: version %d has them, and older ones none", s.Version,
				StateVersion)
		}
		if err := checkWeights(s.Weights, s.regionCount()); err != nil {
			return nil, err
		}
	}
	s.Version = s.neededVersion()
	if s.UUID == (uuid.UUID{}) {
		return nil, errors.New("no uuid")
	}
	for number := range s.regionCount() {
		kept := s.keptOfRegion(number)
		if err := kept.checkRegion(); err != nil {
			return nil, fmt.Errorf("region %d: %w", number, err)
		}
	}
	if err := checkGeometry(s.Size, s.LBA); err != nil {
		return nil, err
	}
	return s, s.Lost.checkRange(s.Size)
}

// keptPart returns the part of a state that must be kept, as text to compare: all but the counters.
func (s state) keptPart() ([]byte, error) {
	s.Counters, s.Clean, s.Version = controller.Counters{}, false, s.neededVersion()
	return json.Marshal(s)
}

func (s *state) writeState(path string, step func(string)) error {
	s.Version = s.neededVersion()
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return replaceFile(statePath(path), append(b, '\n'), step, "state")
}

// replaceFile replaces a file so that a crash leaves the old content or the new one. step is called after each step of
// it.
func replaceFile(path string, b []byte, step func(string), what string) error {
	if err := writePartial(path, b); err != nil {
		return err
	}
	step(what + ": written")
	if err := os.Rename(path+partial, path); err != nil {
		return errors.Join(err, os.Remove(path+partial))
	}
	step(what + ": renamed")
	return wholefile.SyncFolder(filepath.Dir(path))
}

// partial is the suffix of a file that is being written. There is one writer, the process that holds the drive's lock:
// so the name is always the same, and the rest of an interrupted write is overwritten.
const partial = ".new"

// writePartial writes the new content of a file beside it. The new file keeps the owner, the group and the mode of the
// old one.
func writePartial(path string, b []byte) error {
	f, err := os.OpenFile(path+partial, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, fileMode)
	if err != nil {
		return ownership.Explain(err, path)
	}
	if st, err := os.Stat(path); err == nil {
		_ = f.Chmod(st.Mode().Perm()) // where that fails it has fileMode
	}
	_, err = f.Write(b)
	if err = errors.Join(err, f.Sync(), f.Close(), settleOwner(f.Name(), path, filepath.Dir(path))); err != nil {
		return errors.Join(err, os.Remove(f.Name()))
	}
	return nil
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
