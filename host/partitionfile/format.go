package partitionfile

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/millrace/millrace/fpga/program"
)

// Format is the format of partition files, as commands and documents name it.
type Format string

// The formats of partition files.
const (
	Parquet      Format = "parquet"
	CriteoTSV    Format = "criteo-tsv"
	CriteoBinary Format = "criteo-bin"
)

// Source returns the format as programs name it, and reports whether the format is known.
func (f Format) Source() (source program.Source, known bool) {
	switch f {
	case Parquet:
		return program.Parquet, true
	case CriteoTSV:
		return program.CriteoTSV, true
	case CriteoBinary:
		return program.CriteoBinary, true
	}
	return 0, false
}

// suffixes returns the extensions of the files of a folder that are partitions of the format; "" is none.
func (f Format) suffixes() []string {
	switch f {
	case Parquet:
		return []string{".parquet"}
	case CriteoTSV:
		return []string{".tsv", ".txt", ""}
	case CriteoBinary:
		return []string{".bin", ""}
	}
	return nil
}

// MixedFormatsError says that files of one data set have two formats.
type MixedFormatsError struct {
	First, Other             string // files
	FirstFormat, OtherFormat Format
}

func (e *MixedFormatsError) Error() string {
	return fmt.Sprintf("%s is %s and %s is %s: a data set has one format", e.First, e.FirstFormat, e.Other, e.OtherFormat)
}

// UnknownFormatError says that a file has no format that is known.
type UnknownFormatError struct{ File string }

func (e *UnknownFormatError) Error() string {
	return fmt.Sprintf("%s is not Parquet, nor text of Criteo's %d fields", e.File, criteoTabs+2)
}

func findFormat(names []string, formatOf func(name string) (Format, string, error)) (Format, error) {
	var first string
	var found Format
	for _, name := range names {
		format, file, err := formatOf(name)
		if err != nil {
			return "", err
		}
		if found != "" && format != found {
			return "", &MixedFormatsError{First: first, FirstFormat: found, Other: file, OtherFormat: format}
		}
		found, first = format, file
	}
	return found, nil
}

// formatOf finds the format of a file, or of a file of a folder or pattern, which it names.
func formatOf(name string) (format Format, file string, err error) {
	info, err := os.Stat(name)
	switch {
	case err == nil && info.IsDir():
		for _, format := range []Format{Parquet, CriteoTSV, CriteoBinary} {
			if files, err := Expand([]string{name}, format); err == nil && len(files) > 0 {
				return formatOf(files[0])
			}
		}
		return Parquet, name, nil
	case err != nil:
		if found, _ := match(name); len(found) > 0 && found[0] != name {
			return formatOf(found[0])
		}
		return Parquet, name, nil
	case !info.Mode().IsRegular():
		return Parquet, name, nil
	}
	if format, known := formatOfName(name); known {
		return format, name, nil
	}
	format, err = formatOfContent(name)
	return format, name, err
}

// formatOfName returns the format that a file's name stands for, and reports whether it stands for one.
func formatOfName(name string) (format Format, known bool) {
	switch filepath.Ext(name) {
	case ".parquet":
		return Parquet, true
	case ".tsv":
		return CriteoTSV, true
	}
	return "", false
}

// criteoTabs is the number of tabs in a row of Criteo's text without a label: 39 fields.
const criteoTabs = 38

// headBytes is how much of a file its format is found by.
const headBytes = 64 << 10

// formatOfContent returns the format that a file's first bytes have.
func formatOfContent(name string) (format Format, err error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	head := make([]byte, headBytes)
	n, err := io.ReadFull(f, head)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
		return "", fmt.Errorf("read %s: %w", name, err)
	}
	return formatOfHead(name, head[:n])
}

// formatOfHead returns the format that the first bytes of a file have.
func formatOfHead(name string, head []byte) (Format, error) {
	line, _, _ := bytes.Cut(head, []byte("\n"))
	tabs := bytes.Count(line, []byte("\t"))
	switch {
	case bytes.HasPrefix(head, []byte("PAR1")), len(head) == 0:
		return Parquet, nil
	case tabs == criteoTabs || tabs == criteoTabs+1, filepath.Ext(name) == ".txt":
		return CriteoTSV, nil
	case filepath.Ext(name) == ".bin":
		return CriteoBinary, nil
	}
	return "", &UnknownFormatError{File: name}
}
