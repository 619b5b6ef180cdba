package strictjson_test

import (
	"fmt"

	"openskill/internal/strictjson"
)

// Two readers of one text could see two things in it where a key comes twice; nobody reads
// it then.
func ExampleObject() {
	for _, text := range []string{`{"role": "reader", "Role": 1}`, `{"role": "reader", "role": "admin"}`} {
		err := strictjson.Object([]byte(text), func(key, value []byte) error {
			fmt.Printf("%s is %s\n", key, value)
			return nil
		})
		if err != nil {
			fmt.Println(err)
		}
	}
	// Output:
	// role is "reader"
	// Role is 1
	// role is "reader"
	// role: appears more than once at byte 19
}
