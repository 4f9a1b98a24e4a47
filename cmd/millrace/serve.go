package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/host/target"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/nvme/auth"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/cs"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/faults"
	"github.com/millrace/millrace/nvme/tcp"
)

// serveCommand is drive serve.
type serveCommand struct{ *console }

// serveFlags are the flags of drive serve.
type serveFlags struct {
	flash, lba            string
	size, slm             int64
	threads, regions      int
	weights               []int
	hostIOShare           int
	diskless              bool
	state                 string
	listen, discovery     string
	advertise, nqn, allow string
	referrals             []string
	key, ctrlKey          string
	faults, namespaces    string
	create                bool
	connections, unproven int
	trust                 trustFlags
	log                   logFlags
}

func (c serveCommand) command() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a drive as an NVMe/TCP target",
		Long: "Serves the drive in --flash over NVMe/TCP until it is interrupted: to this program as " +
			"tcp://HOST:PORT/NQN, and to kernels and nvme-cli. One that is not there is\n" +
			"made with --create, and is an error without. One line says when it is ready and what it serves; hosts " +
			"that come and go are logged on standard\n" +
			"error. When it is interrupted, commands that run are completed and the flash is flushed. Keys given on a " +
			"command line are seen by everybody on the machine: use @FILE.\n\n" +
			"With --diskless the drive has no flash, and no namespace 1: hosts store windows of their files in its " +
			"memory, as a network-attached accelerator is used.\nIn --state it keeps its identity, its images and which " +
			"images it takes; without --state it keeps nothing. What hosts store in its memory is gone with them.\n\n" +
			"With --namespaces the drive has more namespaces of blocks than its own, those of a list, which SIGHUP " +
			"has it read again: what is new is added\n" +
			"and what is gone is removed under the hosts that are connected.\n\n" +
			"Discovery is answered at --listen, and at --discovery-listen if given. It names the address of --listen, " +
			"or where hosts reach the drive by\n" +
			"another, the one of --advertise.",
		Example: "  millrace drive serve --flash d0.flash --create --size 4GiB --listen 127.0.0.1:4420 --nqn " +
			"nqn.2024-01.io.millrace:d0\n" +
			"  millrace drive serve --flash d0.flash --listen 0.0.0.0:4420 --discovery-listen 0.0.0.0:8009 --advertise " +
			"192.0.2.7 --allow nqn.2024-01.io.example:host1\n" +
			"  millrace drive serve --diskless --state card0 --create --slm 1GiB --listen 127.0.0.1:4421",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if f.regions, err = regionsOf(cmd, f.regions, f.weights); err != nil {
				return cli.WrongUsage(err)
			}
			return c.serve(cmd.Context(), f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.flash, "flash", "", "file that holds the drive")
	fl.BoolVar(&f.create, "create", false, "make the drive, with FILE.json beside it, if there is none")
	fl.BoolVar(&f.diskless, "diskless", false, "serve a drive without flash, whose windows hosts store in its memory")
	fl.StringVar(&f.state, "state", "", "file beside which a drive without flash keeps its identity and images "+
		"(FILE.json, FILE.slot1.mimg)")
	fl.Var(quantity.BytesFlag[int64]{To: &f.size}, "size", "capacity of a drive that is made (default 1GiB)")
	cli.AddChoice(fl, &f.lba, "lba", "", "bytes of a block of a drive that is made: 512 or 4096 (default 512)", "512",
		"4096")
	f.slm = 4 << 30
	fl.Var(quantity.BytesFlag[int64]{To: &f.slm}, "slm", "local memory")
	fl.IntVar(&f.threads, "threads", 1, "engine threads of each region")
	fl.IntVar(&f.regions, "regions", 0, "regions of the drive, 1 to 7 (default 1, or as many as the drive has)")
	fl.IntSliceVar(&f.weights, "region-weights", nil, regionWeightsHelp)
	fl.IntVar(&f.hostIOShare, "host-io-share", 0, hostIOShareHelp+" (default: 100, or as the drive has it)")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:4420", "address to serve at; port 0 picks one")
	fl.StringVar(&f.discovery, "discovery-listen", "", "address to answer discovery at, beside --listen")
	fl.StringVar(&f.advertise, "advertise", "", "IP, or IP:PORT, at which hosts reach the drive")
	fl.StringVar(&f.nqn, "nqn", "", "name of the subsystem (default: made from the drive's UUID)")
	fl.StringVar(&f.allow, "allow", "", "hosts that are served: any, or NQN[,NQN] (default any on loopback; elsewhere "+
		"it must be said)")
	fl.StringVar(&f.key, "dhchap-key", "", "key, or @FILE, with which hosts must authenticate (as nvme gen-dhchap-key "+
		"makes it)")
	fl.StringVar(&f.ctrlKey, "dhchap-ctrl-key", "", "key, or @FILE, with which the drive proves itself to hosts that ask")
	fl.IntVar(&f.connections, "max-connections", tcp.DefaultMaxConnections, "queues, each with its connection, of hosts "+
		"that have authenticated, or need not")
	fl.IntVar(&f.unproven, "max-unauthenticated", tcp.DefaultUnauthenticated, "queues of hosts that have not "+
		"authenticated yet, beside those; the oldest makes room")
	fl.StringVar(&f.faults, "faults", "", "script of faults to inject, for tests of hosts: blocks that fail, delays, "+
		"wrong digests, lost connections")
	fl.StringVar(&f.namespaces, "namespaces", "", "list of further namespaces (namespaces: [{nsid: 4, flash: FILE, "+
		"size: 1GiB, lba: 512}]), read again on SIGHUP")
	cli.AddNativeTiming(fl, cli.ServedTiming)
	f.trust.addFlags(cmd)
	f.log.addFlags(cmd)
	fl.StringSliceVar(&f.referrals, "referral", nil, "IP:PORT of another discovery service to tell of")
	return cmd
}

