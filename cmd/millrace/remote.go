package main

import (
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/control"
	"github.com/millrace/millrace/host/contexts"
	"github.com/millrace/millrace/host/identity"
	"github.com/millrace/millrace/trainmgr/remote"
)

// defaultControl is the address of the control plane where nothing names another.
const defaultControl = "http://" + control.DefaultListen

// addressFlags are the flags that name a control plane and the certificate to show it.
type addressFlags struct {
	control  []string
	context  string
	identity identity.Options
}

func (f *addressFlags) addFlags(cmd *cobra.Command, when string) {
	fl := cmd.Flags()
	fl.StringSliceVar(&f.control, "control", nil, when+
		"members of the control plane: https://HOST:PORT, http://HOST:PORT or unix:PATH (default: "+contexts.ControlEnv+
		", or the context's)")
	fl.StringVar(&f.context, "context", "", when+"name of the context that says address and certificate (default: "+
		contexts.ContextEnv+", or the current one: millrace context list)")
	fl.StringVar(&f.identity.Cert, "cert", "", when+"certificate (PEM) to show (default: "+contexts.CertEnv+
		", or the context's)")
	fl.StringVar(&f.identity.Key, "key", "", when+"its private key (PEM) (default: "+contexts.KeyEnv+
		", or the context's)")
	fl.StringVar(&f.identity.CA, "ca", "", when+"authorities (PEM) whose certificates are trusted (default: "+
		contexts.CAEnv+", or the context's)")
	_ = cmd.RegisterFlagCompletionFunc("context", completeContexts) // fails only for a flag that is not there
}

// target returns the address of the control plane and the certificate that the command shows it.
func (f *addressFlags) target() (contexts.Target, error) {
	t, err := contexts.Resolve(contexts.Flags{Context: f.context, Control: f.control, Identity: f.identity}, os.Getenv)
	if errors.Is(err, contexts.ErrUnknown) {
		return t, cli.WrongUsage(err)
	}
	return t, err
}

// remoteFlags are addressFlags and the time to wait for an answer.
type remoteFlags struct {
	addressFlags
	patience time.Duration
	cmd      *cobra.Command
}

// contactTime is how long commands wait for the first answer of a control plane, which may still be starting.
const contactTime = 5 * time.Second

func (f *remoteFlags) addFlags(cmd *cobra.Command) {
	f.cmd = cmd
	f.addressFlags.addFlags(cmd, "")
	cmd.Flags().DurationVar(&f.patience, "patience", 15*time.Second,
		"how long to wait for a member that leads; unless it is given, 5s for one that answers at all")
}

// dial returns a client of the control plane that the flags name.
func (f *remoteFlags) dial() (*remote.Client, error) {
	t, err := f.target()
	if err != nil {
		return nil, err
	}
	if len(t.Control) == 0 {
		t.Control = []string{defaultControl}
	}
	f.identity = t.Identity // commands that call nodes show it as well
	o := remote.Options{Control: t.Control, Identity: t.Identity, Patience: f.patience, Contact: contactTime}
	if f.cmd.Flags().Changed("patience") {
		o.Contact = f.patience
	}
	client, err := remote.Dial(o)
	if errors.Is(err, remote.ErrOptions) {
		return nil, cli.WrongUsage(err)
	}
	return client, err
}

// withAdvice adds to an error what to do about it.
func withAdvice(err error) error {
	if say := advice(err); say != "" {
		return fmt.Errorf("%w: %s", err, say)
	}
	return err
}

// advice returns what to do about an error of an address or an identity; "" where the error says it.
func advice(err error) string {
	const files = " (--cert, --key, --ca, or --context; millrace context show says what is used)"
	if m := (*identity.MismatchError)(nil); errors.As(err, &m) {
		switch m.Cause {
		case identity.WantsTLS:
			return "write https:// and give a certificate" + files
		case identity.WantsClear:
			return "write http:// (--control, or --context), or have it serve TLS (--cert, --key, --ca of millrace " +
				"control run)"
		case identity.NoIdentity:
			return "give a certificate, its key and the authority" + files
		case identity.UnknownServer:
			return "give the authority that signed it with --ca, or name another control plane (--control, --context)" +
				files
		case identity.UnknownCaller, identity.RefusedCaller:
			return "show a certificate that its authority signed" + files
		case identity.WrongHost:
			return "call it by one of those names (--control, --context), or issue a certificate for this one " +
				"(millrace pki issue --host)"
		case identity.ServerExpired:
			return "have a new one issued for it (millrace pki issue; millrace up does so by itself), and look at " +
				"this machine's clock"
		case identity.CallerExpired:
			return "have a new one issued (millrace pki issue --role operator) and name it" + files
		case identity.WrongRole:
			return "name the control plane with --control or --context"
		case identity.NotHTTP, identity.UnknownAddress:
			return "name the control plane with --control, or with --context (millrace context list)"
		}
	}
	switch {
	case errors.Is(err, identity.ErrCertificate):
		return "name certificate, key and authority" + files
	case errors.Is(err, remote.ErrUnreachable) && errors.Is(err, syscall.ECONNREFUSED):
		return "nothing listens there: start a control plane (millrace up, or millrace control run), or name another " +
			"with --control or --context"
	}
	return ""
}
