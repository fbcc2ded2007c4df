package mcptest

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/mcpkit/mcpkit-go/internal/jsonx"
)

// Golden wants the tools that s shows to be those in the file, and says of each difference whether it breaks callers or adds to
// what they can do. With -update, a flag that the test package may define, the file is written anew.
func Golden(t testing.TB, s *Server, file string) {
	t.Helper()
	now := map[string]json.RawMessage{}
	for _, tool := range s.tools() {
		raw, err := jsonx.Marshal(tool)
		if err != nil {
			t.Fatalf("mcptest: tool %q: %v", tool.Name, err)
		}
		now[tool.Name] = raw
	}
	if f := flag.Lookup("update"); f != nil && f.Value.String() == "true" {
		raw, err := json.MarshalIndent(now, "", "  ")
		if err == nil {
			err = os.WriteFile(file, append(raw, '\n'), 0o644)
		}
		if err != nil {
			t.Fatalf("mcptest: %v", err)
		}
		return
	}
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("mcptest: %v; -update writes it", err)
	}
	var golden map[string]json.RawMessage
	if err := jsonx.Unmarshal(raw, &golden); err != nil {
		t.Fatalf("mcptest: %s: %v", file, err)
	}
	if lines := diffTools(golden, now); len(lines) > 0 {
		t.Errorf("mcptest: the tools are not those of %s; -update writes it anew\n%s", file, strings.Join(lines, "\n"))
	}
}

// diffTools says what differs, a line each.
func diffTools(was, is map[string]json.RawMessage) []string {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(was)) {
		if is[name] == nil {
			lines = append(lines, fmt.Sprintf("breaking: tool %q removed", name))
			continue
		}
		before, _ := canonical(was[name])
		after, _ := canonical(is[name])
		if before == after {
			continue
		}
		found := diffArguments(name, jsonx.Member(was[name], "inputSchema"), jsonx.Member(is[name], "inputSchema"))
		if !slices.Equal(jsonx.Member(was[name], "description"), jsonx.Member(is[name], "description")) {
			found = append(found, fmt.Sprintf("additive: tool %q: description changed", name))
		}
		found = append(found, diffMembers(fmt.Sprintf("tool %q: ", name), was[name], is[name], "name", "description", "inputSchema")...)
		found = append(found, diffMembers(fmt.Sprintf("tool %q: inputSchema: ", name),
			jsonx.Member(was[name], "inputSchema"), jsonx.Member(is[name], "inputSchema"), "properties", "required")...)
		lines = append(lines, found...)
	}
	for _, name := range slices.Sorted(maps.Keys(is)) {
		if was[name] == nil {
			lines = append(lines, fmt.Sprintf("additive: tool %q added", name))
		}
	}
	return lines
}

// diffMembers compares two objects member by member, but for those named. What a change of such a member means for
// callers is for people to say.
func diffMembers(where string, was, is []byte, but ...string) (lines []string) {
	before, after := map[string]string{}, map[string]string{}
	for from, to := range map[*[]byte]map[string]string{&was: before, &is: after} {
		for name, value := range jsonx.Members(*from) {
			if n := jsonx.String(name); !slices.Contains(but, n) {
				to[n], _ = canonical(json.RawMessage(value))
			}
		}
	}
	all := maps.Clone(before)
	maps.Copy(all, after)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if a, b := before[name], after[name]; a != b {
			lines = append(lines, fmt.Sprintf("breaking?: %s%s changed\n  was: %s\n  is:  %s", where, name, or(a, "(none)"), or(b, "(none)")))
		}
	}
	return lines
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

// diffArguments compares the arguments of a tool.
func diffArguments(tool string, was, is []byte) (lines []string) {
	before, after := properties(was), properties(is)
	required, wasRequired := names(is), names(was)
	say := func(kind, name, what string) {
		lines = append(lines, fmt.Sprintf("%s: tool %q: argument %q %s", kind, tool, name, what))
	}
	for _, name := range slices.Sorted(maps.Keys(before)) {
		a, _ := canonical(before[name])
		b, _ := canonical(after[name])
		switch {
		case after[name] == nil:
			say("breaking", name, "removed")
		case a != b:
			say("breaking?", name, "changed\n  was: "+a+"\n  is:  "+b)
		}
		if after[name] != nil && required[name] != wasRequired[name] {
			if required[name] {
				say("breaking", name, "is required now")
			} else {
				say("additive", name, "is optional now")
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(after)) {
		if before[name] == nil && required[name] {
			say("breaking", name, "added, and required")
		} else if before[name] == nil {
			say("additive", name, "added")
		}
	}
	return lines
}

func properties(schema []byte) map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for name, value := range jsonx.Members(jsonx.Member(schema, "properties")) {
		all[jsonx.String(name)] = value
	}
	return all
}

func names(schema []byte) map[string]bool {
	all := map[string]bool{}
	for name := range jsonx.Elements(jsonx.Member(schema, "required")) {
		all[jsonx.String(name)] = true
	}
	return all
}
