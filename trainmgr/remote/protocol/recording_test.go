package protocol

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/internal/goldenfile"
	"github.com/millrace/millrace/sdk/dataset"
)

// recordedScripts are the scripts whose incidents are recorded, and how many blocks of each. The blocks that follow are
// about patience and times, which a launcher is free to choose.
var recordedScripts = map[string]int{
	"epoch": 6, "fenced": 1, "fragments": 3, "lastacknowledgements": 1, "leaders": 3, "lostanswers": 4, "onlynode": 2,
	"token": 3, "turnover": 1,
}

// TestRecordings compares the recordings in testdata with what the scripts do. The launcher in Go (package remote) and
// the launcher in Python (sdk/python) play the recordings. README.md in testdata/recordings says what the steps mean.
func TestRecordings(t *testing.T) {
	for name, blocks := range recordedScripts {
		t.Run(name, func(t *testing.T) {
			text, err := os.ReadFile(filepath.Join("testdata", name+".txt"))
			require.NoError(t, err)
			s := newScripted(t)
			for _, block := range strings.SplitN(string(text), "\n\n", blocks+1)[:blocks] {
				commands, _, _ := strings.Cut(block, "----")
				for command := range strings.SplitSeq(commands, "\n") {
					if command != "" && !strings.HasPrefix(command, "#") {
						s.do(strings.Fields(command))
						s.settle()
					}
				}
			}
			var lines strings.Builder
			encoder := json.NewEncoder(&lines)
			for _, step := range s.recording {
				require.NoError(t, encoder.Encode(step))
			}
			goldenfile.Text(t, filepath.Join("testdata", "recordings", name+".jsonl"), lines.String())
		})
	}
}

// recordedStep is a line of a recording.
type recordedStep struct {
	Step     string          `json:"step"`
	Call     string          `json:"call,omitempty"`
	Session  string          `json:"session,omitempty"`
	Epoch    uint64          `json:"epoch"`
	Boundary string          `json:"boundary,omitempty"`
	Fence    uint64          `json:"fence,omitempty"`
	Owned    [][2]uint64     `json:"owned,omitempty"`
	Numbers  [][2]uint64     `json:"numbers,omitempty"`
	Lease    uint64          `json:"lease,omitempty"`
	Leases   []uint64        `json:"leases,omitempty"`
	Fetched  []uint64        `json:"fetched,omitempty"`
	Adopt    []recordedGrant `json:"adopt,omitempty"`
	Grants   []recordedGrant `json:"grants,omitempty"`
	Revoked  []uint64        `json:"revoked,omitempty"`
	Says     []string        `json:"says,omitempty"` // Of an answer: adopt, epochDone, jobDone, unknownSession.
	Reason   string          `json:"reason,omitempty"`
	Leader   string          `json:"leader,omitempty"`
	Lost     bool            `json:"lost,omitempty"`
	Ordered  bool            `json:"ordered,omitempty"`
}

// recordedGrant is a lease in a recording.
type recordedGrant struct {
	Lease uint64 `json:"lease"`
	Epoch uint64 `json:"epoch"`
	Split int    `json:"split"`
	From  uint64 `json:"from"`
	To    uint64 `json:"to"`
	Node  string `json:"node"`
	Drive string `json:"drive"`
}

func recordedGrants(list []Grant) (grants []recordedGrant) {
	for _, g := range list {
		grants = append(grants, recordedGrant{g.Lease, g.Epoch, g.Split, g.From, g.To, g.Node, g.Drive})
	}
	return grants
}

func recordedRanges(list []dataset.Range) (ranges [][2]uint64) {
	for _, r := range list {
		ranges = append(ranges, [2]uint64{r.From, r.To})
	}
	return ranges
}

func (s *scripted) record(step recordedStep) { s.recording = append(s.recording, step) }

// recordedCalls are the names of the calls on the wire, by their names in scripts.
var recordedCalls = map[string]string{
	"ask": "Lease", "report": "Lease", "epoch": "Lease", "acknowledge": "Acknowledge", "token": "Checkpoint",
	"attach": "Attach", "release": "Release",
}

// recordFault records how a member did not answer a call.
func (s *scripted) recordFault(name, how, leader string) {
	step := map[string]string{"other": "lost", "leader": "redirected", "final": "refused"}[how]
	s.record(recordedStep{Step: step, Call: recordedCalls[name], Leader: leader})
}

// recordRequest records a lease call that says something else than the one before.
func (s *scripted) recordRequest(purpose Purpose, q LeaseRequest) {
	if purpose == AskEpoch {
		return
	}
	step := recordedStep{
		Step: "lease", Session: string(q.Session), Epoch: q.Epoch, Leases: q.Held, Fetched: q.Fetched,
		Adopt: recordedGrants(q.Adopt),
	}
	for _, before := range slices.Backward(s.recording) {
		if before.Step == "lease" {
			if reflect.DeepEqual(before, step) {
				return
			}
			break
		}
	}
	s.record(step)
}

// recordLeases records an answer to a lease call that says something.
func (s *scripted) recordLeases(purpose Purpose, a LeaseAnswer) {
	step := recordedStep{
		Step: "leased", Epoch: s.machine.epoch.Number, Fence: a.Fence, Grants: recordedGrants(a.Grants), Revoked: a.Revoked,
	}
	if purpose == AskEpoch {
		step.Epoch++
	}
	for word, said := range map[string]bool{
		"adopt": a.Adopt, "epochDone": a.EpochDone, "jobDone": a.JobDone, "unknownSession": a.UnknownSession,
	} {
		if said {
			step.Says = append(step.Says, word)
		}
	}
	slices.Sort(step.Says)
	fence := max(s.lastFence, 1)
	s.lastFence = a.Fence
	if len(step.Grants)+len(step.Revoked)+len(step.Says) > 0 || a.Fence != fence {
		s.record(step)
	}
}
