package mcptest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpkit/mcpkit-go/client"
	"github.com/mcpkit/mcpkit-go/ext/events"
	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/protocol/jsonrpc"
)

// A Result is the result of one request. Its methods check it, end the test if it differs, and
// return it.
type Result struct {
	t          testing.TB
	what       string
	arguments  []byte
	content    []protocol.Content
	text       string
	structured []byte
	values     []string // of a completion
	isError    bool
	task       bool // the call was a task
	err        error
	log        string
	unanswered bool // the client has no answers, in a version with questions
	server     *Server
	last       *jsonrpc.Request // with the answers of the last round; nil if there was one round

	mu       sync.Mutex
	progress []string // guarded by mu
	messages []string // guarded by mu
}

// take keeps the result of a request, an occurrence, or the error.
func (r *Result) take(result any, err error) {
	if _, ofTool := errors.AsType[*client.ToolError](err); err != nil && !ofTool { // that is in the result, too
		r.err = err
		return
	}
	var lines []string
	switch result := result.(type) {
	case *protocol.CallToolResult:
		r.content, r.isError = result.Content, result.IsError
		r.structured = unwrap(result.StructuredContent, r.server.Client().Version())
		lines = append(lines, contentText(result.Content))
	case *protocol.Completion:
		r.values, lines = result.Values, result.Values
	case *events.Occurrence:
		lines = append(lines, string(result.Data))
	case *protocol.ReadResourceResult:
		for _, c := range result.Contents {
			r.content = append(r.content, &protocol.EmbeddedResource{Resource: c})
			if c.Text != nil {
				lines = append(lines, *c.Text)
			} else {
				lines = append(lines, string(c.Blob))
			}
		}
	case *protocol.GetPromptResult:
		for _, m := range result.Messages {
			r.content = append(r.content, m.Content)
			lines = append(lines, string(m.Role)+": "+contentText([]protocol.Content{m.Content}))
		}
	}
	r.text = strings.Join(lines, "\n")
}

// OK requires that the request succeeded.
func (r *Result) OK() *Result {
	r.t.Helper()
	return r.check(r.err == nil && !r.isError, "success")
}

// Error requires a tool error with exactly this text, or a protocol error with exactly this
// message.
func (r *Result) Error(want string) *Result {
	r.t.Helper()
	got, failed := r.failure()
	return r.check(failed && got == want, "error %q", want)
}

// ErrorContains is like [Result.Error], but requires only that the text contains part.
func (r *Result) ErrorContains(part string) *Result {
	r.t.Helper()
	got, failed := r.failure()
	return r.check(failed && strings.Contains(got, part), "error with %q", part)
}

// failure returns the text of a tool error or the message of a protocol error. It returns false if
// the request succeeded.
func (r *Result) failure() (text string, failed bool) {
	if e, ok := errors.AsType[*jsonrpc.Error](r.err); ok {
		return e.Message, true
	}
	if r.err != nil {
		return r.err.Error(), true
	}
	return r.text, r.isError
}

// Text requires exactly this text: the texts of all content blocks, resource contents or messages,
// one after the other with line breaks between. A block without text is its type in brackets, such
// as [image].
func (r *Result) Text(want string) *Result {
	r.t.Helper()
	if r.err == nil && r.text != want {
		r.fail(fmt.Sprintf("%q", want), fmt.Sprintf("%q", r.text))
	}
	return r.check(r.err == nil, "%q", want)
}

// TextContains is like [Result.Text], but requires only that the text contains part.
func (r *Result) TextContains(part string) *Result {
	r.t.Helper()
	return r.check(r.err == nil && strings.Contains(r.text, part), "text with %q", part)
}

// TextNotContains is like [Result.Text], but requires only that the text does not contain part.
func (r *Result) TextNotContains(part string) *Result {
	r.t.Helper()
	return r.check(r.err == nil && !strings.Contains(r.text, part), "text without %q", part)
}

// Content returns the content of a tool's result, of the messages of a prompt, or of a resource: as
// a [protocol.EmbeddedResource] for each of its contents.
func (r *Result) Content() []protocol.Content { return r.content }

// Values requires exactly these values of a completion.
func (r *Result) Values(want ...string) *Result {
	r.t.Helper()
	return r.check(r.err == nil && slices.Equal(r.values, want), "values %q", want)
}

// Structured requires structured content and decodes it into out. It removes the object that legacy
// versions require around other values. Without structured content, which versions before 2025-06-18
// do not have, out gets the last text block that is JSON.
func (r *Result) Structured(out any) *Result {
	r.t.Helper()
	if raw := r.output(); raw == nil {
		r.fail("structured content", r.outcome())
	} else if err := jsonx.Unmarshal(raw, out); err != nil {
		r.fail(fmt.Sprintf("what decodes into a %T", out), fmt.Sprintf("%s (%v)", raw, err))
	}
	return r
}

