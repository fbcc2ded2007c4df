package transporttest

import (
	"bufio"
	"io"
)

// Lines returns a Conn that sends and receives one message per line on stream. Stop calls stop, and
// Done returns done.
func Lines(stream io.ReadWriteCloser, stop func(), done <-chan struct{}) Conn {
	return &lines{stream: stream, read: bufio.NewReader(stream), stop: stop, done: done}
}

type lines struct {
	stream io.ReadWriteCloser
	read   *bufio.Reader
	stop   func()
	done   <-chan struct{}
}

func (l *lines) Send(message []byte) error {
	_, err := l.stream.Write(append(message, '\n'))
	return err
}

func (l *lines) Receive() ([]byte, error) { return l.read.ReadBytes('\n') }
func (l *lines) Close() error             { return l.stream.Close() }
func (l *lines) Stop()                    { l.stop() }
func (l *lines) Done() <-chan struct{}    { return l.done }
