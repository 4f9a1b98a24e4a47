package format

import (
	"fmt"
	"strings"
)

// fileWriter is the program that wrote a file, as created_by names it. Its version determines the known faults of the
// file; parquet-cpp and parquet-mr know each other's faults in the same way.
type fileWriter struct {
	name                string
	major, minor, patch int
	hasVersion          bool // created_by has a version
}

// parseWriter reads created_by, for example "parquet-cpp-arrow version 10.0.1".
func parseWriter(createdBy string) fileWriter {
	name, rest, found := strings.Cut(createdBy, " version ")
	if !found {
		return fileWriter{name: createdBy}
	}
	w := fileWriter{name: name}
	// "1.5.1-SNAPSHOT" too; the patch may be left out.
	if n, _ := fmt.Sscanf(rest, "%d.%d.%d", &w.major, &w.minor, &w.patch); n < 2 {
		return fileWriter{name: createdBy}
	}
	w.hasVersion = true
	return w
}

// olderThan reports whether the version is older than the given one.
func (w *fileWriter) olderThan(major, minor, patch int) bool {
	switch {
	case w.major != major:
		return w.major < major
	case w.minor != minor:
		return w.minor < minor
	}
	return w.patch < patch
}

// omitsDictionaryHeader reports whether the writer is a parquet-mr before 1.2.9, which left the dictionary page's
// header out of a chunk's size (PARQUET-816). Its chunks are read a little past their end.
func (w *fileWriter) omitsDictionaryHeader() bool {
	return w.name == "parquet-mr" && (!w.hasVersion || w.olderThan(1, 2, 9))
}

// countsValuesAsRows reports whether the writer's v2 pages of lists begin anywhere and give their number of values as
// their number of rows (Arrow's issue 34086). Such writers are parquet-cpp, which was Arrow's until 3.0, and
// parquet-cpp-arrow before 12.
func (w *fileWriter) countsValuesAsRows() bool {
	return w.name == "parquet-cpp" || w.name == "parquet-cpp-arrow" && w.hasVersion && w.olderThan(12, 0, 0)
}

// alwaysCompressed reports whether the writer's v2 pages are compressed although their headers say that they are not
// (ARROW-10353, ARROW-17100): parquet-cpp before 2.0, a version that was never released, and parquet-cpp-arrow before
// 3.0.
func (w *fileWriter) alwaysCompressed() bool {
	switch w.name {
	case "parquet-cpp":
		return !w.hasVersion || w.olderThan(2, 0, 0)
	case "parquet-cpp-arrow":
		return w.hasVersion && w.olderThan(3, 0, 0)
	}
	return false
}
