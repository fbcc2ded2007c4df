package framing

import (
	"bytes"
	"sync"

	"github.com/mcpkit/mcpkit-go/internal/duplex"
)

// A MessageConn carries whole messages; see [github.com/mcpkit/mcpkit-go/transport/message.Conn].
type MessageConn interface {
	ReadMessage() ([]byte, error)
	WriteMessage(message []byte) error
	Close() error
}

// Messages returns a wire on conn. It uses only the limit of o.
func Messages(conn MessageConn, o Options) duplex.Wire { return &messages{conn: conn, o: o} }

type messages struct {
	conn MessageConn
	o    Options
	part []byte // of an incomplete message; used only by Write

	closing sync.Once
	err     error // of Close
}

func (m *messages) Read() ([]byte, error) {
	message, err := m.conn.ReadMessage()
	if err == nil && len(message) > m.o.MaxMessageBytes {
		return nil, tooLong(m.o.MaxMessageBytes, m.o.Raise, message[:min(len(message), headSize)])
	}
	return message, err
}

// Buffered returns false, since the buffer of conn is unknown.
func (m *messages) Buffered() bool { return false }

func (m *messages) Write(lines []byte) (int, error) {
	for rest := lines; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte{'\n'})
		rest = after
		if !ended {
			m.part = append(m.part, line...)
			break
		}
		if m.part != nil {
			line = append(m.part, line...)
			m.part = nil
		}
		if err := m.conn.WriteMessage(line); err != nil {
			return 0, err
		}
	}
	return len(lines), nil
}

// Drop drops an incomplete message.
func (m *messages) Drop() bool {
	m.part = nil
	return true
}

// CloseRead does nothing: a MessageConn cannot close one direction alone.
func (m *messages) CloseRead() error { return nil }

func (m *messages) Close() error {
	m.closing.Do(func() { m.err = m.conn.Close() })
	return m.err
}
