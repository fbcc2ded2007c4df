package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/protocol"
	"github.com/mcpkit/mcpkit-go/reflectx"
	"github.com/mcpkit/mcpkit-go/reflectx/rawschema"
)

// answers are the answers that flags give to questions of servers.
type answers struct {
	given map[string]string // by field
	yes   bool

	asked []string // the fields that servers have asked for
}

// answerFlags adds --answer and --yes to a command during which servers may ask.
func answerFlags(r *remote, cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Func("answer", "the answer to the field of a form that the server sends, as `name=value`; may be repeated", func(s string) error {
		name, value, found := strings.Cut(s, "=")
		if !found || name == "" {
			return errors.New("write name=value")
		}
		if r.answers.given == nil {
			r.answers.given = map[string]string{}
		}
		r.answers.given[name] = value
		return nil
	})
	flags.BoolVar(&r.answers.yes, "yes", false, "answer yes to confirmations, and send forms without asking for consent")
}

// unused returns a message for each answer that no server asked for.
func (a *answers) unused() []string {
	var all []string
	for _, name := range slices.Sorted(maps.Keys(a.given)) {
		if !slices.Contains(a.asked, name) {
			all = append(all, fmt.Sprintf("the server did not ask for %q, so --answer was not used%s", name, naming.Hint(name, a.asked)))
		}
	}
	return all
}

// handlers returns the handlers of questions, or nil if nobody can answer.
func (r *remote) handlers(open func(ctx context.Context, page string) error) any {
	a := &asker{screen: r.err, open: open, answers: &r.answers, say: r.say}
	switch {
	case isTerminal(r.stdin):
		a.in = r.stdin
		return a
	case r.answers.yes || r.answers.given != nil:
		return &script{a}
	case r.later:
		return later{r.say}
	}
	return nil
}

// later is for a task that is only started: mcpkit tasks answers its questions. Without a handler,
// the client would say that nobody can be asked.
type later struct {
	say func(format string, args ...any)
}

// Elicit gets the questions that the server asks before the call is a task.
func (l later) Elicit(_ context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	l.say("the server asks %q before the call is a task; run the command in a terminal, or write --answer name=value or --yes", cleanLine(p.Message))
	return cancelled(errNoMore)
}

// A script answers forms with what flags give. It opens no pages, because nobody is there.
type script struct{ asker *asker }

func (s *script) Elicit(ctx context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	return s.asker.Elicit(ctx, p)
}

// An asker asks the user the questions of servers at the terminal, one at a time.
type asker struct {
	in      io.Reader // nil if there is no terminal
	screen  *screen
	open    func(ctx context.Context, page string) error
	answers *answers // guarded by mu
	say     func(format string, args ...any)

	mu    sync.Mutex  // held while a server asks
	lines chan string // the lines of the user; closed at the end of the input; nil before the first question
}

// errNoMore means that the input ended.
var errNoMore = errors.New("the input ended")

