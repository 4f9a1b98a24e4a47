package main

import (
	"errors"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/host/contexts"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/trainmgr/control"
	"github.com/millrace/millrace/trainmgr/remote"
)

// defaultControl is asked when nothing names a control plane.
const defaultControl = "http://" + control.DefaultListen

// addressFlags say which control plane is meant, and as whom it is asked.
type addressFlags struct {
	control  []string
	context  string
	identity identity.Options
}

func (f *addressFlags) add(cmd *cobra.Command, when string) {
	fl := cmd.Flags()
	fl.StringSliceVar(&f.control, "control", nil, when+"members of the control plane: https://HOST:PORT, http://HOST:PORT or unix:PATH (default: "+contexts.ControlEnv+", or the context's)")
	fl.StringVar(&f.context, "context", "", when+"name of the context that says address and certificate (default: "+contexts.ContextEnv+", or the current one: millrace context list)")
	fl.StringVar(&f.identity.Cert, "cert", "", when+"certificate (PEM) to show (default: "+contexts.CertEnv+", or the context's)")
	fl.StringVar(&f.identity.Key, "key", "", when+"its private key (PEM) (default: "+contexts.KeyEnv+", or the context's)")
	fl.StringVar(&f.identity.CA, "ca", "", when+"authorities (PEM) whose certificates are trusted (default: "+contexts.CAEnv+", or the context's)")
	_ = cmd.RegisterFlagCompletionFunc("context", completeContexts) // fails only for a flag that is not there
}

// target decides who is asked, as whom.
func (f *addressFlags) target() (contexts.Target, error) {
	t, err := contexts.Resolve(contexts.Flags{Context: f.context, Control: f.control, Identity: f.identity}, os.Getenv)
	if errors.Is(err, contexts.ErrUnknown) {
		return t, usageError{err}
	}
	return t, err
}

// remoteFlags are addressFlags, and for how long to ask.
type remoteFlags struct {
	addressFlags
	patience time.Duration
}

func (f *remoteFlags) add(cmd *cobra.Command) {
	f.addressFlags.add(cmd, "")
	cmd.Flags().DurationVar(&f.patience, "patience", 15*time.Second, "how long to wait for a member that leads")
}

// dial makes a client of the control plane that is meant.
func (f *remoteFlags) dial() (*remote.Client, error) {
	t, err := f.target()
	if err != nil {
		return nil, err
	}
	if len(t.Control) == 0 {
		t.Control = []string{defaultControl}
	}
	f.identity = t.Identity // nodes are called with it, too
	client, err := remote.Dial(remote.Options{Control: t.Control, Identity: t.Identity, Patience: f.patience})
	if errors.Is(err, remote.ErrOptions) {
		return nil, usageError{err}
	}
	return client, err
}
