package sse

import (
	"errors"
	"io"
	"strconv"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
)

func TestAppend(t *testing.T) {
	for _, test := range []struct {
		name string
		got  []byte
		want string
	}{
		{"event", AppendEvent(nil, "", []byte(`{"a":1}`)), "event: message\ndata: {\"a\":1}\n\n"},
		{"event with id", AppendEvent([]byte("x"), "3-7", []byte(`1`)), "xevent: message\nid: 3-7\ndata: 1\n\n"},
		{"event of several lines", AppendEvent(nil, "", []byte("[\n1,\r\n2,\r3]")),
			"event: message\ndata: [\ndata: 1,\ndata: 2,\ndata: 3]\n\n"},
		{"priming", AppendPriming(nil, "3-0"), "id: 3-0\ndata: \n\n"},
		{"retry", AppendRetry(nil, time.Second), "retry: 1000\n\n"},
		{"retry below a millisecond", AppendRetry(nil, time.Microsecond), "retry: 0\n\n"},
		{"retry below zero", AppendRetry(nil, -time.Second), "retry: 0\n\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			require.Equal(t, test.want, string(test.got))
		})
	}
}

func readAll(src io.Reader, max int) ([]Event, error) {
	r := NewReader(src, max)
	var all []Event
	for {
		ev, err := r.Next()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, ev)
	}
}

func TestReader(t *testing.T) {
	for _, test := range []struct {
		name  string
		input string
		want  []Event
	}{
		{"nothing", "", nil},
		{"one event", "data: a\n\n", []Event{{Data: []byte("a")}}},
		{"CRLF", "data: a\r\n\r\ndata: b\r\n\r\n", []Event{{Data: []byte("a")}, {Data: []byte("b")}}},
		{"CR", "data: a\r\rdata: b\r\r", []Event{{Data: []byte("a")}, {Data: []byte("b")}}},
		{"mixed line ends", "data: a\r\n\ndata: b\n\r\n", []Event{{Data: []byte("a")}, {Data: []byte("b")}}},
		{"several data lines", "data: a\ndata:\ndata: b\n\n", []Event{{Data: []byte("a\n\nb")}}},
		{"one space after the colon goes", "data:  a\n\n", []Event{{Data: []byte(" a")}}},
		{"no space after the colon", "data:a:b\n\n", []Event{{Data: []byte("a:b")}}},
		{"field without colon", "data\n\n", []Event{{Data: []byte{}}}},
		{"type", "event: endpoint\ndata: /x\n\n", []Event{{Type: "endpoint", Data: []byte("/x")}}},
		{"a type alone is not an event", "event: endpoint\n\ndata: 1\n\n", []Event{{Data: []byte("1")}}},
		{"id stays", "id: 1\ndata: a\n\ndata: b\n\n", []Event{{ID: "1", Data: []byte("a")}, {ID: "1", Data: []byte("b")}}},
		{"priming has an id and empty data", "id: 3-0\nretry: 500\ndata: \n\n",
			[]Event{{ID: "3-0", Data: []byte{}, Retry: 500 * time.Millisecond, HasRetry: true}}},
		{"id alone", "id: 3\n\n", []Event{{ID: "3"}}},
		{"empty id forgets", "id: 3\n\nid\n\n", []Event{{ID: "3"}, {ID: ""}}},
		{"id with NUL is ignored", "id: a\x00b\ndata: 1\n\n", []Event{{Data: []byte("1")}}},
		{"retry alone", "retry: 0\n\n", []Event{{HasRetry: true}}},
		{"retry that is not a number is ignored", "retry: -1\nretry: 1e3\nretry:\n\n", nil},
		{"retry without end is a day", "retry: 999999999999999\n\n", []Event{{Retry: 24 * time.Hour, HasRetry: true}}},
		{"comments are passed over", ": hello\n\n:\ndata: 1\n: more\n\n", []Event{{Data: []byte("1")}}},
		{"unknown fields are passed over", "x: y\nDATA: 2\ndata: 1\n\n", []Event{{Data: []byte("1")}}},
		{"byte order mark", "\ufeffdata: 1\n\n", []Event{{Data: []byte("1")}}},
		{"byte order mark later is part of a name", "\n\ufeffdata: 1\n\ndata: 2\n\n", []Event{{Data: []byte("2")}}},
		{"cut short", "data: 1\n\ndata: 2\n", []Event{{Data: []byte("1")}}},
		{"cut short in a line", "data: 1\n\ndata: 2", []Event{{Data: []byte("1")}}},
		{"long", "data: " + strings.Repeat("x", 10000) + "\n\n", []Event{{Data: []byte(strings.Repeat("x", 10000))}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, err := readAll(strings.NewReader(test.input), 1<<20)
			require.NoError(t, err)
			require.Equal(t, test.want, got)

			got, err = readAll(iotest.OneByteReader(strings.NewReader(test.input)), 1<<20)
			require.NoError(t, err)
			require.Equal(t, test.want, got, "byte by byte")
		})
	}
}

