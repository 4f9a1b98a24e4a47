package host

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/internal/wholefile"
)

// rateKey has everything that P depends on.
type rateKey struct {
	Drive    string `json:"drive"` // identity of the drive, which its name and place are not
	Engine   string `json:"engine"`
	Commands string `json:"commands,omitempty"` // the command set of a drive that computes
	Pipeline string `json:"pipeline_sha256"`
	Image    string `json:"image,omitempty"`
	Batch    int    `json:"batch_rows"`
	Threads  int    `json:"threads"`
	Streams  int    `json:"streams"`
}

// keptRate is one measurement, as the file has it: what was measured, when, over how many rows, and how far it is
// known.
type keptRate struct {
	rateKey
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

// rates keeps measurements in a file, or in memory only.
type rates struct {
	path string
	log  *slog.Logger

	mu   sync.Mutex
	list []keptRate // oldest first
}

// openRates reads the measurements that were kept. When the file cannot be read it logs that and begins with none: P
// can be measured again.
func openRates(path string, log *slog.Logger) *rates {
	r := &rates{path: path, log: log}
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

// get returns the P that was measured, if it was. A record without a spread is of a version that counted the slow
// beginning, and is not taken. One that did not settle is taken for a while only.
func (r *rates) get(key rateKey) (api.Measurement, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, k := range r.list {
		if k.rateKey == key && k.RowsPerSecond > 0 && k.Spread > 0 &&
			(k.Settled || time.Since(k.Measured) < unsettledTime) {
			return api.Measurement{RowsPerSecond: k.RowsPerSecond, Rows: k.Rows, Elapsed: k.Elapsed, Spread: k.Spread,
				Settled: k.Settled}, true
		}
	}
	return api.Measurement{}, false
}

// put keeps a measurement and drops an earlier one of the same key.
func (r *rates) put(key rateKey, m api.Measurement) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.list = slices.DeleteFunc(r.list, func(k keptRate) bool { return k.rateKey == key })
	r.list = append(r.list, keptRate{key, m.RowsPerSecond, m.Rows, m.Elapsed, m.Spread, m.Settled,
		time.Now().UTC()})
	r.list = r.list[max(0, len(r.list)-maxRates):]
	if err := r.write(); err != nil {
		r.log.Warn("P is not kept", "file", r.path, "error", err)
	}
}

// write replaces the file, if there is one. r.mu is held.
func (r *rates) write() error {
	if r.path == "" {
		return nil
	}
	return wholefile.WriteJSON(r.path, r.list)
}

// of returns P of one drive with an image, by pipeline.
func (r *rates) of(drive, image string) map[string]float64 {
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

// rateIdentity returns the identity under which P of a drive is kept. A region has a P of its own, which depends on how
// many regions share the drive's flash, too.
func (d *Drive) rateIdentity() string {
	id := d.Identity()
	if dev := d.computer(); dev != nil && dev.Info().Regions > 1 {
		return fmt.Sprintf("%s region %d of %d", id, dev.Region(), dev.Info().Regions)
	}
	return id
}

// Identity returns the identity under which records of what a drive holds are kept: its UUID where it has one, else its
// name. The regions of a drive hold the same, and have one identity.
func (d *Drive) Identity() string {
	if id := d.UUID(); id != "" {
		if d.card != nil && d.device != nil {
			return id + "+" + namespaceUUID(d.card) // P is that of the two together
		}
		return id
	}
	return fmt.Sprintf("name:%s", d.name)
}
