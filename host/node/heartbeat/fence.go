package heartbeat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/millrace/millrace/internal/wholefile"
)

// ErrReplaced refuses a call or an answer of a leader that a later leader has replaced.
var ErrReplaced = errors.New("the caller's leader was replaced")

// Fence is the term of the latest leader that the node has seen. A leader with a lower one has been replaced and does
// not know it yet. The Fence is kept in a file of the state folder, so that a restart of the node does not forget it;
// without a folder it is in memory only.
type Fence struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	latest uint64 // 0 if there was none
}

// fenceFile is the content of fence.json.
type fenceFile struct {
	Fence uint64 `json:"fence"`
}

// OpenFence reads the fence that was kept. When the file cannot be read it logs that, and believes the next leader.
func OpenFence(stateDir string, log *slog.Logger) *Fence {
	f := &Fence{log: log}
	if stateDir == "" {
		return f
	}
	f.path = filepath.Join(stateDir, "fence.json")
	var content fenceFile
	b, err := os.ReadFile(f.path)
	if err == nil {
		err = json.Unmarshal(b, &content)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("the fence that was kept cannot be read: the next leader is believed, whoever it is",
			"file", f.path, "error", err)
		return f
	}
	f.latest = content.Fence
	return f
}

// Get returns the latest leader's fence.
func (f *Fence) Get() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latest
}

// See remembers a leader's fence, before the node does anything for that leader. A fence below the latest is
// ErrReplaced. A fence that cannot be written is logged and holds as long as the node runs: a full disk does not stop
// the node.
func (f *Fence) See(fence uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fence < f.latest {
		return fmt.Errorf("%w: its fence is %d, a leader of fence %d was here", ErrReplaced, fence, f.latest)
	}
	if fence == f.latest {
		return nil
	}
	f.log.Info("leader", "fence", fence, "from", f.latest)
	f.latest = fence
	if err := f.write(); err != nil {
		f.log.Error("the leader's fence is not kept: a restart would forget it",
			"file", f.path, "fence", fence, "error", err)
	}
	return nil
}

// write replaces the file, so that a crash leaves the old one or the new one. f.mu is held.
func (f *Fence) write() error {
	if f.path == "" {
		return nil
	}
	b, err := json.Marshal(fenceFile{f.latest})
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(f.path), 0o700); err != nil {
		return err
	}
	return wholefile.Write(f.path, append(b, '\n'))
}
