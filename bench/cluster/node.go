package cluster

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/millrace/millrace/host/identity"
)

// Node is a storage node: a process that runs the agent of package host/node.
type Node struct {
	*Process
	URL      string
	operator identity.Options // who reads the metrics
}

// NodeOptions describe a node. Name and Drive are required.
type NodeOptions struct {
	Name    string
	Drive   string // URI of the node's drive
	Threads int    // engine threads of the drive; 0: as the node divides the machine's cores
	// Measure is how long the node measures P of its drive at least, up to ten times as long; 0: its default.
	Measure time.Duration
}

// nodeConfig is the part of a node's configuration that differs from the defaults.
type nodeConfig struct {
	Name    string            `json:"name"`
	Listen  []string          `json:"listen"`
	Control []string          `json:"control"`
	State   string            `json:"state_dir"`
	TLS     map[string]string `json:"tls,omitempty"`
	Drives  []driveConfig     `json:"drives"`
	Measure string            `json:"measure,omitempty"`
	Log     map[string]string `json:"log"`
}

type driveConfig struct {
	Name    string `json:"name"`
	URI     string `json:"uri"`
	Threads int    `json:"threads,omitempty"`
}

// StartNode starts a node, waits until it serves, and adds it to Nodes. AwaitNodes waits until the control plane knows
// that its drive is ready.
func (c *Cluster) StartNode(ctx context.Context, o NodeOptions) (*Node, error) {
	id, err := c.Identity(identity.Node, o.Name)
	if err != nil {
		return nil, err
	}
	operator, err := c.Identity(identity.Operator, "bench-"+o.Name)
	if err != nil {
		return nil, err
	}
	conf := nodeConfig{
		Name: o.Name, Listen: []string{"127.0.0.1:0"}, Control: []string{c.Member.URL},
		State:  filepath.Join(c.Dir, o.Name),
		Drives: []driveConfig{{Name: "d0", URI: o.Drive, Threads: o.Threads}},
		Log:    map[string]string{"level": "warn"},
	}
	if c.Transport == Unix {
		conf.Listen = []string{"unix:" + filepath.Join(c.Dir, o.Name+".sock")}
	}
	if o.Measure > 0 {
		conf.Measure = o.Measure.String()
	}
	if id.On() {
		conf.TLS = map[string]string{"cert": id.Cert, "key": id.Key, "ca": id.CA}
	}
	text, err := json.Marshal(conf) // JSON is YAML
	if err != nil {
		return nil, err
	}
	path := filepath.Join(c.Dir, o.Name+".yaml")
	if err := errors.Join(os.MkdirAll(conf.State, 0o700), os.WriteFile(path, text, 0o600)); err != nil {
		return nil, err
	}
	var ready struct {
		URLs []string `json:"urls"`
	}
	p, err := c.program.Start(ctx, &ready, "node", "run", "--config", path)
	if err != nil {
		return nil, fmt.Errorf("node %s: %w", o.Name, err)
	}
	n := &Node{Process: p, operator: operator}
	c.Nodes = append(c.Nodes, n)
	if len(ready.URLs) == 0 {
		return nil, fmt.Errorf("node %s: it names no address", o.Name)
	}
	n.URL = ready.URLs[0]
	return n, nil
}

// SentBytes returns the bytes of mini-batches that the node has written to launchers, by its metrics. A mini-batch is
// counted after its last byte was written, so that the count may follow the launcher by a moment.
func (n *Node) SentBytes(ctx context.Context) (int64, error) {
	return n.metric(ctx, "millrace_node_bytes_total")
}

// metric returns the sum of a counter of the node over all its labels.
func (n *Node) metric(ctx context.Context, name string) (int64, error) {
	client, err := identity.HTTPClient(n.operator)
	if err != nil {
		return 0, err
	}
	defer client.CloseIdleConnections()
	base, err := identity.BaseURL(n.URL)
	if err != nil {
		return 0, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base+"/metrics", http.NoBody)
	if err != nil {
		return 0, err
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, fmt.Errorf("metrics of a node: %w", err)
	}
	text, err := io.ReadAll(io.LimitReader(resp.Body, 16<<20))
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		return 0, fmt.Errorf("metrics of a node: %w", err)
	}
	if resp.StatusCode != http.StatusOK {
		return 0, fmt.Errorf("metrics of a node: %s", resp.Status)
	}
	return sumOf(name, string(text))
}

// sumOf sums a counter over its labels, from the text of a node's metrics.
func sumOf(name, text string) (int64, error) {
	sum := 0.0
	for line := range strings.Lines(text) {
		rest, ok := strings.CutPrefix(line, name)
		if !ok || rest[0] != ' ' && rest[0] != '{' {
			continue
		}
		f, err := strconv.ParseFloat(strings.TrimSpace(rest[strings.LastIndexByte(rest, ' '):]), 64)
		if err != nil {
			return 0, fmt.Errorf("metrics of a node: %w", err)
		}
		sum += f
	}
	return int64(sum), nil
}
