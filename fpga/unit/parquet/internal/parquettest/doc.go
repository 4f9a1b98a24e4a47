// Package parquettest writes Parquet files for tests: files that other libraries will not write (BIT_PACKED levels,
// runs cut anywhere, rows that go on over pages), and files that no writer should write.
package parquettest
