package partitionfile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/millrace/millrace/fpga/unit/text"
	"github.com/millrace/millrace/host"
	"github.com/millrace/millrace/host/filename"
	"github.com/millrace/millrace/host/source"
	"github.com/millrace/millrace/sdk/dataset"
	"github.com/millrace/millrace/sdk/partition"
)

// Resolver finds partition files among locations. Without an opener only files of this machine are known.
type Resolver struct {
	Opener source.Opener
	Names  NamePatterns // Names says which files are taken.
	Pipes  bool         // Expand keeps the names of pipes, and "-"
	Sort   dataset.Sort // the order of the files
	// Root is the folder in which the data set begins, for filename.NameFound. It may be the zero location.
	Root source.Location
}

// NoOpenerError says that a URI came where only files of this machine are read.
type NoOpenerError struct{ Location source.Location }

func (e *NoOpenerError) Error() string {
	return e.Location.String() + ": only files of this machine are read here"
}

// Expand turns names of files, folders and patterns, and URIs of objects, folders and patterns, into files. Names keep
// their order, and the files of a folder or a pattern come in natural order, unless Sort is set. Expand takes all files
// of a folder except those whose name begins with a dot or an underscore; links count as the files or folders that they
// lead to. In a pattern, * does not cross a slash. A folder that matches a pattern counts as if it were named, and a
// name that begins with a dot or an underscore matches only a pattern that begins with it. A URI that ends in a slash
// is a folder.
//
// A file of a folder or a pattern that is not of the format is an [UnknownFormatError], and a file of a table with a
// log is a [TableError]. Expand does not check the format of files that are named themselves, which their reader does,
// and does not look for the table of objects that are named themselves. It refuses a file that is there twice.
func (r Resolver) Expand(ctx context.Context, names []source.Location, format Format) ([]source.Location, error) {
	files, err := r.find(ctx, names, format)
	if err != nil {
		return nil, err
	}
	return filename.Locations(files), filename.CheckOnce(files)
}

// Find is Expand for the files of one data set: it also returns the names of their partitions, and it refuses two files
// of one name.
func (r Resolver) Find(ctx context.Context, names []source.Location, format Format) ([]filename.File, error) {
	files, err := r.find(ctx, names, format)
	if err != nil {
		return nil, err
	}
	return files, filename.CheckNames(files)
}

// find returns the files that names stand for.
func (r Resolver) find(ctx context.Context, names []source.Location, format Format) ([]filename.File, error) {
	var files []filename.File
	tables := tableSearch{opener: r.Opener}
	compare := func(a, b filename.File) int { return r.Sort.Compare(a.Name, b.Name) }
	for _, name := range names {
		found, isFile, err := r.list(ctx, name)
		if err != nil {
			return nil, err
		}
		if err := r.check(ctx, found, isFile, format, &tables); err != nil {
			return nil, err
		}
		named, err := filename.NameFound(name, found, r.Root)
		if err != nil {
			return nil, err
		}
		slices.SortFunc(named, compare)
		files = append(files, named...)
	}
	if len(files) == 0 && len(names) > 0 {
		return nil, &NoPartitionsError{Folder: names[0].String(), Excluded: len(names)}
	}
	if r.Sort != dataset.SortGiven {
		slices.SortStableFunc(files, compare)
	}
	return files, nil
}

// list returns the files that a name stands for, and reports whether the name is that of one file.
func (r Resolver) list(ctx context.Context, name source.Location) (files []source.Location, isFile bool, err error) {
	switch {
	case r.Pipes && name.Name() == "-":
		return []source.Location{name}, true, nil
	case !name.InStore():
		paths, isFile, err := r.listLocal(name.Name())
		return source.ParseLocations(paths...), isFile, err
	case r.Opener == nil:
		return nil, false, &NoOpenerError{Location: name}
	case name.IsPattern():
		files, err = r.listObjects(ctx, name)
		return files, false, err
	}
	base, err := name.BaseName()
	if err != nil || !r.Names.take(base) {
		return nil, true, err
	}
	return []source.Location{name}, true, nil
}

// listObjects returns the objects that a folder or a pattern stands for.
func (r Resolver) listObjects(ctx context.Context, at source.Location) ([]source.Location, error) {
	objects, err := r.Opener.List(ctx, at)
	if err != nil {
		return nil, err
	}
	pattern, shown := at.Name(), at.String()
	if at.IsBucket() {
		pattern, shown = pattern+"/", shown+"/"
	}
	if strings.HasSuffix(pattern, "/") {
		pattern += "*"
	}
	none := &NoPartitionsError{Folder: shown}
	var files []source.Location
	for _, o := range objects {
		switch name := o.Location.Name(); {
		case hides(pattern, name, "/"):
		case !r.Names.take(path.Base(name)):
			none.Excluded++
		default:
			files = append(files, o.Location)
		}
	}
	if len(files) == 0 {
		return nil, none
	}
	return files, nil
}

