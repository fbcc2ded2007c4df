package mcpkit

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// Levels of the protocol that slog has no names for.
const (
	LevelNotice    = slog.Level(2)
	LevelCritical  = slog.Level(12)
	LevelAlert     = slog.Level(16)
	LevelEmergency = slog.Level(20)
)

// logLevels are the protocol's levels with the lowest slog level of each, the most severe first.
var logLevels = []struct {
	least slog.Level
	level protocol.LoggingLevel
}{
	{LevelEmergency, protocol.LevelEmergency},
	{LevelAlert, protocol.LevelAlert},
	{LevelCritical, protocol.LevelCritical},
	{slog.LevelError, protocol.LevelError},
	{slog.LevelWarn, protocol.LevelWarning},
	{LevelNotice, protocol.LevelNotice},
	{slog.LevelInfo, protocol.LevelInfo},
}

// knownLevels lists the levels for errors.
const knownLevels = "debug, info, notice, warning, error, critical, alert, emergency"

func protocolLevel(l slog.Level) protocol.LoggingLevel {
	for _, row := range logLevels {
		if l >= row.least {
			return row.level
		}
	}
	return protocol.LevelDebug
}

// wants reports whether the client asked for messages of this level, for its session or, in version
// 2026-07-28, on the request.
func (c *Call) wants(l protocol.LoggingLevel) bool {
	if !c.version.Modern() {
		least := protocol.LevelInfo.Severity()
		if c.session != nil {
			least = int(c.session.logLevel.Load())
		}
		return l.Severity() >= least
	}
	asked := c.Meta(protocol.MetaLogLevel)
	return jsonx.Kind(asked) == '"' && l.Severity() >= protocol.LoggingLevel(jsonx.String(asked)).Severity()
}

// checkLogLevel refuses a request of 2026-07-28 with an unknown level.
func (c *Call) checkLogLevel() *jsonrpc.Error {
	level := c.Meta(protocol.MetaLogLevel)
	if !c.version.Modern() || level == nil || protocol.LoggingLevel(jsonx.String(level)).Valid() {
		return nil
	}
	return invalidParams("params._meta has the unknown log level %s; known are %s", level, knownLevels)
}

// clientLog is a slog.Handler that sends records to the client of one call, and to the server's
// logger.
type clientLog struct {
	call   *Call
	server slog.Handler                      // of the server's logger, with the scopes
	scopes []func(slog.Handler) slog.Handler // groups and attributes, outermost first
}

// Enabled reports whether the client or the server's logger wants the level.
func (h *clientLog) Enabled(ctx context.Context, l slog.Level) bool {
	return h.call.tracers.Load() != nil || h.call.wants(protocolLevel(l)) || h.server.Enabled(ctx, l)
}

// Handle sends the record.
func (h *clientLog) Handle(ctx context.Context, r slog.Record) error {
	level := protocolLevel(r.Level)
	if wanted := h.call.wants(level); wanted || h.call.tracers.Load() != nil {
		data := h.data(ctx, r)
		h.call.event(ctx, TraceEvent{Kind: TraceLog, Name: strings.ToLower(r.Level.String()), Text: string(data)})
		if wanted {
			h.call.Notify(protocol.NotificationMessage, &protocol.LoggingMessageParams{Level: level, Logger: h.call.name, Data: data})
		}
	}
	if h.server.Enabled(ctx, r.Level) {
		return h.server.Handle(ctx, r)
	}
	return nil
}

// lineOptions leave out the level, which notifications and events have, and write durations as text.
var lineOptions = &slog.HandlerOptions{ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
	if _, ok := a.Value.Any().(slog.Level); ok && groups == nil && a.Key == slog.LevelKey {
		return slog.Attr{}
	}
	if a.Value.Kind() == slog.KindDuration {
		a.Value = slog.StringValue(a.Value.Duration().String())
	}
	return a
}}

// data returns the record as JSON: an object with the message and the attributes, or only the message
// if there are none. Of attributes with the same key it has the last.
func (h *clientLog) data(ctx context.Context, r slog.Record) json.RawMessage {
	if r.NumAttrs() == 0 && h.scopes == nil {
		return jsonx.AppendString(nil, r.Message)
	}
	var line bytes.Buffer
	var to slog.Handler = slog.NewJSONHandler(&line, lineOptions)
	for _, scope := range h.scopes {
		to = scope(to)
	}
	r.Time = time.Time{}
	_ = to.Handle(ctx, r) // a buffer takes all
	decoder := json.NewDecoder(&line)
	decoder.UseNumber()
	var object map[string]any
	_ = decoder.Decode(&object) // the handler writes an object
	data, _ := jsonx.Marshal(object)
	return data
}

// WithAttrs returns a handler that adds attrs to records.
func (h *clientLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return h.with(func(to slog.Handler) slog.Handler { return to.WithAttrs(attrs) })
}

// WithGroup returns a handler that puts later attributes into a group.
func (h *clientLog) WithGroup(name string) slog.Handler {
	return h.with(func(to slog.Handler) slog.Handler { return to.WithGroup(name) })
}

func (h *clientLog) with(scope func(slog.Handler) slog.Handler) slog.Handler {
	return &clientLog{h.call, scope(h.server), append(slices.Clip(h.scopes), scope)}
}

// SendLog sends p to the client unchanged if the client wants its level.
func (c *Call) SendLog(p *protocol.LoggingMessageParams) {
	if p.Level.Valid() && c.wants(p.Level) {
		c.Notify(protocol.NotificationMessage, p)
	}
}

// setLogLevel sets the session's level (server/utilities/logging, up to and including 2025-11-25).
func setLogLevel(ctx context.Context, call *Call, p *protocol.SetLevelParams) (Result, error) {
	if !p.Level.Valid() {
		return nil, invalidParams("unknown log level %q; known are %s", p.Level, knownLevels)
	}
	level := int32(p.Level.Severity())
	return nil, call.session.change(ctx, func(map[subject]bool) { call.session.logLevel.Store(level) })
}

// SendLog sends a log message outside of a call to the legacy clients with a session at this replica that
// want its level, and whose principal whom reports; nil is an unauthenticated one. Clients of 2026-07-28
// get log messages only within their requests. SendLog returns an error if the server has not declared
// that it logs, which it does if a method can (see also [OfferAll]).
func (s *Server) SendLog(p *protocol.LoggingMessageParams, whom func(*oauth.Principal) bool) error {
	if !hasLogs(s.catalog.Load()) {
		return errors.New("mcpkit: SendLog: the server has not declared log messages; " +
			"use mcpkit.OfferAll, or take a *mcpkit.Call or *slog.Logger in a method")
	}
	params, err := jsonx.Marshal(p)
	if err != nil {
		return err
	}
	for _, client := range s.topics[0].clients() {
		state, ok := client.(*session)
		if ok && state.wants(subject{topic: s.topics[0]}) && p.Level.Severity() >= int(state.logLevel.Load()) && whom(state.caller()) {
			_ = state.link.Notify(context.Background(), &jsonrpc.Request{Method: protocol.NotificationMessage, Params: params})
		}
	}
	return nil
}
