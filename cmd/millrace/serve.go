package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/nvme/auth"
	"github.com/millrace/millrace/nvme/controller"
	"github.com/millrace/millrace/nvme/fabrics"
	"github.com/millrace/millrace/nvme/tcp"
)

// serveFlags are the flags of drive serve.
type serveFlags struct {
	flash, size, lba, slm string
	threads               int
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

// shutdownTime is how long commands that run when the target is told to stop may take to complete.
const shutdownTime = 10 * time.Second

func (c *command) driveServe() *cobra.Command {
	var f serveFlags
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a drive as an NVMe/TCP target",
		Long: `Serves the drive in --flash over NVMe/TCP until it is interrupted: to this program as tcp://HOST:PORT/NQN, and to kernels and nvme-cli. One that is not there is
made with --create, and is an error without. One line says when it is ready and what it serves; hosts that come and go are logged on standard
error. When it is interrupted, commands that run are completed and the flash is flushed. Keys given on a command line are seen by everybody on the machine: use @FILE.

With --namespaces the drive has more namespaces of blocks than its own, those of a list, which SIGHUP has it read again: what is new is added
and what is gone is removed under the hosts that are connected.

Discovery is answered at --listen, and at --discovery-listen if given. It names the address of --listen, or where hosts reach the drive by
another, the one of --advertise.`,
		Example: "  millrace drive serve --flash d0.flash --create --size 4GiB --listen 127.0.0.1:4420 --nqn nqn.2024-01.io.millrace:d0\n" +
			"  millrace drive serve --flash d0.flash --listen 0.0.0.0:4420 --discovery-listen 0.0.0.0:8009 --advertise 192.0.2.7 --allow nqn.2024-01.io.example:host1",
		Args: noArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.log.check(); err != nil {
				return err
			}
			return c.serve(cmd.Context(), f)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&f.flash, "flash", "", "file that holds the drive")
	fl.BoolVar(&f.create, "create", false, "make the drive, with FILE.json beside it, if there is none")
	fl.StringVar(&f.size, "size", "", "capacity of a drive that is made (default 1GiB)")
	fl.StringVar(&f.lba, "lba", "", "bytes of a block of a drive that is made: 512 or 4096 (default 512)")
	fl.StringVar(&f.slm, "slm", "4GiB", "local memory")
	fl.IntVar(&f.threads, "threads", 1, "engine threads")
	fl.StringVar(&f.listen, "listen", "127.0.0.1:4420", "address to serve at; port 0 picks one")
	fl.StringVar(&f.discovery, "discovery-listen", "", "address to answer discovery at, beside --listen")
	fl.StringVar(&f.advertise, "advertise", "", "IP, or IP:PORT, at which hosts reach the drive")
	fl.StringVar(&f.nqn, "nqn", "", "name of the subsystem (default: made from the drive's UUID)")
	fl.StringVar(&f.allow, "allow", "", "hosts that are served: any, or NQN[,NQN] (default any on loopback; elsewhere it must be said)")
	fl.StringVar(&f.key, "dhchap-key", "", "key, or @FILE, with which hosts must authenticate (as nvme gen-dhchap-key makes it)")
	fl.StringVar(&f.ctrlKey, "dhchap-ctrl-key", "", "key, or @FILE, with which the drive proves itself to hosts that ask")
	fl.IntVar(&f.connections, "max-connections", tcp.DefaultMaxConnections, "queues, each with its connection, of hosts that have authenticated, or need not")
	fl.IntVar(&f.unproven, "max-unauthenticated", tcp.DefaultUnauthenticated, "queues of hosts that have not authenticated yet, beside those; the oldest makes room")
	fl.StringVar(&f.faults, "faults", "", "script of faults to inject, for tests of hosts: blocks that fail, delays, wrong digests, lost connections")
	fl.StringVar(&f.namespaces, "namespaces", "", "list of further namespaces (namespaces: [{nsid: 4, flash: FILE, size: 1GiB, lba: 512}]), read again on SIGHUP")
	f.trust.addFlags(cmd)
	f.log.addFlags(cmd)
	fl.StringSliceVar(&f.referrals, "referral", nil, "IP:PORT of another discovery service to tell of")
	return cmd
}

