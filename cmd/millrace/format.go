package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/millrace/millrace/fpga/program"
)

// more takes arguments for further values of --in, which a shell makes of a pattern that is not quoted.
func (i *input) more(cmd *cobra.Command, args []string) error {
	if len(args) > 0 && len(i.in) == 0 {
		return usagef("%s takes no arguments, got %q: files are named with --in", cmd.CommandPath(), args)
	}
	i.in = append(i.in, args...)
	return nil
}

// sources are the formats of partitions by their names.
var sources = map[string]program.Source{
	"parquet": program.Parquet, "criteo-tsv": program.CriteoTSV, "criteo-bin": program.CriteoBinary,
}

// findFormat returns the one format of files, folders and patterns. It takes a file that does not exist for Parquet,
// whose reader then reports the error.
func findFormat(names []string) (string, error) {
	found, first := "", ""
	for _, name := range names {
		format, file, err := formatOf(name)
		if err != nil {
			return "", err
		}
		if found != "" && format != found {
			return "",
				usagef("%s is %s and %s is %s: a data set has one format; name them apart, or say --input-format",
					first, found, file, format)
		}
		found, first = format, file
	}
	return found, nil
}

// find sets the format of files where no flag has.
func (i *input) find(files []string) (err error) {
	if i.format == "" {
		i.format, err = findFormat(files)
	}
	return err
}

// formatOf finds the format of a file, or of a file of a folder or pattern, which it names.
func formatOf(name string) (format, file string, err error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		for _, format := range []string{"parquet", "criteo-tsv", "criteo-bin"} {
			if files, err := expand([]string{name}, format); err == nil && len(files) > 0 {
				return formatOf(files[0])
			}
		}
		return "parquet", name, nil
	case err != nil:
		if files, _ := filepath.Glob(name); len(files) > 0 && files[0] != name {
			return formatOf(files[0])
		}
		return "parquet", name, nil
	case !info.Mode().IsRegular():
		return "parquet", name, nil
	}
	switch filepath.Ext(name) {
	case ".parquet":
		return "parquet", name, nil
	case ".tsv":
		return "criteo-tsv", name, nil
	}
	format, err = formatOfContent(name)
	return format, name, err
}

// A row of Criteo's text has 39 fields, and a label before them or none.
const criteoTabs = 38

// formatOfContent looks at a file's first bytes.
func formatOfContent(name string) (format string, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head := make([]byte, 64<<10)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	head = head[:n]
	line, _, _ := bytes.Cut(head, []byte("\n"))
	tabs := bytes.Count(line, []byte("\t"))
	switch {
	case bytes.HasPrefix(head, []byte("PAR1")), n == 0:
		return "parquet", nil
	case tabs == criteoTabs || tabs == criteoTabs+1, filepath.Ext(name) == ".txt":
		return "criteo-tsv", nil
	case filepath.Ext(name) == ".bin":
		return "criteo-bin", nil
	}
	return "", usagef("%s is not Parquet, nor text of Criteo's %d fields: say what it is with --input-format", name,
		criteoTabs+2)
}
