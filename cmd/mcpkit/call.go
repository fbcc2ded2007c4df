package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// What the commands that speak to servers return besides.
const (
	exitConnection  = 3
	exitProtocol    = 4
	exitInterrupted = 130
)

const remoteUsage = `
SERVER is an http or https URL, or a command line in one argument; no shell sees it. Progress and log messages go to standard
error. The program returns 0 when all went well, 1 for an error of the tool, 2 for wrong usage, 3 when there is no connection,
4 for an error of the protocol, and 130 when it was interrupted: the call is cancelled first.`

// A remote is what a command that speaks to a server was told.
type remote struct {
	flags          *flag.FlagSet
	stdout, stderr io.Writer
	opts           []client.DialOption
	timeout        time.Duration
	revision       string
	asJSON         bool
	arguments      string // --json of call
	target         string
	rest           []string
}

// newRemote parses the flags. When the answer is false, the command is over, with the code.
func newRemote(name, usage string, args []string, stdout, stderr io.Writer) (r *remote, code int, ok bool) {
	stderr = &lockedWriter{w: stderr} // the server's own standard error goes there too
	r = &remote{flags: flag.NewFlagSet(name, flag.ContinueOnError), stdout: stdout, stderr: stderr}
	r.flags.Func("header", "`name: value` to send with each HTTP request; may be repeated", func(s string) error {
		field, value, found := strings.Cut(s, ":")
		if !found || strings.TrimSpace(field) == "" {
			return errors.New(`write "name: value"`)
		}
		r.opts = append(r.opts, client.Header(strings.TrimSpace(field), strings.TrimSpace(value)))
		return nil
	})
	r.flags.DurationVar(&r.timeout, "timeout", client.DefaultTimeout, "how long a request may take; 0 for ever")
	r.flags.StringVar(&r.revision, "revision", "", "`revision` of the protocol to speak; the newest that both know when none is given")
	r.flags.BoolVar(&r.asJSON, "output-json", false, "write results as JSON")
	if name == "call" {
		r.flags.StringVar(&r.arguments, "json", "", "the arguments as a JSON `object`, instead of name=text and name:=json")
	}
	if code, ok := parse(r.flags, usage+remoteUsage, args, stderr); !ok {
		return nil, code, false
	}
	if r.flags.NArg() == 0 {
		r.flags.Usage()
		return nil, exitUsage, false
	}
	r.target, r.rest = r.flags.Arg(0), r.flags.Args()[1:]
	if len(r.rest) > 0 && r.rest[0] == "--" {
		r.rest = r.rest[1:]
	}
	if r.revision != "" {
		r.opts = append(r.opts, client.Version(protocol.Version(r.revision)))
	}
	return r, exitOK, true
}

// A lockedWriter lets several goroutines write, one at a time.
type lockedWriter struct {
	mu sync.Mutex
	w  io.Writer // guarded by mu
}

func (l *lockedWriter) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.w.Write(p)
}

// usage says what is wrong with the arguments.
func (r *remote) usage(format string, args ...any) int {
	fmt.Fprintf(r.stderr, "mcpkit %s: %s\n", r.flags.Name(), fmt.Sprintf(format, args...))
	return exitUsage
}

// with dials, runs f, and returns the code of the program.
func (r *remote) with(ctx context.Context, f func(c *client.Client) error) int {
	quiet := slog.New(slog.DiscardHandler)
	c, err := client.Dial(ctx, r.target, append(r.opts, client.Logger(quiet), client.Stderr(r.stderr), client.Timeout(r.timeout), client.Info("mcpkit", "1"))...)
	if err != nil {
		fmt.Fprintf(r.stderr, "mcpkit %s: %s\n", r.flags.Name(), clean(err.Error()))
		if ctx.Err() != nil {
			return exitInterrupted
		}
		return exitConnection
	}
	defer c.Close()
	err = f(c)
	if err == nil {
		return exitOK
	}
	if _, ok := errors.AsType[*client.ToolError](err); !ok || !r.asJSON {
		fmt.Fprintf(r.stderr, "mcpkit %s: %s\n", r.flags.Name(), clean(err.Error()))
	}
	return exitOf(ctx, err)
}

