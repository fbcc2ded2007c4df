package main

import (
	"slices"
	"sync"

	"github.com/mcpkit/mcpkit-go/mcpkit"
)

// A Forge keeps repositories, their issues and pull requests, and users, in memory.
type Forge struct {
	mu           sync.Mutex
	repositories []Repository // guarded by mu
	issues       []Issue      // guarded by mu: sorted by number
	pulls        []Pull       // guarded by mu: sorted by number
}

// newForge returns a forge with two repositories.
func newForge() *Forge {
	return &Forge{
		repositories: []Repository{{"tea", "Brews tea."}, {"kettle", "Heats water."}},
		issues:       []Issue{{1, "tea", "Green tea is bitter", "", true}, {2, "kettle", "It whistles", "", true}},
		pulls:        []Pull{{1, "tea", "Brew at 80 degrees", false}},
	}
}

// A Repository has code, issues and pull requests.
type Repository struct {
	// The name.
	Name string `json:"name" validate:"min=1,max=100"`
	// What it is for.
	Description string `json:"description,omitempty"`
}

// check returns an error if there is no such repository. The caller holds mu.
func (f *Forge) check(repository string) error {
	if !slices.ContainsFunc(f.repositories, func(r Repository) bool { return r.Name == repository }) {
		return mcpkit.Errorf("there is no repository %q", repository)
	}
	return nil
}

// Repositories is the toolset of repositories.
type Repositories struct {
	_ mcpkit.Info `toolset:"repositories"`
	_ struct {
		ListRepositories mcpkit.Tool     `hints:"readonly"`
		CreateRepository mcpkit.Tool     `hints:"additive" scopes:"repo | public_repo"`
		Readme           mcpkit.Resource `uri:"forge://{repository}/readme" mime:"text/markdown"`
	}
	forge *Forge
}

// ListRepositories lists all repositories.
func (r *Repositories) ListRepositories() []Repository {
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	return slices.Clone(r.forge.repositories)
}

// CreateRepository creates an empty repository.
func (r *Repositories) CreateRepository(in Repository) error {
	r.forge.mu.Lock()
	defer r.forge.mu.Unlock()
	if r.forge.check(in.Name) == nil {
		return mcpkit.Errorf("there is a repository %q already", in.Name)
	}
	r.forge.repositories = append(r.forge.repositories, in)
	return nil
}

// Readme is the page that a repository begins with.
func (r *Repositories) Readme(repository string) (string, error) {
	for _, one := range r.ListRepositories() {
		if one.Name == repository {
			return "# " + one.Name + "\n\n" + one.Description + "\n", nil
		}
	}
	return "", mcpkit.ErrNotFound
}

// A User has an account.
type User struct {
	Name  string `json:"name"`
	Email string `json:"email,omitempty"`
}

// Users is the toolset of users.
type Users struct {
	_ mcpkit.Info `toolset:"users"`
	_ struct {
		ListUsers mcpkit.Tool `hints:"readonly" scopes:"read:org | admin"`
		Whoami    mcpkit.Tool `hints:"readonly" toolset:"users, issues"`
	}
	users []User
}

// ListUsers lists all users.
func (u *Users) ListUsers() []User { return u.users }

// Whoami returns the name of the caller.
func (*Users) Whoami(call *mcpkit.Call) (string, error) {
	if call.Principal() == nil {
		return "", mcpkit.Errorf("you have no account here")
	}
	return call.Principal().Subject, nil
}
