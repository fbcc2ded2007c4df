package catalog

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/mcpkit/mcpkit-go/internal/limits"
	"github.com/mcpkit/mcpkit-go/internal/naming"
	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// maxCallers limits how many callers are remembered. Those that were idle longest are forgotten.
const maxCallers = 10_000

// Dynamic shows what is in a toolset only to callers that have enabled the set, which models do with
// three tools of their own: list_toolsets, get_toolset_tools and enable_toolset. What is in no set is
// always shown. A caller is a principal, or an address without one, and keeps its sets for ttl after it
// enabled the last one; all on stdio are one caller, which keeps them. The sets are those of this
// process.
func Dynamic(ttl time.Duration) mcpkit.Option {
	t := &toolsets{ttl: ttl, enabled: limits.NewMap[string, []string](maxCallers)}
	return mcpkit.Options(mcpkit.With(t), mcpkit.Visible(t.see))
}

// toolsets is the service of the three tools.
type toolsets struct {
	_ struct {
		ListToolsets    mcpkit.Tool `hints:"readonly" desc:"Lists the toolsets of this server. Enable one to use its tools."`
		GetToolsetTools mcpkit.Tool `hints:"readonly" desc:"Lists the tools of a toolset." params:"toolset"`
		EnableToolset   mcpkit.Tool `hints:"additive,idempotent" desc:"Makes the tools of a toolset available." params:"toolset"`
	}
	ttl      time.Duration
	enabling sync.Mutex                    // held while a caller enables one more
	enabled  *limits.Map[string, []string] // by caller, sorted
}

// A toolset is a set of tools, prompts and resources.
type toolset struct {
	Name    string `json:"name"`
	Items   int    `json:"items"`
	Enabled bool   `json:"enabled"`
}

// A described is a tool, prompt or resource of a toolset.
type described struct {
	Kind        string `json:"kind"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

func callerOf(call *mcpkit.Call) string {
	return cmp.Or(call.Principal().Key(), "address "+call.Address())
}

// allKey is the key of calls that see what is not enabled.
type allKey struct{}

func (t *toolsets) see(_ context.Context, call *mcpkit.Call) (func(mcpkit.Entry) bool, string) {
	enabled, _ := t.enabled.Get(callerOf(call), time.Now())
	return func(e mcpkit.Entry) bool {
		return e.Toolsets() == nil || overlap(enabled, e.Toolsets()) || call.Get(allKey{}) != nil
	}, fmt.Sprintf("%q", enabled)
}

// sets returns the items of all toolsets that the caller may enable, by name.
func (t *toolsets) sets(call *mcpkit.Call) map[string][]mcpkit.Entry {
	call.Set(allKey{}, true)
	sets := map[string][]mcpkit.Entry{}
	for e := range call.Entries() {
		for _, name := range e.Toolsets() {
			sets[name] = append(sets[name], e)
		}
	}
	return sets
}

func (t *toolsets) ListToolsets(call *mcpkit.Call) []toolset {
	var list []toolset
	enabled, _ := t.enabled.Get(callerOf(call), time.Now())
	sets := t.sets(call)
	for _, name := range slices.Sorted(maps.Keys(sets)) {
		list = append(list, toolset{name, len(sets[name]), slices.Contains(enabled, name)})
	}
	return list
}

func (t *toolsets) GetToolsetTools(call *mcpkit.Call, name string) ([]described, error) {
	var list []described
	entries, err := t.find(call, name)
	for _, e := range entries {
		about := described{Kind: e.Kind(), Name: e.Name()}
		err = cmp.Or(err, json.Unmarshal(e.Definition(), &struct{ Description *string }{&about.Description}))
		list = append(list, about)
	}
	return list, err
}

func (t *toolsets) EnableToolset(call *mcpkit.Call, name string) (string, error) {
	if _, err := t.find(call, name); err != nil {
		return "", err
	}
	caller, now, ttl := callerOf(call), time.Now(), t.ttl
	if caller == "address " { // the process
		ttl = limits.Forever
	}
	t.enabling.Lock()
	enabled, _ := t.enabled.Get(caller, now)
	if !slices.Contains(enabled, name) {
		enabled = slices.Sorted(slices.Values(append(slices.Clip(enabled), name)))
	}
	t.enabled.Put(caller, enabled, now.Add(ttl))
	t.enabling.Unlock()
	call.ListsChanged()
	return "enabled; list the tools again", nil
}

// find returns the items of a toolset.
func (t *toolsets) find(call *mcpkit.Call, name string) ([]mcpkit.Entry, error) {
	sets := t.sets(call)
	if sets[name] == nil {
		return nil, mcpkit.Errorf("there is no toolset %q%s", name, naming.Hint(name, slices.Sorted(maps.Keys(sets))))
	}
	return sets[name], nil
}
