package power

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// mostGPUs bounds the lines of the program's output.
const mostGPUs = 64

// queryGPUs asks nvidia-smi for the power of every GPU.
func queryGPUs(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	query := exec.CommandContext(ctx, "nvidia-smi", "--query-gpu=index,power.draw", "--format=csv,noheader,nounits")
	b, err := query.Output()
	if err != nil {
		return nil, fmt.Errorf("nvidia-smi: %w", err)
	}
	return b, nil
}

// parseGPUs reads the lines "index, watts" of nvidia-smi, and returns the watts by index. A GPU that does not say its
// power has none.
func parseGPUs(b []byte) (map[int]float64, error) {
	watts := make(map[int]float64)
	for line := range strings.Lines(string(b)) {
		index, value, ok := strings.Cut(strings.TrimSpace(line), ",")
		if index == "" && !ok {
			continue
		}
		n, err := strconv.Atoi(strings.TrimSpace(index))
		if !ok || err != nil || n < 0 || n >= mostGPUs {
			return nil, fmt.Errorf("nvidia-smi printed %.80q, want a GPU's index and its watts", line)
		}
		value = strings.TrimSpace(value)
		if strings.HasPrefix(value, "[") || value == "N/A" { // [N/A], [Not Supported]
			continue
		}
		w, err := strconv.ParseFloat(value, 64)
		if err != nil || !(w >= 0 && w < 1e5) {
			return nil, fmt.Errorf("nvidia-smi says that GPU %d draws %.80q W", n, value)
		}
		watts[n] = w
	}
	return watts, nil
}

// gpus are the GPUs of the machine. Their energy follows from readings of their power.
type gpus struct {
	query func(context.Context) ([]byte, error)
	count int
	last  float64 // watts, of all of them
	at    time.Time
}

func (g *gpus) name() string   { return "gpus" }
func (g *gpus) source() string { return fmt.Sprintf("nvidia-smi, power.draw of %d GPUs", g.count) }

// sample implements domain. Between two readings the power is taken to change evenly.
func (g *gpus) sample(ctx context.Context, now time.Time) (joules float64, err error) {
	b, err := g.query(ctx)
	if err != nil {
		return 0, err
	}
	list, err := parseGPUs(b)
	if err != nil {
		return 0, err
	}
	if len(list) != g.count {
		return 0, fmt.Errorf("%d of %d GPUs say what they draw", len(list), g.count)
	}
	watts := 0.0
	for _, w := range list {
		watts += w
	}
	if !g.at.IsZero() {
		joules = (g.last + watts) / 2 * now.Sub(g.at).Seconds()
	}
	g.last, g.at = watts, now
	return joules, nil
}

// findGPUs finds the GPUs that say what they draw.
func (m *Meter) findGPUs(ctx context.Context) {
	query := m.options.GPUs
	if query == nil {
		if _, err := exec.LookPath("nvidia-smi"); err != nil {
			return
		}
		query = queryGPUs
	}
	b, err := query(ctx)
	var list map[int]float64
	if err == nil {
		list, err = parseGPUs(b)
	}
	switch {
	case err != nil:
		m.notes = append(m.notes, "GPUs are left out: "+err.Error())
	case len(list) > 0:
		m.domains = append(m.domains, &gpus{query: query, count: len(list)})
	}
}
