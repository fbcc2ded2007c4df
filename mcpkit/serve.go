package mcpkit

import (
	"cmp"
	"context"
	"errors"
	"io"
	"strings"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// ServeRPC answers one request, or handles one notification and returns nil. Transports call it;
// see [transport.Handler].
func (s *Server) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) (resp *jsonrpc.Response) {
	call := newCall(s.trust(ctx, peer), s, req, peer)
	defer func() {
		if call.load != nil {
			call.limit.onReturn(call.leave)
		}
		if resp == nil || resp.Stream == nil { // a streamed result is not written yet
			call.limit.finish()
		}
	}()
	return call.serve(ctx)
}

// serve answers a request, or one that a run continues.
func (call *Call) serve(ctx context.Context) (resp *jsonrpc.Response) {
	defer call.lastResort(&resp)
	if call.req.IsNotification() {
		call.notified()
		return nil
	}
	if err := call.accept(ctx); err != nil {
		return call.refuse(err)
	}
	if mismatch := call.find(); mismatch != nil {
		return call.refuse(mismatch)
	}
	return call.respond(call.answer())
}

// lastResort answers calls that panic outside the chain, in methods of errors and results of user
// code.
func (call *Call) lastResort(resp **jsonrpc.Response) {
	if v := recover(); v != nil {
		*resp = call.refuse(call.panicked(v))
	}
}

// notified handles a notification: the end of the handshake, from which on a legacy client is notified of
// changed lists. Others are ignored, as the protocol wants.
func (call *Call) notified() {
	ts := call.peer.Session()
	if ts == nil || call.req.Method != protocol.NotificationInitialized {
		return
	}
	if state, ok := ts.State().(*session); ok {
		state.edit(call.server.allLists)
	}
}

// accept waits for the services to start, and determines the version, the session and the method. It
// checks in this order: version family, _meta, headers, version, method.
func (call *Call) accept(ctx context.Context) *jsonrpc.Error {
	unready := call.server.awaitStart(ctx)
	call.catalog = call.server.catalog.Load() // services may register more when they start
	header := call.mirror()
	declared := header.Get("Mcp-Protocol-Version")
	row := call.catalog.methods[call.req.Method]
	check := call.acceptLegacy
	if protocol.IsModern(declared, call.meta) || row != nil && row.from.Modern() || call.hasOnlyModern() {
		check = call.acceptModern
	}
	if err := check(header, declared); err != nil {
		return err
	}
	if row == nil || !row.offered(call.catalog, call.version) {
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method %q is not offered", call.req.Method)
	}
	if unready != nil {
		return jsonrpc.Errorf(jsonrpc.CodeInternalError, "the server did not start")
	}
	call.row = row
	if call.session != nil {
		call.session.principal.Store(call.principal)
	}
	return call.checkLogLevel()
}

// hasOnlyModern reports whether the request has to be a modern one, though it does not say so: the server
// serves no others, or the client of the connection has sent a modern one before.
func (call *Call) hasOnlyModern() bool {
	ts := call.peer.Session()
	follows := ts != nil && ts.State() == nil && protocol.Version(ts.Version()).Modern()
	return follows && call.req.Method != protocol.MethodInitialize || call.server.config.oldest().Modern()
}

// mirror returns the header fields that mirror the body. Fields of a connection that is the
// session, such as those of a WebSocket's upgrade, do not.
func (call *Call) mirror() transport.Header {
	if call.peer.Session() != nil {
		return nil
	}
	return call.peer.Header()
}

