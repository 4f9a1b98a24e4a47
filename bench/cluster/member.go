package cluster

import (
	"context"
	"errors"
	"os"

	"github.com/millrace/millrace/host/identity"
)

// Member is a process of the control plane, with a folder of its own.
type Member struct {
	*Process
	URL string
	dir string
}

// StartMember starts a member on a free port of loopback and waits until it is ready. more are further arguments of
// control run.
func StartMember(ctx context.Context, p Program, id identity.Options, more ...string) (_ *Member, err error) {
	dir, err := os.MkdirTemp("", "millrace-bench-control")
	if err != nil {
		return nil, err
	}
	args := append([]string{"control", "run", "--data", dir, "--listen", "127.0.0.1:0"}, more...)
	if id.On() {
		args = append(args, "--cert", id.Cert, "--key", id.Key, "--ca", id.CA)
	}
	var ready struct {
		URL string `json:"url"`
	}
	s, err := p.Start(ctx, &ready, args...)
	if err != nil {
		return nil, errors.Join(err, os.RemoveAll(dir))
	}
	return &Member{Process: s, URL: ready.URL, dir: dir}, nil
}

// Close kills the process and removes its folder.
func (m *Member) Close() error {
	m.Kill()
	return os.RemoveAll(m.dir)
}
