package catalog

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// Overrides replaces what clients see of tools, prompts and resources by what a JSON file says, and
// environment variables in place of that. Text is the file; nil for none:
//
//	{"tools": {"search": {
//	  "name": "find_notes", "title": "Find notes", "description": "Finds notes.", "hidden": false,
//	  "arguments": {"limit": {"description": "How many.", "default": 5, "hidden": false}}
//	}}, "prompts": {}, "resources": {"note://{id}": {"description": "A note."}}}
//
// Each member may be absent. environ is os.Environ(); nil for none: MCPKIT_TOOL_SEARCH_DESCRIPTION is
// the description of the tool search, and MCPKIT_TOOL_SEARCH_ARG_LIMIT_DESCRIPTION that of its argument
// limit; NAME, TITLE and HIDDEN, true or false, are read as well. An empty variable is none. The server
// does not start if a tool, prompt, resource or argument that is named does not exist.
func Overrides(text []byte, environ []string) (mcpkit.Option, error) {
	o := &overrides{used: map[string]bool{}, env: map[string]string{}}
	if text != nil {
		d := json.NewDecoder(bytes.NewReader(text))
		d.DisallowUnknownFields()
		if err := d.Decode(&o.file); err != nil {
			return nil, fmt.Errorf("catalog: Overrides: %w", err)
		}
	}
	for _, entry := range environ {
		if name, value, _ := strings.Cut(entry, "="); strings.HasPrefix(name, envPrefix) {
			o.env[name] = value
		}
	}
	return mcpkit.Options(mcpkit.Describe(o.describe), mcpkit.Lifecycle(o)), nil
}

const envPrefix = "MCPKIT_TOOL_"

var notWords = regexp.MustCompile(`[^a-zA-Z0-9]`)

// overrides are what the file and the environment say.
type overrides struct {
	file map[string]map[string]override // by "tools" and so on, and names
	env  map[string]string

	mu   sync.Mutex
	used map[string]bool // what was found, for errors
}

type override struct {
	Name, Title, Description *string
	Hidden                   *bool
	Arguments                map[string]argument
}

type argument struct {
	Description *string
	Default     json.RawMessage
	Hidden      *bool
}

func set[T any](to *T, value *T) {
	if value != nil {
		*to = *value
	}
}

func (o *overrides) describe(d *mcpkit.Def) {
	o.mu.Lock()
	defer o.mu.Unlock()
	kind, _, _ := strings.Cut(d.Entry.Kind(), " ") // a resource template is a resource
	name := d.Entry.Name()
	says, ok := o.file[kind+"s"][name]
	if ok {
		o.used[kind+"s "+name] = true
	}
	set(&d.Name, says.Name)
	set(&d.Title, says.Title)
	set(&d.Description, says.Description)
	set(&d.Hidden, says.Hidden)
	for arg, says := range says.Arguments {
		a := d.Arg(arg)
		set(&a.Description, says.Description)
		set(&a.Hidden, says.Hidden)
		if says.Default != nil {
			a.Default = says.Default
		}
	}
	if kind == "tool" {
		o.fromEnv(d, envPrefix+variable(name))
	}
}

// fromEnv replaces what variables say whose names begin with of.
func (o *overrides) fromEnv(d *mcpkit.Def, of string) {
	hidden := strconv.FormatBool(d.Hidden)
	texts := map[string]*string{"_NAME": &d.Name, "_TITLE": &d.Title, "_DESCRIPTION": &d.Description, "_HIDDEN": &hidden}
	for _, a := range d.Args {
		texts["_ARG_"+variable(a.Name)+"_DESCRIPTION"] = &a.Description
	}
	for suffix, text := range texts {
		if value, ok := o.env[of+suffix]; ok {
			*text, o.used[of+suffix] = cmp.Or(value, *text), true
		}
	}
	d.Hidden = hidden == "true"
}

func variable(name string) string { return strings.ToUpper(notWords.ReplaceAllString(name, "_")) }

// Start returns an error if something was not found.
func (o *overrides) Start(context.Context) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	named := slices.Collect(maps.Keys(o.env))
	for part, items := range o.file {
		for name := range items {
			named = append(named, part+" "+name)
		}
	}
	slices.Sort(named)
	var faults []error
	for _, name := range named {
		if !o.used[name] {
			faults = append(faults, fmt.Errorf("catalog: Overrides: %q fits nothing that the server has", name))
		}
	}
	return errors.Join(faults...)
}
