package main

import (
	"slices"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A Pull is a pull request: a change that somebody offers.
type Pull struct {
	Number     int    `json:"number"`
	Repository string `json:"repository"`
	Title      string `json:"title"`
	Merged     bool   `json:"merged"`
}

// Pulls is the toolset of pull requests.
type Pulls struct {
	_ mcpkit.Info `toolset:"pulls"`
	_ struct {
		ListPullRequests mcpkit.Tool `hints:"readonly" alias:"get_pull_requests" params:"repository"`
		MergePullRequest mcpkit.Tool `hints:"destructive,idempotent" scopes:"repo | public_repo, merge | admin" params:"number"`
	}
	forge *Forge
}

// ListPullRequests lists the pull requests of a repository.
func (p *Pulls) ListPullRequests(repository string) ([]Pull, error) {
	p.forge.mu.Lock()
	defer p.forge.mu.Unlock()
	pulls := slices.DeleteFunc(slices.Clone(p.forge.pulls), func(one Pull) bool { return one.Repository != repository })
	return pulls, p.forge.check(repository)
}

// MergePullRequest merges a pull request.
func (p *Pulls) MergePullRequest(number int) error {
	p.forge.mu.Lock()
	defer p.forge.mu.Unlock()
	if number < 1 || number > len(p.forge.pulls) {
		return mcpkit.Errorf("there is no pull request %d", number)
	}
	p.forge.pulls[number-1].Merged = true
	return nil
}
