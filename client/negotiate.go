package client

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
	"github.com/mcpkit/mcpkit-go/transport"
)

// negotiate agrees on a version with the server (2026-07-28, basic/lifecycle, "Backward
// Compatibility"). A modern server supports server/discover. If the response is not that of a
// modern server, the client sends initialize, as for legacy servers.
func (c *Client) negotiate(ctx context.Context) error {
	pinned := c.cfg.version
	if l, ok := c.conn.(*linkConn); ok && l.sse != nil {
		if pinned.Modern() {
			return fmt.Errorf("HTTP+SSE does not support version %s", pinned)
		}
		return c.initialize(ctx, cmp.Or(pinned, protocol.LatestLegacy), nil)
	}
	if pinned != "" && !pinned.Modern() {
		return c.initialize(ctx, pinned, nil)
	}
	p := c.probe(ctx, protocol.Latest)
	if p.outcome == tryOther {
		p = c.probe(ctx, p.version)
		if p.outcome == tryOther {
			return fmt.Errorf("the server refuses version %s although it lists it as supported", p.version)
		}
	}
	switch p.outcome {
	case isModern:
		return nil
	case isLegacy:
		if pinned != "" {
			return fmt.Errorf("the server does not speak version %s: %w", pinned, p.err)
		}
		if err := c.conn.renew(ctx, p.err); err != nil {
			return err
		}
		return c.initialize(ctx, p.version, p.err)
	}
	return p.err
}

// fallBack tries HTTP+SSE if refused says that the server does not speak Streamable HTTP
// (2025-11-25, basic/transports, "Backwards Compatibility").
func (c *Client) fallBack(ctx context.Context, refused error) error {
	h, ok := c.conn.(*httpConn)
	status, _ := errors.AsType[*StatusError](refused)
	if !ok || status == nil || c.cfg.version.Modern() {
		return refused
	}
	switch status.Code {
	case http.StatusBadRequest, http.StatusNotFound, http.StatusMethodNotAllowed:
	default:
		return refused
	}
	l, err := newSSEConn(ctx, c, h.target)
	if status, ok := errors.AsType[*StatusError](err); ok && strings.Contains(refused.Error(), status.Error()) {
		return fmt.Errorf("%w; HTTP+SSE failed in the same way", refused)
	}
	if err != nil {
		return fmt.Errorf("%w; HTTP+SSE failed too: %w", refused, err)
	}
	_ = h.close() // there is no session to end
	c.conn = l
	return c.negotiate(ctx)
}

// outcome is the result of a probe.
type outcome int

const (
	failed   outcome = iota // the server is unreachable or refuses the client
	isModern                // the version is agreed on
	isLegacy                // send initialize
	tryOther                // modern, but probe again with another version
)

type probed struct {
	outcome outcome
	version protocol.Version // to use next
	err     error            // why the probe failed, or why the server counts as legacy
}

// probe sends server/discover in version v.
func (c *Client) probe(ctx context.Context, v protocol.Version) probed {
	meta := c.metaOf(v)
	req, err := jsonrpc.NewRequest(c.nextID(), protocol.MethodDiscover, map[string]any{"_meta": meta})
	if err != nil {
		return probed{outcome: failed, err: err}
	}
	limited, d := withDeadline(ctx, c.cfg.probeTimeout, errProbe)
	var resp *jsonrpc.Response
	err = repeat(limited, unavailable, func() (err error) {
		resp, err = c.conn.roundTrip(limited, &exchange{req: req, version: v})
		return err
	})
	if err != nil && limited.Err() != nil {
		err = context.Cause(limited)
	}
	d.stop()
	if err != nil {
		return judgeFailure(ctx, err)
	}
	if resp.Error != nil {
		return judgeError(v, resp.Error)
	}
	return c.judgeResult(v, resp.Result, meta)
}

var errProbe = errors.New("no response to server/discover")

// judgeFailure interprets a probe without a JSON-RPC response.
func judgeFailure(ctx context.Context, err error) probed {
	if ctx.Err() != nil {
		return probed{outcome: failed, err: context.Cause(ctx)}
	}
	legacy := probed{outcome: isLegacy, version: protocol.LatestLegacy, err: err}
	if status, ok := errors.AsType[*StatusError](err); ok {
		if status.aboutCaller() {
			return probed{outcome: failed, err: err}
		}
		return legacy
	}
	if _, ok := errors.AsType[*InvalidResponseError](err); ok {
		return legacy
	}
	for _, quiet := range []error{errProbe, errLost, errNoSession, transport.ErrClosed, context.Canceled, context.DeadlineExceeded} {
		if errors.Is(err, quiet) {
			return legacy
		}
	}
	return probed{outcome: failed, err: err}
}

