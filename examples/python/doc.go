// Package python holds loop.py, a training loop in Python over a Parquet file that lies on the drive of a storage
// node. loop.py says how it is run and what it prints; the test runs it against a storage node of its own and compares
// what it prints.
package python
