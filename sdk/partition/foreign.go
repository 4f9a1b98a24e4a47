package partition

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/millrace/millrace/fpga/program"
)

// HeadBytes is the number of a file's first bytes that [Recognize] needs. A shorter file is given whole.
const HeadBytes = 8 << 10

// criteoTabs is the number of tabs in a row of Criteo's text without a label: 39 fields.
const criteoTabs = 38

// Content is what a file holds, as far as its first bytes show.
type Content struct {
	Is     string         // the format in words, such as "an HTML page"; empty if unknown
	Source program.Source // the format as a source of rows; 0 if it is not one
	advice string         // what to do with a file that cannot be read; NAME stands for its name
}

// IsText reports whether the file is text of an unknown format. A damaged file of Criteo's rows is such text.
func (c Content) IsText() bool { return c.Is == plainText }

// Advice says what to do with the file called name.
func (c Content) Advice(name string) string { return strings.ReplaceAll(c.advice, "NAME", name) }

// ForeignError says that a partition's bytes do not have the format that the caller of Open named. Open wraps it in an
// [UnreadableError].
type ForeignError struct {
	Partition string
	Want      program.Source
	Content
}

func (e *ForeignError) Error() string {
	want := map[program.Source]string{
		program.Parquet: "Parquet", program.CriteoTSV: "Criteo's text", program.CriteoBinary: "Criteo's binary rows",
	}[e.Want]
	return fmt.Sprintf("it is %s, not %s: %s", e.Is, want, e.Advice(e.Partition))
}

const (
	plainText = "text"
	duckdb    = `convert it, as with duckdb -c "COPY (FROM %s('NAME')) TO 'rows.parquet'"`
	pyarrow   = `convert it, as with python -c "import pyarrow.%[1]s as a, pyarrow.parquet as p; ` +
		`p.write_table(a.read_table('NAME'), 'rows.parquet')"`
	unpack = "unpack it; Criteo's rows are read as they come: %s NAME | millrace dataset import " +
		"--input-format criteo-tsv --out DIR -"
	tables = "its table is more than its Parquet files: write the rows that it holds as Parquet, and name those"
)

// signature is a format's magic bytes and their place in the file.
type signature struct {
	at         int
	bytes      string
	is, advice string
}

// signatures returns the signatures of formats that are found beside Parquet, or mistaken for it.
func signatures() []signature {
	return []signature{
		{0, "PUF", "a Puffin file of an Iceberg table", tables},
		{0, "\x28\xb5\x2f\xfd", "compressed by zstd", fmt.Sprintf(unpack, "zstdcat")},
		{0, "BZh", "compressed by bzip2", fmt.Sprintf(unpack, "bzcat")},
		{0, "\xfd7zXZ\x00", "compressed by xz", fmt.Sprintf(unpack, "xzcat")},
		{0, "\x04\x22\x4d\x18", "compressed by lz4", fmt.Sprintf(unpack, "lz4cat")},
		{0, "\xff\x06\x00\x00sNaPpY", "compressed by snappy", "unpack it"},
		{0, "PK\x03\x04", "a zip archive", "unpack it: unzip NAME"},
		{257, "ustar", "a tar archive", "unpack it: tar -xf NAME"},
		{0, "ARROW1", "an Arrow file (Feather)", fmt.Sprintf(pyarrow, "feather")},
		{0, "FEA1", "a Feather file", fmt.Sprintf(pyarrow, "feather")},
		{0, "ORC", "an ORC file", fmt.Sprintf(pyarrow, "orc")},
		{0, "Obj\x01", "an Avro file",
			`convert it, as with duckdb -c "INSTALL avro; LOAD avro; COPY (FROM read_avro('NAME')) TO 'rows.parquet'"`},
		{0, "\x89HDF\r\n\x1a\n", "an HDF5 file", "write its tables as Parquet, as with pandas' to_parquet"},
		{0, "\x93NUMPY", "a NumPy array", "write it as columns of Parquet, as with pyarrow.parquet.write_table"},
		{0, "SQLite format 3\x00", "an SQLite database", "write its tables as Parquet, as with duckdb's COPY"},
		{8, "DUCK", "a DuckDB database", "write its tables as Parquet: COPY t TO 'rows.parquet'"},
	}
}

// Recognize says what a file holds whose first bytes are head. Criteo's binary rows are not recognized, since they have
// no signature.
func Recognize(head []byte) Content {
	switch {
	case len(head) == 0:
		return Content{Is: "empty (0 bytes)", advice: "write it again, or leave it out"}
	case bytes.HasPrefix(head, []byte("PAR1")), bytes.HasPrefix(head, []byte("PARE")):
		return Content{Is: "Parquet", Source: program.Parquet, advice: "say --input-format parquet"}
	case bytes.HasPrefix(head, []byte("\x1f\x8b")):
		return recognizePacked(head)
	}
	for _, s := range signatures() {
		if len(head) > s.at && bytes.HasPrefix(head[s.at:], []byte(s.bytes)) {
			return Content{Is: s.is, advice: s.advice}
		}
	}
	return recognizeText(head)
}

// recognizePacked says what a file holds that gzip compressed.
func recognizePacked(head []byte) Content {
	var first [4]byte
	if r, err := gzip.NewReader(bytes.NewReader(head)); err == nil {
		if _, err := io.ReadFull(r, first[:]); err == nil && string(first[:]) == "PAR1" {
			return Content{Is: "Parquet packed by gzip", advice: "unpack it: zcat NAME > rows.parquet"}
		}
	}
	return Content{Is: "compressed by gzip", advice: fmt.Sprintf(unpack, "zcat")}
}

// recognizeText says which format a file of text has.
func recognizeText(head []byte) Content {
	for n := 1; n < utf8.UTFMax && !utf8.Valid(head); n++ {
		head = head[:len(head)-1] // The head may end inside a character.
		if len(head) == 0 {
			return Content{}
		}
	}
	control := func(r rune) bool { return r < ' ' && !strings.ContainsRune("\t\n\r\f", r) }
	if !utf8.Valid(head) || bytes.ContainsFunc(head, control) {
		return Content{}
	}
	for line := range bytes.Lines(head) {
		if tabs := bytes.Count(line, []byte("\t")); tabs == criteoTabs || tabs == criteoTabs+1 {
			return Content{Is: "Criteo's text", Source: program.CriteoTSV, advice: "say --input-format criteo-tsv"}
		}
	}
	begin := strings.ToLower(strings.TrimLeft(string(head[:min(len(head), 512)]), "\ufeff \t\r\n"))
	switch {
	case strings.HasPrefix(begin, "version https://git-lfs"):
		return Content{Is: "a pointer of git-lfs", advice: "fetch the file that it stands for: git lfs pull"}
	case strings.HasPrefix(begin, "<!doctype html"), strings.HasPrefix(begin, "<html"):
		return Content{Is: "an HTML page", advice: "a server sent it in place of the file: download the file again"}
	case strings.HasPrefix(begin, "<"):
		return Content{Is: "an XML document",
			advice: "stores send one in place of a file that they refuse: read it, and download the file again"}
	case strings.HasPrefix(begin, "{"), strings.HasPrefix(begin, "["):
		return Content{Is: "JSON", advice: fmt.Sprintf(duckdb, "read_json")}
	}
	return Content{Is: plainText, advice: "if it is a table, " + fmt.Sprintf(duckdb, "read_csv")}
}
