package private

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/api"
	"github.com/millrace/millrace/host/partitionfile"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
	"github.com/millrace/millrace/sdk/pipeline/problem"
	"github.com/millrace/millrace/sdk/vocabulary"
	"github.com/millrace/millrace/trainmgr"
)

// The codes of Failed. The Python package has one exception for each.
const (
	CodePipeline = "pipeline" // the pipeline's document, or what it asks of the columns
	CodeData     = "data"     // a page or a row is at fault
	CodeChanged  = "changed"  // a partition changed while it is read, or since a state was kept
	CodeFiles    = "files"    // a file is missing or cannot be read as a partition
	CodeOptions  = "options"  // an argument is out of range or contradicts another
	CodeToken    = "token"    // the bytes are not a token
	CodeOtherJob = "other_job"
	CodeRanks    = "ranks"   // the ranks of this machine do not agree, or do not connect
	CodeVersion  = "version" // of the protocol
	CodeProtocol = "protocol"
	CodeEnded    = "ended"  // the trainer that started the process has ended
	CodeFailed   = "failed" // anything else
)

// OptionError says that an argument of Open is wrong.
type OptionError struct{ Message string }

func (e *OptionError) Error() string { return e.Message }

// VersionError says that the trainer speaks another version of the protocol.
type VersionError struct{ Theirs int }

func (e *VersionError) Error() string {
	return fmt.Sprintf("the Python package speaks version %d of the protocol, this binary version %d: "+
		"install both from one release", e.Theirs, Version)
}

// RanksError says that the ranks of this machine do not agree.
type RanksError struct{ Message string }

func (e *RanksError) Error() string { return e.Message }

// describeFailure describes an error to the trainer.
func describeFailure(err error) *Failed {
	f := &Failed{Code: failureCode(err), Message: err.Error()}
	var data *partition.DataError
	if errors.As(err, &data) {
		f.File, f.Column, f.Line = data.Partition, data.Column, data.Line
		if data.RowGroup >= 0 {
			f.RowGroup = &data.RowGroup
		}
		if data.Page >= 0 {
			f.Page = &data.Page
		}
		f.Row = &data.Row
	}
	var lacking *vocabulary.UnknownError
	if errors.As(err, &lacking) {
		f.File, f.Column, f.Row = lacking.Partition, lacking.Column, &lacking.Row
	}
	var changed *host.ChangedError
	if errors.As(err, &changed) {
		f.File = changed.Partition
	}
	var since *api.ChangedSinceError
	if errors.As(err, &since) {
		f.File = since.Partition
	}
	if name := affectedFile(err); name != "" {
		f.File = name
	}
	var wrong problem.Errors
	if errors.As(err, &wrong) {
		for _, one := range wrong {
			f.Problems = append(f.Problems, Problem{Line: one.Pos.Line, At: one.Pos.Column, Path: one.Path,
				Column: one.Column, Message: one.Error()})
		}
	}
	return f
}

// affectedFile returns the name of the file, folder, pattern or URI that an error of opening files is about; empty if
// there is none.
func affectedFile(err error) string {
	var (
		missing    *fs.PathError
		unreadable *partition.UnreadableError
		noMatch    *partitionfile.NoMatchError
		folder     *partitionfile.NoPartitionsError
		elsewhere  *partitionfile.NoOpenerError
		unknown    *partitionfile.UnknownFormatError
		mixed      *partitionfile.MixedFormatsError
		table      *partitionfile.TableError
	)
	switch {
	case errors.As(err, &table):
		return table.Sign
	case errors.As(err, &missing):
		return missing.Path
	case errors.As(err, &unreadable):
		return unreadable.Partition
	case errors.As(err, &noMatch):
		return noMatch.Pattern
	case errors.As(err, &folder):
		return folder.Folder
	case errors.As(err, &elsewhere):
		return elsewhere.Location.String()
	case errors.As(err, &unknown):
		return unknown.File
	case errors.As(err, &mixed):
		return mixed.Other
	}
	return ""
}

// failureCode returns the code of an error.
func failureCode(err error) string {
	var (
		version  *VersionError
		option   *OptionError
		ranks    *RanksError
		wrong    problem.Errors
		data     *partition.DataError
		lacking  *vocabulary.UnknownError
		missing  *fs.PathError
		mixed    *partitionfile.MixedFormatsError
		unknown  *partitionfile.UnknownFormatError
		badFiles *filesError
		noName   *pipelineNameError
	)
	switch {
	case errors.As(err, &version):
		return CodeVersion
	case errors.Is(err, ErrProtocol):
		return CodeProtocol
	case errors.Is(err, errParentEnded):
		return CodeEnded
	case errors.As(err, &ranks):
		return CodeRanks
	case errors.As(err, &wrong), errors.As(err, &noName):
		return CodePipeline
	case errors.Is(err, host.ErrChanged), errors.Is(err, api.ErrChangedSince):
		return CodeChanged
	case errors.As(err, &data), errors.As(err, &lacking):
		return CodeData
	case errors.Is(err, dataset.ErrOtherJob):
		return CodeOtherJob
	case errors.Is(err, dataset.ErrToken):
		return CodeToken
	case errors.As(err, &option), errors.Is(err, trainmgr.ErrOptions), errors.Is(err, dataset.ErrOptions),
		errors.Is(err, dataset.ErrAllLeftOut):
		return CodeOptions
	case errors.As(err, &missing), errors.As(err, &mixed), errors.As(err, &unknown), errors.As(err, &badFiles),
		errors.Is(err, partitionfile.ErrNotRegular), errors.Is(err, host.ErrSchema),
		errors.Is(err, host.ErrSource):
		return CodeFiles
	}
	return CodeFailed
}

// filesError is an error that occurred while the files were opened.
type filesError struct{ err error }

func (e *filesError) Error() string { return e.err.Error() }

func (e *filesError) Unwrap() error { return e.err }

// pipelineNameError says that no built-in pipeline has a name.
type pipelineNameError struct{ err error }

func (e *pipelineNameError) Error() string {
	return e.err.Error() + "; give a built-in name, a YAML file's path, or a YAML document"
}

func (e *pipelineNameError) Unwrap() error { return e.err }
