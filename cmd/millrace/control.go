package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/control"
	"github.com/millrace/millrace/control/hook"
	"github.com/millrace/millrace/control/presence"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/trainmgr/remote"
)

// controlCommands are the commands of the control plane.
type controlCommands struct{ *console }

func (c controlCommands) command() *cobra.Command {
	return cli.Group("control", "The control plane", c.run(), memberCommands(c).command(), c.backup(),
		c.restore())
}

// controlReady bounds how long a member waits for the others when it starts.
const controlReady = 10 * time.Minute

func (c controlCommands) run() *cobra.Command {
	var (
		o     control.Options
		peers []string
		log   logFlags
	)
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run a member of the control plane",
		Long: `Runs one member of the control plane until it is interrupted: the place where storage nodes register
and jobs are submitted. It keeps what it must not forget in etcd, which it embeds: one member alone,
or, with --peers, three or five that survive the loss of one or two. One line says when it is ready.
Of several members one leads; the others send callers there.

Between hosts it wants TLS: --cert, --key and --ca (millrace pki). Without, it listens on loopback
or a unix socket only, unless --insecure-network names the network that is trusted. /metrics is
Prometheus', /readyz says whether the member is ready and if not, why.`,
		Example: "  millrace control run --data /var/lib/millrace/control\n" +
			"  millrace control run --data d0 --name m0 --listen 10.0.0.1:7460 --cert m0.pem --key m0.key --ca " +
			"ca.pem " +
			"--peers m0=https://10.0.0.1:7461,m1=https://10.0.0.2:7461,m2=https://10.0.0.3:7461\n" +
			"  millrace control run --data d3 --name m3 --peers m3=https://10.0.0.4:7461 --join " +
			"https://10.0.0.1:7460 --listen 10.0.0.4:7460 --cert m3.pem --key m3.key --ca ca.pem\n" +
			"  millrace control run --data d0 --worker-hook /etc/millrace/worker-hook --workers-most 40",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			o.Peers = peers
			if o.Data == "" && len(o.Etcd) == 0 {
				return cli.Usagef(
					"--data is wanted: the folder in which the member keeps what it must not forget (or --etcd, for " +
						"an etcd that runs elsewhere)")
			}
			o.Logger = c.log(log)
			return c.serve(cmd.Context(), o)
		},
	}
	f := cmd.Flags()
	cli.AddNativeTiming(f, cli.ServiceTiming)
	f.StringVar(&o.Data, "data", "", "folder of the embedded etcd; made if it is not there")
	f.StringVar(&o.Name, "name", "", "name of this member among --peers")
	f.StringSliceVar(&peers, "peers", nil,
		"NAME=URL of every member, this one too, at which they reach each other; none: one member alone")
	f.StringSliceVar(&o.Join, "join", nil,
		"URLs of members of a control plane to which this one was added (control members add); --peers then names "+
			"this one alone")
	f.StringSliceVar(&o.Etcd, "etcd", nil, "endpoints of an etcd that runs elsewhere, instead of embedding one")
	f.StringVar(&o.EtcdClient, "etcd-client", "",
		"URL at which the embedded etcd lets etcdctl in, as http://127.0.0.1:2379, unix:///PATH or, for certificates "+
			"with the role control, https://HOST:PORT (default: nowhere)")
	f.Var(quantity.BytesFlag[int64]{To: &o.EtcdQuota}, "etcd-quota",
		"what the embedded etcd holds at most, as 4GiB (default 2 GiB)")
	f.StringVar(&o.Listen, "listen", control.DefaultListen, "HOST:PORT or unix:PATH to serve at; port 0 picks one")
	f.StringVar(&o.Advertise, "advertise", "",
		"URL at which nodes and launchers reach this member (default: made from --listen)")
	f.StringVar(&o.Identity.Cert, "cert", "", "certificate (PEM) of this member")
	f.StringVar(&o.Identity.Key, "key", "", "its private key (PEM)")
	f.StringVar(&o.Identity.CA, "ca", "", "authorities (PEM) whose certificates callers must show")
	f.StringVar(&o.Trusted, "insecure-network", "", "CIDR of a network that is trusted: listen there without TLS")
	f.DurationVar(&o.LeaderTTL, "leader-ttl", 5*time.Second,
		"after so long without a sign of life another member leads; whole seconds")
	f.DurationVar(&o.SessionTTL, "session-ttl", presence.DefaultSilence,
		"a rank whose launcher has not called for so long, and closed no connection, counts as detached: its leases "+
			"come back")
	f.DurationVar(&o.AbandonAfter, "abandon-after", control.DefaultAbandonAfter,
		"a job ends, abandoned, when no rank has called for so long, unless it says otherwise itself; negative: never")
	f.DurationVar(&o.AttachWithin, "attach-within", control.DefaultAttachWithin,
		"a job ends, abandoned, when no rank has attached for so long since it began to run, unless it says otherwise "+
			"itself; negative: as --abandon-after")
	f.StringVar(&o.WorkerHook, "worker-hook", "",
		"shell command that starts and stops workers without data, as $MILLRACE_WORKER_ACTION, _COUNT, _NAMES, _JOBS "+
			"and _CONTROL say (default: none are started)")
	f.DurationVar(&o.WorkerHookTimeout, "worker-hook-timeout", hook.DefaultTimeout,
		"how long one run of the hook may take; it is tried three times")
	f.IntVar(&o.WorkersLeast, "workers-least", 0, "workers without data that are kept, whatever jobs want")
	f.IntVar(&o.WorkersMost, "workers-most", control.DefaultWorkersMost,
		"workers without data, those included that the hook did not start, beyond which none is started")
	f.DurationVar(&o.WorkerIdle, "worker-idle", control.DefaultWorkerIdle,
		"how long there have to be too many workers before the hook stops some")
	f.BoolVar(&o.TicketsOptional, "tickets-optional", false,
		"have nodes serve launchers that show no ticket with their requests: only as long as launchers run that are "+
			"older than tickets are")
	f.IntVar(&o.MaxJobs, "max-jobs", control.DefaultMaxJobs, "jobs that may run at once")
	f.Float64Var(&o.OwnerShare, "owner-share", control.DefaultOwnerShare,
		"part of --max-jobs and of --vocabulary-bytes that launchers of one owner may have, above 0 to 1; operators, and "+
			"callers without TLS, may have all")
	f.IntVar(&o.History, "history", control.DefaultHistory, "ended jobs that are remembered")
	f.IntVar(&o.MaxConnections, "max-connections", control.DefaultMaxConnections,
		"connections at once; at most half of them and one more are of one address of another machine")
	o.RequestMemory = 512 << 20
	f.Var(quantity.BytesFlag[int64]{To: &o.RequestMemory}, "request-memory",
		"memory of all requests at once, packed, unpacked and decoded; at most half of it is one peer's")
	f.StringVar(&o.VocabularyFolder, "vocabularies", "",
		"folder for the vocabularies that jobs name (default: a folder of --data)")
	f.Var(quantity.BytesFlag[int64]{To: &o.VocabularyBytes}, "vocabulary-bytes",
		"what all vocabularies may take there, as 64GiB; --owner-share of it for one owner (default 16 GiB)")
	f.BoolVar(&o.Profile, "pprof", false, "serve /debug/pprof to callers on this machine")
	log.addFlags(cmd)
	return cmd
}

