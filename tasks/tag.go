package tasks

import (
	"strings"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// modeOf returns the tag of the tool that is called.
func modeOf(call *mcpkit.Call) (mode, bool) {
	for _, tag := range call.Tags() {
		if value, ok := strings.CutPrefix(tag, "task:"); ok {
			m, err := parseMode(strings.ReplaceAll(value, "+", ","))
			return m, err == nil
		}
	}
	return mode{}, false
}