// judgeError interprets an error response. Every code that the modern versions do not define means
// a legacy server.
func judgeError(asked protocol.Version, e *jsonrpc.Error) probed {
	switch e.Code {
	case protocol.CodeHeaderMismatch, protocol.CodeMissingClientCapability:
		return probed{outcome: failed, err: e}
	case protocol.CodeUnsupportedProtocolVersion:
		var data protocol.UnsupportedProtocolVersionData
		if err := jsonx.Unmarshal(e.Data, &data); err != nil {
			return probed{outcome: failed, err: e}
		}
		return judgeVersions(data.Supported, e)
	}
	return probed{outcome: isLegacy, version: protocol.LatestLegacy, err: e}
}

// judgeVersions chooses the newest version that both support.
func judgeVersions(theirs []protocol.Version, why error) probed {
	for _, v := range protocol.Supported {
		switch {
		case !slices.Contains(theirs, v):
		case v.Modern():
			return probed{outcome: tryOther, version: v, err: why}
		default:
			return probed{outcome: isLegacy, version: v, err: why}
		}
	}
	return probed{outcome: failed, err: fmt.Errorf("no common version: the server supports %q, this client supports %q", theirs, protocol.Supported)}
}

// judgeResult interprets the result of a probe. If the server is modern, it stores the agreement.
func (c *Client) judgeResult(asked protocol.Version, raw []byte, meta protocol.Meta) probed {
	var r protocol.DiscoverResult
	if err := jsonx.Unmarshal(raw, &r); err != nil || r.SupportedVersions == nil {
		return probed{outcome: isLegacy, version: protocol.LatestLegacy, err: errors.New("its response to server/discover is invalid")}
	}
	p := judgeVersions(r.SupportedVersions, errors.New("it lists only legacy versions"))
	if p.outcome != tryOther || p.version != asked {
		return p
	}
	a := &agreement{version: asked, capabilities: r.Capabilities, instructions: r.Instructions, meta: meta}
	_, _ = r.Meta.Decode(protocol.MetaServerInfo, &a.info) // informative only
	c.agreed.Store(a)
	c.conn.settled(asked)
	return probed{outcome: isModern, version: asked}
}

// metaOf returns the members of _meta that every request of version v has.
func (c *Client) metaOf(v protocol.Version) protocol.Meta {
	m := protocol.Meta{}
	_ = m.Set(protocol.MetaProtocolVersion, v)
	_ = m.Set(protocol.MetaClientInfo, c.cfg.info)
	if err := m.Set(protocol.MetaClientCapabilities, c.capabilities(v)); err != nil {
		c.log.Error("client: the capabilities cannot be encoded", "error", err)
		m[protocol.MetaClientCapabilities] = rawObject("{}")
	}
	return m
}

// capabilities returns what the client declares in version v.
func (c *Client) capabilities(v protocol.Version) protocol.ClientCapabilities {
	caps, h := c.cfg.extra, c.cfg.handlers
	if len(c.cfg.extensions) > 0 {
		all := map[string]protocol.Object{}
		maps.Copy(all, caps.Extensions)
		for id, e := range c.cfg.extensions {
			if v >= e.since {
				all[id] = e.settings
			}
		}
		caps.Extensions = all
	}
	if h.roots != nil && caps.Roots == nil {
		caps.Roots = &protocol.RootsCapability{}
	}
	if h.sample != nil && caps.Sampling == nil {
		caps.Sampling = &protocol.SamplingCapability{}
	}
	form, url := h.elicit != nil, h.elicitURL != nil && v >= protocol.V20251125 // 2025-06-18 has only forms
	if caps.Elicitation == nil && v >= protocol.V20250618 && (form || url) {
		caps.Elicitation = &protocol.ElicitationCapability{}
		if form && v >= protocol.V20251125 {
			caps.Elicitation.Form = protocol.Object{}
		}
		if url {
			caps.Elicitation.URL = protocol.Object{}
		}
	}
	return caps
}

