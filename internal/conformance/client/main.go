// Command client is the client that the official conformance suite tests. The suite appends the URL
// of its server to the command line and names the scenario in the environment. See
// CONTRIBUTING.md.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A scenario calls the suite's server at url.
type scenario func(ctx context.Context, url string) error

// scenarios holds the scenarios by their names in the suite.
var scenarios = map[string]scenario{
	"initialize":                          lists,
	"tools_call":                          calls("add_numbers", map[string]int{"a": 5, "b": 3}),
	"elicitation-sep1034-client-defaults": calls("test_client_elicitation_defaults", nil, accept(`{}`)),
	"sse-retry":                           calls("test_reconnection", nil),
	"json-schema-2020-12-preservation":    echoSchema,
	"json-schema-ref-no-deref":            lists,
	"request-metadata":                    metadata,
	"http-standard-headers":               standardHeaders,
	"http-custom-headers":                 customHeaders,
	"http-invalid-tool-headers":           invalidToolHeaders,
	"sep-2322-client-request-state":       requestState,
	"sep-2640-client-no-prefetch":         listSkills,
	"sep-2640-client-verify-digest":       loadSkills,
	"sep-2640-client-verify-size":         loadSkills,
	"sep-2640-client-verify-frontmatter":  loadSkills,
}

// scenarioTimeout ends a scenario that hangs, a minute before the suite does. It is long because
// the machine may be busy.
const scenarioTimeout = 4 * time.Minute

func main() {
	// Standard error is for failures. Warnings about the suite's deliberate mistakes are none.
	slog.SetLogLoggerLevel(slog.LevelError)
	name := os.Getenv("MCP_CONFORMANCE_SCENARIO")
	if len(os.Args) < 2 {
		log.Fatal("usage: MCP_CONFORMANCE_SCENARIO=NAME client URL")
	}
	run, ok := scenarios[name]
	if !ok && strings.HasPrefix(name, "auth/") {
		run, ok = authorized, true
	}
	if !ok {
		names := slices.Sorted(maps.Keys(scenarios))
		log.Fatalf("unknown scenario %q; the scenarios are: %s", name, strings.Join(names, ", "))
	}
	ctx, cancel := context.WithTimeout(context.Background(), scenarioTimeout)
	defer cancel()
	if err := run(ctx, os.Args[len(os.Args)-1]); err != nil {
		// internal/conformance/run.sh searches for this text, since the suite ignores the exit code.
		fmt.Fprintf(os.Stderr, "FAILED %s: %v\n", name, err)
		os.Exit(1)
	}
}

// dial connects with the protocol version of the run.
func dial(ctx context.Context, url string, opts ...client.DialOption) (*client.Client, error) {
	if v := protocol.Version(os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION")); v != "" {
		opts = append(opts, client.Version(v))
	}
	// The suite runs up to 33 clients at once, so a busy machine may take long to respond to the probe.
	opts = append(opts, client.Info("mcpkit-conformance-client", "1.0.0"), client.ProbeTimeout(time.Minute))
	return client.Dial(ctx, url, opts...)
}

// with dials a client, runs f and closes the client.
func with(ctx context.Context, url string, f func(c *client.Client) error, opts ...client.DialOption) error {
	c, err := dial(ctx, url, opts...)
	if err != nil {
		return err
	}
	return errors.Join(f(c), c.Close())
}

// toolNames lists the tools.
func toolNames(ctx context.Context, c *client.Client) ([]string, error) {
	var names []string
	for t, err := range c.Tools(ctx) {
		if err != nil {
			return nil, err
		}
		names = append(names, t.Name)
	}
	return names, nil
}

// listed is like with, but lists the tools before it runs f.
func listed(
	ctx context.Context, url string, f func(c *client.Client, tools []string) error, opts ...client.DialOption,
) error {
	return with(ctx, url, func(c *client.Client) error {
		names, err := toolNames(ctx, c)
		if err != nil {
			return err
		}
		return f(c, names)
	}, opts...)
}

func lists(ctx context.Context, url string) error {
	return listed(ctx, url, func(*client.Client, []string) error { return nil })
}

// calls returns a scenario that calls one tool.
func calls(tool string, args any, opts ...client.DialOption) scenario {
	return func(ctx context.Context, url string) error {
		return listed(ctx, url, func(c *client.Client, _ []string) error {
			_, err := c.CallTool(ctx, tool, args)
			return err
		}, opts...)
	}
}