// serving is what drive serve prints when it is ready.
type serving struct {
	NQN       string   `json:"nqn"`
	Address   string   `json:"address"`
	Discovery []string `json:"discovery"`
	URI       string   `json:"uri"`
	Diskless  bool     `json:"diskless"`
	State     string   `json:"state,omitempty"` // file of a diskless drive that keeps something
	Size      int64    `json:"size_bytes"`
	BlockSize int      `json:"lba_bytes"`
	SLM       int64    `json:"slm_bytes"`
	Regions   int      `json:"regions"`
	Threads   int      `json:"engine_threads"` // A region of weight 1 has these.
	Weights   []int    `json:"region_weights"`
	HostIO    int      `json:"host_io_share_percent"`
	Hosts     []string `json:"hosts"`            // empty: any
	Faults    string   `json:"faults,omitempty"` // the script
	Added     []uint32 `json:"added_namespaces"`
}

func (c serveCommand) serve(ctx context.Context, f serveFlags) (err error) {
	o, err := f.options()
	if err != nil {
		return cli.WrongUsage(err)
	}
	if o.Drive.Create && !f.create {
		return fmt.Errorf("drive %s does not exist: with --create it is made; else look at the path", o.Drive.Path)
	}
	o.Logger = c.log(f.log)
	if o.Faults, err = f.script(); err != nil {
		return err
	}
	if o.Namespaces, err = f.readNamespaces(); err != nil {
		return err
	}
	t, err := target.Start(o)
	if err != nil {
		return f.explain(err)
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	if f.namespaces != "" {
		defer c.followNamespaces(ctx, t, f)()
	}
	sub := t.Drive().Subsystem()
	s := serving{
		NQN: sub.NQN(), Address: t.Address(), Discovery: t.DiscoveryAddresses(), URI: t.URI(), Hosts: o.Hosts,
		Size: int64(sub.Blocks()) * int64(sub.BlockSize()), BlockSize: int(sub.BlockSize()), SLM: o.Drive.SLMBytes,
		Diskless: f.diskless, State: f.state, Threads: o.Drive.Threads,
		Regions: len(t.Drive().Images().Regions), HostIO: t.Drive().HostIOShare(), Faults: f.faults,
		Added: t.Namespaces(),
	}
	for _, g := range t.Drive().Images().Regions {
		s.Weights = append(s.Weights, g.Threads/s.Threads)
	}
	if s.Hosts == nil {
		s.Hosts = []string{}
	}
	if err := c.ready(s); err != nil {
		return err
	}
	return t.Wait(ctx)
}

// ready prints the one line.
func (c serveCommand) ready(s serving) error {
	return c.Print(s, func(w io.Writer) {
		hosts := "any host"
		if len(s.Hosts) > 0 {
			hosts = strings.Join(s.Hosts, ", ")
		}
		faults := ""
		if s.Faults != "" {
			faults = "; with the faults of " + s.Faults
		}
		added := ""
		if len(s.Added) > 0 {
			added = "; with further namespaces " + strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.Added)), ", "), "[]")
		}
		flash := fmt.Sprintf("%d bytes in blocks of %d", s.Size, s.BlockSize)
		switch {
		case s.Diskless && s.State != "":
			flash = "no flash (what it is and its images are kept in " + s.State + ".json and beside it)"
		case s.Diskless:
			flash = "no flash (nothing is kept; with --state FILE it keeps what it is and its images)"
		}
		regions := ""
		if s.Regions > 1 {
			regions = fmt.Sprintf("%d regions, each with ", s.Regions)
			if slices.Max(s.Weights) > 1 {
				regions = fmt.Sprintf("%d regions of weights %s, for each of its weight with ", s.Regions,
					strings.Trim(strings.Join(strings.Fields(fmt.Sprint(s.Weights)), ", "), "[]"))
			}
		}
		share := ""
		if s.HostIO < controller.NoHostIOLimit {
			share = fmt.Sprintf("; ordinary reads and writes limited to %d %% of the time beside computation", s.HostIO)
		}
		fmt.Fprintf(w, "serving %s: %s, %d bytes of memory, %s%d engine threads, to %s; discovery at %s%s%s%s\n",
			s.URI, flash, s.SLM, regions, s.Threads, hosts, strings.Join(s.Discovery, ", "), share, added, faults)
	})
}

