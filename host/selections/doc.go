// Package selections keeps, on a storage node, which rows of partitions pass filters.
//
// # Overview
//
// A [Store] is a folder of parts: selections of one partition each (sdk/selection.PartManifest). A part depends on the
// partition, by the fingerprint that a manifest has of it, and on the canonical form of the filter, and its file is
// named for both. So a part that was made for one job is found for every other job with the same filter, also after a
// restart of the node. [Store.Put] adds a part, and drops those that were used longest ago where the folder would
// exceed its bound.
//
//	SHA256(manifest of the partition, filter).selection  a part
//
// # Concurrency
//
// A Store is safe for concurrent use. One process at a time uses a folder.
//
// # Errors
//
// A part that is damaged, of another version, or of another partition or filter than its name says, is removed and
// counts as none: it is made again.
package selections