// controlStarted is what control run prints when the member is ready.
type controlStarted struct {
	URL    string `json:"url"`
	Name   string `json:"name"`
	Leads  bool   `json:"leader"`
	Etcd   string `json:"etcd"`
	Secure bool   `json:"tls"`
}

func (c controlCommands) serve(ctx context.Context, o control.Options) (err error) {
	o.Version = buildVersion().Version
	starting, cancel := context.WithTimeout(ctx, controlReady)
	defer cancel()
	s, err := control.Start(starting, o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := s.WaitReady(starting); err != nil {
		if ctx.Err() != nil {
			return nil // interrupted before it was ready
		}
		return err
	}
	r := controlStarted{
		URL: s.URL(), Name: o.Name, Leads: s.Leads(), Secure: o.Identity.On(), Etcd: "embedded, 1 member",
	}
	switch {
	case len(o.Etcd) > 0:
		r.Etcd = "at " + strings.Join(o.Etcd, ", ")
	default:
		if list, err := s.ListMembers(starting, nil); err == nil && len(list.Members) != 1 {
			r.Etcd = fmt.Sprintf("embedded, %d members", len(list.Members))
		}
	}
	err = c.Print(r, func(w io.Writer) {
		does := "follows"
		if r.Leads {
			does = "leads"
		}
		fmt.Fprintf(w, "control plane ready: %s, %s, etcd %s\n", r.URL, does, r.Etcd)
	})
	if err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case <-s.Stopped():
		return errors.New(
			"this member's etcd has ended: it was removed (millrace control members list, of another member), or its " +
				"disk failed; the log says more")
	}
}

// askControl completes a command that asks the control plane: it adds the flags that name the control plane, and run
// gets a client.
func askControl(cmd *cobra.Command, f *remoteFlags,
	run func(ctx context.Context, client *remote.Client, args []string) error) *cobra.Command {
	f.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		client, err := f.dial()
		if err != nil {
			return withAdvice(err)
		}
		return errors.Join(withAdvice(run(cmd.Context(), client, args)), client.Close())
	}
	return cmd
}

// printRepeatedly prints once, or, with watch, every second until the command is interrupted. On a terminal each print
// replaces the one before it.
func (c *console) printRepeatedly(ctx context.Context, watch bool, once func(c *console) error) error {
	if !watch {
		return once(c)
	}
	screen := terminal.NewScreen(c.Out, terminal.Width(c.Out))
	for {
		var text strings.Builder
		again := *c
		again.Out, again.Screen = &text, c.Out
		if err := once(&again); err != nil {
			return err
		}
		if err := screen.Draw(text.String()); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Second):
		}
	}
}
