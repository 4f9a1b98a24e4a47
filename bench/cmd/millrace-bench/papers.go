package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/bench/papers"
	"github.com/millrace/millrace/cmd/cli"
)

// papers reproduces the papers' figures and tables.
func (c benchCommands) papers() *cobra.Command {
	var (
		o            papers.Options
		folder, page string
	)
	cmd := &cobra.Command{
		Use:   "papers",
		Short: "The papers' figures and tables: what runs here, and what a model gives",
		Long: `Makes the values of docs/reproduction.md, paper by paper: runs on this machine, scaled down; counts of
bytes; and what the model of a SmartSSD gives. Each value has a key and a kind: measured on this
machine, counted, modelled, or kept from the run of bench/peers. With --results the values are also
written to files, with the machine, its load, and the notes of --note; with --page the page is written
from the files of all papers. Values of CPU time tell more than those of the wall's clock where other
work runs beside.`,
		Example: "  millrace bench papers --paper presto --quick\n" +
			"  millrace bench papers --results capacity/results/papers --page docs/reproduction.md",
		Args: cli.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := checkPapersFlags(folder, page); err != nil {
				return err
			}
			o.Progress, o.Command = c.Announce, papersCommand(o)
			results, err := papers.Run(cmd.Context(), o)
			if errors.Is(err, papers.ErrOptions) {
				return cli.WrongUsage(err)
			}
			if err == nil {
				err = writePapers(results, folder, page)
			}
			if err != nil {
				return err
			}
			return c.Report(results, func(w io.Writer) { printPapers(w, results) })
		},
	}
	f := cmd.Flags()
	cli.AddNativeTiming(f, "the command says which of its values are modelled: modelled drives run in the process of "+
		"millrace train or preprocess")
	f.StringSliceVar(&o.Papers, "paper", nil, strings.Join(papers.Names(), ", ")+" (default: all)")
	f.BoolVar(&o.Quick, "quick", false, "less data, and a tenth of the time")
	f.StringVar(&folder, "results", "", "folder to write the results to")
	f.StringVar(&page, "page", "", "file to write the page to, with its pictures beside it")
	f.StringArrayVar(&o.Notes, "note", nil, "a sentence to keep with the results, for example what else ran")
	f.StringVar(&o.Folder, "temporary", "", "folder for data (default: the system's)")
	return cmd
}

// checkPapersFlags checks the folder of results and the file of the page.
func checkPapersFlags(folder, page string) error {
	if folder != "" {
		if info, err := os.Stat(folder); err != nil || !info.IsDir() {
			return cli.Usagef("--results %q is not a folder", folder)
		}
	}
	if page != "" && folder == "" {
		return cli.Usagef("--page wants --results, the folder of the runs that the page is of")
	}
	return nil
}

// writePapers writes results to a folder, and the page of all results there; it writes neither without a name.
func writePapers(results []*papers.Result, folder, page string) error {
	if folder == "" {
		return nil
	}
	for _, r := range results {
		if err := r.Write(folder); err != nil {
			return fmt.Errorf("write results: %w", err)
		}
	}
	if page == "" {
		return nil
	}
	if err := papers.WritePage(folder, page); err != nil {
		return fmt.Errorf("write the page: %w", err)
	}
	return nil
}

// papersCommand is the command that makes the results again.
func papersCommand(o papers.Options) string {
	s := "millrace bench papers"
	if len(o.Papers) > 0 {
		s += " --paper " + strings.Join(o.Papers, ",")
	}
	if o.Quick {
		s += " --quick"
	}
	return s
}

func printPapers(w io.Writer, results []*papers.Result) {
	fmt.Fprintf(w, "paper\tvalue\t\tunit\tkind\n")
	for _, r := range results {
		for _, key := range slices.Sorted(maps.Keys(r.Values)) {
			v := r.Values[key]
			fmt.Fprintf(w, "%s\t%s\t%.4g\t%s\t%s\n", r.Paper, key, v.Value, v.Unit, v.Kind)
		}
	}
}