// line prints the prompt and returns the next line of the user.
func (a *asker) line(ctx context.Context, prompt string) (string, error) {
	a.screen.printf("%s", prompt)
	if a.lines == nil {
		a.lines = make(chan string)
		// Ends with the input or the program, since a read of a terminal cannot be cancelled.
		go func() {
			defer close(a.lines)
			for s := bufio.NewScanner(a.in); s.Scan(); {
				a.lines <- s.Text()
			}
		}()
	}
	select {
	case line, ok := <-a.lines:
		if !ok {
			a.screen.printf("\n")
			return "", errNoMore
		}
		return strings.TrimSpace(line), nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// cancelled returns the result for a question whose input ended.
func cancelled(err error) (*protocol.ElicitResult, error) {
	if errors.Is(err, errNoMore) {
		return &protocol.ElicitResult{Action: protocol.ElicitCancel}, nil
	}
	return nil, err
}

// ElicitURL shows the whole URL and asks for consent before it opens the page.
func (a *asker) ElicitURL(ctx context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.screen.printf("%s %s\n%s\n", a.screen.paint(bold, "The server wants you to visit a page:"), clean(p.Message), clean(p.URL))
	switch yes, err := a.consent(ctx, "Open it in the browser? [y/N] ", false); {
	case err != nil:
		return cancelled(err)
	case !yes:
		return &protocol.ElicitResult{Action: protocol.ElicitDecline}, nil
	}
	_ = a.open(ctx, p.URL) // open itself prints its errors
	return &protocol.ElicitResult{Action: protocol.ElicitAccept}, nil
}

// consent asks until the answer is yes or no. An empty line means byDefault.
func (a *asker) consent(ctx context.Context, prompt string, byDefault bool) (yes bool, err error) {
	for {
		answer, err := a.line(ctx, prompt)
		if err != nil {
			return false, err
		}
		switch strings.ToLower(answer) {
		case "":
			return byDefault, nil
		case "y", "yes":
			return true, nil
		case "n", "no":
			return false, nil
		}
	}
}

// Elicit asks for the fields of a form, and then for consent to send it.
func (a *asker) Elicit(ctx context.Context, p *protocol.ElicitParams) (*protocol.ElicitResult, error) {
	fields, err := formFields(p.RequestedSchema)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.screen.printf("%s %s\n", a.screen.paint(bold, "The server asks:"), clean(p.Message))
	content := map[string]json.RawMessage{}
	for _, f := range fields {
		a.answers.asked = append(a.answers.asked, f.name)
		value, err := a.answer(ctx, &f, len(fields) == 1)
		if err != nil {
			return cancelled(err)
		}
		if value != nil {
			content[f.name] = value
		}
	}
	if a.in != nil && !a.answers.yes {
		switch yes, err := a.consent(ctx, "Send this to the server? [Y/n] ", true); {
		case err != nil:
			return cancelled(err)
		case !yes:
			return &protocol.ElicitResult{Action: protocol.ElicitDecline}, nil
		}
	}
	raw, err := json.Marshal(content)
	return &protocol.ElicitResult{Action: protocol.ElicitAccept, Content: raw}, err
}

// answer returns the value for a field: that of a flag, or of the user. Nil means that the field is
// left out.
func (a *asker) answer(ctx context.Context, f *formField, only bool) (json.RawMessage, error) {
	text, given := a.answers.given[f.name]
	switch {
	case given:
		value, err := f.read(text)
		if err != nil {
			a.say("--answer %s=%s: %s", f.name, text, whyNot(err))
			return nil, errNoMore
		}
		return value, nil
	case a.answers.yes && only && f.Type == "boolean":
		return json.RawMessage("true"), nil
	case a.in != nil:
		return a.field(ctx, f)
	case f.required && f.Default == nil:
		a.say("the server asks for %q; write --answer %s=value", cleanLine(f.label()), clean(f.name))
		return nil, errNoMore
	}
	return f.Default, nil
}

// read returns the value that an answer means, if it fits the schema of the field.
func (f *formField) read(answer string) (json.RawMessage, error) {
	value, err := f.parse(answer, f.choices())
	if err == nil {
		err = f.schema.Validate(value)
	}
	return value, err
}

// field asks for one field until the answer fits its schema. It returns nil for a field that is
// left out.
func (a *asker) field(ctx context.Context, f *formField) (json.RawMessage, error) {
	label := cleanLine(f.label())
	if f.Description != "" {
		label += a.screen.paint(faint, " ("+cleanLine(f.Description)+")")
	}
	choices := f.choices()
	for i, c := range choices {
		label += fmt.Sprintf("\n  %d  %s", i+1, cleanLine(c.label))
	}
	if len(choices) > 0 {
		label += "\n "
	}
	for {
		answer, err := a.line(ctx, label+f.hint()+": ")
		if err != nil {
			return nil, err
		}
		if answer == "" && (f.Default != nil || !f.required) {
			return f.Default, nil
		}
		value, err := f.read(answer)
		if err == nil {
			return value, nil
		}
		a.screen.printf("  %s\n", a.screen.paint(red, whyNot(err)))
	}
}

// whyNot explains to the user why an answer does not fit.
func whyNot(err error) string {
	wrong, ok := errors.AsType[*reflectx.ArgumentError](err)
	if !ok {
		return clean(err.Error())
	}
	var all []string
	for _, v := range wrong.Violations {
		all = append(all, clean(strings.TrimPrefix(v.Want, "what the schema says: ")))
	}
	return strings.Join(all, "; ")
}

// A formField is a property of the schema of a form, with the keywords that forms may have
// (2025-11-25, client/elicitation).
type formField struct {
	name     string
	required bool
	schema   reflectx.RawSchema

	Type        string          `json:"type"`
	Title       string          `json:"title"`
	Description string          `json:"description"`
	Default     json.RawMessage `json:"default"`
	choiceList
	Items choiceList `json:"items"` // of an array
}

// A choiceList is a closed choice, in any of the notations of the protocol versions.
type choiceList struct {
	Enum      []string     `json:"enum"`
	EnumNames []string     `json:"enumNames"`
	OneOf     []constTitle `json:"oneOf"`
	AnyOf     []constTitle `json:"anyOf"`
}

type constTitle struct {
	Const string `json:"const"`
	Title string `json:"title"`
}

// A choice is a value and its label.
type choice struct{ value, label string }

// formFields reads the schema of a form, in the order of its fields.
func formFields(schema json.RawMessage) ([]formField, error) {
	var form struct {
		Properties json.RawMessage `json:"properties"`
		Required   []string        `json:"required"`
	}
	if err := json.Unmarshal(schema, &form); err != nil {
		return nil, fmt.Errorf("the form that the server sent: %w", err)
	}
	var fields []formField
	for key, raw := range jsonx.Members(form.Properties) {
		f := formField{name: jsonx.String(key)}
		if err := json.Unmarshal(raw, &f); err != nil {
			return nil, fmt.Errorf("the field %q of the form that the server sent: %w", f.name, err)
		}
		f.required = slices.Contains(form.Required, f.name)
		var err error
		if f.schema, err = rawschema.Compile(raw); err != nil {
			return nil, fmt.Errorf("the field %q of the form that the server sent: %w", f.name, err)
		}
		fields = append(fields, f)
	}
	return fields, nil
}

func (f *formField) label() string {
	if f.Title != "" {
		return f.Title
	}
	return f.name
}

func (f *formField) choices() []choice {
	list := f.choiceList
	if f.Type == "array" {
		list = f.Items
	}
	var all []choice
	for i, v := range list.Enum {
		label := v
		if i < len(list.EnumNames) {
			label = list.EnumNames[i]
		}
		all = append(all, choice{v, label})
	}
	for _, c := range slices.Concat(list.OneOf, list.AnyOf) {
		if c.Title == "" {
			c.Title = c.Const
		}
		all = append(all, choice{c.Const, c.Title})
	}
	return all
}

// hint describes valid answers.
func (f *formField) hint() string {
	var what string
	switch f.Type {
	case "boolean":
		what = "yes or no"
	case "array":
		what = "numbers, separated by commas"
	case "integer", "number":
		what = f.Type
	}
	switch {
	case f.Default != nil:
		what += ", " + cleanLine(string(f.Default)) + " when empty"
	case !f.required:
		what += ", empty for none"
	default:
		what = "required, " + what
	}
	if what = strings.Trim(what, ", "); what == "" {
		return ""
	}
	return " [" + what + "]"
}

// parse encodes an answer as JSON.
func (f *formField) parse(answer string, choices []choice) (json.RawMessage, error) {
	switch {
	case f.Type == "array":
		values := []string{}
		for _, part := range strings.Split(answer, ",") {
			if part = strings.TrimSpace(part); part == "" {
				continue
			}
			v, err := pick(part, choices)
			if err != nil {
				return nil, err
			}
			values = append(values, v)
		}
		return json.Marshal(values)
	case len(choices) > 0:
		v, err := pick(answer, choices)
		if err != nil {
			return nil, err
		}
		return json.Marshal(v)
	case f.Type == "boolean":
		switch strings.ToLower(answer) {
		case "y", "yes", "true":
			return json.RawMessage("true"), nil
		case "n", "no", "false":
			return json.RawMessage("false"), nil
		}
		return nil, errors.New("write yes or no")
	case f.Type == "integer", f.Type == "number":
		if !json.Valid([]byte(answer)) || jsonx.Kind([]byte(answer)) != '0' {
			return nil, fmt.Errorf("%q is not a number", answer)
		}
		return json.RawMessage(answer), nil
	}
	return json.Marshal(answer)
}

// pick finds a choice by its number, its value or its label.
func pick(answer string, choices []choice) (string, error) {
	for _, c := range choices {
		if answer == c.value || strings.EqualFold(answer, c.label) {
			return c.value, nil
		}
	}
	if n, err := strconv.Atoi(answer); err == nil && n >= 1 && n <= len(choices) {
		return choices[n-1].value, nil
	}
	return "", fmt.Errorf("%q is not one of the choices", answer)
}