// acceptModern checks what version 2026-07-28 demands of each request (basic/index and Streamable
// HTTP).
func (call *Call) acceptModern(header transport.Header, declared string) *jsonrpc.Error {
	call.version = protocol.V20260728 // the format of errors until the version is known
	meta := call.meta
	version := jsonx.Member(meta, protocol.MetaProtocolVersion)
	if version == nil && declared == "" && call.req.Method == protocol.MethodInitialize { // there are no legacy versions
		return call.unserved(jsonx.String(call.req.Param("protocolVersion")))
	}
	capabilities := jsonx.Member(meta, protocol.MetaClientCapabilities)
	if jsonx.Kind(version) != '"' {
		return invalidParams("params._meta needs the string %q", protocol.MetaProtocolVersion)
	}
	if jsonx.Kind(capabilities) != '{' {
		return invalidParams("params._meta needs the object %q; {} when there are none", protocol.MetaClientCapabilities)
	}
	requested := string(protocol.V20260728)
	if !jsonx.IsString(version, requested) {
		requested = jsonx.String(version)
	}
	if header != nil && declared != requested {
		if declared == "" {
			return protocol.HeaderMismatch("the header MCP-Protocol-Version is missing; send %q as in params._meta", requested)
		}
		return protocol.HeaderMismatch("the header MCP-Protocol-Version says %q but params._meta says %q", declared, requested)
	}
	if requested != string(protocol.V20260728) || call.run == nil && !call.server.config.serves(protocol.V20260728) {
		return call.unserved(requested)
	}
	if ts := call.peer.Session(); ts != nil && ts.Version() == "" {
		ts.SetVersion(requested)
	}
	if header == nil {
		return nil
	}
	return protocol.CheckHeader(header, "Mcp-Method", call.req.Method)
}

// unserved refuses a request with a version that the server does not serve.
func (call *Call) unserved(requested string) *jsonrpc.Error {
	served := call.server.config.versions
	if call.version.Modern() && served[0].Modern() {
		served = served[:1] // a request may name no other in its _meta
	}
	call.version = protocol.V20260728 // the format of the error
	return protocol.UnsupportedProtocolVersion(protocol.Version(requested), served)
}

// acceptLegacy takes the version of the session, or of the header if there is no session.
func (call *Call) acceptLegacy(_ transport.Header, declared string) *jsonrpc.Error {
	ts := call.peer.Session()
	if ts == nil {
		// The default is that of transports, "Protocol Version Header".
		call.version = protocol.Version(cmp.Or(declared, string(protocol.V20250326)))
		// Clients of 2024-11-05 send no header, either.
		known := call.server.config.serves(call.version) || declared == "" && call.server.config.serves(protocol.V20241105)
		if known || call.req.Method == protocol.MethodInitialize {
			return nil
		}
		if declared == "" {
			call.version = protocol.V20260728 // the format of the error
			return protocol.HeaderMismatch("the header MCP-Protocol-Version is missing")
		}
		return call.unserved(declared)
	}
	call.session, _ = ts.State().(*session)
	if call.session != nil {
		call.version = call.session.ProtocolVersion
		return nil
	}
	call.version = protocol.V20241105 // before initialize, only what all versions have
	if m := call.req.Method; m != protocol.MethodInitialize && m != protocol.MethodPing {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the session has not begun: send %q before %q", protocol.MethodInitialize, m)
	}
	return nil
}

// find finds the target of the request and checks the headers that mirror it, whose mismatch it
// returns. Other faults become the refusal, since middleware sees refused calls, too.
func (call *Call) find() (mismatch *jsonrpc.Error) {
	if call.row.prepare == nil {
		return nil
	}
	call.refusal = call.row.prepare(call)
	if call.refusal == nil {
		call.refusal = call.demandScopes()
	}
	if !call.version.Modern() {
		return nil
	}
	if call.refusal == nil && call.row.asks {
		call.refusal = call.openState()
	}
	header, param := call.mirror(), call.row.nameParam
	if header == nil || param == "" { // no header mirrors what a completion is for
		return nil
	}
	if call.name == "" {
		if len(header["Mcp-Name"]) > 0 && jsonx.Kind(call.req.Param(param)) != '"' {
			return protocol.HeaderMismatch("the header Mcp-Name says %q but params.%s of the body is not a string", header.Get("Mcp-Name"), param)
		}
		return nil
	}
	if mismatch := protocol.CheckHeader(header, "Mcp-Name", call.name); mismatch != nil {
		return mismatch
	}
	for _, param := range call.about().headers {
		if mismatch := param.Check(header, call.Arguments()); mismatch != nil {
			return mismatch
		}
	}
	return nil
}

