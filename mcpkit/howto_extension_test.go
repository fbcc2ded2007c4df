package mcpkit_test

import (
	"context"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/mcpkit"
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
		srv.ServeRPC(ctx, msg.Request, &listeningPeer{p, sent})
	}()
	require.Contains(t, <-sent, `"newTerms":true`)
	require.NoError(t, g.Add("prompt", "A text for models."))
	require.Contains(t, <-sent, `"method":"notifications/glossary/added","params":{"term":"prompt",`)
	stop()
	<-ended
}
