package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/nvme/controller"
)

// namespaceEntry is one of the namespaces that --namespaces lists.
type namespaceEntry struct {
	NSID  uint32 `yaml:"nsid"`
	Flash string `yaml:"flash"` // relative to the folder of the list
	Size  string `yaml:"size"`  // of flash that is made; without it there must be some
	LBA   int    `yaml:"lba"`
}

// options say how to open the entry's flash: a plain drive, of which only the blocks are used.
func (e namespaceEntry) options(log *slog.Logger) (o csd.Options, err error) {
	o = csd.Options{Path: e.Flash, Plain: true, LBA: e.LBA, Logger: log}
	if e.Size != "" {
		if o.Size, err = quantity.Bytes(e.Size); err != nil {
			return o, fmt.Errorf("size: %w", err)
		}
		_, err = os.Lstat(e.Flash)
		o.Create = errors.Is(err, os.ErrNotExist)
	}
	return o, nil
}

// goType is what an error of package yaml tells of our types.
var goType = regexp.MustCompile(` in type .*`)

// parseNamespaces reads a list of namespaces, whose files are named from folder.
func parseNamespaces(document []byte, folder string) ([]namespaceEntry, error) {
	var list struct {
		Namespaces []namespaceEntry `yaml:"namespaces"`
	}
	d := yaml.NewDecoder(bytes.NewReader(document))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		text := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")
		return nil, errors.New(goType.ReplaceAllString(text, ": want namespaces, and of each nsid, flash, size, lba"))
	}
	seen := map[any]bool{}
	for i, e := range list.Namespaces {
		switch {
		case e.NSID < controller.FirstAddedNSID || e.NSID > controller.MaxNSID:
			return nil, fmt.Errorf("namespace %d: want an nsid from %d to %d: those below are the drive's own", e.NSID, controller.FirstAddedNSID, controller.MaxNSID)
		case e.Flash == "":
			return nil, fmt.Errorf("namespace %d: flash is wanted: the file that holds its blocks", e.NSID)
		case e.LBA != 0 && e.LBA != csd.LBA512 && e.LBA != 4096:
			return nil, fmt.Errorf("namespace %d: lba %d: a block has 512 or 4096 bytes", e.NSID, e.LBA)
		}
		if !filepath.IsAbs(e.Flash) {
			e.Flash = filepath.Join(folder, e.Flash)
		}
		e.Flash = filepath.Clean(e.Flash)
		if seen[e.NSID] || seen[e.Flash] {
			return nil, fmt.Errorf("namespace %d: its nsid or its flash is there twice", e.NSID)
		}
		seen[e.NSID], seen[e.Flash] = true, true
		if _, err := e.options(nil); err != nil {
			return nil, fmt.Errorf("namespace %d: %w", e.NSID, err)
		}
		list.Namespaces[i] = e
	}
	return list.Namespaces, nil
}

// addedNamespaces are those that a served drive has beside its own: what the list said when it was last read well.
type addedNamespaces struct {
	list string // the file; empty: there are none
	sub  *controller.Subsystem
	log  *slog.Logger

	flash map[string]*csd.Drive // open, by path
	at    map[uint32]string     // the path of the flash of each namespace
}

func newAddedNamespaces(list string, sub *controller.Subsystem, log *slog.Logger) *addedNamespaces {
	return &addedNamespaces{list: list, sub: sub, log: log, flash: map[string]*csd.Drive{}, at: map[uint32]string{}}
}

