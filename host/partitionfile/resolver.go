package partitionfile

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/source"
)

// Resolver finds partition files among names that may be URIs. Without an opener only names of this machine are known.
type Resolver struct{ Opener source.Opener }

// NoOpenerError says that a URI came where only files of this machine are read.
type NoOpenerError struct{ URI string }

func (e *NoOpenerError) Error() string { return e.URI + ": only files of this machine are read here" }

// Expand turns names of files, folders and patterns, and URIs of objects, folders and patterns, into files, sorted,
// each once. A URI that ends in a slash is a folder.
func (r Resolver) Expand(ctx context.Context, names []string, format Format) ([]string, error) {
	var files, here []string
	for _, name := range names {
		if !source.IsURI(name) {
			here = append(here, name)
			continue
		}
		found, err := r.expandURI(ctx, name, format)
		if err != nil {
			return nil, err
		}
		files = append(files, found...)
	}
	found, err := Expand(here, format)
	if err != nil {
		return nil, err
	}
	files = append(files, found...)
	slices.Sort(files)
	return slices.Compact(files), nil
}

// expandURI returns the objects that a URI stands for.
func (r Resolver) expandURI(ctx context.Context, uri string, format Format) ([]string, error) {
	if r.Opener == nil {
		return nil, &NoOpenerError{URI: source.Redact(uri)}
	}
	if !source.IsPattern(uri) {
		return []string{uri}, nil
	}
	objects, err := r.Opener.List(ctx, uri)
	if err != nil {
		return nil, err
	}
	folder := strings.HasSuffix(uri, "/") || !strings.Contains(strings.TrimPrefix(uri, source.Scheme(uri)+"://"), "/")
	var files []string
	for _, o := range objects {
		base := path.Base(o.URI)
		if folder && (isHidden(base) || format != "" && !slices.Contains(format.suffixes(), path.Ext(base))) {
			continue
		}
		files = append(files, o.URI)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s holds no %s files", source.Redact(uri), format)
	}
	return files, nil
}

// FindFormat returns the common format of files, folders, patterns and URIs. It takes a file that does not exist for
// Parquet, whose reader then reports the error.
func (r Resolver) FindFormat(ctx context.Context, names []string) (Format, error) {
	return findFormat(names, func(name string) (Format, string, error) {
		if source.IsURI(name) {
			return r.formatOfURI(ctx, name)
		}
		return formatOf(name)
	})
}

// formatOfURI finds the format of an object, or of the first of a folder or pattern that has one, which it names.
func (r Resolver) formatOfURI(ctx context.Context, uri string) (format Format, file string, err error) {
	files := []string{uri}
	if source.IsPattern(uri) || r.Opener == nil {
		if files, err = r.expandURI(ctx, uri, ""); err != nil {
			return "", "", err
		}
	}
	for _, file := range files {
		if format, known := formatOfName(source.Redact(file)); known {
			return format, source.Redact(file), nil
		}
	}
	src, err := r.Opener.Open(ctx, files[0], source.Identity{})
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	head := make([]byte, min(headBytes, src.Size()))
	if n, err := src.ReadAt(ctx, head, 0); n < len(head) && err != nil && !errors.Is(err, io.EOF) {
		return "", "", err
	}
	format, err = formatOfHead(src.Name(), head)
	return format, src.Name(), err
}

// Describe reads the description of the file at a path or a URI, as the function of that name does.
func (r Resolver) Describe(
	ctx context.Context, name string, fileFormat Format, options text.Options, count Counting,
) (v Description, err error) {
	if !source.IsURI(name) {
		return Describe(ctx, name, fileFormat, options, count)
	}
	parser, known := fileFormat.Source()
	switch {
	case !known:
		return v, fmt.Errorf("%s: no format is called %q", source.Redact(name), fileFormat)
	case r.Opener == nil:
		return v, &NoOpenerError{URI: source.Redact(name)}
	}
	drive, err := host.OpenFiles(ctx, []string{name}, host.DriveOptions{
		Source: parser, Text: options, Sources: host.Sources{Opener: r.Opener},
	})
	if err != nil {
		return v, err
	}
	defer func() { err = errors.Join(err, drive.Close()) }()
	return describePartition(ctx, drive.Partitions()[0], source.Redact(name), fileFormat, options, count)
}
