package streamable

import (
	"bytes"
	"cmp"
	"context"
	"io"
	"net/http"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/httpserve"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// An early Peer can send the response while the method runs, so the method needs no goroutine of
// its own. net/http completes a reply only when its handler returns, so an early response takes the
// connection from it, and closes it.
type early struct{ *exchange }

// run passes the request to the handler. Over HTTP/2 and behind a compressor, nothing but the return
// of the handler completes a reply.
func (e *exchange) run(ctx context.Context, req *jsonrpc.Request) *jsonrpc.Response {
	if !e.canRespondEarly() {
		return e.h.rpc.ServeRPC(ctx, req, e)
	}
	e.req = req
	p := early{e}
	returned := false
	defer func() {
		if returned {
			return
		}
		if v := recover(); v != nil {
			panic(v) // net/http logs it and closes the connection
		}
		p.RespondEarly(nil) // the handler ended its goroutine, as testing.T.FailNow does
	}()
	resp := e.h.rpc.ServeRPC(ctx, req, p)
	returned = true
	return resp
}

func (e *exchange) canRespondEarly() bool {
	if e.r.ProtoMajor != 1 || !httpserve.CanHijack(e.w) {
		return false
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.w.Header()["Content-Encoding"] == nil
}

// RespondEarly implements [transport.EarlyResponder].
func (p early) RespondEarly(resp *jsonrpc.Response) {
	e := p.exchange
	defer e.h.life.End(e) // a shutdown does not wait for the method
	if e.s != nil {
		resp = endCall(&e.entry, resp)
	} else {
		resp = complete(e.req, resp)
	}
	// Returns when the store has finished its current message.
	_ = e.takeTurn(context.Background())
	defer e.giveTurn()
	if e.writeEarly(resp) {
		return
	}
	// The stream ends when the method returns. If it ended now, the client would use the connection
	// again, which nobody reads.
	e.streamResponse(context.Background(), resp)
	e.mu.Lock()
	defer e.mu.Unlock()
	e.closeReply()
}

var _ transport.EarlyResponder = early{}

// writeEarly sends the response as JSON, if nothing was sent before.
func (e *exchange) writeEarly(resp *jsonrpc.Response) bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.state != replyOpen {
		return false
	}
	e.state = replyDone
	conn, err := e.hijack()
	if err != nil { // a middleware has closed it, or keeps it
		e.writeReply(resp)
		return true
	}
	defer conn.Close()
	if resp == nil || e.gone() {
		return true
	}
	resp = e.afford(resp)
	setRetry(e.w, resp)
	header := e.w.Header()
	header["Content-Type"] = contentTypeJSON
	header.Set("Date", time.Now().UTC().Format(http.TimeFormat))
	body := jsonrpc.AppendResponse(nil, resp)
	_ = conn.SetWriteDeadline(time.Now().Add(WriteTimeout))
	_ = (&http.Response{
		StatusCode: cmp.Or(resp.HTTPStatus, http.StatusOK), ProtoMajor: 1, ProtoMinor: 1, Header: header,
		Body: io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Close: true,
	}).Write(conn)
	return true
}