// options reads the flags, except those that name documents.
func (f *serveFlags) options() (o target.Options, err error) {
	o = target.Options{
		Name: "millrace drive serve", Listen: f.listen, DiscoveryListen: f.discovery,
		MaxConnections: f.connections, MaxUnauthenticated: f.unproven,
	}
	if o.Drive, err = f.drive(); err != nil {
		return o, err
	}
	switch f.allow {
	case "any":
		o.AnyHost = true
	case "":
	default:
		o.Hosts = strings.Split(f.allow, ",")
	}
	for _, h := range o.Hosts {
		if err := fabrics.CheckNQN(h); err != nil {
			return o, fmt.Errorf("--allow: %w", err)
		}
	}
	if o.Advertise, err = parseAdvertise(f.advertise); err != nil {
		return o, err
	}
	if o.Auth, err = f.authentication(); err != nil {
		return o, err
	}
	if f.connections < 1 || f.unproven < 1 {
		return o, fmt.Errorf("--max-connections %d, --max-unauthenticated %d: want 1 at least", f.connections, f.unproven)
	}
	for _, r := range f.referrals {
		at, err := netip.ParseAddrPort(r)
		if err != nil {
			return o, fmt.Errorf("--referral %q: want IP:PORT", r)
		}
		o.Referrals = append(o.Referrals, at)
	}
	return o, nil
}

// explain says in terms of the flags why the drive cannot be served.
func (f *serveFlags) explain(err error) error {
	if refused, ok := errors.AsType[*target.ListenError](err); ok {
		flag := map[string]string{"Listen": "--listen", "DiscoveryListen": "--discovery-listen"}[refused.Option]
		return fmt.Errorf("%s %s: %w; choose another address or port", flag, refused.Address, refused.Err)
	}
	refused, ok := errors.AsType[*target.OptionError](err)
	switch {
	case !ok:
		return err
	case errors.Is(err, target.ErrOpenToAll):
		return cli.Usagef("--listen %s is not loopback: say with --allow which hosts are served, NQN[,NQN], or any", f.listen)
	case errors.Is(err, target.ErrEveryAddress):
		return fmt.Errorf("--listen %s is every address of this machine: say with --advertise IP which of them hosts reach "+
			"it by", f.listen)
	case refused.Option == "Listen":
		return cli.Usagef("--listen %w", refused.Err)
	case refused.Option == "Namespaces":
		return fmt.Errorf("--namespaces: %s: %w", f.namespaces, refused.Err)
	}
	return err
}

