// Command chat talks with the agent of a host: each line of standard input is a message,
// and what happens is shown while it happens. Ctrl-C ends a turn.
//
//	go run ./examples/chat
package main

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"strings"
	"unicode"

	"openskill/sdk/client"
)

func main() {
	host, err := client.New(cmp.Or(os.Getenv("OPENSKILL_HTTP_BASE_URL"), "http://127.0.0.1:8000"), &client.Options{Key: os.Getenv("OPENSKILL_API_KEY")})
	if err != nil {
		log.Fatal(err)
	}
	agent := host.NewAgent()
	agent.Hear = show
	in := bufio.NewScanner(os.Stdin)
	for fmt.Print("> "); in.Scan(); fmt.Print("> ") {
		if err := turn(agent, in.Text()); err != nil {
			fmt.Printf("\n! %s", printable(err.Error()))
		}
		fmt.Println()
	}
	if err := in.Err(); err != nil {
		log.Fatal(err)
	}
}

// turn says one thing to the agent. What it answers was shown when it came.
func turn(agent *client.Agent, text string) error {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	_, err := agent.Run(ctx, text)
	var stopped *client.StoppedError
	if errors.As(err, &stopped) && stopped.Answer.StopReason == client.ApprovalRequired {
		for _, a := range stopped.Answer.Approvals {
			fmt.Printf("\n? %s waits for an approval: openskill approvals approve %s", printable(a.SkillID), printable(a.ApprovalID))
		}
		return nil
	}
	return err
}

// show prints what happens in a turn.
func show(e client.Event) {
	switch e.Kind {
	case client.EventText:
		fmt.Print(printable(e.Text))
	case client.EventToolGo:
		fmt.Printf("\n  ▸ %s %s\n", printable(e.Tool.SkillID), printable(string(e.Tool.Arguments)))
	case client.EventToolEnd:
		if e.Tool.Success {
			fmt.Printf("  ✓ %s %d ms\n", printable(e.Tool.SkillID), e.Tool.LatencyMS)
		} else {
			fmt.Printf("  ✗ %s %s\n", printable(e.Tool.SkillID), printable(e.Tool.Error.Message))
		}
	default: // agent.Last has it all when the turn has ended
	}
}

// printable leaves out what a terminal would obey: models and skills say what they like.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		if r != '\n' && (unicode.IsControl(r) || unicode.Is(unicode.Cf, r)) {
			return -1
		}
		return r
	}, s)
}
