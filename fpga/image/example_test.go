package image_test

import (
	"crypto/ed25519"
	"errors"
	"fmt"

	"github.com/millrace/millrace/fpga/image"
	"github.com/millrace/millrace/fpga/image/stock"
)

func ExampleParse() {
	b, err := stock.Image()
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := image.Parse(b)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Spec.Platform, "with", m.Spec.Units[0].Name, "version", m.Spec.Units[0].Version, "signed:",
		m.Signature != nil)
	// Output: millrace-csd with fill_null version 1 signed: false
}

func ExampleTrust_Judge() {
	b, err := stock.Image()
	if err != nil {
		fmt.Println(err)
		return
	}
	m, err := image.Parse(b)
	if err != nil {
		fmt.Println(err)
		return
	}
	key := ed25519.NewKeyFromSeed(make([]byte, ed25519.SeedSize))
	t := image.Trust{Policy: image.PolicyRequire, Keys: []ed25519.PublicKey{key.Public().(ed25519.PublicKey)}}
	_, err = t.Judge(m)
	fmt.Println("unsigned:", errors.Is(err, image.ErrUnsigned))
	if b, err = m.Sign(key); err != nil {
		fmt.Println(err)
		return
	}
	if m, err = image.Parse(b); err != nil {
		fmt.Println(err)
		return
	}
	_, err = t.Judge(m)
	fmt.Println("signed:", err)
	t.Revoke(nil, []image.ID{m.ID})
	_, err = t.Judge(m)
	fmt.Println("revoked:", errors.Is(err, image.ErrRevoked))
	// Output:
	// unsigned: true
	// signed: <nil>
	// revoked: true
}
