package partitionfile

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/millrace/millrace/host/source"
)

// TableError says that files belong to a table whose log decides which of their rows are the table's. Without the log,
// rows that were deleted or replaced would be read.
type TableError struct {
	Kind string // Delta, Hudi or Iceberg
	Root string // Root is the place of the table, where it is known.
	Sign string // the file or folder that shows it
}

func (e *TableError) Error() string {
	rows := map[string]string{
		"Delta":   `duckdb -c "COPY (FROM delta_scan('%s')) TO 'rows.parquet'"`,
		"Iceberg": `duckdb -c "COPY (FROM iceberg_scan('%s')) TO 'rows.parquet'"`,
		"Hudi":    `Spark: spark.read.format("hudi").load("%s").write.parquet("rows")`,
	}[e.Kind]
	root := e.Root
	if root == "" {
		root = "TABLE"
	}
	return fmt.Sprintf("%s shows that the files belong to a table of %s, whose log says which of their rows count: "+
		"write these rows as Parquet, and name that, as with "+rows, e.Sign, e.Kind, root)
}

// tableSearch looks for tables that files belong to. It looks into each folder once.
type tableSearch struct {
	opener source.Opener
	seen   map[string]error
}

// checkFile returns a *TableError if a file of this machine belongs to a table.
func (t *tableSearch) checkFile(file string) error { return t.once(filepath.Dir(file), t.checkFolder) }

// once returns the result of look for a folder, which it calls once.
func (t *tableSearch) once(folder string, look func(string) error) error {
	err, known := t.seen[folder]
	if !known {
		if t.seen == nil {
			t.seen = map[string]error{}
		}
		err = look(folder)
		t.seen[folder] = err
	}
	return err
}

// isDeletes reports whether a name is that of a file that lists the deleted rows of an Iceberg table.
func isDeletes(name string) bool {
	return strings.HasSuffix(name, "-deletes.parquet") || strings.HasSuffix(name, "-delete.parquet") ||
		strings.HasSuffix(name, ".puffin")
}

// checkFolder looks for files of a table in a folder, and for a table's log there and above.
func (t *tableSearch) checkFolder(folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil && !errors.Is(err, os.ErrPermission) { // files of a folder that cannot be listed can be read
		return err
	}
	for _, e := range entries {
		if isDeletes(e.Name()) {
			return &TableError{Kind: "Iceberg", Sign: filepath.Join(folder, e.Name())}
		}
	}
	whole, err := filepath.Abs(folder)
	if err == nil {
		whole, err = filepath.EvalSymlinks(whole)
	}
	if err != nil {
		return err
	}
	return t.checkAbove(whole)
}

// checkAbove looks for a table's log in a folder and in those above it.
func (t *tableSearch) checkAbove(folder string) error {
	for _, sign := range []struct{ kind, name string }{{"Delta", "_delta_log"}, {"Hudi", ".hoodie"}} {
		log := filepath.Join(folder, sign.name)
		if info, err := os.Stat(log); err == nil && info.IsDir() {
			return &TableError{Kind: sign.kind, Root: folder, Sign: log}
		}
	}
	entries, _ := os.ReadDir(filepath.Join(folder, "metadata"))
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".metadata.json") {
			return &TableError{Kind: "Iceberg", Root: folder, Sign: filepath.Join(folder, "metadata", e.Name())}
		}
	}
	above := filepath.Dir(folder)
	if above == folder {
		return nil
	}
	return t.once("above "+above, func(string) error { return t.checkAbove(above) })
}

// checkObjects looks for a table's log beside and above objects that a pattern or a folder of a store matches.
func (t *tableSearch) checkObjects(ctx context.Context, objects []source.Location) error {
	for _, o := range objects {
		if isDeletes(o.Name()) {
			return &TableError{Kind: "Iceberg", Sign: o.String()}
		}
		if o.Scheme() != "s3" {
			continue
		}
		bucket, key := o.HostAndKey()
		for folder := path.Dir("/" + key); ; folder = path.Dir(folder) {
			if !strings.Contains(path.Base(folder), "=") { // the folder of a partition's value is not a table
				err := t.once("s3://"+bucket+folder, func(at string) error { return t.checkPrefix(ctx, at) })
				if err != nil {
					return err
				}
			}
			if folder == "/" {
				break
			}
		}
	}
	return nil
}

// checkPrefix looks for a table's log below a prefix of a store. A prefix that the store does not list counts as
// absent.
func (t *tableSearch) checkPrefix(ctx context.Context, folder string) error {
	folder = strings.TrimSuffix(folder, "/")
	literal := strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(folder)
	for _, sign := range []struct{ kind, pattern string }{
		{"Delta", "/_delta_log/*"}, {"Hudi", "/.hoodie/*"}, {"Iceberg", "/metadata/*.metadata.json"},
	} {
		found, err := t.opener.List(ctx, source.ParseLocation(literal+sign.pattern))
		var (
			absent    *source.NotFoundError
			forbidden *source.ForbiddenError
			tooMany   *source.UnsupportedError
		)
		switch {
		case errors.As(err, &absent), errors.As(err, &forbidden):
		case errors.As(err, &tooMany), err == nil && len(found) > 0:
			return &TableError{Kind: sign.kind, Root: folder, Sign: folder + sign.pattern}
		case err != nil:
			return err
		}
	}
	return nil
}
