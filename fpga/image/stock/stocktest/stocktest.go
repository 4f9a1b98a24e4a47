// Package stocktest makes images for tests that need another one than the stock image.
package stocktest

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
)

// Parsed returns the stock image.
func Parsed(t testing.TB) *image.Image {
	t.Helper()
	b, err := stock.Image()
	require.NoError(t, err)
	m, err := image.Parse(b)
	require.NoError(t, err)
	return m
}

// Changed returns the stock image with a change.
func Changed(t testing.TB, change func(*image.Spec)) *image.Image {
	t.Helper()
	m := Parsed(t)
	change(&m.Spec)
	b, err := image.Build(&m.Spec)
	require.NoError(t, err)
	m, err = image.Parse(b)
	require.NoError(t, err)
	return m
}
