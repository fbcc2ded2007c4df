package mcpkit

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit/internal/mirror"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// versions are all protocol versions of a Server, oldest first.
var versions = [...]protocol.Version{
	protocol.V20241105, protocol.V20250326, protocol.V20250618, protocol.V20251125, protocol.V20260728,
}

// modernVersions are the versions that a request may name in its _meta.
var modernVersions = []protocol.Version{protocol.V20260728}

// versionIndex returns the index of v in versions.
func versionIndex(v protocol.Version) int { return slices.Index(versions[:], v) }

// ServeRPC answers one request, or handles one notification and returns nil. Transports call it;
// see [transport.Handler].
func (s *Server) ServeRPC(ctx context.Context, req *jsonrpc.Request, peer transport.Peer) (resp *jsonrpc.Response) {
	call := newCall(ctx, s, req, peer)
	defer s.lastResort(call, &resp)
	if req.IsNotification() {
		call.notified(ctx)
		return nil
	}
	unready := s.awaitStart(ctx)
	call.catalog = s.catalog.Load() // services may register more when they start
	if err := s.identify(call); err != nil {
		return call.refuse(err)
	}
	if unready != nil {
		return call.refuse(jsonrpc.Errorf(jsonrpc.CodeInternalError, "the server did not start"))
	}
	ctx = s.trust(ctx, peer)
	call.principal = oauth.FromContext(ctx)
	if call.session != nil {
		call.session.principal.Store(call.principal)
	}
	call.limit.begin(ctx)
	call.ctx = &call.limit
	// A streamed result releases the limit when it was written.
	defer func() {
		if resp == nil || resp.Stream == nil {
			call.limit.release()
		}
	}()
	if err := s.prepare(call); err != nil {
		if err.Code == protocol.CodeHeaderMismatch {
			return call.refuse(err)
		}
		call.refusal = err // middleware sees refused calls, too
	}
	result, err := s.run(call)
	call.finish()
	return s.respond(call, result, err, &call.response)
}

// lastResort answers calls that panic outside the chain, in methods of errors and results of user
// code.
func (s *Server) lastResort(call *Call, resp **jsonrpc.Response) {
	if v := recover(); v != nil {
		told := s.panicked(call, v)
		*resp = nil
		if !call.req.IsNotification() {
			*resp = call.refuse(told)
		}
	}
}

// run runs the middleware chain and recovers its panics.
func (s *Server) run(call *Call) (result Result, err error) {
	defer recoverAs(&err)
	result, err = (*s.chain.Load())(call.ctx, call)
	if err != nil && errors.Is(err, ErrAsked) { // by middleware; runTarget has settled what methods ask
		return call.settle(result, err)
	}
	return result, err
}

// identify determines the version and the method. It checks in this order: version family, _meta,
// headers, version, method.
func (s *Server) identify(call *Call) *jsonrpc.Error {
	header := call.mirror()
	declared := header.Get("Mcp-Protocol-Version")
	row := call.catalog.methods[call.req.Method]
	if protocol.IsModern(declared, call.req) || row != nil && row.from.Modern() {
		if err := call.identifyModern(header, declared); err != nil {
			return err
		}
	} else if err := call.identifyLegacy(declared); err != nil {
		return err
	}
	if row == nil || !row.offered(call.catalog, call.version) {
		return jsonrpc.Errorf(jsonrpc.CodeMethodNotFound, "method %q is not offered%s", call.req.Method, call.nearMethod())
	}
	call.row = row
	return nil
}

// mirror returns the header fields that mirror the body. Fields of a connection that is the
// session, such as those of a WebSocket's upgrade, do not.
func (call *Call) mirror() transport.Header {
	if call.peer.Session() != nil {
		return nil
	}
	return call.peer.Header()
}

