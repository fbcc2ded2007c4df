package main

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// An Issue is a problem or a wish.
type Issue struct {
	Number     int    `json:"number"`
	Repository string `json:"repository"`
	Title      string `json:"title"`
	Closed     string `json:"closed,omitempty" desc:"Why it is closed."`
	Open       bool   `json:"open"`
}

// Issues is the toolset of issues. Both variants of search_issues are methods; preview shows each
// caller one of them.
type Issues struct {
	_ mcpkit.Info `toolset:"issues"`
	_ struct {
		ListIssues   mcpkit.Tool   `hints:"readonly" params:"repository"`
		CreateIssue  mcpkit.Tool   `hints:"additive" scopes:"repo | public_repo" alias:"open_issue" params:"repository,title"`
		CloseIssue   mcpkit.Tool   `hints:"destructive" scopes:"repo | public_repo, triage | admin" params:"number,reason"`
		SearchIssues mcpkit.Tool   `hints:"readonly" variant:"words" params:"words"`
		FilterIssues mcpkit.Tool   `hints:"readonly" variant:"fields" name:"search_issues" tags:"preview"`
		Triage       mcpkit.Prompt `params:"repository"`
	}
	forge *Forge
}

// preview shows the new form of a tool to callers that ask for it with a header.
func preview(_ context.Context, call *mcpkit.Call) (func(mcpkit.Entry) bool, string) {
	on := strings.Contains(call.Header("X-Forge-Features"), "fields")
	return func(e mcpkit.Entry) bool {
		return e.Name() != "search_issues" || slices.Contains(e.Tags(), "preview") == on
	}, strconv.FormatBool(on)
}

// ListIssues lists the open issues of a repository.
func (i *Issues) ListIssues(repository string) ([]Issue, error) {
	i.forge.mu.Lock()
	defer i.forge.mu.Unlock()
	open := i.find(func(one Issue) bool { return one.Open && one.Repository == repository })
	return open, i.forge.check(repository)
}

// CreateIssue opens an issue and returns its number.
func (i *Issues) CreateIssue(repository, title string) (int, error) {
	i.forge.mu.Lock()
	defer i.forge.mu.Unlock()
	if err := i.forge.check(repository); err != nil {
		return 0, err
	}
	number := len(i.forge.issues) + 1
	i.forge.issues = append(i.forge.issues, Issue{Number: number, Repository: repository, Title: title, Open: true})
	return number, nil
}

// CloseIssue closes an issue.
func (i *Issues) CloseIssue(number int, reason string) error {
	i.forge.mu.Lock()
	defer i.forge.mu.Unlock()
	if number < 1 || number > len(i.forge.issues) || !i.forge.issues[number-1].Open {
		return mcpkit.Errorf("there is no open issue %d", number)
	}
	issue := &i.forge.issues[number-1]
	issue.Open, issue.Closed = false, reason
	return nil
}

// SearchIssues finds issues by words in their title.
func (i *Issues) SearchIssues(words string) []Issue {
	i.forge.mu.Lock()
	defer i.forge.mu.Unlock()
	return i.find(func(one Issue) bool { return containsAll(one.Title, words) })
}

// An IssueFilter says which issues to find.
type IssueFilter struct {
	// Words in the title.
	Words string `json:"words,omitempty"`
	// The state; absent: any.
	State string `json:"state,omitempty" validate:"omitempty,oneof=open closed"`
}

// FilterIssues finds issues by words and state.
func (i *Issues) FilterIssues(in IssueFilter) []Issue {
	i.forge.mu.Lock()
	defer i.forge.mu.Unlock()
	return i.find(func(one Issue) bool {
		return containsAll(one.Title, in.Words) && (in.State == "" || one.Open == (in.State == "open"))
	})
}

// Triage asks the model to sort the issues of a repository.
func (i *Issues) Triage(repository string) string {
	return "List the issues of " + repository + ", and say which one to work on first, and why."
}

// find returns the issues that fit. The caller holds mu.
func (i *Issues) find(fits func(Issue) bool) []Issue {
	return slices.DeleteFunc(slices.Clone(i.forge.issues), func(one Issue) bool { return !fits(one) })
}

// containsAll reports whether the title contains each of the words.
func containsAll(title, words string) bool {
	for _, word := range strings.Fields(strings.ToLower(words)) {
		if !strings.Contains(strings.ToLower(title), word) {
			return false
		}
	}
	return true
}
