package text_test

import (
	"fmt"
	"strings"

	"github.com/millrace/millrace/fpga/unit/text"
)

// A partition is decoded window by window; what a window's end cuts off begins the next.
func ExampleDecoder_Decode() {
	row := "1\t-1" + strings.Repeat("\t", 12) + strings.Repeat("\t05db9164", 26) + "\n"
	data := []byte(row + row)
	decoder, err := text.NewDecoder(text.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	columns := text.NewColumns(8)
	first, err := decoder.Decode(columns, 0, 8, data[:len(row)+5], false)
	fmt.Println(first.Rows, first.More, err)
	second, err := decoder.Decode(columns, first.Rows, 8-first.Rows, data[first.Consumed:], true)
	fmt.Println(second.Rows, second.More, err)
	fmt.Println(columns.Label[:2], columns.Dense[0][:2], columns.DenseValid[1][:2], columns.Sparse[25][:2])
	// Output:
	// 1 true <nil>
	// 1 false <nil>
	// [1 1] [-1 -1] [0 0] [98275684 98275684]
}

func ExampleNewIndex() {
	row := strings.Repeat("0\t", 39) + "0\n"
	data := row + "not a row\n" + row + "\n" + row
	index, err := text.NewIndex(strings.NewReader(data), text.Options{Policy: text.Drop}, 2)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(index.Rows, "rows,", index.Dropped, "dropped,", index.Blank, "empty; row 2 is after byte",
		index.At[1].Offset)
	_, err = text.NewIndex(strings.NewReader(data), text.Options{}, 0)
	fmt.Println(err)
	// Output:
	// 3 rows, 1 dropped, 1 empty; row 2 is after byte 170
	// index criteo text: criteo row: line 2 (byte 80): wrong number of fields
}