// serving is what drive serve says when it is ready.
type serving struct {
	NQN       string   `json:"nqn"`
	Address   string   `json:"address"`
	Discovery []string `json:"discovery"`
	URI       string   `json:"uri"`
	Size      int64    `json:"size_bytes"`
	BlockSize int      `json:"lba_bytes"`
	SLM       int64    `json:"slm_bytes"`
	Threads   int      `json:"engine_threads"`
	Hosts     []string `json:"hosts"`            // empty: any
	Faults    string   `json:"faults,omitempty"` // the script
	Added     []uint32 `json:"added_namespaces"` // of --namespaces
}

func (c *command) serve(ctx context.Context, f serveFlags) (err error) {
	o, err := f.drive()
	if err != nil {
		return usageError{err}
	}
	hosts, err := f.hosts()
	if err != nil {
		return usageError{err}
	}
	if o.Create && !f.create {
		return fmt.Errorf("there is no drive %s: with --create it is made; else look at the path", f.flash)
	}
	advertise, err := parseAdvertise(f.advertise)
	if err != nil {
		return usageError{err}
	}
	authentication, err := f.authentication()
	if err != nil {
		return usageError{err}
	}
	if f.connections < 1 || f.unproven < 1 {
		return usagef("--max-connections %d, --max-unauthenticated %d: want 1 at least", f.connections, f.unproven)
	}
	var referrals []fabrics.Entry
	for _, r := range f.referrals {
		at, err := netip.ParseAddrPort(r)
		if err != nil {
			return usagef("--referral %q: want IP:PORT", r)
		}
		referrals = append(referrals, fabrics.Entry{Type: fabrics.Referral, Address: at, NQN: fabrics.DiscoveryNQN})
	}
	log := c.log(f.log)
	o.Logger = log
	injector, err := f.injector(log)
	if err != nil {
		return err
	}
	if injector != nil {
		o.WrapFlash = injector.Flash
	}

	// The port first: a drive is not made for a target that cannot be reached.
	main, err := listen("--listen", f.listen)
	if err != nil {
		return err
	}
	defer main.Close()
	listeners := []net.Listener{main}
	if f.discovery != "" {
		second, err := listen("--discovery-listen", f.discovery)
		if err != nil {
			return err
		}
		defer second.Close()
		listeners = append(listeners, second)
	}
	drive, err := csd.Open(o)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drive.Close()) }()
	sub := drive.Subsystem()
	if injector != nil {
		injector.SetBlockSize(int(sub.BlockSize()))
	}

	ids, stop, err := c.addNamespaces(ctx, f.namespaces, sub, log)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, stop()) }()

	entries, err := discoveryEntries(sub.NQN(), listeners, advertise)
	if err != nil {
		return err
	}
	target, err := tcp.NewTarget(tcp.TargetOptions{
		Hosts: hosts, Auth: authentication, Logger: log, MaxConnections: f.connections, Unauthenticated: f.unproven,
	})
	if err != nil {
		return err
	}
	defer func() {
		ctx, cancel := context.WithTimeout(context.Background(), shutdownTime)
		defer cancel()
		err = errors.Join(err, target.Shutdown(ctx))
	}()
	discovery := controller.NewDiscovery(controller.DiscoveryOptions{Entries: append(entries, referrals...), Logger: log})
	if err := errors.Join(target.Add(sub), target.Add(discovery)); err != nil {
		return err
	}
	ended := make(chan error, len(listeners))
	s := serving{NQN: sub.NQN(), Address: main.Addr().String(), Hosts: hosts, BlockSize: int(sub.BlockSize()), Size: int64(sub.Blocks()) * int64(sub.BlockSize()), SLM: o.SLMBytes, Threads: o.Threads, Faults: f.faults, Added: ids}
	if s.Hosts == nil {
		s.Hosts = []string{}
	}
	s.URI = "tcp://" + s.Address + "/" + s.NQN
	for _, l := range listeners {
		served := l
		if injector != nil {
			served = injector.Listener(l)
		}
		go func() { ended <- target.Serve(served) }()
		s.Discovery = append(s.Discovery, l.Addr().String())
	}
	// Those who find the flash open are sent to where it is served. A disk that is full keeps nobody from serving.
	if err := drive.Own(csd.Owner{Name: "millrace drive serve", Drive: s.NQN, URLs: []string{s.URI}}); err != nil {
		log.Warn("others who find the drive open are not told by whom", "drive", f.flash, "error", err)
	}
	if err := c.ready(s); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
		return nil
	case err := <-ended:
		return err
	}
}

