package admission

// An Account is what one request has spent from a [Budget]. The zero value has no budget and may
// spend anything. It is not safe for concurrent use.
type Account struct {
	Budget *Budget
	Key    Key // the caller's
	spent  int64
}

// Spend spends n more. If that is too much, it spends nothing and returns false.
func (a *Account) Spend(n int64) bool {
	if a.Budget == nil || n <= 0 {
		return true
	}
	if !a.Budget.Spend(a.Key, n) {
		return false
	}
	a.spent += n
	return true
}

// Close returns everything that the request has spent.
func (a *Account) Close() {
	if a.spent > 0 {
		a.Budget.Return(a.Key, a.spent)
		a.spent = 0
	}
}
