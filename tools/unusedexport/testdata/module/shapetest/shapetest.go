// Package shapetest is for tests: nobody reports what it exports.
package shapetest

// Helper helps tests.
func Helper() {}