// JSON requires this structured content. White space and the order of members do not matter.
// Without structured content, which versions before 2025-06-18 do not have, JSON compares the last
// text block that is JSON.
func (r *Result) JSON(want string) *Result {
	r.t.Helper()
	canonicalWant, err := canonical([]byte(want))
	if err != nil {
		r.t.Fatalf("mcptest: JSON(%q): %v", want, err)
	}
	raw := r.output()
	if got, err := canonical(raw); raw == nil || err != nil {
		r.fail(canonicalWant, r.outcome())
	} else if got != canonicalWant {
		r.fail(canonicalWant, got)
	}
	return r
}

// output returns the structured content, or the text that is JSON in its place.
func (r *Result) output() []byte {
	if r.structured != nil || r.err != nil || r.isError {
		return r.structured
	}
	if raw := lastJSON(r.content); raw != nil {
		return raw
	}
	if jsonx.Valid([]byte(r.text)) {
		return []byte(r.text)
	}
	return nil
}

// Progress requires exactly these progress notifications, each as "done/total message".
func (r *Result) Progress(want ...string) *Result {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if !slices.Equal(r.progress, want) {
		r.fail(fmt.Sprintf("progress %q", want), fmt.Sprintf("progress %q", r.progress))
	}
	return r
}

// Logged requires a log message to the client with this level that contains the text.
func (r *Result) Logged(level protocol.LoggingLevel, text string) *Result {
	r.t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	has := func(m string) bool { return strings.HasPrefix(m, string(level)+": ") && strings.Contains(m, text) }
	if !slices.ContainsFunc(r.messages, has) {
		r.fail(fmt.Sprintf("a message %q with %q", level, text), fmt.Sprintf("%q", r.messages))
	}
	return r
}

func (r *Result) addProgress(p *protocol.ProgressParams) {
	line := fmt.Sprint(p.Progress)
	if p.Total != nil {
		line += fmt.Sprintf("/%v", *p.Total)
	}
	if p.Message != "" {
		line += " " + p.Message
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.progress = append(r.progress, line)
}

func (r *Result) addMessage(p *protocol.LoggingMessageParams) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, string(p.Level)+": "+string(p.Data))
}

// outcome describes the result.
func (r *Result) outcome() string {
	switch {
	case r.err != nil:
		return fmt.Sprintf("error %q", r.err.Error())
	case r.isError:
		return fmt.Sprintf("error %q", r.text)
	case r.values != nil:
		return fmt.Sprintf("values %q", r.values)
	}
	return fmt.Sprintf("success, %q", r.text)
}

// wasAsked reports whether the request failed because the client cannot answer a question.
func (r *Result) wasAsked() bool {
	if e, ok := errors.AsType[*jsonrpc.Error](r.err); ok {
		return e.Code == protocol.CodeMissingClientCapability && strings.Contains(string(e.Data), "elicitation")
	}
	return r.isError && r.text == mcpkit.ErrUnsupported.Error()
}

// logLines indents a log, and shows the lines of stacks, which the log has quoted.
var logLines = strings.NewReplacer("\n", "\n  ", `\n`, "\n    ", `\t`, "    ")

// check ends the test and prints what is wanted above the outcome, unless ok is true.
func (r *Result) check(ok bool, want string, args ...any) *Result {
	r.t.Helper()
	if !ok {
		r.fail(fmt.Sprintf(want, args...), r.outcome())
	}
	return r
}

// fail ends the test and prints want above got.
func (r *Result) fail(want, got string) {
	r.t.Helper()
	same := 0
	for same < min(len(want), len(got)) && want[same] == got[same] {
		same++
	}
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nwant: %s\n got: %s", r.what, excerpt(want, same), excerpt(got, same))
	if r.arguments != nil {
		fmt.Fprintf(&b, "\narguments: %s", excerpt(string(r.arguments), 0))
	}
	if r.log != "" {
		fmt.Fprintf(&b, "\nlog of the server:\n  %s", logLines.Replace(strings.TrimSuffix(r.log, "\n")))
	}
	if r.unanswered && r.wasAsked() {
		b.WriteString("\ngive an answer: s.Answer(\"sure?\", true)")
	}
	r.t.Fatal(b.String())
}

// excerpt cuts a text that is longer than 1,000 bytes to what is around the byte at.
func excerpt(text string, at int) string {
	const most, before = 1000, 100
	if len(text) <= most {
		return text
	}
	from := max(0, at-before)
	part := text[from:min(from+most, len(text))]
	return strings.ToValidUTF8(fmt.Sprintf("%s… (bytes %d to %d of %d)", part, from, from+len(part), len(text)), "")
}

// canonical returns JSON with sorted members and no white space. Numbers stay as they are.
func canonical(raw []byte) (string, error) {
	text, err := jsonx.Canonical(slices.Clone(raw))
	if err != nil {
		return "", fmt.Errorf("%q is not valid JSON", raw)
	}
	return string(text), nil
}
