// Command agentloop says its arguments to the agent of a host, one after the other in one
// conversation, and prints the answers. The agent calls the skills that it needs.
//
//	go run ./examples/agentloop 'add 3 and 5' 'and now add 2 to that'
package main

import (
	"cmp"
	"context"
	"fmt"
	"log"
	"os"

	"openskill/sdk/client"
)

func main() {
	host, err := client.New(cmp.Or(os.Getenv("OPENSKILL_HTTP_BASE_URL"), "http://127.0.0.1:8000"), &client.Options{Key: os.Getenv("OPENSKILL_API_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	agent := host.NewAgent()
	for _, text := range os.Args[1:] {
		answer, err := agent.Run(context.Background(), text)
		if err != nil {
			log.Fatal(err)
		}
		fmt.Printf("%q\n", answer) // quoted: nobody has looked at what a model says
	}
}
