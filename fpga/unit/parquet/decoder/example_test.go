package decoder_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"log"

	pq "github.com/parquet-go/parquet-go"

	"github.com/millrace/millrace/fpga/unit/parquet/decoder"
	"github.com/millrace/millrace/fpga/unit/parquet/format"
)

// A chunk's rows are read into the same Block, call after call.
func ExampleChunkReader() {
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
	var chunk decoder.ChunkReader
	if err := chunk.OpenChunk(r, f, 0, leaf.Index); err != nil {
		log.Fatal(err)
	}
	var block decoder.Block
	for {
		block.Reset(leaf.Physical.Kind())
		_, err := chunk.Next(&block, 2)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(block.Lengths, block.I64)
	}
	// Output:
	// [2 0] [7 8]
	// [1] [9]
}