// exitOf is the code that an error of a request means.
func exitOf(ctx context.Context, err error) int {
	if ctx.Err() != nil {
		return exitInterrupted
	}
	if _, ok := errors.AsType[*client.ToolError](err); ok {
		return exitFault
	}
	if _, ok := errors.AsType[*jsonrpc.Error](err); ok {
		return exitProtocol
	}
	if _, ok := errors.AsType[*client.InvalidResponseError](err); ok {
		return exitProtocol
	}
	return exitConnection
}

// callOptions show progress and messages while a call runs.
func (r *remote) callOptions() []client.CallOption {
	return []client.CallOption{
		client.LogLevel(protocol.LevelInfo),
		client.OnProgress(func(p *protocol.ProgressParams) {
			line := fmt.Sprint(p.Progress)
			if p.Total != nil {
				line += fmt.Sprintf("/%v", *p.Total)
			}
			fmt.Fprintf(r.stderr, "progress: %s %s\n", line, clean(p.Message))
		}),
		client.OnLog(func(p *protocol.LoggingMessageParams) {
			fmt.Fprintf(r.stderr, "%s: %s\n", clean(string(p.Level)), clean(string(p.Data)))
		}),
	}
}

// write writes a result as JSON, or by human where that is not asked for.
func (r *remote) write(v any, human func()) error {
	if !r.asJSON {
		human()
		return nil
	}
	out := json.NewEncoder(r.stdout)
	out.SetIndent("", "  ")
	return out.Encode(v)
}

func (r *remote) writeContents(blocks ...protocol.Content) {
	for _, b := range blocks {
		if text, ok := b.(*protocol.TextContent); ok {
			fmt.Fprintln(r.stdout, clean(text.Text))
		} else {
			fmt.Fprintf(r.stdout, "[%s]\n", clean(protocol.ContentType(b)))
		}
	}
}

// clean makes what a server says fit for a terminal: control characters, those that turn the direction of text included, are
// shown as Go writes them. Line feeds and tabs stay.
func clean(s string) string {
	var b strings.Builder
	for _, c := range s {
		if c == '\n' || c == '\t' || !unicode.IsControl(c) && !unicode.Is(unicode.Cf, c) {
			b.WriteRune(c)
		} else {
			b.WriteString(strings.Trim(fmt.Sprintf("%+q", c), "'"))
		}
	}
	return b.String()
}

// toolArguments reads name=text and name:=json.
func toolArguments(words []string) (map[string]any, error) {
	args := map[string]any{}
	for _, w := range words {
		name, value, found := strings.Cut(w, "=")
		raw := strings.HasSuffix(name, ":")
		name = strings.TrimSuffix(name, ":")
		if !found || name == "" {
			return nil, fmt.Errorf("%q is no argument; write name=text or name:=json", w)
		}
		if _, twice := args[name]; twice {
			return nil, fmt.Errorf("the argument %q is given twice", name)
		}
		if !raw {
			args[name] = value
			continue
		}
		if !json.Valid([]byte(value)) {
			return nil, fmt.Errorf("%q is no JSON; write %s=%s for text", w, name, value)
		}
		args[name] = json.RawMessage(value)
	}
	return args, nil
}

// runCall is the command call.
func runCall(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	r, code, ok := newRemote("call", "call [flags] SERVER [--] TOOL [name=text | name:=json ...]\n\nCalls a tool.\n", args, stdout, stderr)
	if !ok {
		return code
	}
	if len(r.rest) == 0 {
		return r.usage("which tool? mcpkit list shows them")
	}
	var in any
	in, err := toolArguments(r.rest[1:])
	if err == nil && r.arguments != "" {
		switch {
		case len(r.rest) > 1:
			err = errors.New("-json and arguments exclude each other")
		case !json.Valid([]byte(r.arguments)) || !strings.HasPrefix(strings.TrimSpace(r.arguments), "{"):
			err = fmt.Errorf("-json %q is no JSON object", r.arguments)
		}
		in = json.RawMessage(r.arguments)
	}
	if err != nil {
		return r.usage("%v", err)
	}
	return r.with(ctx, func(c *client.Client) error {
		res, err := c.CallTool(ctx, r.rest[0], in, r.callOptions()...)
		if res == nil || err != nil && !r.asJSON {
			return err
		}
		return errors.Join(err, r.write(res, func() { r.writeContents(res.Content...) }))
	})
}

