package leader

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
)

// ErrOld says that a call comes from a leader that a later one has replaced.
var ErrOld = errors.New("the caller's leader was replaced")

// Fence is that of the latest leader seen: who comes with a lower one has been replaced and does not know it. It is kept in a file of the
// state folder, so that a restart of the node is no way past it; without a folder it is in memory only.
type Fence struct {
	path string
	log  *slog.Logger

	mu     sync.Mutex
	latest uint64 // 0 if there was none
}

// kept is the file.
type kept struct {
	Fence uint64 `json:"fence"`
}

// OpenFence reads what was kept. A file that cannot be read is told of: the next leader's fence holds.
func OpenFence(dir string, log *slog.Logger) *Fence {
	f := &Fence{log: log}
	if dir == "" {
		return f
	}
	f.path = filepath.Join(dir, "fence.json")
	var k kept
	b, err := os.ReadFile(f.path)
	if err == nil {
		err = json.Unmarshal(b, &k)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("the fence that was kept cannot be read: the next leader is believed, whoever it is", "file", f.path, "error", err)
		return f
	}
	f.latest = k.Fence
	return f
}

// Get returns the latest leader's fence.
func (f *Fence) Get() uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.latest
}

// See remembers a leader's fence, before anything is done for it, or refuses one that was replaced, with ErrOld. A fence that cannot be kept
// holds as long as the node runs: a full disk does not cost the node.
func (f *Fence) See(fence uint64) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if fence < f.latest {
		return fmt.Errorf("%w: its fence is %d, a leader of fence %d was here", ErrOld, fence, f.latest)
	}
	if fence == f.latest {
		return nil
	}
	f.log.Info("leader", "fence", fence, "from", f.latest)
	f.latest = fence
	if err := f.write(); err != nil {
		f.log.Error("the leader's fence is not kept: a restart would forget it", "file", f.path, "fence", fence, "error", err)
	}
	return nil
}

// write replaces the file, so that a crash leaves the old one or the new one. f.mu is held.
func (f *Fence) write() error {
	if f.path == "" {
		return nil
	}
	b, err := json.Marshal(kept{f.latest})
	if err != nil {
		return err
	}
	dir := filepath.Dir(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := writeSynced(f.path+".partial", append(b, '\n')); err != nil {
		return err
	}
	if err := os.Rename(f.path+".partial", f.path); err != nil {
		return err
	}
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// writeSynced writes a file that is on the disk when it returns.
func writeSynced(path string, b []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(b)
	return errors.Join(err, f.Sync(), f.Close())
}
