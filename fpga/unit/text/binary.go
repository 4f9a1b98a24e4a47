package text

import "encoding/binary"

// DecodeBinary decodes up to n binary rows of window into rows first, first+1, ... of c. window begins at position at,
// which errors name; final says that the partition ends with it: bytes that are no whole row are ErrPartialRow then.
func DecodeBinary(c *Columns, first, n int, window []byte, at Position, final bool) (Result, error) {
	var res Result
	if err := c.check(first, n); err != nil {
		return res, err
	}
	whole := min(n, len(window)/BinaryRow)
	var to columnTargets
	set := vectors()
	if set > noVectors {
		to.pointTo(c)
	}
	for res.Rows < whole {
		// A block of rows at a time stays in the first-level cache while its columns are gathered.
		rows := min(whole-res.Rows, blockRows)
		gather(c, &to, set, first+res.Rows, window[res.Consumed:res.Consumed+rows*BinaryRow])
		res.Rows += rows
		res.Consumed += rows * BinaryRow
	}
	if res.Rows == n {
		return res, nil
	}
	if left := len(window) - res.Consumed; final && left > 0 {
		return res, &RowError{
			Line: at.Line + int64(res.Rows) + 1, Offset: at.Offset + int64(res.Consumed), Field: -1, Err: ErrPartialRow,
		}
	}
	res.More = !final
	return res, nil
}

// full is the planes of a block in which every field holds a value.
var full = func() (p [groups][blockRows]byte) {
	for g := range p {
		for r := range p[g] {
			p[g][r] = 0xff
		}
	}
	return p
}()

// gather moves a block, at most, of binary rows to rows first, first+1, ... of c, which to aims at where there are
// vectors.
func gather(c *Columns, to *columnTargets, set vectorSet, first int, rows []byte) {
	n := len(rows) / BinaryRow
	from, known := 0, false
	if set > noVectors {
		from, known = to.columns(set, &rows[0], first, n, len(rows)), to.validity(set, &full, first, n)
	}
	if from == n && known {
		return
	}
	for f := range fields {
		values, valid := c.column(f)
		if values != nil && from < n {
			values = values[first+from : first+n]
			column := rows[from*BinaryRow+4*f:]
			if f <= Dense {
				for r := range values {
					values[r] = int64(int32(binary.LittleEndian.Uint32(column[r*BinaryRow:])))
				}
			} else {
				for r := range values {
					values[r] = int64(binary.LittleEndian.Uint32(column[r*BinaryRow:]))
				}
			}
		}
		if valid != nil && !known {
			valid = valid[first : first+n]
			for r := range valid {
				valid[r] = 1
			}
		}
	}
}
