package format

import (
	"fmt"
	"strings"
)

// writer is the program that wrote a file, as created_by names it. What writers got wrong is known by it, as
// parquet-cpp and parquet-mr know each other's faults.
type writer struct {
	name                string
	major, minor, patch int
	versioned           bool // created_by has a version
}

// writerOf reads created_by: "parquet-cpp-arrow version 10.0.1" and the like.
func writerOf(createdBy string) writer {
	name, rest, found := strings.Cut(createdBy, " version ")
	if !found {
		return writer{name: createdBy}
	}
	w := writer{name: name}
	// "1.5.1-SNAPSHOT" too; the patch may be left out.
	if n, _ := fmt.Sscanf(rest, "%d.%d.%d", &w.major, &w.minor, &w.patch); n < 2 {
		return writer{name: createdBy}
	}
	w.versioned = true
	return w
}

// before reports whether the version is older than the given one.
func (w *writer) before(major, minor, patch int) bool {
	switch {
	case w.major != major:
		return w.major < major
	case w.minor != minor:
		return w.minor < minor
	}
	return w.patch < patch
}

// dictHeaderLeftOut reports whether the writer is a parquet-mr before 1.2.9, which left the dictionary page's header
// out of a chunk's size (PARQUET-816). Its chunks are read a little past their end.
func (w *writer) dictHeaderLeftOut() bool {
	return w.name == "parquet-mr" && (!w.versioned || w.before(1, 2, 9))
}

// rowsUncounted reports whether the writer's v2 pages of lists begin anywhere and say how many values they have where
// they should say how many rows (Arrow's issue 34086): parquet-cpp, which was Arrow's until 3.0, and parquet-cpp-arrow
// before 12.
func (w *writer) rowsUncounted() bool {
	return w.name == "parquet-cpp" || w.name == "parquet-cpp-arrow" && w.versioned && w.before(12, 0, 0)
}

// alwaysCompressed reports whether the writer's v2 pages are compressed though their headers say that they are not
// (ARROW-10353, ARROW-17100): parquet-cpp before 2.0, a version that never was, and parquet-cpp-arrow before 3.0.
func (w *writer) alwaysCompressed() bool {
	switch w.name {
	case "parquet-cpp":
		return !w.versioned || w.before(2, 0, 0)
	case "parquet-cpp-arrow":
		return w.versioned && w.before(3, 0, 0)
	}
	return false
}