func accept(content string) client.DialOption { return client.Handlers(accepting{content}) }

// accepting handles elicitation: it accepts every form with the content.
type accepting struct{ content string }

func (a accepting) Elicit(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: json.RawMessage(a.content)}, nil
}

func echoSchema(ctx context.Context, url string) error {
	return with(ctx, url, func(c *client.Client) error {
		t, err := c.Tool(ctx, "json_schema_2020_12_tool")
		if err != nil {
			return err
		}
		_, err = c.CallTool(ctx, "json_schema_echo", map[string]any{"schema": t.InputSchema})
		return err
	})
}

// everything handles all server requests.
type everything struct{ accepting }

func (everything) ElicitURL(context.Context, *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return &protocol.ElicitResult{Action: protocol.ElicitDecline}, nil
}

func (everything) Sample(context.Context, *protocol.CreateMessageParams) (*protocol.CreateMessageResult, error) {
	return nil, client.ErrRejected
}

func (everything) Roots(context.Context) ([]protocol.Root, error) { return nil, nil }

func metadata(ctx context.Context, url string) error {
	all := client.Handlers(everything{accepting{`{}`}})
	return listed(ctx, url, func(*client.Client, []string) error { return nil }, all)
}

func standardHeaders(ctx context.Context, url string) error {
	return listed(ctx, url, func(c *client.Client, _ []string) error {
		for _, tool := range []string{"test_headers", "my-hyphenated-tool"} {
			if _, err := c.CallTool(ctx, tool, nil); err != nil {
				return err
			}
		}
		for _, err := range c.Resources(ctx) {
			if err != nil {
				return err
			}
		}
		for _, uri := range []string{"file:///path/to/file%20name.txt", "https://example.com/resource?id=123"} {
			if _, err := c.ReadResource(ctx, uri); err != nil {
				return err
			}
		}
		for _, err := range c.Prompts(ctx) {
			if err != nil {
				return err
			}
		}
		_, err := c.GetPrompt(ctx, "test_prompt", nil)
		return err
	})
}

func customHeaders(ctx context.Context, url string) error {
	var given struct {
		ToolCalls []struct {
			Name      string          `json:"name"`
			Arguments json.RawMessage `json:"arguments"`
		} `json:"toolCalls"`
	}
	if err := json.Unmarshal([]byte(os.Getenv("MCP_CONFORMANCE_CONTEXT")), &given); err != nil {
		return fmt.Errorf("MCP_CONFORMANCE_CONTEXT: %w", err)
	}
	return listed(ctx, url, func(c *client.Client, _ []string) error {
		for _, call := range given.ToolCalls {
			if _, err := c.CallTool(ctx, call.Name, call.Arguments); err != nil {
				return err
			}
		}
		return nil
	})
}

// invalidToolHeaders calls each listed tool. Tools with invalid headers must not be listed.
func invalidToolHeaders(ctx context.Context, url string) error {
	return listed(ctx, url, func(c *client.Client, names []string) error {
		for _, name := range names {
			if _, err := c.CallTool(ctx, name, map[string]string{"region": "us-east1"}); err != nil {
				return err
			}
		}
		return nil
	})
}

// requestState calls a tool that asks a question. Before it answers, it calls another tool, which
// must not receive the state of the first.
func requestState(ctx context.Context, url string) error {
	user := &interrupted{accepting: accepting{`{"confirmed":true}`}}
	return listed(ctx, url, func(c *client.Client, _ []string) error {
		user.meanwhile = func(ctx context.Context) error {
			_, err := c.CallTool(ctx, "test_mrtr_unrelated", nil)
			return err
		}
		for _, tool := range []string{"test_mrtr_echo_state", "test_mrtr_no_state", "test_mrtr_no_result_type"} {
			if _, err := c.CallTool(ctx, tool, nil); err != nil {
				return err
			}
		}
		return nil
	}, client.Handlers(user))
}

// interrupted is like accepting, but calls meanwhile before it answers.
type interrupted struct {
	accepting
	meanwhile func(ctx context.Context) error
}

func (i *interrupted) Elicit(ctx context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	if err := i.meanwhile(ctx); err != nil {
		return nil, err
	}
	return i.accepting.Elicit(ctx, p)
}
