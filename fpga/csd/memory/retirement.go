//go:build !debug

package memory

// Retire returns a closed drive's memory to the system but keeps its addresses: a view that was kept too long reads
// zeros, and does not end the process.
func Retire(mem []byte, _ func() error) error {
	Zero(mem)
	return nil
}