// answer runs the middleware chain and the method, and recovers their panics.
func (call *Call) answer() (result Result, err error) {
	defer call.progress.over.Store(true)
	defer recoverAs(&err)
	if devWord != "" && call.Target() != "" {
		call.tellDev()
	}
	result, err = call.server.chain.get()(&call.limit, call)
	if err != nil && errors.Is(err, ErrAsked) { // by middleware; the entry has finished what methods ask
		return call.finish(result, err)
	}
	return result, err
}

// answer runs the method of the entry. That of a mounted server is run by its own entry.
func (e *entry) answer(ctx context.Context, call *Call) (Result, error) {
	run := e.inAround(e.run)
	if e.from != nil {
		return run(ctx, call)
	}
	if call.run == nil || e.Timeout != nil { // a run has no limit by default
		call.SetTimeout(e.limits.timeout)
	}
	result, err := run(ctx, call)
	if _, late := err.(*TimeoutError); late || call.Overdue() { // even if it asked: it may still run
		return result, err
	}
	return call.finish(result, err)
}

// respond returns the response for the result of the chain. It is empty if a run asks questions.
func (call *Call) respond(result Result, err error) *jsonrpc.Response {
	resp := &jsonrpc.Response{ID: call.req.ID}
	if _, asks := result.(*protocol.InputRequiredResult); asks && err == nil && call.run != nil {
		return resp
	}
	if err == nil {
		err = call.reserveFor(result)
	}
	if err != nil {
		var rpc *jsonrpc.Error
		if result, rpc = call.fail(err); rpc != nil {
			resp = call.refuse(rpc)
			if needed := neededScopes(err); needed != nil && oauth.DemandScopes(&call.limit, needed...) {
				resp.HTTPStatus = 403
			}
		}
		resp.RetryAfter = retryAfter(err)
	}
	if resp.Error != nil {
		return resp
	}
	if large, ok := result.(*streamed); ok {
		resp.Stream, resp.MaxHeld = call.stream(large), call.server.config.maxResultBytes
		return resp
	}
	version := call.version
	if call.run != nil {
		version = call.run.Version
	}
	if resp.Result, err = call.server.encode(result, version); err != nil {
		call.logError("mcpkit: a result does not encode", err)
		return call.refuse(call.internalError())
	}
	return resp
}

// stream returns the function that writes the result, with which the call ends. If the response is
// never written, the call ends with the request.
func (call *Call) stream(result *streamed) func(out io.Writer) error {
	stop := context.AfterFunc(call.limit.request, call.limit.finish)
	return func(out io.Writer) error {
		if !stop() {
			return call.brokeOff(context.Canceled)
		}
		defer call.limit.finish()
		w := &outlet{Writer: out}
		if err := result.writeTo(w); err != nil && w.err == nil {
			return call.brokeOff(err)
		}
		if w.err != nil { // middleware took the call for done
			call.server.config.logger.InfoContext(&call.limit, "mcpkit: a result was not delivered to its end",
				"ref", call.Ref(), "method", call.row.method, "name", call.name, "error", w.err)
		}
		return w.err
	}
}

// maxErrorMessage limits error texts, which may quote a client, in bytes.
const maxErrorMessage = 8 << 10

// refuse returns an error response with the HTTP status that the version demands (PROTOCOL 2.4).
func (call *Call) refuse(err *jsonrpc.Error) *jsonrpc.Response {
	if len(err.Message) > maxErrorMessage {
		err = &jsonrpc.Error{Code: err.Code, Message: strings.ToValidUTF8(err.Message[:maxErrorMessage], "") + "…", Data: err.Data}
	}
	resp := &jsonrpc.Response{ID: call.req.ID, Error: err}
	if !call.version.Modern() {
		return resp
	}
	switch err.Code {
	case jsonrpc.CodeMethodNotFound:
		resp.HTTPStatus = 404
	case protocol.CodeHeaderMismatch, protocol.CodeMissingClientCapability, protocol.CodeUnsupportedProtocolVersion:
		resp.HTTPStatus = 400
	case jsonrpc.CodeInvalidParams:
		if call.row == nil { // not accepted
			resp.HTTPStatus = 400
		}
	}
	return resp
}