// check refuses files of a table. Of the files of a folder or a pattern it checks the format, too.
func (r Resolver) check(
	ctx context.Context, files []source.Location, isFile bool, format Format, tables *tableSearch,
) error {
	if !isFile {
		if err := tables.checkObjects(ctx, files); err != nil {
			return err
		}
	}
	for _, file := range files {
		far := file.InStore()
		if !far && file.Name() != "-" {
			if err := tables.checkFile(file.Name()); err != nil {
				return err
			}
		}
		if named, _ := formatOfName(file); isFile || far && named == format {
			continue // its reader checks the contents of an object with such a name
		}
		head, err := r.readHead(ctx, file)
		if err == nil {
			err = format.checkHead(file, head)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// readHead reads the first bytes of a file.
func (r Resolver) readHead(ctx context.Context, file source.Location) (head []byte, err error) {
	if !file.InStore() {
		f, err := os.Open(file.Name())
		if err != nil {
			return nil, err
		}
		defer func() { err = errors.Join(err, f.Close()) }()
		head = make([]byte, partition.HeadBytes)
		n, err := io.ReadFull(f, head)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && !errors.Is(err, io.EOF) {
			return nil, fmt.Errorf("read %s: %w", file, err)
		}
		return head[:n], nil
	}
	src, err := r.Opener.Open(ctx, file, source.Identity{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, src.Close()) }()
	head = make([]byte, min(partition.HeadBytes, src.Size()))
	if n, err := src.ReadAt(ctx, head, 0); n < len(head) && err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	return head, nil
}

// FindFormat returns the common format of files, folders, patterns and URIs: that of the first file of each name. A
// name that cannot be read counts as Parquet; Expand then reports the error.
func (r Resolver) FindFormat(ctx context.Context, names []source.Location) (Format, error) {
	var first source.Location
	var found Format
	for _, name := range names {
		format, file, err := r.formatOf(ctx, name, len(names) == 1)
		switch {
		case err != nil:
			return "", err
		case file == source.Location{}: // it is left out
		case found != "" && format != found:
			return "", &MixedFormatsError{
				First: first.String(), FirstFormat: found, Other: file.String(), OtherFormat: format,
			}
		default:
			found, first = format, file
		}
	}
	return cmp.Or(found, Parquet), nil
}

// formatOf finds the format of the first file that a name stands for, and returns that file. alone is set if no other
// name was given.
func (r Resolver) formatOf(ctx context.Context, name source.Location, alone bool,
) (format Format, file source.Location, err error) {
	files, isFile, err := r.list(ctx, name)
	switch far := name.InStore(); {
	case err != nil && far:
		return "", file, err
	case err != nil:
		return Parquet, name, nil
	case len(files) == 0:
		return "", file, nil
	case isFile || far:
		if format, known := formatOfName(files[0]); known {
			return format, files[0], nil
		}
	}
	head, err := r.readHead(ctx, files[0])
	if err != nil {
		return "", file, err
	}
	format, err = formatOfHead(files[0], head)
	if unknown := (*UnknownFormatError)(nil); errors.As(err, &unknown) {
		unknown.Alone = alone && isFile
	}
	return format, files[0], err
}

// Describe reads the description of a file, as the function of that name does.
func (r Resolver) Describe(
	ctx context.Context, file source.Location, fileFormat Format, options text.Options, count Counting,
) (v Description, err error) {
	if !file.InStore() {
		return Describe(ctx, file.Name(), fileFormat, options, count)
	}
	err = r.usePartition(ctx, file, fileFormat, options, func(p *partition.Partition) (err error) {
		v, err = describePartition(ctx, p, file.String(), fileFormat, options, count)
		return err
	})
	return v, err
}

// usePartition opens a file for as long as a function uses it.
func (r Resolver) usePartition(ctx context.Context, file source.Location, fileFormat Format, options text.Options,
	use func(*partition.Partition) error) (err error) {
	parser, known := fileFormat.Source()
	switch {
	case !known:
		return fmt.Errorf("%s: no format is called %q", file, fileFormat)
	case !file.InStore():
		return usePartition(ctx, file.Name(), parser, options, use)
	case r.Opener == nil:
		return &NoOpenerError{Location: file}
	}
	drive, err := host.OpenFiles(ctx, []source.Location{file}, host.DriveOptions{
		Source: parser, Text: options, Sources: host.Sources{Opener: r.Opener},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, drive.Close()) }()
	return use(drive.Partitions()[0])
}
