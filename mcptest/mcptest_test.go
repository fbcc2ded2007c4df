package mcptest_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/mcpkit/mcpkit-go/internal/testkit"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/mcptest"
	"github.com/mcpkit/mcpkit-go/oauth"
	"github.com/mcpkit/mcpkit-go/protocol"
)

func TestMain(m *testing.M) { testkit.VerifyTestMain(m) }

// Desk is a service with one of everything.
type Desk struct {
	_ mcpkit.Info `name:"desk" version:"1.0.0"`
	_ struct {
		Add   mcpkit.Tool     `params:"a,b"`
		Greet mcpkit.Prompt   `params:"name" complete:"name=Names"`
		Note  mcpkit.Resource `uri:"note://{id}" mime:"text/plain"`
		Rules mcpkit.Resource `uri:"desk://rules"`
		Names mcpkit.Skip
	}
	leak   chan struct{}
	stamps atomic.Int64
}

func (d *Desk) Add(a, b int) int { return a + b }

func (d *Desk) Pair() map[string]int { return map[string]int{"b": 2, "a": 1} }

func (d *Desk) Fail() error { return mcpkit.Errorf("no paper") }

func (d *Desk) Break() error { return errors.New("the shredder is full") }

func (d *Desk) Who(ctx context.Context) string {
	if p := oauth.FromContext(ctx); p != nil {
		return p.Subject
	}
	return "nobody"
}

func (d *Desk) Sure(ctx context.Context) (string, error) {
	ok, err := mcpkit.Confirm(ctx, "Are you sure?")
	return fmt.Sprint(ok), err
}

func (d *Desk) Work(call *mcpkit.Call) string {
	call.Progress(1, 2, "half")
	call.Progress(2, 2, "")
	call.Logger().Info("working")
	return "done"
}

func (d *Desk) Leak() string {
	// Ends when the test closes the channel.
	go func() { <-d.leak }()
	return "leaked"
}

func (d *Desk) Greet(name string) string { return "Hello " + name }

// Names completes names.
func (d *Desk) Names(_ context.Context, prefix string) ([]string, error) {
	return slices.DeleteFunc([]string{"Ada", "Ann", "Bob"}, func(name string) bool { return !strings.HasPrefix(name, prefix) }), nil
}

func (d *Desk) Note(id string) string { return "note " + id }

func (d *Desk) Rules() string { return "Be tidy." }

// Stamp returns what is new each time.
func (d *Desk) Stamp(in struct {
	From string `json:",omitempty"`
}) (string, error) {
	n := d.stamps.Add(1)
	return fmt.Sprintf("%s: ticket %d at %s, batch 6ba7b810-9dad-11d1-80b4-%012x", in.From, n, time.Unix(n, 0).UTC().Format(time.RFC3339), n), nil
}

// docs:begin versions

func TestServiceOnEveryVersion(t *testing.T) {
	mcptest.EachVersion(t, func(t *testing.T) *mcptest.Server { return mcptest.New(t, &Desk{}) }, func(t *testing.T, s *mcptest.Server) {
		s.Call("add", map[string]int{"a": 2, "b": 3}).OK().JSON("5")
		s.Call("pair", nil).OK().JSON(`{"a": 1, "b": 2}`)
		s.Call("fail", nil).Error("no paper")
		s.Call("who", nil).Text("nobody")
		s.As(&oauth.Principal{Subject: "ann"}).Call("who", nil).Text("ann")
		s.Call("work", nil).OK().Text("done")
		s.Read("note://7").OK().Text("note 7")
		s.Prompt("greet", map[string]string{"name": "Ann"}).OK().Text("user: Hello Ann")
		s.Complete("greet", "name", "A", nil).Values("Ada", "Ann")
		require.Equal(t, []string{"add", "break", "fail", "leak", "pair", "stamp", "sure", "who", "work"}, s.List())

		var pair map[string]int
		s.Call("pair", nil).Structured(&pair)
		require.Equal(t, map[string]int{"a": 1, "b": 2}, pair)
	})
}

// docs:end versions

func TestMessagesOnEveryTransport(t *testing.T) {
	mcptest.EachVersion(t, func(t *testing.T) *mcptest.Server { return mcptest.New(t, &Desk{}) }, func(t *testing.T, s *mcptest.Server) {
		if s.Client().Version() >= protocol.V20250326 {
			s.Call("work", nil).Progress("1/2 half", "2/2").Logged("info", "working")
		}
		if s.Client().Version() < protocol.V20250618 {
			s.Call("sure", nil).ErrorContains(mcpkit.ErrUnsupported.Error())
			return
		}
		s.Answer("sure?", true).Call("sure", nil).OK().Text("true")
		s.Answer("sure?", mcptest.Decline).Call("sure", nil).OK().Text("false")
	})
}

