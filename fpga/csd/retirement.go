//go:build !debug

package csd

// retire returns a closed drive's memory to the system but keeps its addresses: a view that was kept too long reads
// zeros, and does not end the process.
func retire(mem []byte, _ func() error) error {
	zeroMemory(mem)
	return nil
}
