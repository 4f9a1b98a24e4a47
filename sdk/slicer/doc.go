// Package slicer says which slice of a mini-batch a target executes next.
package slicer