// drive reads the flags that describe the drive.
func (f *serveFlags) drive() (o csd.Options, err error) {
	o = csd.Options{Path: f.flash, Threads: f.threads, Regions: f.regions, HostIOShare: f.hostIOShare, NQN: f.nqn,
		Size: f.size, SLMBytes: f.slm}
	if len(f.weights) > 0 {
		o.RegionWeights = f.weights
	}
	if o.Trust, err = f.trust.change(); err != nil {
		return o, err
	}
	switch {
	case f.diskless && (f.flash != "" || f.size != 0 || f.lba != ""):
		return o, errors.New("--diskless is a drive without flash: --flash, --size and --lba do not go with it; " +
			"--state names the file that keeps its identity and images")
	case f.diskless:
		o.Diskless, o.Path = true, f.state
	case f.state != "":
		return o, errors.New("--state is for --diskless; a drive with flash keeps all in --flash")
	case f.flash == "":
		return o, errors.New("--flash is wanted: the file that holds the drive (or --diskless for a drive without flash)")
	}
	o.LBA = map[string]int{"512": csd.LBA512, "4096": csd.LBA4096}[f.lba]
	if f.threads < 1 || f.threads > csd.MaxThreads {
		return o, fmt.Errorf("--threads %d: want 1 to %d", f.threads, csd.MaxThreads)
	}
	if f.regions < 0 || f.regions > cs.MaxRegions {
		return o, fmt.Errorf("--regions %d: want 1 to %d", f.regions, cs.MaxRegions)
	}
	if f.hostIOShare != 0 {
		if err := checkHostIOShare(f.hostIOShare); err != nil {
			return o, err
		}
		if f.diskless && f.hostIOShare != controller.NoHostIOLimit {
			return o, errors.New("--host-io-share limits reads and writes of the flash, and a drive of --diskless has none")
		}
	}
	if f.nqn != "" {
		if err := fabrics.CheckNQN(f.nqn); err != nil {
			return o, fmt.Errorf("--nqn: %w", err)
		}
	}
	if o.Path != "" {
		_, err = os.Lstat(o.Path)
		o.Create = errors.Is(err, os.ErrNotExist)
	}
	return o, nil
}

// script reads the script of --faults; nil without one.
func (f *serveFlags) script() (*faults.Script, error) {
	if f.faults == "" {
		return nil, nil
	}
	document, err := readDocument(f.faults)
	if err != nil {
		return nil, fmt.Errorf("--faults: %w", err)
	}
	script, err := faults.Parse(document)
	if err != nil {
		return nil, fmt.Errorf("--faults: %s:%w", f.faults, err)
	}
	return script, nil
}

// readNamespaces reads the list of --namespaces; nil without one.
func (f *serveFlags) readNamespaces() ([]target.Namespace, error) {
	if f.namespaces == "" {
		return nil, nil
	}
	document, err := readDocument(f.namespaces)
	if err != nil {
		return nil, fmt.Errorf("--namespaces: %w", err)
	}
	list, err := target.ParseNamespaces(document, filepath.Dir(f.namespaces))
	if err != nil {
		return nil, fmt.Errorf("--namespaces: %s: %w", f.namespaces, err)
	}
	return list, nil
}

// followNamespaces reads the list of --namespaces again on every SIGHUP, until ctx ends or stop is called.
func (c serveCommand) followNamespaces(ctx context.Context, t *target.Target, f serveFlags) (stop func()) {
	hangups := make(chan os.Signal, 1)
	signal.Reset(syscall.SIGHUP) // of commands that a hang-up ends
	signal.Notify(hangups, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
			}
			list, err := f.readNamespaces()
			if err == nil {
				if err = t.SetNamespaces(list); err != nil {
					err = fmt.Errorf("--namespaces: %s: %w", f.namespaces, err)
				}
			}
			if err != nil {
				fmt.Fprintf(c.Err, "millrace drive serve: namespaces stay as they are: %v\n", err)
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		cancel()
		<-done
	}
}

// authentication reads the keys; nil means that hosts need not authenticate.
func (f *serveFlags) authentication() (*tcp.AuthOptions, error) {
	if f.key == "" {
		if f.ctrlKey != "" {
			return nil, errors.New("--dhchap-ctrl-key is of use with --dhchap-key only: a drive answers hosts that authenticate")
		}
		return nil, nil
	}
	var keys tcp.HostKeys
	for _, k := range []struct {
		flag, text string
		into       *auth.Key
	}{{"--dhchap-key", f.key, &keys.Host}, {"--dhchap-ctrl-key", f.ctrlKey, &keys.Controller}} {
		text := k.text
		if text == "" {
			continue
		}
		if path, ok := strings.CutPrefix(text, "@"); ok {
			b, err := os.ReadFile(path)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", k.flag, err)
			}
			text = strings.TrimSpace(string(b))
		}
		var err error
		if *k.into, err = auth.ParseKey(text); err != nil {
			return nil, fmt.Errorf("%s: %w", k.flag, err)
		}
	}
	return &tcp.AuthOptions{Keys: map[string]tcp.HostKeys{tcp.AnyHost: keys}}, nil
}

// parseAdvertise reads IP or IP:PORT; port 0 means that of the listener.
func parseAdvertise(s string) (netip.AddrPort, error) {
	if s == "" {
		return netip.AddrPort{}, nil
	}
	if ip, err := netip.ParseAddr(s); err == nil {
		return netip.AddrPortFrom(ip, 0), nil
	}
	at, err := netip.ParseAddrPort(s)
	if err != nil {
		return at, fmt.Errorf("--advertise %q: want IP or IP:PORT", s)
	}
	return at, nil
}
