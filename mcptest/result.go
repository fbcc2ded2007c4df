package mcptest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/jsonrpc"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// A Result is what came of one request. Its methods hold it to what is wanted, end the test where it differs, and return it.
type Result struct {
	t          testing.TB
	what       string
	arguments  []byte
	text       string
	structured []byte
	isError    bool
	err        error
	log        string

	mu       sync.Mutex
	progress []string // guarded by mu
	messages []string // guarded by mu
}

// OK wants a request that worked.
func (r *Result) OK() *Result {
	r.t.Helper()
	if r.err != nil || r.isError {
		r.fail("success", r.outcome())
	}
	return r
}

// Error wants a tool that failed, with this text, or an error of the protocol with this message.
func (r *Result) Error(want string) *Result {
	r.t.Helper()
	got, failed := r.text, r.isError
	if r.err != nil {
		got, failed = r.err.Error(), true
		if e, ok := errors.AsType[*jsonrpc.Error](r.err); ok {
			got = e.Message
		}
	}
	if !failed || got != want {
		r.fail(fmt.Sprintf("error %q", want), r.outcome())
	}
	return r
}

// Text wants this text: that of all blocks, of all contents, or of all messages, a line each. A block without text is its type in
// brackets.
func (r *Result) Text(want string) *Result {
	r.t.Helper()
	if r.err != nil {
		r.fail(fmt.Sprintf("%q", want), r.outcome())
	} else if r.text != want {
		r.fail(fmt.Sprintf("%q", want), fmt.Sprintf("%q", r.text))
	}
	return r
}

// Structured wants structured content, and decodes it into out. What legacy revisions wrap is unwrapped.
func (r *Result) Structured(out any) *Result {
	r.t.Helper()
	if raw := r.output(); raw == nil {
		r.fail("structured content", r.outcome())
	} else if err := jsonx.Unmarshal(raw, out); err != nil {
		r.fail(fmt.Sprintf("what decodes into a %T", out), fmt.Sprintf("%s (%v)", raw, err))
	}
	return r
}

// JSON wants this structured content; white space and the order of members do not count. Revisions before 2025-06-18 have the text
// alone, which is taken instead.
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

// output is the structured content, or JSON in the text of revisions that have none.
func (r *Result) output() []byte {
	if r.structured != nil || r.err != nil || r.isError {
		return r.structured
	}
	if jsonx.Valid([]byte(r.text)) {
		return []byte(r.text)
	}
	return nil
}

// Progress wants these reports of progress, each as "done/total message".
func (r *Result) Progress(want ...string) *Result {
	r.t.Helper()
	r.mu.Lock()
	got := slices.Clone(r.progress)
	r.mu.Unlock()
	if !slices.Equal(got, want) {
		r.fail(fmt.Sprintf("progress %q", want), fmt.Sprintf("progress %q", got))
	}
	return r
}

// Logged wants a message to the client, of this level, in which the text stands.
func (r *Result) Logged(level protocol.LoggingLevel, text string) *Result {
	r.t.Helper()
	r.mu.Lock()
	got := slices.Clone(r.messages)
	r.mu.Unlock()
	if !slices.ContainsFunc(got, func(m string) bool { return strings.HasPrefix(m, string(level)+": ") && strings.Contains(m, text) }) {
		r.fail(fmt.Sprintf("a message %q with %q", level, text), fmt.Sprintf("%q", got))
	}
	return r
}

func (r *Result) hearProgress(p *protocol.ProgressParams) {
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

func (r *Result) hearLog(p *protocol.LoggingMessageParams) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.messages = append(r.messages, string(p.Level)+": "+string(p.Data))
}

// outcome says in a few words what came.
func (r *Result) outcome() string {
	switch {
	case r.err != nil:
		return fmt.Sprintf("error %q", r.err.Error())
	case r.isError:
		return fmt.Sprintf("error %q", r.text)
	}
	return fmt.Sprintf("success, %q", r.text)
}

// fail ends the test, with want and got one above the other.
func (r *Result) fail(want, got string) {
	r.t.Helper()
	var b strings.Builder
	fmt.Fprintf(&b, "%s\nwant: %s\n got: %s", r.what, want, got)
	if r.arguments != nil {
		fmt.Fprintf(&b, "\narguments: %s", r.arguments)
	}
	if r.log != "" {
		fmt.Fprintf(&b, "\nlog of the server:\n  %s", strings.ReplaceAll(strings.TrimSuffix(r.log, "\n"), "\n", "\n  "))
	}
	r.t.Fatal(b.String())
}

// canonical is JSON with sorted members and no white space; numbers stay as they are written.
func canonical(raw []byte) (string, error) {
	switch jsonx.Kind(raw) {
	case '{':
		var members map[string]json.RawMessage
		if err := jsonx.Unmarshal(raw, &members); err != nil {
			return "", err
		}
		var parts []string
		for name, value := range members {
			text, err := canonical(value)
			if err != nil {
				return "", err
			}
			parts = append(parts, string(jsonx.AppendString(nil, name))+":"+text)
		}
		slices.Sort(parts)
		return "{" + strings.Join(parts, ",") + "}", nil
	case '[':
		var parts []string
		for e := range jsonx.Elements(raw) {
			text, err := canonical(e)
			if err != nil {
				return "", err
			}
			parts = append(parts, text)
		}
		return "[" + strings.Join(parts, ",") + "]", nil
	}
	if !jsonx.Valid(raw) {
		return "", fmt.Errorf("%q is no JSON", raw)
	}
	compact, err := jsonx.Compact(slices.Clone(raw))
	return string(compact), err
}
