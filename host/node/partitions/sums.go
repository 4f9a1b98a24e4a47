package partitions

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"

	"github.com/millrace/millrace/internal/wholefile"
)

// sums keeps the SHA-256 of partitions as they were put on drives, in a file of the state folder, or in memory only.
type sums struct {
	path string
	log  *slog.Logger

	mu   sync.Mutex
	kept map[string]string // drive's UUID or name, "/", partition: hex
}

// openSums reads the checksums that were kept. When the file cannot be read it logs that and begins with none.
func openSums(dir string, log *slog.Logger) *sums {
	s := &sums{log: log, kept: map[string]string{}}
	if dir == "" {
		return s
	}
	s.path = filepath.Join(dir, "sums.json")
	b, err := os.ReadFile(s.path)
	if err == nil {
		err = json.Unmarshal(b, &s.kept)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("checksums that were kept cannot be read: partitions are taken as they are now", "file", s.path,
			"error", err)
	}
	if s.kept == nil {
		s.kept = map[string]string{}
	}
	return s
}

// get returns a partition's checksum, or nil if none was kept.
func (s *sums) get(drive, partition string) []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	b, err := hex.DecodeString(s.kept[drive+"/"+partition])
	if err != nil || len(b) == 0 {
		return nil
	}
	return b
}

// put keeps a partition's checksum.
func (s *sums) put(drive, partition string, sum []byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.kept[drive+"/"+partition] = hex.EncodeToString(sum)
	if err := s.write(); err != nil {
		s.log.Warn("a checksum is not kept", "file", s.path, "error", err)
	}
}

// write replaces the file, if there is one. s.mu is held.
func (s *sums) write() error {
	if s.path == "" {
		return nil
	}
	return wholefile.WriteJSON(s.path, s.kept)
}
