package main

import (
	"context"
	"errors"
	"io"
	"net"
	"os"

	"github.com/spf13/cobra"

	"openskill/host/agent/llm/llmtest"
	"openskill/internal/cliflag"
)

// fakeLLM is one run of fakellm.
type fakeLLM struct {
	script, listen string
	print, asJSON  bool
}

func (a *cli) fakeLLMCommand() *cobra.Command {
	o := &fakeLLM{listen: "127.0.0.1:0"}
	cmd := &cobra.Command{
		Use:   "fakellm",
		Short: "Serve a scripted model, for demonstrations and tests without a network",
		Long: `Serves a model that follows a script, on loopback alone, until it is told to stop. It
speaks as OpenAI's Chat Completions, Anthropic's Messages and the llm-service do,
streamed and not. Once it is ready it prints its address, and the settings by which
openskill serve and others use it; each request is a line on standard error, with
the rule of the script that answered it.

A script is JSON: rules, of which the first that fits a request answers it. --print
shows the one that comes with openSkill, which knows its four skills. A rule has
  when   user, result, system (regular expressions), after_tool, step, model, json
  what   say, calls (name, arguments, repeat), stop, usage, raw; $1 is what was found
  how    times, status, retry_after_s, delay_ms, chunk, pause_ms, cut_after`,
		Example: `  openskill fakellm
  openskill fakellm --print > script.json
  openskill fakellm --script script.json --listen 127.0.0.1:9000`,
		Args: takes(0, 0),
	}
	f := cmd.Flags()
	f.Var(cliflag.Text(&o.script, "FILE"), "script", "the script; default the one of --print")
	f.Var(cliflag.Text(&o.listen, "ADDRESS"), "listen", "a loopback address; port 0 takes a free one")
	f.BoolVar(&o.print, "print", false, "print the script that comes with openSkill, and end")
	f.BoolVar(&o.asJSON, "json", false, "print address and settings as one line of JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if o.print {
			return a.print("%s", llmtest.Demo)
		}
		return a.serveFakeLLM(cmd.Context(), o)
	}
	return cmd
}

func (a *cli) serveFakeLLM(ctx context.Context, o *fakeLLM) error {
	model, err := o.model()
	if err != nil {
		return &exitError{exitUsage, err}
	}
	host, _, err := net.SplitHostPort(o.listen)
	if ip := net.ParseIP(host); err != nil || host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return usage("--listen %s: want a loopback address with a port, like 127.0.0.1:9000", quote(o.listen))
	}
	var lc net.ListenConfig
	ln, err := lc.Listen(ctx, "tcp", o.listen)
	if err != nil {
		return hostFailed(errors.New("the address cannot be listened on: " + err.Error()))
	}
	if err := a.introduce("http://"+ln.Addr().String(), o.asJSON); err != nil {
		_ = ln.Close() // nobody knows of it
		return err
	}
	server := llmtest.NewServer(model, &llmtest.ServerOptions{Answered: func(wire string, rule int) {
		if rule == 0 {
			a.say("%s: no rule fits", wire)
			return
		}
		a.say("%s: rule %d", wire, rule)
	}})
	if err := server.Serve(ctx, ln); err != nil {
		return hostFailed(err)
	}
	return nil
}

// model reads the script.
func (o *fakeLLM) model() (*llmtest.Model, error) {
	text := llmtest.Demo
	if o.script != "" {
		f, err := os.Open(o.script)
		if err != nil {
			return nil, usage("--script %s cannot be read", quote(o.script))
		}
		defer f.Close()
		if text, err = io.ReadAll(io.LimitReader(f, llmtest.MaxScript+1)); err != nil {
			return nil, usage("--script %s cannot be read", quote(o.script))
		}
	}
	script, err := llmtest.Parse(text)
	if err != nil {
		return nil, err
	}
	return llmtest.New(script)
}

// introduce says where the model is, and which settings have a host use it, or another
// program that knows these names.
func (a *cli) introduce(url string, asJSON bool) error {
	settings := []struct{ name, value string }{
		{"OPENAI_API_BASE", url + "/v1"},
		{"OPENAI_API_KEY", "scripted"},
		{"OPENAI_MODEL", "scripted"},
		{"ANTHROPIC_API_BASE", url},
		{"ANTHROPIC_API_KEY", "scripted"},
		{"ANTHROPIC_MODEL", "scripted"},
		{"OPENSKILL_LLM_SERVICE_URL", url},
	}
	if asJSON {
		environment := map[string]string{}
		for _, s := range settings {
			environment[s.name] = s.value
		}
		return a.printJSON(map[string]any{"url": url, "environment": environment})
	}
	text := "a scripted model is listening on " + url + "\n"
	for _, s := range settings {
		text += "  " + s.name + "=" + s.value + "\n"
	}
	return a.print("%s", text)
}
