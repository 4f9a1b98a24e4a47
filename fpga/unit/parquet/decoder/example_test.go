package decoder_test

import (
	"bytes"
	"fmt"
	"log"

	pq "github.com/parquet-go/parquet-go"

	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// The pages of a column chunk are decoded one after the other. Blocks of rows reuse the same memory.
func ExampleDecoder() {
	type row struct {
		Label int32   `parquet:"label"`
		IDs   []int64 `parquet:"ids,list"`
	}
	var file bytes.Buffer
	if err := pq.Write(&file, []row{{1, []int64{7, 8}}, {0, nil}, {1, []int64{9}}}); err != nil {
		log.Fatal(err)
	}
	r := bytes.NewReader(file.Bytes())
	f, err := format.ReadFooter(r, r.Size())
	if err != nil {
		log.Fatal(err)
	}
	leaf, _ := f.Leaf("ids")
	chunk, _, err := f.Chunk(0, leaf.Index)
	if err != nil {
		log.Fatal(err)
	}
	columnType := leaf.ColumnType(chunk.Codec)
	window := file.Bytes()[chunk.Offset : chunk.Offset+chunk.Compressed]
	var d decoder.Decoder
	var block decoder.Block
	for len(window) > 0 {
		h, n, err := format.ParsePageHeader(window)
		if err != nil {
			log.Fatal(err)
		}
		page, err := decoder.Unpack(make([]byte, h.Uncompressed), &h, window[n:], &columnType)
		if err != nil {
			log.Fatal(err)
		}
		if err := d.Reset(&columnType, &h, page, nil); err != nil {
			log.Fatal(err)
		}
		for d.Rows() > 0 {
			block.Reset(columnType.Kind())
			if _, err := d.Next(&block, 2); err != nil {
				log.Fatal(err)
			}
			fmt.Println(block.Lengths, block.I64)
		}
		window = window[n+int(h.Compressed):]
	}
	// Output:
	// [2 0] [7 8]
	// [1] [9]
}
