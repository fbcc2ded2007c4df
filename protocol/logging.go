package protocol

import (
	"encoding/json"
	"slices"
)

// A LoggingLevel is how severe a log message is (RFC 5424, section 6.2.1).
type LoggingLevel string

// The levels, least severe first.
const (
	LevelDebug     LoggingLevel = "debug"
	LevelInfo      LoggingLevel = "info"
	LevelNotice    LoggingLevel = "notice"
	LevelWarning   LoggingLevel = "warning"
	LevelError     LoggingLevel = "error"
	LevelCritical  LoggingLevel = "critical"
	LevelAlert     LoggingLevel = "alert"
	LevelEmergency LoggingLevel = "emergency"
)

// Severity orders the levels, from 1 for debug to 8 for emergency. It returns 0 for an unknown
// level.
func (l LoggingLevel) Severity() int {
	return 1 + slices.Index(levels, l)
}

var levels = []LoggingLevel{LevelDebug, LevelInfo, LevelNotice, LevelWarning, LevelError, LevelCritical, LevelAlert, LevelEmergency}

// Valid reports whether l is one of the eight levels.
func (l LoggingLevel) Valid() bool { return l.Severity() > 0 }

// SetLevelParams are the params of logging/setLevel. Legacy.
type SetLevelParams struct {
	Level LoggingLevel `json:"level"`
	Meta  Meta         `json:"_meta,omitzero"`
}

// LoggingMessageParams are the params of notifications/message.
type LoggingMessageParams struct {
	Level  LoggingLevel    `json:"level"`
	Logger string          `json:"logger,omitzero"`
	Data   json.RawMessage `json:"data"` // any JSON; nil is written as null
	Meta   Meta            `json:"_meta,omitzero"`
}