// Shelf has tools that return text and a value.
type Shelf struct{}

func (*Shelf) Count() (string, map[string]int) { return "2 books", map[string]int{"books": 2} }

func (*Shelf) Sum() (map[string]int, string) { return map[string]int{"books": 2}, "2 books" }

func (*Shelf) Label() string { return "2 books" }

func TestValuesBesideTextOnEveryVersion(t *testing.T) {
	mcptest.EachVersion(t, func(t *testing.T) *mcptest.Server { return mcptest.New(t, &Shelf{}) }, func(t *testing.T, s *mcptest.Server) {
		var books map[string]int
		for _, tool := range []string{"count", "sum"} {
			s.Call(tool, nil).OK().TextContains("2 books").JSON(`{"books": 2}`).Structured(&books)
			require.Equal(t, map[string]int{"books": 2}, books)
		}
	})
	for _, v := range []protocol.Version{protocol.V20250326, protocol.V20250618} {
		for want, test := range map[string]func(*mcptest.Server){
			"call count\nwant: {\"books\":3}\n got: {\"books\":2}":        func(s *mcptest.Server) { s.Call("count", nil).JSON(`{"books": 3}`) },
			"call label\nwant: {\"books\":2}\n got: success, \"2 books\"": func(s *mcptest.Server) { s.Call("label", nil).JSON(`{"books": 2}`) },
		} {
			require.Equal(t, []string{want}, failures(t, func(t testing.TB) { test(mcptest.New(t, &Shelf{}).Version(v)) }), v)
		}
	}
}

func TestArgumentsAreSentAsTheyAreWritten(t *testing.T) {
	s := mcptest.New(t, &Sorter{})
	s.Call("size", map[string]any{"items": []string(nil)}).OK().JSON("0")
	s.Call("size", map[string]any{"items": json.RawMessage(`["a", "b"]`)}).OK().JSON("2")
	s.Call("size", json.RawMessage(`{"items": ["a"]}`)).OK().JSON("1")
	s.Call("size", map[string]any{"items": json.RawMessage(`null`)}).ErrorContains("/items: got null, want an array")
}

// Sorter counts items.
type Sorter struct {
	_ struct {
		Size mcpkit.Tool `params:"items"`
	}
}

func (*Sorter) Size(items []string) int { return len(items) }

// docs:begin answer

func TestQuestionsAreAnswered(t *testing.T) {
	s := mcptest.New(t, &Desk{})
	s.Answer("sure?", true).Call("sure", nil).OK().Text("true")
	s.Version("2025-11-25").Answer("sure?", true).Call("sure", nil).OK().Text("true")
}

// docs:end answer

func TestAnAnswerThatIsNotUsedFailsTheTest(t *testing.T) {
	require.Equal(t, []string{`mcptest: no question contained "really?", so its answer was not used`}, failures(t, func(t testing.TB) {
		s := mcptest.New(t, &Desk{}).Answer("sure?", true).Answer("really?", true)
		s.Call("sure", nil).OK().Text("true")
	}))
	require.Empty(t, failures(t, func(t testing.TB) {
		mcptest.New(t, &Desk{}).Answer("sure?", true).Version("2024-11-05").Call("work", nil).OK()
	}), "a version without elicitation")
}

func TestFailuresOfUnansweredQuestionsSayHowToAnswer(t *testing.T) {
	const advice = "\ngive an answer: s.Answer(\"sure?\", true)"
	ask := func(change func(*mcptest.Server) *mcptest.Server) string {
		said := failures(t, func(t testing.TB) { change(mcptest.New(t, &Desk{})).Call("sure", nil).OK() })
		require.Len(t, said, 1)
		return said[0]
	}
	for _, v := range []protocol.Version{protocol.V20250618, protocol.V20251125, protocol.V20260728} {
		text := ask(func(s *mcptest.Server) *mcptest.Server { return s.Version(v) })
		require.True(t, strings.HasSuffix(text, advice), text)
	}
	require.NotContains(t, ask(func(s *mcptest.Server) *mcptest.Server { return s.Version(protocol.V20250326) }), advice, "this version has no questions")
	require.NotContains(t, ask(func(s *mcptest.Server) *mcptest.Server { return s.Handlers(struct{}{}) }), advice)
}

// Counter counts how often it starts and closes.
type Counter struct{ starts, closes int }

func (c *Counter) Start(context.Context) error { c.starts++; return nil }

func (c *Counter) Starts() int { return c.starts }

func (c *Counter) Close() error { c.closes++; return nil }

