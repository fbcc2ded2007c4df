package mcpkit_test

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// docs:begin glossary

// A Glossary is the extension com.example/glossary: clients look up terms and are notified of new
// ones.
type Glossary struct {
	mu    sync.Mutex
	terms map[string]string
	added *mcpkit.Topic
}

// NewGlossary returns an empty glossary.
func NewGlossary() *Glossary {
	return &Glossary{terms: map[string]string{}, added: mcpkit.NewTopic("newTerms", "notifications/glossary/added", nil)}
}

// Option adds the extension to a server.
func (g *Glossary) Option() mcpkit.Option {
	return mcpkit.Extend(mcpkit.Extension{
		ID:       "com.example/glossary",
		Settings: map[string]any{"languages": []string{"en"}},
		Methods:  []*mcpkit.Method{mcpkit.NewMethod("glossary/define", g.define).NameParam("term").Negotiated()},
		Topics:   []*mcpkit.Topic{g.added},
	})
}

type defineParams struct {
	Term string `json:"term" validate:"max=100"`
}

func (g *Glossary) define(_ context.Context, p defineParams) (map[string]string, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if text, ok := g.terms[p.Term]; ok {
		return map[string]string{"text": text}, nil
	}
	return nil, jsonrpc.Errorf(jsonrpc.CodeInvalidParams, "there is no term %q", p.Term)
}

// Add adds a term and notifies subscribed clients.
func (g *Glossary) Add(term, text string) error {
	g.mu.Lock()
	g.terms[term] = text
	g.mu.Unlock()
	return g.added.Notify("", map[string]string{"term": term})
}

// docs:end glossary

// explain adds the definition of a tool's name to its result, for clients that know the extension.
func (g *Glossary) explain(next mcpkit.Handler) mcpkit.Handler {
	return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
		result, err := next(ctx, call)
		tool, isTool := result.(*protocol.CallToolResult)
		if _, ok := call.Extension("com.example/glossary"); !ok || !isTool || err != nil {
			return result, err
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		own := *tool // a cache may hold the result
		own.Content = append(slices.Clip(own.Content), &protocol.TextContent{Text: call.Name() + ": " + g.terms[call.Name()]})
		return &own, nil
	}
}

// entry adds the definition of a tool's term, which the tag term names, to its entry in tools/list.
func (g *Glossary) entry(t *mcpkit.ToolEntry, _ protocol.Version) error {
	term, ok := t.Tags["term"]
	if !ok {
		return nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	text, known := g.terms[term]
	if !known {
		return fmt.Errorf("tag term: there is no term %q; add it before the server is made", term)
	}
	return t.Definition.Meta.Set("com.example/term", map[string]string{term: text})
}

const glossaryMeta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"extensions":{"com.example/glossary":{}}}}`

func TestAnExtensionOfAThirdParty(t *testing.T) {
	g := NewGlossary()
	srv := newServer(t, nil, g.Option())
	require.NoError(t, g.Add("tool", "A function for models."))
	p := modern(t, srv)
	require.Contains(t, p.result("server/discover", `{}`), `"extensions":{"com.example/glossary":{"languages":["en"]}}`)
	require.Contains(t, p.fails("glossary/define", `{"term":"tool"}`).Message, "needs a client that declares")
	define := func(term string) string {
		return p.raw(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"glossary/define","params":{"term":"`+term+`",`+glossaryMeta+`}}`)
	}
	require.Contains(t, define("tool"), `"text":"A function for models."`)
	require.Contains(t, define("tole"), `"code":-32602,"message":"there is no term \"tole\""`)

	sent := make(chan string, 2)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	// Ends with ctx.
	go func() {
		defer close(ended)
		msg, _ := jsonrpc.Decode([]byte(`{"jsonrpc":"2.0","id":1,"method":"subscriptions/listen","params":{"notifications":{"newTerms":true},` + glossaryMeta + `}}`))
		srv.ServeRPC(ctx, msg.Request, &listening{p, sent})
	}()
	require.Contains(t, <-sent, `"newTerms":true`)
	require.NoError(t, g.Add("prompt", "A text for models."))
	require.Contains(t, <-sent, `"method":"notifications/glossary/added","params":{"term":"prompt",`)
	stop()
	<-ended
}

func TestAnExtensionThatIntercepts(t *testing.T) {
	g := NewGlossary()
	srv := newServer(t, nil, mcpkit.Extend(mcpkit.Extension{ID: "com.example/glossary", Intercept: g.explain}))
	require.NoError(t, srv.Add(mcpkit.NewTool("brew", func() string { return "done" })))
	require.NoError(t, g.Add("brew", "Makes tea."))
	p := modern(t, srv)
	require.NotContains(t, p.result("tools/call", `{"name":"brew"}`), "Makes tea.")
	require.Contains(t, p.raw(t.Context(), `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"brew",`+glossaryMeta+`}}`),
		`"content":[{"type":"text","text":"done"},{"type":"text","text":"brew: Makes tea."}]`)
}

// kitchen is the service of TestAnExtensionWithATag.
type kitchen struct {
	_ struct {
		Brew mcpkit.Tool `term:"tea"`
	}
}

func (kitchen) Brew() string { return "done" }

func TestAnExtensionWithATag(t *testing.T) {
	g := NewGlossary()
	extension := mcpkit.Extension{ID: "com.example/glossary", Tags: []string{"term"}, Tool: g.entry}
	_, err := mcpkit.New(&kitchen{}, mcpkit.Extend(extension))
	require.ErrorContains(t, err, `: tag term: there is no term "tea"; add it before the server is made`)
	require.NoError(t, g.Add("tea", "Leaves in water."))
	srv := newServer(t, &kitchen{}, mcpkit.Extend(extension))
	require.Contains(t, modern(t, srv).result("tools/list", `{}`), `"_meta":{"com.example/term":{"tea":"Leaves in water."}}`)
}
