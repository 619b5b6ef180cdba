package share_test

import (
	"fmt"
	"log"
	"strings"

	"openskill/host/admission/share"
	"openskill/sdk/skill"
)

// A signature is over id, version and digest: of another version it is none.
func ExampleSign() {
	key, err := share.GenerateKey()
	if err != nil {
		log.Fatal(err)
	}
	greeter := share.Statement{ID: "greeter", Version: "0.1.0", Digest: "sha256:" + strings.Repeat("0", 64)}
	file, err := share.Sign(key, greeter)
	if err != nil {
		log.Fatal(err)
	}

	s, err := share.ParseSignature(file)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(s.By(key.Public()), s.Verify(key.Public(), greeter))
	greeter.Version = "0.2.0"
	fmt.Println(skill.CodeOf(s.Verify(key.Public(), greeter)))
	// Output:
	// true <nil>
	// SIGNATURE_INVALID
}