// ids are the namespaces that there are, in order.
func (a *addedNamespaces) ids() []uint32 {
	ids := []uint32{}
	for id := range a.at {
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids
}

// read makes the drive's namespaces those of the list. Where it fails, nothing has changed.
func (a *addedNamespaces) read() error {
	document, err := readDocument(a.list)
	if err != nil {
		return fmt.Errorf("--namespaces: %w", err)
	}
	entries, err := parseNamespaces(document, filepath.Dir(a.list))
	if err != nil {
		return fmt.Errorf("--namespaces: %s: %w", a.list, err)
	}
	if err := a.change(entries); err != nil {
		return fmt.Errorf("--namespaces: %s: %w", a.list, err)
	}
	return nil
}

// change opens what is new before it removes what is gone, so that flash that cannot be had is known before a host sees anything.
func (a *addedNamespaces) change(entries []namespaceEntry) (err error) {
	opened := map[string]*csd.Drive{}
	defer func() {
		if err != nil {
			for _, d := range opened {
				err = errors.Join(err, d.Close())
			}
		}
	}()
	wanted := map[uint32]string{}
	for _, e := range entries {
		wanted[e.NSID] = e.Flash
		o, err := e.options(a.log)
		if err != nil {
			return err
		}
		if d := a.flash[e.Flash]; d != nil {
			if size, lba := d.Geometry(); o.Size != 0 && o.Size != size || o.LBA != 0 && o.LBA != lba {
				return fmt.Errorf("namespace %d: %s has %d bytes in blocks of %d and keeps them while it is served", e.NSID, e.Flash, size, lba)
			}
			continue
		}
		d, err := csd.Open(o)
		if errors.Is(err, csd.ErrNoDrive) {
			err = fmt.Errorf("%w, or give its size here", err)
		}
		if err != nil {
			return fmt.Errorf("namespace %d: %w", e.NSID, err)
		}
		opened[e.Flash] = d
	}
	for id, path := range a.at {
		if wanted[id] != path {
			if err := a.sub.RemoveNamespace(id); err != nil {
				a.log.Error("remove namespace", "nsid", id, "error", err)
			}
			delete(a.at, id)
		}
	}
	for path, d := range a.flash {
		if !slices.ContainsFunc(entries, func(e namespaceEntry) bool { return e.Flash == path }) {
			delete(a.flash, path)
			if err := d.Close(); err != nil { // of a namespace that is gone: what could not be synced is told
				a.log.Error("close flash of a removed namespace", "error", err)
			}
		}
	}
	for path, d := range opened {
		a.flash[path] = d
	}
	opened = nil
	for _, e := range entries {
		if a.at[e.NSID] != "" {
			continue
		}
		d := a.flash[e.Flash]
		_, lba := d.Geometry()
		n := controller.Namespace{NSID: e.NSID, Flash: d.Flash(), BlockSize: uint32(lba), UUID: d.UUID()}
		if _, err := a.sub.AddNamespace(n); err != nil {
			return err
		}
		a.at[e.NSID] = e.Flash
	}
	return nil
}

// close closes the flash, once no host is connected any more.
func (a *addedNamespaces) close() (err error) {
	for _, d := range a.flash {
		err = errors.Join(err, d.Close())
	}
	a.flash = nil
	return err
}

// follow reads the list again on every SIGHUP, until ctx ends.
func (a *addedNamespaces) follow(ctx context.Context, hup <-chan os.Signal, says io.Writer) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
			if err := a.read(); err != nil {
				fmt.Fprintf(says, "millrace drive serve: namespaces stay as they are: %v\n", err)
			}
		}
	}
}

// addNamespaces adds the namespaces of --namespaces to a drive that is about to be served, tells which, and follows the list
// until stop is called, which also closes their flash.
func (c *command) addNamespaces(ctx context.Context, list string, sub *controller.Subsystem, log *slog.Logger) (ids []uint32, stop func() error, err error) {
	a := newAddedNamespaces(list, sub, log)
	if list == "" {
		return a.ids(), a.close, nil
	}
	if err := a.read(); err != nil {
		return nil, nil, errors.Join(err, a.close())
	}
	ids = a.ids()
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		a.follow(ctx, hup, c.err)
	}()
	return ids, func() error {
		signal.Stop(hup)
		cancel()
		<-done
		return a.close()
	}, nil
}