// ready prints the one line.
func (c *command) ready(s serving) error {
	return c.print(s, func(w io.Writer) {
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
		fmt.Fprintf(w, "serving %s: %d bytes in blocks of %d, %d bytes of memory, %d engine threads, to %s; discovery at %s%s%s\n",
			s.URI, s.Size, s.BlockSize, s.SLM, s.Threads, hosts, strings.Join(s.Discovery, ", "), added, faults)
	})
}

// drive reads the flags that describe the drive.
func (f *serveFlags) drive() (o csd.Options, err error) {
	o = csd.Options{Path: f.flash, Threads: f.threads, NQN: f.nqn}
	if o.Trust, err = f.trust.change(); err != nil {
		return o, err
	}
	if f.flash == "" {
		return o, errors.New("--flash is wanted: the file that holds the drive")
	}
	if f.size != "" {
		if o.Size, err = quantity.Bytes(f.size); err != nil {
			return o, fmt.Errorf("--size: %w", err)
		}
	}
	if o.SLMBytes, err = quantity.Bytes(f.slm); err != nil {
		return o, fmt.Errorf("--slm: %w", err)
	}
	switch f.lba {
	case "":
	case "512":
		o.LBA = csd.LBA512
	case "4096":
		o.LBA = 4096
	default:
		return o, fmt.Errorf("--lba %s: a block has 512 or 4096 bytes", f.lba)
	}
	if f.threads < 1 || f.threads > csd.MaxThreads {
		return o, fmt.Errorf("--threads %d: want 1 to %d", f.threads, csd.MaxThreads)
	}
	if f.nqn != "" {
		if err := fabrics.CheckNQN(f.nqn); err != nil {
			return o, fmt.Errorf("--nqn: %w", err)
		}
	}
	_, err = os.Lstat(f.flash)
	o.Create = errors.Is(err, os.ErrNotExist)
	return o, nil
}

// hosts reads the allow-list; nil means any.
func (f *serveFlags) hosts() ([]string, error) {
	switch f.allow {
	case "any":
		return nil, nil
	case "":
		host, _, err := net.SplitHostPort(f.listen)
		if ip, err := netip.ParseAddr(host); err == nil && ip.IsLoopback() || host == "localhost" {
			return nil, nil
		}
		if err != nil {
			return nil, fmt.Errorf("--listen %q: want HOST:PORT", f.listen)
		}
		return nil, fmt.Errorf("--listen %s is not loopback: say with --allow which hosts are served, NQN[,NQN], or any", f.listen)
	}
	hosts := strings.Split(f.allow, ",")
	for _, h := range hosts {
		if err := fabrics.CheckNQN(h); err != nil {
			return nil, fmt.Errorf("--allow: %w", err)
		}
	}
	return hosts, nil
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

// listen opens a port, and says what to do where it is not to be had.
func listen(flag, address string) (net.Listener, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w; choose another address or port", flag, address, err)
	}
	return l, nil
}

// discoveryEntries are what discovery tells: the drive at the first listener, and discovery itself at the last.
func discoveryEntries(nqn string, listeners []net.Listener, advertise netip.AddrPort) ([]fabrics.Entry, error) {
	address := func(l net.Listener, port uint16) (netip.AddrPort, error) {
		at := l.Addr().(*net.TCPAddr).AddrPort()
		ip := at.Addr().Unmap()
		if advertise.IsValid() {
			ip = advertise.Addr()
		}
		if ip.IsUnspecified() {
			return at, fmt.Errorf("--listen %s is every address of this machine: say with --advertise IP which of them hosts reach it by", at)
		}
		if port == 0 {
			port = at.Port()
		}
		return netip.AddrPortFrom(ip, port), nil
	}
	drive, err := address(listeners[0], advertise.Port())
	if err != nil {
		return nil, err
	}
	own := drive
	if len(listeners) > 1 {
		if own, err = address(listeners[len(listeners)-1], 0); err != nil {
			return nil, err
		}
	}
	return []fabrics.Entry{
		{Type: fabrics.CurrentDiscovery, Port: 1, Address: own, NQN: fabrics.DiscoveryNQN},
		{Type: fabrics.NVM, Port: 1, Address: drive, NQN: nqn},
	}, nil
}
