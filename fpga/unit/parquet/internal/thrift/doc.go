// Package thrift writes Thrift's compact protocol for tests: footers, page headers and page indexes, valid or not.
package thrift
