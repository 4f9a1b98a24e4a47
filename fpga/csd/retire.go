//go:build !debug

package csd

// retire gives a closed drive's memory back to the system but keeps the addresses: a view that somebody kept too long
// reads zeros and does not bring the process down.
func retire(mem []byte, _ func() error) error {
	zeroMemory(mem)
	return nil
}
