// Package workload holds PreSto's five workloads, RM1 to RM5, and MiniPipe's two data sets as data, and makes Parquet
// data sets of their shape.
//
// [Models] is PreSto's table I. [Generate] writes partitions with the columns that the model's pipeline reads:
//
//	label           int32, required: 1 in one row of 32
//	int_0 ...       dense features: RM1 nullable int32, RM2 to RM5 nullable float32
//	cat_0 ...       sparse features: RM1 nullable int64, RM2 to RM5 nullable list<int64>, three-level
//
// [DataSets] are MiniPipe's D-I and D-II (section 4.1.1): int_0 ... are nullable float32, and cat_0 ... nullable text
// of eight hexadecimal digits.
//
// With Options.Maps the same features lie in two maps, by number, as DPP's tables have theirs:
//
//	label             as above
//	float_features    map<int32, float32>: feature i is int_i
//	id_list_features  map<int32, list<int64>>: feature i is cat_i
//
// [MakeDrive] puts partitions on a new drive, whose flash is a file.
//
// # What the rows are
//
// Rows are synthetic, and a pure function of model, seed, coverage, column and row number: neither partitions, row
// groups, pages, codec, encoding nor parallelism enter. So the same options give the same bytes on every machine, and
// the same rows can be had in other layouts. Columns are independent of each other and of the label: a trained model
// would learn nothing; what is real is the volume, the types, the nulls and the skew.
//
//   - Nulls. RM1's rates are Criteo's, column by column ([criteoNulls] says how they were measured). RM2 to RM5 follow
//     DPP's RM3, the one of 504 dense and 42 sparse features: coverage 0.29 (DPP, table V), that is, a dense or sparse
//     feature is null in 71 % of the rows. PreSto gives no coverage; Options.Coverage sets another, 1 for none null.
//   - Lists. A list that is not null has 0 to 40 ids, 20 on average as PreSto's table I says (DPP: 19.64). Lengths come
//     in pairs of n and 40-n, so that the mean of any column is 20 at any size.
//   - Ids. Zipf of exponent 1.05 over 2^31 ranks (drawn by rejection-inversion, Hörmann and Derflinger, 1996), each
//     rank then scattered over 0..2^31-1 by a bijection of the column's own, as hashed ids are.
//   - RM1's integers are spread evenly over magnitudes, up to 2^2 in the first column to 2^26 in the last; one value in
//     64 is -1, as Criteo has. RM2 to RM5's floats are 100 u/(1-u), u uniform: half are below 100, one in a hundred
//     above 10,000; one in 64 has its sign turned.
//   - D-I has RM1's nulls, and its floats are RM1's integers. D-II's are RM2's floats, and no value is null. Their
//     texts are the digits of ids as above.
//
// Random numbers are splitmix64, written out; all arithmetic on floats is correctly rounded operations only, never
// fused, so that amd64 and arm64 agree.
//
// # Concurrency
//
// Generate writes up to GOMAXPROCS partitions at once and returns when all have ended. A partition being written holds
// one row group in memory.
//
// # Errors
//
// [ErrOptions] says that options are out of range; other errors name the partition's path. A partition has its name
// only when it is whole (PATH.partial before); after an error the partitions that are whole stay.
//
// # Debugging
//
// The footer's key millrace.workload says how a file was made.
package workload