func TestReaderReturnsAnEventBeforeTheByteAfterItsCR(t *testing.T) {
	in, out := io.Pipe()
	go func() {
		_, _ = out.Write([]byte("data: 1\r\r")) // ends when the reader has read it
	}()
	r := NewReader(in, 1<<20)
	ev, err := r.Next()
	require.NoError(t, err)
	require.Equal(t, Event{Data: []byte("1")}, ev)
}

func TestReaderRefusesLargeEvents(t *testing.T) {
	for _, test := range []struct{ name, input string }{
		{"line", "data: " + strings.Repeat("x", 9000) + "\n\n"},
		{"line without end", "data: " + strings.Repeat("x", 9000)},
		{"many lines", strings.Repeat("data: xxxxxxxx\n", 100) + "\n"},
		{"many ids", strings.Repeat("id: xxxxxxxx\n", 100) + "\n"},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := readAll(strings.NewReader(test.input), 1000)
			require.EqualError(t, err, "sse: event is larger than 1000 bytes")
			var tooLarge *SizeError
			require.ErrorAs(t, err, &tooLarge)
		})
	}
	got, err := readAll(strings.NewReader(strings.Repeat(": "+strings.Repeat("x", 500)+"\n", 20)+"data: 1\n\n"), 1000)
	require.NoError(t, err, "comments are not counted")
	require.Equal(t, []Event{{Data: []byte("1")}}, got)
}

func TestReaderPassesErrorsOn(t *testing.T) {
	broken := errors.New("broken")
	_, err := readAll(io.MultiReader(strings.NewReader("data: 1\n"), iotest.ErrReader(broken)), 1<<20)
	require.ErrorIs(t, err, broken)
}

// naive reads a whole stream the way the standard tells it.
func naive(input string) []Event {
	input = strings.TrimPrefix(input, "\ufeff")
	input = strings.ReplaceAll(input, "\r\n", "\n")
	input = strings.ReplaceAll(input, "\r", "\n")
	lines := strings.Split(input, "\n")
	var all []Event
	var ev Event
	id, any := "", false
	for _, line := range lines[:len(lines)-1] {
		if line == "" {
			if any {
				ev.ID = id
				all = append(all, ev)
			}
			ev, any = Event{}, false
			continue
		}
		name, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch name {
		case "data":
			if ev.Data == nil {
				ev.Data = []byte(value)
			} else {
				ev.Data = []byte(string(ev.Data) + "\n" + value)
			}
			any = true
		case "id":
			if !strings.Contains(value, "\x00") {
				id, any = value, true
			}
		case "event":
			ev.Type = value
		case "retry":
			if ms, err := strconv.ParseUint(value, 10, 64); err == nil {
				ev.Retry, ev.HasRetry, any = time.Duration(min(ms, 86_400_000))*time.Millisecond, true, true
			}
		}
	}
	return all
}

func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		"data: a\n\n", "\ufeffid: 1\r\ndata\r\n\r\n", "retry: 10\n\n: x\n\ndata:a\rdata: b\r\r", "\xef\xbb\n\n", "id: \x00\ndata:\n\n", "\r\n\ufeffdata\n\n",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, input string) {
		want := naive(input)
		got, err := readAll(strings.NewReader(input), 1<<20)
		require.NoError(t, err)
		require.Equal(t, want, got)
		got, err = readAll(iotest.OneByteReader(strings.NewReader(input)), 1<<20)
		require.NoError(t, err)
		require.Equal(t, want, got)
	})
}

func FuzzEventSurvivesTheStream(f *testing.F) {
	f.Add("1-2", []byte(`{"a":[1,2]}`))
	f.Add("", []byte("{\r\n}"))
	f.Fuzz(func(t *testing.T, id string, data []byte) {
		if strings.ContainsAny(id, "\r\n\x00") {
			t.Skip("an id is made by the server")
		}
		got, err := readAll(strings.NewReader(string(AppendEvent(nil, id, data))), 1<<30)
		require.NoError(t, err)
		want := strings.ReplaceAll(strings.ReplaceAll(string(data), "\r\n", "\n"), "\r", "\n")
		require.Equal(t, []Event{{ID: id, Type: "message", Data: []byte(want)}}, got)
	})
}
