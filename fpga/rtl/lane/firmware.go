package lane

// The work of this machine's processor beside the units, in the words of a report.
const (
	firmwareHeaders       = "footers, page headers and checksums are read"
	firmwareDecompression = "pages are unpacked: "
	firmwareByteArrays    = "byte arrays are cut out of PLAIN pages"
	firmwareText          = "rows of text are counted and put into columns; malformed ones are left out or are nulls"
	firmwareBinary        = "values of binary rows are put into columns"
	firmwareNulls         = "nulls that no unit fills are put between the values"
	firmwareChaining      = "results are carried from unit to unit, for chains that the unit lane does not have"
	firmwareTensors       = "levels and columns are carried between units; ids, lengths and labels are put together"
)
