//go:build debug

package tensor

// debug makes misuse of a released mini-batch loud.
const debug = true
