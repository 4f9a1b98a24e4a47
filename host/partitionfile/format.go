package partitionfile

import (
	"fmt"
	"path"

	"github.com/millrace/millrace/fpga/program"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/partition"
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

// MixedFormatsError says that files of one data set have two formats.
type MixedFormatsError struct {
	First, Other             string // files
	FirstFormat, OtherFormat Format
}

func (e *MixedFormatsError) Error() string {
	return fmt.Sprintf("%s is %s and %s is %s: a data set has one format", e.First, e.FirstFormat, e.Other, e.OtherFormat)
}

// UnknownFormatError says that a file has a format that is not read, or another format than its data set.
type UnknownFormatError struct {
	File    string
	Content partition.Content
	Want    Format // Want is the format of the data set; empty if it is not known.
	Alone   bool   // nothing else was named
}

func (e *UnknownFormatError) Error() string {
	says := e.File + " is "
	if e.Content.Is != "" {
		says += e.Content.Is + ", "
	}
	if says += "not "; e.Want != "" {
		says += string(e.Want)
	} else {
		says += fmt.Sprintf("Parquet, nor text of Criteo's %d fields", criteoFields)
	}
	if e.Content.Is != "" && e.Content.Source == 0 {
		says += ": " + e.Content.Advice(e.File)
	}
	if e.Alone {
		return says
	}
	return fmt.Sprintf("%s; --exclude %s leaves it out", says, patternOf(path.Base(e.File)))
}

// criteoFields is the number of fields in a row of Criteo's text.
const criteoFields = 40

// formatOfName returns the format that a file's name stands for, and reports whether it stands for one.
func formatOfName(file source.Location) (format Format, known bool) {
	switch path.Ext(file.String()) {
	case ".parquet":
		return Parquet, true
	case ".tsv":
		return CriteoTSV, true
	}
	return "", false
}

// formatOfHead returns the format of a file by its first bytes.
func formatOfHead(file source.Location, head []byte) (Format, error) {
	c := partition.Recognize(head)
	switch {
	case c.Source == program.Parquet, len(head) == 0: // the reader of Parquet says that the file is empty
		return Parquet, nil
	case c.Source == program.CriteoTSV, c.IsText() && path.Ext(file.String()) == ".txt":
		return CriteoTSV, nil
	case c.Is == "" && path.Ext(file.String()) == ".bin":
		return CriteoBinary, nil
	}
	return "", &UnknownFormatError{File: file.String(), Content: c}
}

// checkHead returns an error if the first bytes of a file show that it is not of the format.
func (f Format) checkHead(file source.Location, head []byte) error {
	want, _ := f.Source()
	c := partition.Recognize(head)
	var ok bool
	switch named, _ := formatOfName(file); f {
	case CriteoTSV: // its first rows may be malformed
		ok = c.Source == want || len(head) == 0 || c.IsText() && (named == f || path.Ext(file.String()) == ".txt")
	case CriteoBinary:
		ok = c.Is == "" || len(head) == 0
	default:
		ok = c.Source == want
	}
	if ok {
		return nil
	}
	return &UnknownFormatError{File: file.String(), Content: c, Want: f}
}