func TestAServerIsClosedAtTheEndOfTheTest(t *testing.T) {
	counter := &Counter{}
	srv := mcpkit.MustNew(counter)
	require.Empty(t, failures(t, func(t testing.TB) {
		mcptest.New(t, srv).Call("starts", nil).OK()
		mcptest.New(t, srv).Call("starts", nil).OK().JSON("1")
	}))
	require.Equal(t, 1, counter.closes)
}

func TestContentIsThatOfTheResult(t *testing.T) {
	s := mcptest.New(t, &Desk{})
	require.Equal(t, []protocol.Content{mcpkit.Text("done")}, s.Call("work", nil).Content())
	require.Equal(t, []protocol.Content{mcpkit.Text("Hello Ann")}, s.Prompt("greet", map[string]string{"name": "Ann"}).Content())
	rules := protocol.ResourceContents{URI: "desk://rules", MIMEType: "text/plain", Text: new("Be tidy.")}
	require.Equal(t, []protocol.Content{&protocol.EmbeddedResource{Resource: rules}}, s.Read("desk://rules").Content())
}

// A fake records the failures of a test.
type fake struct {
	testing.TB
	said     []string
	cleanups []func()
}

func (f *fake) Name() string              { return "TestFake" }
func (f *fake) Helper()                   {}
func (f *fake) Failed() bool              { return len(f.said) > 0 }
func (f *fake) Cleanup(c func())          { f.cleanups = append(f.cleanups, c) }
func (f *fake) Context() context.Context  { return context.Background() }
func (f *fake) Errorf(s string, a ...any) { f.said = append(f.said, fmt.Sprintf(s, a...)) }
func (f *fake) Fatalf(s string, a ...any) { f.Errorf(s, a...); runtime.Goexit() }
func (f *fake) Fatal(a ...any)            { f.said = append(f.said, fmt.Sprint(a...)); runtime.Goexit() }

// failures returns what test fails with.
func failures(t *testing.T, test func(t testing.TB)) []string {
	f := &fake{TB: t}
	done := make(chan struct{})
	// Ends with the test that it runs.
	go func() {
		defer close(done)
		defer func() {
			for i := len(f.cleanups) - 1; i >= 0; i-- {
				f.cleanups[i]()
			}
		}()
		test(f)
	}()
	<-done
	return f.said
}

func TestFailuresSayWhatDiffers(t *testing.T) {
	call := func(tool string, in any, check func(*mcptest.Result)) func(testing.TB) {
		return func(t testing.TB) {
			check(mcptest.New(t, &Desk{}, mcpkit.Logger(slog.New(slog.DiscardHandler))).Call(tool, in))
		}
	}
	for _, test := range []struct {
		name string
		test func(testing.TB)
		want string
	}{
		{"not OK", call("fail", nil, func(r *mcptest.Result) { r.OK() }), "call fail\nwant: success\n got: error \"no paper\""},
		{"another text", call("work", nil, func(r *mcptest.Result) { r.Text("x") }), "call work\nwant: \"x\"\n got: \"done\""},
		{"no error", call("work", nil, func(r *mcptest.Result) { r.Error("x") }), "call work\nwant: error \"x\"\n got: success, \"done\""},
		{"another error", call("fail", nil, func(r *mcptest.Result) { r.Error("x") }), "call fail\nwant: error \"x\"\n got: error \"no paper\""},
		{"other JSON", call("add", map[string]int{"a": 1, "b": 2}, func(r *mcptest.Result) { r.JSON("4") }),
			"call add\nwant: 4\n got: 3\narguments: {\"a\":1,\"b\":2}"},
		{"other progress", call("work", nil, func(r *mcptest.Result) { r.Progress("1/1") }),
			"call work\nwant: progress [\"1/1\"]\n got: progress [\"1/2 half\" \"2/2\"]"},
		{"an unknown tool", call("nothing", nil, func(r *mcptest.Result) { r.OK() }), "call nothing\nwant: success\n got: error \"client: tools/call \\\"nothing\\\": unknown tool \\\"nothing\\\" (code -32602)\""},
		{"no error with a part", call("work", nil, func(r *mcptest.Result) { r.ErrorContains("done") }), "call work\nwant: error with \"done\"\n got: success, \"done\""},
		{"an error without the part", call("fail", nil, func(r *mcptest.Result) { r.ErrorContains("paper").ErrorContains("ink") }), "call fail\nwant: error with \"ink\"\n got: error \"no paper\""},
		{"a text without the part", call("work", nil, func(r *mcptest.Result) { r.TextContains("on").TextContains("late") }), "call work\nwant: text with \"late\"\n got: success, \"done\""},
		{"a text with the part", call("work", nil, func(r *mcptest.Result) { r.TextNotContains("late").TextNotContains("on") }), "call work\nwant: text without \"on\"\n got: success, \"done\""},
		{"a long text", call("work", nil, func(r *mcptest.Result) { r.Text("done" + strings.Repeat("x", 2000)) }),
			"call work\nwant: \"done" + strings.Repeat("x", 995) + "… (bytes 0 to 1000 of 2006)\n got: \"done\""},
		{"a long text with another end", func(t testing.TB) {
			name := strings.Repeat("x", 1200)
			mcptest.New(t, &Desk{}).Prompt("greet", map[string]string{"name": name}).Text("user: Hello " + name + "!")
		}, "prompt greet\nwant: " + strings.Repeat("x", 100) + "!\"… (bytes 1113 to 1215 of 1215)\n got: " +
			strings.Repeat("x", 100) + "\"… (bytes 1113 to 1214 of 1214)\narguments: {\"name\":\"" + strings.Repeat("x", 991) + "… (bytes 0 to 1000 of 1211)"},
		{"another completion", func(t testing.TB) { mcptest.New(t, &Desk{}).Complete("greet", "name", "Al", nil).Values("Al") },
			"complete \"name\" of greet\nwant: values [\"Al\"]\n got: values []\narguments: {}"},
	} {
		t.Run(test.name, func(t *testing.T) {
			said := failures(t, test.test)
			require.Equal(t, []string{test.want}, said)
		})
	}
}

