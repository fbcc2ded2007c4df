package stdio_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
	"github.com/mcpkit/mcpkit-go/transport/stdio"
)

// trivial has the same result for all requests, so that the benchmark measures only the transport.
type trivial struct{}

var trivialResult = json.RawMessage(`{"content":[{"type":"text","text":"3"}],"structuredContent":{"sum":3}}`)

func (trivial) ServeRPC(_ context.Context, req *jsonrpc.Request, _ transport.Peer) *jsonrpc.Response {
	return &jsonrpc.Response{ID: req.ID, Result: trivialResult}
}

// floor does only what every server must: it reads lines and envelopes one after the other.
func floor(r io.Reader, w io.Writer) {
	in := bufio.NewReader(r)
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return
		}
		var m struct {
			ID     json.RawMessage `json:"id"`
			Method string          `json:"method"`
			Params json.RawMessage `json:"params"`
		}
		if json.Unmarshal(line, &m) != nil {
			return
		}
		out := append([]byte(`{"jsonrpc":"2.0","id":`), m.ID...)
		out = append(out, `,"result":`...)
		out = append(out, trivialResult...)
		if _, err := w.Write(append(out, "}\n"...)); err != nil {
			return
		}
	}
}

// BenchmarkRoundTrip measures a server at the other end of two pipes: with one request at a time,
// and with 64 at once.
func BenchmarkRoundTrip(b *testing.B) {
	serve := func(r io.Reader, w io.Writer) { _ = stdio.NewIO(r, w, nil).Serve(context.Background(), trivial{}) }
	for _, server := range []struct {
		name  string
		serve func(io.Reader, io.Writer)
	}{{"stdio", serve}, {"floor", floor}} {
		for _, n := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/x%d", server.name, n), func(b *testing.B) { roundTrips(b, server.serve, n) })
		}
	}
}

func roundTrips(b *testing.B, serve func(io.Reader, io.Writer), n int) {
	inR, inW, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	outR, outW, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	over := make(chan struct{})
	go func() {
		defer close(over)
		serve(inR, outW)
	}()
	var requests []byte
	for id := range n {
		requests = fmt.Appendf(requests, `{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2}}}`+"\n", id)
	}
	answers := make([]byte, 64<<10)
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		if _, err := inW.Write(requests); err != nil {
			b.Fatal(err)
		}
		for got := 0; got < n; {
			k, err := outR.Read(answers)
			if err != nil {
				b.Fatal(err)
			}
			got += bytes.Count(answers[:k], []byte{'\n'})
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/request")
	inW.Close()
	<-over
	outR.Close()
	inR.Close()
	outW.Close()
}
