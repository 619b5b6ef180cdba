package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"

	"openskill/sdk/client"
	"openskill/sdk/skill"
)

// host gives the address of something that answers as a host does: these examples run
// where none is. TestClient of package examples has a real one.
func host(answers map[string]string) (url string, stop func()) {
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		answer, ok := answers[r.Method+" "+r.URL.Path]
		if !ok {
			w.WriteHeader(http.StatusNotFound)
			answer = `{"error": {"code": "NOT_FOUND", "status": 404, "message": "skill not found; GET /skills lists all"}}`
		}
		_, _ = io.WriteString(w, answer)
	}))
	return srv.URL, srv.Close
}

// A call of a skill gives its data; what the host refuses is an error with a code.
func ExampleClient_Invoke() {
	url, stop := host(map[string]string{"POST /skills/calculator:invoke": `{"success": true, "skill_id": "calculator", "trace_id": "demo-1",
		"data": {"results": {"mean": 4}}, "error": null, "meta": {"runner": "wasm:python"}}`})
	defer stop()

	c, err := client.New(url, nil)
	if err != nil {
		log.Fatal(err)
	}
	ctx := client.WithTraceID(context.Background(), "demo-1")
	r, err := c.Invoke(ctx, "calculator", map[string]any{"numbers": []int{3, 5}, "ops": []string{"mean"}})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(string(r.Data), r.Meta.Runner)

	_, err = c.Skill(ctx, "nope")
	var failed *client.Error
	if errors.As(err, &failed) && failed.Code == skill.NotFound {
		fmt.Println(failed.Status, failed.Message)
	}
	// Output:
	// {"results": {"mean": 4}} wasm:python
	// 404 skill not found; GET /skills lists all
}

// The catalogue is gone through page by page, as far as the loop wants it.
func ExampleClient_Skills() {
	url, stop := host(map[string]string{"GET /skills": `{"data": [{"id": "calculator", "version": "0.1.0", "trust": "trusted"},
		{"id": "echo", "version": "0.1.0", "trust": "trusted"}], "next": null}`})
	defer stop()

	c, err := client.New(url, &client.Options{Key: "osk_example"})
	if err != nil {
		log.Fatal(err)
	}
	for s, err := range c.Skills(context.Background()) {
		if err != nil {
			log.Fatal(err)
		}
		fmt.Println(s.ID, s.Version, s.Trust)
	}
	// Output:
	// calculator 0.1.0 trusted
	// echo 0.1.0 trusted
}

// One message to the agent: its answer, the calls that it made, and why the turn ended.
func ExampleClient_Chat() {
	url, stop := host(map[string]string{"POST /agent/chat": `{"conversation_id": "01a202dd-0000-7000-8000-000000000001", "answer": "It is 8.",
		"tool_calls": [{"id": "1", "skill_id": "calculator", "arguments": {"numbers": [3, 5], "ops": ["sum"]}, "success": true}],
		"iterations": 2, "stop_reason": "completed", "trace_id": "demo-2"}`})
	defer stop()

	c, err := client.New(url, nil)
	if err != nil {
		log.Fatal(err)
	}
	answer, err := c.Chat(context.Background(), client.ChatRequest{Message: "What is 3 and 5?"})
	if err != nil {
		log.Fatal(err)
	}
	for _, call := range answer.ToolCalls {
		fmt.Println("called", call.SkillID)
	}
	fmt.Println(answer.Answer, answer.StopReason == client.Completed)
	// Output:
	// called calculator
	// It is 8. true
}
