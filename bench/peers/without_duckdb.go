//go:build !cgo

package main

import "errors"

// duckVersion is that of the library.
func duckVersion() string { return "" }

// openDuck says that there is no DuckDB in a build without cgo.
func openDuck(*dataset, bool) (runner, error) {
	return nil, errors.New("built without cgo, which DuckDB needs: install gcc and set CGO_ENABLED=1")
}
