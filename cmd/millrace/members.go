package main

import (
	"context"
	"fmt"
	"io"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/cmd/cli"
	apiv1 "github.com/millrace/millrace/host/api/v1"
	"github.com/millrace/millrace/trainmgr/remote"
)

// memberCommands are the commands of the members of a control plane.
type memberCommands struct{ *console }

func (c memberCommands) command() *cobra.Command {
	g := cli.Group("members", "The members of the control plane", c.list(), c.add(), c.remove())
	g.Example = "  millrace control members list --help"
	return g
}

// memberView is a member as commands print it.
type memberView struct {
	Name    string   `json:"name" table:"member"`
	ID      string   `json:"id" table:"id"`
	Peers   []string `json:"peer_urls" table:"at"`
	Votes   bool     `json:"voter"`
	Answers bool     `json:"reachable"`
	state   string   `table:"state"`
}

func viewMember(m *apiv1.Member) memberView {
	v := memberView{
		Name: m.GetName(), ID: m.GetId(), Peers: append([]string{}, m.GetPeerUrls()...), Votes: m.GetVotes(),
		Answers: m.GetAnswers(), state: "votes",
	}
	switch {
	case v.Name == "":
		v.state = "added, not started yet"
	case !v.Votes:
		v.state = "catches up"
	case !v.Answers:
		v.state = "does not answer"
	}
	return v
}

func (c memberCommands) list() *cobra.Command {
	var f remoteFlags
	cmd := &cobra.Command{
		Use:   "list",
		Short: "List the members and how they are",
		Long: `Lists the members that the embedded etcd knows: by the name and the URL at which they reach each
other, whether they have a vote, and whether they accept connections as the member that was asked
sees it.`,
		Example: "  millrace control members list --control https://control-0:7460",
		Args:    cli.NoArgs,
	}
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, _ []string) error {
		list, err := client.Members(ctx)
		if err != nil {
			return err
		}
		views := make([]memberView, len(list))
		for i, m := range list {
			views[i] = viewMember(m)
		}
		return printRows(c.console, views)
	})
}

func (c memberCommands) add() *cobra.Command {
	var f remoteFlags
	cmd := &cobra.Command{
		Use:   "add PEER-URL",
		Short: "Make room for a member",
		Long: `Makes room for a member that the others will reach at PEER-URL. Start it after that, with an empty
folder and --join: it fetches what there is and gets its vote by itself when it has caught up, so
that one which never comes costs nobody the majority. Remove a member that is to be replaced first.`,
		Example: "  millrace control members add https://10.0.0.4:7461 --control https://control-0:7460",
		Args:    cli.ExactArgs("PEER-URL"),
	}
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		if u, err := url.Parse(args[0]); err != nil || u.Port() == "" || u.Scheme != "http" && u.Scheme != "https" {
			return cli.Usagef("%q: want http://HOST:PORT or https://HOST:PORT", args[0])
		}
		m, err := client.AddMember(ctx, args[0])
		if err != nil {
			return err
		}
		v := viewMember(m)
		return c.Print(v, func(w io.Writer) {
			fmt.Fprintf(w, "added %s (%s); now start it, with an empty folder:\n", args[0], v.ID)
			fmt.Fprintf(w,
				"millrace control run --data FOLDER --name NAME --peers NAME=%s --join %s --listen HOST:PORT\n",
				args[0], client.Leader())
		})
	})
}

func (c memberCommands) remove() *cobra.Command {
	var f remoteFlags
	cmd := &cobra.Command{
		Use:   "remove MEMBER",
		Short: "Take a member out for good",
		Long: `Takes a member out for good, by its name, its id, or the URL at which the others reach it. What it
kept the others have as well. It is refused when those that are left would not be a majority. A
member that was removed cannot come back with its folder: add it again and start it with an empty
one.`,
		Example: "  millrace control members remove m1",
		Args:    cli.ExactArgs("MEMBER"),
	}
	return askControl(cmd, &f, func(ctx context.Context, client *remote.Client, args []string) error {
		if err := client.RemoveMember(ctx, args[0]); err != nil {
			return err
		}
		result := struct {
			Member  string `json:"member"`
			Removed bool   `json:"removed"`
		}{args[0], true}
		return c.Print(result, func(w io.Writer) { fmt.Fprintf(w, "removed %s\n", args[0]) })
	})
}
