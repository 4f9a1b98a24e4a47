package csd

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"

	"github.com/google/uuid"

	"github.com/millrace/millrace/fpga/csd/flash"
	"github.com/millrace/millrace/fpga/csd/images"
	"github.com/millrace/millrace/fpga/csd/keptfile"
	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/internal/ownership"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/controller/health"
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
	Version     int             `json:"version"`
	UUID        uuid.UUID       `json:"uuid"`
	Size        int64           `json:"size_bytes"`
	LBA         int             `json:"lba_bytes"`
	images.Kept                 // Kept is that of region 0.
	Further     []images.Kept   `json:"further_regions,omitempty"`       // regions 1 and up
	Weights     []int           `json:"region_weights,omitempty"`        // Weights are empty if each is 1.
	HostIOShare int             `json:"host_io_share_percent,omitempty"` // 0: no limit
	Trust       image.Trust     `json:"trust"`
	Lost        *flash.Range    `json:"lost,omitempty"`
	Clean       bool            `json:"clean_shutdown"`
	Counters    health.Counters `json:"counters"`
}

// regionCount returns the number of regions.
func (s *state) regionCount() int { return 1 + len(s.Further) }

// keptRegions returns what is kept of each region.
func (s *state) keptRegions() []images.Kept { return append([]images.Kept{s.Kept}, s.Further...) }

// setRegions changes the number of regions. New ones start with the stock image, and all weigh the same.
func (s *state) setRegions(n int) {
	s.Weights = nil
	further := make([]images.Kept, n-1)
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

// readState reads PATH.json. A missing one is ErrNoDrive.
func readState(path string) (*state, error) {
	b, err := keptfile.Read(statePath(path), 1<<20)
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
	for number, kept := range s.keptRegions() {
		if err := kept.Check(); err != nil {
			return nil, fmt.Errorf("region %d: %w", number, err)
		}
	}
	if err := flash.CheckGeometry(s.Size, s.LBA); err != nil {
		return nil, err
	}
	return s, s.Lost.Check(s.Size)
}

// keptPart returns the part of a state that must be kept, as text to compare: all but the counters.
func (s state) keptPart() ([]byte, error) {
	s.Counters, s.Clean, s.Version = health.Counters{}, false, s.neededVersion()
	return json.Marshal(s)
}

func (s *state) writeState(path string, step func(string)) error {
	s.Version = s.neededVersion()
	b, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return keptfile.Replace(statePath(path), append(b, '\n'), step, "state")
}
