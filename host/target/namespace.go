package target

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/millrace/millrace/fpga/csd"
	"github.com/millrace/millrace/internal/quantity"
	"github.com/millrace/millrace/nvme/controller"
)

// Namespace is a namespace of blocks that a served drive has beside its own.
type Namespace struct {
	NSID  uint32 // controller.FirstAddedNSID to controller.MaxNSID
	Flash string // the file that holds the blocks: a drive's, of which only the blocks are used
	Size  int64  // bytes of flash that is made where there is none; 0: there must be some
	LBA   int    // bytes of a block, 512 or 4096; 0: 512 for flash that is made, else as the flash has it
}

// options say how to open the namespace's flash.
func (n Namespace) options(log *slog.Logger) csd.Options {
	o := csd.Options{Path: n.Flash, Plain: true, Size: n.Size, LBA: n.LBA, Logger: log}
	if n.Size != 0 {
		_, err := os.Lstat(n.Flash)
		o.Create = errors.Is(err, os.ErrNotExist)
	}
	return o
}

// ParseNamespaces reads a list of namespaces from YAML:
//
//	namespaces:
//	  - {nsid: 4, flash: more.flash, size: 1GiB, lba: 4096}
//
// Files that the list names are relative to folder. size and lba may be left out.
func ParseNamespaces(document []byte, folder string) ([]Namespace, error) {
	var list struct {
		Namespaces []struct {
			NSID  uint32 `yaml:"nsid"`
			Flash string `yaml:"flash"`
			Size  string `yaml:"size"`
			LBA   int    `yaml:"lba"`
		} `yaml:"namespaces"`
	}
	d := yaml.NewDecoder(bytes.NewReader(document))
	d.KnownFields(true)
	if err := d.Decode(&list); err != nil && !errors.Is(err, io.EOF) {
		return nil, explainYAML(err)
	}
	namespaces := make([]Namespace, len(list.Namespaces))
	for i, e := range list.Namespaces {
		n := Namespace{NSID: e.NSID, Flash: e.Flash, LBA: e.LBA}
		if e.Flash != "" && !filepath.IsAbs(e.Flash) {
			n.Flash = filepath.Join(folder, e.Flash)
		}
		if e.Size != "" {
			var err error
			if n.Size, err = quantity.Bytes(e.Size); err != nil {
				return nil, fmt.Errorf("namespace %d: size: %w", e.NSID, err)
			}
			if n.Size == 0 {
				return nil, fmt.Errorf("namespace %d: size %s: want at least one block", e.NSID, e.Size)
			}
		}
		namespaces[i] = n
	}
	return checkNamespaces(namespaces)
}

// checkNamespaces refuses lists that cannot be, and returns the list with clean paths.
func checkNamespaces(list []Namespace) ([]Namespace, error) {
	checked := make([]Namespace, len(list))
	seen := map[any]bool{}
	for i, n := range list {
		switch {
		case n.NSID < controller.FirstAddedNSID || n.NSID > controller.MaxNSID:
			return nil, fmt.Errorf("namespace %d: want an nsid from %d to %d: those below are the drive's own",
				n.NSID, controller.FirstAddedNSID, controller.MaxNSID)
		case n.Flash == "":
			return nil, fmt.Errorf("namespace %d: flash is wanted: the file that holds its blocks", n.NSID)
		case n.LBA != 0 && n.LBA != csd.LBA512 && n.LBA != csd.LBA4096:
			return nil, fmt.Errorf("namespace %d: lba %d: a block has 512 or 4096 bytes", n.NSID, n.LBA)
		}
		n.Flash = filepath.Clean(n.Flash)
		if seen[n.NSID] || seen[n.Flash] {
			return nil, fmt.Errorf("namespace %d: its nsid or its flash is there twice", n.NSID)
		}
		seen[n.NSID], seen[n.Flash] = true, true
		checked[i] = n
	}
	return checked, nil
}

// goType matches the types of this package in an error of package yaml.
var goType = regexp.MustCompile(` in type .*`)

// explainYAML returns the first line of an error of package yaml in terms of the list's keys.
func explainYAML(err error) error {
	text := strings.Join(strings.Fields(strings.TrimPrefix(err.Error(), "yaml: ")), " ")
	return errors.New(goType.ReplaceAllString(text, ": want namespaces, and of each nsid, flash, size, lba"))
}
