package main

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/mcpkit/mcpkit-go/mcpkit"
	"github.com/mcpkit/mcpkit-go/protocol"
)

// instruct tells each caller in the instructions which toolsets it sees.
func instruct(next mcpkit.Handler) mcpkit.Handler {
	return func(ctx context.Context, call *mcpkit.Call) (mcpkit.Result, error) {
		result, err := next(ctx, call)
		switch r := result.(type) {
		case *protocol.InitializeResult:
			changed := *r
			changed.Instructions = instructions(call)
			return &changed, err
		case *protocol.DiscoverResult:
			changed := *r
			changed.Instructions, changed.CacheScope = instructions(call), protocol.CachePrivate
			return &changed, err
		}
		return result, err
	}
}

// instructions names the toolsets that the caller sees.
func instructions(call *mcpkit.Call) string {
	sets := map[string]bool{}
	for e := range call.Entries() {
		for _, name := range e.Toolsets() {
			sets[name] = true
		}
	}
	return "This forge has " + strings.Join(slices.Sorted(maps.Keys(sets)), ", ") + "."
}

// translate replaces descriptions by texts, by the name of the tool, prompt or resource, and
// after it of the argument. What has no text keeps its own.
func translate(texts map[string]string) func(*mcpkit.Def) {
	return func(d *mcpkit.Def) {
		d.Description = cmp.Or(texts[d.Entry.Name()], d.Description)
		for _, a := range d.Args {
			a.Description = cmp.Or(texts[d.Entry.Name()+" "+a.Name], a.Description)
		}
	}
}

// languages are the texts by the value of FORGE_LANGUAGE.
var languages = map[string]map[string]string{"de": {
	"list_repositories":             "Listet alle Repositorys auf.",
	"create_repository":             "Legt ein leeres Repository an.",
	"create_repository description": "Wozu es gut ist.",
	"create_repository name":        "Der Name.",
	"forge://{repository}/readme":   "Die Seite, mit der ein Repository beginnt.",
	"list_issues":                   "Listet die offenen Issues eines Repositorys auf.",
	"create_issue":                  "Eröffnet ein Issue und gibt seine Nummer zurück.",
	"close_issue":                   "Schließt ein Issue.",
	"search_issues":                 "Findet Issues.",
	"search_issues words":           "Wörter im Titel.",
	"search_issues state":           "Der Zustand; ohne Angabe: jeder.",
	"triage":                        "Bittet das Modell, die Issues eines Repositorys zu ordnen.",
	"list_pull_requests":            "Listet die Pull Requests eines Repositorys auf.",
	"merge_pull_request":            "Führt einen Pull Request zusammen.",
	"list_users":                    "Listet alle Benutzer auf.",
	"whoami":                        "Nennt den Namen des Aufrufers.",
	"list_toolsets":                 "Listet die Gruppen von Werkzeugen dieses Servers auf.",
	"get_toolset_tools":             "Listet die Werkzeuge einer Gruppe auf.",
	"enable_toolset":                "Macht die Werkzeuge einer Gruppe verfügbar.",
}}