// initialize begins a legacy session in version v. Probe says why the server does not count as
// modern; it is nil if the client did not probe.
func (c *Client) initialize(ctx context.Context, v protocol.Version, probe error) error {
	r, err := c.handshake(ctx, v)
	if err != nil {
		cause := err
		switch err.(type) {
		case *InvalidResponseError, *timeoutError:
		default:
			err = fmt.Errorf("initialize: %w", err)
		}
		if probe != nil && probe.Error() != cause.Error() {
			return fmt.Errorf("%w (before, server/discover: %v)", err, probe) // the status of initialize decides about HTTP+SSE
		}
		return err
	}
	switch {
	case !r.ProtocolVersion.Legacy():
		return fmt.Errorf("initialize: the server wants version %q; this client supports %q", r.ProtocolVersion, protocol.SupportedLegacy)
	case c.cfg.version != "" && r.ProtocolVersion != c.cfg.version:
		return fmt.Errorf("initialize: the server wants version %s, not %s", r.ProtocolVersion, c.cfg.version)
	}
	c.agreed.Store(&agreement{version: r.ProtocolVersion, info: r.ServerInfo, capabilities: r.Capabilities, instructions: r.Instructions})
	c.conn.settled(r.ProtocolVersion)
	n, err := jsonrpc.NewNotification(protocol.NotificationInitialized, nil)
	if err == nil {
		err = c.conn.notify(ctx, n)
	}
	if err != nil {
		return fmt.Errorf("notifications/initialized: %w", err)
	}
	c.restore(ctx)
	return nil
}

// handshake sends initialize with version v. If the server refuses v and lists other versions, it
// tries again once.
func (c *Client) handshake(ctx context.Context, v protocol.Version) (*protocol.InitializeResult, error) {
	for again := false; ; again = true {
		raw, err := c.askInitialize(ctx, v)
		if err == nil {
			r := new(protocol.InitializeResult)
			if err := jsonx.Unmarshal(raw, r); err != nil {
				return nil, invalid(protocol.MethodInitialize, "%v", err)
			}
			return r, nil
		}
		rpc, ok := errors.AsType[*jsonrpc.Error](err)
		if !ok || again || c.cfg.version != "" {
			return nil, err
		}
		var data protocol.UnsupportedProtocolVersionData
		if jsonx.Unmarshal(rpc.Data, &data) != nil {
			return nil, err
		}
		p := judgeVersions(data.Supported, err)
		if p.outcome != isLegacy || p.version == v {
			return nil, err
		}
		v = p.version
	}
}

func (c *Client) askInitialize(ctx context.Context, v protocol.Version) ([]byte, error) {
	req, err := jsonrpc.NewRequest(c.nextID(), protocol.MethodInitialize, &protocol.InitializeParams{
		ProtocolVersion: v, Capabilities: c.capabilities(v), ClientInfo: c.cfg.info,
	})
	if err != nil {
		return nil, err
	}
	timeout := c.cfg.timeout
	if timeout <= 0 {
		timeout = time.Hour
	}
	limited, d := withDeadline(ctx, timeout, &timeoutError{protocol.MethodInitialize, "", timeout})
	defer d.stop()
	var resp *jsonrpc.Response
	err = repeat(limited, unavailable, func() (err error) { // a session that none knows of expires
		resp, err = c.conn.roundTrip(limited, &exchange{req: req})
		return err
	})
	switch {
	case err != nil && limited.Err() != nil:
		return nil, context.Cause(limited)
	case err != nil:
		return nil, err
	case resp.Error != nil:
		return nil, resp.Error
	}
	return resp.Result, nil
}

// restore sets the log level and the subscriptions of the previous session in a new session.
func (c *Client) restore(ctx context.Context) {
	if level := c.level(); level != "" && c.Capabilities().Logging != nil {
		if err := c.SetLogLevel(ctx, level); err != nil {
			c.log.Warn("client: the log level could not be set", "error", err)
		}
	}
	c.changes.restore(ctx)
}

// renewSession replaces the session of old, unless another call has already replaced it.
func (c *Client) renewSession(ctx context.Context, old *agreement) error {
	c.renewing.Lock()
	defer c.renewing.Unlock()
	if c.agreed.Load() != old {
		return nil
	}
	c.cache.drop("")
	if err := c.initialize(ctx, old.version, nil); err != nil {
		return err
	}
	if c.cfg.handlers.unasked() || c.changes.listening() {
		c.listen(ctx)
	}
	return nil
}
