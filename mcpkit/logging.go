package mcpkit

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/protocol"
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
	asked, ok := metaString(c.meta(), protocol.MetaLogLevel)
	return ok && l.Severity() >= protocol.LoggingLevel(asked).Severity()
}

// clientLog is a slog.Handler that sends records to the client of one call, and to the server's
// logger.
type clientLog struct {
	call  *Call
	scope []logScope // groups and attributes, outermost first
	own   slog.Handler
}

// logScope is one WithGroup or WithAttrs.
type logScope struct {
	group string
	attrs []slog.Attr
}

func (h *clientLog) server() slog.Handler {
	if h.own != nil {
		return h.own
	}
	return h.call.server.config.logger.Handler()
}

// Enabled reports whether the client or the server's logger wants the level.
func (h *clientLog) Enabled(ctx context.Context, l slog.Level) bool {
	return h.call.tracers.Load() != nil || h.call.wants(protocolLevel(l)) || h.server().Enabled(ctx, l)
}

// Handle sends the record.
func (h *clientLog) Handle(ctx context.Context, r slog.Record) error {
	level := protocolLevel(r.Level)
	if h.call.tracers.Load() != nil {
		h.call.event(ctx, Event{Kind: EventLog, Name: strings.ToLower(r.Level.String()), Text: recordText(h.record(r))})
	}
	if h.call.wants(level) {
		data, err := jsonx.Marshal(logData(h.record(r)))
		if err != nil {
			data = jsonx.AppendString(nil, r.Message) // the message is sent even if an attribute does not encode
		}
		h.call.notify(protocol.NotificationMessage, &protocol.LoggingMessageParams{Level: level, Logger: h.call.name, Data: data})
	}
	if own := h.server(); own.Enabled(ctx, r.Level) {
		return own.Handle(ctx, r)
	}
	return nil
}

// record returns r with the attributes and groups of the logger.
func (h *clientLog) record(r slog.Record) slog.Record {
	var attrs []slog.Attr
	r.Attrs(func(a slog.Attr) bool {
		attrs = append(attrs, a)
		return true
	})
	for _, s := range slices.Backward(h.scope) {
		attrs = append(slices.Clip(s.attrs), attrs...)
		if s.group != "" {
			attrs = []slog.Attr{{Key: s.group, Value: slog.GroupValue(attrs...)}}
		}
	}
	whole := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	whole.AddAttrs(attrs...)
	return whole
}

// recordText returns a record as one line.
func recordText(r slog.Record) string {
	var text strings.Builder
	text.WriteString(r.Message)
	r.Attrs(func(a slog.Attr) bool {
		fmt.Fprintf(&text, " %s=%v", a.Key, a.Value.Resolve())
		return true
	})
	return text.String()
}

// logData returns a record for the client: an object with the message and the attributes, or only the
// message.
func logData(r slog.Record) any {
	if r.NumAttrs() == 0 {
		return r.Message
	}
	root := map[string]any{slog.MessageKey: r.Message}
	r.Attrs(func(a slog.Attr) bool {
		putAttr(root, a)
		return true
	})
	return root
}

// putAttr adds an attribute by the rules of [slog.Handler]: empty attributes and groups are left
// out, and groups without a name are inlined.
func putAttr(m map[string]any, a slog.Attr) {
	v := a.Value.Resolve()
	if v.Kind() != slog.KindGroup {
		if !a.Equal(slog.Attr{}) {
			m[a.Key] = attrValue(v)
		}
		return
	}
	inner := m
	if a.Key != "" {
		var ok bool
		if inner, ok = m[a.Key].(map[string]any); !ok {
			inner = map[string]any{}
		}
	}
	for _, one := range v.Group() {
		putAttr(inner, one)
	}
	if a.Key != "" && len(inner) > 0 {
		m[a.Key] = inner
	}
}

func attrValue(v slog.Value) any {
	switch v.Kind() {
	case slog.KindDuration:
		return v.Duration().String()
	case slog.KindTime:
		return v.Time().Format(time.RFC3339Nano)
	}
	if err, ok := v.Any().(error); ok {
		return err.Error()
	}
	return v.Any()
}

// WithAttrs returns a handler that adds attrs to records.
func (h *clientLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &clientLog{h.call, append(slices.Clip(h.scope), logScope{attrs: attrs}), h.server().WithAttrs(attrs)}
}

// WithGroup returns a handler that puts later attributes into a group.
func (h *clientLog) WithGroup(name string) slog.Handler {
	if name == "" {
		return h
	}
	return &clientLog{h.call, append(slices.Clip(h.scope), logScope{group: name}), h.server().WithGroup(name)}
}

// SendLog sends p to the client unchanged if the client wants its level.
func (c *Call) SendLog(p *protocol.LoggingMessageParams) {
	if p.Level.Valid() && c.wants(p.Level) {
		c.notify(protocol.NotificationMessage, p)
	}
}

// setLogLevel sets the session's level (server/utilities/logging, up to and including 2025-11-25).
func setLogLevel(ctx context.Context, call *Call, p *protocol.SetLevelParams) (Result, error) {
	if !p.Level.Valid() {
		return nil, invalidParams("unknown log level %q; known are %s", p.Level, knownLevels)
	}
	if call.session == nil {
		return nil, nil
	}
	return nil, call.session.change(ctx, func() { call.session.logLevel.Store(int32(p.Level.Severity())) })
}
