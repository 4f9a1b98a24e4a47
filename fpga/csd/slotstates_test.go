package csd

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/internal/statediagram"
	"github.com/millrace/millrace/internal/transition"
	"github.com/millrace/millrace/nvme"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
)

// States of image slot 1, as a host sees them in log page C1h.
const (
	hostSeesEmpty       = "empty"
	hostSeesLoaded      = "loaded"      // holds an image that was not tested since it came, or since the drive was opened
	hostSeesTested      = "tested"      // its image passed the self-test
	hostSeesActive      = "active"      // its image runs, and runs again after a restart
	hostSeesDeactivated = "deactivated" // its image does not run, and runs again after a restart
	hostSeesPrevious    = "previous"    // its image ran before the active one: a rollback activates it
)

// slotWorld is a drive with an image for slot 1 and two others in slots 2 and 3.
type slotWorld struct {
	t     *testing.T
	path  string
	drive *Drive
	conn  nvme.Conn
	bytes []byte
	image *image.Image
}

func newSlotWorld(t *testing.T) *slotWorld {
	w := &slotWorld{t: t, path: filepath.Join(t.TempDir(), "drive")}
	w.open(true)
	w.bytes, w.image = numbered(t, 11)
	for slot := uint16(2); slot <= 3; slot++ {
		b, m := numbered(t, 20+slot)
		require.NoError(t, load(t, w.conn, slot, b, m.ID.PUID()))
	}
	return w
}

func (w *slotWorld) open(create bool) {
	var err error
	w.drive, err = Open(Options{Path: w.path, Create: create, Size: 1 << 20, SLMBytes: testSLM})
	require.NoError(w.t, err)
	w.conn, err = controller.Local(w.drive.Subsystem(), controller.HostID{})
	require.NoError(w.t, err)
}

func (w *slotWorld) close() {
	require.NoError(w.t, w.conn.Close())
	require.NoError(w.t, w.drive.Close())
}

// slotEvents are what can happen to a slot. An error means that the drive refuses.
var slotEvents = map[string]func(*slotWorld) error{
	"load": func(w *slotWorld) error { return load(w.t, w.conn, 1, w.bytes, w.image.ID.PUID()) },
	"test": func(w *slotWorld) error {
		cmd := cs.ImageTest(1)
		_, err := w.conn.Admin(w.t.Context(), &cmd, nil)
		return err
	},
	"activate": func(w *slotWorld) error { return activate(w.t, w.conn, 1) },
	"activate another": func(w *slotWorld) error {
		if logPageOf(w.t, w.conn).Slots[2].Active {
			return activate(w.t, w.conn, 3)
		}
		return activate(w.t, w.conn, 2)
	},
	"deactivate": func(w *slotWorld) error {
		cmd := cs.Activation(1, false)
		_, err := w.conn.Admin(w.t.Context(), &cmd, nil)
		return err
	},
	"unload": func(w *slotWorld) error {
		cmd := cs.UnloadProgram(1)
		_, err := w.conn.Admin(w.t.Context(), &cmd, nil)
		return err
	},
	"restart": func(w *slotWorld) error {
		w.close()
		w.open(false)
		return nil
	},
}

// state reads slot 1 as a host does.
func (w *slotWorld) state() string {
	switch s := logPageOf(w.t, w.conn).Slots[1]; {
	case s.Image == image.ID{}:
		return hostSeesEmpty
	case s.Active:
		return hostSeesActive
	case s.Boot:
		return hostSeesDeactivated
	case s.Previous:
		return hostSeesPrevious
	case s.Tested:
		return hostSeesTested
	default:
		return hostSeesLoaded
	}
}

// TestStatesOfAnImageSlot tries every event in every state that the drive reaches, each time on a new drive that was
// brought into the state, and compares the transitions that it sees with the picture in docs/architecture.md. Events
// that the drive refuses, and those that change nothing, are left out of the picture.
func TestStatesOfAnImageSlot(t *testing.T) {
	events := make([]string, 0, len(slotEvents))
	for e := range slotEvents {
		events = append(events, e)
	}
	slices.Sort(events)
	seen := transition.Table[string, string]{}
	ways := map[string][]string{hostSeesEmpty: nil} // the events that lead to a state
	pending := []string{hostSeesEmpty}
	for len(pending) > 0 {
		from := pending[0]
		pending = pending[1:]
		seen[from] = map[string]string{}
		for _, event := range events {
			w := newSlotWorld(t)
			for _, before := range ways[from] {
				require.NoError(t, slotEvents[before](w), "%s: %s", strings.Join(ways[from], ", "), before)
			}
			require.Equal(t, from, w.state(), strings.Join(ways[from], ", "))
			err := slotEvents[event](w)
			to := w.state()
			w.close()
			if err != nil {
				require.Equal(t, from, to, "%s was refused in state %s and changed it", event, from)
				continue
			}
			if to == from {
				continue
			}
			seen[from][event] = to
			if _, known := ways[to]; !known {
				ways[to] = append(slices.Clone(ways[from]), event)
				pending = append(pending, to)
			}
		}
	}
	statediagram.Picture[string, string]{
		File: "../../docs/architecture.md", Name: "an image slot", Table: seen, Start: []string{hostSeesEmpty},
	}.Document(t)
}
