// Package rates keeps P of drives, the rows a second that they preprocess, as it was measured: in a file, or in memory
// alone. A P is that of a drive, a pipeline, and everything else that it depends on (Key).
//
// A Kept is safe for concurrent use.
package rates

import (
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/wholefile"
)

// Key has everything that P depends on.
type Key struct {
	Drive    string `json:"drive"` // identity of the drive, which its name and place are not
	Engine   string `json:"engine"`
	Commands string `json:"commands,omitempty"` // the command set of a drive that computes
	Pipeline string `json:"pipeline_sha256"`
	Image    string `json:"image,omitempty"`
	Batch    int    `json:"batch_rows"`
	Threads  int    `json:"threads"`
	Streams  int    `json:"streams"`
}

// record is one measurement, as the file has it: what was measured, when, over how many rows, and how far it is
// known.
type record struct {
	Key
	RowsPerSecond float64       `json:"p_rows_per_second"`
	Rows          int64         `json:"rows"`
	Elapsed       time.Duration `json:"elapsed_ns"`
	Spread        float64       `json:"spread_share"`
	Settled       bool          `json:"settled"`
	Measured      time.Time     `json:"measured"`
}

// unsettledTime is how long a P that did not settle is taken, before the next job measures it again: what disturbed it
// may have ended.
const unsettledTime = time.Hour

// maxRates bounds the measurements in the file. The oldest are dropped first.
const maxRates = 4096

// Kept are measurements in a file, or in memory only.
type Kept struct {
	path string
	log  *slog.Logger

	mu   sync.Mutex
	list []record // oldest first
}

// Open reads the measurements that were kept. "" keeps them in memory. When the file cannot be read Open logs that and
// begins with none: P can be measured again.
func Open(path string, log *slog.Logger) *Kept {
	r := &Kept{path: path, log: log}
	if path == "" {
		return r
	}
	b, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(b, &r.list)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		log.Warn("P that was kept cannot be read, and is measured again", "file", path, "error", err)
		r.list = nil
	}
	return r
}

// Get returns the P that was measured, if it was. A record without a spread is of a version that counted the slow
// beginning, and is not taken. One that did not settle is taken for a while only.
func (r *Kept) Get(key Key) (api.Measurement, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.list {
		if k.Key == key && k.RowsPerSecond > 0 && k.Spread > 0 &&
			(k.Settled || time.Since(k.Measured) < unsettledTime) {
			return api.Measurement{RowsPerSecond: k.RowsPerSecond, Rows: k.Rows, Elapsed: k.Elapsed, Spread: k.Spread,
				Settled: k.Settled}, true
		}
	}
	return api.Measurement{}, false
}

// Put keeps a measurement and drops an earlier one of the same key.
func (r *Kept) Put(key Key, m api.Measurement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = slices.DeleteFunc(r.list, func(k record) bool { return k.Key == key })
	r.list = append(r.list, record{key, m.RowsPerSecond, m.Rows, m.Elapsed, m.Spread, m.Settled,
		time.Now().UTC()})
	r.list = r.list[max(0, len(r.list)-maxRates):]
	if err := r.write(); err != nil {
		r.log.Warn("P is not kept", "file", r.path, "error", err)
	}
}

// write replaces the file, if there is one. r.mu is held.
func (r *Kept) write() error {
	if r.path == "" {
		return nil
	}
	return wholefile.WriteJSON(r.path, r.list)
}

// Of returns P of one drive with an image, by pipeline.
func (r *Kept) Of(drive, image string) map[string]float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := map[string]float64{}
	for _, k := range r.list {
		if k.Drive == drive && k.Image == image {
			m[k.Pipeline] = k.RowsPerSecond
		}
	}
	return m
}
