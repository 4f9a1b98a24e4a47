package main

import (
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	"github.com/millrace/millrace/host/identity"
)

// pkiCommands are the commands of certificates.
type pkiCommands struct{ *console }

func (c pkiCommands) command() *cobra.Command {
	return cli.Group("pki", "Identities for mutual TLS between control plane, nodes and launchers", c.initialise(),
		c.issue())
}

func (c pkiCommands) initialise() *cobra.Command {
	var dir, name string
	cmd := &cobra.Command{
		Use:   "init",
		Short: "Make a certificate authority",
		Long: `Makes a certificate authority in a folder: ca.pem, which every member, node and launcher gets, and
ca.key, which stays where certificates are issued. Certificates of an authority that you have do as
well: each must carry one URI spiffe://millrace/ROLE/NAME, and those of servers the names and
addresses by which they are called.`,
		Example: "  millrace pki init --dir pki\n" +
			"  millrace pki issue --dir pki --role node --name node0 --host node0.example.net",
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := identity.InitAuthority(dir, name); err != nil {
				return err
			}
			result := struct {
				Certificate string `json:"certificate"`
				Key         string `json:"key"`
			}{filepath.Join(dir, identity.AuthorityCert), filepath.Join(dir, identity.AuthorityKey)}
			return c.Print(result, func(w io.Writer) {
				fmt.Fprintf(w, "authority\t%s\nits key\t%s\n", result.Certificate, result.Key)
			})
		},
	}
	cmd.Flags().StringVar(&dir, "dir", "pki", "folder of the authority")
	cmd.Flags().StringVar(&name, "name", "millrace", "name of the authority, as its certificate shows it")
	return cmd
}

func (c pkiCommands) issue() *cobra.Command {
	var (
		dir, role, name, out string
		hosts                []string
		days                 int
	)
	cmd := &cobra.Command{
		Use:   "issue",
		Short: "Issue a certificate to a control plane member, node, launcher or operator",
		Long: `Signs a certificate with the authority in --dir and writes it, with its key, to --out: ROLE-NAME.pem
and ROLE-NAME.key. A control or node is called by others, so it needs the names and addresses by
which it is called (--host, repeated). A launcher needs them only where its own CPUs make a part of
the mini-batches (millrace train --offload, millrace.open): the control plane, and launchers whose
names are the same up to the first dot, call its worker there. Servers take a replaced certificate
up without a restart.`,
		Example: "  millrace pki issue --dir pki --role node --name node0 --host node0.example.net --host 10.0.0.7\n" +
			"  millrace pki issue --dir pki --role launcher --name trainer-3 --days 30 --out certs\n" +
			"  millrace pki issue --dir pki --role launcher --name ads.gpu-0 --host gpu-0.example.net",
		Args: cli.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			r := identity.Request{
				Identity: identity.Identity{Role: identity.Role(role), Name: name}, Hosts: hosts,
				Lifetime: time.Duration(days) * 24 * time.Hour,
			}
			if err := r.Check(); err != nil {
				return cli.WrongUsage(err)
			}
			if days < 1 || days > 3650 {
				return cli.Usagef("--days %d: want 1 to 3650", days)
			}
			if out == "" {
				out = dir
			}
			stem := filepath.Join(out, role+"-"+name)
			if err := identity.Issue(dir, r, stem+".pem", stem+".key"); err != nil {
				return err
			}
			result := struct {
				Identity    string `json:"identity"`
				Certificate string `json:"certificate"`
				Key         string `json:"key"`
				Authority   string `json:"authority"`
			}{r.URI().String(), stem + ".pem", stem + ".key", filepath.Join(dir, identity.AuthorityCert)}
			return c.Print(result, func(w io.Writer) {
				fmt.Fprintf(w, "identity\t%s\ncertificate\t%s\nkey\t%s\nauthority\t%s\n", result.Identity,
					result.Certificate, result.Key, result.Authority)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&dir, "dir", "pki", "folder of the authority")
	f.StringVar(&role, "role", "", "control, node, launcher or operator")
	f.StringVar(&name, "name", "", "name of the holder")
	f.StringArrayVar(&hosts, "host", nil, "name or address by which the holder is called; may be repeated")
	f.IntVar(&days, "days", 365, "days that the certificate is valid")
	f.StringVar(&out, "out", "", "folder for certificate and key (default: --dir)")
	return cmd
}