// Crash panics.
type Crash struct{}

func (*Crash) Now() { panic("no more") }

func TestFailuresShowWhereTheServicePanicked(t *testing.T) {
	said := failures(t, func(t testing.TB) { mcptest.New(t, &Crash{}).Call("now", nil).OK() })
	require.Regexp(t, `\nlog of the server:
  time=.* msg="mcpkit: a call failed with an error that the caller does not see
    github.com/mcpkit/mcpkit-go/mcptest_test.\(\*Crash\).Now\(.*\)
        /\S+/mcptest_test.go:\d+`, said[0])
}

func TestAQuestionWithoutAnAnswerFails(t *testing.T) {
	said := failures(t, func(t testing.TB) { mcptest.New(t, &Desk{}).Answer("age", 7).Call("sure", nil) })
	require.Equal(t, []string{`mcptest: the server asked "Are you sure?", but no answer matches; there are answers to ["age"]`}, said)
}

func TestLeakedGoroutinesFail(t *testing.T) {
	defer mcptest.SetLeakPatience(50 * time.Millisecond)()
	leak := make(chan struct{})
	said := failures(t, func(t testing.TB) { mcptest.New(t, &Desk{leak: leak}).Call("leak", nil).OK() })
	close(leak)
	require.Len(t, said, 1)
	require.Regexp(t, `^mcptest: goroutines of the test still run:
    github.com/mcpkit/mcpkit-go/mcptest_test.\(\*Desk\).Leak.func1: it has to end with its context, .*
        github.com/mcpkit/mcpkit-go/mcptest_test.\(\*Desk\).Leak.func1 /\S+/mcptest_test.go:\d+$`, said[0])
}

func TestClientsThatCannotBeMadeFailTheTestOnEveryTransport(t *testing.T) {
	want := []string{"mcptest: no connection: client: Handlers: int has none of the methods; if they have a pointer receiver, pass a pointer"}
	for _, transport := range []func(*mcptest.Server) *mcptest.Server{(*mcptest.Server).Stdio, (*mcptest.Server).HTTP} {
		require.Equal(t, want, failures(t, func(t testing.TB) { transport(mcptest.New(t, &Desk{})).Handlers(5).List() }))
	}
}

func TestServersTakeNoOptions(t *testing.T) {
	want := []string{"mcptest: the server has its options already; pass them to mcpkit.New"}
	require.Equal(t, want, failures(t, func(t testing.TB) { mcptest.New(t, mcpkit.MustNew(&Desk{}), mcpkit.ExposeErrors()) }))
	want = []string{"mcptest: the server is nil; make one with mcpkit.New, and look at its error"}
	require.Equal(t, want, failures(t, func(t testing.TB) { mcptest.New(t, (*mcpkit.Server)(nil)) }))
}

type scroll struct {
	_ struct {
		Line mcpkit.Resource `uri:"urn:scroll:{line}" complete:"line=Lines"`
	}
}

func (scroll) Line(line string) string { return line }
func (scroll) Lines(_ context.Context, prefix string) ([]string, error) {
	return []string{prefix + "1"}, nil
}

func TestTemplatesOfAnySchemeAreCompleted(t *testing.T) {
	mcptest.New(t, &scroll{}).Complete("urn:scroll:{line}", "line", "a", nil).Values("a1")
}
