package main

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/internal/terminal"
	"github.com/millrace/millrace/nvme/passthru"
	"github.com/millrace/millrace/sdk"
)

// listedDrive is a drive behind the kernel and the URI that opens it.
type listedDrive struct {
	URI string `json:"uri" table:"drive"`
	passthru.Controller
	state  string `table:"state"`
	spaces string `table:"namespaces"`
}

func (c driveCommands) list() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the NVMe drives that this machine's kernel has",
		Long: `Lists the NVMe controllers that the Linux kernel has, local or over fabrics, with their namespaces,
as sysfs tells them. Drives in files and in memory are nowhere registered, so none is listed.`,
		Example: "  millrace drive list --output json",
		Args:    cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			all, err := passthru.Controllers(passthru.Options{})
			if err != nil {
				return err
			}
			return c.printDrives(all)
		},
	}
}

func (c driveCommands) printDrives(all []passthru.Controller) error {
	list := make([]listedDrive, 0, len(all))
	for _, d := range all {
		state := d.State
		if d.Paths > 1 {
			state += fmt.Sprintf(", one of %d paths", d.Paths)
		}
		list = append(list, listedDrive{"nvme:/dev/" + d.Name, d, state, listNamespaces(d.Namespaces)})
	}
	return c.Print(list, func(w io.Writer) {
		if len(list) == 0 {
			fmt.Fprintln(w, "the kernel has no NVMe drives")
			return
		}
		terminal.Rows(w, list)
	})
}

// listNamespaces lists namespaces in one line.
func listNamespaces(namespaces []passthru.Namespace) string {
	var list []string
	for _, ns := range namespaces {
		s := fmt.Sprintf("%d", ns.ID)
		if ns.Block != "" {
			s += fmt.Sprintf(" (%s, %d bytes)", ns.Block, ns.Size)
		} else if ns.Generic != "" {
			s += fmt.Sprintf(" (%s)", ns.Generic)
		}
		list = append(list, s)
	}
	if !slices.ContainsFunc(namespaces, func(ns passthru.Namespace) bool { return ns.Block != "" }) {
		list = append(list, "no flash")
	}
	return strings.Join(list, ", ")
}

func (c driveCommands) reset() *cobra.Command {
	return &cobra.Command{
		Use: "reset nvme:PATH", Short: "Reset a drive that the kernel has",
		Long: `Resets the controller of a drive behind the kernel, and returns when it works again. Commands that
run are cut off, for everybody who uses the drive, and local memory that somebody held is free.
Other drives are reset whenever they are opened.`,
		Example: "  millrace drive reset nvme:/dev/nvme0",
		Args:    cli.ExactArgs("nvme:PATH"),
		RunE: func(_ *cobra.Command, args []string) error {
			u, err := sdk.ParseURI(args[0])
			if err != nil {
				return cli.WrongUsage(err)
			}
			if u.Scheme != "nvme" {
				return cli.Usagef("%s: only a drive behind the kernel can be reset, as nvme:/dev/nvme0", args[0])
			}
			if err := passthru.Reset(u.Name, passthru.Options{}); err != nil {
				return err
			}
			return c.Print(map[string]string{"uri": args[0], "state": "reset"}, func(w io.Writer) {
				fmt.Fprintf(w, "%s\treset\n", args[0])
			})
		},
	}
}