// runRead is the command read.
func runRead(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	r, code, ok := newRemote("read", "read [flags] SERVER URI\n\nReads a resource.\n", args, stdout, stderr)
	if !ok {
		return code
	}
	if len(r.rest) != 1 {
		return r.usage("want one URI")
	}
	return r.with(ctx, func(c *client.Client) error {
		res, err := c.ReadResource(ctx, r.rest[0], r.callOptions()...)
		if err != nil {
			return err
		}
		return r.write(res, func() {
			for _, part := range res.Contents {
				if part.Text != nil {
					fmt.Fprintln(stdout, clean(*part.Text))
				} else {
					fmt.Fprintf(stdout, "[%d bytes of %s]\n", len(part.Blob), clean(part.MIMEType))
				}
			}
		})
	})
}

// runPrompt is the command prompt.
func runPrompt(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	r, code, ok := newRemote("prompt", "prompt [flags] SERVER PROMPT [name=text ...]\n\nGets the messages of a prompt.\n", args, stdout, stderr)
	if !ok {
		return code
	}
	if len(r.rest) == 0 {
		return r.usage("which prompt? mcpkit list shows them")
	}
	texts := map[string]string{}
	for _, w := range r.rest[1:] {
		name, value, found := strings.Cut(w, "=")
		if !found || name == "" {
			return r.usage("%q is no argument; write name=text", w)
		}
		texts[name] = value
	}
	return r.with(ctx, func(c *client.Client) error {
		res, err := c.GetPrompt(ctx, r.rest[0], texts, r.callOptions()...)
		if err != nil {
			return err
		}
		return r.write(res, func() {
			for _, m := range res.Messages {
				fmt.Fprintf(stdout, "%s:\n", clean(string(m.Role)))
				r.writeContents(m.Content)
			}
		})
	})
}

// A listing is what list found.
type listing struct {
	Tools     []*protocol.Tool             `json:"tools"`
	Prompts   []*protocol.Prompt           `json:"prompts"`
	Resources []*protocol.Resource         `json:"resources"`
	Templates []*protocol.ResourceTemplate `json:"resourceTemplates"`
}

// runList is the command list.
func runList(ctx context.Context, args []string, _ io.Reader, stdout, stderr io.Writer) int {
	r, code, ok := newRemote("list", "list [flags] SERVER\n\nLists what a server offers.\n", args, stdout, stderr)
	if !ok {
		return code
	}
	if len(r.rest) > 0 {
		return r.usage("%q is too much", r.rest)
	}
	return r.with(ctx, func(c *client.Client) error {
		var l listing
		var err error
		note := func(e error) { err = errors.Join(err, e) }
		has := c.Capabilities()
		if has.Tools != nil {
			for v, e := range c.Tools(ctx) {
				if note(e); e == nil {
					l.Tools = append(l.Tools, v)
				}
			}
		}
		if has.Prompts != nil {
			for v, e := range c.Prompts(ctx) {
				if note(e); e == nil {
					l.Prompts = append(l.Prompts, v)
				}
			}
		}
		if has.Resources != nil {
			for v, e := range c.Resources(ctx) {
				if note(e); e == nil {
					l.Resources = append(l.Resources, v)
				}
			}
			for v, e := range c.Templates(ctx) {
				if note(e); e == nil {
					l.Templates = append(l.Templates, v)
				}
			}
		}
		if err != nil {
			return err
		}
		return r.write(l, func() {
			line := func(kind, name, text string) {
				first, _, _ := strings.Cut(text, "\n")
				fmt.Fprintf(stdout, "%-9s %-24s %s\n", kind, clean(name), clean(first))
			}
			for _, v := range l.Tools {
				line("tool", v.Name, v.Description)
			}
			for _, v := range l.Prompts {
				line("prompt", v.Name, v.Description)
			}
			for _, v := range l.Resources {
				line("resource", v.URI, v.Description)
			}
			for _, v := range l.Templates {
				line("template", v.URITemplate, v.Description)
			}
		})
	})
}
