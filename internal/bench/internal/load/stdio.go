package load

import (
	"bufio"
	"errors"
	"io"
	"strconv"
	"time"
)

// maxCallers is the maximal number of pending requests of a Pipe.
const maxCallers = 256

// A Pipe is a client of a server on stdio.
type Pipe struct {
	w     io.Writer
	lines chan line
	id    int64
}

type line struct {
	text []byte // of the first responses only, see readLines
	err  error
}

// NewPipe opens a session.
func NewPipe(w io.Writer, r io.Reader) (*Pipe, error) {
	p := &Pipe{w: w, lines: make(chan line, maxCallers), id: firstID}
	// Ends with r. Reading and writing are separate goroutines, because a server may stop reading
	// until its output is read.
	go p.readLines(bufio.NewReaderSize(r, 1<<20))
	if _, err := io.WriteString(w, Initialize+"\n"); err != nil {
		return nil, err
	}
	if l := <-p.lines; l.err != nil {
		return nil, l.err
	}
	_, err := io.WriteString(w, Initialized+"\n")
	return p, err
}

// readLines keeps the beginning of each line, which shows whether the response is correct.
func (p *Pipe) readLines(r *bufio.Reader) {
	defer close(p.lines)
	for {
		part, err := r.ReadSlice('\n')
		l := line{text: append([]byte(nil), part[:min(len(part), 4096)]...)}
		for errors.Is(err, bufio.ErrBufferFull) {
			_, err = r.ReadSlice('\n')
		}
		if err != nil {
			p.lines <- line{err: err}
			return
		}
		p.lines <- l
	}
}

func (p *Pipe) receive() ([]byte, error) {
	l, ok := <-p.lines
	if !ok {
		return nil, io.ErrUnexpectedEOF
	}
	return l.text, l.err
}

// Run runs the job for a duration with a constant number of pending requests. It returns the number
// of responses.
func (p *Pipe) Run(job *Job, callers int, d time.Duration, before func()) (int, error) {
	request, idAt := job.Body(false)
	request = append(request, '\n')
	send := func() error {
		p.id++
		strconv.AppendInt(request[idAt:idAt], p.id, 10)
		_, err := p.w.Write(request)
		return err
	}
	if err := send(); err != nil {
		return 0, err
	}
	answer, err := p.receive()
	if err == nil {
		err = job.Check(answer)
	}
	if err != nil {
		return 0, err
	}
	before()
	end := time.Now().Add(d)
	open, got := 0, 0
	for ; open < callers; open++ {
		if err := send(); err != nil {
			return got, err
		}
	}
	for open > 0 {
		if _, err := p.receive(); err != nil {
			return got, err
		}
		got++
		if time.Now().After(end) {
			open--
		} else if err := send(); err != nil {
			return got, err
		}
	}
	return got, nil
}
