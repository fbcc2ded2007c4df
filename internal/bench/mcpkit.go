package main

import (
	"context"
	"net/http"

	"github.com/mcpkit/mcpkit-go/internal/bench/work"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/streamable"
)

// Bench is the service of this project's server.
type Bench struct {
	_ mcpkit.Info `name:"bench" version:"1"`
}

// Add adds.
func (*Bench) Add(in work.AddInput) work.AddOutput { return work.Add(in) }

// Echo returns its text.
func (*Bench) Echo(in work.EchoInput) string { return in.Text }

// Search finds hits.
func (*Bench) Search(in work.SearchInput) work.SearchOutput { return work.Search(in) }

// Blob returns n bytes.
func (*Bench) Blob(in work.BlobInput) string { return work.Blob(in) }

func newMCPKit(tools int) program {
	s := mcpkit.MustNew(&Bench{})
	must(s.Add(mcpkit.NewResource(work.URI, "resource", func() string { return "" })))
	for name, t := range more(tools) {
		t.mcpkit(s, name)
	}
	return program{
		memory: func() answer { return inMemory(s) },
		stdio:  func() error { return s.Serve(context.Background()) },
		http: func() http.Handler {
			return streamable.NewHandler(s, &streamable.Options{MaxSubscriptions: 2000})
		},
		notify: func() { s.ResourceUpdated(work.URI) },
	}
}

func inMemory(s *mcpkit.Server) answer {
	peer := &nobody{session: transport.NewSession("", nil)}
	return func(dst, msg []byte) []byte {
		m, bad := jsonrpc.Decode(msg)
		if bad != nil {
			return jsonrpc.AppendResponse(dst, bad)
		}
		if resp := s.ServeRPC(context.Background(), m.Request, peer); resp != nil {
			dst = jsonrpc.AppendResponse(dst, resp)
		}
		return dst
	}
}

// nobody is a peer without a transport.
type nobody struct{ session *transport.Session }

func (*nobody) Notify(context.Context, *jsonrpc.Request) error { return nil }

func (*nobody) Call(context.Context, *jsonrpc.Request) (*jsonrpc.Response, error) {
	return nil, transport.ErrNoServerRequests
}

func (n *nobody) Session() *transport.Session { return n.session }

func (*nobody) Header() transport.Header { return nil }

func must(err error) {
	if err != nil {
		panic(err)
	}
}
