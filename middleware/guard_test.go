package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/middleware"
	"github.com/mcpkit/mcpkit-go/protocol"
)

type path struct {
	Path string `json:"path"`
}

func TestGuardArgumentsInspectsAndRewrites(t *testing.T) {
	echo := func(in path) string { return "path " + in.Path }
	srv := newServer(t, mcpkit.NewTool("tagged", echo).Tags("files"))
	guard := func(_ context.Context, call *mcpkit.Call, args json.RawMessage) (json.RawMessage, error) {
		switch {
		case bytes.Contains(args, []byte("..")):
			return nil, mcpkit.Errorf("%q leaves the folder", call.Name())
		case bytes.Contains(args, []byte("~")):
			return bytes.ReplaceAll(args, []byte("~"), []byte("/home")), nil
		case bytes.Contains(args, []byte("broken")):
			return json.RawMessage(`{`), nil
		}
		return args, nil
	}
	srv.Use(middleware.GuardArguments(guard))
	require.NoError(t, srv.Add(mcpkit.NewTool("late", echo), mcpkit.NewPrompt("prompt", echo)))
	for _, p := range families(t, srv) {
		for _, tool := range []string{"tagged", "late"} {
			require.Equal(t, "path /a", p.toolText(t.Context(), tool, `{"path":"/a"}`))
			require.Equal(t, "path /home/a", p.toolText(t.Context(), tool, `{"path":"~/a"}`))
			require.Equal(t, `"`+tool+`" leaves the folder`, p.toolText(t.Context(), tool, `{"path":"../a"}`))
			require.Contains(t, p.toolText(t.Context(), tool, `{"path":"broken"}`), "internal error")
		}
		require.Contains(t, said(t, p.call(t.Context(), "prompts/get", `{"name":"prompt","arguments":{"path":"~"}}`)), "path /home")
		require.Equal(t, `"prompt" leaves the folder`, p.call(t.Context(), "prompts/get", `{"name":"prompt","arguments":{"path":".."}}`).Error.Message)
	}
}

func TestResultLimit(t *testing.T) {
	texts := func(list ...string) func() *protocol.CallToolResult {
		return func() *protocol.CallToolResult {
			r := &protocol.CallToolResult{}
			for _, text := range list {
				r.Content = append(r.Content, &protocol.TextContent{Text: text})
			}
			return r
		}
	}
	srv := newServer(t,
		mcpkit.NewTool("fits", texts("12345", "67890")),
		mcpkit.NewTool("long", texts("1234567890ab")),
		mcpkit.NewTool("several", texts("1234567", "890ab", "cd")),
		mcpkit.NewTool("characters", texts("123456789é")),
		mcpkit.NewTool("structured", func() path { return path{"1234567890"} }),
		mcpkit.NewTool("image", func() protocol.Content { return &protocol.ImageContent{Data: make([]byte, 11), MIMEType: "image/png"} }),
	)
	strict := newServer(t, mcpkit.NewTool("long", texts("1234567890ab")), mcpkit.NewTool("fits", texts("12345", "67890")))
	srv.Use(middleware.ResultLimit(10))
	strict.Use(middleware.ResultLimit(10, middleware.NoTruncation()))
	content := func(texts ...string) string {
		b, err := json.Marshal(texts)
		require.NoError(t, err)
		return string(b)
	}
	cut := func(size string) string {
		return "[truncated: this result has " + size + " bytes, and the limit is 10; ask for less to see the rest]"
	}
	refused := func(size string) string {
		return "the result has " + size + " bytes, and the limit is 10; ask for less, for example with a filter, or page by page"
	}
	for _, test := range []struct {
		srv     *mcpkit.Server
		name    string
		want    string
		isError bool
	}{
		{srv, "fits", content("12345", "67890"), false},
		{srv, "long", content("1234567890", cut("12")), false},
		{srv, "several", content("1234567", "890", cut("14")), false},
		{srv, "characters", content("123456789", cut("11")), false},
		{srv, "structured", content(refused("42")), true}, // as text and as structured content
		{srv, "image", content(refused("11")), true},
		{strict, "fits", content("12345", "67890"), false},
		{strict, "long", content(refused("12")), true},
	} {
		t.Run(test.name, func(t *testing.T) {
			var r struct {
				Content []struct{ Text string }
				IsError bool
			}
			resp := modern(t, test.srv).call(t.Context(), "tools/call", `{"name":"`+test.name+`"}`)
			require.NoError(t, json.Unmarshal(resp.Result, &r))
			var got []string
			for _, c := range r.Content {
				got = append(got, c.Text)
			}
			require.Equal(t, test.want, content(got...))
			require.Equal(t, test.isError, r.IsError)
		})
	}
}
