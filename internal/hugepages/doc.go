// Package hugepages makes memory that the kernel is asked to map in huge pages.
//
// Code that looks values up all over tens of megabytes waits for the translation of addresses if pages have 4 KiB, and
// memory that is written once spends much of that time in faults of such pages. The memory belongs to Go's heap and is
// collected as any other.
//
// A program may have memory that is advised and no huge pages: where the system has transparent huge pages switched
// off, has no free ones, or is not Linux. The memory is as good.
package hugepages