// identifyModern checks what version 2026-07-28 demands of each request (basic/index and Streamable
// HTTP).
func (call *Call) identifyModern(header transport.Header, declared string) *jsonrpc.Error {
	call.version = protocol.V20260728 // the format of errors until the version is known
	meta := call.meta()
	version, level := jsonx.Member(meta, protocol.MetaProtocolVersion), jsonx.Member(meta, protocol.MetaLogLevel)
	capabilities := jsonx.Member(meta, protocol.MetaClientCapabilities)
	if jsonx.Kind(version) != '"' {
		return call.badEnvelope("params._meta needs the string %q", protocol.MetaProtocolVersion)
	}
	if jsonx.Kind(capabilities) != '{' {
		return call.badEnvelope("params._meta needs the object %q; {} when there are none", protocol.MetaClientCapabilities)
	}
	if level != nil && !protocol.LoggingLevel(jsonx.String(level)).Valid() {
		return invalidParams("params._meta has the unknown log level %s; known are %s", level, knownLevels)
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
	if requested != string(protocol.V20260728) {
		return protocol.UnsupportedProtocolVersion(protocol.Version(requested), modernVersions)
	}
	if header == nil {
		return nil
	}
	return mirror.Check(header, "Mcp-Method", call.req.Method)
}

// badEnvelope returns an invalid-params error with HTTP status 400: required _meta is missing.
func (call *Call) badEnvelope(format string, args ...any) *jsonrpc.Error {
	call.malformed = true
	return invalidParams(format, args...)
}

func metaString(meta json.RawMessage, key string) (string, bool) {
	raw := jsonx.Member(meta, key)
	return jsonx.String(raw), jsonx.Kind(raw) == '"'
}

// identifyLegacy takes the version of the session, or of the header if there is no session.
func (call *Call) identifyLegacy(declared string) *jsonrpc.Error {
	ts := call.peer.Session()
	if ts == nil {
		call.version = protocol.Version(declared)
		if declared == "" {
			call.version = protocol.V20250326 // transports, "Protocol Version Header": the default
		}
		return nil
	}
	call.session, _ = ts.State().(*session)
	if call.session != nil {
		call.version = call.session.version
		return nil
	}
	call.version = protocol.V20241105 // before initialize, only what all versions have
	if m := call.req.Method; m != protocol.MethodInitialize && m != protocol.MethodPing {
		return jsonrpc.Errorf(jsonrpc.CodeInvalidRequest, "the session has not begun: send %q before %q", protocol.MethodInitialize, m)
	}
	return nil
}

// prepare finds the target of the request and checks the headers that mirror it.
func (s *Server) prepare(call *Call) *jsonrpc.Error {
	if call.row.prepare == nil {
		return nil
	}
	err := call.row.prepare(call)
	if err == nil {
		err = call.demandScopes()
	}
	if !call.version.Modern() {
		return err
	}
	if err == nil && call.row.asks && call.run == nil {
		err = call.takeState()
	}
	header := call.mirror()
	if header == nil {
		return err
	}
	if call.name == "" || call.row.nameParam == "" { // no header mirrors what a completion is for
		return call.checkNameless(header, err)
	}
	if mismatch := mirror.Check(header, "Mcp-Name", call.name); mismatch != nil {
		return mismatch
	}
	if t, ok := call.target.(*tool); ok {
		if mismatch := mirror.CheckParams(header, t.headers, call.Arguments()); mismatch != nil {
			return mismatch
		}
	}
	return err
}

// checkNameless returns the error of a request whose body has no name: a mismatch if the header has
// one.
func (call *Call) checkNameless(header transport.Header, err *jsonrpc.Error) *jsonrpc.Error {
	param := call.row.nameParam
	if param == "" || len(header["Mcp-Name"]) == 0 || jsonx.Kind(call.req.Param(param)) == '"' {
		return err
	}
	return protocol.HeaderMismatch("the header Mcp-Name says %q but params.%s of the body is not a string", header.Get("Mcp-Name"), param)
}

// runTarget runs the tool, prompt or resource that prepare found.
func runTarget(ctx context.Context, call *Call) (Result, error) { return call.entry.answer(ctx, call) }

// answer runs the method of the entry. That of a mounted server is run by its own entry.
func (e *entry) answer(ctx context.Context, call *Call) (Result, error) {
	if e.from != nil {
		return e.run(ctx, call)
	}
	if call.run == nil || !e.timeoutByDefault {
		call.SetTimeout(e.timeout)
	}
	result, err := call.limited(ctx, e.run)
	if _, late := err.(*TimeoutError); late { // even if it asked: it may still run
		return nil, err
	}
	return call.settle(result, err)
}

// respond returns the response for the result of the chain.
func (s *Server) respond(call *Call, result Result, err error, resp *jsonrpc.Response) *jsonrpc.Response {
	var later time.Duration
	if err != nil {
		var rpc *jsonrpc.Error
		later = retryAfter(err)
		if result, rpc = s.fail(call.ctx, call, err); rpc != nil {
			resp := call.refuse(rpc)
			if call.needs != nil && oauth.DemandScopes(call.ctx, call.needs...) {
				resp.HTTPStatus = 403
			}
			resp.RetryAfter = later
			return resp
		}
	}
	if large, ok := result.(*streamed); ok {
		return &jsonrpc.Response{ID: call.req.ID, RetryAfter: later, Stream: call.stream(large)}
	}
	encoded, err := s.encode(result, call.version)
	if err != nil {
		s.config.logger.ErrorContext(call.ctx, "mcpkit: a result does not encode", "method", call.row.method, "name", call.name, "error", err)
		return call.refuse(call.internalError())
	}
	*resp = jsonrpc.Response{ID: call.req.ID, Result: encoded, RetryAfter: later}
	return resp
}

// stream returns the function that writes the result and then releases the limit. If the response
// is never written, the end of the request releases it.
func (call *Call) stream(result *streamed) func(out io.Writer) error {
	l := &call.limit
	var taken atomic.Bool
	stop := context.AfterFunc(l.parent, func() {
		if taken.CompareAndSwap(false, true) {
			l.release()
		}
	})
	return func(out io.Writer) error {
		if !taken.CompareAndSwap(false, true) {
			return call.server.brokeOff(call, context.Canceled)
		}
		stop()
		defer l.release()
		w := &outlet{Writer: out}
		if err := result.writeTo(w); err != nil && w.err == nil {
			return call.server.brokeOff(call, err)
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
		if call.malformed {
			resp.HTTPStatus = 400
		}
	}
	return resp
}

// notified handles a notification. Unknown ones are ignored, as the protocol wants.
func (call *Call) notified(ctx context.Context) {
	row := call.catalog.methods[call.req.Method]
	if row == nil || !row.notification {
		return
	}
	call.row = row
	if ts := call.peer.Session(); ts != nil {
		call.session, _ = ts.State().(*session)
	}
	if _, err := row.handle(ctx, call); err != nil {
		call.server.config.logger.DebugContext(ctx, "mcpkit: a notification was not handled", "method", row.method, "error", err)
	}
}
